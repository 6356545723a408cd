"""What computes a model on this machine: native code, or NumPy."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ..frozen import frozen
from ..errors import Notice, UsageError

if TYPE_CHECKING:
    from .steps import Bound

BACKENDS = ("auto", "numpy", "native")
#: How products of bytes are rounded: as the operations are defined, or as XNNPACK does it, which takes less.
ROUNDINGS = ("reference", "fast")
#: The variable that says which one "auto" is.
VARIABLE = "NNX_BACKEND"
#: Sets of input shapes that "auto" compiles natively for one model; what meets more is too varied to wait for each.
SETS = 8


@frozen
class Backend:
    """Which operations are run natively, none without `takes`, and for how many sets of input shapes (None: all).

    If `fast`, bytes are rounded there as XNNPACK does it.
    """

    takes: Callable[[Bound], bool] | None = None
    sets: int | None = None
    fast: bool = False


def backend_of(name: str, rounding: str = "reference") -> Backend:
    """The backend of a name that rounds as it is told.

    Raises `UsageError` where there is no such backend or rounding, or none on this machine.
    """
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise UsageError(f"there is no rounding {str(rounding)[:80]!r}: {', '.join(ROUNDINGS)}")
    found = _named(name)
    if rounding == "fast" and (found.takes is None or found.sets is not None):
        raise UsageError("rounding 'fast' is native code's alone", hint="ask for backend 'native'")
    return replace(found, fast=rounding == "fast")


def _named(name: str) -> Backend:
    """The backend of a name; "auto" is the one that $NNX_BACKEND names, else native code where there is llvmlite.

    Raises `UsageError` where there is no such backend, or none on this machine.
    """
    if not isinstance(name, str) or name not in BACKENDS:
        raise UsageError(f"there is no backend {str(name)[:80]!r}: {', '.join(BACKENDS)}")
    named = os.environ.get(VARIABLE, "") if name == "auto" else ""
    if named not in ("", *BACKENDS):
        raise UsageError(f"${VARIABLE} names no backend: {named[:80]!r}", hint=f"it is one of {', '.join(BACKENDS)}")
    name = named or name
    if name == "numpy":
        return Backend()
    try:
        return Backend(_natively(), SETS if name == "auto" else None)
    except ImportError as error:
        if name == "native":
            raise UsageError(f"there is no native code here ({error})", hint="install llvmlite") from error
        _say_once(str(error))
        return Backend()


def _natively() -> Callable[[Bound], bool]:
    """Whether an operation is run natively on this machine; raises `ImportError` where llvmlite is missing."""
    from .codegen.machine import host
    machine = host()

    def takes(b: Bound) -> bool:
        from .codegen.tasks import taken         # only a program that is made anew asks
        return taken(b, machine)
    return takes


@cache
def _say_once(why: str) -> None:
    warnings.warn(f"models run in NumPy, many times slower than natively: {why}", Notice, stacklevel=5)
