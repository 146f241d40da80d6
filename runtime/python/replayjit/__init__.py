"""The decode kernels of linear-attention models, from Python.

    from replayjit import fused_recurrent_linear_replayssm_decode

takes torch tensors on a CUDA device, or any with torch's data_ptr(), stride(),
shape, dtype and device. Nothing here imports torch. README.md has the rest.
"""

from ._launch import Launch, bind
from ._library import Error, InvalidArgument
from .decode import (fused_recurrent_gated_delta_rule_packed_decode,
                     fused_recurrent_kda_packed_decode,
                     fused_recurrent_linear_replayssm_decode,
                     fused_recurrent_linear_replayssm_verify)
from .plan import StatePool, StepPlan, plan_step
from .runtime import Kernel, Runtime, Tensor, prepare_all
from .sizing import pool_bytes, recommend, slot_bytes, states_for_budget
from .spec import Spec, Support, supports
from .state import ErrorWord, LayerTable, Report, materialize, poll_errors

__all__ = [
    "Error", "ErrorWord", "InvalidArgument", "Kernel", "Launch", "LayerTable",
    "Report", "Runtime", "Spec", "StatePool", "StepPlan", "Support", "Tensor",
    "bind",
    "fused_recurrent_gated_delta_rule_packed_decode",
    "fused_recurrent_kda_packed_decode",
    "fused_recurrent_linear_replayssm_decode",
    "fused_recurrent_linear_replayssm_verify", "materialize", "poll_errors",
    "plan_step", "pool_bytes", "prepare_all", "recommend", "slot_bytes",
    "states_for_budget", "supports",
]
