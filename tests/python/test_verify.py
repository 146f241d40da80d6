"""Draft tokens on the emulation device, against the recurrence of those that
hold."""

import array
import unittest

from recurrence import Batch, Shape, emulation, error, tensor, values
from replayjit import Spec, advance, verify


class VerifyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()

    def launch(self, batch, slots, T, **keywords):
        """A Batch lists tokens; here some of them are of one row."""
        rows = len(slots)
        inputs = batch.replay_inputs()
        inputs["ssm_state_indices"] = tensor(self.runtime, slots, rows,
                                             dtype="int32")
        for name in ("write_pos", "cache_base"):
            inputs[name] = tensor(self.runtime, keywords.pop(name), rows,
                                  dtype="int32")
        result = verify(**inputs, max_spec_len=T, **keywords)
        self.assertEqual(result, (batch.out, batch.state))

    def check_accepted(self, T, shape, accepted, **keywords):
        """Of one row's tokens `accepted[i]` hold after launch i."""
        batch = Batch(self.runtime, shape, rows=[3] * T)
        cursor, base = 0, 0
        for hold in accepted:
            batch.next_tokens()
            self.launch(batch, [3], T, write_pos=[cursor], cache_base=[base],
                        **keywords)
            request = batch.requests[3]
            start, expected = list(request.state), []
            for at, token in enumerate(batch.tokens):
                if at == hold:
                    held = list(request.state)
                expected += request.step(token)
            if hold < T:
                request.state = held
            self.assertLess(error(values(batch.out), expected), 2e-6)
            states = batch.state_of(values(batch.state), 3)
            spec = Spec(family="verify", is_circular=True, ring_depth=shape.L,
                        num_tokens=T)
            after = advance(spec, cursor, base, accepted=hold)
            if cursor > 0 and cursor + 2 * T > shape.L:
                self.assertLess(error(states, start), 1e-6)
                base, cursor = (base + cursor) % shape.L, 0
            cursor += hold
            self.assertEqual(after, (cursor, base))

    def test_gated_delta_net(self):
        self.check_accepted(2, Shape(L=5), [2, 0, 1, 2, 1, 2])

    def test_kimi_delta_attention(self):
        shape = Shape(H=2, HV=2, L=7, is_kda=True)
        self.check_accepted(3, shape, [3, 1, 2, 0, 3])

    def test_predecayed_rings(self):
        shape = Shape(H=2, HV=2, L=5, is_kda=True, lower_bound=-2.0)
        self.check_accepted(2, shape, [2, 1, 2, 2], lower_bound=-2.0,
                            prefix_gate_cache=True, predecayed_k_cache=True)

    def test_rows_of_some_tokens(self):
        """The first has one of two, the second none, the third both."""
        batch = Batch(self.runtime, Shape(L=4), rows=[3, -1, -1, -1, 0, 0])
        counts = tensor(self.runtime, [1, 0, 2], 3, dtype="int32")
        self.launch(batch, [3, 2, 0], 2, write_pos=[0] * 3, cache_base=[0] * 3,
                    num_tokens=counts)
        self.assertLess(error(values(batch.out), batch.expected_out()), 2e-6)

    def test_ragged_rows(self):
        batch = Batch(self.runtime, Shape(L=6), rows=[3, 0, 0, 0])
        offsets = tensor(self.runtime, [0, 1, 1, 4], 4, dtype="int32")
        self.launch(batch, [3, 2, 0], 3, write_pos=[0] * 3, cache_base=[0] * 3,
                    query_start_loc=offsets)
        self.assertLess(error(values(batch.out), batch.expected_out()), 2e-6)

    def test_refused(self):
        batch = Batch(self.runtime, Shape(L=4), rows=[3, 3, 0])
        start = dict(write_pos=[0, 0], cache_base=[0, 0])
        with self.assertRaisesRegex(ValueError, "3 tokens are not allowed; 2 "
                                    "rows of max_spec_len = 2 have 4"):
            self.launch(batch, [3, 0], 2, **start)
        two = tensor(self.runtime, [1, 1, 1], 3, dtype="int32")
        with self.assertRaisesRegex(ValueError, "num_tokens: it must be None"):
            self.launch(batch, [3, 0], 2, num_tokens=two, query_start_loc=two,
                        **start)
        batch = Batch(self.runtime, Shape(L=4), rows=[3] * 5)
        with self.assertRaisesRegex(ValueError, "ringDepth: 4 is not allowed "
                                    "for the verify family with numTokens = 5"):
            self.launch(batch, [3], 5, write_pos=[0], cache_base=[0])


if __name__ == "__main__":
    unittest.main()
