"""Mamba-2's decode operator, with the signature that vLLM and mamba_ssm have."""

from __future__ import annotations

from typing import Any, Optional

from ._check import truth
from ._launch import operator
from .decode import PACKED, REPLAY, decode_launch
from .state import ErrorWord

#: torch's, or any with data_ptr(), stride(), shape, dtype and device.
Tensor = Any


#: What the decode operators call these.
_SAID = {"q": "C", "k": "B", "v": "x", "a": "dt", "A_log": "A",
         "initial_state": "state", "ssm_state_indices": "state_batch_indices",
         "dst_indices": "dst_state_batch_indices", "skip": "D", "out_gate": "z"}


class _View:
    """A tensor without its last dimensions, along which it repeats, or with one of
    size 1 more: what torch's expand() and unsqueeze() undo or do."""

    def __init__(self, tensor, shape, stride):
        self._tensor, self.shape, self._stride = tensor, shape, stride
        self.dtype, self.device = tensor.dtype, tensor.device

    def data_ptr(self):
        return self._tensor.data_ptr()

    def stride(self):
        return self._stride

    def untyped_storage(self):
        return self._tensor.untyped_storage()


def _parts(name, tensor):
    """Shape and strides of a tensor."""
    try:
        return tuple(tensor.shape), tuple(tensor.stride())
    except AttributeError:
        raise ValueError(f"{name}: {tensor!r} is not allowed; it must be a "
                         "tensor") from None


def _repeats(shape, strides, kept):
    return all(size == 1 or stride == 0
               for size, stride in zip(shape[kept:], strides[kept:]))


def _tied(name, tensor, kept):
    """The first `kept` dimensions of a tensor that repeats along the others, as
    all of Mamba-2 do and those of Mamba-1 do not."""
    shape, strides = _parts(name, tensor)
    if len(shape) < kept:
        raise ValueError(f"{name}: shape {shape} is not allowed; it must have "
                         f"{kept} dimensions or more")
    if not _repeats(shape, strides, kept):
        raise ValueError(
            f"{name}: strides {strides} of shape {shape} are not allowed; it must "
            "be one number for each head, expanded, as Mamba-2 has it")
    return _View(tensor, shape[:kept], strides[:kept])


def _skip_of(D, HV, V):
    """D, and the word of the skip that it stands for."""
    shape, strides = _parts("D", D)
    if len(shape) == 2 and not _repeats(shape, strides, 1):
        return D, "channel"
    return _tied("D", D, 1), "head"


@operator
def selective_state_update(
        state: Tensor, x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor,
        D: Optional[Tensor] = None, z: Optional[Tensor] = None,
        dt_bias: Optional[Tensor] = None, dt_softplus: bool = False,
        state_batch_indices: Optional[Tensor] = None,
        dst_state_batch_indices: Optional[Tensor] = None, pad_slot_id: int = -1,
        out: Optional[Tensor] = None, *, d_cache: Optional[Tensor] = None,
        k_cache: Optional[Tensor] = None, g_cache: Optional[Tensor] = None,
        write_pos: Optional[Tensor] = None, force_flush: Optional[Tensor] = None,
        ring_indices: Optional[Tensor] = None,
        track_indices: Optional[Tensor] = None,
        error_word: Optional[ErrorWord] = None, layer: int = 0,
        null_slot: Optional[str] = None, batch_invariant: bool = False,
        check_rows: bool = False) -> Tensor:
    """One token of each row of Mamba-2: vLLM's operator, and that of mamba_ssm.

    Without rings each token is stored in the state, as there. With d_cache,
    k_cache, g_cache and write_pos it goes to the ring (k_cache has a key for each
    group), and the state is read alone but where a row flushes.

        state [slots, heads, V, d_state], read and written
        x, z [rows, heads, V]; B, C [rows, groups, d_state], of x's type
        dt [rows, heads(, V)], A [heads(, V, d_state)], dt_bias [heads(, V)]: along
        the dimensions in brackets they repeat (stride 0), as Mamba-2's do
        D [heads(, V)], of dt_bias's type; it may have a number for each channel
        state_batch_indices [rows], int32 or int64; out [rows, heads, V], by
        default new of x's type

    dt_softplus must be true, dt_bias and state_batch_indices given, and a slot of
    pad_slot_id = -1 (any below 0; `null_slot` as for the others) is padding. The
    keywords after `out` are those of fused_recurrent_linear_replayssm_decode.
    Returns out.

    Raises ValueError for an argument that is not allowed, Error for the rest.
    """
    if not truth("dt_softplus", dt_softplus):
        raise ValueError("dt_softplus: False is not allowed; a step is the "
                         "softplus of dt + dt_bias here")
    for name, value in (("dt_bias", dt_bias),
                        ("state_batch_indices", state_batch_indices)):
        if value is None:
            raise ValueError(f"{name}: None is not allowed; it must be a tensor")
    if pad_slot_id >= 0:
        raise ValueError(f"pad_slot_id: {pad_slot_id} is not allowed; slots below "
                         "0 are padding, and 0 with null_slot='non-positive'")
    rings = dict(d_cache=d_cache, k_cache=k_cache, g_cache=g_cache,
                 write_pos=write_pos)
    missing = [name for name, tensor in rings.items() if tensor is None]
    if missing and len(missing) < len(rings):
        raise ValueError(f"{missing[0]}: None is not allowed with a ring, which "
                         f"is {', '.join(rings)}")
    if missing:
        rings = {}
        for name, tensor in (("force_flush", force_flush),
                             ("ring_indices", ring_indices)):
            if tensor is not None:
                raise ValueError(f"{name}: not allowed without a ring; it must be "
                                 "None")
    else:
        rings.update(force_flush=force_flush, ring_indices=ring_indices)
    shape, strides = _parts("x", x)
    if len(shape) != 3:
        raise ValueError(f"x: shape {shape} is not allowed; it must be (rows, "
                         "heads, V)")
    rows, HV, V = shape
    if out is None:
        if not hasattr(x, "new_empty"):
            raise ValueError("out: None is not allowed for tensors that are not "
                             "torch's")
        out = x.new_empty(shape)
    out_shape, out_strides = _parts("out", out)
    if out_shape != shape:
        raise ValueError(f"out: shape {out_shape} is not allowed; it must be "
                         f"{shape}")
    tensors = dict(
        q=C, k=B, v=x, a=_tied("dt", dt, 2), A_log=_tied("A", A, 1),
        dt_bias=_tied("dt_bias", dt_bias, 1), initial_state=state,
        out=_View(out, (rows, 1, HV, V),
                  (out_strides[0], HV * V, *out_strides[1:])),
        ssm_state_indices=state_batch_indices,
        dst_indices=dst_state_batch_indices, track_indices=track_indices,
        out_gate=z, **rings)
    skip = "none"
    if D is not None:
        tensors["skip"], skip = _skip_of(D, HV, V)
    return decode_launch(
        REPLAY if rings else PACKED, "head", tensors, result=out, scale=1.0,
        error_word=error_word, layer=layer, null_slot=null_slot,
        batch_invariant=batch_invariant, check_rows=check_rows, gate="rate",
        beta="step", rule="additive", skip=skip, said=_SAID)
