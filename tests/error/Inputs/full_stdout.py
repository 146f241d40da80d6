"""full_stdout.py COMMAND...: it must fail, with one sentence, where stdout takes
nothing."""

import subprocess
import sys

with open("/dev/full", "wb") as full:
    run = subprocess.run(sys.argv[1:], stdout=full, stderr=subprocess.PIPE,
                         text=True)
sentence = "error: output: cannot write to stdout: No space left on device\n"
if run.returncode != 1 or run.stderr != sentence:
    sys.exit(f"{sys.argv[1:]} ended with {run.returncode} and {run.stderr!r}")
