"""Pools of states, and a step of a batch as a transaction: where each request's
ring stands, on the device and in the order of the stream.

replayjit_state.h has the rules.
"""

import contextlib
import ctypes
from ctypes import byref, sizeof

from . import _abi
from ._library import check, library
from ._operand import I32, common_runtime, operand
from .runtime import Tensor, current_stream, owned
from .spec import TYPES
from .state import LayerTable, report

_NAMES = tuple(TYPES)
_ROWS = ("flush_mask", "fresh", "seq_len", "no_flush_past", "drop_newest")


class StatePool:
    """Over the caller's memory: `groups` are (spec, layers), the Spec of their
    decode kernels (see Launch.spec) and a list as LayerTable takes it; write_pos
    and, of circular rings, cache_base are [keys] int32, the cursor of each key,
    zero at first. A key is a request, a ring slot, a block. Prepares kernels."""

    def __init__(self, groups, write_pos, cache_base=None,
                 batch_invariant=False):
        tables = [LayerTable(layers) for _, layers in groups]
        self.specs = [spec for spec, _ in groups]
        self.tensors = (tables, write_pos, cache_base)
        self.runtime = common_runtime({"write_pos": write_pos, **{
            f"groups[{at}]": table.tensors[0][0]
            for at, table in enumerate(tables)}})
        cursor = operand("write_pos", write_pos, (None,), (I32,), free=0)
        base = 0 if cache_base is None else operand(
            "cache_base", cache_base, cursor.shape, (I32,), free=0).address
        entries = []
        for at, (spec, table) in enumerate(zip(self.specs, tables)):
            shape = tuple(getattr(spec, name) for name in (
                "is_kda", "num_key_heads", "num_value_heads", "head_dim_k",
                "head_dim_v", "ring_depth", "state_type", "ring_type"))
            if shape != table.facts[:8]:
                raise ValueError(f"groups[{at}]: a spec of other shapes or types "
                                 "than those of its layers is not allowed")
            entries.append(_abi.PoolGroup(
                sizeof(_abi.PoolGroup), table.count, ctypes.addressof(spec),
                table.rows, table.facts[8], table.facts[9]))
        addresses = (ctypes.c_void_p * len(entries))(
            *map(ctypes.addressof, entries))
        cursors = _abi.Cursors(sizeof(_abi.Cursors), cursor.shape[0],
                               cursor.address, base)
        options = _abi.PoolOptions(sizeof(_abi.PoolOptions), batch_invariant)
        pool = ctypes.c_void_p()
        check(library().replayjit_pool_adopt(
            self.runtime.jit, addresses, len(entries), byref(cursors),
            byref(options), byref(pool)))
        self.address = owned(self, pool.value, library().replayjit_pool_release)

    def poll(self):
        """A Report of what kernels and plans found wrong, or None. Waits for
        nothing."""
        word = _abi.ErrorWord()
        check(library().replayjit_pool_poll_errors(self.address, byref(word)))
        return report(word)

    def clear(self):
        """Forgets the reports, once the device is idle."""
        check(library().replayjit_pool_clear_errors(self.address))

    def reset(self, stream=None):
        """All cursors become 0 and no step can be committed."""
        stream = current_stream(self.runtime) if stream is None else stream
        check(library().replayjit_pool_reset(self.address, stream))


class StepPlan:
    """The buffers that kernels read in a step of up to `max_rows` rows, at
    addresses that never change, and what fills them and moves cursors."""

    def __init__(self, pool, max_rows):
        plan = ctypes.c_void_p()
        check(library().replayjit_plan_create(pool.address, max_rows, 0,
                                              byref(plan)))
        self.pool, self.max_rows, self._inputs = pool, max_rows, None
        self._captured = []  # Graphs read them for as long as the plan is used.
        self.address = owned(self, plan.value, library().replayjit_plan_release)

    def _call(self, name, stream, *arguments):
        if stream is None:
            stream = current_stream(self.pool.runtime)
        function = getattr(library(), "replayjit_plan_" + name)
        check(function(self.address, stream, *arguments))

    def _read(self, keys, groups, **rows):
        """The StepInputs of an operation, and keeps the tensors. `groups` are a
        dict for each group: its "state", "ring", "dst" and "track" indices."""
        specs = self.pool.specs
        if isinstance(groups, dict):
            groups = [groups]
        groups = [dict(group) for group in groups]  # The caller may reuse them.
        if len(groups) != len(specs):
            raise ValueError(f"groups: {len(groups)} are not allowed; the pool "
                             f"has {len(specs)}")
        index = (specs[0].index_type,)
        key = operand("keys", keys, (None,), index)
        live = key.shape[0]
        inputs = _abi.StepInputs(sizeof(_abi.StepInputs), live, key.address,
                                 key.pitch)
        entries = (_abi.GroupIndices * len(groups))()
        for at, (entry, group) in enumerate(zip(entries, groups)):
            for name, tensor in group.items():
                found = operand(f"groups[{at}].{name}", tensor, (live,), index)
                setattr(entry, name, found.address)
                setattr(entry, name + "_stride", found.pitch)
        inputs.groups = entries
        for name, tensor in rows.items():
            if name not in _ROWS:
                raise ValueError(f"{name}: there is no such input; there are "
                                 + ", ".join(_ROWS))
            if tensor is not None:
                setattr(inputs, name, operand(name, tensor, (live,), (I32,),
                                              free=0).address)
        self._inputs = (inputs, entries, keys, groups, rows)
        return byref(inputs)

    def _advance(self, advance_by):
        if advance_by is None:
            return 0
        return operand("advance_by", advance_by, (self.max_rows,), (I32,),
                       free=0).address

    def begin(self, step, keys, groups, stream=None, **rows):
        """Fills the buffers for the rows of `keys`, [B] of the pool's index
        type; step is above 0 and used once. rows: flush_mask, fresh, seq_len,
        no_flush_past, [B] int32."""
        self._call("begin", stream, step, self._read(keys, groups, **rows))

    def commit(self, step, advance_by=None, stream=None):
        """Moves the cursors, by one token or by advance_by, [max_rows] int32."""
        self._call("commit", stream, step, self._advance(advance_by))

    def begin_captured(self, keys, groups, stream=None, **rows):
        """begin for a graph; set_step says which step and how many rows. The
        plan keeps the tensors for as long as it lives, as graphs read them."""
        self._call("begin_captured", stream, self._read(keys, groups, **rows))
        self._captured.append(self._inputs)

    def commit_captured(self, advance_by=None, stream=None):
        """commit for a graph; advance_by is kept like the tensors of
        begin_captured."""
        self._call("commit_captured", stream, self._advance(advance_by))
        if advance_by is not None:
            self._captured.append(advance_by)

    def set_step(self, step, live, stream=None):
        """Before each replay of a graph, on its stream."""
        self._call("set_step", stream, step, live)

    def materialize(self, keys, groups, stream=None, **rows):
        """dst = checkpoint plus ring of state, in all layers; rows may have
        drop_newest. Like the next three it makes a step that has begun void."""
        self._call("materialize", stream, self._read(keys, groups, **rows))

    def copy(self, keys, groups, stream=None):
        """The same for empty rings; a row with another is reported."""
        self._call("copy", stream, self._read(keys, groups))

    def prepare_extend(self, keys, groups, stream=None):
        """Before rows run anything but replay decode: folds their rings."""
        self._call("prepare_extend", stream, self._read(keys, groups))

    def require_flushed(self, keys, groups, stream=None):
        """For debugging: reports rows whose ring is not empty."""
        self._call("require_flushed", stream, self._read(keys, groups))

    def rows(self, group=0, begin=0, count=None):
        """The buffers of `count` rows from `begin` on, by default all: keyword
        arguments of fused_recurrent_linear_replayssm_decode."""
        count = self.max_rows - begin if count is None else count
        args = _abi.DecodeArgs(sizeof(_abi.DecodeArgs))
        check(library().replayjit_plan_layer_args(self.address, group, 0, begin,
                                                  count, byref(args)))
        spec = self.pool.specs[group]
        index = _NAMES[spec.index_type]
        there = [("ssm_state_indices", index, args.state_indices, True),
                 ("write_pos", "int32", args.write_pos, True),
                 ("force_flush", "int32", args.force_flush,
                  spec.has_force_flush),
                 ("cache_base", "int32", args.ring_base, spec.is_circular),
                 ("ring_indices", index, args.ring_indices,
                  spec.has_ring_indices),
                 ("dst_indices", index, args.dst_indices, spec.has_dst_indices),
                 ("track_indices", index, args.track_indices,
                  spec.has_track_indices)]
        return {name: Tensor(self.pool.runtime, dtype, (count,), address,
                             owner=self)
                for name, dtype, address, is_there in there if is_there}


@contextlib.contextmanager
def plan_step(plan, step, keys, groups, advance_by=None, stream=None, **rows):
    """StepPlan.begin, what is launched inside, StepPlan.commit:

        with plan_step(plan, 7, keys, {"state": slots}) as plan:
            fused_recurrent_linear_replayssm_decode(..., **plan.rows())

    An exception inside leaves the cursors as they were.
    """
    plan.begin(step, keys, groups, stream, **rows)
    yield plan
    plan.commit(step, advance_by, stream)
