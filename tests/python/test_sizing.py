"""Sizes beside those of tensors that are really allocated."""

import json
import os
import tempfile
import unittest
from unittest import mock

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
        self.assertEqual(replayjit.recommend(Spec(), rows=1),
                         ("packed", 1, "float32"))
        best = replayjit.recommend(Spec(ring_type="bfloat16"), rows=256)
        self.assertEqual((best.family, best.ring_depth % 4, best.ring_type),
                         ("replay", 0, "bfloat16"))

    def test_recommendation_that_was_measured(self):
        spec = dict(isKda=False, headDimK=128, headDimV=128)
        row = dict(rows=4, usualUs=9, tuning={})
        table = dict(chip="sm_90a", multiprocessors=132, device="made up", specs=[
            dict(spec=dict(spec, family="packed", ringDepth=1),
                 rows=[dict(row, us=5), dict(row, rows=8, us=9)]),
            dict(spec=dict(spec, ringDepth=24, ringType="bf16"),
                 rows=[dict(row, us=6), dict(row, rows=8, us=7)])])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(table, file)
            file.flush()
            with mock.patch.dict(os.environ, REPLAYJIT_TUNING=file.name):
                self.assertEqual(replayjit.recommend(Spec(), rows=3),
                                 ("packed", 1, "float32"))
                self.assertEqual(replayjit.recommend(Spec(), rows=100),
                                 ("replay", 24, "bfloat16"))
                with self.assertRaisesRegex(
                        ValueError, "tuning: .*specs.0..rows.0..us: it must be"):
                    file.seek(0)
                    table["specs"][0]["rows"][0]["us"] = "fast"
                    json.dump(table, file)
                    file.flush()
                    replayjit.recommend(Spec(), rows=3)


if __name__ == "__main__":
    unittest.main()
