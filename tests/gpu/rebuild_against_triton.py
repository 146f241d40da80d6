#!/usr/bin/env python3
"""Compares the rebuild kernels with the Triton program.

Both run every launch from the same memory. A launch has a row at every phase of
the ring and rows that flush by force; its inputs are new, and the next one starts
from what Triton left. tests/gpu/README.md has the criterion and the commands that
make the kernels.
"""

import argparse
import dataclasses
import pathlib
import sys
from types import SimpleNamespace

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "perf"))
import triton_kernels as tk  # noqa: E402
from decode_pool import DTYPES, Pool  # noqa: E402
from generated_kernels import load_kernels  # noqa: E402

MANTISSA = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}
TILE = 64  # rows of the state per block; K is cut in two
WRITTEN = ("state", "dRing", "kRing", "gRing")
EQUAL, UNITS = 0.99, 2
NORM = 5e-4  # Relative, of fp32.


@dataclasses.dataclass
class Case:
    kda: bool
    bounded: bool
    act: str  # also the output's type
    state: str
    ring: str

    def __str__(self):
        gate = ", lower-bound gate" if self.bounded else ""
        return (f"{'KDA' if self.kda else 'GDN'} {self.act}, {self.state} state, "
                f"{self.ring} ring{gate}")

    def command(self, opt, folder):
        """What makes the kernel."""
        H, HV = heads(opt, self)
        flags = ["--kda"] if self.kda else []
        flags += ["--gate lower-bound"] if self.bounded else []
        return (f"replay-compile --readout rebuild {' '.join(flags)} --heads {H} "
                f"--value-heads {HV} --k {opt.K} --v {opt.V} -L {opt.L} --act {self.act} "
                f"--state {self.state} --ring {self.ring} --block-v {TILE} "
                f"--block-k {opt.K // 2} --warps 4 --target {opt.target} --emit cubin "
                f"-o /dev/null --out-dir {folder}").replace("  ", " ")


TYPES = [("bf16", "fp32", "fp32"), ("bf16", "fp32", "bf16"), ("bf16", "bf16", "bf16"),
         ("fp16", "fp32", "fp32"), ("fp16", "fp16", "fp16"), ("fp32", "fp32", "fp32")]
CASES = ([Case(kda, False, *types) for kda in (False, True) for types in TYPES]
         + [Case(True, True, *TYPES[0])])


def heads(opt, case):
    return opt.heads or ((32, 32) if case.kda else (16, 32))


class Agreement:
    """How far apart two computations are that round the same operands."""

    def __init__(self, stored, out):
        self.stored = stored
        # An operand on the other side of a rounding moves a result by a unit of
        # the operands' type; tf32 has the mantissa of fp16.
        self.bits = min(MANTISSA[stored], 10 if out == torch.float32 else MANTISSA[out])
        self.elements = self.equal = 0
        self.worst = self.difference = self.size = 0.0

    def add(self, have, want):
        """Adds rows along the last axis. 16-bit values are equal or not; fp32 ones
        within 16 units in the last place of their row's largest, the noise of
        sums in another order."""
        have, want = have.double().flatten(0, -2), want.double().flatten(0, -2)
        largest = want.abs().amax(-1, keepdim=True)
        exponent = torch.frexp(largest).exponent - 1

        def unit(bits):
            return torch.ldexp(torch.ones_like(largest), exponent - bits)

        noise = 16 * unit(23) if self.stored == torch.float32 else 0.0
        distance = (have - want).abs().nan_to_num(float("inf"))
        self.elements += distance.numel()
        self.equal += int((distance <= noise).sum())
        if distance.numel():
            self.worst = max(self.worst, (distance / unit(self.bits)).max().item())
        self.difference += distance.square().sum().item()
        self.size += want.square().sum().item()

    @property
    def share(self):
        return self.equal / max(self.elements, 1)

    @property
    def norm(self):
        return (self.difference / self.size) ** 0.5 if self.size else float("inf")

    def rounds_alike(self):
        return self.elements > 0 and self.share >= EQUAL and self.worst <= UNITS

    def __str__(self):
        return f"{100 * self.share:.3f} {self.worst:.2f} {self.norm:.1e}"


def run(launch, pool, x, before):
    """Out, state and rings after a launch from `before`."""
    for name in WRITTEN:
        getattr(pool.tensors, name).copy_(before[name])
    x.out.fill_(float("nan"))
    launch(x)
    if pool.opt.device == "cuda":
        torch.cuda.synchronize()
    return {name: getattr(pool.tensors, name).clone() for name in ("out", *WRITTEN)}


def compare(opt, case, launch, reference):
    """Steps `reference` and, from the same memory, `launch`; {tensor: Agreement}."""
    H, HV = heads(opt, case)
    L = opt.L
    rows = L + 6
    pool = Pool(SimpleNamespace(H=H, HV=HV, K=opt.K, V=opt.V, L=L, device=opt.device,
                                act=case.act, out=case.act, seed=opt.seed, kda=case.kda,
                                bounded=case.bounded, lower_bound=-5.0, ring_format="raw"),
                case.state, case.ring, rows, rows + 1)
    t = pool.tensors
    out = t.out.dtype
    results = {"out": Agreement(out, out), "state": Agreement(t.state.dtype, out),
               "d": Agreement(t.dRing.dtype, out)}

    def as_int(values):
        return torch.tensor(values, device=opt.device, dtype=torch.int32)

    slots = as_int(list(range(rows, 0, -1)))
    cursors = [r % L for r in range(rows)]
    for step in range(opt.steps):
        t.q.normal_()
        t.a.normal_(0, 0.5)
        t.b.normal_()
        forced = [int(r >= L and (r + step) % 3 == 0) for r in range(rows)]
        x = pool.launch(slots, as_int(cursors), as_int(forced))
        before = {name: getattr(t, name).clone() for name in WRITTEN}
        have = run(launch, pool, x, before)
        want = run(reference, pool, x, before)  # the next step starts from this
        flush = [m == L - 1 or bool(f) for m, f in zip(cursors, forced)]
        results["out"].add(have["out"], want["out"])
        flushed = slots[torch.tensor(flush, device=opt.device)].long()
        results["state"].add(have["state"][flushed], want["state"][flushed])
        at = slots[~torch.tensor(flush, device=opt.device)].long()
        m = as_int([m for m, f in zip(cursors, flush) if not f]).long()
        results["d"].add(have["dRing"][at, :, m], want["dRing"][at, :, m])
        cursors = [0 if f else m + 1 for m, f in zip(cursors, flush)]
    return results


def triton_program(tile, warps):
    def launch(x):
        tk.launch_replay(x, x.batch, tile, warps, x.scale, norm=True)
    return launch


def find_kernel(opt, case, kernels):
    """The kernel of a case with the reference's tiles, or None."""
    H, HV = heads(opt, case)
    want = SimpleNamespace(kda=case.kda, bounded=case.bounded, H=H, HV=HV, K=opt.K, V=opt.V,
                           L=opt.L, act=case.act, out=case.act, norm=True, ring_format="raw",
                           circular=False)
    for kernel in kernels:
        if (kernel.readout == "rebuild" and not kernel.packed
                and not kernel.mismatch(want, case.state, case.ring)
                and kernel.spec.get("hasForceFlush", True)
                and kernel.tuning.get("blockV") == TILE
                and kernel.tuning.get("blockK") == opt.K // 2):
            return kernel
    return None


def check(opt, case, kernels):
    """Prints a row per comparison; [sentence about what is wrong]."""
    if opt.self_check:
        launch = triton_program(TILE // 2, 2)
    else:
        kernel = find_kernel(opt, case, kernels)
        if kernel is None:
            return [f"{case}: {opt.kernels} has no kernel of it; make it by\n    "
                    + case.command(opt, opt.kernels)]
        launch = kernel.launch
        kernel.prepare()
    results = compare(opt, case, launch, triton_program(TILE, 1))
    limit = NORM if case.act == "fp32" else float("inf")
    bad = [name for name, result in results.items()
           if not (result.norm <= limit and result.rounds_alike())]
    cells = " | ".join(str(result) for result in results.values())
    print(f"| {case} | {cells} | {'FAILED' if bad else 'ok'} |", flush=True)
    return [f"{case}: {', '.join(bad)} disagree with Triton"] if bad else []


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--kernels", help="folder with NAME.cubin and NAME.json pairs")
    arg.add_argument("--self-check", action="store_true",
                     help="in place of kernels, Triton's with other tiles: what the order "
                     "of sums does")
    arg.add_argument("--only", nargs="+", default=[], metavar="TEXT",
                     help="cases whose name contains every TEXT")
    arg.add_argument("--commands", metavar="DIR",
                     help="print the commands that make the kernels in DIR, and end")
    arg.add_argument("--target", default="sm_90a", help="of those commands")
    arg.add_argument("--heads", nargs=2, type=int, metavar=("H", "HV"),
                     help="default: 16 32; KDA: 32 32")
    arg.add_argument("--dims", nargs=2, type=int, default=[128, 128], metavar=("K", "V"))
    arg.add_argument("--ring-depth", dest="L", type=int, default=16)
    arg.add_argument("--steps", type=int, default=8)
    arg.add_argument("--seed", type=int, default=1)
    arg.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                     help="cpu: --self-check under TRITON_INTERPRET=1")
    opt = arg.parse_args()
    opt.K, opt.V = opt.dims
    cases = [c for c in CASES if all(text in str(c) for text in opt.only)]
    if not cases:
        arg.error("--only leaves no case")
    if opt.commands:
        print("\n".join(case.command(opt, opt.commands) for case in cases))
        return 0
    if bool(opt.kernels) == opt.self_check:
        arg.error("give either --kernels or --self-check")
    if opt.device == "cpu" and not opt.self_check:
        arg.error("--device cpu needs --self-check")
    if opt.device == "cuda":
        torch.zeros(1, device="cuda")  # makes the context that the kernels use
    kernels = load_kernels(opt.kernels, []) if opt.kernels else []
    print("Each cell: % equal, largest distance in units in the last place, relative norm.\n")
    print("| case | out | flushed state | appended d | |")
    print("|---|---|---|---|---|")
    wrong = []
    for case in cases:
        try:
            wrong += check(opt, case, kernels)
        except Exception as failure:  # a fault of one kernel is a row of its own
            wrong.append(f"{case}: did not run: {failure}")
    print()
    for sentence in wrong:
        print("FAILED", sentence)
    print(f"{len(cases)} cases, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
