"""Whatever stands in the place of an argument, a call does what it says or is a
ValueError."""

import unittest

import replayjit
from recurrence import Batch, Shape, emulation, tensor

#: None of these is a tensor, a spec or a list of such.
WRONG = (None, True, -1, 5, 1.5, 2**70, "x", b"x", [], [None], [5, "x"], {},
         {"x": None}, object())


class ArgumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()
        cls.batch = Batch(cls.runtime, Shape(), rows=[1, 2])

    def numbers(self, *values):
        return tensor(self.runtime, values, len(values), dtype="int32")

    def look_at(self, call, required, **arguments):
        """`arguments` are right, each; those in `required` are not right as any
        of WRONG."""
        call(**arguments)
        for name in arguments:
            for wrong in WRONG:
                with self.subTest(f"{call.__name__}({name}={wrong!r})"):
                    try:
                        call(**{**arguments, name: wrong})
                    except ValueError as problem:
                        self.assertNotEqual(str(problem), "")
                    else:
                        self.assertNotIn(name, required.split())

    def test_operators(self):
        batch = self.batch
        options = dict(cache_base=None, lower_bound=None, circular_replay=False,
                       prefix_gate_cache=False, predecayed_k_cache=False,
                       ring_indices=self.numbers(1, 2),
                       dst_indices=self.numbers(1, 2),
                       track_indices=self.numbers(-1, -1),
                       force_flush=self.numbers(0, 0), layer=0, stream=None,
                       error_word=replayjit.ErrorWord(self.runtime),
                       null_slot="negative", beta_round=False,
                       readout="output-only", batch_invariant=False,
                       check_rows=False, log_decay=False, beta="sigmoid",
                       unit_keys=False, programmatic_launch="late")
        self.look_at(
            replayjit.fused_recurrent_linear_replayssm_decode,
            "mixed_qkv a b A_log dt_bias initial_state d_cache k_cache g_cache "
            "out ssm_state_indices write_pos", **batch.replay_inputs(), **options)
        self.look_at(
            replayjit.fused_recurrent_gated_delta_rule_packed_decode,
            "mixed_qkv a b A_log dt_bias initial_state out ssm_state_indices",
            **batch.inputs(), dst_indices=self.numbers(1, 2),
            track_indices=self.numbers(-1, -1))
        layer = (batch.state, batch.d, batch.k, batch.g)
        self.look_at(replayjit.LayerTable, "layers", layers=[layer])
        self.look_at(
            replayjit.materialize, "layers src_indices dst_indices write_pos",
            layers=replayjit.LayerTable([layer]), src_indices=self.numbers(1, 2),
            dst_indices=self.numbers(0, 3), write_pos=self.numbers(0, 0),
            mask=None, ring_indices=None, cache_base=None,
            prefix_gate_cache=False, predecayed_k_cache=False,
            null_slot="negative", error_word=None, stream=None,
            check_rows=False)
        self.look_at(replayjit.bind, "function",
                     function=replayjit.materialize, layers=replayjit.LayerTable(
                         [layer]), src_indices=self.numbers(1),
                     dst_indices=self.numbers(0), write_pos=self.numbers(0))

    def test_steps(self):
        batch = self.batch
        layers = [(batch.state, batch.d, batch.k, batch.g)]
        spec = replayjit.bind(
            replayjit.fused_recurrent_linear_replayssm_decode,
            **batch.replay_inputs(), force_flush=self.numbers(0, 0)).spec
        cursors = self.numbers(0, 0, 0)
        self.look_at(replayjit.StatePool, "groups write_pos",
                     groups=[(spec, layers)], write_pos=cursors,
                     cache_base=None, batch_invariant=False, stream=None,
                     check_rows=True)
        pool = replayjit.StatePool([(spec, layers)], cursors)
        self.look_at(replayjit.StepPlan, "pool", pool=pool, max_rows=2,
                     stream=None)
        plan = replayjit.StepPlan(pool, 2)
        keys, rows = self.numbers(0, 1), self.numbers(0, 0)
        groups = {"state": self.numbers(1, 2)}
        for call in (plan.begin, plan.materialize, plan.copy,
                     plan.prepare_extend, plan.require_flushed,
                     plan.begin_captured):
            there = dict(step=1, keys=keys, groups=groups, stream=None)
            if call in (plan.begin, plan.begin_captured):
                there.update(flush_mask=rows, fresh=rows, seq_len=rows,
                             no_flush_past=rows)
            if call != plan.begin:
                del there["step"]
            self.look_at(call, "keys groups", **there)
        plan.begin(1, keys, groups)
        self.look_at(plan.commit, "", step=1, advance_by=None, stream=None)
        self.look_at(plan.set_step, "", step=1, live=1, stream=None)
        self.look_at(plan.rows, "", group=0, begin=0, count=1)

        def step(**arguments):
            with replayjit.plan_step(**arguments):
                pass

        self.look_at(step, "plan keys groups", plan=plan, step=1, keys=keys,
                     groups=groups)
        self.look_at(replayjit.poll_errors, "source", source=pool)

    def test_runtime(self):
        spec = replayjit.Spec(num_key_heads=1, num_value_heads=1, head_dim_k=16,
                              head_dim_v=16)
        whole = self.runtime.empty("float32", 2, 2)
        self.look_at(self.runtime.prepare, "spec", spec=spec, rows=0,
                     stream=None)
        self.look_at(self.runtime.prepare_all, "", requests=[(spec, 1)],
                     progress=None)

        def empty(dtype, size, name):
            self.runtime.empty(dtype, size, 2, name=name)

        self.look_at(empty, "dtype", dtype="float32", size=2, name="x")
        self.look_at(whole.view, "shape", shape=(2,), strides=(2,), offset=0)
        self.look_at(whole.write, "", data=bytes(16))
        self.look_at(self.runtime.synchronize, "", stream=None)
        self.look_at(replayjit.ErrorWord, "runtime", runtime=self.runtime)
        self.look_at(replayjit.Runtime.emulation, "chip", chip="sm_90a",
                     diagnose=None, must_hit=False, workers=1, patience_ms=0)

    def test_sizes(self):
        spec = replayjit.Spec()
        self.look_at(replayjit.supports, "spec", spec=spec, chip="sm_90a")
        self.look_at(replayjit.slot_bytes, "spec", spec=spec)
        self.look_at(replayjit.recommend, "spec", spec=spec, rows=1,
                     lower_bound=-5.0)
        self.look_at(replayjit.pool_bytes, "", specs=[spec], states=1,
                     rings=1, num_keys=1)
        self.look_at(replayjit.states_for_budget, "specs budget", specs=[spec],
                     rings=1, num_keys=1, budget=10**9)
        self.look_at(replayjit.Spec.from_model, "model", model="qwen3-next",
                     tensor_parallel=1)


if __name__ == "__main__":
    unittest.main()
