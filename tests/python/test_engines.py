"""install() on stand-ins for the engines: modules with their functions' names and
signatures, of which one has imported the other's function."""

import contextlib
import inspect
import sys
import types
import unittest

import replayjit
import replayjit.sglang
import replayjit.vllm
from recurrence import Batch, Shape, emulation, error, tensor, values

_PACKED = ("mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, out, "
           "ssm_state_indices, use_qk_l2norm_in_kernel=False")
_RINGS = ("mixed_qkv, a, b, A_log, dt_bias, scale, initial_state, d_cache, k_cache, "
          "g_cache, out, ssm_state_indices, write_pos, ")
_TUNING = "block_v=None, num_warps=1, num_stages=3, nk=2"
_FLAGS = "use_qk_l2norm_in_kernel=False, is_kda=False, "

#: Signatures of the functions, by version.
EARLIER = _RINGS + "force_flush=None, " + _FLAGS + _TUNING
LATER = (_RINGS + "force_flush=None, lower_bound=None, " + _FLAGS + _TUNING +
         ", cache_base=None, circular_replay=False, prefix_gate_cache=False, "
         "predecayed_k_cache=False")
VLLM = _RINGS + ("use_qk_l2norm_in_kernel=False, block_v=None, num_warps=None, "
                 "num_stages=None, nk=None")


def function(name, signature):
    scope = {}
    exec(f"def {name}({signature}): raise AssertionError('Triton ran')", scope)
    return scope[name]


@contextlib.contextmanager
def modules(**contents):
    """Modules of these names, "_" for ".", with their packages."""
    made = {}
    for path, members in contents.items():
        parts = path.split("__")
        for at in range(1, len(parts) + 1):
            name = ".".join(parts[:at])
            made.setdefault(name, types.ModuleType(name)).__path__ = []
        vars(made[".".join(parts)]).update(members)
    sys.modules.update(made)
    try:
        yield [made[path.replace("__", ".")] for path in contents]
    finally:
        for name in made:
            del sys.modules[name]


SGLANG = "sglang__srt__layers__attention__fla__"
VLLM_OPS = "vllm__model_executor__layers__fla__ops__"


class EnginesTest(unittest.TestCase):
    def decode(self, batch, call):
        """A step by `call`, of the inputs by name, against the recurrence."""
        batch.next_tokens()
        call(batch)
        self.assertLess(error(values(batch.out), batch.expected_out()), 2e-6)

    def test_sglang_in_place(self):
        replay = function("fused_recurrent_linear_replayssm_decode", EARLIER)
        packed = function("fused_recurrent_gated_delta_rule_packed_decode", _PACKED)
        with modules(**{
                SGLANG + "fused_recurrent_linear_replayssm": {
                    replay.__name__: replay,
                    "fused_recurrent_gdn_replayssm_decode": replay},
                SGLANG + "fused_recurrent": {packed.__name__: packed},
                "sglang__srt__backend": {"decode_by": packed}}) as (
                    rings, packs, backend):
            installed = replayjit.sglang.install()
            self.assertEqual(len(installed.names), 4)
            batch = Batch(emulation(), Shape(), rows=[2, -1])
            self.decode(batch, lambda b: backend.decode_by(**b.inputs()))
            self.assertIs(packs.fused_recurrent_gated_delta_rule_packed_decode,
                          backend.decode_by)
            rings.fused_recurrent_gdn_replayssm_decode(**batch.replay_inputs())
            installed.undo()
            self.assertIs(backend.decode_by, packed)
            self.assertIs(rings.fused_recurrent_gdn_replayssm_decode, replay)
            with self.assertRaisesRegex(AssertionError, "Triton ran"):
                backend.decode_by(**batch.inputs())

    def test_either_order_of_arguments(self):
        """What each version passes by place arrives where it belongs."""
        runtime = emulation()
        for signature, bound in ((EARLIER, ()), (LATER, (None,)), (LATER, (-2.0,))):
            replay = function("fused_recurrent_linear_replayssm_decode", signature)
            name = SGLANG + "fused_recurrent_linear_replayssm"
            with self.subTest(signature=signature, bound=bound), modules(
                    **{name: {replay.__name__: replay}}) as (module,):
                replayjit.sglang.install()
                shape = Shape(H=2, HV=2, is_kda=True,
                              lower_bound=bound[0] if bound else None)
                batch = Batch(runtime, shape, rows=[1, 3])
                inputs = batch.replay_inputs()
                given = [inputs[one] for one in inspect.signature(replay).parameters
                         if one in inputs][:13]
                self.decode(batch, lambda _: module.
                            fused_recurrent_linear_replayssm_decode(
                                *given, None, *bound, True, True, 32, 1, 3, 1))

    def test_the_last_arguments_by_place(self):
        shape = Shape(H=2, HV=2, L=3, is_kda=True, lower_bound=-2.0)
        runtime = emulation()
        batch = Batch(runtime, shape, rows=[1, 2])
        inputs = batch.replay_inputs()
        order = inspect.signature(function("f", LATER)).parameters
        base = tensor(runtime, [1, 1], 2, dtype="int32")
        given = {**inputs, "force_flush": None, "lower_bound": -2.0,
                 "block_v": 32, "num_warps": 1, "num_stages": 2, "nk": 1,
                 "cache_base": base, "circular_replay": True,
                 "prefix_gate_cache": True, "predecayed_k_cache": True}
        step = replayjit.bind(replayjit.fused_recurrent_linear_replayssm_decode,
                              *(given[name] for name in order))
        self.assertEqual((step.spec.is_circular, step.spec.ring_format,
                          step.spec.gate), (1, 2, 1))
        with self.assertRaisesRegex(TypeError, "lower_bound: given twice"):
            replayjit.fused_recurrent_linear_replayssm_decode(
                *(given[name] for name in order), lower_bound=-2.0)

    def test_vllm_in_place(self):
        packed = function("fused_recurrent_gated_delta_rule_packed_decode", _PACKED)
        replay = function("fused_recurrent_gated_delta_rule_replayssm", VLLM)
        with modules(**{
                VLLM_OPS + "fused_recurrent": {packed.__name__: packed},
                VLLM_OPS + "fused_recurrent_replayssm": {
                    replay.__name__: replay}}) as (packs, rings):
            installed = replayjit.vllm.install()
            self.addCleanup(installed.undo)
            batch = Batch(emulation(), Shape(), rows=[2, 0])
            batch.rows[1] = -1  # Of the recurrence: vLLM's block 0 is nobody's.
            self.decode(batch, lambda b: packs.
                        fused_recurrent_gated_delta_rule_packed_decode(**b.inputs()))
            inputs = batch.replay_inputs()
            del inputs["is_kda"]
            self.decode(batch, lambda _: rings.
                        fused_recurrent_gated_delta_rule_replayssm(**inputs))
            self.assertEqual(batch.state_of(values(batch.state), 0),
                             batch.state_of(batch.start, 0))
            installed.undo()
            self.assertEqual(replayjit.defaults.null_slot, "negative")

    def test_other_signatures(self):
        for signature, sentence in [
                (_PACKED + ", cu_seqlens=None", "its argument 'cu_seqlens' is not one"),
                ("a, mixed_qkv", "the order of its arguments is not replayjit's")]:
            packed = function("fused_recurrent_gated_delta_rule_packed_decode",
                              signature)
            with modules(**{SGLANG + "fused_recurrent": {
                    packed.__name__: packed}}) as (module,):
                with self.assertRaisesRegex(replayjit.Error, sentence):
                    replayjit.sglang.install()
                self.assertIs(getattr(module, packed.__name__), packed)

    def test_no_engine(self):
        with self.assertRaisesRegex(replayjit.Error,
                                    "^vllm: none of its decode operators was found"):
            replayjit.vllm.install()

    def test_a_setting_that_does_not_exist(self):
        with self.assertRaisesRegex(ValueError, "^null_slot: 'zero' is not allowed"):
            replayjit.defaults.null_slot = "zero"
        with self.assertRaisesRegex(ValueError, "^slot: there is no such setting"):
            replayjit.defaults.slot = 1


if __name__ == "__main__":
    unittest.main()
