"""Short rows of constants, repeated beside every cell of an array: so many of them at once that vectors fill."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..bind import Slot
from .places import Place, dense_strides, packed
from .tasks import Workshop

#: Rows are short below so many elements, and are joined up to so many.
SHORT, LONG = 64, 1024


def joined_rows(w: Workshop, out: Place, slots: Sequence[Slot]) -> tuple[Place, list[Place]] | None:
    """Where a result is, and arrays element by element beside it, in the shape of longer rows: constants of one row
    are repeated in the weights. None where rows are long, or something else is beside them."""
    width, rows = out.shape[-1], math.prod(out.shape[:-1])
    if not 1 < width < SHORT or not _dense(out):
        return None
    wide = longer(rows, width, w.machine.lanes)
    if wide == width:
        return None
    ways = [_beside(w, slot, out) for slot in slots]
    if None in ways or "row" not in ways:
        return None
    shape = out.size // wide, wide
    return out.reshaped(shape), [
        _repeated(w, slot, wide // width) if way == "row" else w.place(slot).reshaped(shape if way == "full" else (1,))
        for slot, way in zip(slots, ways, strict=True)]


def longer(rows: int, width: int, lanes: int) -> int:
    """The elements of rows joined so that they are few and, if that can be, whole vectors."""
    sizes = [n * width for n in range(1, LONG // width + 1) if rows % n == 0]
    return max(sizes, key=lambda size: (size % lanes == 0, size))


def _dense(p: Place) -> bool:
    return not p.border and packed(p.shape, p.strides, p.item)


def _beside(w: Workshop, slot: Slot, out: Place) -> str | None:
    """How an array is beside the result: as large, a constant row, or one element."""
    if slot in w.places:
        p = w.places[slot]
        return "one" if p.size == 1 else "full" if p.size == out.size and _dense(p) else None
    data = w.constants[slot]
    last = data.shape[-1:] == out.shape[-1:] and data.size == out.shape[-1]
    return "one" if data.size == 1 else "row" if last else "full" if data.size == out.size else None


def _repeated(w: Workshop, slot: Slot, times: int) -> Place:
    data = np.tile(w.constants[slot].reshape(-1), times)
    return Place("%weights", w.pack(data), data.shape, dense_strides(data.shape, data.itemsize), data.itemsize)
