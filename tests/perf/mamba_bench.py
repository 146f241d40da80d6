#!/usr/bin/env python3
"""Times the generated Mamba-2 kernels against Triton's selective_state_update.

Method: README.md beside this file. The Triton kernel is written here from the
formula; it reads and writes the state at every step, as engines do today. Every
kernel is first checked against the recurrence in fp64 and timed only if right.
"""

import argparse
import json
import math
from types import SimpleNamespace

import torch
import triton
import triton.language as tl

from decode_bench import capture, log, read_ceiling, replay_times, summary
from generated_kernels import load_kernels, name_by_differences

CANDIDATES = [(4, 1), (8, 1), (16, 1), (16, 2), (32, 1), (32, 2), (32, 4), (64, 2), (64, 4),
              (64, 8)]


@triton.jit
def selective_state_update(state_ptr, x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, bias_ptr,
                           out_ptr, index_ptr, HV: tl.constexpr, H: tl.constexpr,
                           V: tl.constexpr, K: tl.constexpr, BV: tl.constexpr):
    """Grid (V tiles, B, HV); K is a power of two."""
    row = tl.program_id(1).to(tl.int64)
    head = tl.program_id(2)
    k = tl.arange(0, K)
    v = tl.program_id(0) * BV + tl.arange(0, BV)
    ok = (v < V) | (V % BV == 0)
    slot = tl.load(index_ptr + row).to(tl.int64)
    at = row * (HV * V) + head * V + v
    if slot < 0:
        tl.store(out_ptr + at, tl.zeros([BV], out_ptr.dtype.element_ty), mask=ok)
        return
    state_at = (state_ptr + slot * (HV * V * K) + head * (V * K) + v[:, None] * K
                + k[None, :])
    h = tl.load(state_at, mask=ok[:, None], other=0.0).to(tl.float32)
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    group = row * (H * K) + head // (HV // H) * K
    b = tl.load(b_ptr + group + k).to(tl.float32)
    c = tl.load(c_ptr + group + k).to(tl.float32)
    dt = tl.load(dt_ptr + row * HV + head).to(tl.float32) + tl.load(bias_ptr + head)
    dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(tl.minimum(dt, 20.0))))
    h = h * tl.exp(dt * tl.load(a_ptr + head)) + (dt * x)[:, None] * b[None, :]
    y = tl.sum(h * c[None, :], 1) + tl.load(d_ptr + head) * x
    tl.store(state_at, h.to(state_ptr.dtype.element_ty), mask=ok[:, None])
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=ok)


class TritonKernel:
    packed = True

    def __init__(self, tile, warps):
        self.name, self.tile, self.warps = f"Triton BV={tile} warps={warps}", tile, warps

    def prepare(self):
        pass

    def launch(self, x):
        HV, V, K = x.state.shape[1:]
        grid = (triton.cdiv(V, self.tile), x.batch, HV)
        selective_state_update[grid](x.state, x.v, x.a, x.aLog, x.k, x.q, x.skip, x.dtBias,
                                     x.out, x.stateIndices, HV=HV, H=x.k.shape[1], V=V, K=K,
                                     BV=self.tile, num_warps=self.warps)


class Pool:
    """States, rings, and the inputs of up to `rows` rows. Slot 0 is unused."""

    def __init__(self, opt, rows, slots):
        H, HV, V, K, L = opt.H, opt.HV, opt.V, opt.K, opt.L
        torch.manual_seed(1)
        f32, act = torch.float32, torch.bfloat16

        def normal(shape, scale, dtype=f32):
            return torch.empty(shape, device="cuda", dtype=dtype).normal_(0, scale)

        self.opt = opt
        self.all = SimpleNamespace(
            q=normal((rows, H, K), 1, act), k=normal((rows, H, K), 1, act),
            v=normal((rows, HV, V), 1, act), a=normal((rows, HV), 0.5, act),
            aLog=-normal((HV,), 0.3).exp(), dtBias=normal((HV,), 0.1),
            skip=normal((HV,), 1), out=torch.empty((rows, HV, V), device="cuda", dtype=act))
        self.pool = dict(
            state=normal((slots, HV, V, K), 0.3), dRing=normal((slots, HV, L, V), 0.3),
            kRing=normal((slots, H, L, K), 0.3),
            gRing=torch.empty((slots, HV, L), device="cuda").uniform_(-0.12, -0.02))
        self.slots = slots

    def launch(self, indices, write_pos):
        n, t = len(indices), self.all
        rows = {name: getattr(t, name)[:n] for name in ("q", "k", "v", "a", "out")}
        return SimpleNamespace(batch=n, slots=self.slots, scale=1.0, stateIndices=indices,
                               writePos=write_pos, aLog=t.aLog, dtBias=t.dtBias, skip=t.skip,
                               **rows, **self.pool)

    def graph_launches(self, batch):
        L = self.opt.L
        count = max(L, min(512, 4096 // batch) // L * L)
        width = max(64, (batch + 63) // 64 * 64)
        n = torch.arange(count, device="cuda", dtype=torch.int32)[:, None]
        r = torch.arange(width, device="cuda", dtype=torch.int32)[None, :]
        indices, phases = 1 + n * batch + r, (r + n) % L
        assert int(indices[-1, batch - 1]) < self.slots
        return [self.launch(indices[i, :batch], phases[i, :batch]) for i in range(count)]


def history(x, slots, phases):
    """Checkpoint plus the first rows of the rings, in fp64."""
    H, HV, L = x.kRing.shape[1], x.state.shape[1], x.kRing.shape[2]
    valid = (torch.arange(L, device="cuda") < phases[:, None])[:, None]
    g = torch.where(valid, x.gRing[slots].double(), 0)
    after = g.flip(2).cumsum(2).flip(2) - g
    d = torch.where(valid[..., None], x.dRing[slots].double(), 0)
    k = torch.where(valid[..., None], x.kRing[slots].double(), 0)
    k = k.repeat_interleave(HV // H, 1) * after.exp()[..., None]
    return x.state[slots].double() * g.sum(2).exp()[..., None, None] + d.mT @ k


def error(found, wanted):
    found, wanted = found.double().flatten(1), wanted.flatten(1)
    worst = ((found - wanted).norm(dim=1) / wanted.norm(dim=1)).max().item()
    return worst if worst == worst else math.inf


def check(kernel, pool):
    """One launch over all ring phases and a padding row; {quantity: error} and what
    is wrong."""
    L = pool.opt.L
    indices = torch.arange(1, 2 * L + 3, 2, device="cuda", dtype=torch.int32)
    indices[L] = -1
    phases = torch.arange(L + 1, device="cuda", dtype=torch.int32) % L
    x = pool.launch(indices, phases)
    live = torch.arange(L, device="cuda")
    slots, all_slots = indices[live].long(), slice(0, 2 * L + 4)
    before = {name: tensor[all_slots].clone() for name, tensor in pool.pool.items()}
    zero = torch.zeros_like(phases[live])
    S = history(x, slots, zero if kernel.packed else phases[live])
    group = pool.opt.HV // pool.opt.H
    B, C = (t[live].double().repeat_interleave(group, 1) for t in (x.k, x.q))
    v, dt = x.v[live].double(), (x.a[live].double() + x.dtBias.double()).exp().log1p()
    d, g = dt[..., None] * v, dt * x.aLog.double()
    S = S * g.exp()[..., None, None] + d[..., None] * B[..., None, :]
    y = (S @ C[..., None])[..., 0] + x.skip.double()[:, None] * v
    x.out.fill_(math.nan)
    kernel.launch(x)
    torch.cuda.synchronize()
    flush = torch.ones_like(live, dtype=torch.bool)
    if not kernel.packed:
        flush = phases[live] == L - 1
    errors = {"out": error(x.out[live], y), "state": error(x.state[slots[flush]], S[flush])}
    limits = {"out": 2.5e-3, "state": 2e-5, "d": 2e-5, "k": 1e-7, "g": 2e-5}
    expected = {name: tensor.clone() for name, tensor in before.items()}
    expected["state"][slots[flush]] = x.state[slots[flush]]
    if not kernel.packed:
        rows, at = live[~flush], phases[live][~flush].long()
        own = slots[~flush]
        for name, ring, value in (("d", "dRing", d), ("g", "gRing", g),
                                  ("k", "kRing", x.k[live].double())):
            appended = pool.pool[ring][own, :, at]
            errors[name] = error(appended, value[rows])
            expected[ring][own, :, at] = appended
    wrong = [f"{name} {value:.1e}" for name, value in errors.items()
             if not value <= limits[name]]
    for name, tensor in pool.pool.items():
        if not torch.equal(tensor[all_slots], expected[name]):
            wrong.append(f"{name} changed where it must not")
        tensor[all_slots] = before[name]
    if not bool((x.out[L] == 0).all()):
        wrong.append("the padding row is not zero")
    return errors, wrong


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--kernels", required=True, help="NAME.cubin and NAME.json pairs")
    arg.add_argument("--sizes", nargs=4, type=int, default=[8, 128, 64, 128],
                     metavar=("GROUPS", "HEADS", "V", "K"))
    arg.add_argument("--ring-depth", dest="L", type=int, default=16)
    arg.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16, 64, 256])
    arg.add_argument("--replays", type=int, default=15)
    arg.add_argument("--json", help="write every number here")
    opt = arg.parse_args()
    opt.H, opt.HV, opt.V, opt.K = opt.sizes
    sizes = dict(numKeyHeads=opt.H, numValueHeads=opt.HV, headDimV=opt.V, headDimK=opt.K)
    kernels = [k for k in load_kernels(opt.kernels, [])
               if all(k.spec[name] == size for name, size in sizes.items())]
    for packed in (True, False):
        name_by_differences([k for k in kernels if k.packed == packed])
    slots = 1 + max(4096, opt.L * max(opt.batches))
    pool = Pool(opt, max(opt.batches + [opt.L + 1]), slots)
    ceiling = read_ceiling(5)["TB/s"]
    print(f"groups {opt.H}, heads {opt.HV}, V {opt.V}, K {opt.K}, L {opt.L}, fp32 state and "
          f"ring; read ceiling {ceiling:.2f} TB/s", flush=True)
    right = []
    for kernel in [TritonKernel(*c) for c in CANDIDATES if c[0] <= opt.V] + kernels:
        kernel.prepare()
        errors, wrong = check(kernel, pool)
        if wrong:
            print(f"WRONG {kernel.name}: {'; '.join(wrong)}", flush=True)
        else:
            right.append(kernel)
            log(f"ok {kernel.name}: " + ", ".join(f"{n} {e:.1e}" for n, e in errors.items()))
    report = {}
    for batch in opt.batches:
        pool.pool["state"].normal_(0, 0.3)
        launches = pool.graph_launches(batch)
        graphs = [capture(lambda: [k.launch(x) for x in launches]) for k in right]
        times = replay_times(graphs, opt.replays, 1)
        medians = {k.name: summary(t, len(launches))["median"] for k, t in zip(right, times)}
        best = {}
        for kind, chosen in (("Triton", [k for k in right if "Triton" in k.name]),
                             ("packed", [k for k in kernels if k in right and k.packed]),
                             ("replay", [k for k in kernels if k in right and not k.packed])):
            if chosen:
                name = min((k.name for k in chosen), key=medians.get)
                best[kind] = (medians[name], name)
        print(f"B={batch}: " + ", ".join(
            f"{kind} {us:.2f} us ({best['Triton'][0] / us:.2f}x, {name})"
            for kind, (us, name) in best.items()), flush=True)
        report[batch] = medians
        del graphs
    if opt.json:
        with open(opt.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
