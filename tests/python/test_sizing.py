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
        self.batches = [Batch(runtime, Shape(H=1, HV=2, K=16, V=32, L=3), [0]),
                        Batch(runtime, Shape(H=2, HV=2, K=8, V=4, L=5,
                                             is_kda=True), [0])]
        self.specs = [
            replayjit.bind(replayjit.fused_recurrent_linear_replayssm_decode,
                           **batch.replay_inputs()).spec
            for batch in self.batches]

    def test_bytes(self):
        whole = sum(bytes_of(batch.state, batch.d, batch.k, batch.g)
                    for batch in self.batches)
        states = sum(bytes_of(batch.state) for batch in self.batches)
        self.assertEqual(replayjit.pool_bytes(self.specs, 5), whole)
        self.assertEqual(replayjit.pool_bytes(self.specs, 5, rings=0), states)
        self.assertEqual(replayjit.pool_bytes(self.specs, 10, rings=5),
                         whole + states)

    def test_other_types(self):
        small, large = (
            Spec(num_key_heads=3, num_value_heads=6, state_type=dtype,
                 ring_type=dtype) for dtype in ("bfloat16", "float32"))
        gates = 7 * 6 * 16 * 4  # float32 always
        self.assertEqual(
            2 * (replayjit.pool_bytes([small], 7) - gates),
            replayjit.pool_bytes([large], 7) - gates)

    def test_packed_has_no_rings(self):
        spec = Spec(family="packed", ring_depth=1)
        self.assertEqual(replayjit.pool_bytes([spec], 3),
                         3 * 32 * 128 * 128 * 4)

    def test_slots_for_a_budget(self):
        for rings in (None, 0, 4):
            for budget in (10**6, 10**6 + 1, 54321):
                count = replayjit.states_for_budget(budget, self.specs, rings)
                fits = lambda n: replayjit.pool_bytes(self.specs, n,
                                                      rings) <= budget
                self.assertTrue(fits(count) and not fits(count + 1),
                                (rings, budget, count))
        self.assertEqual(replayjit.states_for_budget(10, self.specs, rings=1), -1)
        self.assertEqual(replayjit.states_for_budget(10, self.specs), 0)

    def test_errors(self):
        with self.assertRaises(ValueError) as caught:
            replayjit.pool_bytes(self.specs, -1)
        self.assertEqual(str(caught.exception),
                         "states: -1 is not allowed; it must be 0 or more")
        with self.assertRaises(ValueError):
            replayjit.states_for_budget(10, [])


if __name__ == "__main__":
    unittest.main()
