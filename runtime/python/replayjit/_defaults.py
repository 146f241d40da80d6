"""What operators do where a call does not say."""

from . import _check
from .spec import choice


class Defaults:
    """Settings of the process, for calls that leave an argument at None.

    null_slot: which index is padding, "negative" (SGLang) or "non-positive"
    (vLLM, whose block 0 is nobody's).
    """

    __slots__ = ("null_slot",)

    def __init__(self):
        object.__setattr__(self, "null_slot", "negative")

    def __setattr__(self, name, value):
        choice(_check.one_of(name, self.__slots__, "setting"), value)
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"Defaults(null_slot={self.null_slot!r})"


defaults = Defaults()


def null_slot_of(value):
    """The number of a null_slot, or (None) of the process's."""
    return choice("null_slot", defaults.null_slot if value is None else value)
