"""Which kernel: the facts that are compiled in."""

import ctypes

from . import _abi
from ._check import instance, number, one_of, text, truth
from ._library import Error, check, library

#: Element types by name; a tensor's dtype is one of these or ends in one, as
#: str(torch.bfloat16) does.
TYPES = {"float32": 0, "bfloat16": 1, "float16": 2, "int32": 3, "int64": 4}
SIZES = (4, 2, 2, 4, 8)

_CHOICES = {
    "family": ("replay", "packed", "materialize"),
    "gate": ("softplus", "lower-bound"),
    "ring_format": ("raw", "prefix", "predecayed"),
    "null_slot": ("negative", "nonpositive"),
    "readout": ("output-only", "rebuild"),
    "abi": ("native", "triton"),
}
for _field in ("act", "gate", "param", "out", "state", "ring", "index",
               "own_beta", "own_bias"):
    _CHOICES[_field + "_type"] = tuple(TYPES)


def choice(field, value):
    """The number of a choice that is given by name, or by number."""
    if not isinstance(value, str):
        return number(field, value, ctypes.c_int32)
    if value not in _CHOICES[field]:
        raise ValueError(f"{field}: '{value}' is not allowed; allowed are "
                         + ", ".join(_CHOICES[field]))
    index = _CHOICES[field].index(value)
    return _abi.OWN_TYPE + index if field.startswith("own_") else index


def own_type(type, usual):
    """What own_beta_type or own_bias_type is for a tensor of this type, where
    without one it would be `usual`."""
    return 0 if type == usual else _abi.OWN_TYPE + type


def format_of_rings(prefix_gate_cache, predecayed_k_cache):
    """The number of a ring's format, from the flags of SGLang #37739."""
    prefix = truth("prefix_gate_cache", prefix_gate_cache)
    predecayed = truth("predecayed_k_cache", predecayed_k_cache)
    if predecayed and not prefix:
        raise ValueError("predecayed_k_cache: not allowed without "
                         "prefix_gate_cache")
    return prefix + predecayed


class Spec(_abi.DecodeSpec):
    """A replayjit_decode_spec_t: its defaults, with the fields given changed.

    Choices may be given by name: Spec(is_kda=True, gate="lower-bound"). It is
    checked when it is used.
    """

    def __init__(self, **fields):
        super().__init__()
        library().replayjit_decode_spec_init(ctypes.byref(self),
                                             ctypes.sizeof(self))
        self._change(fields)

    @classmethod
    def from_model(cls, model, tensor_parallel=1, **fields):
        """The heads and the gate of a shipped model on one of
        `tensor_parallel` ranks."""
        spec = cls()
        check(library().replayjit_decode_spec_from_model(
            ctypes.byref(spec), text("model", model),
            number("tensor_parallel", tensor_parallel, ctypes.c_int32)))
        spec._change(fields)
        return spec

    @classmethod
    def from_facts(cls, facts):
        """Of the values of all fields after struct_size, in their order."""
        names = [name for name, _ in _abi.DecodeSpec._fields_[1:]]
        return cls(**dict(zip(names, facts)))

    def _change(self, fields):
        names = [name for name, _ in _abi.DecodeSpec._fields_[1:]]
        for name, value in fields.items():
            setattr(self, one_of(name, names, "field"), value)

    def __setattr__(self, name, value):
        super().__setattr__(name, choice(name, value) if name in _CHOICES
                            else value)

    def __repr__(self):
        values = ", ".join(f"{name}={getattr(self, name)}"
                           for name, _ in _abi.DecodeSpec._fields_[1:])
        return f"Spec({values})"


class Support:
    """True, or false with a `reason`."""

    def __init__(self, reason=""):
        self.reason = reason

    def __bool__(self):
        return not self.reason

    def __repr__(self):
        return f"Support({self.reason!r})"


def supports(spec, chip="sm_90a"):
    """Whether `spec` can be compiled for `chip`. Compiles nothing."""
    spec, chip = instance("spec", spec, Spec), text("chip", chip)
    try:
        check(library().replayjit_target_supports(chip, ctypes.byref(spec),
                                                  None))
    except Error as refusal:
        return Support(str(refusal))
    return Support()
