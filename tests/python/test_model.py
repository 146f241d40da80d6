"""transformers' Qwen3-Next with our operators in place of its recurrence. Without
torch and transformers nothing of this runs, which ctest shows as skipped."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: this Python has no {needed}")
        sys.exit(77)

import torch

import replayjit

EXAMPLES = Path(os.environ["REPLAYJIT_SOURCE_DIR"]) / "runtime/python/examples"
sys.path.insert(0, str(EXAMPLES))
import qwen3_next


class ModelTest(unittest.TestCase):
    def check(self, model, prompts=(9,), steps=9, most=1e-5, **options):
        torch.manual_seed(1)
        inputs = [(torch.randint(128, (2, length)), torch.randint(128, (2, steps)))
                  for length in prompts]
        expected = [qwen3_next.logits_of(model, *one) for one in inputs]
        self.assertEqual(qwen3_next.use_replayjit(model, **options), 3)
        for one, truth in zip(inputs, expected):
            found = qwen3_next.logits_of(model, *one)
            error = (found - truth).abs().max() / truth.abs().max()
            self.assertLess(error, most)
        return found, truth

    def test_logits_over_flushes_of_the_ring(self):
        self.check(qwen3_next.tiny_model(), ring_depth=4)

    def test_a_second_prompt_starts_anew(self):
        self.check(qwen3_next.tiny_model(), prompts=(9, 3), steps=5, ring_depth=4)

    def test_other_heads_and_no_ring(self):
        self.check(qwen3_next.tiny_model(
            linear_num_key_heads=1, linear_num_value_heads=3,
            linear_value_head_dim=16), steps=4, ring_depth=1)

    def test_the_layers_have_run(self):
        """Not the model's own recurrence, once more."""
        model = qwen3_next.tiny_model()
        found, truth = self.check(model, steps=5)
        for layer in model.model.layers:
            if hasattr(layer, "linear_attn"):
                decode = layer.linear_attn.recurrent_gated_delta_rule
                self.assertIsNotNone(decode.prefilled)
                self.assertEqual(decode.write_pos.tolist(), [5 % 4] * 2)


if __name__ == "__main__":
    unittest.main()
