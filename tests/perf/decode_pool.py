"""The state pool of a benchmark case: slots, rings, inputs, and the launches on it."""

from types import SimpleNamespace

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Pool:
    """State slots, rings and the inputs of up to `rows` rows. Slot 0 is unused."""

    def __init__(self, opt, state, ring, rows, slots):
        H, HV, K, V, L = opt.H, opt.HV, opt.K, opt.V, opt.L
        dev, act, out = opt.device, DTYPES[opt.act], DTYPES[opt.out]
        torch.manual_seed(opt.seed)
        self.opt, self.rows, self.slots = opt, rows, slots
        self.scale = K ** -0.5

        gates = (K,) if opt.kda else ()  # after HV and L where gates are stored

        def normal(shape, scale, dtype):
            return torch.empty(shape, device=dev, dtype=dtype).normal_(0, scale)

        self.tensors = SimpleNamespace(
            q=normal((rows, 2 * H * K + HV * V), 1, act),
            a=normal((rows, HV, *gates), 0.5, act),
            b=normal((rows, HV), 1, act),
            aLog=normal((HV,), 0.3, torch.float32),
            dtBias=normal((HV, *gates), 0.1, torch.float32),
            out=torch.empty((rows, HV, V), device=dev, dtype=out),
            state=normal((slots, HV, V, K), 0.3, DTYPES[state]),
            dRing=normal((slots, HV, L, V), 0.3, DTYPES[ring]),
            kRing=normal((slots, H, L, K), 1, DTYPES[ring]),
            gRing=torch.empty((slots, HV, L, *gates), device=dev).uniform_(-0.12, -0.02),
            ringBase=torch.zeros(rows, device=dev, dtype=torch.int32))
        for part in self.tensors.kRing.split(256):
            unit = part.float()
            part.copy_(unit / unit.norm(dim=-1, keepdim=True))
        if opt.ring_format != "raw":
            self.sum_gates()

    def sum_gates(self):
        """g_ring rows become sums of the gates since the checkpoint, P; predecayed
        k_ring rows are times exp(-P)."""
        t = self.tensors
        for k_rows, gates in zip(t.kRing.split(256), t.gRing.split(256)):
            gates.copy_(gates.cumsum(2))
            if self.opt.ring_format == "predecayed":
                k_rows.copy_(k_rows.float() * gates.neg().exp())

    def launch(self, indices, write_pos, force_flush):
        """The arguments of one launch; its row count is that of `indices`."""
        t, n = self.tensors, indices.shape[0]
        return SimpleNamespace(
            H=self.opt.H, HV=self.opt.HV, batch=n, slots=self.slots, scale=self.scale,
            kda=self.opt.kda, bounded=self.opt.bounded, lowerBound=self.opt.lower_bound,
            q=t.q[:n], a=t.a[:n], b=t.b[:n], aLog=t.aLog, dtBias=t.dtBias,
            out=t.out[:n], state=t.state, dRing=t.dRing, kRing=t.kRing, gRing=t.gRing,
            stateIndices=indices, writePos=write_pos, forceFlush=force_flush,
            ringBase=t.ringBase[:n])

    def graph_launches(self, batch):
        """Launches for one graph, each on its own slots; see write_pos."""
        dev = self.opt.device
        count = launches_for(self.opt, batch)
        # A row of 64 entries keeps every launch's index arrays 16-byte aligned.
        width = max(64, (batch + 63) // 64 * 64)
        n = torch.arange(count, device=dev, dtype=torch.int32)[:, None]
        r = torch.arange(width, device=dev, dtype=torch.int32)[None, :]
        indices = 1 + n * batch + r
        write_pos = write_pos_of(self.opt, r, n) + torch.zeros_like(n + r)
        force = torch.zeros(width, device=dev, dtype=torch.int32)
        assert int(indices[-1, batch - 1]) < self.slots
        return [self.launch(indices[i, :batch], write_pos[i, :batch], force[:batch])
                for i in range(count)]


def write_pos_of(opt, row, launch):
    """The ring phase of a row: (row + launch) mod L, so that 1/L of all rows flush, unless
    opt.flushes says that all of them do, or none."""
    if opt.flushes == "all":
        return opt.L - 1
    return (row + launch) % (opt.L if opt.flushes == "some" else opt.L - 1)


def launches_for(opt, batch):
    """Launches per graph: about opt.graph_slots slots in all, whole cycles of L."""
    count = min(opt.max_launches, max(1, opt.graph_slots // batch))
    return max(opt.L, count // opt.L * opt.L)


def useful_bytes(opt, state, ring, batch, packed):
    """Mean bytes that one launch of the graph must move."""
    s, r = DTYPES[state].itemsize, DTYPES[ring].itemsize
    state_bytes = opt.HV * opt.V * opt.K * s
    if packed:
        return 2 * batch * state_bytes
    gates = opt.HV * (opt.K if opt.kda else 1)
    row_bytes, gate_bytes = (opt.HV * opt.V + opt.H * opt.K) * r, gates * 4
    count = launches_for(opt, batch)
    total = 0
    for n in range(count):
        for i in range(batch):
            m = write_pos_of(opt, i, n)
            flush = m == opt.L - 1
            total += state_bytes * (2 if flush else 1)
            # A circular ring keeps the token of a flush.
            appended = 0 if flush and not opt.circular else 1
            gates_read = min(m, 1) if opt.ring_format == "predecayed" else m
            total += row_bytes * (m + appended) + gate_bytes * (gates_read + appended)
    return total / count
