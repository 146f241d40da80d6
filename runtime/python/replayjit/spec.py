"""Which kernel: the facts that are compiled in."""

from __future__ import annotations

import collections
import ctypes
import functools
from typing import Any, Tuple

from ._check import instance, number, one_of, text, truth
from ._library import Error, check, library

#: Element types by name; a tensor's dtype is one of these or ends in one, as
#: str(torch.bfloat16) does.
TYPES = {"float32": 0, "bfloat16": 1, "float16": 2, "int32": 3, "int64": 4}
SIZES = (4, 2, 2, 4, 8)

#: replayjit_fact_kind_t.
_TRUTH, _TYPE = 1, 3

#: A field of a spec: its place in the struct, a sentence, a replayjit_fact_kind_t
#: and, of a choice or a type, the names of its values from 0 on.
Fact = collections.namedtuple("Fact", "at doc kind words")


@functools.lru_cache(maxsize=None)
def facts():
    """The fields of a spec by name, in their order, as the library has them."""
    found = {}
    while fact := library().replayjit_decode_spec_fact(len(found)):
        told = fact.contents
        words = [told.words[i].decode() for i in range(told.num_words)]
        found[told.name.decode()] = Fact(
            1 + len(found), told.doc.decode(), told.kind,
            tuple(TYPES) if told.kind == _TYPE else tuple(words))
    return found


def choice(field, value):
    """The number of a field's value that is given by name, or as a number."""
    fact = facts()[field]
    if fact.kind == _TRUTH:
        return truth(field, value)
    if not isinstance(value, str) or not fact.words:
        return number(field, value, ctypes.c_int32)
    if value not in fact.words:
        raise ValueError(f"{field}: '{value}' is not allowed; allowed are "
                         + ", ".join(fact.words))
    return fact.words.index(value)


def _said(fact, value):
    """The value of a field as one writes it: True, "lower-bound" or 16."""
    if fact.kind == _TRUTH:
        return bool(value)
    return fact.words[value] if 0 <= value < len(fact.words) else value


def format_of_rings(prefix_gate_cache, predecayed_k_cache):
    """The number of a ring's format, from the flags of SGLang #37739."""
    prefix = truth("prefix_gate_cache", prefix_gate_cache)
    predecayed = truth("predecayed_k_cache", predecayed_k_cache)
    if predecayed and not prefix:
        raise ValueError("predecayed_k_cache: not allowed without "
                         "prefix_gate_cache")
    return prefix + predecayed


class Spec:
    """A replayjit_decode_spec_t: its defaults, with the fields given changed.

    Choices may be given by name: Spec(is_kda=True, gate="lower-bound"). It is
    checked when it is used. `facts` tells the fields.

    Raises ValueError for a field or a word that does not exist.
    """

    __slots__ = ("_numbers",)

    def __init__(self, **fields: Any):
        # struct_size, and a number for each field.
        numbers = (ctypes.c_int32 * (1 + len(facts())))()
        object.__setattr__(self, "_numbers", numbers)
        library().replayjit_decode_spec_init(self, ctypes.sizeof(numbers))
        self._change(fields)

    @classmethod
    def from_model(cls, model: str, tensor_parallel: int = 1,
                   **fields: Any) -> Spec:
        """The heads and the gate of a shipped model on one of
        `tensor_parallel` ranks. Raises ValueError where that is none."""
        spec = cls()
        check(library().replayjit_decode_spec_from_model(
            spec, text("model", model),
            number("tensor_parallel", tensor_parallel, ctypes.c_int32)))
        spec._change(fields)
        return spec

    @property
    def _as_parameter_(self):
        return self._numbers

    @property
    def address(self) -> int:
        """Where the struct lies, as long as this object does."""
        return ctypes.addressof(self._numbers)

    def _change(self, fields):
        for name, value in fields.items():
            setattr(self, name, value)

    def __getattr__(self, name):
        fact = facts().get(name)
        if fact is None:
            raise AttributeError(f"a Spec has no field '{name}'")
        return self._numbers[fact.at]

    def __setattr__(self, name, value):
        fact = facts()[one_of(name, facts(), "field")]
        self._numbers[fact.at] = choice(name, value)

    def __dir__(self):
        return [*super().__dir__(), *facts()]

    def __repr__(self):
        values = ", ".join(f"{name}={_said(fact, getattr(self, name))!r}"
                           for name, fact in facts().items())
        return f"Spec({values})"

    def __eq__(self, other):
        return (isinstance(other, Spec) and
                list(self._numbers) == list(other._numbers))

    __hash__ = None


class Support:
    """True, or false with a `reason`."""

    def __init__(self, reason: str = ""):
        self.reason = reason

    def __bool__(self):
        return not self.reason

    def __repr__(self):
        return f"Support({self.reason!r})"


def targets() -> Tuple[str, ...]:
    """The chips that kernels can be made for."""
    found = []
    while name := library().replayjit_target_name(len(found)):
        found.append(name.decode())
    return tuple(found)


def supports(spec: Spec, chip: str = "sm_90a") -> Support:
    """Whether `spec` can be compiled for `chip`. Compiles nothing. Raises
    ValueError for what is no spec."""
    spec, chip = instance("spec", spec, Spec), text("chip", chip)
    try:
        check(library().replayjit_target_supports(chip, spec, None))
    except Error as refusal:
        return Support(str(refusal))
    return Support()
