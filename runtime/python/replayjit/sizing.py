"""How much memory states and rings take, and how to decode."""

import ctypes
from ctypes import byref

from ._library import check, library


def _layers(specs):
    """One layer of each spec, as the library takes them."""
    count = len(specs)
    return ((ctypes.c_void_p * count)(*map(ctypes.addressof, specs)),
            (ctypes.c_int32 * count)(*[1] * count), count)


def slot_bytes(spec):
    """Bytes of one state and of one ring of one layer."""
    state, ring = ctypes.c_int64(), ctypes.c_int64()
    check(library().replayjit_state_bytes(byref(spec), byref(state),
                                          byref(ring)))
    return state.value, ring.value


def pool_bytes(specs, states, rings, num_keys):
    """Bytes of pools for layers of `specs`, one a layer: `states` state slots
    and `rings` rings each, and `num_keys` cursors for all. Rings are as many as
    requests that run at once; a cached prefix has none."""
    total = ctypes.c_int64()
    check(library().replayjit_pool_bytes(*_layers(specs), states, rings,
                                         num_keys, byref(total)))
    return total.value


def states_for_budget(budget, specs, rings, num_keys):
    """The most state slots that fit into `budget` bytes beside so many rings and
    cursors."""
    states = ctypes.c_int64()
    check(library().replayjit_pool_states(*_layers(specs), rings, num_keys,
                                          budget, byref(states)))
    return states.value


def recommend(spec, rows, lower_bound=-5.0):
    """How `rows` requests at once decode fastest: ("packed", 1), or ("replay",
    L). The spec's own L does not count."""
    family, depth = ctypes.c_int32(), ctypes.c_int32()
    check(library().replayjit_decode_spec_recommend(
        byref(spec), rows, lower_bound, byref(family), byref(depth)))
    return ("replay", "packed")[family.value], depth.value
