"""Looks at the tensors of a call: shape, type, strides, device."""

import functools

from ._check import refused
from .runtime import runtime_of
from .spec import SIZES, TYPES

F32, BF16, F16, I32, I64 = range(5)
FLOATS, INDICES = (F32, BF16, F16), (I32, I64)
_NAMES = tuple(TYPES)


@functools.lru_cache(maxsize=None)
def _type_of(dtype):
    return TYPES.get(str(dtype).rpartition(".")[2])


class Operand:
    """A tensor that has been looked at: address, type, shape, and the elements
    from one row to the next (0 where rows are dense by rule)."""

    __slots__ = ("address", "type", "shape", "pitch")

    @property
    def alignment_bits(self):
        """What divides these divides address and pitch, in bytes."""
        return self.address | self.pitch * SIZES[self.type]


def _wrong_shape(name, found, shape):
    wanted = ", ".join("any" if size is None else str(size) for size in shape)
    return ValueError(f"{name}: shape {found} is not allowed; it must be "
                      f"({wanted})")


def _no_tensor(name, value):
    return refused(name, value, "a tensor, with data_ptr(), stride(), shape, "
                                "dtype and device")


def operand(name, tensor, shape, types, free=1):
    """Looks at a tensor that must have `shape`, in which None is any size, and
    one of `types`. The first `free` dimensions, none or one, may have any
    stride; the others are dense."""
    result, dense = Operand(), 1
    try:
        result.address, found = tensor.data_ptr(), tuple(tensor.shape)
        strides, dtype = tensor.stride(), tensor.dtype
    except AttributeError:
        raise _no_tensor(name, tensor) from None
    result.shape = found
    if len(found) != len(shape):
        raise _wrong_shape(name, found, shape)
    for at in range(len(found) - 1, -1, -1):
        size = found[at]
        if size != shape[at] and shape[at] is not None:
            raise _wrong_shape(name, found, shape)
        if at >= free:
            if size > 1 and strides[at] != dense:
                raise ValueError(f"{name}: stride {strides[at]} of dimension "
                                 f"{at} is not allowed; it must be {dense}")
            dense *= size
    result.type = _type_of(dtype)
    if result.type not in types:
        raise ValueError(f"{name}: dtype {dtype} is not allowed; allowed "
                         "are " + ", ".join(_NAMES[one] for one in types))
    # The stride of a single row says nothing.
    result.pitch = (strides[0] if found[0] > 1 else dense) if free else 0
    return result


def common_runtime(tensors, on_host=False):
    """The runtime of the device on which all tensors are; `tensors` by name.
    That may be the host, if `on_host` says so."""
    first = None
    for name, tensor in tensors.items():
        try:
            device = tensor.device
        except AttributeError:
            raise _no_tensor(name, tensor) from None
        if first is None:
            first, home = name, device
            runtime = runtime_of(tensor, on_host)
        elif device != home and runtime_of(tensor, on_host) is not runtime:
            raise ValueError(f"{name}: device {device} is not allowed; it must "
                             f"be {home}, where {first} is")
    return runtime
