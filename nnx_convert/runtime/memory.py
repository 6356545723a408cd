"""How much a run may hold: no more than the machine has."""
from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from functools import cache

from ..errors import RunError
from ..types import Tensor, known

#: Arrays start at multiples of this many bytes: a cache line, and the widest vector.
ALIGN = 64
#: Idle arenas kept per program, for the next runs.
ARENAS = 2
HINT = "smaller inputs, or a machine with more memory"


@cache
def physical() -> int:
    """The bytes of memory the machine has; no limit where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def affordable(size: int, what: str, where: str = "") -> None:
    """Raise `RunError` where something of `size` bytes is larger than the machine's memory."""
    if size > physical():
        raise RunError(f"{what} needs {size:,} bytes, and the machine has {physical():,}", where, HINT)


def affordable_outputs(outs: Sequence[Tensor], where: str = "") -> None:
    """The same of each output of an operation, as far as its sizes are known.

    One without elements counts by its other sizes, for which a kernel prepares all the same.
    """
    for i, t in enumerate(outs):
        if t.dims is not None and all(map(known, t.dims)):
            size = math.prod(n or 1 for n in t.dims)
            affordable(size * t.type.dtype.itemsize, f"output {i}, {list(t.dims)},", where)


def exhausted(error: MemoryError) -> RunError:
    """What to raise where memory ran out."""
    return RunError(f"the memory does not suffice: {str(error) or 'out of memory'}", hint=HINT)
