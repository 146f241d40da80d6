"""Devices, and the kernels prepared for them."""

import ctypes
import functools
import sys
import weakref
from ctypes import byref, sizeof

from . import _abi
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

    def __init__(self, address):
        self.address = owned(self, address, library().replayjit_kernel_release)

    @property
    def info(self):
        """A dict: name, chip, threads, registers, ... (replayjit_kernel_info_t);
        `origin` is "compiled" or "cached"."""
        info = _abi.KernelInfo(sizeof(_abi.KernelInfo))
        check(library().replayjit_kernel_info(self.address, byref(info)))
        found = {name: getattr(info, name) for name, _ in info._fields_[1:]}
        for name in ("name", "chip", "assembler"):
            found[name] = found[name].decode()
        found["origin"] = ("compiled", "cached")[info.origin]
        return found


class Runtime:
    """A device and the kernels of it. Any thread may use it, but while one
    allocates, frees or copies, no other does.

    `options` are the fields of replayjit_jit_options_t, such as cache_roots
    ("" keeps nothing on disk), must_hit and workers. `diagnose` is called with a
    sentence about what is wrong but stops nothing, from any thread.
    """

    def __init__(self, device, diagnose=None, **options):
        calls = library()
        self.ordinal = None  # of a CUDA device
        self._device = owned(self, device, calls.replayjit_device_release)
        fields = _abi.JitOptions()
        calls.replayjit_jit_options_init(byref(fields), sizeof(fields))
        for name, value in options.items():
            if name not in dict(fields._fields_):
                raise ValueError(f"{name}: there is no such option")
            setattr(fields, name,
                    value.encode() if isinstance(value, str) else value)
        if diagnose:
            # The finalizer keeps it as long as the library may call it.
            hear = _abi.DiagnosticFn(
                lambda _, sentence: diagnose(sentence.decode()))
            fields.diagnose = hear
        else:
            hear = None
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

    @classmethod
    def cuda(cls, ordinal=0, **options):
        """CUDA device `ordinal`, in its primary context."""
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_cuda(ordinal, byref(device)))
        runtime = cls(device.value, **options)
        runtime.ordinal = ordinal
        return runtime

    @classmethod
    def cuda_current(cls, ordinal=None, **options):
        """The device and the context that are current in this thread; makes no
        context. The caller keeps that one while the runtime or anything of it is
        used. `ordinal` is the device's number to torch, for its current stream;
        None: torch's current device at each launch."""
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_cuda_current(byref(device)))
        runtime = cls(device.value, **options)
        runtime.ordinal = ordinal
        return runtime

    @classmethod
    def emulation(cls, chip="sm_90a", **options):
        """Runs the kernels for `chip` on this CPU, slowly and checked. Kernels
        may touch only what `empty` allocates."""
        device = ctypes.c_void_p()
        check(library().replayjit_device_create_emulation(chip.encode(),
                                                          byref(device)))
        return cls(device.value, **options)

    def prepare(self, spec, rows=0):
        """The kernel for `rows` requests that decode together; 0: a large
        batch. Compiles it if it is nowhere; other threads run meanwhile. While
        the current stream is under capture what is not in memory is refused."""
        kernel = ctypes.c_void_p()
        check(library().replayjit_jit_prepare_on(
            self.jit, current_stream(self), byref(spec), rows, byref(kernel)))
        return Kernel(kernel.value)

    def prepare_all(self, requests, progress=None):
        """Prepares (spec, rows) pairs in parallel: a list of kernels. Raises
        the first failure after all were tried. `progress(done, total, name)` is
        called from other threads, one at a time; name is None for a failure."""
        requests = list(requests)
        count = len(requests)
        specs = (ctypes.c_void_p * count)(
            *(ctypes.addressof(spec) for spec, _ in requests))
        rows = (ctypes.c_int32 * count)(*(rows for _, rows in requests))
        kernels = (ctypes.c_void_p * count)()

        def hear(_, done, total, name, error):
            progress(done, total, name.decode() if name else None)

        error = library().replayjit_jit_prepare_all(
            self.jit, specs, rows, count,
            _abi.ProgressFn(hear) if progress else _abi.ProgressFn(), None,
            kernels, None)
        made = [Kernel(address) if address else None for address in kernels]
        check(error)
        return made

    def kernel_for(self, facts, rows):
        """The kernel of Spec.from_facts(facts). What was asked before is found
        without the library."""
        kernel = self._kernels.get((facts, rows))
        if kernel is None:
            kernel = self.prepare(Spec.from_facts(facts), rows)
            self._kernels[facts, rows] = kernel
        return kernel

    def synchronize(self, stream=None):
        """Waits for a stream, by default the runtime's own."""
        stream = self.stream if stream is None else stream
        check(library().replayjit_device_synchronize(self._device, stream))

    def empty(self, dtype, *shape, name="tensor"):
        """A dense Tensor of device memory of its own, not written yet; the
        emulation calls it `name` in reports."""
        calls, address = library(), ctypes.c_uint64()
        tensor = Tensor(self, dtype, shape, 0)
        check(calls.replayjit_device_allocate(
            self._device, tensor.bytes, name.encode(), byref(address)))
        tensor.address = address.value
        owned_memory(tensor, self._device, calls.replayjit_device_free,
                     address.value)
        return tensor


class Tensor:
    """Device memory with a shape, for those without torch. Operators take any
    tensor that has what this one has: data_ptr(), stride(), shape, dtype and
    device. `owner` has the memory, if the tensor itself has not."""

    def __init__(self, runtime, dtype, shape, address, strides=None, owner=None):
        if dtype not in TYPES:
            raise ValueError(f"dtype: '{dtype}' is not allowed; allowed are "
                             + ", ".join(TYPES))
        self.device, self.dtype, self.shape = runtime, dtype, tuple(shape)
        self.address, self.owner = address, owner
        self.item_bytes = SIZES[TYPES[dtype]]
        dense, elements = [], 1
        for size in reversed(self.shape):
            dense.insert(0, elements)
            elements *= size
        self._strides = tuple(strides or dense)
        self.bytes = elements * self.item_bytes  # where it is dense

    def data_ptr(self):
        return self.address

    def stride(self):
        return self._strides

    def view(self, shape, strides, offset=0):
        """Elements of the same memory, from element `offset` on."""
        return Tensor(self.device, self.dtype, shape,
                      self.address + offset * self.item_bytes, strides,
                      owner=self)

    def write(self, data):
        """Copies a bytes-like object of the tensor's size to the device. The
        tensor is dense."""
        data = bytes(data)
        if len(data) != self.bytes:
            raise ValueError(f"data: {len(data)} bytes are not allowed; the "
                             f"tensor has {self.bytes}")
        check(library().replayjit_device_copy_to(self.device._device,
                                                 self.address, data, len(data)))
        return self

    def read(self):
        """The tensor's bytes. The tensor is dense."""
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


def prepare_all(requests, runtime=None, progress=None):
    """Runtime.prepare_all, for an engine's start; on CUDA device 0 if no
    runtime is given."""
    return (runtime or cuda(0)).prepare_all(requests, progress)


def current_stream(runtime):
    """torch's current stream, if there is torch and a GPU; else the runtime's
    own."""
    torch = sys.modules.get("torch")
    if torch is None or runtime.is_emulation:
        return runtime.stream
    return torch.cuda.current_stream(runtime.ordinal).cuda_stream


def runtime_of(tensor):
    """The runtime of a tensor's device: its own, or the process's one for a
    CUDA device."""
    device = tensor.device
    if isinstance(device, Runtime):
        return device
    if getattr(device, "type", None) != "cuda":
        raise ValueError(f"device: {device} is not allowed; it must be a CUDA "
                         "device or a replayjit.Runtime")
    return cuda(device.index or 0)
