"""selective_state_update in the emulation, against Mamba-2's recurrence."""

import math
import random
import unittest

import replayjit
from recurrence import (dot, emulation, error, rounded, sigmoid, tensor, values)

SLOTS, L = 4, 3


class Repeated:
    """What torch's expand() makes of a tensor: more dimensions of stride 0."""

    def __init__(self, tensor, *sizes):
        self._tensor, self.dtype, self.device = tensor, tensor.dtype, tensor.device
        self.shape = tuple(tensor.shape) + sizes
        self._stride = tuple(tensor.stride()) + (0,) * len(sizes)

    def data_ptr(self):
        return self._tensor.data_ptr()

    def stride(self):
        return self._stride


class Problem:
    """Rows of Mamba-2, each with its state beside them in Python floats."""

    def __init__(self, runtime, rows, heads=2, groups=1, V=16, N=32, skip="head",
                 gated=False, dtype="float32"):
        self.runtime, self.rows, self.dtype, self.skip = runtime, rows, dtype, skip
        self.heads, self.groups, self.V, self.N = heads, groups, V, N
        self.gated, self.random = gated, random.Random(5)
        self.size = heads * V * N
        self.start = self.normal(SLOTS * self.size, 0.3, "float32")
        self.states = {slot: self.start[slot * self.size:(slot + 1) * self.size]
                       for slot in rows if slot >= 0}
        self.A = [-math.exp(x) for x in self.normal(heads, 0.3, "float32")]
        self.A = rounded(self.A, "float32")
        self.bias = self.normal(heads, 0.1, "float32")
        self.D = self.normal(heads * (V if skip == "channel" else 1), 1, "float32")
        self.state = tensor(runtime, self.start, SLOTS, heads, V, N)
        self.indices = tensor(runtime, rows, len(rows), dtype="int32")
        self.out = tensor(runtime, [7.0] * (len(rows) * heads * V), len(rows),
                          heads, V, dtype=dtype)
        zeros = lambda *shape: tensor(runtime, [0.0] * math.prod(shape), *shape)
        self.d, self.k = zeros(SLOTS, heads, L, V), zeros(SLOTS, groups, L, N)
        self.g = zeros(SLOTS, heads, L)
        self.write_pos = tensor(runtime, [0] * len(rows), len(rows), dtype="int32")

    def normal(self, count, deviation, dtype=None):
        return rounded((self.random.gauss(0, deviation) for _ in range(count)),
                       dtype or self.dtype)

    def next_inputs(self):
        """Draws a token for each row; returns the operator's arguments."""
        B, heads, V, N = len(self.rows), self.heads, self.V, self.N
        self.x, self.z = self.normal(B * heads * V, 1), self.normal(B * heads * V, 1)
        self.B = self.normal(B * self.groups * N, 1)
        self.C = self.normal(B * self.groups * N, 1)
        self.dt = self.normal(B * heads, 0.5)
        make = lambda flat, *shape, dtype=self.dtype: tensor(
            self.runtime, flat, *shape, dtype=dtype)
        fp32 = lambda flat, *shape: make(flat, *shape, dtype="float32")
        D = fp32(self.D, heads, V) if self.skip == "channel" else Repeated(
            fp32(self.D, heads), V)
        return dict(
            state=self.state, x=make(self.x, B, heads, V),
            dt=Repeated(make(self.dt, B, heads), V),
            A=Repeated(fp32(self.A, heads), V, N),
            B=make(self.B, B, self.groups, N), C=make(self.C, B, self.groups, N),
            D=D, z=make(self.z, B, heads, V) if self.gated else None,
            dt_bias=Repeated(fp32(self.bias, heads), V), dt_softplus=True,
            state_batch_indices=self.indices, out=self.out)

    def rings(self):
        return dict(d_cache=self.d, k_cache=self.k, g_cache=self.g,
                    write_pos=self.write_pos)

    def expected(self):
        """y = h C + D x, times silu(z), where h = exp(dt A) h + dt x B^T."""
        out = []
        for row, slot in enumerate(self.rows):
            for head in range(self.heads):
                out += self.step(row, slot, head)
        return out

    def step(self, row, slot, head):
        V, N = self.V, self.N
        if slot < 0:
            return [0.0] * V
        at = row * self.heads + head
        group = row * self.groups + head // (self.heads // self.groups)
        B, C = (all[group * N:(group + 1) * N] for all in (self.B, self.C))
        step = math.log(1 + math.exp(self.dt[at] + self.bias[head]))
        decay, out = math.exp(step * self.A[head]), []
        for p in range(V):
            first = (head * V + p) * N
            x = self.x[at * V + p]
            h = [decay * old + step * x * b
                 for old, b in zip(self.states[slot][first:first + N], B)]
            self.states[slot][first:first + N] = h
            D = self.D[head * V + p if self.skip == "channel" else head]
            y = dot(h, C) + D * x
            z = self.z[at * V + p]
            out.append(y * z * sigmoid(z) if self.gated else y)
        return out


class MambaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = emulation()

    def check_states(self, problem):
        found = values(problem.state)
        for slot in range(SLOTS):
            state = found[slot * problem.size:(slot + 1) * problem.size]
            if slot in problem.states:
                self.assertLess(error(state, problem.states[slot]), 1e-6)
            else:
                self.assertEqual(state, problem.start[slot * problem.size:
                                                      (slot + 1) * problem.size])

    def test_without_a_ring(self):
        for options in (dict(), dict(heads=4, groups=2, V=20), dict(gated=True),
                        dict(skip="channel", gated=True)):
            problem = Problem(self.runtime, [3, -1, 0], **options)
            for _ in range(3):
                out = replayjit.selective_state_update(**problem.next_inputs())
                self.assertIs(out, problem.out)
                self.assertLess(error(values(out), problem.expected()), 2e-6)
                self.check_states(problem)

    def test_with_a_ring(self):
        for options in (dict(), dict(heads=4, groups=2, V=20, gated=True)):
            problem = Problem(self.runtime, [3, -1, 0], **options)
            for step in range(2 * L):
                tensor_of_cursors = [step % L] * 3
                problem.write_pos = tensor(self.runtime, tensor_of_cursors, 3,
                                           dtype="int32")
                out = replayjit.selective_state_update(
                    **problem.next_inputs(), **problem.rings())
                self.assertLess(error(values(out), problem.expected()), 2e-6)
                if step % L == L - 1:
                    self.check_states(problem)

    def test_bfloat16(self):
        problem = Problem(self.runtime, [1, 2], dtype="bfloat16")
        out = replayjit.selective_state_update(**problem.next_inputs())
        self.assertLess(error(values(out), problem.expected()), 4e-3)

    def test_the_order_of_upstream(self):
        problem = Problem(self.runtime, [1])
        out = replayjit.selective_state_update(*(
            problem.next_inputs()[name] for name in
            ("state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias",
             "dt_softplus", "state_batch_indices")), out=problem.out)
        self.assertIs(out, problem.out)
        self.assertNotEqual(values(out)[0], 7.0)

    def test_what_is_refused(self):
        problem = Problem(self.runtime, [1])
        inputs = problem.next_inputs()
        untied = tensor(self.runtime, [0.0] * 32, 1, 2, 16)
        for wrong, sentence in (
                (dict(dt_softplus=False), "dt_softplus: False is not allowed"),
                (dict(dt_bias=None), "dt_bias: None is not allowed"),
                (dict(state_batch_indices=None),
                 "state_batch_indices: None is not allowed"),
                (dict(out=None), "out: None is not allowed for tensors that"),
                (dict(pad_slot_id=5), "pad_slot_id: 5 is not allowed"),
                (dict(dt=untied), r"dt: strides .* one number for each head"),
                (dict(x=3),
                 "x: .* must be a tensor"),
                (dict(B=untied), r"B: shape \(1, 2, 16\) is not allowed"),
                (dict(C=3), "C: 3 is not allowed"),
                (dict(d_cache=problem.d), "k_cache: None is not allowed with a "
                                          "ring"),
                (dict(force_flush=problem.write_pos),
                 "force_flush: not allowed without a ring")):
            with self.subTest(sentence):
                with self.assertRaisesRegex(ValueError, sentence):
                    replayjit.selective_state_update(**{**inputs, **wrong})
        self.assertEqual(values(problem.out), [7.0] * 32)


if __name__ == "__main__":
    unittest.main()
