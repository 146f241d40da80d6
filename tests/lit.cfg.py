# The lit suite: every .mlir and .test file below this folder.
#
# A RUN line may name the tools below; `%t` is a file of the test's own and `%s`
# the test. `REQUIRES: ptxas` marks a test that needs ptxas.

import os
import shutil

import lit.formats

config.name = "replayjit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "gpu", "lint", "perf", "unit"]
config.test_source_root = os.path.dirname(__file__)

# Each name becomes a full path, so that a failed RUN line can be pasted.
for folder, target, names in [
    (config.replayjit_tools_dir, "build the target replayjit-tools",
     ["replay-opt", "replay-compile", "replay-run"]),
    (config.llvm_tools_dir, "install llvm-22-tools",
     ["FileCheck", "not", "split-file"]),
]:
    for name in names:
        path = os.path.join(folder, name)
        if not os.access(path, os.X_OK):
            lit_config.fatal(f"no {name} in {folder}: {target} first")
        # Not within another word, an option or a path.
        config.substitutions.append((rf"(?<![\w./=-]){name}(?![\w./-])", path))

# Where an assembler is found; the tools read these themselves.
for variable in ["REPLAYJIT_PTXAS", "TRITON_PTXAS_PATH", "REPLAYJIT_NVJITLINK",
                 "CUDA_HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"]:
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

ptxas = [os.environ.get("REPLAYJIT_PTXAS"), os.environ.get("TRITON_PTXAS_PATH"),
         shutil.which("ptxas"),
         os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/ptxas"),
         "/usr/local/cuda/bin/ptxas"]
if any(path and os.access(path, os.X_OK) for path in ptxas):
    config.available_features.add("ptxas")
