"""How much memory states and rings take, how to decode, and when to snapshot."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int32, c_int64
from typing import NamedTuple, Optional, Sequence, Tuple

from ._check import instance, items, number, truth
from ._library import check, library
from .spec import TYPES, Spec


class Recommendation(NamedTuple):
    """What `recommend` says: "packed" or "replay", L and the ring's type."""
    family: str
    ring_depth: int
    ring_type: str


def _layers(specs):
    """The specs, and one layer of each as the library takes them."""
    specs = [instance(f"specs[{at}]", spec, Spec)
             for at, spec in enumerate(items("specs", specs))]
    count = len(specs)
    return (specs, (ctypes.c_void_p * count)(*(spec.address for spec in specs)),
            (c_int32 * count)(*[1] * count), count)


def _numbers(**values):
    return [number(name, value, c_int64) for name, value in values.items()]


def slot_bytes(spec: Spec) -> Tuple[int, int]:
    """Bytes of one state and of one ring of one layer. Raises ValueError for a
    spec that is not allowed."""
    instance("spec", spec, Spec)
    state, ring = c_int64(), c_int64()
    check(library().replayjit_state_bytes(spec, byref(state),
                                          byref(ring)))
    return state.value, ring.value


def pool_bytes(specs: Sequence[Spec], states: int, rings: int,
               num_keys: int) -> int:
    """Bytes of pools for layers of `specs`, one a layer: `states` state slots
    and `rings` rings each, and `num_keys` cursors for all. Rings are as many as
    requests that run at once; a cached prefix has none. Raises ValueError for a
    spec or a number that is not allowed."""
    _kept, *layers = _layers(specs)
    counts = _numbers(states=states, rings=rings, num_keys=num_keys)
    total = c_int64()
    check(library().replayjit_pool_bytes(*layers, *counts, byref(total)))
    return total.value


def states_for_budget(budget: int, specs: Sequence[Spec], rings: int,
                      num_keys: int) -> int:
    """The most state slots that fit into `budget` bytes beside so many rings and
    cursors. Raises ValueError as pool_bytes does."""
    _kept, *layers = _layers(specs)
    counts = _numbers(rings=rings, num_keys=num_keys, budget=budget)
    states = c_int64()
    check(library().replayjit_pool_states(*layers, *counts, byref(states)))
    return states.value


def recommend(spec: Spec, rows: int,
              lower_bound: float = -5.0) -> Recommendation:
    """How `rows` requests at once decode fastest: ("packed", 1, ring type), or
    ("replay", L, ring type). The spec's own L does not count. What `replay-bench
    tune` measured of such a spec counts first. Raises ValueError for a spec that
    is not allowed."""
    instance("spec", spec, Spec)
    family, depth, ring = c_int32(), c_int32(), c_int32()
    check(library().replayjit_decode_spec_recommend(
        spec, number("rows", rows, c_int32),
        number("lower_bound", lower_bound, c_float), byref(family),
        byref(depth), byref(ring)))
    return Recommendation(("replay", "packed")[family.value], depth.value,
                          {number: name for name, number in TYPES.items()}[ring.value])


def advance(spec: Spec, write_pos: int, base: int = 0,
            forced: bool = False,
            accepted: Optional[int] = None) -> Tuple[int, int]:
    """Where a cursor stands after a step that was or was not forced to flush, for
    callers that keep cursors on the host. Of a launch of `verify` the first
    `accepted` tokens hold; None: 1. Raises ValueError for a cursor that is not
    in the ring."""
    instance("spec", spec, Spec)
    write_pos = c_int32(number("write_pos", write_pos, c_int32))
    base = c_int32(number("base", base, c_int32))
    forced = truth("forced", forced)
    if accepted is None:
        check(library().replayjit_ring_cursor_advance(
            spec, byref(write_pos), byref(base), forced))
    else:
        check(library().replayjit_ring_cursor_accept(
            spec, byref(write_pos), byref(base), forced,
            number("accepted", accepted, c_int32)))
    return write_pos.value, base.value


def should_flush(seq_len: int, interval: int) -> bool:
    """Whether after so many tokens a snapshot is due, which is so every `interval`
    tokens; for a step's flush_mask. Raises ValueError for what is no integer."""
    return bool(library().replayjit_should_flush(
        *_numbers(seq_len=seq_len, interval=interval)))


def tokens_to_drop(committed_len: int, fed_len: int) -> int:
    """The drop_newest of a request of which `fed_len` tokens were fed and that
    gives away a state of `committed_len`. Raises ValueError for what is no
    integer."""
    return library().replayjit_tokens_to_drop(
        *_numbers(committed_len=committed_len, fed_len=fed_len))
