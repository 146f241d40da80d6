"""Finds libreplayjit.so, and turns its errors into exceptions."""

import ctypes
import functools
import os
from pathlib import Path

from . import _abi


class Error(RuntimeError):
    """What the library refused or could not do: one sentence.

    `code` is a replayjit_code_t, `stage` the step of compiling or loading that
    failed, `log` what an assembler or the driver printed.
    """

    def __init__(self, message: str, code: int = 0, stage: str = "",
                 log: str = ""):
        super().__init__(message)
        self.code, self.stage, self.log = code, stage, log


class InvalidArgument(Error, ValueError):
    """A field or an argument breaks a rule."""


#: Its code.
INVALID_ARGUMENT = 1


#: The library's SONAME.
_NAME = f"libreplayjit.so.{_abi.API_VERSION >> 16}.{_abi.API_VERSION & 0xffff}"


def place():
    """What is opened: REPLAYJIT_LIBRARY, else the library in this folder, else
    the one that the system finds."""
    named = os.environ.get("REPLAYJIT_LIBRARY")
    if named:
        return named
    beside = Path(__file__).with_name(_NAME)
    return str(beside) if beside.exists() else _NAME


@functools.lru_cache(maxsize=None)
def library():
    """The library, opened by the first call. Calls into it release the GIL."""
    path = place()
    try:
        opened = ctypes.CDLL(path)
    except OSError as problem:
        raise Error(f"libreplayjit cannot be opened ({problem}); build it with "
                    "'cmake --build build --target replayjit' and set "
                    "REPLAYJIT_LIBRARY to its path") from None
    opened.replayjit_api_version.restype = ctypes.c_uint32
    found, wanted = opened.replayjit_api_version(), _abi.API_VERSION
    if found != wanted:  # Before 1.0 a minor may change anything.
        raise Error(f"'{path}' has API version {found >> 16}.{found & 0xffff}; "
                    f"this package needs {wanted >> 16}.{wanted & 0xffff}")
    return _abi.declare(opened)


def to_exception(error):
    """The exception for an error of the library, which is destroyed."""
    calls = library()
    code = calls.replayjit_error_code(error)
    texts = [read(error).decode("utf-8", "replace")
             for read in (calls.replayjit_error_message,
                          calls.replayjit_error_stage,
                          calls.replayjit_error_log)]
    calls.replayjit_error_destroy(error)
    kind = InvalidArgument if code == INVALID_ARGUMENT else Error
    return kind(texts[0], code, *texts[1:])


def check(error):
    """Raises what a fallible function returned, unless that is None."""
    if error:
        raise to_exception(error)
