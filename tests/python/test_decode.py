"""The operators on the emulation device, against the recurrence."""

import array
import unittest

import replayjit
from recurrence import Batch, Shape, emulation, error, tensor, values
from replayjit import (fused_recurrent_gated_delta_rule_packed_decode,
                       fused_recurrent_kda_packed_decode,
                       fused_recurrent_linear_replayssm_decode)


class DecodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()

    def check(self, batch, most=2e-6):
        self.assertLess(error(values(batch.out), batch.expected_out()), most)

    def check_states(self, batch, slots, most=1e-6):
        states = values(batch.state)
        for slot in slots:
            self.assertLess(error(batch.state_of(states, slot),
                                  batch.requests[slot].state), most)

    def run_replay(self, shape, **keywords):
        """Two rounds of the ring; all rows flush at their ends."""
        batch = Batch(self.runtime, shape, rows=[3, -1, 0])
        for step in range(2 * shape.L):
            cursor = step % shape.L
            batch.set_cursor([cursor] * 3)
            batch.next_tokens()
            result = fused_recurrent_linear_replayssm_decode(
                **batch.replay_inputs(), **keywords)
            self.assertEqual(result, (batch.out, batch.state))
            self.check(batch)
            if cursor == shape.L - 1:
                self.check_states(batch, [3, 0])
        untouched = [1, 2, 4]
        for slot in untouched:
            self.assertEqual(batch.state_of(values(batch.state), slot),
                             batch.state_of(batch.start, slot))
        return batch

    def test_gated_delta_net(self):
        self.run_replay(Shape(H=1, HV=2, L=3))

    def test_kimi_delta_attention(self):
        self.run_replay(Shape(H=1, HV=2, L=3, is_kda=True))

    def test_programmatic_launches(self):
        """They wait in time, called and bound."""
        for word in ("late", "early"):
            batch = self.run_replay(Shape(H=1, HV=2, L=3),
                                    programmatic_launch=word)
            step = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                                  **batch.replay_inputs(),
                                  programmatic_launch=word)
            self.assertIn(f"programmatic_launch='{word}'", repr(step.spec))
            batch.set_cursor([0] * 3)
            for _ in range(2):  # The second is not checked.
                batch.next_tokens()
                step()
                self.check(batch)
                batch.set_cursor([1] * 3)

    def test_bounded_gate_with_prefix_rings(self):
        shape = Shape(H=2, HV=2, L=3, is_kda=True, lower_bound=-2.0)
        self.run_replay(shape, lower_bound=-2.0, prefix_gate_cache=True)

    def test_rebuild_readout_rounds_to_tf32(self):
        shape = Shape(H=1, HV=2, L=2)
        batch = Batch(self.runtime, shape, rows=[1])
        for cursor in range(2):
            batch.set_cursor([cursor])
            fused_recurrent_linear_replayssm_decode(**batch.replay_inputs(),
                                                    readout="rebuild")
            expected = batch.expected_out()
            batch.next_tokens()
        rounding = error(values(batch.out), expected)
        self.assertLess(rounding, 5e-3)
        self.assertGreater(rounding, 1e-6)  # or another readout ran

    def test_circular_rings_keep_the_newest_token(self):
        shape = Shape(H=2, HV=2, L=3, is_kda=True, lower_bound=-2.0)
        batch = Batch(self.runtime, shape, rows=[1, 2])
        base = tensor(self.runtime, [0, 0], 2, dtype="int32")
        force = tensor(self.runtime, [0, 0], 2, dtype="int32")
        cursor, start = 0, 0
        for step in range(8):
            forced = step == 7
            batch.set_cursor([cursor] * 2)
            base.write(array.array("i", [start] * 2))
            force.write(array.array("i", [forced] * 2))
            batch.next_tokens()
            fused_recurrent_linear_replayssm_decode(
                **batch.replay_inputs(), lower_bound=-2.0, cache_base=base,
                circular_replay=True, prefix_gate_cache=True,
                predecayed_k_cache=True, force_flush=force)
            self.check(batch, most=1e-5)
            if cursor == shape.L - 1:
                cursor, start = 1, (start + cursor) % shape.L
            else:
                cursor += 1
        self.check_states(batch, [1, 2], most=1e-5)

    def test_forced_flush_and_cursors_of_their_own(self):
        batch = Batch(self.runtime, Shape(L=4), rows=[4, 1])
        force = tensor(self.runtime, [0, 0], 2, dtype="int32")
        for cursors, forced in [((0, 0), (0, 0)), ((1, 1), (1, 0)),
                                ((0, 2), (0, 0)), ((1, 3), (1, 0))]:
            batch.set_cursor(cursors)
            force.write(array.array("i", forced))
            batch.next_tokens()
            fused_recurrent_linear_replayssm_decode(**batch.replay_inputs(),
                                                    force_flush=force)
            self.check(batch)
        self.check_states(batch, [4, 1])

    def test_strides_and_offsets(self):
        """Rows and slots far apart and off 16 bytes; a column of a block
        table."""
        shape = Shape(H=1, HV=2, L=1)
        batch = Batch(self.runtime, shape, rows=[2, 0])
        plain = values(batch.mixed)
        pitch = shape.columns + 3
        wide = tensor(self.runtime, [9.0] + sum(
            (plain[row * shape.columns:(row + 1) * shape.columns] + [9.0] * 3
             for row in range(2)), []), 2 * pitch + 1)
        state_pitch = batch.state_size + 5
        states = tensor(self.runtime, sum(
            (batch.state_of(batch.start, slot) + [5.0] * 5
             for slot in range(batch.slots)), []), batch.slots * state_pitch)
        table = tensor(self.runtime, [2, 77, 0, 77], 4, dtype="int64")
        inputs = batch.replay_inputs()
        inputs.update(
            mixed_qkv=wide.view((2, shape.columns), (pitch, 1), offset=1),
            initial_state=states.view(
                (batch.slots, shape.HV, shape.V, shape.K),
                (state_pitch, shape.V * shape.K, shape.K, 1)),
            ssm_state_indices=table.view((2,), (2,)))
        fused_recurrent_linear_replayssm_decode(**inputs)
        self.check(batch)
        found = values(states)
        for slot in (2, 0):
            at = slot * state_pitch
            self.assertLess(error(found[at:at + batch.state_size],
                                  batch.requests[slot].state), 1e-6)

    def test_separate_queries_keys_and_values(self):
        shape = Shape(H=1, HV=2, L=1)
        batch = Batch(self.runtime, shape, rows=[2, 0])
        row = lambda sizes, offset: batch.mixed.view(
            (2, *sizes), (shape.columns, sizes[1], 1), offset)
        inputs = batch.replay_inputs()
        inputs["mixed_qkv"] = (row((1, 16), 0), row((1, 16), 16),
                               row((2, 32), 32))
        fused_recurrent_linear_replayssm_decode(**inputs)
        self.check(batch)

    def test_indices_of_rings_destinations_and_snapshots(self):
        shape = Shape(L=2)
        batch = Batch(self.runtime, shape, rows=[3, 1])
        index = lambda *slots: tensor(self.runtime, slots, 2, dtype="int32")
        keywords = dict(ring_indices=index(0, 4), dst_indices=index(2, 1),
                        track_indices=index(-1, 4))
        for cursor in range(2):
            batch.set_cursor([cursor] * 2)
            batch.next_tokens()
            fused_recurrent_linear_replayssm_decode(**batch.replay_inputs(),
                                                    **keywords)
            self.check(batch)
        states = values(batch.state)
        for slot, request in [(2, 3), (1, 1), (4, 1)]:
            self.assertLess(error(batch.state_of(states, slot),
                                  batch.requests[request].state), 1e-6)
        self.assertEqual(batch.state_of(states, 3),
                         batch.state_of(batch.start, 3))

    def test_destinations_and_snapshots_of_packed_decode(self):
        batch = Batch(self.runtime, Shape(), rows=[3, 1])
        index = lambda *slots: tensor(self.runtime, slots, 2, dtype="int32")
        fused_recurrent_gated_delta_rule_packed_decode(
            **batch.inputs(), dst_indices=index(0, 2),
            track_indices=index(-1, 4))
        self.check(batch)
        states = values(batch.state)
        for slot, request in [(0, 3), (2, 1), (4, 1)]:
            self.assertLess(error(batch.state_of(states, slot),
                                  batch.requests[request].state), 1e-6)
        for slot in (3, 1):
            self.assertEqual(batch.state_of(states, slot),
                             batch.state_of(batch.start, slot))

    def test_more_rings_than_states_and_a_base_that_does_not_count(self):
        batch = Batch(self.runtime, Shape(L=2), rows=[3, 1])
        s, rings = batch.shape, 8
        batch.d = self.runtime.empty("float32", rings, s.HV, s.L, s.V)
        batch.k = self.runtime.empty("float32", rings, s.H, s.L, s.K)
        batch.g = self.runtime.empty("float32", rings, s.HV, s.L)
        base = tensor(self.runtime, [1, 1], 2, dtype="int32")
        for cursor in range(2):
            batch.set_cursor([cursor] * 2)
            batch.next_tokens()
            fused_recurrent_linear_replayssm_decode(**batch.replay_inputs(),
                                                    cache_base=base)
            self.check(batch)
        self.check_states(batch, [3, 1])

    def test_bfloat16_tokens(self):
        batch = Batch(self.runtime, Shape(L=2), rows=[3, 1], dtype="bfloat16")
        fused_recurrent_linear_replayssm_decode(**batch.replay_inputs())
        self.check(batch, most=5e-3)  # the output's own rounding

    def test_gates_and_parameters_of_types_of_their_own(self):
        """Each tensor is read in its own type: the state stays as near."""
        for own, facts in [
                (dict(b="float32", dt_bias="bfloat16"), (1, 0, 0, 1)),
                (dict(a="float32", A_log="bfloat16"), (0, 1, 1, 0))]:
            for is_kda in (False, True):
                with self.subTest(own=own, is_kda=is_kda):
                    batch = Batch(self.runtime, Shape(L=1, is_kda=is_kda),
                                  rows=[3, 1], dtype="bfloat16", own=own)
                    step = replayjit.bind(
                        fused_recurrent_linear_replayssm_decode,
                        **batch.replay_inputs())
                    spec = step.spec
                    self.assertEqual((spec.gate_type, spec.beta_type,
                                      spec.param_type, spec.bias_type),
                                     facts)
                    step()
                    self.check(batch, most=5e-3)
                    self.check_states(batch, [3, 1])

    def test_halves_beside_bfloat16_tokens(self):
        batch = Batch(self.runtime, Shape(L=1), rows=[3, 1], dtype="bfloat16",
                      own=dict(a="float16", A_log="float16", dt_bias="float16"))
        fused_recurrent_linear_replayssm_decode(**batch.replay_inputs())
        self.check(batch, most=5e-3)
        self.check_states(batch, [3, 1])

    def test_gates_and_betas_of_other_forms(self):
        """A decay that is given as its logarithm, a bound, a beta up to 2 and one
        that is given, with and without a ring."""
        for is_kda in (False, True):
            for form in (dict(log_decay=True), dict(beta="twice-sigmoid"),
                         dict(beta="given", log_decay=True),
                         dict(lower_bound=-2.0)):
                with self.subTest(is_kda=is_kda, **form):
                    batch = Batch(self.runtime, Shape(L=2, is_kda=is_kda, **form),
                                  rows=[3, 1])
                    none = (dict(A_log=None, dt_bias=None) if "log_decay" in form
                            else {})
                    for cursor in range(2):
                        batch.set_cursor([cursor] * 2)
                        batch.next_tokens()
                        fused_recurrent_linear_replayssm_decode(
                            **{**batch.replay_inputs(), **none}, **form)
                        self.check(batch)
                    self.check_states(batch, [3, 1])
                    batch.next_tokens()
                    inputs = {**batch.inputs(), **none}
                    packed = fused_recurrent_gated_delta_rule_packed_decode
                    if is_kda:
                        packed = fused_recurrent_kda_packed_decode
                        flat = batch.shape.HV * batch.shape.K
                        inputs["a"] = batch.a.view((2, flat), (flat, 1))
                        if not none:
                            inputs["dt_bias"] = batch.dt_bias.view((flat,), (1,))
                    packed(**inputs, **form)
                    self.check(batch)
                    self.check_states(batch, [3, 1])

    def test_prefix_rings_of_shared_keys_and_keys_of_the_caller(self):
        shape = Shape(H=1, HV=2, L=3, is_kda=True, lower_bound=-2.0)
        self.run_replay(shape, lower_bound=-2.0, prefix_gate_cache=True)
        step = replayjit.bind(
            fused_recurrent_linear_replayssm_decode,
            **{**Batch(self.runtime, Shape(H=2, HV=2, is_kda=True),
                       rows=[1]).replay_inputs(),
               "use_qk_l2norm_in_kernel": False},
            lower_bound=-2.0, prefix_gate_cache=True, predecayed_k_cache=True,
            unit_keys=True)
        self.assertEqual(step.spec.has_unit_keys, 1)

    def test_packed_decode(self):
        batch = Batch(self.runtime, Shape(), rows=[3, -1, 1])
        for _ in range(3):
            batch.next_tokens()
            fused_recurrent_gated_delta_rule_packed_decode(**batch.inputs())
            self.check(batch)
            self.check_states(batch, [3, 1])

    def test_packed_decode_of_kimi_delta_attention(self):
        shape = Shape(is_kda=True)
        batch = Batch(self.runtime, shape, rows=[3, 1])
        inputs = batch.inputs()
        flat = shape.HV * shape.K
        inputs.update(a=batch.a.view((2, flat), (flat, 1)),
                      dt_bias=batch.dt_bias.view((flat,), (1,)))
        for _ in range(2):
            batch.next_tokens()
            fused_recurrent_kda_packed_decode(**inputs)
            self.check(batch)
            self.check_states(batch, [3, 1])

    def test_bound_launch(self):
        batch = Batch(self.runtime, Shape(L=2), rows=[3, 1])
        step = replayjit.bind(fused_recurrent_linear_replayssm_decode,
                              **batch.replay_inputs())
        for round_ in range(4):
            batch.set_cursor([round_ % 2] * 2)
            batch.next_tokens()
            self.assertEqual(step(), (batch.out, batch.state))
            self.check(batch)
        self.check_states(batch, [3, 1])
        kernel = self.runtime.prepare(step.spec, rows=2)
        self.assertEqual(kernel.info, step.kernel.info)
        self.assertEqual(step.spec.head_dim_v, 32)

    def test_tensors_of_another_framework(self):
        """dtype is an object that prints as torch's does; shape a list."""

        class Type:
            def __init__(self, name):
                self.name = name

            def __str__(self):
                return "torch." + self.name

        class Other:
            def __init__(self, tensor):
                self.data_ptr, self.stride = tensor.data_ptr, tensor.stride
                self.shape, self.device = list(tensor.shape), tensor.device
                self.dtype = Type(tensor.dtype)

        batch = Batch(self.runtime, Shape(L=1), rows=[3, 1], dtype="bfloat16")
        inputs = {
            name: Other(one) if isinstance(one, replayjit.Tensor) else one
            for name, one in batch.replay_inputs().items()}
        fused_recurrent_linear_replayssm_decode(**inputs)
        self.check(batch, most=5e-3)

    def test_no_rows(self):
        batch = Batch(self.runtime, Shape(), rows=[])
        fused_recurrent_linear_replayssm_decode(**batch.replay_inputs())
        self.assertEqual(values(batch.state), batch.start)


if __name__ == "__main__":
    unittest.main()
