"""The decode operators as operators of torch.library: torch.ops.replayjit.

torch.compile keeps each whole, and knows from its schema what it writes; a CUDA
graph captures it as it is. Importing this module needs torch 2.4 or later.
"""

from __future__ import annotations

import torch

from . import decode

_LIBRARY = torch.library.Library("replayjit", "DEF")

_INPUTS = ("Tensor[] qkv, Tensor a, Tensor b, Tensor? A_log, Tensor? dt_bias, "
           "float scale, Tensor(s!) initial_state")
_OPTIONS = ("Tensor? dst_indices=None, Tensor? track_indices=None, "
            "str? null_slot=None, bool beta_round=False, "
            'str readout="output-only", bool batch_invariant=False, '
            'bool log_decay=False, str beta="sigmoid"')

#: Of each operator its arguments; that it returns nothing means that it writes
#: into its arguments alone.
SCHEMAS = {
    "fused_recurrent_linear_replayssm_decode":
        f"{_INPUTS}, Tensor(d!) d_cache, Tensor(k!) k_cache, Tensor(g!) g_cache, "
        "Tensor(o!) out, Tensor ssm_state_indices, Tensor write_pos, "
        "Tensor? force_flush=None, bool use_qk_l2norm_in_kernel=False, "
        "bool is_kda=False, *, Tensor? cache_base=None, float? lower_bound=None, "
        "bool circular_replay=False, bool prefix_gate_cache=False, "
        "bool predecayed_k_cache=False, Tensor? ring_indices=None, "
        "bool unit_keys=False, " + _OPTIONS,
    "fused_recurrent_gated_delta_rule_packed_decode":
        f"{_INPUTS}, Tensor(o!) out, Tensor ssm_state_indices, "
        "bool use_qk_l2norm_in_kernel=False, *, float? lower_bound=None, "
        + _OPTIONS,
    "fused_recurrent_kda_packed_decode":
        f"{_INPUTS}, Tensor(o!) out, Tensor ssm_state_indices, "
        "bool use_qk_l2norm_in_kernel=False, float? lower_bound=None, *, "
        + _OPTIONS,
}


def _define(name, schema):
    """Makes torch.ops.replayjit.NAME of the operator of that name."""
    operator = getattr(decode, name)

    def launch(qkv, *arguments, **options):
        operator(qkv[0] if len(qkv) == 1 else tuple(qkv), *arguments, **options)

    def fake(*arguments, **options):
        """Nothing is made: the outputs are the caller's."""

    _LIBRARY.define(f"{name}({schema}) -> ()")
    for kind in ("CPU", "CUDA"):
        _LIBRARY.impl(name, launch, kind)
    torch.library.register_fake(f"replayjit::{name}", fake, lib=_LIBRARY)


for _name, _schema in SCHEMAS.items():
    _define(_name, _schema)


def _listed(mixed_qkv):
    return (list(mixed_qkv) if isinstance(mixed_qkv, (tuple, list))
            else [mixed_qkv])


def fused_recurrent_linear_replayssm_decode(
        mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, d_cache, k_cache,
        g_cache, out, ssm_state_indices, write_pos, force_flush=None,
        *positional, **options):
    """replayjit's operator of this name; block_v, num_warps, num_stages and nk are
    dropped, error_word, layer, check_rows and programmatic_launch not taken."""
    names = ["use_qk_l2norm_in_kernel", "is_kda", "block_v", "num_warps",
             "num_stages", "nk", "cache_base", "circular_replay",
             "prefix_gate_cache", "predecayed_k_cache"]
    if positional and not isinstance(positional[0], int):
        names.insert(0, "lower_bound")  # the order of SGLang #37739
    options = {**dict(zip(names, positional)), **options}
    for name in ("block_v", "num_warps", "num_stages", "nk"):
        options.pop(name, None)
    torch.ops.replayjit.fused_recurrent_linear_replayssm_decode(
        _listed(mixed_qkv), a, b, A_log, dt_bias, scale, initial_state, d_cache,
        k_cache, g_cache, out, ssm_state_indices, write_pos, force_flush,
        **options)
    return out, initial_state


#: The name that SGLang had before the operator took both gates.
fused_recurrent_gdn_replayssm_decode = fused_recurrent_linear_replayssm_decode


def fused_recurrent_gated_delta_rule_packed_decode(
        mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, out,
        ssm_state_indices, use_qk_l2norm_in_kernel=False, **options):
    """replayjit's operator of this name."""
    torch.ops.replayjit.fused_recurrent_gated_delta_rule_packed_decode(
        _listed(mixed_qkv), a, b, A_log, dt_bias, scale, initial_state, out,
        ssm_state_indices, use_qk_l2norm_in_kernel, **options)
    return out, initial_state


def fused_recurrent_kda_packed_decode(
        mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, out,
        ssm_state_indices, use_qk_l2norm_in_kernel=False, lower_bound=None,
        **options):
    """replayjit's operator of this name."""
    torch.ops.replayjit.fused_recurrent_kda_packed_decode(
        _listed(mixed_qkv), a, b, A_log, dt_bias, scale, initial_state, out,
        ssm_state_indices, use_qk_l2norm_in_kernel, lower_bound, **options)
    return out, initial_state
