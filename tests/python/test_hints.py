"""What is public says its types, what it raises, and what it is."""

import inspect
import os
import re
import typing
import unittest
from pathlib import Path

import replayjit
from recurrence import Batch, Shape, emulation
from replayjit import Spec


def functions():
    """(name, function, its class or None) of all that is public."""
    for name in replayjit.__all__:
        value = getattr(replayjit, name)
        if not inspect.isclass(value):
            if callable(value):
                yield name, inspect.unwrap(value), None
            continue
        for member, found in vars(value).items():
            if isinstance(found, property):
                found = found.fget
            found = getattr(found, "__func__", found)
            if inspect.isfunction(found) and (member == "__init__" or
                                              member[0] != "_"):
                yield f"{name}.{member}", found, value


class HintsTest(unittest.TestCase):
    def test_types(self):
        for name, function, owner in functions():
            with self.subTest(name):
                hints = typing.get_type_hints(function)
                signature = inspect.signature(function)
                names = [one for one in signature.parameters
                         if one not in ("self", "cls")]
                if not name.endswith("__init__"):
                    names.append("return")
                self.assertEqual([one for one in names if one not in hints], [])

    def test_what_is_raised(self):
        """Where there are arguments, the function or its class says it."""
        internal = ("Kernel.__init__", "Launch.__init__", "Error.__init__",
                    "Support.__init__")
        for name, function, owner in functions():
            takes = set(inspect.signature(function).parameters) - {"self", "cls"}
            if takes and name not in internal:
                texts = [function.__doc__ or "", (owner and owner.__doc__) or ""]
                with self.subTest(name):
                    self.assertRegex(" ".join(texts), r"\b[Rr]aises?\b")

    def test_version(self):
        source = (Path(os.environ["REPLAYJIT_SOURCE_DIR"]) /
                  "runtime/python/pyproject.toml").read_text(encoding="utf-8")
        self.assertEqual(replayjit.__version__,
                         re.search(r'^version = "(.*)"', source, re.M)[1])
        with self.assertRaisesRegex(AttributeError, "has no attribute 'versions'"):
            replayjit.versions

    def test_a_spec_is_written_as_it_is_made(self):
        spec = Spec(is_kda=True, gate="lower-bound", ring_type="bfloat16",
                    null_slot="non-positive", ring_depth=7)
        for part in ("family='replay'", "is_kda=True", "gate='lower-bound'",
                     "ring_type='bfloat16'", "ring_depth=7"):
            self.assertIn(part, repr(spec))
        self.assertEqual(eval(repr(spec)), spec)
        self.assertNotEqual(eval(repr(spec)), Spec())

    def test_other_objects_say_what_they_are(self):
        runtime = emulation()
        batch = Batch(runtime, Shape(), rows=[1, 2])
        step = replayjit.bind(replayjit.fused_recurrent_linear_replayssm_decode,
                              **batch.replay_inputs())
        table = replayjit.LayerTable([(batch.state, batch.d, batch.k, batch.g)])
        pool = replayjit.StatePool([(step.spec, table.tensors)],
                                   batch.write_pos)
        for value, told in [
                (runtime, "Runtime of emulation for sm_90a"),
                (batch.write_pos, r"Tensor int32 \(2,\) at 0x[0-9a-f]+ of emulation"),
                (step, "Launch of 2 rows"),
                (step.kernel, "Kernel for sm_90a, compiled: gdn_decode_h1_"),
                (table, "LayerTable of 1 layers"),
                (pool, "StatePool of 1 groups, 2 keys"),
                (replayjit.StepPlan(pool, 2), "StepPlan of 2 rows, .*StatePool"),
                (replayjit.ErrorWord(runtime), "ErrorWord: None"),
                (replayjit.defaults, r"Defaults\(null_slot='negative'\)")]:
            with self.subTest(told):
                self.assertRegex(repr(value), told)

    def test_targets(self):
        self.assertIn("sm_90a", replayjit.targets())
        for chip in replayjit.targets():
            self.assertTrue(replayjit.supports(Spec(), chip))

    def test_the_spec_of_a_kernel_and_what_the_cache_was_asked(self):
        runtime = emulation()
        spec = Spec(num_key_heads=1, num_value_heads=1, head_dim_k=16,
                    head_dim_v=16, ring_depth=2)
        self.assertEqual(runtime.prepare(spec, 1).spec, spec)
        self.assertEqual(list(runtime.counters),
                         ["hits", "misses", "compiles", "waits"])


class CursorTest(unittest.TestCase):
    def test_cursors_on_the_host(self):
        spec = Spec(ring_depth=3)
        walk, cursor = [], (0, 0)
        for _ in range(4):
            cursor = replayjit.advance(spec, *cursor)
            walk.append(cursor)
        self.assertEqual(walk, [(1, 0), (2, 0), (0, 0), (1, 0)])
        self.assertEqual(replayjit.advance(spec, 1, forced=True), (0, 0))
        circular = Spec(ring_depth=3, is_kda=True, num_value_heads=16,
                        gate="lower-bound", ring_format="prefix", is_circular=True)
        self.assertEqual(replayjit.advance(circular, 2, 1), (1, 0))
        with self.assertRaisesRegex(ValueError, "3 is not allowed"):
            replayjit.advance(spec, 3)

    def test_snapshots(self):
        self.assertEqual([n for n in range(1, 9)
                          if replayjit.should_flush(n, 4)], [4, 8])
        self.assertFalse(replayjit.should_flush(4, 0))
        self.assertEqual(replayjit.tokens_to_drop(10, 12), 2)
        with self.assertRaisesRegex(ValueError, "^interval: 'x' is not allowed"):
            replayjit.should_flush(1, "x")


if __name__ == "__main__":
    unittest.main()
