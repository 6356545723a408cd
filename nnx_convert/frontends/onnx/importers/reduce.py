"""Reductions, searches, running folds along axes."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import FormatError
from ....frozen import frozen
from ....graph import Value
from ....ops import (
    convert, elementwise as e, ex, folds, host, host_arrays, host_math, indexing, reduce as r, shape as s)
from ....schema import OpDef
from ....types import B8, F16, F32, F64, I32, I64, NARROW_FLOATS, UNKNOWN, Tensor, known
from ..importer import Op
from ..registry import imports
from .axes import axes_of, axis_of, dropped, extent, inserted, put, ranked, shaped_like
from .shape import Flatten

FLOATS = (F32, F16, F64)
#: Up to here FLOAT32 holds every integer.
EXACT = 1 << 24


@frozen
class Over:
    """The axes of a reduction, known or computed, and whether they stay with size 1."""

    axes: tuple[int, ...] | Value
    keep: bool

    def fold(self, g: Op, op: OpDef, x: Value) -> Value:
        """x reduced by an operation, the axes being there with size 1; itself without axes."""
        if not self.axes:
            return x
        kind = next(p for p in op.params if p.name == "keep")
        keep = kind.operand(1, x.type, op.types).value
        if isinstance(self.axes, Value):
            out = Tensor(x.type, (UNKNOWN,) * len(x.shape), x.tensor.quant)
            return g(op, x, g.index(self.axes), keep=keep, out=out)
        return g(op, x, list(self.axes), keep=keep)

    def done(self, g: Op, y: Value) -> Value:
        """The result, the axes gone where they do not stay."""
        if self.keep or not self.axes:
            return y
        if not isinstance(self.axes, Value):
            return dropped(g, y, self.axes)
        rank = len(y.shape) - self.axes.shape[0]
        out = Tensor(y.type, (UNKNOWN,) * rank or (1,), y.tensor.quant)
        made = g(s.SQUEEZE, y, g.index(self.axes), out=out)
        return made if rank else g.scalar(made)


def over(g: Op, x: Value, axes: Sequence[int] | Value | None, keepdims: int, noop: bool = False) -> Over:
    """The axes; no axes are all of them, or none (`noop`)."""
    if isinstance(axes, Value):
        found = () if axes.shape == (0,) else g.ints(axes)
        if found is None or not all(map(known, found)):
            if not known(axes.shape[0]):
                g.unsupported("reduces a number of axes that is computed")
            return Over(axes, bool(keepdims))
        axes = found
    if not axes and noop:
        return Over((), True)
    if not g.rank(x):
        return Over((0,), True) if axes_of(axes or (), 1) in ((), (0,)) else Over((), True)
    return Over(axes_of(axes, g.rank(x)) if axes else tuple(range(g.rank(x))), bool(keepdims))


Emit = Callable[[Op, Value, Over], Value]
REDUCED: dict[str, Emit] = {}


def reduction() -> Callable[[Emit], Emit]:
    """Register what a reduction emits, under the name of the function."""
    def named(fn: Emit) -> Emit:
        REDUCED[fn.__name__] = fn
        return fn
    return named


@reduction()
def ReduceSum(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, o.fold(g, r.REDUCE_SUM, x))


@reduction()
def ReduceMean(g: Op, x: Value, o: Over) -> Value:
    """Integers round toward zero."""
    return o.done(g, o.fold(g, r.MEAN, x))


@reduction()
def ReduceProd(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, o.fold(g, r.REDUCE_PROD, x))


@reduction()
def ReduceMax(g: Op, x: Value, o: Over) -> Value:
    return extreme(g, x, o, r.REDUCE_ANY if x.type == B8 else r.REDUCE_MAX)


@reduction()
def ReduceMin(g: Op, x: Value, o: Over) -> Value:
    return extreme(g, x, o, r.REDUCE_ALL if x.type == B8 else r.REDUCE_MIN)


def extreme(g: Op, x: Value, o: Over, op: OpDef) -> Value:
    """Bytes keep their order as they are; narrow floats are compared as FLOAT32."""
    if x.type in NARROW_FLOATS:
        return g.cast(o.done(g, o.fold(g, op, g.cast(x, F32))), x.type)
    return o.done(g, o.fold(g, op, x))


@reduction()
def ReduceL1(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, o.fold(g, r.REDUCE_SUM, g.elementwise(e.ABS, x)))


@reduction()
def ReduceSumSquare(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, o.fold(g, r.REDUCE_SUM, g.elementwise(host.SQUARE, x)))


@reduction()
def ReduceL2(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, real(g, e.SQRT, o.fold(g, r.REDUCE_SUM, g.elementwise(host.SQUARE, x))))


@reduction()
def ReduceLogSum(g: Op, x: Value, o: Over) -> Value:
    return o.done(g, real(g, e.LOG, o.fold(g, r.REDUCE_SUM, x)))


def real(g: Op, op: OpDef, x: Value) -> Value:
    """A function of floats, of integers by way of FLOAT64."""
    return g.elementwise(op, x) if x.type in FLOATS else g.cast(g.elementwise(op, g.cast(x, F64)), x.type)


@reduction()
def ReduceLogSumExp(g: Op, x: Value, o: Over) -> Value:
    """Less the largest, so that nothing overflows; an infinite one is not taken off."""
    if x.type not in FLOATS:
        return g.cast(ReduceLogSumExp(g, g.cast(x, F64), o), x.type)
    if not o.axes:
        return x
    ends = np.finfo(x.type.dtype)
    low, high = (g.const(np.array([v], x.type.dtype), x.type) for v in (ends.min, ends.max))
    most = g(e.MINIMUM, g(e.MAXIMUM, o.fold(g, r.REDUCE_MAX, x), low), high)
    total = o.fold(g, r.REDUCE_SUM, g(e.EXP, g(e.SUB, x, most, act=0)))
    return o.done(g, g(e.ADD, g(e.LOG, total), most, act=0))


def register(name: str, emit: Emit, since: int) -> None:
    """Register the importers of a reduction whose axes are an attribute below version `since`, then an input."""
    arithmetic = emit not in (ReduceMax, ReduceMin)

    @imports(name, until=since - 1, arithmetic=arithmetic)
    def first(g: Op, x: Value, *, axes: tuple[int, ...] | None = None, keepdims: int = 1) -> Value:
        return scalars(g, x, emit, over(g, x, axes, keepdims))

    @imports(name, since=since, arithmetic=arithmetic)
    def later(g: Op, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Value:
        return scalars(g, x, emit, over(g, x, axes, keepdims, bool(noop_with_empty_axes)))


def scalars(g: Op, x: Value, emit: Emit, o: Over) -> Value:
    """A reduction; of a scalar a scalar."""
    return ranked(g, emit(g, x, o), g.rank(x))


for _name, _emit in REDUCED.items():
    register(_name, _emit, 13 if _name == "ReduceSum" else 18)


@imports("ArgMax", until=11)
def argmax_1(g: Op, x: Value, *, axis: int = 0, keepdims: int = 1) -> Value:
    return searched(g, x, r.ARGMAX, axis, keepdims)


@imports(since=12)
def ArgMax(g: Op, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return searched(g, x, folds.ARGMAX_LAST if select_last_index else r.ARGMAX, axis, keepdims)


@imports("ArgMin", until=11)
def argmin_1(g: Op, x: Value, *, axis: int = 0, keepdims: int = 1) -> Value:
    return searched(g, x, r.ARGMIN, axis, keepdims)


@imports(since=12)
def ArgMin(g: Op, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    return searched(g, x, folds.ARGMIN_LAST if select_last_index else r.ARGMIN, axis, keepdims)


def searched(g: Op, x: Value, op: OpDef, axis: int, keepdims: int) -> Value:
    """Where the extreme is along an axis, as INT64."""
    at, rank = axis_of(axis, g.rank(x)), g.rank(x)
    x = g.cast(x, F32) if x.type in NARROW_FLOATS else x
    found = g.cast(g(op, x, axis=at), I64)
    if rank == 1:
        return found if keepdims else g.scalar(found)
    return inserted(g, found, [at]) if keepdims else found


@imports("TopK", until=9)
def topk_1(g: Op, x: Value, *, k: int, axis: int = -1) -> Sequence[Value]:
    return best(g, x, k, axis, largest=True)


@imports("TopK", since=10, until=10)
def topk_10(g: Op, x: Value, k: Value, *, axis: int = -1) -> Sequence[Value]:
    return best(g, x, k, axis, largest=True)


@imports(since=11, arithmetic=True)
def TopK(g: Op, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Sequence[Value]:
    """What need not be sorted is, all the same."""
    return best(g, x, k, axis, bool(largest))


def best(g: Op, x: Value, k: int | Value, axis: int, largest: bool) -> list[Value]:
    """The largest or the smallest along an axis, the lower index first among equals, and their indices."""
    at, rank = axis_of(axis, g.rank(x)), g.rank(x)
    last = [*(i for i in range(rank) if i != at), at]
    rows = x if at == rank - 1 else g(s.TRANSPOSE, x, last)
    rows = rows if largest else turned(g, rows)
    found = (k,) if isinstance(k, int) else g.ints(k)
    if found is not None and len(found) == 1 and known(found[0]):
        n = x.shape[at]
        if found[0] < 0 or known(n) and found[0] > n:
            raise FormatError(f"takes the best {found[0]} of {n}")
        values, where = g.add(host.TOPK_FIRST, rows, k=found[0])
    else:
        values, where = g.add(host_arrays.TOPK, rows, g.index(k) if isinstance(k, Value) else [k], outs=[
            Tensor(t, put(rows.shape, {rank - 1: found[0] if found else UNKNOWN})) for t in (rows.type, I32)])
    values = values if largest else turned(g, values)
    if at == rank - 1:
        return [values, g.cast(where, I64)]
    back, n = np.argsort(last).tolist(), x.shape[at]
    if known(n) and n <= EXACT:                        # NNAPI transposes no INT32
        where = g(convert.CAST, g(s.TRANSPOSE, g(convert.CAST, where, to=F32), back), to=I32)
    else:
        where = g(s.TRANSPOSE, where, back)
    return [g(s.TRANSPOSE, values, back), g.cast(where, I64)]


def turned(g: Op, x: Value) -> Value:
    """The elements in the opposite order: negative ones of floats, of integers what no overflow spoils."""
    if x.type in FLOATS:
        return g(e.NEG, x)
    middle = -1 if x.type.dtype.kind == "i" else np.iinfo(x.type.dtype).max
    return g(e.SUB, g.const(np.array([middle], x.type.dtype), x.type), x, act=0)


@imports("Hardmax", until=12)
def hardmax_1(g: Op, x: Value, *, axis: int = 1) -> Value:
    """Over all axes from `axis` on."""
    return shaped_like(g, hardmax(g, Flatten(g, x, axis=axis), 1), x)


@imports(since=13)
def Hardmax(g: Op, x: Value, *, axis: int = -1) -> Value:
    return hardmax(g, x, axis_of(axis, g.rank(x)))


def hardmax(g: Op, x: Value, axis: int) -> Value:
    """1 where the first largest along an axis is, else 0."""
    size = x.shape[axis]
    if known(size) and not size:
        return x
    found = g(r.ARGMAX, g.cast(x, F32) if x.type in NARROW_FLOATS else x, axis=axis)
    if known(size) and x.type == F32:
        y = g(ex.ONE_HOT_EX, found, depth=size, on=1.0, off=0.0, axis=axis, to=F32)
    else:
        pair = g.const(np.array([0, 1], x.type.dtype), x.type)
        y = g(indexing.ONE_HOT, found, extent(g, x, axis), pair, axis=axis)
    return shaped_like(g, y, x) if len(x.shape) == 1 else y


@imports(arithmetic=True)
def CumSum(g: Op, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    at = g.ints(axis)
    if at is None or len(at) != 1:
        return cumulated(g, x, axis, exclusive, reverse, product=False)
    return g(host_math.CUMSUM, x, axis=axis_of(at[0], g.rank(x)), exclusive=bool(exclusive), reverse=bool(reverse))


@imports(arithmetic=True)
def CumProd(g: Op, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
    return cumulated(g, x, axis, exclusive, reverse, product=True)


def cumulated(g: Op, x: Value, axis: Value, exclusive: int, reverse: int, product: bool) -> Value:
    """Running sums or products along an axis that may be computed."""
    return g(folds.CUMULATE, x, axis, exclusive=bool(exclusive), reverse=bool(reverse), product=product)
