"""Launches, and operators that make them."""

from __future__ import annotations

import functools
from ctypes import byref
from typing import Any, Callable, Optional

from . import _abi
from ._check import refused
from ._library import library, to_exception
from .runtime import stream_of
from .spec import Spec


class Launch:
    """A launch with arguments that stay as they are; once prepared, call it to
    launch. Keeps its kernel and its tensors. For one thread at a time. `memory`
    is the HostMemory of tensors on the host. `overlaps`: it may start before the
    kernel before it has ended."""

    def __init__(self, runtime: Any, facts: Any, rows: int, args: Any,
                 tensors: Any, result: Any, check_rows: bool = False,
                 memory: Any = None, overlaps: bool = False):
        self._runtime, self._facts, self._rows = runtime, facts, rows
        self.args, self.tensors, self.result = args, tensors, result
        self._memory = memory
        calls = library()
        self._function = (calls.replayjit_kernel_launch
                          if isinstance(args, _abi.DecodeArgs)
                          else calls.replayjit_kernel_launch_materialize)
        self._args = byref(args)
        self._order = _abi.LAUNCH_PROGRAMMATIC if overlaps else 0
        self._flags = self._order | (_abi.LAUNCH_CHECK_ROWS if check_rows else 0)

    def __repr__(self):
        return f"<replayjit.Launch of {self._args._obj.batch} rows>"

    def prepared(self, stream: Optional[int]) -> Launch:
        """The same with its kernel, which may compile and load, unless `stream`
        is under capture. Raises as Runtime.prepare."""
        self.kernel = self._runtime.kernel_for(self._facts, self._rows, stream)
        self._kernel = self.kernel.address
        return self

    @property
    def spec(self) -> Spec:
        """The Spec that the tensors stand for, such as for prepare_all."""
        return Spec(**self._facts._asdict())

    def __call__(self, stream: Optional[int] = None) -> Any:
        """Launches on `stream`, an int, or on torch's current stream (the
        runtime's own without torch). The first call checks the arguments, later
        ones only launch, unless each is to check its rows. Raises ValueError for
        arguments that are not allowed, Error for what the device refuses."""
        if self._memory:
            self._memory.load()
        error = self._function(self._kernel, stream_of(self._runtime, stream),
                               self._args, self._flags)
        if error:
            raise to_exception(error)
        if self._memory:
            self._memory.store()
        if self._flags == self._order:
            self._flags |= _abi.LAUNCH_UNCHECKED
        return self.result


def operator(build):
    """Makes an operator of a function that builds a Launch: called, it launches;
    its `bind` gives the Launch."""

    @functools.wraps(build)
    def launch(*args, stream=None, **kwargs):
        return build(*args, **kwargs).prepared(stream)(stream)

    launch.bind = lambda *args, stream=None, **kwargs: build(
        *args, **kwargs).prepared(stream)
    return launch


def bind(function: Callable, *args: Any, **kwargs: Any) -> Launch:
    """The Launch of an operator with these arguments, to be called often:

        step = bind(fused_recurrent_linear_replayssm_decode, mixed_qkv, ...)
        step()

    The tensors stay what and where they are; their contents may change. What may
    compile or load is done here, so a call may be captured into a CUDA graph.
    While `stream`, by default the current one, is under capture, a kernel that
    is not in memory is refused. Raises as the operator does.
    """
    if not hasattr(function, "bind"):
        raise refused("function", function, "an operator of replayjit")
    return function.bind(*args, **kwargs)
