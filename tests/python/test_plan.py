"""Steps whose cursors a plan keeps, in the emulation, against the recurrence."""

import array
import gc
import unittest
import weakref
from unittest import mock

import replayjit
from recurrence import Batch, Shape, emulation, error, tensor, values
from replayjit import fused_recurrent_linear_replayssm_decode, plan_step
from replayjit._library import library

KEYS = 6


class PlanTest(unittest.TestCase):
    """Two layers of one shape; row r of a step is request r, whose cursor has
    key r + 2."""

    def setUp(self):
        self.runtime = emulation()
        shape = Shape(L=3)
        self.rows = [3, 1]
        self.layers = [Batch(self.runtime, shape, self.rows, seed=seed)
                       for seed in (1, 2)]
        self.cursors = tensor(self.runtime, [0] * KEYS, KEYS, dtype="int32")
        force = tensor(self.runtime, [0, 0], 2, dtype="int32")
        spec = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                              **self.layers[0].replay_inputs(),
                              force_flush=force).spec
        self.spec = spec
        self.pool = replayjit.StatePool(self.groups(), self.cursors)
        self.plan = replayjit.StepPlan(self.pool, max_rows=2)
        self.keys = self.numbers(2, 3)
        self.slots = {"state": self.numbers(*self.rows)}

    def groups(self):
        return [(self.spec, [(one.state, one.d, one.k, one.g)
                             for one in self.layers])]

    def numbers(self, *values):
        return tensor(self.runtime, values, len(values), dtype="int32")

    def launch(self):
        for layer in self.layers:
            layer.next_tokens()
            inputs = {**layer.replay_inputs(), **self.plan.rows()}
            fused_recurrent_linear_replayssm_decode(**inputs)

    def check_outputs(self):
        for layer in self.layers:
            self.assertLess(error(values(layer.out), layer.expected_out()), 2e-6)

    def check_state(self, slot, row):
        for layer in self.layers:
            found = layer.state_of(values(layer.state), slot)
            self.assertLess(error(found, layer.requests[self.rows[row]].state),
                            1e-6)

    def test_steps(self):
        """Cursors move once a step, whatever the number of layers; a forced
        flush starts over."""
        expected = [[1, 1], [0, 2], [1, 0], [2, 1]]
        for step, cursors in enumerate(expected):
            mask = self.numbers(int(step == 1), 0)
            with plan_step(self.plan, step + 1, self.keys, self.slots,
                           flush_mask=mask) as plan:
                self.assertIs(plan, self.plan)
                self.launch()
            self.check_outputs()
            self.assertEqual(values(self.cursors), [0, 0, *cursors, 0, 0])
        self.assertIsNone(self.pool.poll())
        # A snapshot of both, then the rings into their own states.
        self.plan.materialize(self.keys, dict(self.slots,
                                              dst=self.numbers(0, 4)))
        for slot, row in [(0, 0), (4, 1)]:
            self.check_state(slot, row)
        self.assertEqual(values(self.cursors), [0, 0, 2, 1, 0, 0])
        self.plan.prepare_extend(self.keys, self.slots)
        for slot, row in [(3, 0), (1, 1)]:
            self.check_state(slot, row)
        self.assertEqual(values(self.cursors), [0] * KEYS)
        self.plan.require_flushed(self.keys, self.slots)
        self.assertIsNone(self.pool.poll())

    def test_a_step_that_fails_moves_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with plan_step(self.plan, 1, self.keys, self.slots):
                1 / 0
        self.assertEqual(values(self.cursors), [0] * KEYS)
        with plan_step(self.plan, 2, self.keys, self.slots):
            self.launch()
        self.plan.commit(2)  # again: nothing
        self.check_outputs()
        self.assertEqual(values(self.cursors), [0, 0, 1, 1, 0, 0])

    def test_fewer_rows_and_fresh_ones(self):
        self.cursors.write(array.array("i", [0, 0, 2, 2, 0, 0]))
        with plan_step(self.plan, 1, self.numbers(2),
                       {"state": self.numbers(3)}, fresh=self.numbers(1)):
            buffers = self.plan.rows()
            self.assertEqual(values(buffers["ssm_state_indices"]), [3, -1])
            self.assertEqual(values(self.plan.rows(count=1)["write_pos"]), [0])
        self.assertEqual(values(self.cursors), [0, 0, 1, 2, 0, 0])

    def test_accepted_drafts(self):
        with plan_step(self.plan, 1, self.keys, self.slots,
                       advance_by=self.numbers(2, 0)):
            pass
        self.assertEqual(values(self.cursors), [0, 0, 2, 0, 0, 0])

    def test_captured(self):
        """begin and commit as a graph has them: a step of 0 moves nothing."""
        def replay():
            self.plan.begin_captured(self.keys, self.slots)
            self.plan.commit_captured()

        replay()
        self.assertEqual(values(self.cursors), [0] * KEYS)
        self.plan.set_step(1, live=1)
        replay()
        self.assertEqual(values(self.cursors), [0, 0, 1, 0, 0, 0])

    def test_what_a_graph_reads_lives_as_long_as_the_plan(self):
        """Also of a capture that is not the last call, and where the dict is
        used again; what was not captured is dropped."""
        group = {}

        def captured():
            given = [self.numbers(2, 3), self.numbers(3, 1), self.numbers(0, 0),
                     self.numbers(1, 1)]
            keys, slots, mask, advance_by = given
            group["state"] = slots
            self.plan.begin_captured(keys, group, flush_mask=mask)
            self.plan.commit_captured(advance_by)
            return [weakref.ref(tensor) for tensor in given]

        kept = captured() + captured()
        group.clear()
        passing = self.numbers(2, 3)
        self.plan.begin(1, passing, self.slots)
        passing = weakref.ref(passing)
        self.plan.begin(2, self.keys, self.slots)
        gc.collect()
        self.assertIsNone(passing())
        self.assertNotIn(None, [one() for one in kept])
        self.plan = None
        gc.collect()
        self.assertEqual([one() for one in kept], [None] * 8)

    def test_the_library_knows_the_stream_of_a_pool(self):
        """It asks that one when it makes plans of the pool."""
        heard, adopt = [], library().replayjit_pool_adopt

        def spy(*arguments):
            heard.append(arguments[4]._obj.stream)
            return adopt(*arguments)

        with mock.patch.object(library(), "replayjit_pool_adopt", spy):
            for stream in (None, 5):
                replayjit.StatePool(self.groups(), self.cursors, stream=stream)
        self.assertEqual(heard, [None, 5])

    def test_what_any_operation_under_capture_reads_lives_as_long(self):
        operations = {
            "begin": lambda given: self.plan.begin(1, *given),
            "materialize": lambda given: self.plan.materialize(*given),
            "copy": lambda given: self.plan.copy(*given),
            "prepare_extend": lambda given: self.plan.prepare_extend(*given),
            "require_flushed": lambda given: self.plan.require_flushed(*given)}
        capturing = []  # Streams; the emulation has one, None.

        def is_capturing(_, stream, answer):
            answer._obj.value = stream in capturing

        for name, operation in operations.items():
            with self.subTest(name), mock.patch.object(
                    library(), "replayjit_device_is_capturing", is_capturing):
                kept = []
                for under_capture in ([None], []):
                    capturing[:] = under_capture
                    keys, slots = self.numbers(2, 3), self.numbers(3, 1)
                    operation((keys, {"state": slots, "dst": slots}
                               if name in ("materialize", "copy")
                               else {"state": slots}))
                    kept.append([weakref.ref(keys), weakref.ref(slots)])
                del keys, slots
                self.plan.require_flushed(self.keys, self.slots)
                gc.collect()
                captured, passing = ([one() for one in ones] for ones in kept)
                self.assertNotIn(None, captured)
                self.assertEqual(passing, [None, None])

    def test_what_commit_reads_under_capture_lives_as_long(self):
        def is_capturing(_, stream, answer):
            answer._obj.value = True

        advance_by = self.numbers(1, 1)
        self.plan.begin(1, self.keys, self.slots)
        with mock.patch.object(library(), "replayjit_device_is_capturing",
                               is_capturing):
            self.plan.commit(1, advance_by)
        advance_by = weakref.ref(advance_by)
        gc.collect()
        self.assertIsNotNone(advance_by())

    def test_copy_reports_a_ring_that_is_not_empty(self):
        self.cursors.write(array.array("i", [0, 0, 1, 0, 0, 0]))
        self.plan.copy(self.keys, dict(self.slots, dst=self.numbers(0, 4)))
        found = self.pool.poll()
        self.assertEqual((found.count, found.kind, found.row, found.value),
                         (1, "not flushed", 0, 1))
        states = values(self.layers[0].state)
        start = self.layers[0].start
        copied = lambda slot: self.layers[0].state_of(states, slot)
        self.assertEqual(copied(4), self.layers[0].state_of(start, 1))
        self.assertEqual(copied(0), self.layers[0].state_of(start, 0))
        self.pool.clear()
        self.assertIsNone(self.pool.poll())

    def test_reset(self):
        self.plan.begin(1, self.keys, self.slots)
        self.cursors.write(array.array("i", [1] * KEYS))
        self.pool.reset()
        with self.assertRaisesRegex(replayjit.InvalidArgument, "step: 1 is not allowed"):
            self.plan.commit(1)
        self.assertEqual(values(self.cursors), [0] * KEYS)

    def test_errors(self):
        for sentence, act in [
                ("groups: 2 are not allowed; the pool has 1",
                 lambda: self.plan.begin(1, self.keys, [self.slots] * 2)),
                ("groups[0].state: shape (3,) is not allowed; it must be (2)",
                 lambda: self.plan.begin(1, self.keys, {
                     "state": self.numbers(1, 2, 3)})),
                ("drop: there is no such input; there are flush_mask, fresh, "
                 "seq_len, no_flush_past, drop_newest",
                 lambda: self.plan.begin(1, self.keys, self.slots,
                                         drop=self.keys)),
                ("groups[0].trak: there is no such index; there are state, "
                 "ring, dst, track",
                 lambda: self.plan.begin(1, self.keys, dict(
                     self.slots, trak=self.keys))),
                ("groups[0]: 'state' is not allowed; it must be a dict of "
                 "tensors", lambda: self.plan.copy(self.keys, ["state"])),
                ("groups: 3 is not allowed; it must be a list",
                 lambda: self.plan.copy(self.keys, 3)),
                (f"step: {2**64 + 1} is not allowed; it must be an integer from "
                 f"{-2**63} to {2**63 - 1}",
                 lambda: self.plan.begin(2**64 + 1, self.keys, self.slots)),
                (f"step: None is not allowed; it must be an integer from "
                 f"{-2**63} to {2**63 - 1}", lambda: self.plan.commit(None)),
                (f"live: {2**32 + 1} is not allowed; it must be an integer from "
                 f"{-2**31} to {2**31 - 1}",
                 lambda: self.plan.set_step(1, 2**32 + 1)),
                (f"max_rows: {2**32 + 4} is not allowed; it must be an integer "
                 f"from {-2**31} to {2**31 - 1}",
                 lambda: replayjit.StepPlan(self.pool, 2**32 + 4)),
                (f"count: {2**32 + 1} is not allowed; it must be an integer from "
                 f"{-2**31} to {2**31 - 1}",
                 lambda: self.plan.rows(count=2**32 + 1)),
                (f"stream: 's' is not allowed; it must be an integer from 0 to "
                 f"{2**64 - 1}",
                 lambda: self.plan.commit(1, stream="s")),
                ("pool: 5 is not allowed; it must be a replayjit.StatePool",
                 lambda: replayjit.StepPlan(5, 2)),
                ("groups[0]: 1 elements are not allowed; there must be 2",
                 lambda: replayjit.StatePool([(replayjit.Spec(),)],
                                             self.cursors)),
                ("batch_invariant: 7 is not allowed; it must be true or false",
                 lambda: replayjit.StatePool(
                     self.groups(), self.cursors, batch_invariant=7)),
                ("groups[0]: a spec of other shapes or types than those of its "
                 "layers is not allowed",
                 lambda: replayjit.StatePool(
                     [(replayjit.Spec(), [(one.state, one.d, one.k, one.g)
                                          for one in self.layers])],
                     self.cursors))]:
            with self.subTest(sentence):
                with self.assertRaises(ValueError) as caught:
                    act()
                self.assertEqual(str(caught.exception), sentence)
        with self.assertRaisesRegex(ValueError, "step: 0 is not allowed"):
            self.plan.begin(0, self.keys, self.slots)
        elsewhere = tensor(emulation(), [2, 3], 2, dtype="int32")
        for name, act in [
                ("keys", lambda: self.plan.copy(elsewhere, self.slots)),
                (r"groups\[0\].dst", lambda: self.plan.copy(
                    self.keys, dict(self.slots, dst=elsewhere))),
                ("fresh", lambda: self.plan.begin(1, self.keys, self.slots,
                                                  fresh=elsewhere)),
                ("advance_by", lambda: self.plan.commit(1, elsewhere)),
                ("cache_base", lambda: replayjit.StatePool(
                    self.groups(), self.cursors, cache_base=elsewhere))]:
            with self.assertRaisesRegex(ValueError, f"^{name}: device .* is not "
                                                    "allowed; it must be .*, "
                                                    "where write_pos is$"):
                act()

    def test_what_is_not_given_may_be_none(self):
        with plan_step(self.plan, 1, self.keys, dict(self.slots, track=None),
                       flush_mask=None):
            self.launch()
        self.check_outputs()


if __name__ == "__main__":
    unittest.main()
