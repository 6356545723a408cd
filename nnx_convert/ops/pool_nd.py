"""Pools over any number of axes, channels before them, with what NNAPI's have not: gaps, powers, indices.

x is [n, channels, *sizes]; pads are the amounts before each of those axes, then those after.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Float, Ints1, Positive, T
from ..schema import Rule, host
from ..signature import Kind
from ..types import I64, Shape, Tensor, Type, known, maybe
from .conv_nd import SLIDES, Image
from .host import ALL

Longs = Annotated[Tensor, Kind({I64: 27, Type.TENSOR_INT32: 27})]
KERNEL = Rule("kernel has a positive size for each axis behind the channels", lambda x, kernel:
              kernel.shape == (x.rank - 2,) and all(n > 0 for n in kernel.ints()))


def positions(size: int, k: int, stride: int, dilation: int, head: int, tail: int, ceil: bool) -> int:
    """How many windows there are along an axis; with `ceil` also one cut off at the end that begins before it."""
    room = size + head + tail - ((k - 1) * dilation + 1)
    if not ceil:
        return room // stride + 1
    count = -(-room // stride) + 1
    return maybe(lambda: count - ((count - 1) * stride >= size + head)) if known(count) else count


def pooled(x: Tensor, kernel: Tensor, pads: Tensor, strides: Tensor, dilations: Tensor, ceil: bool) -> Shape:
    """The shape of a pool's output."""
    sizes, amounts = x.shape[2:], pads.ints()
    heads, tails = amounts[:len(sizes)], amounts[len(sizes):]
    axes = zip(sizes, kernel.ints(), strides.ints(), dilations.ints(), heads, tails, strict=True)
    return (*x.shape[:2], *(positions(n, k, s, d, head, tail, ceil) for n, k, s, d, head, tail in axes))


@host(60594, ALL, SLIDES, KERNEL, outs=("out", "indices"))
def MAX_POOL_ND(x: Image, kernel: Ints1, pads: Ints1, strides: Ints1, dilations: Ints1, ceil: Bool,
                column_major: Bool) -> tuple[T, Longs]:
    """The largest of each window, and where in x it is first; column_major counts the axes behind the channels so."""
    shape = pooled(x, kernel, pads, strides, dilations, ceil)
    return x.like(shape), Tensor(I64, shape)


@host(60595, ALL, SLIDES, KERNEL)
def AVERAGE_POOL_ND(x: Image, kernel: Ints1, pads: Ints1, strides: Ints1, dilations: Ints1, ceil: Bool,
                    counted: Bool) -> T:
    """The mean of each window; padding is a zero where it is counted, else not there."""
    return x.free(pooled(x, kernel, pads, strides, dilations, ceil))


@host(60596, ALL, SLIDES, KERNEL)
def LP_POOL_ND(x: Image, kernel: Ints1, pads: Ints1, strides: Ints1, dilations: Ints1, ceil: Bool, p: Float) -> T:
    """(sum of |x| ** p over each window) ** (1 / p)."""
    return x.free(pooled(x, kernel, pads, strides, dilations, ceil))


@host(60597, ALL, Rule("indices have the shape of x", lambda x, indices: x.shape == indices.shape),
      Rule("inner is within shape, both with the batch and channels of x", lambda x, inner, shape:
           x.shape[:2] == inner.ints()[:2] == shape.ints()[:2] and len(inner.ints()) == x.rank and
           all(a <= b for a, b in zip(inner.ints(), shape.ints(), strict=True))))
def UNPOOL_ND(x: T, indices: Longs, inner: Ints1, shape: Ints1) -> T:
    """Zeros of a shape, x at the indices counted in its first part `inner`."""
    return x.like(shape.ints())


@host(60598, ALL, Rule("x has rank 4", lambda x: x.rank == 4), Rule("rois are [n, 5]", lambda rois:
                                                                     rois.rank == 2 and rois.shape[1] == 5))
def MAX_ROI_POOL(x: T, rois: T, oh: Positive, ow: Positive, scale: Float) -> T:
    """The largest of each cell of an oh by ow grid over rois [image, x1, y1, x2, y2], both ends in; 0 where none is."""
    return x.like((rois.shape[0], x.shape[1], oh, ow))
