"""States between steps: folding rings, and what kernels report."""

from __future__ import annotations

import collections
import ctypes
from ctypes import byref, sizeof
from typing import Any, Optional, Sequence

from . import _abi
from ._check import instance, items, refused, truth
from ._defaults import null_slot_of
from ._launch import Launch, operator
from ._library import check, library
from ._operand import F32, FLOATS, I32, INDICES, common_runtime, operand
from .runtime import Runtime, owned_memory
from .spec import format_of_rings

_MATERIALIZE = 2

#: What the operands of materialize say of a spec.
_Facts = collections.namedtuple("_Facts", """
    family is_kda num_key_heads num_value_heads head_dim_k head_dim_v ring_depth
    state_type ring_type index_type gate ring_format is_circular
    has_ring_indices has_mask null_slot alignment""")

Report = collections.namedtuple("Report", "count kind row layer value")
Report.__doc__ = """What kernels found wrong: how many rows, and of the first the
kind (a sentence's subject), its row, its layer, and the value."""

_KINDS = ("", "state slot", "write_pos", "ring slot", "dst slot", "track slot",
          "ring_base", "cursor key", "not flushed", "flushed too far",
          "advance_by", "step", "overflow")


def report(word):
    """The Report of a replayjit_error_word_t, or None."""
    if word.kind == 0:
        return None
    kind = _KINDS[word.kind] if word.kind < len(_KINDS) else str(word.kind)
    return Report(word.count, kind, word.row, word.layer, word.value)


class ErrorWord:
    """Where kernels report bad rows, which they treat as padding: host memory
    that the device writes. Hand it to operators as error_word. Raises Error where
    there is no memory."""

    def __init__(self, runtime: Runtime):
        instance("runtime", runtime, Runtime)
        calls, host = library(), ctypes.c_void_p()
        address = ctypes.c_uint64()
        check(calls.replayjit_device_allocate_mapped(
            runtime._device, sizeof(_abi.ErrorWord), b"error word", byref(host),
            byref(address)))
        self._runtime, self.address = runtime, address.value
        self._word = _abi.ErrorWord.from_address(host.value)
        owned_memory(self, runtime._device, calls.replayjit_device_free_mapped,
                     host.value, address.value)
        self.clear()

    def __repr__(self):
        return f"<replayjit.ErrorWord: {self.poll()}>"

    def poll(self) -> Optional[Report]:
        """A Report of what has arrived, or None. Waits for nothing: what still
        runs is not in it."""
        return report(self._word)

    def clear(self) -> None:
        """While no kernel runs that has it."""
        ctypes.memset(byref(self._word), 0, sizeof(self._word))


def address_of(error_word):
    """Where kernels report; 0 where there is None."""
    if error_word is None:
        return 0
    return instance("error_word", error_word, ErrorWord).address


def poll_errors(source: Any) -> Optional[Report]:
    """What an ErrorWord or a StatePool has heard: its poll(). Raises ValueError for
    anything else."""
    if not hasattr(source, "poll"):
        raise refused("source", source, "an ErrorWord or a StatePool")
    return source.poll()


class LayerTable:
    """The states and rings of layers of one shape, for `materialize`: a list of
    (initial_state, d_cache, k_cache, g_cache), shapes as in
    fused_recurrent_linear_replayssm_decode. Keeps the tensors. Raises ValueError
    for tensors that are not allowed or not of one shape."""

    def __init__(self, layers: Sequence[Sequence[Any]]):
        self.tensors = [tuple(items(f"layers[{at}]", layer, 4))
                        for at, layer in enumerate(items("layers", layers))]
        if not self.tensors:
            raise ValueError("layers: an empty list is not allowed")
        self.runtime = common_runtime(
            {f"layers[{at}].{name}": tensor
             for at, layer in enumerate(self.tensors)
             for name, tensor in zip(("initial_state", "d_cache", "k_cache",
                                      "g_cache"), layer)})
        self.facts, table, bits = None, [], 0
        for at, layer in enumerate(self.tensors):
            facts, row, more = self._look_at(f"layers[{at}]", *layer)
            if self.facts not in (None, facts):
                raise ValueError(f"layers[{at}]: shapes or types other than "
                                 "those of layers[0] are not allowed")
            self.facts, bits = facts, bits | more
            table.append(row)
        self.alignment = 0 if bits % 16 else 16
        array = (_abi.Layer * len(table))(*table)
        self.rows = array
        self._memory = self.runtime.empty("int64", len(table), 8,
                                          name="layers").write(array)
        self.address, self.count = self._memory.data_ptr(), len(table)

    def __repr__(self):
        return f"<replayjit.LayerTable of {self.count} layers>"

    @staticmethod
    def _look_at(name, state, d_cache, k_cache, g_cache):
        s = operand(name + ".initial_state", state, (None,) * 4, FLOATS)
        slots, HV, V, K = s.shape
        d = operand(name + ".d_cache", d_cache, (None, HV, None, V), FLOATS)
        ring_slots, _, L, _ = d.shape
        k = operand(name + ".k_cache", k_cache, (ring_slots, None, L, K),
                    (d.type,))
        is_kda = len(g_cache.shape) == 4
        g = operand(name + ".g_cache", g_cache,
                    (ring_slots, HV, L) + ((K,) if is_kda else ()), (F32,))
        wide = (s, d, k, g) if is_kda else (s, d, k)
        bits = 0
        for one in wide:
            bits |= one.alignment_bits
        row = _abi.Layer(s.address, d.address, k.address, g.address, s.pitch,
                         d.pitch, k.pitch, g.pitch)
        facts = (int(is_kda), k.shape[1], HV, K, V, L, s.type, d.type, slots,
                 ring_slots)
        return facts, row, bits


@operator
def materialize(layers: LayerTable, src_indices: Any, dst_indices: Any,
                write_pos: Any, *, mask: Optional[Any] = None,
                ring_indices: Optional[Any] = None,
                cache_base: Optional[Any] = None,
                prefix_gate_cache: bool = False,
                predecayed_k_cache: bool = False,
                null_slot: Optional[str] = None,
                error_word: Optional[ErrorWord] = None,
                check_rows: bool = False) -> None:
    """Stores checkpoint plus ring of slot src as the state of slot dst, in all
    layers of a LayerTable, for each of B rows: snapshots, forks, donation,
    backup. Where src = dst the caller sets the cursor to 0 afterwards.

    src_indices, dst_indices, ring_indices (of src, any number where write_pos
    is 0; default: src_indices): [B], int32 or int64. write_pos, mask (0 skips a
    row), cache_base (circular rings): [B] int32. null_slot, error_word and
    check_rows are as in fused_recurrent_linear_replayssm_decode.

    Raises ValueError for an argument that is not allowed, Error for the rest.
    """
    instance("layers", layers, LayerTable)
    tensors = dict(src_indices=src_indices, dst_indices=dst_indices,
                   write_pos=write_pos)
    tensors.update((name, tensor) for name, tensor in dict(
        mask=mask, ring_indices=ring_indices, cache_base=cache_base).items()
        if tensor is not None)
    if common_runtime(tensors) is not layers.runtime:
        raise ValueError("src_indices: another device than that of the layers is "
                         "not allowed")
    src = operand("src_indices", src_indices, (None,), INDICES)
    B = src.shape[0]
    index = {name: operand(name, tensors[name], (B,), (src.type,))
             for name in ("dst_indices", "ring_indices") if name in tensors}
    number = {name: operand(name, tensors[name], (B,), (I32,), free=0).address
              for name in ("write_pos", "mask", "cache_base") if name in tensors}
    is_kda, H, HV, K, V, L, state_type, ring_type, slots, ring_slots = \
        layers.facts
    if ring_indices is None and ring_slots < slots:
        raise ValueError(f"ring_indices: they must be there, since there are "
                         f"{slots} states and {ring_slots} rings")
    ring_format = format_of_rings(prefix_gate_cache, predecayed_k_cache)
    facts = _Facts(
        family=_MATERIALIZE, is_kda=is_kda, num_key_heads=H, num_value_heads=HV,
        head_dim_k=K, head_dim_v=V, ring_depth=L, state_type=state_type,
        ring_type=ring_type, index_type=src.type, gate=int(ring_format > 0),
        ring_format=ring_format, is_circular=int(cache_base is not None),
        has_ring_indices=int(ring_indices is not None),
        has_mask=int(mask is not None),
        null_slot=null_slot_of(null_slot), alignment=layers.alignment)
    args = _abi.MaterializeArgs(
        struct_size=sizeof(_abi.MaterializeArgs), layers=layers.address,
        src_indices=src.address, src_index_stride=src.pitch, dst_index_stride=1,
        ring_index_stride=1, batch=B, num_layers=layers.count, slots=slots,
        ring_slots=ring_slots, write_pos=number["write_pos"],
        mask=number.get("mask", 0), ring_base=number.get("cache_base", 0),
        error_word=address_of(error_word))
    for name, one in index.items():
        setattr(args, name, one.address)
        setattr(args, name[:-len("indices")] + "index_stride", one.pitch)
    return Launch(layers.runtime, facts, 0, args, (layers, tensors, error_word),
                  None, truth("check_rows", check_rows))
