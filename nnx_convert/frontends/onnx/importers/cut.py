"""Slices, parts and paddings."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from ....errors import FormatError, Unsupported
from ....graph import LARGEST_MADE, Value
from ....ops import cutting, gather, shape as s
from ....symbols import at_least, larger, quotient, same, smaller
from ....types import STR, UNKNOWN, Tensor, known
from ..importer import Op
from ..registry import imports
from ..symbolic import ENDLESS
from .axes import axes_of, axis_of, open_
from .gather import INT32

#: The modes of Pad that look elements up, by the table's number.
LOOKED_UP = {"reflect": cutting.REFLECT, "edge": cutting.EDGE, "wrap": cutting.WRAP}
#: Begin, end and step of a Python slice, by axis.
Cuts = Mapping[int, tuple[int, int, int]]
#: How much is put before and after, by axis.
Sides = Mapping[int, tuple[int, int]]


@imports("Slice", until=9)
def slice_1(g: Op, x: Value, *, starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...] | None = None
            ) -> Value:
    return cut(g, x, by_axis(x, range(len(starts)) if axes is None else axes, starts, ends, (1,) * len(starts)))


@imports(since=10)
def Slice(g: Op, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    """Bounds count as in Python; what is computed is read at run time."""
    count = starts.shape[0]
    if not known(count):
        g.unsupported("cuts a number of axes that is computed")
    if not count:
        return x
    first, last = g.ints(starts), g.ints(ends)
    where = tuple(range(count)) if axes is None else g.ints(axes)
    by = (1,) * count if steps is None else g.ints(steps)
    out = None
    if not (first is None or last is None or where is None or by is None or open_(where) or open_(by)):
        rows = by_axis(x, where, first, last, by)
        if all(map(known, (n for row in rows.values() for n in row))):
            return cut(g, x, rows)
        out = left(x, rows)
    along = g.const(np.arange(count)) if axes is None else axes
    stride = g.const(np.ones(count, np.int64)) if steps is None else steps
    return g(cutting.CUT, x, starts, ends, along, stride, out=out)


def by_axis(x: Value, axes: Sequence[int], first: Sequence[int], last: Sequence[int], steps: Sequence[int]) -> Cuts:
    """The slices by axis; an end that is the size of its axis, or means the end, is an open one.

    Raises `FormatError`.
    """
    if not len(axes) == len(first) == len(last) == len(steps):
        raise FormatError(f"cuts {len(axes)} axes from {len(first)} to {len(last)} places in {len(steps)} steps")
    if 0 in steps:
        raise FormatError("cuts in steps of 0")
    where = axes_of(axes, len(x.shape))
    ends = [INT32.max if not known(x.shape[i]) and (b >= ENDLESS if known(b) else same(x.shape[i], b)) else b
            for i, b in zip(where, last, strict=True)]
    return dict(zip(where, zip(first, ends, steps, strict=True), strict=True))


def cut(g: Op, x: Value, rows: Cuts) -> Value:
    """Python slices along some axes: a SLICE where sizes are known and all steps 1."""
    clipped = {i: (within_int32(a), within_int32(b), by) for i, (a, b, by) in rows.items()}
    out = left(x, clipped)
    idle = [i for i, (a, b, by) in clipped.items() if a == 0 and b == INT32.max and by == 1
            or known(x.shape[i]) and slice(a, b, by).indices(x.shape[i]) == (0, x.shape[i], 1)]
    busy = {i: row for i, row in clipped.items() if i not in idle}
    if not busy:
        return x
    if all(by == 1 and known(x.shape[i]) for i, (_, _, by) in busy.items()):
        begin = [slice(*busy[i]).indices(n)[0] if i in busy else 0 for i, n in enumerate(x.shape)]
        return g(s.SLICE, x, begin, [n if i in busy else -1 for i, n in enumerate(out.shape)], out=out)
    ranges = [bounds(busy.get(i, (0, INT32.max, 1)), n) for i, n in enumerate(x.shape)]
    begin, end, strides = (list(column) for column in zip(*ranges, strict=True))
    ends = sum(1 << i for i, (_, b, by) in enumerate(ranges) if b == (INT32.max if by > 0 else INT32.min))
    return g(s.STRIDED_SLICE, x, begin, [0 if ends >> i & 1 else b for i, b in enumerate(end)], strides,
             begin_mask=0, end_mask=ends, shrink_mask=0, out=out)


def within_int32(bound: int) -> int:
    """A bound of a slice in 32 bits: beyond these it is the same place."""
    return min(max(bound, INT32.min), INT32.max)


def bounds(row: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    """A slice of an axis of some size as NNAPI has it; an end at either end of INT32 is an open one."""
    begin, end, step = row
    if known(size):
        begin, end, step = slice(begin, end, step).indices(size)
        if not range(begin, end, step):
            return 0, 0, 1
        return (begin, end, step) if end >= 0 else (begin, INT32.min, step)
    return begin, INT32.max if step > 0 and end == INT32.max else INT32.min if step < 0 and end < -INT32.max // 2 \
        else end, step


def left(x: Value, rows: Cuts) -> Tensor:
    """What is left of x."""
    return Tensor(x.type, tuple(taken(n, *rows[i]) if i in rows else n for i, n in enumerate(x.shape)), x.tensor.quant)


def taken(size: int, begin: int, end: int, step: int) -> int:
    """How many elements a slice takes, as far as symbols say."""
    if all(map(known, (size, begin, end))):
        return cutting.taken(size, begin, end, step)
    if step < 0:
        return size if step == -1 and known(begin) and known(end) and (begin == -1 or begin >= INT32.max) \
            and end <= INT32.min else UNKNOWN
    a, b = clamped(begin, size), clamped(end, size)
    return -(-larger(b - a, 0) // step)


def clamped(bound: int, size: int) -> int:
    """A bound counted from the start, within an axis of some size."""
    least = bound if known(bound) else at_least(bound)
    if least is None or not known(bound) and least < 0:
        return UNKNOWN
    if known(bound) and bound < 0:
        return larger(size + bound, 0)
    return size if known(bound) and bound >= INT32.max else smaller(bound, size)


@imports("Split", until=1)
def split_1(g: Op, x: Value, sizes: Value | None = None, *, split: tuple[int, ...] | None = None, axis: int = 0
            ) -> Sequence[Value | None]:
    """The sizes are an attribute, or an input of the type of x."""
    given = g.known(sizes)
    if sizes is not None and given is None:
        g.unsupported("splits into sizes that are computed as floats")
    return parted(g, x, axis, split if given is None else tuple(int(n) for n in given.tolist()))


@imports("Split", since=2, until=12)
def split_2(g: Op, x: Value, *, split: tuple[int, ...] | None = None, axis: int = 0) -> Sequence[Value | None]:
    return parted(g, x, axis, split)


@imports("Split", since=13, until=17)
def split_13(g: Op, x: Value, sizes: Value | None = None, *, axis: int = 0) -> Sequence[Value | None]:
    return parted(g, x, axis, g.ints(sizes), sizes)


@imports(since=18)
def Split(g: Op, x: Value, sizes: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
          ) -> Sequence[Value | None]:
    """The last of `num_outputs` may be smaller."""
    if sizes is not None or num_outputs is None:
        return parted(g, x, axis, g.ints(sizes), sizes)
    at, count = axis_of(axis, g.rank(x)), num_outputs
    if count < 1 or count != g.count:
        raise FormatError(f"has {g.count} outputs, and num_outputs is {count}")
    n = x.shape[at]
    if quotient(n, count) is not None:
        return parted(g, x, axis, None)
    if not known(n):
        return g.add(cutting.CHUNK, x, axis=at, count=count)
    step = -(-n // count)
    return parted(g, x, axis, [max(min(step, n - i * step), 0) for i in range(count)])


def parted(g: Op, x: Value, axis: int, wanted: Sequence[int] | None, sizes: Value | None = None
           ) -> Sequence[Value | None]:
    """x cut along an axis into parts of sizes, else into equal ones. Raises `FormatError` where it cannot be."""
    at = axis_of(axis, g.rank(x))
    n = x.shape[at]
    if sizes is not None and sizes.tensor.dims is not None and known(sizes.tensor.size) and (
            sizes.tensor.size != g.count):
        raise FormatError(f"has {g.count} outputs, and {sizes.tensor.size} sizes")
    if wanted is None and sizes is not None:
        return g.add(cutting.SPLIT_BY, x, sizes, axis=at, outs=[Tensor(x.type, tuple(
            UNKNOWN if i == at else m for i, m in enumerate(x.shape)), x.tensor.quant)] * g.count)
    count = g.count if wanted is None else len(wanted)
    if count != g.count:
        raise FormatError(f"has {g.count} outputs, and {count} sizes")
    if known(n) and (n % count if wanted is None else not open_(wanted) and sum(wanted) != n):
        raise FormatError(f"splits {n} into {g.count if wanted is None else list(wanted)}")
    if count == 1:
        return [x]
    if wanted is None or known(n) and all(map(known, wanted)) and len({*wanted}) == 1 and n:
        return g.add(s.SPLIT, x, axis=at, count=count)
    if open_(wanted):
        return g.add(cutting.SPLIT_BY, x, g.const(np.array(wanted)) if sizes is None else sizes, axis=at)
    if min(wanted) < 0:
        raise FormatError(f"splits {n} into {list(wanted)}")
    begins = accumulate(wanted, initial=0)
    return [_part(g, x, at, a, m) if g.wanted(i) else None
            for i, (a, m) in enumerate(zip(begins, wanted, strict=False))]


def _part(g: Op, x: Value, axis: int, begin: int, size: int) -> Value:
    """Some elements along an axis."""
    return g(s.SLICE, x, [begin if i == axis else 0 for i in range(len(x.shape))],
             [size if i == axis else -1 for i in range(len(x.shape))])


@imports("Pad", until=1)
def pad_1(g: Op, x: Value, *, paddings: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> Value:
    return padded(g, x, paddings, None, g.const(np.array([value]), x.type), mode)


@imports("Pad", since=2, until=10)
def pad_2(g: Op, x: Value, *, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0) -> Value:
    return padded(g, x, pads, None, g.const(np.array([value]), x.type), mode)


@imports(since=11)
def Pad(g: Op, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None, *, mode: str = "constant"
        ) -> Value:
    """What is computed is read at run time."""
    amounts, where = g.ints(pads), None if axes is None else g.ints(axes)
    fill = value if value is not None else g.const(np.array([b"" if x.type == STR else 0]), x.type)
    if amounts is None or open_(amounts) or axes is not None and where is None or mode == "constant" \
            and g.known(fill) is None:
        along = g.const(np.arange(g.rank(x))) if axes is None else axes
        out = Tensor(x.type, (UNKNOWN,) * g.rank(x), x.tensor.quant)
        return g(cutting.PAD_BY, x, pads, fill, along, mode=mode_of(mode), out=out)
    return padded(g, x, amounts, where, fill, mode)


def mode_of(mode: str) -> int:
    """The table's number of a mode; raises `FormatError` where it is none."""
    if mode != "constant" and mode not in LOOKED_UP:
        raise FormatError(f"has the mode {mode!r}")
    return LOOKED_UP.get(mode, cutting.CONSTANT)


def padded(g: Op, x: Value, pads: Sequence[int], axes: Sequence[int] | None, fill: Value, mode: str) -> Value:
    """x with known amounts [before..., after...] put around it; negative ones are cut off first."""
    where = axes_of(range(g.rank(x)) if axes is None else axes, g.rank(x))
    kind = mode_of(mode)
    if len(pads) != 2 * len(where):
        raise FormatError(f"has {len(pads)} pads for {len(where)} axes")
    sides = {i: (pads[k], pads[k + len(where)]) for k, i in enumerate(where)}
    x = cut(g, x, {i: (max(-a, 0), min(b, 0) or INT32.max, 1) for i, (a, b) in sides.items() if min(a, b) < 0})
    more = {i: (max(a, 0), max(b, 0)) for i, (a, b) in sides.items() if max(a, b) > 0}
    if not more:
        return x
    return filled(g, x, more, fill) if kind == cutting.CONSTANT else mirrored(g, x, more, mode)


def filled(g: Op, x: Value, more: Sides, fill: Value) -> Value:
    """x with a value around it."""
    amounts = [more.get(i, (0, 0)) for i in range(len(x.shape))]
    value = fill.tensor.data
    if value is not None and x.type != STR and not value.any():
        return g(s.PAD, x, [list(row) for row in amounts])
    if value is not None and x.type in s.PAD_V2.types:
        return g(s.PAD_V2, x, [list(row) for row in amounts], value=value.item())
    pads = [row[k] for k in (0, 1) for row in amounts]
    return g(cutting.PAD_BY, x, g.const(np.array(pads)), fill, g.const(np.arange(len(x.shape))), mode=cutting.CONSTANT)


def mirrored(g: Op, x: Value, more: Sides, mode: str) -> Value:
    """x with its own elements around it, axis by axis picked by index."""
    for axis, side in more.items():
        size = x.shape[axis]
        if not known(size):
            pads, zero, along = g.const(np.array(side)), g.const(np.zeros(1), x.type), g.const(np.array([axis]))
            x = g(cutting.PAD_BY, x, pads, zero, along, mode=LOOKED_UP[mode])
            continue
        if not size:
            raise FormatError(f"looks up what to put around nothing along axis {axis}")
        x = g(gather.GATHER, x, axis=axis, indices=_places(size, side, mode))
    return x


def _places(size: int, side: tuple[int, int], mode: str) -> np.ndarray:
    """Where the elements of a padded axis come from; raises `Unsupported` beyond any size that makes sense."""
    if size + sum(side) > LARGEST_MADE:
        raise Unsupported(f"puts {side[0]} and {side[1]} elements around {size}")
    ramp = np.arange(size, dtype=np.int32)
    found: np.ndarray = np.pad(ramp, side, mode)  # type: ignore[call-overload]
    return found
