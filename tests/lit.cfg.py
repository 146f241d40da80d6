# The lit suite: every .mlir and .test file below this folder.
#
# A RUN line may name the tools below; `%t` is a file of the test's own, `%s` the
# test, `%python` this interpreter, `%bin` the folder of the tools and `%refuses`
# error/Inputs/refuses.
# `REQUIRES: assembler` marks a test that needs nvJitLink or ptxas,
# `REQUIRES: disassembler` one that needs nvdisasm or cuobjdump as well, and
# `REQUIRES: chromium` one that opens a page in a browser, which is `%chromium`.

import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "replayjit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "gpu", "lint", "perf", "unit"]
config.test_source_root = os.path.dirname(__file__)

# Each name becomes a full path, so that a failed RUN line can be pasted.
for folder, target, names in [
    (config.replayjit_tools_dir, "build the target replayjit-tools",
     ["replay-opt", "replay-compile", "replay-run", "replay-cache",
      "replay-bench"]),
    (config.llvm_tools_dir, "install llvm-22-tools",
     ["FileCheck", "count", "not", "split-file"]),
]:
    for name in names:
        path = os.path.join(folder, name)
        if not os.access(path, os.X_OK):
            lit_config.fatal(f"no {name} in {folder}: {target} first")
        # Not within another word, an option, a path or a sentence.
        after = {"count": r"(?= \d)", "not": r"(?= (/|%|replay-))"}
        config.substitutions.append(
            (rf"(?<![\w./=-]){name}" + after.get(name, r"(?![\w./-])"), path))

config.substitutions += [
    ("%python", sys.executable),
    ("%bin", config.replayjit_tools_dir),
    ("%refuses", f"{sys.executable} "
     + os.path.join(config.test_source_root, "error/Inputs/refuses")),
]

# Where an assembler is found; the tools read these themselves.
for variable in ["REPLAYJIT_PTXAS", "TRITON_PTXAS_PATH", "REPLAYJIT_NVJITLINK",
                 "CUDA_HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"]:
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

# What the tools themselves find: something that makes a cubin, nvJitLink for it,
# and something that shows a cubin.
compile = os.path.join(config.replayjit_tools_dir, "replay-compile")
for feature, artifact, assembler in [("assembler", "cubin", "any"),
                                     ("nvjitlink", "cubin", "nvjitlink"),
                                     ("disassembler", "sass", "any")]:
    probe = subprocess.run([compile, "--k", "16", "--v", "16", "-L", "1",
                            "--assembler", assembler,
                            "--emit", artifact, "-o", os.devnull],
                           stderr=subprocess.DEVNULL)
    if probe.returncode == 0:
        config.available_features.add(feature)

chromium = shutil.which("chromium") or shutil.which("google-chrome")
if chromium:
    config.available_features.add("chromium")
    config.substitutions.append(("%chromium", chromium))
