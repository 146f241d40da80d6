"""The recurrence in Python floats, which are fp64, and tensors to feed it.

An oracle for the operators: one request at a time, its whole state written at
every token; it knows neither checkpoint nor ring.
"""

import array
import math
import random
import struct

import replayjit

CODES = {"float32": "f", "int32": "i", "int64": "q"}


def to_bfloat16(value):
    """The nearest bfloat16, ties to even, as its 16 bits."""
    bits = struct.unpack("I", struct.pack("f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_bfloat16(bits):
    return struct.unpack("f", struct.pack("I", bits << 16))[0]


def encoded(values, dtype):
    """The memory of a dense tensor with these values."""
    if dtype == "bfloat16":
        return array.array("H", [to_bfloat16(value) for value in values])
    if dtype == "float16":  # array has no such code
        values = list(values)
        return struct.pack(f"{len(values)}e", *values)
    return array.array(CODES[dtype], values)


def decoded(memory, dtype):
    """The values in the memory of a dense tensor."""
    if dtype == "bfloat16":
        return [from_bfloat16(bits) for bits in array.array("H", memory)]
    if dtype == "float16":
        return list(struct.unpack(f"{len(memory) // 2}e", memory))
    return list(array.array(CODES[dtype], memory))


def rounded(values, dtype):
    return decoded(bytes(encoded(values, dtype)), dtype)


def tensor(runtime, values, *shape, dtype="float32"):
    """A dense tensor with these values, flat."""
    return runtime.empty(dtype, *shape).write(encoded(values, dtype))


def values(tensor):
    """The flat values of a dense tensor."""
    return decoded(tensor.read(), tensor.dtype)


def error(found, expected):
    """||found - expected|| / ||expected||; NaN where anything is NaN."""
    assert len(found) == len(expected)
    difference = sum((f - e) ** 2 for f, e in zip(found, expected))
    return math.sqrt(difference / sum(e * e for e in expected))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


class Shape:
    """Of a kernel; the gate is bounded if it has a bound, or `a` is the logarithm
    of the decay; beta is that of the operators."""

    def __init__(self, H=1, HV=2, K=16, V=32, L=3, is_kda=False,
                 lower_bound=None, log_decay=False, beta="sigmoid"):
        self.log_decay, self.beta = log_decay, beta
        self.H, self.HV, self.K, self.V, self.L = H, HV, K, V, L
        self.is_kda, self.lower_bound = is_kda, lower_bound
        self.gates = K if is_kda else 1
        self.columns = 2 * H * K + HV * V
        self.scale = K**-0.5


class Token:
    """The inputs of one request at one step, random, as their types, by name,
    hold them."""

    def __init__(self, shape, seed, types):
        draw = random.Random(seed)

        def normal(name, count, deviation=1.0):
            return rounded((draw.gauss(0, deviation) for _ in range(count)),
                           types[name])

        self.mixed = normal("mixed", shape.columns)
        self.a = normal("a", shape.HV * shape.gates, 0.5)
        self.b = normal("b", shape.HV)
        if shape.log_decay:
            self.a = [-abs(x) for x in self.a]
        if shape.beta == "given":
            self.b = rounded(map(sigmoid, self.b), types["b"])


class Recurrence:
    """The state of one request, [HV][V][K]."""

    def __init__(self, shape, state, a_log, dt_bias):
        self.shape, self.a_log, self.dt_bias = shape, a_log, dt_bias
        self.state = list(state)

    def step(self, token):
        """Feeds a token; returns its output, [HV*V] flat."""
        s, out = self.shape, []
        width = s.H * s.K
        for hv in range(s.HV):
            h = hv // (s.HV // s.H)
            q = token.mixed[h * s.K:(h + 1) * s.K]
            k = token.mixed[width + h * s.K:width + (h + 1) * s.K]
            q = [s.scale * x / math.sqrt(dot(q, q) + 1e-6) for x in q]
            k = [x / math.sqrt(dot(k, k) + 1e-6) for x in k]
            v = token.mixed[2 * width + hv * s.V:2 * width + (hv + 1) * s.V]
            gates = range(hv * s.gates, (hv + 1) * s.gates)
            alpha = [math.exp(token.a[at]) if s.log_decay else
                     self.decay(hv, token.a[at] + self.dt_bias[at])
                     for at in gates]
            if not s.is_kda:
                alpha *= s.K
            beta = {"sigmoid": sigmoid(token.b[hv]), "given": token.b[hv],
                    "twice-sigmoid": 2 * sigmoid(token.b[hv])}[s.beta]
            for row in range(s.V):
                at = (hv * s.V + row) * s.K
                decayed = [x * y for x, y in zip(self.state[at:at + s.K], alpha)]
                d = beta * (v[row] - dot(decayed, k))
                new = [x + d * y for x, y in zip(decayed, k)]
                self.state[at:at + s.K] = new
                out.append(dot(new, q))
        return out

    def decay(self, hv, x):
        rate = math.exp(self.a_log[hv])
        if self.shape.lower_bound is not None:
            return math.exp(self.shape.lower_bound * sigmoid(rate * x))
        return math.exp(-rate * math.log1p(math.exp(x)))


class Batch:
    """B requests with their tensors on `runtime`: slots of a pool, rings,
    cursors, and the recurrence of each request beside them. Row r has state slot
    `rows[r]`; a negative one is padding. Tokens and outputs are of `dtype`,
    parameters of float32, but for the tensors that `own` has types of."""

    def __init__(self, runtime, shape, rows, slots=5, seed=1, dtype="float32",
                 own=None):
        self.runtime, self.shape, self.rows = runtime, shape, rows
        self.slots, self.steps = slots, 0
        self.types = {"mixed": dtype, "a": dtype, "b": dtype,
                      "A_log": "float32", "dt_bias": "float32", **(own or {})}
        s, draw = shape, random.Random(seed)

        def normal(count, deviation, dtype="float32"):
            return rounded((draw.gauss(0, deviation) for _ in range(count)),
                           dtype)

        a_log = normal(s.HV, 0.3, self.types["A_log"])
        dt_bias = normal(s.HV * s.gates, 0.1, self.types["dt_bias"])
        self.state_size = s.HV * s.V * s.K
        self.start = normal(slots * self.state_size, 0.3)
        self.requests = {
            slot: Recurrence(s, self.state_of(self.start, slot), a_log, dt_bias)
            for slot in rows if slot >= 0}
        gate_row = (s.K,) if s.is_kda else ()
        self.A_log = tensor(runtime, a_log, s.HV, dtype=self.types["A_log"])
        self.dt_bias = tensor(runtime, dt_bias, s.HV, *gate_row,
                              dtype=self.types["dt_bias"])
        self.state = tensor(runtime, self.start, slots, s.HV, s.V, s.K)
        zeros = lambda *shape: tensor(runtime, [0.0] * math.prod(shape), *shape)
        self.d = zeros(slots, s.HV, s.L, s.V)
        self.k = zeros(slots, s.H, s.L, s.K)
        self.g = zeros(slots, s.HV, s.L, *gate_row)
        B = len(rows)
        self.out = tensor(runtime, [7.0] * (B * s.HV * s.V), B, 1, s.HV, s.V,
                          dtype=dtype)
        self.indices = tensor(runtime, rows, B, dtype="int32")
        self.write_pos = tensor(runtime, [0] * B, B, dtype="int32")
        self.mixed = runtime.empty(dtype, B, s.columns)
        self.a = runtime.empty(self.types["a"], B, s.HV, *gate_row)
        self.b = runtime.empty(self.types["b"], B, s.HV)
        self.next_tokens()

    def state_of(self, flat, slot):
        return flat[slot * self.state_size:(slot + 1) * self.state_size]

    def next_tokens(self):
        """Puts the inputs of the next step into the tensors."""
        self.steps += 1
        self.tokens = [Token(self.shape, 1000 * self.steps + row, self.types)
                       for row in range(len(self.rows))]
        for name in ("mixed", "a", "b"):
            flat = [x for token in self.tokens for x in getattr(token, name)]
            getattr(self, name).write(encoded(flat, self.types[name]))

    def inputs(self):
        return dict(mixed_qkv=self.mixed, a=self.a, b=self.b, A_log=self.A_log,
                    dt_bias=self.dt_bias, scale=self.shape.scale,
                    initial_state=self.state, out=self.out,
                    ssm_state_indices=self.indices,
                    use_qk_l2norm_in_kernel=True)

    def replay_inputs(self):
        return dict(self.inputs(), d_cache=self.d, k_cache=self.k,
                    g_cache=self.g, write_pos=self.write_pos,
                    is_kda=self.shape.is_kda)

    def expected_out(self):
        """What `out` should hold after the step; feeds the recurrences."""
        flat = []
        for slot, token in zip(self.rows, self.tokens):
            flat += (self.requests[slot].step(token) if slot >= 0
                     else [0.0] * (self.shape.HV * self.shape.V))
        return flat

    def set_cursor(self, cursors):
        self.write_pos.write(array.array("i", cursors))


def emulation():
    """The runtime of these tests; nothing of it goes to disk."""
    return replayjit.Runtime.emulation(cache_roots="")
