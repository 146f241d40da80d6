"""A number that its C field cannot hold is a ValueError, never another number."""

import ctypes
import struct
import unittest

import replayjit
from recurrence import Batch, Shape, emulation
from replayjit import Spec, _abi, fused_recurrent_linear_replayssm_decode
from replayjit._check import NUMBERS, number
from replayjit._library import library

#: Python's own names of the same types.
CODES = {ctypes.c_int32: "=i", ctypes.c_uint32: "=I", ctypes.c_int64: "=q",
         ctypes.c_uint64: "=Q", ctypes.c_size_t: "=Q"}


def fits(code, value):
    try:
        struct.pack(code, value)
    except struct.error:
        return False
    return True


class NumberTest(unittest.TestCase):
    def refuses(self, sentence, act):
        with self.assertRaises(ValueError) as caught:
            act()
        self.assertEqual(str(caught.exception), sentence)

    def test_ranges(self):
        self.assertLessEqual(set(CODES), set(NUMBERS))
        edges = {sign * 2**bits + more for bits in (0, 31, 32, 63, 64, 70)
                 for sign in (-1, 1) for more in (-1, 0, 1)}
        for kind, code in CODES.items():
            for value in edges:
                with self.subTest(f"{kind.__name__}({value})"):
                    if fits(code, value):
                        self.assertEqual(number("x", value, kind), value)
                    else:
                        self.assertRaises(ValueError, number, "x", value, kind)
        self.refuses("rows: 2147483648 is not allowed; it must be an integer "
                     "from -2147483648 to 2147483647",
                     lambda: number("rows", 2**31, ctypes.c_int32))

    def test_floats(self):
        largest = struct.unpack("<f", bytes.fromhex("ffff7f7f"))[0]
        for value in (0, 0.1, -7, largest, -largest):
            self.assertEqual(number("x", value, ctypes.c_float), value)
        for value in (float("nan"), float("inf"), -float("inf"), 2 * largest,
                      10**400, "0.1", None, True, [1.0]):
            with self.subTest(value):
                self.refuses(f"scale: {value!r} is not allowed; it must be a "
                             f"number from {-largest} to {largest}",
                             lambda: number("scale", value, ctypes.c_float))

    def test_what_is_no_integer(self):
        class Index:  # As numpy's integers are.
            def __index__(self):
                return 3

        self.assertEqual(number("x", Index(), ctypes.c_int32), 3)
        for value in (True, None, 1.0, "1", b"1", [1]):
            self.assertRaises(ValueError, number, "x", value, ctypes.c_int32)

    def test_every_field_of_a_struct(self):
        library()  # It knows the fields of arguments.
        for struct_type in _abi.STRUCTS.values():
            if struct_type is _abi.DecodeArgs:
                continue  # See there.
            for field, kind in struct_type._fields_:
                if kind in NUMBERS:
                    whole = struct_type()
                    with self.subTest(f"{struct_type.__name__}.{field}"):
                        for value in (2**64 + 1, None, "1"):
                            self.assertRaises(ValueError, setattr, whole, field,
                                              value)
                        setattr(whole, field, 1)
                        self.assertEqual(getattr(whole, field), 1)

    def test_fields(self):
        most = 2**31 - 1
        self.refuses(f"num_key_heads: {2**32 + 1} is not allowed; it must be an "
                     f"integer from {-most - 1} to {most}",
                     lambda: Spec(num_key_heads=2**32 + 1))
        self.refuses(f"num_key_heads: True is not allowed; it must be an integer "
                     f"from {-most - 1} to {most}",
                     lambda: Spec(num_key_heads=True))
        self.refuses("is_kda: 2 is not allowed; it must be true or false",
                     lambda: Spec(is_kda=2))
        spec = Spec()
        with self.assertRaisesRegex(ValueError, "^ring_depth: None is"):
            spec.ring_depth = None
        with self.assertRaisesRegex(ValueError, "^heads: there is no such field"):
            spec.heads = 3
        with self.assertRaisesRegex(ValueError, "^struct_size: there is no such"):
            Spec(struct_size=4)
        spec.gate = "lower-bound"
        self.assertEqual(spec.gate, 1)

    def test_arguments(self):
        """What wraps in C; each value would be a legal one modulo its width."""
        runtime, spec, sizes = emulation(), Spec(), replayjit.pool_bytes
        inputs = Batch(runtime, Shape(), rows=[1]).replay_inputs()
        wide, many = 2**32 + 4, 2**64 + 1
        for field, value, act in [
                ("bytes", 2**64, lambda: runtime.empty("float32", 2**62)),
                ("shape[1]", many, lambda: runtime.empty("float32", 1, many)),
                ("shape[0]", -1, lambda: runtime.empty("float32", -1)),
                ("offset", many, lambda: inputs["b"].view((1,), (1,), many)),
                ("strides[0]", many, lambda: inputs["b"].view((1,), (many,))),
                ("rows", wide, lambda: runtime.prepare(spec, wide)),
                ("requests[1][1]", wide, lambda: runtime.prepare_all(
                    [(spec, 1), (spec, wide)])),
                ("stream", many, lambda: runtime.synchronize(many)),
                ("stream", many, lambda: runtime.prepare(spec, stream=many)),
                ("stream", many, lambda: runtime.prepare_all([], stream=many)),
                ("ordinal", 2**32, lambda: replayjit.Runtime.cuda(2**32)),
                ("workers", 2**32 + 1, lambda: replayjit.Runtime.emulation(
                    workers=2**32 + 1)),
                ("tensor_parallel", 2**32 + 1, lambda: Spec.from_model(
                    "qwen3-next", 2**32 + 1)),
                ("states", many, lambda: sizes([spec], many, 1, 1)),
                ("rings", many, lambda: sizes([spec], 1, many, 1)),
                ("num_keys", many, lambda: replayjit.states_for_budget(
                    10**9, [spec], 1, many)),
                ("budget", 2**64 + 10**9, lambda: replayjit.states_for_budget(
                    2**64 + 10**9, [spec], 1, 1)),
                ("rows", wide, lambda: replayjit.recommend(spec, wide)),
                ("lower_bound", "-5", lambda: replayjit.recommend(spec, 1, "-5")),
                ("layer", wide, lambda: fused_recurrent_linear_replayssm_decode(
                    **inputs, layer=wide)),
                ("scale", "0.1", lambda: fused_recurrent_linear_replayssm_decode(
                    **{**inputs, "scale": "0.1"})),
                ("null_slot", wide, lambda:
                    fused_recurrent_linear_replayssm_decode(
                        **inputs, null_slot=wide)),
        ]:
            with self.subTest(field):
                with self.assertRaises(ValueError) as caught:
                    act()
                self.assertRegex(
                    str(caught.exception),
                    f"^{field}: {value!r} is not allowed; it must be an? "
                    .replace("[", r"\[") + r"(integer|number) from \S+ to \S+$")


if __name__ == "__main__":
    unittest.main()
