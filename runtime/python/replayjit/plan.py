"""Pools of states, and a step of a batch as a transaction: where each request's
ring stands, on the device and in the order of the stream.

replayjit_state.h has the rules.
"""

from __future__ import annotations

import contextlib
import ctypes
from ctypes import byref, c_int32, c_int64, sizeof
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from . import _abi
from ._check import instance, items, number, one_of, refused
from ._library import INVALID_ARGUMENT, InvalidArgument, check, library
from ._operand import I32, common_runtime, operand
from .runtime import Tensor, owned, stream_of
from .spec import TYPES, Spec
from .state import LayerTable, Report, report

_NAMES = tuple(TYPES)
#: A dict of index tensors for each group, or for the only one.
Groups = Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]
_INDICES = ("state", "ring", "dst", "track")
_ROWS = ("flush_mask", "fresh", "seq_len", "no_flush_past", "drop_newest")


def _uncaptured(runtime, stream, what):
    """stream_of, unless that is under capture, which `what` would spoil."""
    stream = stream_of(runtime, stream)
    if runtime.is_capturing(stream):
        raise InvalidArgument(f"{what}: not possible while launches are "
                              "captured; do it before", INVALID_ARGUMENT)
    return stream


class StatePool:
    """Over the caller's memory: `groups` are (spec, layers), the Spec of their
    decode kernels (see Launch.spec) and a list as LayerTable takes it; write_pos
    and, of circular rings, cache_base are [keys] int32, the cursor of each key,
    zero at first. A key is a request, a ring slot, a block. Prepares kernels, so
    it is refused while `stream`, by default the current one, is under capture;
    that stream outlives the pool. check_rows: each begin waits, and refuses rows
    of which two share a slot that one of them writes; for debugging.

    Raises ValueError for an argument that is not allowed, Error where kernels
    cannot be made."""

    def __init__(self, groups: Sequence[Tuple[Spec, Sequence[Any]]],
                 write_pos: Any, cache_base: Optional[Any] = None,
                 batch_invariant: bool = False, stream: Optional[int] = None,
                 check_rows: bool = False):
        pairs = [items(f"groups[{at}]", pair, 2)
                 for at, pair in enumerate(items("groups", groups))]
        self.specs = [instance(f"groups[{at}][0]", spec, Spec)
                      for at, (spec, _) in enumerate(pairs)]
        self.cursors = {"write_pos": write_pos}
        if cache_base is not None:
            self.cursors["cache_base"] = cache_base
        self.runtime = common_runtime(self.cursors)
        stream = _uncaptured(self.runtime, stream, "StatePool")
        self._tables = [LayerTable(layers) for _, layers in pairs]
        common_runtime({**self.cursors, **{
            f"groups[{at}]": table.tensors[0][0]
            for at, table in enumerate(self._tables)}})
        cursor = operand("write_pos", write_pos, (None,), (I32,), free=0)
        base = 0 if cache_base is None else operand(
            "cache_base", cache_base, cursor.shape, (I32,), free=0).address
        entries = []
        for at, (spec, table) in enumerate(zip(self.specs, self._tables)):
            shape = tuple(getattr(spec, name) for name in (
                "is_kda", "num_key_heads", "num_value_heads", "head_dim_k",
                "head_dim_v", "ring_depth", "state_type", "ring_type"))
            if shape != table.facts[:8]:
                raise ValueError(f"groups[{at}]: a spec of other shapes or types "
                                 "than those of its layers is not allowed")
            entries.append(_abi.PoolGroup(
                sizeof(_abi.PoolGroup), table.count, spec.address,
                table.rows, table.facts[8], table.facts[9]))
        addresses = (ctypes.c_void_p * len(entries))(
            *map(ctypes.addressof, entries))
        cursors = _abi.Cursors(sizeof(_abi.Cursors), cursor.shape[0],
                               cursor.address, base)
        options = _abi.PoolOptions(sizeof(_abi.PoolOptions), batch_invariant,
                                   stream=stream, check_rows=check_rows)
        pool = ctypes.c_void_p()
        check(library().replayjit_pool_adopt(
            self.runtime.jit, addresses, len(entries), byref(cursors),
            byref(options), byref(pool)))
        self.address = owned(self, pool.value, library().replayjit_pool_release)

    def __repr__(self):
        return (f"<replayjit.StatePool of {len(self.specs)} groups, "
                f"{self.cursors['write_pos'].shape[0]} keys>")

    def poll(self) -> Optional[Report]:
        """A Report of what kernels and plans found wrong, or None. Waits for
        nothing."""
        word = _abi.ErrorWord()
        check(library().replayjit_pool_poll_errors(self.address, byref(word)))
        return report(word)

    def clear(self) -> None:
        """Forgets the reports, once the device is idle."""
        check(library().replayjit_pool_clear_errors(self.address))

    def reset(self, stream: Optional[int] = None) -> None:
        """All cursors become 0 and no step can be committed."""
        check(library().replayjit_pool_reset(self.address,
                                             stream_of(self.runtime, stream)))


class StepPlan:
    """The buffers that kernels read in a step of up to `max_rows` rows, at
    addresses that never change, and what fills them and moves cursors. It is not
    made while `stream`, by default the current one, is under capture. What is
    captured later it keeps for as long as it lives, since graphs read it.

    This and its methods raise ValueError for an argument that is not allowed,
    Error for what cannot be done."""

    def __init__(self, pool: StatePool, max_rows: int,
                 stream: Optional[int] = None):
        self.pool = instance("pool", pool, StatePool)
        self.max_rows = number("max_rows", max_rows, c_int32)
        _uncaptured(pool.runtime, stream, "StepPlan")
        plan = ctypes.c_void_p()
        check(library().replayjit_plan_create(pool.address, self.max_rows, 0,
                                              byref(plan)))
        self._inputs, self._captured = None, []
        self.address = owned(self, plan.value, library().replayjit_plan_release)

    def __repr__(self):
        return f"<replayjit.StepPlan of {self.max_rows} rows, {self.pool}>"

    def _call(self, name, stream, *arguments, reads=None):
        """`reads` keeps what the device reads in the order of the stream."""
        runtime = self.pool.runtime
        stream = stream_of(runtime, stream)
        if reads is not None and (name.endswith("_captured") or
                                  runtime.is_capturing(stream)):
            self._captured.append(reads)
        check(getattr(library(), "replayjit_plan_" + name)(
            self.address, stream, *arguments))

    def _call_on_rows(self, name, stream, keys, groups, rows, *step):
        """`groups` are a dict for each group of the pool: its "state", "ring",
        "dst" and "track" indices. None stands for what is not given."""
        inputs, _, _ = self._inputs = self._read(keys, groups, rows)
        self._call(name, stream, *step, byref(inputs), reads=self._inputs)

    def _read(self, keys, groups, rows):
        """The StepInputs, and what they point to."""
        specs = self.pool.specs
        groups = [groups] if isinstance(groups, dict) else items("groups", groups)
        if len(groups) != len(specs):
            raise ValueError(f"groups: {len(groups)} are not allowed; the pool "
                             f"has {len(specs)}")
        tensors = {}
        for at, group in enumerate(groups):
            if not isinstance(group, dict):
                raise refused(f"groups[{at}]", group, "a dict of tensors")
            for name, tensor in group.items():
                one_of(name, _INDICES, "index", f"groups[{at}].")
                tensors[f"groups[{at}].{name}"] = tensor
        for name, tensor in rows.items():
            tensors[one_of(name, _ROWS, "input")] = tensor
        tensors = {"keys": keys, **{name: tensor for name, tensor in
                                    tensors.items() if tensor is not None}}
        common_runtime({**self.pool.cursors, **tensors})

        index = (specs[0].index_type,)
        key = operand("keys", keys, (None,), index)
        live = key.shape[0]
        inputs = _abi.StepInputs(sizeof(_abi.StepInputs), live, key.address,
                                 key.pitch)
        inputs.groups = entries = (_abi.GroupIndices * len(groups))()
        for at, entry in enumerate(entries):
            for name in _INDICES:
                whole = f"groups[{at}].{name}"
                if whole in tensors:
                    found = operand(whole, tensors[whole], (live,), index)
                    setattr(entry, name, found.address)
                    setattr(entry, name + "_stride", found.pitch)
        for name in _ROWS:
            if name in tensors:
                setattr(inputs, name, operand(name, tensors[name], (live,),
                                              (I32,), free=0).address)
        return inputs, entries, tensors

    def _advance(self, advance_by):
        if advance_by is None:
            return 0
        common_runtime({**self.pool.cursors, "advance_by": advance_by})
        return operand("advance_by", advance_by, (self.max_rows,), (I32,),
                       free=0).address

    def begin(self, step: int, keys: Any, groups: Groups,
              stream: Optional[int] = None, **rows: Any) -> None:
        """Fills the buffers for the rows of `keys`, [B] of the pool's index
        type; step is above 0 and used once. rows: flush_mask, fresh, seq_len,
        no_flush_past, [B] int32."""
        self._call_on_rows("begin", stream, keys, groups, rows,
                           number("step", step, c_int64))

    def commit(self, step: int, advance_by: Optional[Any] = None,
               stream: Optional[int] = None) -> None:
        """Moves the cursors, by one token or by advance_by, [max_rows] int32."""
        self._call("commit", stream, number("step", step, c_int64),
                   self._advance(advance_by), reads=advance_by)

    def begin_captured(self, keys: Any, groups: Groups,
                       stream: Optional[int] = None, **rows: Any) -> None:
        """begin for a graph; set_step says which step and how many rows. Keeps
        the tensors as if under capture, also where it is not."""
        self._call_on_rows("begin_captured", stream, keys, groups, rows)

    def commit_captured(self, advance_by: Optional[Any] = None,
                        stream: Optional[int] = None) -> None:
        """commit for a graph; keeps advance_by like begin_captured."""
        self._call("commit_captured", stream, self._advance(advance_by),
                   reads=advance_by)

    def set_step(self, step: int, live: int,
                 stream: Optional[int] = None) -> None:
        """Before each replay of a graph, on its stream."""
        self._call("set_step", stream, number("step", step, c_int64),
                   number("live", live, c_int32))

    def materialize(self, keys: Any, groups: Groups,
                    stream: Optional[int] = None, **rows: Any) -> None:
        """dst = checkpoint plus ring of state, in all layers; rows may have
        drop_newest. Like the next three it makes a step that has begun void."""
        self._call_on_rows("materialize", stream, keys, groups, rows)

    def copy(self, keys: Any, groups: Groups,
             stream: Optional[int] = None) -> None:
        """The same for empty rings; a row with another is reported."""
        self._call_on_rows("copy", stream, keys, groups, {})

    def prepare_extend(self, keys: Any, groups: Groups,
                       stream: Optional[int] = None) -> None:
        """Before rows run anything but replay decode: folds their rings."""
        self._call_on_rows("prepare_extend", stream, keys, groups, {})

    def require_flushed(self, keys: Any, groups: Groups,
                        stream: Optional[int] = None) -> None:
        """For debugging: reports rows whose ring is not empty."""
        self._call_on_rows("require_flushed", stream, keys, groups, {})

    def rows(self, group: int = 0, begin: int = 0,
             count: Optional[int] = None) -> Dict[str, Tensor]:
        """The buffers of `count` rows from `begin` on, by default all: keyword
        arguments of fused_recurrent_linear_replayssm_decode."""
        group = number("group", group, c_int32)
        begin = number("begin", begin, c_int32)
        count = (self.max_rows - begin if count is None else
                 number("count", count, c_int32))
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
def plan_step(plan: StepPlan, step: int, keys: Any, groups: Groups,
              advance_by: Optional[Any] = None, stream: Optional[int] = None,
              **rows: Any) -> Iterator[StepPlan]:
    """StepPlan.begin, what is launched inside, StepPlan.commit:

        with plan_step(plan, 7, keys, {"state": slots}) as plan:
            fused_recurrent_linear_replayssm_decode(..., **plan.rows())

    An exception inside leaves the cursors as they were. Raises as StepPlan does.
    """
    instance("plan", plan, StepPlan).begin(step, keys, groups, stream, **rows)
    yield plan
    plan.commit(step, advance_by, stream)
