"""SGLang with the operators of replayjit.

    import replayjit.sglang
    replayjit.sglang.install()      # in each process of the engine, before captures
"""

from ._swap import Installed, for_engines, swap
from . import decode

#: Where its versions have the decode operators.
_FOLDERS = ("sglang.kernels.ops.attention.fla",
            "sglang.srt.layers.attention.fla")

_NAMES = (
    ("fused_recurrent_linear_replayssm", "fused_recurrent_linear_replayssm_decode"),
    ("fused_recurrent_linear_replayssm", "fused_recurrent_gdn_replayssm_decode"),
    ("fused_recurrent", "fused_recurrent_gated_delta_rule_packed_decode"),
    ("fused_recurrent", "fused_recurrent_kda_packed_decode"),
)


def install() -> Installed:
    """Puts replayjit's decode operators in the place of SGLang's Triton ones,
    also where they were imported by name. Its undo() puts those back.

    Raises Error where none is found or one has other arguments.
    """
    return swap("sglang", [
        (f"{folder}.{module}", name, getattr(decode, name), for_engines(name))
        for folder in _FOLDERS for module, name in _NAMES])
