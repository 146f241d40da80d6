"""Looks at arguments before C does, for which ctypes cuts an integer to the width
of its field, takes a str for an address and True for 1. What is wrong is a
ValueError that says argument, value and what is allowed.
"""

import ctypes
import operator
import os

_MOST_OF_A_FLOAT = (2 - 2.0**-23) * 2.0**127


def _integers(kind):
    bits = 8 * ctypes.sizeof(kind)
    least = -1 << bits - 1 if kind(-1).value < 0 else 0
    return operator.index, least, least + (1 << bits) - 1


#: How a number of a ctypes type is read, and the least and the greatest one.
NUMBERS = {kind: _integers(kind) for kind in (
    ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64,
    ctypes.c_size_t)}
NUMBERS[ctypes.c_float] = (float, -_MOST_OF_A_FLOAT, _MOST_OF_A_FLOAT)


def refused(name, value, allowed):
    return ValueError(f"{name}: {value!r} is not allowed; it must be {allowed}")


def number(name, value, kind):
    """The int or float of a C field or parameter of type `kind`."""
    read, least, most = NUMBERS[kind]
    try:
        if not isinstance(value, (bool, str, bytes)):
            found = read(value)
            if least <= found <= most:
                return found
    except (TypeError, ValueError, OverflowError):
        pass  # It is no number, or larger than any float.
    what = "a number" if read is float else "an integer"
    raise refused(name, value, f"{what} from {least} to {most}")


def truth(name, value):
    """0 or 1, of that or of a bool."""
    if isinstance(value, int) and value in (0, 1):
        return int(value)
    raise refused(name, value, "true or false")


def text(name, value):
    """The bytes of a str or a path."""
    if isinstance(value, (str, os.PathLike)):
        found = os.fsencode(value)
        if b"\0" not in found:
            return found
    raise refused(name, value, "a string without NUL")


def instance(name, value, kind):
    """An object of the package's class `kind`."""
    if isinstance(value, kind):
        return value
    raise refused(name, value, f"a replayjit.{kind.__name__}")


def function(name, value):
    """What can be called."""
    if callable(value):
        return value
    raise refused(name, value, "a function")


def one_of(name, names, what, where=""):
    """`name`, which is that of a `what` and among `names`."""
    if name in names:
        return name
    raise ValueError(f"{where}{name}: there is no such {what}; there are "
                     + ", ".join(names))


def items(name, value, count=None):
    """A list of `value`, which has so many elements."""
    try:
        found = None if isinstance(value, (str, bytes)) else list(value)
    except TypeError:
        found = None
    if found is None:
        raise refused(name, value, "a list")
    if count not in (None, len(found)):
        raise ValueError(f"{name}: {len(found)} elements are not allowed; there "
                         f"must be {count}")
    return found
