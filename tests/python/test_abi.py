"""The ctypes structs and functions are those of the headers."""

import ctypes
import os
import re
import unittest
from ctypes import POINTER
from pathlib import Path

from replayjit import _abi
from replayjit._library import library
from replayjit.spec import facts

TYPES = {
    "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
    "float": ctypes.c_float, "size_t": ctypes.c_size_t,
    "const char *": ctypes.c_char_p, "void *": ctypes.c_void_p,
    "const char *const *": POINTER(ctypes.c_char_p),
    "replayjit_diagnostic_fn": _abi.DiagnosticFn,
    "replayjit_progress_fn": _abi.ProgressFn,
    "const replayjit_decode_spec_t *": ctypes.c_void_p,
    "const replayjit_layer_t *": POINTER(_abi.Layer),
    "const replayjit_group_indices_t *": POINTER(_abi.GroupIndices),
    "replayjit_error_word_t *": POINTER(_abi.ErrorWord),
}


def header():
    folder = (Path(os.environ["REPLAYJIT_SOURCE_DIR"]) /
              "runtime/include/replayjit")
    text = "".join((folder / name).read_text(encoding="utf-8")
                   for name in ("replayjit_error.h", "replayjit_launch.h",
                                "replayjit.h",
                                "replayjit_state.h", "replayjit_describe.h"))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text)


def fields_of(text, name):
    """[(field, type)] of a struct; several names may share a type."""
    body = re.search(r"typedef struct " + name + r" \{(.*?)\}", text).group(1)
    found = []
    for line in filter(None, (line.strip() for line in body.split(";"))):
        kind, names = re.fullmatch(r"(.*?[ *])([\w, ]+)", line).groups()
        found += [(one.strip(), TYPES[kind.strip()]) for one in names.split(",")]
    return found


class AbiTest(unittest.TestCase):
    def setUp(self):
        library()  # It knows the fields of arguments.

    def test_structs(self):
        """A struct of this package may lack the header's newest fields."""
        text = header()
        for name, struct in _abi.STRUCTS.items():
            with self.subTest(name):
                self.assertEqual(list(struct._fields_),
                                 fields_of(text, name)[:len(struct._fields_)])

    def test_arguments_lie_where_the_library_says(self):
        for name, (struct, _) in _abi._LEARNED.items():
            described = list(_abi._described(library(), name))
            self.assertNotEqual(described, [])
            for one in described:
                field = one.name.decode()
                with self.subTest(struct=name, field=field):
                    self.assertEqual(getattr(struct, field).offset, one.offset)
                    self.assertNotEqual(one.doc, b"")

    def test_functions_have_the_parameters_of_the_header(self):
        text = header()
        for name, parameters in [
                *_abi.FALLIBLE.items(),
                *((name, plain[1]) for name, plain in _abi.PLAIN.items())]:
            with self.subTest(name):
                declared = re.search(r"\b" + name + r" ?\((.*?)\);", text)
                listed = declared.group(1).split(",")
                if listed == ["void"]:
                    listed = []
                self.assertEqual(len(parameters), len(listed))
                for have, line in zip(parameters, listed):
                    kind = re.match(r"(?:const )?(\w+)( \*)?", line.strip())
                    by_value = not kind.group(2) and "*" not in line
                    if by_value and kind.group(1) in TYPES:
                        self.assertIs(have, TYPES[kind.group(1)], line)
                    else:
                        self.assertFalse(issubclass(have, (ctypes.c_int32,
                                                           ctypes.c_uint64)),
                                         line)

    def test_every_function_is_wrapped_or_listed(self):
        declared = set(re.findall(r"REPLAYJIT_API [^;(]*?\b(replayjit_\w+) ?\(",
                                  header()))
        wrapped = [*_abi.FALLIBLE, *_abi.PLAIN]
        listed = [name for names in _abi.NOT_WRAPPED.values()
                  for name in names.split()]
        self.assertEqual(sorted(wrapped + listed), sorted(declared))
        source = "".join(
            path.read_text(encoding="utf-8") for path in
            Path(_abi.__file__).parent.glob("*.py"))
        for name in wrapped:
            short = name.replace("replayjit_plan_", "")  # StepPlan._call
            with self.subTest(name):
                self.assertRegex(source,
                                 rf'\.{name}\b|_call(_on_rows)?\("{short}"')

    def test_fallible_functions_return_errors(self):
        text = header()
        for name in _abi.FALLIBLE:
            self.assertRegex(text, r"replayjit_error_t \* ?" + name + r" ?\(")

    def test_version(self):
        major, minor = re.search(
            r"REPLAYJIT_API_VERSION \(\((\d+)u << 16\) \| (\d+)u\)",
            header()).groups()
        self.assertEqual(_abi.API_VERSION, (int(major) << 16) + int(minor))

    def test_specs_have_the_fields_of_the_header(self):
        """The library tells them; the header's struct is the oracle."""
        self.assertEqual(
            [("struct_size", ctypes.c_uint32)]
            + [(name, ctypes.c_int32) for name in facts()],
            fields_of(header(), "replayjit_decode_spec_t"))
        self.assertEqual([fact.at for fact in facts().values()],
                         list(range(1, 1 + len(facts()))))


if __name__ == "__main__":
    unittest.main()
