"""Rows that are written in turn: a loop's list of results is one array, of which each round writes over a part.

TensorFlow's converter spells that out as three parts put together, the first and the last of which have sizes that
only a run knows. This machine writes over the part, and all sizes are known.
"""
from __future__ import annotations

from ..graph import Node, Value
from ..ops import elementwise as e, host_arrays as h, shape
from ..types import I32
from .compose import fixed
from .fuse import VIEWS
from .rewrite import Result, Rewriter, Rules

ROWS = Rules("rows")
#: A number of a place: a constant, what a run computes, or None for what is neither.
Number = int | Value | None


@ROWS.on(shape.CONCATENATION)
def written(g: Rewriter, node: Node) -> Result:
    """x as far as some rows, the rows, and x from behind them on: x with these rows written over."""
    xs, axis = node.args["xs"], node.args["axis"]
    first, last = (g.producer(v) for v in (xs[0], xs[-1]))
    if len(xs) != 3 or first is None or last is None or not first.op is last.op is shape.SLICE:
        return None
    x, rows = first.args["x"], xs[1]
    if last.args["x"] is not x or not fits(x, rows, axis):
        return None
    (begin, at), (end, size) = (cut(g, part, axis) for part in (first, last))
    if (begin, size) != (0, -1) or not isinstance(at, Value) or not follows(g, end, at, rows.shape[axis]):
        return None
    zeros = [g.build.const([0] * n, I32) for n in (axis, len(x.shape) - axis - 1)]
    place = (zeros[0], g(shape.RESHAPE, at, (1,)), zeros[1])
    start = g(shape.CONCATENATION, xs=tuple(v for v in place if v.shape != (0,)), axis=0)
    return g(h.DYNAMIC_UPDATE_SLICE, x, rows, start, out=node.outputs[0].tensor)


def fits(x: Value, rows: Value, axis: int) -> bool:
    """Whether rows are such as those of x along an axis, all sizes being known."""
    if not fixed(x, rows):
        return False
    part = (*x.shape[:axis], rows.shape[axis], *x.shape[axis + 1:]) if len(rows.shape) == len(x.shape) else ()
    return rows.shape == part and rows.tensor.like(x.shape) == x.tensor


def numbers(g: Rewriter, v: Value) -> list[Number]:
    """The numbers of a place, however they were put together."""
    if v.tensor.data is not None:
        return [*v.tensor.ints()]
    made = g.producer(v)
    if made is not None and made.op in VIEWS:
        return numbers(g, made.args["x"])
    if made is not None and made.op in (shape.CONCATENATION, shape.PACK):
        return [n for x in made.args["xs"] for n in numbers(g, x)]
    return [v] if v.tensor.dims is not None and v.shape in ((), (1,)) else [None] * len(v.tensor.dims or (0,))


def cut(g: Rewriter, node: Node, axis: int) -> tuple[Number, Number]:
    """Where a slice begins along an axis and how much it takes of it; None, twice, where it cuts others, too."""
    begin, size, dims = numbers(g, node.args["begin"]), numbers(g, node.args["size"]), node.args["x"].shape
    whole = len(begin) == len(size) == len(dims) and all(
        b == 0 and s in (-1, d) for i, (b, s, d) in enumerate(zip(begin, size, dims, strict=True)) if i != axis)
    return (begin[axis], size[axis]) if whole else (None, None)


def follows(g: Rewriter, end: Number, at: Value, count: int) -> bool:
    """Whether a number is another one and a count."""
    made = g.producer(end) if isinstance(end, Value) else None
    if made is None or made.op is not e.ADD or made.args["act"]:
        return False
    sides = [n for name in ("x", "y") for n in numbers(g, made.args[name])]
    return sides in ([at, count], [count, at])
