"""vLLM with the operators of replayjit.

    import replayjit.vllm
    replayjit.vllm.install()        # in each worker, before the model is compiled
"""

from ._defaults import defaults
from ._swap import Installed, for_engines, swap
from . import decode

_FOLDER = "vllm.model_executor.layers.fla.ops"


def fused_recurrent_gated_delta_rule_replayssm(
        mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, d_cache, k_cache,
        g_cache, out, ssm_state_indices, write_pos, use_qk_l2norm_in_kernel=False,
        block_v=None, num_warps=None, num_stages=None, nk=None):
    """vLLM's name and order for fused_recurrent_linear_replayssm_decode of Gated
    DeltaNet, in which no row is forced to flush."""
    return for_engines("fused_recurrent_linear_replayssm_decode")(
        mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, d_cache, k_cache,
        g_cache, out, ssm_state_indices, write_pos,
        use_qk_l2norm_in_kernel=use_qk_l2norm_in_kernel)


def install() -> Installed:
    """Puts replayjit's decode operators in the place of vLLM's Triton ones, and
    makes a slot of 0 padding for every call (`replayjit.defaults.null_slot`), as
    it is there. Its undo() puts both back.

    Raises Error where none is found or one has other arguments.
    """
    packed = "fused_recurrent_gated_delta_rule_packed_decode"
    replay = fused_recurrent_gated_delta_rule_replayssm
    installed = swap("vllm", [
        (f"{_FOLDER}.fused_recurrent", packed, getattr(decode, packed),
         for_engines(packed)),
        (f"{_FOLDER}.fused_recurrent_replayssm", replay.__name__, replay, replay)])
    before, defaults.null_slot = defaults.null_slot, "non-positive"
    installed.on_undo(lambda: setattr(defaults, "null_slot", before))
    return installed
