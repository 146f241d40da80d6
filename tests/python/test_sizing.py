"""Sizes beside those of tensors that are really allocated."""

import unittest

import replayjit
from recurrence import Batch, Shape, emulation
from replayjit import Spec


def bytes_of(*tensors):
    return sum(len(tensor.read()) for tensor in tensors)


class SizingTest(unittest.TestCase):
    def setUp(self):
        runtime = emulation()
        self.batches = [Batch(runtime, Shape(H=1, HV=2, K=16, V=32, L=4), [0]),
                        Batch(runtime, Shape(H=2, HV=2, K=8, V=4, L=6,
                                             is_kda=True), [0])]
        self.specs = [
            replayjit.bind(replayjit.fused_recurrent_linear_replayssm_decode,
                           **batch.replay_inputs()).spec
            for batch in self.batches]

    def test_bytes(self):
        """All sizes here are multiples of 16 bytes, to which a pool rounds."""
        whole = sum(bytes_of(batch.state, batch.d, batch.k, batch.g)
                    for batch in self.batches)
        states = sum(bytes_of(batch.state) for batch in self.batches)
        size = lambda *counts: replayjit.pool_bytes(self.specs, *counts)
        self.assertEqual(size(5, 5, 0), whole)
        self.assertEqual(size(5, 0, 0), states)
        self.assertEqual(size(10, 5, 7), whole + states + 4 * 7)
        per_slot = [replayjit.slot_bytes(spec) for spec in self.specs]
        self.assertEqual(5 * sum(map(sum, per_slot)), whole)

    def test_packed_has_no_rings(self):
        spec = Spec(family="packed", ring_depth=1)
        self.assertEqual(replayjit.pool_bytes([spec], 3, 3, 0),
                         3 * 32 * 128 * 128 * 4)

    def test_slots_for_a_budget(self):
        for rings, budget in [(0, 10**6), (4, 10**6 + 1), (4, 54321)]:
            count = replayjit.states_for_budget(budget, self.specs, rings, 9)
            fits = lambda states: replayjit.pool_bytes(
                self.specs, states, rings, 9) <= budget
            self.assertTrue(fits(count) and not fits(count + 1),
                            (rings, budget, count))
        with self.assertRaises(ValueError):
            replayjit.states_for_budget(10, self.specs, 1, 1)

    def test_recommendation(self):
        self.assertEqual(replayjit.recommend(Spec(), rows=1)[0], "packed")
        family, depth = replayjit.recommend(Spec(), rows=256)
        self.assertEqual((family, depth % 4), ("replay", 0))


if __name__ == "__main__":
    unittest.main()
