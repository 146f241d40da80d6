#!/usr/bin/env python3
"""Kernels change places: ours under Triton's launcher, Triton's under ours.

One way, a kernel of --abi triton is exported for the hash that Triton computes for
a Python function of the same signature; Triton then finds it in its cache in the
place of that function, loads and launches it. The other way, the entry that Triton
made for tests/perf/triton_kernels.py is imported, and replayjit's runtime launches
it, which must give the bits that Triton's launch gives. Both are compared with
fp64. tests/gpu/README.md has the commands.
"""

import argparse
import base64
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "perf"))
import triton_kernels as tk  # noqa: E402
from decode_check import check, same_bits  # noqa: E402
from decode_pool import Pool  # noqa: E402

WRITTEN = ("out", "state", "dRing", "kRing", "gRing")


@dataclasses.dataclass
class Case:
    kda: bool
    act: str  # also the output's type
    state: str
    ring: str

    def __str__(self):
        return (f"{'KDA' if self.kda else 'GDN'} {self.act}, {self.state} state, "
                f"{self.ring} ring")

    def command(self, opt):
        """What makes the kernel that Triton is to launch."""
        flags = " --kda" if self.kda else ""
        return (f"replay-compile --abi triton{flags} --heads {opt.H} --value-heads {opt.HV} "
                f"--k {opt.K} --v {opt.V} -L {opt.L} --act {self.act} --state {self.state} "
                f"--ring {self.ring} --target {opt.target} --out-dir {opt.commands}")


CASES = [Case(kda, *types) for kda in (False, True)
         for types in [("bf16", "fp32", "fp32"), ("fp16", "bf16", "bf16")]]


@triton.jit
def replay_step(mixed_qkv, a, b, A_log, dt_bias, o, h0, ht, d_cache, k_cache, g_cache,
                ssm_state_indices, write_pos, force_flush, scale, CASE: tl.constexpr):
    """The signature of the replay decode kernel, and a body that fails the check: it
    must never run."""
    tl.store(o + tl.program_id(0), float("nan"))


def run(opt, *command):
    """The last word that a command prints."""
    done = subprocess.run([str(pathlib.Path(opt.bin) / command[0]), *map(str, command[1:])],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
    return (done.stdout.split() or [""])[-1]


class OursUnderTriton:
    packed, readout = False, "outputOnly"

    def __init__(self, opt, case, folder):
        self.case, self.folder, self.opt = case, folder, opt
        self.ready = False
        for path in sorted(pathlib.Path(opt.kernels).glob("*.json")):
            record = json.loads(path.read_text())
            spec = record.get("spec", {})
            have = (spec.get("abi"), spec.get("isKda"), spec.get("actType"),
                    spec.get("stateType"), spec.get("ringType"), spec.get("numKeyHeads"),
                    spec.get("numValueHeads"))
            if have == ("triton", case.kda, case.act, case.state, case.ring, opt.H, opt.HV):
                self.record, self.base = record, path.with_suffix("")
                return
        raise RuntimeError(f"{opt.kernels} has no kernel of it")

    def step(self, x, **how):
        grid = (self.record["launch"]["blocksPerRow"] // x.HV, x.batch, x.HV)
        return replay_step.run(
            x.q, x.a, x.b, x.aLog, x.dtBias, x.out, x.state, x.state, x.dRing, x.kRing,
            x.gRing, x.stateIndices, x.writePos, x.forceFlush, x.scale, CASE=str(self.case),
            grid=grid, **how)

    def launch(self, x):
        if not self.ready:  # lets Triton name the entry, and puts ours there
            triton.knobs.cache.dir = f"{self.folder}/named"
            named = self.step(x, warmup=True)
            run(self.opt, "replay-cache", "export-triton", self.base, "--to",
                f"{self.folder}/exported", "--hash", named.hash, "--file", replay_step.__name__)
            triton.knobs.cache.dir = f"{self.folder}/exported"
            replay_step.device_caches.clear()
            self.ready = True
        kernel = self.step(x, warmup=False)
        if kernel.metadata.name != self.record["name"]:
            raise RuntimeError(f"Triton launched '{kernel.metadata.name}'")


class Recorder:
    """Stands for a Triton kernel; keeps what it is called with."""

    def __getitem__(self, grid):
        def call(*args, **kwargs):
            self.grid, self.args, self.kwargs = grid, args, kwargs
        return call


class TritonsUnderOurs:
    packed, readout = False, "rebuild"

    def __init__(self, opt, case, folder):
        self.opt, self.folder = opt, folder

    def launch(self, x):
        before = {name: getattr(x, name).clone() for name in WRITTEN}
        real, tk.replay_decode = tk.replay_decode, Recorder()
        try:
            tk.launch_replay(x, x.batch, 64, 1, x.scale, norm=True)
            call = tk.replay_decode
        finally:
            tk.replay_decode = real
        triton.knobs.cache.dir = f"{self.folder}/triton"
        kernel = real.run(*call.args, grid=call.grid, warmup=False, **call.kwargs)
        torch.cuda.synchronize()
        want = {name: getattr(x, name).clone() for name in WRITTEN}
        for name in WRITTEN:
            getattr(x, name).copy_(before[name])

        entry = base64.b32encode(bytes.fromhex(kernel.hash)).decode().rstrip("=")
        record = run(self.opt, "replay-cache", "import-triton",
                     f"{self.folder}/triton/{entry}", "--to", f"{self.folder}/imported")
        files, words = {}, []
        for value, kind in zip(call.args, kernel.src.signature.values()):
            if kind == "constexpr":  # a stride of 1
                continue
            if isinstance(value, torch.Tensor):
                path = f"{self.folder}/argument{len(words)}"
                value.contiguous().view(torch.uint8).cpu().numpy().tofile(path)
                files[path] = value
                words.append(f"@{path}")
            else:
                words.append(repr(value))
        run(self.opt, "launch-files", record.removesuffix(".json"),
            ",".join(map(str, call.grid)), *words, "null", "null")
        for path, tensor in files.items():
            data = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()),
                                    dtype=tensor.dtype)
            tensor.copy_(data.view(tensor.shape))
        for name in WRITTEN:
            if not same_bits(getattr(x, name), want[name]):
                raise RuntimeError(f"{name} has other bits than under Triton's launcher")


def main():
    arg = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arg.add_argument("--kernels", help="folder of the kernels that --commands makes")
    arg.add_argument("--bin", help="folder with replay-cache and launch-files")
    arg.add_argument("--commands", metavar="DIR",
                     help="print the commands that make the kernels in DIR, and end")
    arg.add_argument("--target", default="sm_90a", help="of those commands")
    arg.add_argument("--seed", type=int, default=1)
    opt = arg.parse_args()
    opt.H, opt.HV, opt.K, opt.V, opt.L = 2, 4, 128, 128, 16
    if opt.commands:
        print("\n".join(case.command(opt) for case in CASES))
        return 0
    if not (opt.kernels and opt.bin):
        arg.error("give --kernels and --bin, or --commands")

    failed = 0
    print(f"Triton {triton.__version__}, torch {torch.__version__}, "
          f"{torch.cuda.get_device_name()}\n")
    print("| case | kernel | launcher | relative errors | |")
    print("|---|---|---|---|---|")
    for case in CASES:
        for way, kernel, launcher in ((OursUnderTriton, "replayjit", "Triton"),
                                      (TritonsUnderOurs, "Triton", "replayjit")):
            pool = Pool(SimpleNamespace(
                **vars(opt), device="cuda", act=case.act, out=case.act, kda=case.kda,
                bounded=False, lower_bound=-5.0, ring_format="raw", circular=False,
                norm=True), case.state, case.ring, rows=32, slots=64)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    errors, wrong = check(way(opt, case, folder), pool)
                except Exception as failure:  # a row of its own
                    errors, wrong = {}, [f"did not run: {failure}"]
            cells = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
            print(f"| {case} | {kernel} | {launcher} | {cells} | "
                  f"{'; '.join(wrong) or 'ok'} |", flush=True)
            failed += bool(wrong)
    print(f"\n{2 * len(CASES) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
