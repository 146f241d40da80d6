"""The package as setuptools puts it together."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["REPLAYJIT_SOURCE_DIR"]) / "runtime/python"


class PackageTest(unittest.TestCase):
    def test_modules_and_a_library_beside_them(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "source"), Path(folder, "site")
            shutil.copytree(SOURCE, source)
            os.symlink(os.environ["REPLAYJIT_LIBRARY"],
                       source / "replayjit/libreplayjit.so.0.1")
            # Without pip, which wants the package wheel or a network.
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c",
                 "import setuptools; setuptools.setup()", "--quiet", "build",
                 "--build-lib", target],
                cwd=source, check=True, capture_output=True)
            environment = {name: value for name, value in os.environ.items()
                           if name not in ("REPLAYJIT_LIBRARY", "PYTHONPATH")}
            told = subprocess.run(
                [sys.executable, "-c",
                 "import replayjit, sys; print(replayjit.Spec().ring_depth, "
                 "replayjit.__file__, 'torch' in sys.modules)"],
                env={**environment, "PYTHONPATH": str(target)}, check=True,
                capture_output=True, text=True).stdout.split()
            self.assertEqual(told, ["16", str(target / "replayjit/__init__.py"),
                                    "False"])


if __name__ == "__main__":
    unittest.main()
