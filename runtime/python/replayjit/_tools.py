"""The command line tools, which a wheel brings along: one program, whose name
when it is called says which tool it is."""

import os
import sys
from pathlib import Path


def main():
    """Becomes the tool whose name this script was called by."""
    program = Path(__file__).with_name("replayjit-tools")
    os.execv(program, [Path(sys.argv[0]).name, *sys.argv[1:]])
