"""The operators can stand in for SGLang's: the same arguments in the same order,
with the same defaults."""

import inspect
import unittest

import replayjit

_PACKED = ("mixed_qkv a b A_log dt_bias scale initial_state out "
           "ssm_state_indices use_qk_l2norm_in_kernel=False")

#: The positional arguments, as SGLang #28451 and its baselines have them; the last
#: four as #37739 has them.
POSITIONAL = {
    "fused_recurrent_linear_replayssm_decode":
        "mixed_qkv a b A_log dt_bias scale initial_state d_cache k_cache g_cache "
        "out ssm_state_indices write_pos force_flush=None "
        "use_qk_l2norm_in_kernel=False is_kda=False block_v=None num_warps=1 "
        "num_stages=3 nk=2 cache_base=None circular_replay=False "
        "prefix_gate_cache=False predecayed_k_cache=False",
    "fused_recurrent_gated_delta_rule_packed_decode": _PACKED,
    "fused_recurrent_kda_packed_decode": _PACKED + " lower_bound=None",
}


def parameters(name, kind):
    signature = inspect.signature(getattr(replayjit, name))
    return [str(one.replace(annotation=one.empty))
            for one in signature.parameters.values() if one.kind is kind]


class SignatureTest(unittest.TestCase):
    def test_positional_arguments(self):
        for name, expected in POSITIONAL.items():
            with self.subTest(name):
                self.assertEqual(
                    parameters(name, inspect.Parameter.POSITIONAL_OR_KEYWORD),
                    expected.split())

    def test_the_earlier_name(self):
        self.assertIs(replayjit.fused_recurrent_gdn_replayssm_decode,
                      replayjit.fused_recurrent_linear_replayssm_decode)

    def test_what_is_ours_is_a_keyword_that_may_be_left_out(self):
        for name in POSITIONAL:
            for one in parameters(name, inspect.Parameter.KEYWORD_ONLY):
                with self.subTest(f"{name}({one})"):
                    self.assertIn("=", one)


if __name__ == "__main__":
    unittest.main()
