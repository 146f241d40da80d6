"""Puts operators in the place of an engine's own, in the modules that are loaded."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Callable, List

from ._library import Error
from .decode import LOWER_BOUND


class Installed:
    """What was replaced, as "module.name", and the way back."""

    def __init__(self):
        self.names: List[str] = []
        self._undo: List[Callable[[], None]] = []

    def on_undo(self, act: Callable[[], None]) -> None:
        self._undo.append(act)

    def undo(self) -> None:
        """Puts back what was there before."""
        while self._undo:
            self._undo.pop()()
        self.names.clear()

    def __repr__(self):
        return f"Installed({', '.join(self.names)})"


def _find(module):
    """The engine's module, or None where this version of it has none."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if module == problem.name or module.startswith(f"{problem.name}."):
            return None
        raise


def _positional(function):
    return [one.name for one in inspect.signature(function).parameters.values()
            if one.kind is one.POSITIONAL_OR_KEYWORD]


def _check_signature(name, theirs, ours):
    """Every call of `theirs` has the same meaning to `ours`."""
    known = inspect.signature(ours).parameters
    for one in inspect.signature(theirs).parameters:
        if one not in known:
            raise Error(f"{name}: its argument '{one}' is not one of replayjit's; "
                        "this version of the engine is not supported")
    wanted, order = _positional(theirs), _positional(ours)
    later = order[:LOWER_BOUND] + ["lower_bound"] + order[LOWER_BOUND:]
    if wanted not in (order[:len(wanted)], later[:len(wanted)]):
        raise Error(f"{name}: the order of its arguments is not replayjit's; this "
                    "version of the engine is not supported")


def swap(package, places) -> Installed:
    """Replaces functions of `package`: `places` are (module, name, operator,
    what to put there). Other modules of the package that have imported the
    function get ours too.

    Raises Error where a function has another signature, and where none is found.
    """
    installed = Installed()
    found = []
    for module, name, operator, ours in places:
        theirs = getattr(_find(module), name, None)
        if theirs is not None:
            _check_signature(f"{module}.{name}", theirs, operator)
            found.append((name, theirs, ours))
    if not found:
        looked = ", ".join(f"{module}.{name}" for module, name, *_ in places)
        raise Error(f"{package}: none of its decode operators was found; looked for "
                    f"{looked}")
    for name, theirs, ours in found:
        for path, module in list(sys.modules.items()):
            if path != package and not path.startswith(package + "."):
                continue
            for held, value in list(vars(module).items()):
                if value is theirs:
                    setattr(module, held, ours)
                    installed.names.append(f"{path}.{held}")
                    installed.on_undo(lambda module=module, held=held,
                                      theirs=theirs: setattr(module, held, theirs))
    return installed


def for_engines(name):
    """An operator as an engine calls it: where there is torch, that of
    torch.library, which torch.compile keeps whole."""
    if "torch" in sys.modules:
        from . import torch_ops as source
    else:
        from . import decode as source
    return getattr(source, name)
