"""The wheel, installed where there is nothing else."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["REPLAYJIT_SOURCE_DIR"])
BUILD = os.environ["REPLAYJIT_BUILD_DIR"]


def output_of(*command, **options):
    """What a command prints; both streams in the message if it fails."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.wheel = output_of(sys.executable, SOURCE / "tools/wheel", "--build",
                              BUILD, "-o", cls.folder / "dist").strip()
        output_of(sys.executable, "-m", "venv", cls.folder / "venv")
        cls.bin = cls.folder / "venv/bin"
        output_of(cls.bin / "pip", "install", "--quiet", "--no-index",
                  "--disable-pip-version-check", cls.wheel)

    def run_there(self, program, *arguments):
        """What a program of the environment prints that sees no other."""
        return output_of(self.bin / program, *arguments, cwd=self.folder, env={
            "PATH": str(self.bin), "HOME": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1"})

    def test_platform(self):
        major, minor = re.search(
            r"-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl$", self.wheel).groups()
        self.assertLessEqual((int(major), int(minor)), (2, 35))

    def test_package(self):
        told = self.run_there("python", "-m", "replayjit")
        self.assertRegex(told, r"replayjit \d+\.\d+\.\d+, with compiler: ")
        self.assertIn(str(self.folder), told)

    def test_kernel_of_a_model(self):
        ptx = self.run_there("replay-compile", "--model", "qwen3-next", "--tp", "4",
                             "--emit=ptx", "-o", "-")
        self.assertRegex(ptx, r"ld\.global[\w.:]*\.(v4\.[bfsu]32|v2\.[bfsu]64)")

    def test_kernels_against_fp64(self):
        told = self.run_there("replay-run", "--suite", "small", "--device=cpu")
        self.assertRegex(told, r"[1-9]\d* passed, 0 failed")

    def test_operators_against_the_recurrence(self):
        self.run_there("python", SOURCE / "tests/python/test_decode.py")

    def test_a_program_in_c(self):
        """With the compiler of this machine, and what the package says."""
        source = self.folder / "program.c"
        source.write_text("#include <replayjit/replayjit_state.h>\n#include <stdio.h>\n"
                          "int main(void) { return puts(replayjit_version()) < 0; }\n")
        flags = [flag for which in ("--cflags", "--libs") for flag in
                 self.run_there("python", "-m", "replayjit", which).split()]
        program = self.folder / "program"
        output_of("cc", source, "-o", program, *flags)
        self.assertRegex(output_of(program), r"^\d+\.\d+\.\d+\n$")


class GlibcTest(unittest.TestCase):
    def setUp(self):
        path = str(SOURCE / "tools/wheel")
        loader = importlib.machinery.SourceFileLoader("wheel", path)
        spec = importlib.util.spec_from_loader("wheel", loader)
        self.tool = importlib.util.module_from_spec(spec)
        loader.exec_module(self.tool)

    def library(self, folder, body, *flags):
        source, made = Path(folder, "new.c"), Path(folder, "libnew.so")
        source.write_text("#include <math.h>\n#include <stdlib.h>\n" + body)
        output_of("cc", "-D_GNU_SOURCE", "-shared", "-fPIC", source, "-o", made,
                  *flags)
        return made

    def test_symbols_of_a_newer_glibc(self):
        with tempfile.TemporaryDirectory() as folder:
            new = self.library(folder, "unsigned f(void) { return arc4random(); }")
            with self.assertRaisesRegex(
                    SystemExit, r"libnew.so: .* after 2\.35: arc4random \(2\.36\)"):
                self.tool.newest_glibc(new)

    def test_symbols_of_an_older_one(self):
        with tempfile.TemporaryDirectory() as folder:
            old = self.library(folder, "double f(double x) { return hypot(x, x); }",
                               "-lm")
            self.assertEqual(self.tool.newest_glibc(old), (2, 35))

    def test_other_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            other = self.library(folder, "int x;", "-Wl,--no-as-needed", "-lz")
            with self.assertRaisesRegex(SystemExit, r"libnew.so: it needs libz"):
                self.tool.newest_glibc(other)


if __name__ == "__main__":
    unittest.main()
