#!/usr/bin/env python3
"""Times the generated GDN or KDA decode kernels against Triton on one GPU.

Method and table format: README.md beside this file. Every kernel is first
checked against an fp64 computation; a wrong one is reported and never timed.
"""

import argparse
import gc
import json
import os
import pathlib
import statistics
import sys
import threading
import time

import torch
import triton

import triton_kernels as tk
from decode_check import check
from decode_pool import DTYPES, Pool, launches_for, useful_bytes
from generated_kernels import load_kernels, name_by_differences

# name: (state, ring)
TYPES = {"fp32": ("fp32", "fp32"), "bf16ring": ("fp32", "bf16"),
         "fp16": ("fp16", "fp16"), "bf16": ("bf16", "bf16")}
PACKED_LABEL, REPLAY_LABEL = "replayjit packed, best variant", "replayjit, best variant"
START = time.monotonic()


def log(text):
    print(f"[{time.monotonic() - START:6.1f} s] {text}", file=sys.stderr, flush=True)


# --- Kernels -----------------------------------------------------------------

class TritonKernel:
    def __init__(self, family, tile, warps, norm):
        self.name = f"Triton {family} (BV={tile}, warps={warps})"
        self.family, self.tile, self.warps, self.norm = family, tile, warps, norm
        self.packed = family == "packed"
        self.readout = "outputOnly" if self.packed else "rebuild"
        self.launcher = tk.launch_packed if self.packed else tk.launch_replay

    def prepare(self):
        pass

    def launch(self, x):
        self.launcher(x, x.batch, self.tile, self.warps, x.scale, self.norm)


# --- Correctness ---------------------------------------------------------------

class ContextLost(Exception):
    """A kernel faulted; nothing more can run in this process."""


def hung(kernel, seconds):
    print(f"WRONG {kernel.name}: no end after {seconds} s; run again with --skip", flush=True)
    os._exit(3)


def checked(kernel, pool, results):
    """Loads and checks; True if the kernel may be timed."""
    watchdog = threading.Timer(60, hung, (kernel, 60))
    if pool.opt.device == "cuda":
        watchdog.start()
    try:
        kernel.prepare()
        errors, wrong = check(kernel, pool)
    except Exception as failure:  # whatever it was, the kernel is not timed
        errors, wrong = {}, [f"did not run: {failure}"]
    watchdog.cancel()
    figures = ", ".join(f"{n} {e:.1e}" for n, e in errors.items())
    log(f"{'WRONG' if wrong else 'ok   '} {kernel.name}: {'; '.join(wrong) or figures}")
    if wrong:
        print(f"WRONG {kernel.name}: {'; '.join(wrong)} ({figures})", flush=True)
    results["checks"][kernel.name] = {"errors": errors, "wrong": wrong}
    if not errors and pool.opt.device == "cuda":
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            raise ContextLost(f"{kernel.name} broke the CUDA context; run again with --skip")
    return not wrong


# --- Timing ------------------------------------------------------------------

def capture(body):
    """A CUDA graph of what `body` launches."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        body()
        graph.capture_end()
    return graph


def replay_times(graphs, replays, warmup):
    """Microseconds per replay of each graph; the graphs take turns, so that a
    drift of the clocks meets all of them alike."""
    for graph in graphs:
        for _ in range(warmup):
            graph.replay()
    torch.cuda.synchronize()
    times = [[] for _ in graphs]
    for _ in range(replays):
        marks = []
        graphs[-1].replay()  # untimed: the CPU must be ahead of the GPU
        for graph in graphs:
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            marks.append((begin, end))
        torch.cuda.synchronize()
        for samples, (begin, end) in zip(times, marks):
            samples.append(begin.elapsed_time(end) * 1e3)
    return times


def summary(samples, per):
    """Microseconds per launch, `per` of them in a replay."""
    ordered = sorted(s / per for s in samples)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return {"min": ordered[0], "median": statistics.median(ordered), "p90": p90}


def read_ceiling(replays, size=2 ** 31):
    """TB/s of a plain read stream of `size` bytes: the best of a few block shapes."""
    src = torch.empty(size // 4, device="cuda").normal_()
    out = torch.empty(size // 4 // 2048, device="cuda")
    best = {}
    for block, warps in ((2048, 4), (4096, 4), (8192, 4), (8192, 8), (16384, 8)):
        body = lambda: tk.read_stream[(size // 4 // block,)](src, out, BLOCK=block,
                                                             num_warps=warps)
        body()
        part = src[:block].double().sum().item()
        if abs(out[0].item() - part) > 1e-3 * block ** 0.5:
            raise RuntimeError("read_stream sums wrongly")
        graph = capture(lambda: [body() for _ in range(4)])
        times = summary(replay_times([graph], replays, 2)[0], 4)
        rate = size / times["median"] / 1e6
        if rate > best.get("TB/s", 0):
            best = {"TB/s": rate, "block": block, "warps": warps, "us": times}
    return best


def run_batch(batch, pool, case, candidates, generated, ceiling):
    """Times everything at one batch size; {kernel label: record}."""
    opt = pool.opt
    pool.tensors.state.normal_(0, 0.3)  # repeated steps leave little of the old one
    launches = pool.graph_launches(batch)
    graph_of = lambda kernel: capture(lambda: [kernel.launch(x) for x in launches])
    chosen, tuning = [], {}
    for family, kernels in candidates.items():
        graphs = [graph_of(k) for k in kernels]
        if graphs:
            medians = [summary(s, len(launches))["median"]
                       for s in replay_times(graphs, opt.tune_replays, 1)]
            tuning.update({k.name: m for k, m in zip(kernels, medians)})
            best = medians.index(min(medians))
            chosen.append((f"Triton {family}, best tile", kernels[best], graphs[best]))
    chosen += [(k.name, k, graph_of(k)) for k in generated]
    if not chosen:
        return {}, {}
    samples = replay_times([graph for _, _, graph in chosen], opt.replays, 2)
    records = {}
    for (label, kernel, _), times in zip(chosen, samples):
        us = summary(times, len(launches))
        useful = useful_bytes(opt, *case, batch, kernel.packed)
        records[label] = {"us": us, "TB/s": useful / us["median"] / 1e6,
                          "of ceiling": useful / us["median"] / 1e6 / ceiling,
                          "useful bytes": useful, "kernel": kernel.name,
                          "launches": len(launches),
                          "samples us": [t / len(launches) for t in times]}
    for packed, label in ((True, PACKED_LABEL), (False, REPLAY_LABEL)):
        names = [k.name for k in generated if k.packed == packed]
        if names:
            records[label] = min((records[n] for n in names), key=lambda r: r["us"]["median"])
    return records, tuning


def table(title, batches, rows):
    if not rows:
        return
    print(f"\n{title}\n")
    print("| | " + " | ".join(f"B={b}" for b in batches) + " |")
    print("|---" * (len(batches) + 1) + "|")
    for label, cells in rows:
        print(f"| {label} | " + " | ".join(cells) + " |")


def print_tables(name, result, ceiling):
    batches = list(result["batches"])
    records = result["batches"]
    labels = []
    for b in batches:
        labels += [label for label in records[b] if label not in labels]
    order = ["Triton packed, best tile", "Triton replay, best tile",
             PACKED_LABEL, REPLAY_LABEL]
    labels.sort(key=lambda l: order.index(l) if l in order else len(order))

    def rows(cell, wanted=order):
        return [(l, [cell(records[b][l], b) if l in records[b] else "-" for b in batches])
                for l in labels if l in wanted]

    def over(base):
        def cell(r, b):
            if base not in records[b]:
                return "-"
            return f"{records[b][base]['us']['median'] / r['us']['median']:.2f}x"
        return cell

    head = f"{name}: {result['what']}"
    table(f"**{head}, us (useful TB/s)**", batches,
          rows(lambda r, b: f"{r['us']['median']:.2f} ({r['TB/s']:.2f})", labels))
    table(f"**{name}: spread, min - p90 us**", batches,
          rows(lambda r, b: f"{r['us']['min']:.2f} - {r['us']['p90']:.2f}"))
    table(f"**{name}: useful over the read ceiling of {ceiling:.2f} TB/s**", batches,
          rows(lambda r, b: f"{r['of ceiling']:.2f}"))
    for base in order[:3]:
        if base not in labels:
            continue
        table(f"**{name}: speedup over {base}**", batches,
              rows(over(base), [l for l in order if l != base]))
    table(f"**{name}: what was best**", batches,
          rows(lambda r, b: r["kernel"].removeprefix("replayjit ").removeprefix("Triton ")))


# --- Main ----------------------------------------------------------------------

def ring_text(opt):
    """What the ring's name adds to its type."""
    if opt.ring_format == "raw":
        return ""
    return f" ({opt.ring_format}{', circular' if opt.circular else ''})"


def run_case(name, opt, generated, report):
    state, ring = TYPES[name]
    family = "GDN"
    if opt.kda:
        family = f"KDA ({'bounded' if opt.bounded else 'softplus'} gate)"
    result = report["cases"][name] = {
        "what": f"{family} H={opt.H} HV={opt.HV} K={opt.K} V={opt.V} L={opt.L}, {opt.act} "
                f"activations, {state} state, {ring} ring{ring_text(opt)}"
                + {"all": ", every row flushes", "none": ", no row flushes",
                   "some": ""}[opt.flushes],
        "checks": {}, "tuning": {}, "batches": {}}
    slots = 1 + max(launches_for(opt, b) * b for b in opt.batches)
    slots = max(slots, 4 * (opt.L + 9))
    pool = Pool(opt, state, ring, max(opt.batches + [opt.L + 9]), slots)
    log(f"{name}: {slots} slots")
    candidates = {
        "packed": [TritonKernel("packed", *c, opt.norm) for c in tk.PACKED_CANDIDATES]}
    if opt.ring_format == "raw":  # the only one that Triton's kernel knows
        candidates["replay"] = [TritonKernel("replay", *c, opt.norm)
                                for c in tk.REPLAY_CANDIDATES]
    for family, kernels in candidates.items():
        candidates[family] = [k for k in kernels if opt.triton and checked(k, pool, result)]
    matching = []
    for kernel in generated:
        if not kernel.mismatch(opt, state, ring) and checked(kernel, pool, result):
            matching.append(kernel)
            log(f"      {kernel.meta['driver']}, shared {kernel.shared}, "
                f"threads {kernel.threads}, blocks/row {kernel.blocks_per_row}")
    for packed in (True, False):
        name_by_differences([k for k in matching if k.packed == packed])
    result["kernels"] = {
        k.name: {"symbol": k.symbol, **{field: k.meta.get(field) for field in
                 ("spec", "tuning", "launch", "resources", "driver")}} for k in matching}
    if opt.check_only:
        return
    for batch in opt.batches:
        if time.monotonic() - START > opt.budget:
            print(f"time budget spent: {name} B={batch} and later left out")
            break
        records, tuning = run_batch(batch, pool, (state, ring), candidates, matching,
                                    report["read ceiling"]["TB/s"])
        result["batches"][batch], result["tuning"][batch] = records, tuning
        log(f"{name} B={batch}: " + ", ".join(
            f"{l} {r['us']['median']:.2f}" for l, r in records.items() if "best" in l))


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--kernels", help="folder with NAME.cubin and NAME.json pairs")
    arg.add_argument("--skip", nargs="+", default=[], metavar="TEXT",
                     help="leave out kernels whose file name contains TEXT")
    arg.add_argument("--no-triton", dest="triton", action="store_false")
    arg.add_argument("--json", help="write every number here")
    arg.add_argument("--types", nargs="+", choices=TYPES, default=["fp32", "bf16ring", "fp16"])
    arg.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16, 64, 256])
    arg.add_argument("--kda", action="store_true",
                     help="Kimi Delta Attention instead of GDN; 32 heads by default")
    arg.add_argument("--gate", choices=["softplus", "lower-bound"], default="softplus",
                     help="lower-bound needs --kda")
    arg.add_argument("--lower-bound", type=float, default=-5.0)
    arg.add_argument("--heads", nargs=2, type=int, metavar=("H", "HV"),
                     help="default: 16 32; KDA: 32 32")
    arg.add_argument("--dims", nargs=2, type=int, default=[128, 128], metavar=("K", "V"))
    arg.add_argument("--ring-depth", dest="L", type=int, default=16)
    arg.add_argument("--ring-format", choices=["raw", "prefix", "predecayed"], default="raw",
                     help="what the ring holds; all but raw need --gate lower-bound and H = HV")
    arg.add_argument("--circular", action="store_true",
                     help="rings that keep the token of a flush; not with raw")
    arg.add_argument("--act", choices=DTYPES, default="bf16")
    arg.add_argument("--out", choices=DTYPES, help="output type (default: that of --act)")
    arg.add_argument("--no-norm", dest="norm", action="store_false",
                     help="q and k are not L2-normalized")
    arg.add_argument("--flushes", choices=["some", "all", "none"], default="some",
                     help="which rows are at their last ring row: one in L, or all, or none")
    arg.add_argument("--replays", type=int, default=20)
    arg.add_argument("--tune-replays", type=int, default=5)
    arg.add_argument("--graph-slots", type=int, default=4096)
    arg.add_argument("--max-launches", type=int, default=1024)
    arg.add_argument("--budget", type=float, default=135,
                     help="start no further batch size after so many seconds")
    arg.add_argument("--seed", type=int, default=1)
    arg.add_argument("--check-only", action="store_true")
    arg.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                     help="cpu: --check-only under TRITON_INTERPRET=1")
    opt = arg.parse_args()
    opt.heads = opt.heads or ([32, 32] if opt.kda else [16, 32])
    (opt.H, opt.HV), (opt.K, opt.V) = opt.heads, opt.dims
    opt.bounded = opt.gate == "lower-bound"
    if opt.bounded and not opt.kda:
        arg.error("--gate lower-bound needs --kda")
    if opt.ring_format != "raw" and not (opt.bounded and opt.norm and opt.H == opt.HV):
        arg.error(f"--ring-format {opt.ring_format} needs --gate lower-bound, the norm and H = HV")
    if opt.circular and (opt.ring_format == "raw" or opt.L < 2):
        arg.error("--circular needs --ring-format prefix or predecayed and a ring of 2 or more")
    opt.out = opt.out or opt.act
    if opt.device == "cpu" and not opt.check_only:
        arg.error("--device cpu needs --check-only")
    if opt.check_only:
        opt.batches, opt.graph_slots = [1], min(opt.graph_slots, 256)

    gc.disable()  # nothing may be freed by chance while a graph is captured
    report = {"method": "cold L2, own slots per launch, graph replay, median",
              "options": {k: v for k, v in vars(opt).items()},
              "torch": torch.__version__, "triton": triton.__version__, "cases": {}}
    if opt.device == "cuda":
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        device = torch.cuda.get_device_properties(0)
        report["device"] = {"name": device.name, "SMs": device.multi_processor_count}
        log(f"{device.name}, {device.multi_processor_count} SMs, torch {torch.__version__}, "
            f"triton {triton.__version__}")
    if not opt.check_only:
        report["read ceiling"] = read_ceiling(opt.replays)
        log(f"read ceiling {report['read ceiling']['TB/s']:.3f} TB/s")
    generated = load_kernels(opt.kernels, opt.skip) if opt.kernels else []
    for kernel in generated:
        reasons = [kernel.mismatch(opt, *TYPES[name]) for name in opt.types]
        if all(reasons):
            log(f"fits no case: {kernel.name} ({min(reasons, key=len)})")
    for name in opt.types:
        if time.monotonic() - START > opt.budget:
            print(f"time budget spent: {name} left out")
            break
        try:
            run_case(name, opt, generated, report)
        except ContextLost as lost:
            print(lost, flush=True)
            break
        finally:
            if opt.json:
                path = pathlib.Path(opt.json)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(report, indent=1))
        gc.collect()
        if opt.device == "cuda":
            torch.cuda.empty_cache()
    for name, result in report["cases"].items():
        if result["batches"]:
            print_tables(name, result, report["read ceiling"]["TB/s"])
    wrong = [n for r in report["cases"].values() for n, c in r["checks"].items() if c["wrong"]]
    count = sum(len(r["checks"]) for r in report["cases"].values())
    print(f"\n{count} checks, {len(wrong)} wrong; {time.monotonic() - START:.0f} s in all")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
