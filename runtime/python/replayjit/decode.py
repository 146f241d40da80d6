"""The decode operators, with SGLang's signatures and a few keywords more."""

from __future__ import annotations

import collections
import functools
from ctypes import c_float, c_int32, sizeof
from typing import Any, Optional, Tuple, Union

from . import _abi
from ._check import items, number, truth
from ._defaults import null_slot_of
from ._host import HostMemory
from ._launch import Launch, operator
from ._operand import F32, FLOATS, I32, INDICES, common_runtime, operand
from .runtime import is_on_host
from .spec import choice, format_of_rings
from .state import ErrorWord, address_of

#: torch's, or any with data_ptr(), stride(), shape, dtype and device.
Tensor = Any

REPLAY, PACKED, VERIFY = 0, 1, 5

#: The shape of a row of a, and of dt_bias, from HV and K.
_GATES = {
    "head": lambda HV, K: (HV,),
    "channel": lambda HV, K: (HV, K),
    "flat channel": lambda HV, K: (HV * K,),
}

#: Where an operand goes in DecodeArgs, if that has another name for it.
_FIELDS = {
    "mixed_qkv": "q", "A_log": "a_log", "initial_state": "state",
    "d_cache": "d_ring", "k_cache": "k_ring", "g_cache": "g_ring",
    "ssm_state_indices": "state_indices", "cache_base": "ring_base",
    "num_tokens": "token_counts", "query_start_loc": "token_offsets",
}

#: What the operands say of a spec.
_Facts = collections.namedtuple("_Facts", """
    family is_kda num_key_heads num_value_heads head_dim_k head_dim_v ring_depth
    act_type gate_type beta_type param_type bias_type out_type state_type
    ring_type index_type qk_l2_norm gate beta_round has_force_flush ring_format
    is_circular has_separate_qkv has_ring_indices has_dst_indices
    has_track_indices null_slot readout alignment beta has_unit_keys
    num_tokens token_rows programmatic_launch rule skip has_out_gate
    has_step_limits""")

#: Operands that a step writes.
_WRITTEN = ("initial_state", "d_cache", "k_cache", "g_cache", "out")

#: Operands that may be None.
_OPTIONAL = ("force_flush", "cache_base", "ring_indices", "dst_indices",
             "track_indices", "num_tokens", "query_start_loc", "out_gate")


@functools.lru_cache(maxsize=None)
def _field_of(name):
    """Of an operand: the field of its address, that of its pitch (None: it has
    none), and whether the alignment of a spec is about it: of GDN's, of KDA's."""
    argument = _abi.DECODE_ARGUMENTS[_FIELDS.get(name, name)]
    pitch = argument.stride and argument.stride.decode()
    return (argument.name.decode(), pitch,
            (argument.is_wide == 1, argument.is_wide > 0))


def _look_at_state(look, tensor, out):
    """The operand of a state; says so where that is [.., K, V]."""
    try:
        shape, strides, V = tensor.shape, tensor.stride(), out.shape[-1]
    except (AttributeError, IndexError):
        pass  # Not tensors, which the next line or another operand says.
    else:
        wanted = "it must be [slots, HV, V, K]"
        if len(shape) == 4 and shape[3] == V != shape[2]:
            raise ValueError(f"initial_state: shape {tuple(shape)} is that of "
                             f"states [slots, HV, K, V]; {wanted}")
        if len(shape) == 4 and strides[2] == 1 != strides[3] and shape[3] > 1:
            raise ValueError(f"initial_state: strides {tuple(strides)} are those "
                             f"of states [slots, HV, K, V]; {wanted} in memory")
    return look("initial_state", tensor, (None,) * 4, FLOATS)


def _look_at_inputs(look, tensors, gates, max_spec_len, found):
    """Fills in `found` for all but the rings; returns H. A row of a has the
    shape of _GATES[gates]; `look` makes an operand. Each row of the batch has
    `max_spec_len` of the tokens, unless there are offsets."""
    state = found["initial_state"] = _look_at_state(
        look, tensors["initial_state"], tensors["out"])
    _, HV, V, K = state.shape
    if "q" in tensors:
        q = found["q"] = look("q", tensors["q"], (None, None, K), FLOATS)
        tokens, H, _ = q.shape
        found["k"] = look("k", tensors["k"], (tokens, H, K), (q.type,))
        found["v"] = look("v", tensors["v"], (tokens, HV, V), (q.type,))
    else:
        q = found["mixed_qkv"] = look("mixed_qkv", tensors["mixed_qkv"],
                                      (None, None), FLOATS)
        tokens, columns = q.shape
        H, rest = divmod(columns - HV * V, 2 * K)
        if H < 1 or rest:
            raise ValueError(
                f"mixed_qkv: {columns} columns are not allowed; with HV = {HV}, "
                f"V = {V} and K = {K} there must be 2 * H * {K} + {HV * V}")
    row = _GATES[gates](HV, K)
    found["a"] = look("a", tensors["a"], (tokens, *row), FLOATS)
    if "b" in tensors:
        found["b"] = look("b", tensors["b"], (tokens, HV), FLOATS)
    if "A_log" in tensors:
        found["A_log"] = look("A_log", tensors["A_log"], (HV,), FLOATS, free=0)
        found["dt_bias"] = look("dt_bias", tensors["dt_bias"], row, FLOATS,
                                free=0)
    if "skip" in tensors:
        found["skip"] = look("skip", tensors["skip"],
                             (HV, V)[:len(tensors["skip"].shape)],
                             (found["dt_bias"].type,), free=0)
    if "out_gate" in tensors:
        found["out_gate"] = look("out_gate", tensors["out_gate"],
                                 (tokens, HV, V), (q.type,))
    found["out"] = look("out", tensors["out"], (tokens, 1, HV, V), FLOATS)
    index = found["ssm_state_indices"] = look(
        "ssm_state_indices", tensors["ssm_state_indices"],
        (tokens if max_spec_len == 1 and "query_start_loc" not in tensors
         else None,), INDICES)
    B, = index.shape
    if "query_start_loc" in tensors:
        found["query_start_loc"] = look(
            "query_start_loc", tensors["query_start_loc"], (B + 1,), (I32,), free=0)
    elif tokens != B * max_spec_len:
        raise ValueError(
            f"out: {tokens} tokens are not allowed; {B} rows of max_spec_len = "
            f"{max_spec_len} have {B * max_spec_len}, or query_start_loc says which")
    for name in ("ring_indices", "dst_indices", "track_indices"):
        if name in tensors:
            found[name] = look(name, tensors[name], (B,), (index.type,))
    for name in ("write_pos", "force_flush", "cache_base", "num_tokens"):
        if name in tensors:
            found[name] = look(name, tensors[name], (B,), (I32,), free=0)
    return H


def _look_at_rings(look, tensors, is_kda, H, found):
    """Fills in `found` for the rings; returns L."""
    states, HV, V, K = found["initial_state"].shape
    d = found["d_cache"] = look("d_cache", tensors["d_cache"],
                                (None, HV, None, V), FLOATS)
    slots, _, L, _ = d.shape
    if slots < states and "ring_indices" not in tensors:
        raise ValueError(f"d_cache: {slots} slots are not allowed without "
                         f"ring_indices; there must be {states}, as many as of "
                         "initial_state, or more")
    found["k_cache"] = look("k_cache", tensors["k_cache"], (slots, H, L, K),
                            (d.type,))
    found["g_cache"] = look("g_cache", tensors["g_cache"],
                            (slots, HV, L) + ((K,) if is_kda else ()), (F32,))
    return L


def _gate_of(tensors, lower_bound, log_decay):
    """The word of the gate; drops the operands that it does not have."""
    if not truth("log_decay", log_decay):
        return "softplus" if lower_bound is None else "lower-bound"
    given = [name for name, value in (("A_log", tensors["A_log"]),
                                      ("dt_bias", tensors["dt_bias"]),
                                      ("lower_bound", lower_bound))
             if value is not None]
    if given:
        raise ValueError(f"{given[0]}: not allowed with log_decay, where a is the "
                         "logarithm of the decay; it must be None")
    del tensors["A_log"], tensors["dt_bias"]
    return "log-decay"


def _decode(family, gates, tensors, scale, use_qk_l2norm_in_kernel, lower_bound,
            ring_format, error_word, layer, null_slot, beta_round, readout,
            batch_invariant, check_rows, log_decay, beta, programmatic_launch,
            unit_keys=False, max_spec_len=1):
    """The Launch of a step of the delta rule with `tensors`, by name."""
    mixed = tensors["mixed_qkv"]
    if isinstance(mixed, (tuple, list)):
        tensors.update(zip("qkv", items("mixed_qkv", mixed, 3)))
        del tensors["mixed_qkv"]
    gate = _gate_of(tensors, lower_bound, log_decay)
    return decode_launch(
        family, gates, tensors, result=(tensors["out"], tensors["initial_state"]),
        scale=scale, error_word=error_word, layer=layer, null_slot=null_slot,
        batch_invariant=batch_invariant, check_rows=check_rows, gate=gate,
        beta=beta, lower_bound=lower_bound,
        qk_l2_norm=truth("use_qk_l2norm_in_kernel", use_qk_l2norm_in_kernel),
        beta_round=truth("beta_round", beta_round), ring_format=ring_format,
        readout=readout, has_unit_keys=truth("unit_keys", unit_keys),
        max_spec_len=max_spec_len, programmatic_launch=programmatic_launch)


def decode_launch(family, gates, tensors, *, result, scale, error_word, layer,
                  null_slot, batch_invariant, check_rows, gate, beta,
                  lower_bound=None, qk_l2_norm=0, beta_round=0, ring_format=0,
                  readout="output-only", has_unit_keys=0, rule="delta",
                  skip="none", max_spec_len=1, programmatic_launch="none",
                  said=None):
    """The Launch of a step, which returns `result`. `tensors` by the names of
    fused_recurrent_linear_replayssm_decode, or q, k and v, skip and out_gate;
    `said` has those of the caller, where they are others."""
    def look(name, *wanted, **how):
        return operand((said or {}).get(name, name), *wanted, **how)

    tensors = {name: tensor for name, tensor in tensors.items()
               if tensor is not None or name not in _OPTIONAL}
    runtime = common_runtime({(said or {}).get(name, name): tensor
                              for name, tensor in tensors.items()}, on_host=True)
    found = {}
    max_spec_len = number("max_spec_len", max_spec_len, c_int32)
    H = _look_at_inputs(look, tensors, gates, max_spec_len, found)
    is_kda = gates != "head"
    L, ring_type = 1, F32
    if family != PACKED:
        L = _look_at_rings(look, tensors, is_kda, H, found)
        ring_type = found["d_cache"].type
    state, index = found["initial_state"], found["ssm_state_indices"]
    slots, HV, V, K = state.shape
    memory, bits = None, 0
    if is_on_host(tensors["out"]):
        memory = HostMemory(runtime, tensors, _WRITTEN)
    for name, one in found.items():
        if memory:
            one.address = memory.address(name, one.address)
        if _field_of(name)[2][is_kda]:
            bits |= one.alignment_bits

    facts = _Facts(
        family=family, is_kda=int(is_kda), num_key_heads=H, num_value_heads=HV,
        head_dim_k=K, head_dim_v=V, ring_depth=L,
        act_type=found["q" if "q" in found else "mixed_qkv"].type,
        gate_type=found["a"].type,
        beta_type=found["b" if "b" in found else "a"].type,
        param_type=found["A_log"].type if "A_log" in found else F32,
        bias_type=found["dt_bias"].type if "dt_bias" in found else F32,
        out_type=found["out"].type, state_type=state.type, ring_type=ring_type,
        index_type=index.type,
        qk_l2_norm=qk_l2_norm, gate=choice("gate", gate), beta_round=beta_round,
        has_force_flush=int("force_flush" in found), ring_format=ring_format,
        is_circular=int("cache_base" in found),
        has_separate_qkv=int("q" in found),
        has_ring_indices=int("ring_indices" in found),
        has_dst_indices=int("dst_indices" in found),
        has_track_indices=int("track_indices" in found),
        null_slot=null_slot_of(null_slot),
        readout=choice("readout", readout), alignment=0 if bits % 16 else 16,
        beta=choice("beta", beta), has_unit_keys=has_unit_keys,
        num_tokens=max_spec_len,
        token_rows=choice("token_rows", "counted" if "num_tokens" in found
                          else "ragged" if "query_start_loc" in found else "full"),
        programmatic_launch=choice("programmatic_launch", programmatic_launch),
        rule=choice("rule", rule), skip=choice("skip", skip),
        has_out_gate=int("out_gate" in found), has_step_limits=0)
    B = number("batch", index.shape[0], c_int32)
    rings = found["d_cache"].shape[0] if family != PACKED else slots
    args = _abi.DecodeArgs(
        struct_size=sizeof(_abi.DecodeArgs), batch=B,
        slots=number("slots", slots, c_int32),
        ring_slots=number("ring_slots", rings, c_int32),
        scale=number("scale", scale, c_float),
        lower_bound=number("lower_bound", -5.0 if lower_bound is None else
                           lower_bound, c_float),
        error_word=address_of(error_word), layer=number("layer", layer, c_int32),
        tokens=number("tokens", found["out"].shape[0], c_int32))
    for name, one in found.items():
        address, pitch, _ = _field_of(name)
        setattr(args, address, one.address)
        if pitch:
            setattr(args, pitch, one.pitch)
    rows = 0 if truth("batch_invariant", batch_invariant) else B
    return Launch(runtime, facts, rows, args, (tensors, error_word),
                  result, truth("check_rows", check_rows), memory,
                  overlaps=facts.programmatic_launch != 0)


#: Where SGLang #37739 has lower_bound, which #28451 does not have.
LOWER_BOUND = 14


def _in_either_order(build):
    """Takes positional arguments in the order of #37739 too: where #28451 has
    use_qk_l2norm_in_kernel, which is true or false, that has lower_bound."""

    @functools.wraps(build)
    def ordered(*args, **kwargs):
        at = LOWER_BOUND
        if len(args) > at and not (isinstance(args[at], int) and
                                   args[at] in (0, 1)):
            if "lower_bound" in kwargs:
                raise TypeError("lower_bound: given twice")
            kwargs["lower_bound"] = args[at]
            args = args[:at] + args[at + 1:]
        return build(*args, **kwargs)

    return ordered


@operator
@_in_either_order
def fused_recurrent_linear_replayssm_decode(
        mixed_qkv: Union[Tensor, Tuple[Tensor, Tensor, Tensor]], a: Tensor,
        b: Tensor, A_log: Tensor, dt_bias: Tensor, scale: float,
        initial_state: Tensor, d_cache: Tensor, k_cache: Tensor, g_cache: Tensor,
        out: Tensor, ssm_state_indices: Tensor, write_pos: Tensor,
        force_flush: Optional[Tensor] = None,
        use_qk_l2norm_in_kernel: bool = False, is_kda: bool = False,
        block_v: Optional[int] = None, num_warps: Optional[int] = 1,
        num_stages: Optional[int] = 3, nk: Optional[int] = 2,
        cache_base: Optional[Tensor] = None, circular_replay: bool = False,
        prefix_gate_cache: bool = False, predecayed_k_cache: bool = False, *,
        lower_bound: Optional[float] = None,
        ring_indices: Optional[Tensor] = None,
        dst_indices: Optional[Tensor] = None,
        track_indices: Optional[Tensor] = None,
        error_word: Optional[ErrorWord] = None, layer: int = 0,
        null_slot: Optional[str] = None, beta_round: bool = False,
        readout: str = "output-only", batch_invariant: bool = False,
        check_rows: bool = False, log_decay: bool = False,
        beta: str = "sigmoid", unit_keys: bool = False,
        programmatic_launch: str = "none") -> Tuple[Tensor, Tensor]:
    """One token of each row from checkpoint and ring: SGLang's operator.

    The positional arguments are those of SGLang #28451 and, where lower_bound
    stands after force_flush, of #37739. block_v, num_warps, num_stages and nk are
    taken and not used: the runtime chooses. Cursors are moved by the caller.

        mixed_qkv [B, 2*H*K + HV*V], or (q [B, H, K], k [B, H, K], v [B, HV, V])
        a [B, HV], KDA [B, HV, K]; b [B, HV]; A_log [HV]; dt_bias as a row of a
        initial_state [slots, HV, V, K], read and written
        d_cache [slots, HV, L, V]; k_cache [slots, H, L, K]
        g_cache [slots, HV, L], KDA [slots, HV, L, K], float32
        out [B, 1, HV, V]
        mixed_qkv, a, b, A_log, dt_bias, initial_state, out and the rings: each of
        float32, bfloat16 or float16, d_cache and k_cache of one type
        ssm_state_indices, ring_indices, dst_indices, track_indices [B], int32 or
        int64: where the checkpoint is read, the ring is, a flush writes, and
        (negative: nowhere) the new state is stored too
        write_pos, force_flush, cache_base [B] int32; cache_base counts with
        circular_replay alone

    Rows and slots may have any stride; what is within one is dense; rings may
    have more slots than states. Tensors of torch on the CPU are copied into the
    emulation and back. Options: error_word and layer, its name for this launch;
    null_slot ("negative" or "non-positive": which index is padding; None: as
    replayjit.defaults says); beta_round; readout ("output-only" or "rebuild");
    batch_invariant (one kernel for all B); log_decay (a is the logarithm of the
    decay, and A_log and dt_bias are None); beta (how it follows from b: "sigmoid",
    "twice-sigmoid", which flash-linear-attention calls allow_neg_eigval, or
    "given"); unit_keys (the caller's word, for predecayed rings without L2 norm,
    that no key is longer than 1); check_rows (for debugging: wait, and
    refuse rows of which two share a slot that one of them writes); stream;
    programmatic_launch ("late" or "early": from sm_90 on it may start before the
    kernel before it on the stream has ended. Until that has, it reads no
    mixed_qkv, a or b; whoever wrote anything else, such as the step of this layer
    before, or a plan, must stand further back, behind a kernel that is an
    ordinary launch or "late". replayjit_launch.h has the whole contract).
    Returns (out, initial_state).

    Raises ValueError for an argument that is not allowed, Error for the rest.
    """
    is_circular = truth("circular_replay", circular_replay)
    if is_circular and cache_base is None:
        raise ValueError("cache_base: None is not allowed with circular_replay")
    return _decode(
        REPLAY, "channel" if truth("is_kda", is_kda) else "head", dict(
            mixed_qkv=mixed_qkv, a=a, b=b, A_log=A_log, dt_bias=dt_bias,
            initial_state=initial_state, d_cache=d_cache, k_cache=k_cache,
            g_cache=g_cache, out=out, ssm_state_indices=ssm_state_indices,
            write_pos=write_pos, force_flush=force_flush,
            cache_base=cache_base if is_circular else None,
            ring_indices=ring_indices, dst_indices=dst_indices,
            track_indices=track_indices),
        scale, use_qk_l2norm_in_kernel, lower_bound,
        format_of_rings(prefix_gate_cache, predecayed_k_cache), error_word, layer,
        null_slot, beta_round, readout, batch_invariant, check_rows, log_decay,
        beta, programmatic_launch, unit_keys)


#: The name that SGLang had before the operator took both gates.
fused_recurrent_gdn_replayssm_decode = fused_recurrent_linear_replayssm_decode


@operator
def verify(
        mixed_qkv: Union[Tensor, Tuple[Tensor, Tensor, Tensor]], a: Tensor,
        b: Tensor, A_log: Tensor, dt_bias: Tensor, initial_state: Tensor,
        d_cache: Tensor, k_cache: Tensor, g_cache: Tensor, out: Tensor,
        ssm_state_indices: Tensor, write_pos: Tensor, cache_base: Tensor,
        max_spec_len: int, scale: Optional[float] = None,
        force_flush: Optional[Tensor] = None,
        use_qk_l2norm_in_kernel: bool = True, is_kda: bool = False, *,
        query_start_loc: Optional[Tensor] = None,
        num_tokens: Optional[Tensor] = None,
        lower_bound: Optional[float] = None, prefix_gate_cache: bool = False,
        predecayed_k_cache: bool = False,
        ring_indices: Optional[Tensor] = None,
        dst_indices: Optional[Tensor] = None,
        error_word: Optional[ErrorWord] = None, layer: int = 0,
        null_slot: Optional[str] = None, beta_round: bool = False,
        readout: str = "output-only", batch_invariant: bool = False,
        check_rows: bool = False, log_decay: bool = False,
        beta: str = "sigmoid", programmatic_launch: str = "none",
        unit_keys: bool = False) -> Tuple[Tensor, Tensor]:
    """The draft tokens of each row against checkpoint and ring, in one launch.

    What is called as in SGLang's gdn_replayssm_spec_decode is what it is there;
    but cursors are those of the rows, [B], one launch does all, and a row folds
    where the rule below says. The rest is as in
    fused_recurrent_linear_replayssm_decode; rings wrap, in all formats.

    mixed_qkv, a, b and out list the tokens of all rows: row r has the
    max_spec_len (T) tokens from r*T on. num_tokens [B] int32, 0..T: so many of
    them; outputs of the others are zeros. query_start_loc [B+1] int32, instead:
    those from one entry to the next, at most T. scale None: K ** -0.5.

    Token t of a row is left behind the ring's rows, at ring row write_pos + t,
    whether or not it will hold; write_pos is at most L-T. Where `n` of them hold,
    the caller sets write_pos to write_pos + n and keeps cache_base. But where
    write_pos > 0, and write_pos + 2T > L or force_flush is not 0, the ring's rows
    are folded into the state first: write_pos becomes n, and cache_base
    (cache_base + write_pos) mod L: what replayjit.advance says.

    Returns (out, initial_state). Raises ValueError for an argument that is not
    allowed, Error for the rest.
    """
    if num_tokens is not None and query_start_loc is not None:
        raise ValueError("num_tokens: it must be None if query_start_loc is "
                         "there")
    if cache_base is None:
        raise ValueError("cache_base: None is not allowed; rings of drafts wrap")
    if scale is None:
        scale = initial_state.shape[-1] ** -0.5
    return _decode(
        VERIFY, "channel" if truth("is_kda", is_kda) else "head", dict(
            mixed_qkv=mixed_qkv, a=a, b=b, A_log=A_log, dt_bias=dt_bias,
            initial_state=initial_state, d_cache=d_cache, k_cache=k_cache,
            g_cache=g_cache, out=out, ssm_state_indices=ssm_state_indices,
            write_pos=write_pos, force_flush=force_flush, cache_base=cache_base,
            ring_indices=ring_indices, dst_indices=dst_indices,
            num_tokens=num_tokens, query_start_loc=query_start_loc),
        scale, use_qk_l2norm_in_kernel, lower_bound,
        format_of_rings(prefix_gate_cache, predecayed_k_cache), error_word, layer,
        null_slot, beta_round, readout, batch_invariant, check_rows, log_decay,
        beta, programmatic_launch, unit_keys, max_spec_len)


@operator
def fused_recurrent_gated_delta_rule_packed_decode(
        mixed_qkv: Union[Tensor, Tuple[Tensor, Tensor, Tensor]], a: Tensor,
        b: Tensor, A_log: Tensor, dt_bias: Tensor, scale: float,
        initial_state: Tensor, out: Tensor, ssm_state_indices: Tensor,
        use_qk_l2norm_in_kernel: bool = False, *,
        lower_bound: Optional[float] = None,
        dst_indices: Optional[Tensor] = None,
        track_indices: Optional[Tensor] = None,
        error_word: Optional[ErrorWord] = None, layer: int = 0,
        null_slot: Optional[str] = None, beta_round: bool = False,
        readout: str = "output-only", batch_invariant: bool = False,
        check_rows: bool = False, log_decay: bool = False,
        beta: str = "sigmoid",
        programmatic_launch: str = "none") -> Tuple[Tensor, Tensor]:
    """One token of each row, its state read and written: the operator of the
    same name, Gated DeltaNet. Arguments, and what it raises, as in
    fused_recurrent_linear_replayssm_decode; dst_indices: where the new state is
    written. Returns (out, initial_state)."""
    return _decode(
        PACKED, "head", dict(
            mixed_qkv=mixed_qkv, a=a, b=b, A_log=A_log, dt_bias=dt_bias,
            initial_state=initial_state, out=out,
            ssm_state_indices=ssm_state_indices, dst_indices=dst_indices,
            track_indices=track_indices),
        scale, use_qk_l2norm_in_kernel, lower_bound, 0, error_word, layer,
        null_slot, beta_round, readout, batch_invariant, check_rows, log_decay,
        beta, programmatic_launch)


@operator
def fused_recurrent_kda_packed_decode(
        mixed_qkv: Union[Tensor, Tuple[Tensor, Tensor, Tensor]], a: Tensor,
        b: Tensor, A_log: Tensor, dt_bias: Tensor, scale: float,
        initial_state: Tensor, out: Tensor, ssm_state_indices: Tensor,
        use_qk_l2norm_in_kernel: bool = False,
        lower_bound: Optional[float] = None, *,
        dst_indices: Optional[Tensor] = None,
        track_indices: Optional[Tensor] = None,
        error_word: Optional[ErrorWord] = None, layer: int = 0,
        null_slot: Optional[str] = None, beta_round: bool = False,
        readout: str = "output-only", batch_invariant: bool = False,
        check_rows: bool = False, log_decay: bool = False,
        beta: str = "sigmoid",
        programmatic_launch: str = "none") -> Tuple[Tensor, Tensor]:
    """The same for Kimi Delta Attention, whose a is [B, HV*K] and dt_bias
    [HV*K] here. What it raises is the same too."""
    return _decode(
        PACKED, "flat channel", dict(
            mixed_qkv=mixed_qkv, a=a, b=b, A_log=A_log, dt_bias=dt_bias,
            initial_state=initial_state, out=out,
            ssm_state_indices=ssm_state_indices, dst_indices=dst_indices,
            track_indices=track_indices),
        scale, use_qk_l2norm_in_kernel, lower_bound, 0, error_word, layer,
        null_slot, beta_round, readout, batch_invariant, check_rows, log_decay,
        beta, programmatic_launch)
