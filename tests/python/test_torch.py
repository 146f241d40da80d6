"""Operators on tensors of torch, in the emulation. Without torch nothing of this
runs, which ctest shows as skipped."""

import importlib.util
import sys
import unittest

if importlib.util.find_spec("torch") is None:
    print("skipped: this Python has no torch")
    sys.exit(77)

import torch

import replayjit
from recurrence import Batch, Shape, emulation, error, values
from replayjit import torch_ops

TYPES = {"float32": torch.float32, "int32": torch.int32,
         "bfloat16": torch.bfloat16}


def on_the_cpu(batch, inputs):
    """The same as torch's CPU tensors."""
    return {name: torch.frombuffer(bytearray(one.read()), dtype=TYPES[one.dtype])
            .reshape(one.shape) if isinstance(one, replayjit.Tensor) else one
            for name, one in inputs.items()}


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()

    def setUp(self):
        self.batch = Batch(self.runtime, Shape(L=3), rows=[3, -1, 1])
        self.inputs = on_the_cpu(self.batch, self.batch.replay_inputs())

    def check(self, out, most=2e-6):
        self.assertLess(error(out.flatten().tolist(), self.batch.expected_out()),
                        most)

    def next_tokens(self):
        self.batch.next_tokens()
        new = on_the_cpu(self.batch, self.batch.inputs())
        for name in ("mixed_qkv", "a", "b"):
            self.inputs[name].copy_(new[name])

    def run_rounds(self, operator):
        for step in range(6):
            self.inputs["write_pos"].fill_(step % 3)
            self.next_tokens()
            result = operator(**self.inputs)
            self.assertIs(result[0], self.inputs["out"])
            self.check(result[0])
        for slot in (3, 1):
            self.assertLess(
                error(self.inputs["initial_state"][slot].flatten().tolist(),
                      self.batch.requests[slot].state), 1e-6)
        self.assertEqual(self.inputs["initial_state"][2].flatten().tolist(),
                         self.batch.state_of(self.batch.start, 2))

    def test_tensors_on_the_cpu(self):
        self.run_rounds(replayjit.fused_recurrent_linear_replayssm_decode)

    def test_bound_launch(self):
        step = replayjit.bind(replayjit.fused_recurrent_linear_replayssm_decode,
                              **self.inputs)
        self.run_rounds(lambda **_: step())

    def test_views_of_one_storage(self):
        """States of two layers in turns, and q, k, v inside of a wider row."""
        s = self.batch.shape
        both = torch.zeros(5, 2, s.HV, s.V, s.K)
        both[:, 1] = self.inputs["initial_state"]
        row = torch.zeros(3, s.columns + 5)
        row[:, 4:-1] = self.inputs["mixed_qkv"]
        self.inputs.update(initial_state=both[:, 1], mixed_qkv=row[:, 4:-1])
        self.run_rounds(replayjit.fused_recurrent_linear_replayssm_decode)
        self.assertEqual(both[:, 0].abs().max().item(), 0)

    def test_operators_of_torch_library(self):
        self.run_rounds(torch_ops.fused_recurrent_linear_replayssm_decode)

    def test_under_torch_compile(self):
        """The step and what stands around it become one graph, in which the
        operator stands and whose outputs show what it wrote."""
        graphs = []

        def keep(graph, _):
            graphs.append(graph)
            return graph.forward

        def step(inputs):
            out, _ = torch_ops.fused_recurrent_linear_replayssm_decode(**inputs)
            return 2 * out

        compiled = torch.compile(step, backend=keep, fullgraph=True)
        self.next_tokens()
        self.check(compiled(self.inputs) / 2)
        targets = [str(node.target) for node in graphs[0].graph.nodes]
        self.assertTrue(any("replayjit" in target for target in targets), targets)

    def test_functionalized_and_with_fake_tensors(self):
        """aot_eager rewrites what writes in place, from the schema alone."""
        def step(inputs):
            torch_ops.fused_recurrent_linear_replayssm_decode(**inputs)
            return inputs["out"] + inputs["initial_state"].sum()

        compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
        self.inputs["write_pos"].fill_(2)
        self.next_tokens()
        found = compiled(self.inputs)
        self.check(self.inputs["out"])
        self.assertTrue(torch.equal(
            found, self.inputs["out"] + self.inputs["initial_state"].sum()))

    def test_schemas(self):
        """opcheck: what the schema says is what the operators do."""
        self.inputs["mixed_qkv"] = [self.inputs["mixed_qkv"]]
        torch.library.opcheck(
            torch.ops.replayjit.fused_recurrent_linear_replayssm_decode,
            tuple(self.inputs[name] for name in (
                "mixed_qkv", "a", "b", "A_log", "dt_bias", "scale",
                "initial_state", "d_cache", "k_cache", "g_cache", "out",
                "ssm_state_indices", "write_pos")) + (None, True),
            test_utils=("test_schema", "test_faketensor"))

    def test_packed_decodes(self):
        for is_kda, name in [(False, "gated_delta_rule"), (True, "kda")]:
            with self.subTest(name):
                self.batch = Batch(self.runtime, Shape(is_kda=is_kda),
                                   rows=[3, -1, 1])
                self.inputs = on_the_cpu(self.batch, self.batch.inputs())
                if is_kda:
                    self.inputs.update(
                        a=self.inputs["a"].flatten(1),
                        dt_bias=self.inputs["dt_bias"].flatten())
                getattr(torch_ops, f"fused_recurrent_{name}_packed_decode")(
                    **self.inputs)
                self.check(self.inputs["out"])

    def test_tables_of_layers_are_not_on_the_cpu(self):
        with self.assertRaisesRegex(ValueError, "^device: cpu is not allowed"):
            replayjit.LayerTable([[self.inputs[name] for name in (
                "initial_state", "d_cache", "k_cache", "g_cache")]])


if __name__ == "__main__":
    unittest.main()
