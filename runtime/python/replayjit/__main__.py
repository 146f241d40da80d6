"""python -m replayjit: what is installed, and where."""

import argparse
import sys
from pathlib import Path

from ._library import library, place

_INCLUDE = Path(__file__).with_name("include")


def main():
    parser = argparse.ArgumentParser(prog="python -m replayjit",
                                     description="What is installed, and where.")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--cflags", action="store_true",
                     help="print the flags that compile with the headers")
    one.add_argument("--libs", action="store_true",
                     help="print the flags that link the library")
    given = parser.parse_args()
    opened = library()
    if not (given.cflags or given.libs):
        compiles = "with" if opened.replayjit_has_compiler() else "without"
        print(f"replayjit {opened.replayjit_version().decode()}, {compiles} "
              f"compiler: {place()}")
    elif not _INCLUDE.exists():
        sys.exit("error: this installation has no headers; those of a wheel that "
                 "tools/wheel makes are in the package")
    elif given.cflags:
        print(f"-I{_INCLUDE}")
    else:
        print(f"{place()} -Wl,-rpath,{Path(place()).parent}")


if __name__ == "__main__":
    main()
