"""How much memory states and rings take."""

from .spec import SIZES


def slot_bytes(spec):
    """Bytes of one layer's (state, ring) of one slot: d, k and g together are
    the ring, which a packed spec does not have."""
    HV, V, K, L = (spec.num_value_heads, spec.head_dim_v, spec.head_dim_k,
                   spec.ring_depth)
    state = HV * V * K * SIZES[spec.state_type]
    if spec.family == 1:
        return state, 0
    gates = K if spec.is_kda else 1
    ring = ((HV * L * V + spec.num_key_heads * L * K) * SIZES[spec.ring_type]
            + HV * L * gates * SIZES[0])
    return state, ring


def pool_bytes(specs, states, rings=None):
    """Bytes of dense pools for layers of `specs`, one a layer, each of `states`
    state slots and `rings` rings (by default as many): cached prefixes need a
    state and no ring."""
    rings = states if rings is None else rings
    for name, count in (("states", states), ("rings", rings)):
        if count < 0:
            raise ValueError(f"{name}: {count} is not allowed; it must be 0 or "
                             "more")
    sizes = [slot_bytes(spec) for spec in specs]
    return sum(states * state + rings * ring for state, ring in sizes)


def states_for_budget(budget, specs, rings=None):
    """The most state slots for which pool_bytes(specs, states, rings) is at most
    `budget` bytes; -1 if the rings alone do not fit."""
    sizes = [slot_bytes(spec) for spec in specs]
    state = sum(one for one, _ in sizes)
    ring = sum(one for _, one in sizes)
    if state == 0:
        raise ValueError("specs: an empty list is not allowed")
    if rings is None:
        return max(budget // (state + ring), -1)
    return max((budget - rings * ring) // state, -1)
