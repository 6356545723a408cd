"""Rearranging: reshape, transpose, join, split, cut, pad, repeat. Values are copied, never requantised."""
from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from ..kinds import (
    Element, AXIS, FL6, FL7, FROM29, FROM29I, QUANT, ZERO_IS_ZERO, Int, Ints, Ints1, OutKey, Parts, Positive, T,
    T1to4, T1to4z, by_key, put, rank, takes)
from ..schema import Rule, op
from ..types import (
    F16, F32, I32, Q8, Q8S, TENSORS, UNKNOWN, Shape, Tensor, Type, Undecided, given, known, maybe, product)

QUANT28 = QUANT | {F32: 28, Q8: 28}
LATER = {F16: FL6, F32: FL6, Q8: FL6, Q8S: FL6, I32: FL6}
PAIRS = Rule("paddings is [rank of x, 2]", lambda x, paddings: paddings.shape == (x.rank, 2))
NOT_NEGATIVE = Rule("paddings are not negative", lambda paddings: min(paddings.ints(), default=0) >= 0)
PadValue = Annotated[float, by_key("padding value", {
    F32: {Type.FLOAT32: 29}, F16: {Type.FLOAT16: 29}, Q8: {Type.INT32: 29}, Q8S: {Type.INT32: 30}})]


def per_axis(name: str) -> Rule:
    """The argument has an element for each axis of x."""
    return Rule(f"{name} has one element per axis of x", lambda x, v: v.shape == (x.rank,), of=("x", name))


@op(QUANT | {I32: FL6}, Rule("at most one element of shape is -1, and the sizes agree",
                                 lambda x, shape: _reshaped(x.size, shape.ints()) is not None))
def RESHAPE(x: T1to4, shape: Ints1) -> T:
    """The elements of x in another shape; one -1 is what is left over."""
    wanted, found = shape.ints(), None
    with suppress(Undecided):
        found = _reshaped(x.size, wanted)
    return x.like(found or tuple(n if known(n) and n != -1 else UNKNOWN for n in wanted))


def _reshaped(size: int, wanted: Shape) -> Shape | None:
    """The wanted shape with -1 filled in; None when the element counts disagree."""
    if wanted.count(-1) > 1:
        return None
    rest = product(tuple(n for n in wanted if n != -1))
    shape = tuple(size // max(rest, 1) if n == -1 else n for n in wanted)
    return shape if product(shape) == size else None


@op(QUANT28, Rule("perm is a permutation of the axes of x; without it x has rank 2", lambda x, perm:
                      sorted(perm.ints()) == list(range(x.rank)) if given(perm) else x.rank == 2))
def TRANSPOSE(x: T1to4z, perm: Ints1 | None) -> T:
    """Axis i of the output is axis perm[i] of x."""
    axes = perm.ints() if given(perm) else (1, 0)
    return x.like(tuple(maybe(x.shape.__getitem__, a) for a in axes))


@op(QUANT28, Rule("dims lists axes of size 1", lambda x, dims: not given(dims) or all(
    -x.rank <= d < x.rank and x.shape[d] == 1 for d in dims.ints())))
def SQUEEZE(x: T1to4, dims: Ints1 | None) -> T:
    """x less the listed axes of size 1, or less all of them."""
    drop = {d % x.rank for d in dims.ints()} if given(dims) else {i for i, n in enumerate(x.shape) if n == 1}
    return x.like(tuple(n for i, n in enumerate(x.shape) if i not in drop) or (1,))


@op(FROM29I, Rule("axis is in [-rank - 1, rank] of x", lambda x, axis: -x.rank - 1 <= axis <= x.rank))
def EXPAND_DIMS(x: T, axis: Int) -> T:
    """x with an axis of size 1 put in before `axis`."""
    return x.like(inserted(x.shape, axis, 1))


def inserted(shape: Shape, axis: int, size: int) -> Shape:
    """The shape with an axis put in."""
    axis %= len(shape) + 1
    return (*shape[:axis], size, *shape[axis:])


@op(QUANT, Rule("axis is in [0, rank) of an input", lambda xs, axis: 0 <= axis < xs[0].rank),
    Rule("the inputs agree in every axis but `axis`", lambda xs, axis: all(
    len(x.shape) == xs[0].rank and put(x.shape, axis, 0) == put(xs[0].shape, axis, 0) for x in xs)),
    Rule("the inputs and the output have one quantisation",
         lambda xs, out: all(x.quant == out.quant for x in xs), until=29))
def CONCATENATION(*xs: T1to4z, axis: Int) -> T:
    """The inputs one after the other along axis, each brought to the output's quantisation."""
    return xs[0].free(put(xs[0].shape, axis, sum(x.shape[axis] for x in xs)))


@op(LATER, Rule("the inputs have one shape and quantisation", lambda xs: all(
    x.shape == xs[0].shape and x.quant == xs[0].quant for x in xs)),
    Rule("axis is in [0, rank] of an input", lambda axis, xs: 0 <= axis <= xs[0].rank))
def PACK(axis: Int, *xs: T) -> T:
    """The inputs stacked along a new axis."""
    return xs[0].like(inserted(xs[0].shape, axis, len(xs)))


@op(FROM29I, AXIS, Rule("count divides the axis", lambda x, axis, count: x.shape[axis] % count == 0),
    outs=("part",))
def SPLIT(x: T, axis: Int, count: Parts) -> list[T]:
    """x cut along axis into count equal parts."""
    return [x.like(put(x.shape, axis, x.shape[axis] // count))] * int(count)


@op(FROM29I, per_axis("begin"), per_axis("size"), Rule("the slice lies within x", lambda x, begin, size: all(
    0 <= b and -1 <= s and b + max(s, 0) <= n
    for n, b, s in zip(x.shape, begin.ints(), size.ints(), strict=True))))
def SLICE(x: T, begin: Ints1, size: Ints1) -> T:
    """x[begin : begin + size] in every axis; a size of -1 reaches to the end."""
    cuts = zip(x.shape, begin.ints(), size.ints(), strict=True)
    return x.like(tuple(maybe(lambda n, b, s: n - b if s == -1 else s, *cut) for cut in cuts))


#: Slices that take all of an axis, however long it is.
WHOLE = (slice(None, None, 1), slice(0, None, 1))


def _picked(x: Tensor, begin: Tensor, end: Tensor, strides: Tensor, begin_mask: int, end_mask: int) -> Shape:
    """How many elements a strided slice takes of each axis, before any axis is shrunk."""
    def count(i: int, n: int, b: int, e: int, s: int) -> int:
        cut = slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s)
        return n if cut in WHOLE else len(range(*cut.indices(n)))
    cuts = zip(range(x.rank), x.shape, begin.ints(), end.ints(), strides.ints(), strict=True)
    return tuple(maybe(count, *cut) for cut in cuts)


@op(QUANT28, per_axis("begin"), per_axis("end"), per_axis("strides"),
    Rule("no stride is 0", lambda strides: 0 not in strides.ints()),
    Rule("a shrunk axis has a positive stride and takes one element", lambda x, begin, end, strides, begin_mask,
         end_mask, shrink_mask: all(n == 1 and s > 0 for i, (n, s) in enumerate(zip(
             _picked(x, begin, end, strides, begin_mask, end_mask), strides.ints(), strict=True))
             if shrink_mask >> i & 1)))
def STRIDED_SLICE(x: T1to4, begin: Ints1, end: Ints1, strides: Ints1, begin_mask: Int, end_mask: Int,
                  shrink_mask: Int) -> T:
    """x[begin:end:stride] in every axis; bit i of a mask opens axis i at that end, or drops it."""
    picked = _picked(x, begin, end, strides, begin_mask, end_mask)
    return x.like(tuple(n for i, n in enumerate(picked) if not shrink_mask >> i & 1) or (1,))


def padded(x: Tensor, paddings: Tensor) -> Tensor:
    """x grown by amounts [rank, 2] at the ends of its axes."""
    amounts = paddings.ints()
    sides = zip(x.shape, amounts[0::2], amounts[1::2], strict=True)
    return x.like(tuple(n + head + tail for n, head, tail in sides))


@op(QUANT28, PAIRS, NOT_NEGATIVE, ZERO_IS_ZERO)
def PAD(x: T1to4, paddings: Annotated[Ints, rank(2)]) -> T:
    """x with logical zeros put before and after each axis."""
    return padded(x, paddings)


@op(FROM29, PAIRS, NOT_NEGATIVE)
def PAD_V2(x: T1to4, paddings: Annotated[Ints, rank(2)], value: PadValue) -> T:
    """x with `value` put before and after each axis; beside quantised x it is in quantised units."""
    return padded(x, paddings)


@op(dict.fromkeys(LATER, FL7), PAIRS, NOT_NEGATIVE,
    Rule("mode is 0 REFLECT or 1 SYMMETRIC", lambda mode: 0 <= mode <= 1),
    Rule("no padding exceeds the axis (REFLECT: the axis less one)", lambda x, paddings, mode: all(
        amount <= x.shape[i // 2] - (mode == 0) for i, amount in enumerate(paddings.ints()))))
def MIRROR_PAD(x: T, paddings: Annotated[Ints, rank(2)], mode: Int) -> T:
    """x mirrored at its edges, with (SYMMETRIC) or without (REFLECT) the edge itself."""
    return padded(x, paddings)


@op(FROM29I, per_axis("multiples"))
def TILE(x: T, multiples: Ints1) -> T:
    """x repeated multiples[i] times along axis i."""
    return x.like(tuple(n * m for n, m in zip(x.shape, multiples.ints(), strict=True)))


@op(dict.fromkeys(LATER, FL7), Rule("axis is one axis of x, not negative", lambda x, axis:
                                         axis.shape == (1,) and 0 <= axis.ints()[0] < x.rank))
def REVERSE(x: Annotated[T, rank(1, 8)], axis: Ints1) -> T:
    """x back to front along axis."""
    return x


@op(FROM29, AXIS, Rule("groups divides the axis", lambda x, groups, axis: x.shape[axis] % groups == 0))
def CHANNEL_SHUFFLE(x: T1to4, groups: Positive, axis: Int) -> T:
    """The axis seen as [groups, n / groups], the two swapped."""
    return x


@op({F32: 30, F16: 30, I32: 30})
def FILL(dims: Ints1, value: Element, to: OutKey) -> T:
    """A tensor of shape dims, all `value`."""
    return Tensor(to, dims.ints())


@op(dict.fromkeys(TENSORS, 30))
def RANK(x: T) -> Annotated[Tensor, takes(Type.INT32)]:
    """The number of axes of x, as an INT32 scalar."""
    return Tensor(Type.INT32, ())
