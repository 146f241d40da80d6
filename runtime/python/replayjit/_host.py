"""torch's CPU tensors in the emulation, which may touch only memory of its own."""

from . import _check
from ._library import check, library


class HostMemory:
    """A copy in the emulation of each storage under `tensors`, a dict by name:
    loaded before a launch, and after it stored back if one of `written` lies in
    it. What shares a storage here shares it there."""

    def __init__(self, runtime, tensors, written):
        self._runtime, self._copies, self._base = runtime, {}, {}
        for name, tensor in tensors.items():
            try:
                storage = tensor.untyped_storage()
            except AttributeError:
                raise _check.refused(name, tensor, "a tensor of torch, if it is "
                                     "in the memory of the host") from None
            base, size = storage.data_ptr(), storage.nbytes()
            if base not in self._copies:
                copy = runtime.empty("bfloat16", -(-size // 2), name=name)
                self._copies[base] = [copy, size, False]
            self._copies[base][2] |= name in written
            self._base[name] = base

    def address(self, name, address):
        """Where in the emulation a tensor lies that is at `address` here."""
        base = self._base[name]
        return self._copies[base][0].address + address - base

    def load(self):
        for base, (copy, size, _) in self._copies.items():
            check(library().replayjit_device_copy_to(
                self._runtime._device, copy.address, base, size))

    def store(self):
        for base, (copy, size, is_written) in self._copies.items():
            if is_written:
                check(library().replayjit_device_copy_from(
                    self._runtime._device, base, copy.address, size))
