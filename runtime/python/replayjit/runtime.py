"""Devices, and the kernels prepared for them."""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from ctypes import byref, c_int32, c_int64, c_size_t, c_uint64, sizeof
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _abi
from ._check import function, instance, items, number, one_of, refused, text
from ._library import InvalidArgument, check, library
from .spec import SIZES, TYPES, Spec


def owned(owner, address, release):
    """Releases a handle with its owner; returns the handle."""
    weakref.finalize(owner, release, address)
    return address


def owned_memory(owner, device, free, *memory):
    """Frees memory of a device, `free(device, *memory)`, with its owner. It
    keeps the device: where one collection finds the owner and the Runtime, their
    finalizers run in any order."""
    library().replayjit_device_retain(device)
    weakref.finalize(owner, _free, device, free, memory)


def _free(device, free, memory):
    calls = library()
    error = free(device, *memory)
    if error:  # A finalizer has nobody to tell.
        calls.replayjit_error_destroy(error)
    calls.replayjit_device_release(device)


class Kernel:
    """A kernel that is loaded; keeps what it needs."""

    def __init__(self, address: int):
        self.address = owned(self, address, library().replayjit_kernel_release)

    def __repr__(self):
        info = self.info
        return (f"<replayjit.Kernel for {info['chip']}, {info['origin']}: "
                f"{info['name']}>")

    @property
    def spec(self) -> Spec:
        """What it computes."""
        spec = Spec()
        check(library().replayjit_kernel_spec(self.address, spec))
        return spec

    @property
    def info(self) -> Dict[str, Any]:
        """A dict: name, chip, threads, registers, ... (replayjit_kernel_info_t);
        `origin` is "compiled" or "cached"."""
        info = _abi.KernelInfo(sizeof(_abi.KernelInfo))
        check(library().replayjit_kernel_info(self.address, byref(info)))
        found = {name: getattr(info, name) for name, _ in info._fields_[1:]}
        for name in ("name", "chip", "assembler"):
            found[name] = found[name].decode()
        found["origin"] = ("compiled", "cached")[info.origin]
        return found


#: What a Runtime takes by name.
_OPTIONS = [name for name, _ in _abi.JitOptions._fields_
            if name not in ("struct_size", "diagnose", "diagnose_data")]


class Runtime:
    """A device and the kernels of it. Any thread may use it, but while one
    allocates, frees or copies, no other does.

    `options` are the fields of replayjit_jit_options_t, such as cache_roots
    ("" keeps nothing on disk), must_hit and workers. `diagnose` is called with a
    sentence about what is wrong but stops nothing, from any thread.

    Raises ValueError for an option that is not allowed, Error where the device
    cannot be had.
    """

    def __init__(self, device: int,
                 diagnose: Optional[Callable[[str], None]] = None,
                 **options: Any):
        calls = library()
        self.ordinal = None  # of a CUDA device
        self._device = owned(self, device, calls.replayjit_device_release)
        fields = _abi.JitOptions()
        calls.replayjit_jit_options_init(byref(fields), sizeof(fields))
        for name, value in options.items():
            setattr(fields, one_of(name, _OPTIONS, "option"), value)
        hear = None
        if diagnose is not None:
            function("diagnose", diagnose)
            # The finalizer keeps it as long as the library may call it.
            hear = _abi.DiagnosticFn(
                lambda _, sentence: diagnose(sentence.decode()))
            fields.diagnose = hear
        jit = ctypes.c_void_p()
        check(calls.replayjit_jit_create(device, byref(fields), byref(jit)))
        self.jit = jit.value
        weakref.finalize(
            self, lambda at, _: calls.replayjit_jit_release(at), jit.value, hear)
        info = _abi.DeviceInfo(sizeof(_abi.DeviceInfo))
        check(calls.replayjit_device_info(device, byref(info)))
        self.is_emulation = bool(info.is_emulation)
        self.multiprocessors = info.multiprocessors
        self.description = info.description.decode()
        self.chip = info.chip.decode()
        #: The device's own CUstream as an int; None under emulation.
        self.stream = calls.replayjit_device_stream(device)
        self._kernels = {}

    def __repr__(self):
        return f"<replayjit.Runtime of {self.description} for {self.chip}>"

    @classmethod
    def cuda(cls, ordinal: int = 0, **options: Any) -> Runtime:
        """CUDA device `ordinal`, in its primary context. Raises as the class."""
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_cuda(
            number("ordinal", ordinal, c_int32), byref(device)))
        runtime = cls(device.value, **options)
        runtime.ordinal = ordinal
        return runtime

    @classmethod
    def cuda_current(cls, ordinal: Optional[int] = None,
                     **options: Any) -> Runtime:
        """The device and the context that are current in this thread; makes no
        context. The caller keeps that one while the runtime or anything of it is
        used. `ordinal` is the device's number to torch, for its current stream;
        None: torch's current device at each launch. Raises as the class."""
        if ordinal is not None:
            number("ordinal", ordinal, c_int32)
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_cuda_current(byref(device)))
        runtime = cls(device.value, **options)
        runtime.ordinal = ordinal
        return runtime

    @classmethod
    def emulation(cls, chip: str = "sm_90a", **options: Any) -> Runtime:
        """Runs the kernels for `chip` on this CPU, slowly and checked. Kernels
        may touch only what `empty` allocates. Raises as the class."""
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_emulation(text("chip", chip),
                                                          byref(device)))
        return cls(device.value, **options)

    @property
    def counters(self) -> Dict[str, int]:
        """What the disk cache was asked so far: hits, misses, compiles, waits; of
        a CUDA device."""
        counters = _abi.CacheCounters(sizeof(_abi.CacheCounters))
        check(library().replayjit_jit_counters(self.jit, byref(counters)))
        return {name: getattr(counters, name)
                for name, _ in counters._fields_[2:]}

    def prepare(self, spec: Spec, rows: int = 0,
                stream: Optional[int] = None) -> Kernel:
        """The kernel for `rows` requests that decode together; 0: a large
        batch. Compiles it if it is nowhere; other threads run meanwhile. While
        `stream`, by default the current one, is under capture what is not in
        memory is refused. Raises ValueError for a spec that is not allowed, Error
        where it cannot be compiled or loaded."""
        instance("spec", spec, Spec)
        kernel = ctypes.c_void_p()
        check(library().replayjit_jit_prepare_on(
            self.jit, stream_of(self, stream), spec,
            number("rows", rows, c_int32), byref(kernel)))
        return Kernel(kernel.value)

    def prepare_all(
            self, requests: Sequence[Tuple[Spec, int]],
            progress: Optional[Callable[[int, int, Optional[str]], None]] = None,
            stream: Optional[int] = None) -> List[Kernel]:
        """Prepares (spec, rows) pairs in parallel: a list of kernels; under
        capture as prepare. Raises the first failure after all were tried.
        `progress(done, total, name)` is called from other threads, one at a
        time; name is None for a failure."""
        pairs = [items(f"requests[{at}]", pair, 2)
                 for at, pair in enumerate(items("requests", requests))]
        count = len(pairs)
        specs = (ctypes.c_void_p * count)(*(
            instance(f"requests[{at}][0]", spec, Spec).address
            for at, (spec, _) in enumerate(pairs)))
        rows = (c_int32 * count)(*(
            number(f"requests[{at}][1]", rows, c_int32)
            for at, (_, rows) in enumerate(pairs)))
        kernels = (ctypes.c_void_p * count)()
        if progress is not None:
            function("progress", progress)

        def hear(_, done, total, name, error):
            progress(done, total, name.decode() if name else None)

        error = library().replayjit_jit_prepare_all_on(
            self.jit, stream_of(self, stream), specs, rows, count,
            _abi.ProgressFn(hear) if progress else _abi.ProgressFn(), None,
            kernels, None)
        made = [Kernel(address) if address else None for address in kernels]
        check(error)
        return made

    def kernel_for(self, facts: Any, rows: int,
                   stream: Optional[int] = None) -> Kernel:
        """The kernel of a Spec with these fields, a namedtuple. What was asked
        before is found without the library. Raises as prepare."""
        kernel = self._kernels.get((facts, rows))
        if kernel is None:
            kernel = self.prepare(Spec(**facts._asdict()), rows, stream)
            self._kernels[facts, rows] = kernel
        return kernel

    def is_capturing(self, stream: Optional[int] = None) -> bool:
        """Whether a stream, by default the current one, is under capture. Raises
        ValueError for what is no stream."""
        answer = c_int32()
        check(library().replayjit_device_is_capturing(
            self._device, stream_of(self, stream), byref(answer)))
        return bool(answer.value)

    def synchronize(self, stream: Optional[int] = None) -> None:
        """Waits for a stream, by default the runtime's own. Raises Error for what
        went wrong on it."""
        if stream is not None:
            number("stream", stream, c_uint64)
        check(library().replayjit_device_synchronize(
            self._device, self.stream if stream is None else stream))

    def empty(self, dtype: str, *shape: int, name: str = "tensor") -> Tensor:
        """A dense Tensor of device memory of its own, not written yet; the
        emulation calls it `name` in reports. Raises ValueError for another type or
        size, Error where there is no memory."""
        calls, address = library(), c_uint64()
        tensor = Tensor(self, dtype, shape, 0)
        check(calls.replayjit_device_allocate(
            self._device, number("bytes", tensor.bytes, c_size_t),
            text("name", name), byref(address)))
        tensor.address = address.value
        owned_memory(tensor, self._device, calls.replayjit_device_free,
                     address.value)
        return tensor


class Tensor:
    """Device memory with a shape, for those without torch. Operators take any
    tensor that has what this one has: data_ptr(), stride(), shape, dtype and
    device. `owner` has the memory, if the tensor itself has not. Raises ValueError
    for a type, shape or stride that is none."""

    def __init__(self, runtime: Runtime, dtype: str, shape: Sequence[int],
                 address: int, strides: Optional[Sequence[int]] = None,
                 owner: Any = None):
        if not isinstance(dtype, str) or dtype not in TYPES:
            raise ValueError(f"dtype: {dtype!r} is not allowed; allowed are "
                             + ", ".join(TYPES))
        self.device, self.dtype = runtime, dtype
        self.shape = tuple(number(f"shape[{at}]", size, c_size_t)
                           for at, size in enumerate(items("shape", shape)))
        self.address, self.owner = number("address", address, c_uint64), owner
        self.item_bytes = SIZES[TYPES[dtype]]
        dense, elements = [], 1
        for size in reversed(self.shape):
            dense.insert(0, elements)
            elements *= size
        self.bytes = elements * self.item_bytes  # where it is dense
        self._dense = self._strides = tuple(dense)
        if strides is not None:
            self._strides = tuple(
                number(f"strides[{at}]", stride, c_int64) for at, stride in
                enumerate(items("strides", strides, len(dense))))

    def __repr__(self):
        return (f"<replayjit.Tensor {self.dtype} {self.shape} at "
                f"{self.address:#x} of {self.device.description}>")

    def data_ptr(self) -> int:
        """The address."""
        return self.address

    def stride(self) -> Tuple[int, ...]:
        """Elements from one index of each dimension to the next."""
        return self._strides

    def view(self, shape: Sequence[int], strides: Sequence[int],
             offset: int = 0) -> Tensor:
        """Elements of the same memory, from element `offset` on. Raises ValueError
        as the class."""
        offset = number("offset", offset, c_int64) * self.item_bytes
        return Tensor(self.device, self.dtype, shape, self.address + offset,
                      strides, owner=self)

    def _need_dense(self):
        """The stride of a single row says nothing."""
        if self.bytes and any(
                size > 1 and found != dense for size, found, dense in
                zip(self.shape, self._strides, self._dense)):
            raise ValueError(f"tensor: strides {self._strides} of shape "
                             f"{self.shape} are not allowed; they must be "
                             f"{self._dense}")

    def write(self, data: Any) -> Tensor:
        """Copies a bytes-like object of the tensor's size to the device. Raises
        ValueError for another, and where the tensor is not dense."""
        self._need_dense()
        try:
            data = memoryview(data).tobytes()
        except TypeError:
            raise refused("data", data, "a bytes-like object") from None
        if len(data) != self.bytes:
            raise ValueError(f"data: {len(data)} bytes are not allowed; the "
                             f"tensor has {self.bytes}")
        check(library().replayjit_device_copy_to(self.device._device,
                                                 self.address, data, len(data)))
        return self

    def read(self) -> bytes:
        """The tensor's bytes. Raises ValueError where it is not dense."""
        self._need_dense()
        data = ctypes.create_string_buffer(self.bytes)
        check(library().replayjit_device_copy_from(
            self.device._device, data, self.address, self.bytes))
        return data.raw


@functools.lru_cache(maxsize=None)
def cuda(ordinal):
    """The process's runtime of a CUDA device: where torch has initialized CUDA,
    in the context that torch works in there, else in the primary one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return Runtime.cuda(ordinal)
    with torch.cuda.device(ordinal):
        try:
            return Runtime.cuda_current(ordinal)
        except InvalidArgument:
            # None is current: this thread has not used the device yet, and the
            # first call of torch here will take the primary one.
            return Runtime.cuda(ordinal)


def prepare_all(
        requests: Sequence[Tuple[Spec, int]], runtime: Optional[Runtime] = None,
        progress: Optional[Callable[[int, int, Optional[str]], None]] = None,
        stream: Optional[int] = None) -> List[Kernel]:
    """Runtime.prepare_all, for an engine's start; on CUDA device 0 if no
    runtime is given. Raises as that."""
    runtime = cuda(0) if runtime is None else instance("runtime", runtime,
                                                       Runtime)
    return runtime.prepare_all(requests, progress, stream)


def current_stream(runtime):
    """torch's current stream, if there is torch and a GPU; else the runtime's
    own."""
    torch = sys.modules.get("torch")
    if torch is None or runtime.is_emulation:
        return runtime.stream
    return torch.cuda.current_stream(runtime.ordinal).cuda_stream


def stream_of(runtime, stream):
    """`stream`, a CUstream as an int, or (None) the current one."""
    if stream is None:
        return current_stream(runtime)
    return number("stream", stream, c_uint64)


@functools.lru_cache(maxsize=None)
def host():
    """The process's emulation, for tensors in the memory of the host."""
    return Runtime.emulation()


def is_on_host(tensor):
    """Whether it is in the memory of the host, as torch's CPU tensors are."""
    return getattr(tensor.device, "type", None) == "cpu"


def runtime_of(tensor, on_host=False):
    """The runtime of a tensor's device: its own, the process's one for a CUDA
    device or, if that is allowed, the emulation for the host's memory."""
    device = tensor.device
    if isinstance(device, Runtime):
        return device
    if on_host and is_on_host(tensor):
        return host()
    if getattr(device, "type", None) != "cuda":
        raise ValueError(f"device: {device} is not allowed; it must be a CUDA "
                         "device or a replayjit.Runtime")
    return cuda(device.index or 0)
