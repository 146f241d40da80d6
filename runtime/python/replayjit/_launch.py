"""Launches, and operators that make them."""

import functools
from ctypes import byref

from . import _abi
from ._library import library, to_exception
from .runtime import current_stream
from .spec import Spec


class Launch:
    """A launch with arguments that stay as they are; call it to launch. Keeps
    its kernel and its tensors. For one thread at a time."""

    def __init__(self, runtime, facts, rows, args, tensors, result):
        self.kernel, self._facts = runtime.kernel_for(facts, rows), facts
        self.args, self.tensors, self.result = args, tensors, result
        self._runtime = runtime
        calls = library()
        self._function = (calls.replayjit_kernel_launch
                          if isinstance(args, _abi.DecodeArgs)
                          else calls.replayjit_kernel_launch_materialize)
        self._kernel, self._args = self.kernel.address, byref(args)
        self._flags = 0

    @property
    def spec(self):
        """The Spec that the tensors stand for, such as for prepare_all."""
        return Spec.from_facts(self._facts)

    def __call__(self, stream=None):
        """Launches on `stream`, an int, or on torch's current stream (the
        runtime's own without torch). The first call checks the arguments, later
        ones only launch."""
        if stream is None:
            stream = current_stream(self._runtime)
        error = self._function(self._kernel, stream, self._args, self._flags)
        if error:
            raise to_exception(error)
        self._flags = _abi.LAUNCH_UNCHECKED
        return self.result


def operator(build):
    """Makes an operator of a function that builds a Launch: called, it launches;
    its `bind` is the function."""

    @functools.wraps(build)
    def launch(*args, stream=None, **kwargs):
        return build(*args, **kwargs)(stream)

    launch.bind = build
    return launch


def bind(function, *args, **kwargs):
    """The Launch of an operator with these arguments, to be called often:

        step = bind(fused_recurrent_linear_replayssm_decode, mixed_qkv, ...)
        step()

    The tensors stay what and where they are; their contents may change. What may
    compile or load is done here, so a call may be captured into a CUDA graph.
    """
    return function.bind(*args, **kwargs)
