"""The decode kernels of linear-attention models, from Python.

    from replayjit import fused_recurrent_linear_replayssm_decode

takes torch tensors on a CUDA device, or any with torch's data_ptr(), stride(),
shape, dtype and device. Nothing here imports torch. README.md has the rest.
"""

from ._defaults import Defaults, defaults
from ._launch import Launch, bind
from ._library import Error, InvalidArgument, library
from .decode import (fused_recurrent_gated_delta_rule_packed_decode,
                     fused_recurrent_gdn_replayssm_decode,
                     fused_recurrent_kda_packed_decode,
                     fused_recurrent_linear_replayssm_decode,
                     verify)
from .mamba import selective_state_update
from .plan import StatePool, StepPlan, plan_step
from .runtime import Kernel, Runtime, Tensor, prepare_all
from .sizing import (advance, pool_bytes, recommend, should_flush, slot_bytes,
                     states_for_budget, tokens_to_drop)
from .spec import Spec, Support, supports, targets
from .state import ErrorWord, LayerTable, Report, materialize, poll_errors

__all__ = [
    "Defaults", "Error", "ErrorWord", "InvalidArgument", "Kernel", "Launch", "LayerTable",
    "Report", "Runtime", "Spec", "StatePool", "StepPlan", "Support", "Tensor",
    "advance", "bind", "defaults",
    "fused_recurrent_gated_delta_rule_packed_decode",
    "fused_recurrent_gdn_replayssm_decode",
    "fused_recurrent_kda_packed_decode",
    "fused_recurrent_linear_replayssm_decode", "materialize", "poll_errors",
    "plan_step", "pool_bytes", "prepare_all", "recommend", "selective_state_update",
    "should_flush",
    "slot_bytes", "states_for_budget", "supports", "targets",
    "tokens_to_drop", "verify",
]


def __getattr__(name):
    """`__version__`, which the library knows."""
    if name == "__version__":
        return library().replayjit_version().decode()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
