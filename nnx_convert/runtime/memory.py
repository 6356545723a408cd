"""How much a run may hold: no more than its limits say, which are what the machine has where nobody sets others."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import LimitError, RunError
from ..resources import hint, limits
from ..types import STR, Array, Tensor, known

#: Arrays start at multiples of this many bytes: a cache line, and the widest vector.
ALIGN = 64
#: Idle arenas kept per program, for the next runs.
ARENAS = 2
#: What a text takes beside its own bytes, in an array and as an object.
TEXT = 64
HINT = "smaller inputs, or a machine with more memory"


def affordable(size: int, what: str, where: str = "") -> None:
    """Raise `LimitError` where something of `size` bytes is more than a run may hold."""
    _within(size, limits().total, "total_bytes", what, where)


def owned(data: Array | None) -> int:
    """The bytes of an array that are its own; a view, as of a file's weights, has none."""
    return data.nbytes if isinstance(data, np.ndarray) and data.flags.owndata else 0


def affordable_arena(size: int, constants: Iterable[Array]) -> None:
    """The same of an arena, and of it beside what was computed ahead of the run."""
    affordable(size, "the arena")
    ahead = sum(map(owned, constants))
    affordable(size + ahead, f"the arena, beside {ahead:,} bytes that are computed ahead,")


def affordable_tensor(size: int, what: str, where: str = "") -> None:
    """Raise `LimitError` where a tensor of `size` bytes is larger than one may be."""
    affordable(size, what, where)
    _within(size, limits().tensor, "tensor_bytes", what, where)


def _within(size: int, most: int, limit: str, what: str, where: str) -> None:
    if size > most:
        raise LimitError(f"{what} needs {size:,} bytes, {most:,} at most", where, f"{HINT}; {hint(limit)}")


def affordable_outputs(outs: Sequence[Tensor], where: str = "") -> None:
    """The same of each output of an operation, as far as its sizes are known.

    One without elements counts by its other sizes, for which a kernel prepares all the same; texts count as empty.
    """
    for i, t in enumerate(outs):
        if t.dims is not None and all(map(known, t.dims)):
            size = math.prod(n or 1 for n in t.dims)
            each = TEXT if t.type == STR else t.type.dtype.itemsize
            affordable_tensor(size * each, f"output {i}, {list(t.dims)},", where)


def bearable_work(macs: int, where: str = "") -> None:
    """Raise `LimitError` where a run has more multiply-adds than it may."""
    if macs > limits().macs:
        raise LimitError(f"a run takes {macs:,} multiply-adds up to here, {limits().macs:,} at most", where,
                         hint("macs"))


def exhausted(error: MemoryError) -> RunError:
    """What to raise where memory ran out."""
    return RunError(f"the memory does not suffice: {str(error) or 'out of memory'}", hint=HINT)
