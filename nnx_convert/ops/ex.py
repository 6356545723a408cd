"""Samsung's NNAPI-EX operations, after NeuralNetworksEx.h. Truth values are QUANT8 of scale 1."""
from __future__ import annotations

from typing import Annotated

from ..kinds import (
    Element, AXIS, BROADCASTS, EX, EX_ALL, T4, Int, Ints, Ints1, Mask, OutKey, Parts, Positive, Scheme, T, T1to4, To,
    broadcast, rank, without)
from ..schema import Rule, op, twin
from ..signature import Kind
from ..types import F32, I32, Q8, Quant, Tensor, Type
from .elementwise import ABS, EXP, NEG, PRELU, RSQRT, SQRT, both
from .reduce import ARGMAX, AXES, TOPK_V2, reduced
from .shape import SPLIT, inserted

EX_FLOAT = {F32: EX}
MASK = Quant(1.0, 0)
UP_TO_4 = Rule("x has rank 1 to 4", lambda x: 1 <= x.rank <= 4, limit=True)
Y_UP_TO_4 = Rule("y has rank 1 to 4", lambda y: 1 <= y.rank <= 4, limit=True)
IS_MASK = Rule("x and y have scale 1 and zero point 0", lambda x, y: x.quant == y.quant == MASK)
CastTo = Annotated[Type, Kind(dict.fromkeys((F32, I32, Q8), EX), output="type")]

EXP_EX = twin("EXP_EX", EXP, EX_FLOAT, UP_TO_4)
SQRT_EX = twin("SQRT_EX", SQRT, EX_FLOAT, UP_TO_4)
RSQRT_EX = twin("RSQRT_EX", RSQRT, EX_FLOAT, UP_TO_4)
ABS_EX = twin("ABS_EX", ABS, {F32: EX, I32: EX}, UP_TO_4)
NEG_EX = twin("NEG_EX", NEG, {F32: EX, I32: EX}, UP_TO_4)
PRELU_EX = twin("PRELU_EX", PRELU, {F32: EX, Q8: EX}, UP_TO_4, Y_UP_TO_4)
ARGMAX_EX = twin("ARGMAX_EX", ARGMAX, EX_ALL)
TOPK_V2_EX = twin("TOPK_V2_EX", TOPK_V2, EX_ALL)
SPLIT_EX = twin("SPLIT_EX", SPLIT, EX_ALL)


def mask(x: Tensor, y: Tensor) -> Tensor:
    """Truth values of the shape x and y broadcast to."""
    return Tensor(Q8, broadcast(x.shape, y.shape), MASK)


@op(EX_ALL, BROADCASTS)
def EQUAL_EX(x: T1to4, y: T1to4) -> Mask:
    """x == y, of real values."""
    return mask(x, y)


@op(EX_ALL, BROADCASTS)
def NOT_EQUAL_EX(x: T1to4, y: T1to4) -> Mask:
    """x != y, of real values."""
    return mask(x, y)


@op(EX_ALL, BROADCASTS)
def GREATER_EQUAL_EX(x: T, y: T) -> Mask:
    """x >= y, of real values."""
    return mask(x, y)


@op(EX_ALL, BROADCASTS)
def LESS_EX(x: T, y: T) -> Mask:
    """x < y, of real values."""
    return mask(x, y)


@op({Q8: EX}, BROADCASTS, IS_MASK)
def LOGICAL_AND_EX(x: T1to4, y: T1to4) -> Mask:
    """x and y, any byte but 0 being true."""
    return mask(x, y)


@op({Q8: EX}, BROADCASTS, IS_MASK)
def LOGICAL_OR_EX(x: T1to4, y: T1to4) -> Mask:
    """x or y, any byte but 0 being true."""
    return mask(x, y)


@op({Q8: EX}, Rule("x has scale 1 and zero point 0", lambda x: x.quant == MASK))
def LOGICAL_NOT_EX(x: T1to4) -> Mask:
    """not x, any byte but 0 being true."""
    return mask(x, x)


@op(EX_FLOAT, BROADCASTS)
def SQUARED_DIFFERENCE_EX(x: T1to4, y: T1to4) -> T:
    """(x - y) ** 2."""
    return both(x, y)


@op(EX_ALL)
def CAST_EX(x: T1to4, to: CastTo) -> To:
    """x as another type; quantised values count as plain integers, floats are truncated."""
    return Tensor(to, x.shape)


@op(EX_ALL, AXIS)
def GATHER_EX(x: T, indices: Ints, axis: Int) -> T:
    """x[..., indices, ...], the indices standing in the place of axis."""
    at = axis % x.rank
    return x.like(x.shape[:at] + indices.shape + x.shape[at + 1:])


@op(EX_ALL, AXES)
def REDUCE_MAX_EX(x: T1to4, axes: Ints1) -> T:
    """The largest over axes, which are dropped."""
    return x.like(reduced(x.shape, axes.ints(), keep=False))


@op(EX_ALL, AXES)
def REDUCE_MIN_EX(x: T1to4, axes: Ints1) -> T:
    """The smallest over axes, which are dropped."""
    return x.like(reduced(x.shape, axes.ints(), keep=False))


@op(EX_FLOAT, AXES)
def REDUCE_SUM_EX(x: T1to4, axes: Ints1) -> T:
    """The sum over axes, which are dropped."""
    return x.like(reduced(x.shape, axes.ints(), keep=False))


@op({F32: EX, Q8: EX}, Rule("shape has four elements", lambda shape: shape.shape == (4,)),
    Rule("w is as deep as x", lambda w, x: w.shape[3] == x.shape[3]),
    Rule("the output has as many batches as x", lambda shape, x: shape.ints()[0] == x.shape[0]),
    Rule("the output sizes are positive", lambda shape: all(n > 0 for n in shape.ints()[1:])),
    Rule("the output is as deep as w has filters", lambda shape, w: shape.ints()[3] == w.shape[0]))
def TRANSPOSE_CONV_EX(shape: Ints1, w: T4, x: T4, scheme: Scheme, sw: Positive, sh: Positive) -> T:
    """TRANSPOSE_CONV_2D to a given shape, without bias or activation."""
    return x.free(shape.ints())


@op(EX_ALL, Rule("the inputs have one shape and quantisation", lambda xs: all(
    x.shape == xs[0].shape and x.quant == xs[0].quant for x in xs)),
    Rule("count is the number of inputs", lambda xs, count: count == len(xs)),
    Rule("axis is in [-rank - 1, rank] of an input", lambda xs, axis: -xs[0].rank - 1 <= axis <= xs[0].rank))
def PACK_EX(*xs: Annotated[T, rank(1, 3)], count: Int, axis: Int) -> T:
    """The inputs stacked along a new axis."""
    return xs[0].like(inserted(xs[0].shape, axis, len(xs)))


@op(EX_ALL, AXIS, Rule("count is the size of the axis", lambda x, count, axis: count == x.shape[axis]),
    outs=("part",))
def UNPACK_EX(x: T1to4, count: Parts, axis: Int) -> list[T]:
    """x taken apart along axis, which is dropped; numbers have shape [1]."""
    return [x.like(without(x.shape, axis))] * int(count)


@op(EX_FLOAT | {I32: EX}, Rule("axis is in [-rank - 1, rank] of indices", lambda indices, axis:
                                      -indices.rank - 1 <= inner(axis) <= indices.rank))
def ONE_HOT_EX(indices: Annotated[Ints, rank(1, 4)], depth: Positive, on: Element, off: Element,
               axis: Int | None = -1, *, to: OutKey) -> T:
    """`on` where the new axis counts to the index, else `off`; without an axis, the new one is the last."""
    return Tensor(to, inserted(indices.shape, inner(axis), depth))


def inner(axis: int | None) -> int:
    """The axis, or the innermost where it is left out."""
    return -1 if axis is None else axis
