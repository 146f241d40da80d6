#!/usr/bin/env python3
"""Times decode where a model has it, between a kernel that makes its token and one
that takes its output: README.md beside this file, "Chains".

A layer is a copy into q, decode, and a copy of the output. Plain, all are ordinary
launches. Overlapped, all are programmatic: the producer and decode let the next kernel
start at once, the consumer when decode has ended, and decode reads its state first.
What decode costs there is the time of a layer less that of a layer without decode.
"""

import argparse
import gc
import json
import sys

import torch

import triton_kernels as tk
from decode_bench import TYPES, TritonKernel, capture, checked, log, replay_times, summary
from decode_pool import Pool, launches_for
from generated_kernels import load_kernels, name_by_differences


class Packed(TritonKernel):
    """Triton's packed kernel, which waits for the token behind its loads of the state
    if it overlaps."""

    def __init__(self, tile, warps, norm, overlaps):
        super().__init__("packed", tile, warps, norm)
        self.overlaps = overlaps
        self.name += ", overlaps" if overlaps else ""

    def launch(self, x, overlap=False):
        tk.launch_packed(x, x.batch, self.tile, self.warps, x.scale, self.norm,
                         self.overlaps, programmatic=overlap)


def overlaps(kernel):
    return kernel.spec.get("programmaticLaunch", "none") != "none"


def layers(kernel, launches, ends, overlap):
    """Launches a chain; without a kernel its ends alone."""
    made, taken = ends
    for x in launches:
        tk.launch_copy(made[:x.batch], x.q, early=True, overlap=overlap)
        if kernel:
            kernel.launch(x, overlap)
        tk.launch_copy(x.out, taken[:x.batch], early=False, overlap=overlap)


def run_batch(batch, pool, kernels):
    """Microseconds of a layer and of decode in it: {"plain" or "overlapped": {name: ..}}."""
    launches = pool.graph_launches(batch)
    ends = pool.tensors.q.clone(), torch.empty_like(pool.tensors.out)
    result = {}
    for manner, overlap in (("plain", False), ("overlapped", True)):
        chosen = [None] + [k for k in kernels if k.overlaps == overlap]
        graphs = [capture(lambda: layers(k, launches, ends, overlap)) for k in chosen]
        times = [summary(samples, len(launches))
                 for samples in replay_times(graphs, pool.opt.replays, 2)]
        empty = times[0]["median"]
        result[manner] = {"without decode": empty, "kernels": {
            k.name: {"layer": t, "part": t["median"] - empty}
            for k, t in zip(chosen[1:], times[1:])}}
    return result


def best(kernels, prefix):
    """The least part of those whose names begin so."""
    parts = [(k["part"], name) for name, k in kernels.items() if name.startswith(prefix)]
    return min(parts, default=(float("nan"), "none"))


def print_table(name, results):
    print(f"\n**{name}: us of decode in a layer (of the layer)**\n")
    print("| | " + " | ".join(f"B={b}" for b in results) + " |")
    print("|---" * (len(results) + 1) + "|")
    rows = ("Triton packed", "replayjit packed", "replayjit")
    for manner in ("plain", "overlapped"):
        parts = {}
        for row in rows:
            cells = []
            for batch, result in results.items():
                kernels = {n: k for n, k in result[manner]["kernels"].items()
                           if row != "replayjit" or not n.startswith("replayjit packed")}
                part, kernel = best(kernels, row)
                parts[row, batch] = part
                layer = kernels[kernel]["layer"]["median"] if kernel in kernels else part
                cells.append(f"{part:.2f} ({layer:.2f})")
            print(f"| {row}, {manner} | " + " | ".join(cells) + " |")
        print(f"| replayjit over Triton packed, {manner} | " + " | ".join(
            f"{parts['Triton packed', b] / parts['replayjit', b]:.2f}x" for b in results)
            + " |")
    for batch, result in results.items():
        for manner in ("plain", "overlapped"):
            print(f"B={batch} {manner}: " + "; ".join(
                best(result[manner]["kernels"], row)[1] for row in rows[:1]))


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--kernels", required=True,
                     help="folder with NAME.cubin and NAME.json pairs, of programmaticLaunch "
                          "none and others")
    arg.add_argument("--json", help="write every number here")
    arg.add_argument("--types", nargs="+", choices=TYPES, default=["fp32"])
    arg.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16])
    arg.add_argument("--heads", nargs=2, type=int, metavar=("H", "HV"), default=[16, 32])
    arg.add_argument("--kda", action="store_true")
    arg.add_argument("--replays", type=int, default=20)
    arg.add_argument("--graph-slots", type=int, default=2048)
    opt = arg.parse_args()
    (opt.H, opt.HV), opt.K, opt.V, opt.L = opt.heads, 128, 128, 16
    opt.act = opt.out = "bf16"
    opt.norm, opt.bounded, opt.circular = True, False, False
    opt.ring_format, opt.lower_bound, opt.flushes = "raw", -5.0, "some"
    opt.device, opt.seed, opt.max_launches = "cuda", 1, 1024

    gc.disable()  # nothing may be freed by chance while a graph is captured
    torch.zeros(1, device="cuda")
    generated = load_kernels(opt.kernels, [])
    report = {}
    for name in opt.types:
        slots = 1 + max(launches_for(opt, b) * b for b in opt.batches)
        pool = Pool(opt, *TYPES[name], max(opt.batches + [opt.L + 9]),
                    max(slots, 4 * (opt.L + 9)))
        results = {"checks": {}}
        kernels = [Packed(*c, opt.norm, overlapped) for c in tk.PACKED_CANDIDATES
                   for overlapped in (False, True)]
        matching = [k for k in generated if not k.mismatch(opt, *TYPES[name])]
        for kernel in matching:
            kernel.overlaps = overlaps(kernel)
        kernels = [k for k in kernels + matching if checked(k, pool, results)]
        for packed in (True, False):
            name_by_differences([k for k in matching if k.packed == packed])
        pool.tensors.state.normal_(0, 0.3)
        report[name] = {batch: run_batch(batch, pool, kernels) for batch in opt.batches}
        print_table(name, report[name])
        log(f"{name} is done")
        del pool
        torch.cuda.empty_cache()
    if opt.json:
        with open(opt.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
