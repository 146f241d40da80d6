"""Folding rings, and the error word."""

import unittest

import replayjit
from recurrence import Batch, Shape, emulation, error, tensor, values
from replayjit import fused_recurrent_linear_replayssm_decode, materialize


class MaterializeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()

    def fill(self, shape, seed):
        """Two tokens in the rings of slots 1 and 3."""
        batch = Batch(self.runtime, shape, rows=[1, 3], seed=seed)
        for cursor in range(2):
            batch.set_cursor([cursor] * 2)
            batch.next_tokens()
            fused_recurrent_linear_replayssm_decode(**batch.replay_inputs())
            batch.expected_out()
        return batch

    def run_materialize(self, shape):
        batches = [self.fill(shape, seed) for seed in (1, 2)]
        layers = replayjit.LayerTable(
            [(batch.state, batch.d, batch.k, batch.g) for batch in batches])
        index = lambda *slots: tensor(self.runtime, slots, 3, dtype="int32")
        # A fork, a row that the mask skips, a fold in place.
        materialize(layers, index(1, 1, 3), index(0, 2, 3), index(2, 2, 2),
                    mask=index(1, 0, 1))
        for batch in batches:
            states = values(batch.state)
            for slot, request in [(0, 1), (3, 3)]:
                self.assertLess(error(batch.state_of(states, slot),
                                      batch.requests[request].state), 1e-6)
            for slot in (1, 2, 4):
                self.assertEqual(batch.state_of(states, slot),
                                 batch.state_of(batch.start, slot))

    def test_gated_delta_net(self):
        self.run_materialize(Shape(L=4))

    def test_kimi_delta_attention(self):
        self.run_materialize(Shape(L=4, is_kda=True))

    def test_layers_differ(self):
        batches = [Batch(self.runtime, Shape(L=depth), rows=[1])
                   for depth in (2, 3)]
        with self.assertRaises(ValueError) as caught:
            replayjit.LayerTable([(batch.state, batch.d, batch.k, batch.g)
                                  for batch in batches])
        self.assertEqual(str(caught.exception), "layers[1]: shapes or types "
                         "other than those of layers[0] are not allowed")


class ErrorWordTest(unittest.TestCase):
    def test_bad_rows_are_reported(self):
        runtime = emulation()
        batch = Batch(runtime, Shape(), rows=[1, -1, 1])
        word = replayjit.ErrorWord(runtime)
        self.assertIsNone(replayjit.poll_errors(word))
        step = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                              **batch.replay_inputs(), error_word=word, layer=7)
        batch.set_cursor([0, 0, 3])  # L is 3; row 1 is padding and no error
        step()
        self.assertEqual(replayjit.poll_errors(word),
                         replayjit.Report(1, "write_pos", 2, 7, 3))
        step()
        self.assertEqual(word.poll().count, 2)
        word.clear()
        self.assertIsNone(word.poll())


if __name__ == "__main__":
    unittest.main()
