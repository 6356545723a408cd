"""What importers share about axes and sizes, open ones among them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import gather, host_arrays, shape as s
from ....types import Shape, Tensor, known
from ..importer import Op


def axis_of(axis: int, rank: int) -> int:
    """An axis, not negative; raises `FormatError` where it is none."""
    if not -rank <= axis < rank:
        raise FormatError(f"has the axis {axis}, the rank is {rank}")
    return axis % rank


def axes_of(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Axes, not negative; raises `FormatError` where one is none or comes twice."""
    found = tuple(axis_of(a, rank) for a in axes)
    if len({*found}) < len(found):
        raise FormatError(f"has an axis twice in {list(found)}")
    return found


def ranked(g: Op, y: Value, rank: int) -> Value:
    """The value, a scalar where that is its rank in the file."""
    return y if rank else g.scalar(y)


def open_(sizes: Sequence[int]) -> int:
    """How many sizes are open."""
    return sum(not known(n) for n in sizes)


def dropped(g: Op, x: Value, axes: Sequence[int]) -> Value:
    """The value less some of its axes, which have size 1."""
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if not axes:
        return x
    return g.reshape(x, rest) if open_(rest) < 2 else g(s.SQUEEZE, x, list(axes), out=Tensor(
        x.type, rest, x.tensor.quant))


def inserted(g: Op, x: Value, axes: Sequence[int]) -> Value:
    """The value with axes of size 1 put in where the result has them."""
    old = iter(g.shape(x))
    whole = tuple(1 if i in axes else next(old) for i in range(g.rank(x) + len(axes)))
    if open_(whole) < 2:
        return g.reshape(x, whole)
    for axis in sorted(axes):
        x = g(s.EXPAND_DIMS, x, axis=axis)
    return x


def shaped_like(g: Op, y: Value, x: Value) -> Value:
    """The value y in the shape of x, which is no scalar."""
    return g.reshape(y, x.shape) if open_(x.shape) < 2 else g(s.RESHAPE, y, lengths(g, x), out=Tensor(
        y.type, x.shape, y.tensor.quant))


def lengths(g: Op, x: Value) -> Value:
    """The sizes of a value that is no scalar, as INT32, computed where some are open."""
    if x.tensor.dims is not None and not open_(x.shape):
        return g.const(np.array(x.shape, np.int32))
    return g(host_arrays.SHAPE, x)


def extent(g: Op, x: Value, axis: int) -> Value:
    """The size of one axis, [1] INT32, computed where it is open."""
    if known(x.shape[axis]):
        return g.const(np.array([x.shape[axis]], np.int32))
    return g(gather.GATHER, g(host_arrays.SHAPE, x), axis=0, indices=[axis])


def put(sizes: Shape, changes: dict[int, int]) -> Shape:
    """The sizes, some of them others."""
    return tuple(changes.get(i, n) for i, n in enumerate(sizes))
