"""Reduction and search along axes."""
from __future__ import annotations

from ..kinds import AXIS, FROM29, FROM29I, MATH, QUANT, TOP_K, Bool, Int, Ints, Ints1, T, T1to4, without
from ..schema import Rule, op
from ..types import B8, F32, I32, Q8, Shape, Tensor

AXES = Rule("axes are in [-rank, rank) of x", lambda x, axes: all(-x.rank <= a < x.rank for a in axes.ints()))


def reduced(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    """The shape with its axes made 1 or dropped; [1] when none is left."""
    if keep:
        return tuple(1 if _among(i, axes, len(shape)) else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if not _among(i, axes, len(shape))) or (1,)


def _among(i: int, axes: tuple[int, ...], rank_: int) -> bool:
    return any(a % rank_ == i for a in axes)


@op(QUANT | {F32: 28, Q8: 28}, AXES)
def MEAN(x: T1to4, axes: Ints1, keep: Int) -> T:
    """The mean over axes, which stay with size 1 where keep > 0."""
    return x.like(reduced(x.shape, axes.ints(), keep > 0))


@op(MATH, AXES)
def REDUCE_SUM(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """The sum over axes."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op(MATH, AXES)
def REDUCE_PROD(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """The product over axes."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op(FROM29, AXES)
def REDUCE_MAX(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """The largest over axes."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op(FROM29, AXES)
def REDUCE_MIN(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """The smallest over axes."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op({B8: 29}, AXES)
def REDUCE_ALL(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """Whether all over axes are true."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op({B8: 29}, AXES)
def REDUCE_ANY(x: T1to4, axes: Ints1, keep: Bool) -> T:
    """Whether any over axes is true."""
    return x.like(reduced(x.shape, axes.ints(), keep))


@op(FROM29I, AXIS)
def ARGMAX(x: T, axis: Int) -> Ints:
    """The index of the largest along axis, the lowest among equals."""
    return Tensor(I32, without(x.shape, axis))


@op(FROM29I, AXIS)
def ARGMIN(x: T, axis: Int) -> Ints:
    """The index of the smallest along axis, the lowest among equals."""
    return Tensor(I32, without(x.shape, axis))


@op(FROM29I, TOP_K, outs=("values", "indices"))
def TOPK_V2(x: T, k: Int) -> tuple[T, Ints]:
    """The k largest along the last axis, descending, the larger index first among equals."""
    return x.like((*x.shape[:-1], k)), Tensor(I32, (*x.shape[:-1], k))
