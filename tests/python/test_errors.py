"""What is wrong is said in one sentence: ValueError for arguments, RuntimeError
for what cannot be done."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import replayjit
from replayjit import _abi
from recurrence import Batch, Shape, emulation, tensor
from replayjit import (Tensor, fused_recurrent_gated_delta_rule_packed_decode,
                       fused_recurrent_kda_packed_decode,
                       fused_recurrent_linear_replayssm_decode, materialize)


class ErrorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()
        cls.batch = Batch(cls.runtime, Shape(H=1, HV=2, K=16, V=32, L=3),
                          rows=[1, 2])

    def refuses(self, sentence, operator=None, **changes):
        inputs = {**self.batch.replay_inputs(), **changes}
        with self.assertRaises(ValueError) as caught:
            (operator or fused_recurrent_linear_replayssm_decode)(**inputs)
        self.assertEqual(str(caught.exception), sentence)

    def zeros(self, *shape, dtype="float32"):
        return self.runtime.empty(dtype, *shape)

    def test_shapes(self):
        self.refuses(
            "mixed_qkv: 97 columns are not allowed; with HV = 2, V = 32 and K = "
            "16 there must be 2 * H * 16 + 64", mixed_qkv=self.zeros(2, 97))
        self.refuses("b: shape (2, 3) is not allowed; it must be (2, 2)",
                     b=self.zeros(2, 3))
        self.refuses("a: shape (2, 2) is not allowed; it must be (2, 2, 16)",
                     is_kda=True)
        self.refuses(
            "initial_state: shape (2, 32, 16) is not allowed; it must be (any, "
            "any, any, any)", initial_state=self.zeros(2, 32, 16))
        self.refuses(
            "d_cache: 4 slots are not allowed without ring_indices; there must be "
            "5, as many as of initial_state, or more", d_cache=self.zeros(4, 2, 3, 32))
        self.refuses("out: shape (2, 2, 32) is not allowed; it must be (2, 1, 2, "
                     "32)", out=self.zeros(2, 2, 32))
        self.refuses("write_pos: shape (3,) is not allowed; it must be (2)",
                     write_pos=self.zeros(3, dtype="int32"))

    def test_types(self):
        self.refuses(
            "write_pos: dtype int64 is not allowed; allowed are int32",
            write_pos=self.zeros(2, dtype="int64"))
        for name in ("a", "b", "A_log", "dt_bias"):
            shape = (2, 2) if name in "ab" else (2,)
            self.refuses(f"{name}: dtype int32 is not allowed; allowed are "
                         "float32, bfloat16, float16",
                         **{name: self.zeros(*shape, dtype="int32")})
        self.refuses("g_cache: dtype bfloat16 is not allowed; allowed are "
                     "float32", g_cache=self.zeros(5, 2, 3, dtype="bfloat16"))

    def test_strides(self):
        self.refuses("b: stride 2 of dimension 1 is not allowed; it must be 1",
                     b=self.zeros(2, 4).view((2, 2), (4, 2)))
        self.refuses(
            "write_pos: stride 2 of dimension 0 is not allowed; it must be 1",
            write_pos=self.zeros(4, dtype="int32").view((2,), (2,)))

    def test_states_with_k_before_v(self):
        self.refuses(
            "initial_state: shape (5, 2, 16, 32) is that of states [slots, HV, K, "
            "V]; it must be [slots, HV, V, K]",
            initial_state=self.zeros(5, 2, 16, 32))
        self.refuses(
            "initial_state: strides (1024, 512, 1, 32) are those of states [slots, "
            "HV, K, V]; it must be [slots, HV, V, K] in memory",
            initial_state=self.zeros(5, 2, 16, 32).view(
                (5, 2, 32, 16), (1024, 512, 1, 32)))

    def test_rows_that_share_a_slot(self):
        shared = tensor(self.runtime, [1, 1], 2, dtype="int32")
        for operator, inputs in [
                (fused_recurrent_linear_replayssm_decode,
                 self.batch.replay_inputs()),
                (fused_recurrent_gated_delta_rule_packed_decode,
                 self.batch.inputs())]:
            step = replayjit.bind(operator, **{**inputs, "ssm_state_indices": shared},
                                  check_rows=True)
            for _ in range(2):  # at each launch
                with self.assertRaisesRegex(ValueError, "rows 0 and 1"):
                    step()
                # The emulation does it in any case; a GPU does it where asked.
                self.assertEqual(step._flags, _abi.LAUNCH_CHECK_ROWS)
            operator(**inputs, check_rows=True)

    def test_devices(self):
        elsewhere = emulation()
        with self.assertRaisesRegex(ValueError, "^b: device .* is not allowed; "
                                                "it must be .*, where mixed_qkv "
                                                "is$"):
            fused_recurrent_linear_replayssm_decode(**{
                **self.batch.replay_inputs(), "b": elsewhere.empty(
                    "float32", 2, 2)})

        class OnTheCpu:
            device = type("device", (), {"type": "cpu"})()

        with self.assertRaisesRegex(ValueError, "^device: .* is not allowed; it "
                                                "must be a CUDA device or a "
                                                "replayjit.Runtime$"):
            replayjit.LayerTable([(OnTheCpu(),) * 4])

    def test_options(self):
        self.refuses("null_slot: 'zero' is not allowed; allowed are negative, "
                     "non-positive", null_slot="zero")
        self.refuses("cache_base: None is not allowed with circular_replay",
                     circular_replay=True)
        self.refuses("predecayed_k_cache: not allowed without "
                     "prefix_gate_cache", predecayed_k_cache=True)
        with self.assertRaises(ValueError) as caught:
            replayjit.Spec(heads=3)
        self.assertRegex(str(caught.exception),
                         "^heads: there is no such field; there are family, ")
        with self.assertRaises(ValueError) as caught:
            replayjit.Runtime.emulation(cache_folder="x")
        self.assertRegex(
            str(caught.exception), "^cache_folder: there is no such option; "
            "there are use_environment, cache_roots, ")

    def test_gates_that_are_given(self):
        for name in ("A_log", "dt_bias"):
            none = {"A_log": None, "dt_bias": None}
            del none[name]
            self.refuses(f"{name}: not allowed with log_decay, where a is the "
                         "logarithm of the decay; it must be None",
                         log_decay=True, **none)
        self.refuses("beta: 'tanh' is not allowed; allowed are sigmoid, "
                     "twice-sigmoid, given, step, one", beta="tanh")

    def test_predecayed_rings_say_what_upstream_says(self):
        """What the tests of SGLang #37739 look for."""
        for H, HV, bound, reason in [
                (2, 4, -5.0, "one K head"), (4, 4, None, "finite negative"),
                (4, 4, -6.0, "inverse-prefix scaling is unsafe")]:
            batch = Batch(self.runtime, Shape(H=H, HV=HV, L=16, is_kda=True),
                          rows=[0, 1])
            inputs = batch.replay_inputs()
            for norm in (False, True):
                inputs["use_qk_l2norm_in_kernel"] = norm
                with self.assertRaisesRegex(ValueError, reason):
                    fused_recurrent_linear_replayssm_decode(
                        **inputs, lower_bound=bound, circular_replay=True,
                        cache_base=tensor(self.runtime, [0, 0], 2, dtype="int32"),
                        prefix_gate_cache=True, predecayed_k_cache=True)

    def test_what_the_library_refuses(self):
        """Its own sentence, as a ValueError that is a replayjit.Error too."""
        with self.assertRaises(replayjit.InvalidArgument) as caught:
            replayjit.Runtime.emulation("sm_1")
        self.assertRegex(str(caught.exception),
                         "^target: 'sm_1' is unknown; allowed are sm_80, ")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.code, 1)
        with self.assertRaisesRegex(ValueError, "^ringFormat: prefix is not "
                                                "allowed for GDN; "):
            fused_recurrent_linear_replayssm_decode(
                **self.batch.replay_inputs(), prefix_gate_cache=True)
        with self.assertRaisesRegex(ValueError, "writePos: 0x2 is not allowed"):
            fused_recurrent_linear_replayssm_decode(**{
                **self.batch.replay_inputs(), "write_pos": Tensor(
                    self.runtime, "int32", (2,), 2)})
        with self.assertRaisesRegex(ValueError, "lowerBound: 1 is not allowed"):
            batch = Batch(self.runtime, Shape(is_kda=True), rows=[1])
            inputs = batch.inputs()
            flat = batch.shape.HV * batch.shape.K
            inputs.update(a=batch.a.view((1, flat), (flat, 1)),
                          dt_bias=batch.dt_bias.view((flat,), (1,)))
            fused_recurrent_kda_packed_decode(**inputs, lower_bound=1.0)

    def test_a_bound_launch_says_it_too(self):
        step = replayjit.bind(fused_recurrent_linear_replayssm_decode, **{
            **self.batch.replay_inputs(), "write_pos": Tensor(
                self.runtime, "int32", (2,), 2)})
        with self.assertRaisesRegex(ValueError, "writePos: 0x2 is not allowed"):
            step()

    def test_a_fault_of_the_emulation(self):
        """Not a ValueError: a kernel that reads past the end of b."""
        with self.assertRaises(replayjit.Error) as caught:
            fused_recurrent_linear_replayssm_decode(**{
                **self.batch.replay_inputs(),
                "b": self.batch.b.view((2, 2), (100, 1))})
        self.assertNotIsInstance(caught.exception, ValueError)
        self.assertRegex(str(caught.exception),
                         "out-of-bounds global load .* 'load of b'")

    def test_no_tensors(self):
        no_tensor = ("; it must be a tensor, with data_ptr(), stride(), shape, "
                     "dtype and device")
        for name in self.batch.replay_inputs():
            if name not in ("scale", "use_qk_l2norm_in_kernel", "is_kda"):
                with self.subTest(name):
                    self.refuses(f"{name}: None is not allowed" + no_tensor,
                                 **{name: None})
        self.refuses("b: 'b' is not allowed" + no_tensor, b="b")
        self.refuses("force_flush: [0, 0] is not allowed" + no_tensor,
                     force_flush=[0, 0])
        q = self.zeros(2, 1, 16)
        for count in (2, 4):
            self.refuses(f"mixed_qkv: {count} elements are not allowed; there "
                         "must be 3", mixed_qkv=(q,) * count)
        self.refuses("v: None is not allowed" + no_tensor,
                     mixed_qkv=(q, q, None))

    def test_objects_of_another_kind(self):
        kinds = {"error_word": (5, [self.runtime], []),
                 "stream": ("x", b"x", -1, 2**64, 1.5, True)}
        allowed = {"error_word": "a replayjit.ErrorWord",
                   "stream": f"an integer from 0 to {2**64 - 1}"}
        for name, values in kinds.items():
            for value in values:
                with self.subTest(f"{name}={value}"):
                    self.refuses(f"{name}: {value!r} is not allowed; it must be "
                                 + allowed[name], **{name: value})
        for value, act in [(5, lambda: replayjit.slot_bytes(5)),
                           (None, lambda: replayjit.supports(None)),
                           ("s", lambda: self.runtime.prepare("s")),
                           (7, lambda: replayjit.recommend(7, 1))]:
            with self.assertRaises(ValueError) as caught:
                act()
            self.assertEqual(str(caught.exception), f"spec: {value!r} is not "
                             "allowed; it must be a replayjit.Spec")
        with self.assertRaisesRegex(ValueError, "^runtime: 5 is not allowed; it "
                                                "must be a replayjit.Runtime$"):
            replayjit.prepare_all([], 5)

    def test_flags(self):
        for name in ("use_qk_l2norm_in_kernel", "is_kda", "circular_replay",
                     "prefix_gate_cache", "predecayed_k_cache", "beta_round",
                     "batch_invariant", "check_rows", "log_decay", "unit_keys"):
            for value in (None, 2, "yes", 1.0):
                with self.subTest(f"{name}={value}"):
                    self.refuses(f"{name}: {value!r} is not allowed; it must be "
                                 "true or false", **{name: value})

    def test_materialize(self):
        batch = self.batch
        layers = replayjit.LayerTable([(batch.state, batch.d, batch.k, batch.g)])
        index = tensor(self.runtime, [1], 1, dtype="int32")
        with self.assertRaises(ValueError) as caught:
            materialize(layers, index, index,
                        tensor(self.runtime, [0, 0], 2, dtype="int32"))
        self.assertEqual(str(caught.exception),
                         "write_pos: shape (2,) is not allowed; it must be (1)")
        with self.assertRaisesRegex(ValueError, "^layers: 5 is not allowed; it "
                                                "must be a replayjit.LayerTable"):
            materialize(5, index, index, index)
        with self.assertRaisesRegex(ValueError, "^predecayed_k_cache: not allowed "
                                                "without prefix_gate_cache"):
            materialize(layers, index, index, index, predecayed_k_cache=True)
        with self.assertRaises(ValueError) as caught:
            replayjit.LayerTable([(batch.state, batch.d, batch.k)])
        self.assertEqual(str(caught.exception), "layers[0]: 3 elements are not "
                         "allowed; there must be 4")
        with self.assertRaises(ValueError) as caught:
            replayjit.LayerTable([])
        self.assertEqual(str(caught.exception),
                         "layers: an empty list is not allowed")


class LibraryTest(unittest.TestCase):
    def in_a_process(self, script, **environment):
        """The last line of what it says."""
        return subprocess.run(
            [sys.executable, "-c", "import replayjit; " + script],
            env={**os.environ, **environment},
            capture_output=True, text=True).stderr.splitlines()[-1]

    def test_no_cuda_driver(self):
        """Also where there is one: a file that is none comes first."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "libcuda.so.1").write_bytes(b"no library")
            self.assertRegex(
                self.in_a_process("replayjit.Runtime.cuda(0)",
                                  LD_LIBRARY_PATH=folder),
                r"^replayjit\._library\.Error: no CUDA driver: cannot open "
                r"'libcuda\.so\.1' \(" + re.escape(folder))
        self.assertTrue(issubclass(replayjit.Error, RuntimeError))

    def test_no_library(self):
        self.assertRegex(
            self.in_a_process("replayjit.Spec()",
                              REPLAYJIT_LIBRARY="/dev/null/libreplayjit.so"),
            r"^replayjit\._library\.Error: libreplayjit cannot be opened "
            r"\(/dev/null/.*\); build it with .* and set REPLAYJIT_LIBRARY to "
            r"its path$")


if __name__ == "__main__":
    unittest.main()
