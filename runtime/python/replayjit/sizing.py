"""How much memory states and rings take, and how to decode."""

import ctypes
from ctypes import byref, c_float, c_int32, c_int64

from ._check import instance, items, number
from ._library import check, library
from .spec import Spec


def _layers(specs):
    """The specs, and one layer of each as the library takes them."""
    specs = [instance(f"specs[{at}]", spec, Spec)
             for at, spec in enumerate(items("specs", specs))]
    count = len(specs)
    return (specs, (ctypes.c_void_p * count)(*(spec.address for spec in specs)),
            (c_int32 * count)(*[1] * count), count)


def _numbers(**values):
    return [number(name, value, c_int64) for name, value in values.items()]


def slot_bytes(spec):
    """Bytes of one state and of one ring of one layer."""
    instance("spec", spec, Spec)
    state, ring = c_int64(), c_int64()
    check(library().replayjit_state_bytes(spec, byref(state),
                                          byref(ring)))
    return state.value, ring.value


def pool_bytes(specs, states, rings, num_keys):
    """Bytes of pools for layers of `specs`, one a layer: `states` state slots
    and `rings` rings each, and `num_keys` cursors for all. Rings are as many as
    requests that run at once; a cached prefix has none."""
    _kept, *layers = _layers(specs)
    counts = _numbers(states=states, rings=rings, num_keys=num_keys)
    total = c_int64()
    check(library().replayjit_pool_bytes(*layers, *counts, byref(total)))
    return total.value


def states_for_budget(budget, specs, rings, num_keys):
    """The most state slots that fit into `budget` bytes beside so many rings and
    cursors."""
    _kept, *layers = _layers(specs)
    counts = _numbers(rings=rings, num_keys=num_keys, budget=budget)
    states = c_int64()
    check(library().replayjit_pool_states(*layers, *counts, byref(states)))
    return states.value


def recommend(spec, rows, lower_bound=-5.0):
    """How `rows` requests at once decode fastest: ("packed", 1), or ("replay",
    L). The spec's own L does not count."""
    instance("spec", spec, Spec)
    family, depth = c_int32(), c_int32()
    check(library().replayjit_decode_spec_recommend(
        spec, number("rows", rows, c_int32),
        number("lower_bound", lower_bound, c_float), byref(family),
        byref(depth)))
    return ("replay", "packed")[family.value], depth.value
