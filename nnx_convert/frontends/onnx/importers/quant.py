"""Quantisation. What computes with codes is imported as DequantizeLinear, the operator on floats, QuantizeLinear."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, grids, host
from ....types import BYTES, I32, Q8, Tensor, Type, known, product
from ..constants import type_of
from ..importer import Op
from ..registry import imports
from ..tensors import grid
from .axes import ranked
from .conv import filters
from .sliding import sliding

#: Whole numbers below it are exact in float32, and so are their sums.
EXACT = 1 << 24


def plain(type_: Type) -> Tensor:
    """What is known of codes without a grid of their own."""
    return Tensor(type_, None, grid(type_))


@imports()
def QuantizeLinear(g: Op, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, saturate: int = 1,
                   block_size: int = 0, output_dtype: int = 0, precision: int = 0) -> Value:
    to = zero.type if zero is not None else type_of(output_dtype) if output_dtype else Q8
    if output_dtype and type_of(output_dtype) != to:
        raise FormatError("output_dtype is not the type of the zero point")
    x, scale = (g.cast(v, type_of(precision)) for v in (x, scale)) if precision else (x, scale)
    return ranked(g, g(grids.QUANTIZE_LINEAR, x, scale, zero, axis=axis, block=block_size, saturate=bool(saturate),
                       to=to, out=plain(to)), g.rank(x))


@imports(folds=False)
def DequantizeLinear(g: Op, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, block_size: int = 0,
                     output_dtype: int = 0) -> Value:
    """Constants stay codes: what reads them may compute with these."""
    if zero is not None and zero.type != x.type:
        raise FormatError(f"has codes of {x.type.name} and a zero point of {zero.type.name}")
    to = type_of(output_dtype) if output_dtype else scale.type
    return ranked(g, g(grids.DEQUANTIZE_LINEAR, x, scale, zero, axis=axis, block=block_size, to=to), g.rank(x))


@imports()
def DynamicQuantizeLinear(g: Op, x: Value) -> list[Value]:
    """The grid covers what there is, and zero; all zeros have the scale 1, as in ONNX Runtime."""
    zero, steps, one = (g.const(np.float32(v)) for v in (0, 255, 1))
    least, most = (reduced(g, name, x) for name in ("ReduceMin", "ReduceMax"))
    least, most = g(e.MINIMUM, least, zero), g(e.MAXIMUM, most, zero)
    step = g(e.DIV, g(e.SUB, most, least, act=0), steps, act=0)
    scale = g.scalar(g(host.WHERE, g(e.EQUAL, most, least), one, step))
    offset = g.scalar(g(e.DIV, g(e.SUB, zero, least, act=0), scale, act=0))
    point = QuantizeLinear(g, offset, one)
    return [QuantizeLinear(g, x, scale, point), scale, point]


def reduced(g: Op, name: str, x: Value) -> Value:
    """All of x as one element."""
    found: Value = g.call(name, x, keepdims=0)[0] if g.rank(x) else x
    return found


def scaled(g: Op, x: Value, scale: Value, zero: Value | None, axis: int) -> Value:
    """DequantizeLinear; a scale of several axes, which it does not take, is multiplied with afterwards."""
    if g.rank(scale) <= 1 and (zero is None or g.rank(zero) <= 1):
        found: Value = g.call("DequantizeLinear", x, scale, zero, axis=axis)[0]
        return found
    one = g.const(np.ones((), scale.type.dtype), scale.type)
    codes = g.call("DequantizeLinear", x, one)[0]
    if zero is not None:
        codes = g.elementwise(e.SUB, codes, g.call("DequantizeLinear", zero, one)[0], act=0)
    return g.elementwise(e.MUL, codes, scale, act=0)


@imports()
def QLinearMatMul(g: Op, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
                  y_scale: Value, y_zero: Value) -> Value:
    """A scale of one axis is that of the rows of a, of the columns of b."""
    x = scaled(g, a, a_scale, a_zero, axis=max(g.rank(a) - 2, 0))
    w = scaled(g, b, b_scale, b_zero, axis=g.rank(b) - 1)
    y = g.call("MatMul", x, w)[0]
    found: Value = g.call("QuantizeLinear", y, y_scale, y_zero, axis=max(g.rank(y) - 2, 0))[0]
    return found


def convolution(auto_pad: str, dilations: tuple[int, ...], group: int, kernel_shape: tuple[int, ...],
                pads: tuple[int, ...], strides: tuple[int, ...]) -> dict[str, Any]:
    """The attributes of a Conv, those that are left out not among them."""
    given = {"dilations": dilations, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    return {"auto_pad": auto_pad, "group": group} | {n: v for n, v in given.items() if v}


@imports()
def QLinearConv(g: Op, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
                y_scale: Value, y_zero: Value, b: Value | None = None, *, auto_pad: str = "NOTSET",
                dilations: tuple[int, ...] = (), group: int = 1, kernel_shape: tuple[int, ...] = (),
                pads: tuple[int, ...] = (), strides: tuple[int, ...] = ()) -> Value:
    image = g.call("DequantizeLinear", x, x_scale, x_zero)[0]
    weights = g.call("DequantizeLinear", w, w_scale, w_zero, axis=0)[0]
    if b is not None:
        b = g.call("DequantizeLinear", b, products(g, x_scale, w_scale), axis=0)[0]
    y = g.call("Conv", image, weights, b, **convolution(auto_pad, dilations, group, kernel_shape, pads, strides))[0]
    found: Value = g.call("QuantizeLinear", y, y_scale, y_zero)[0]
    return found


def products(g: Op, x: Value, w: Value) -> Value:
    """The scales of products, in float32."""
    one, other = g.known(x), g.known(w)
    if one is None or other is None:
        return g.elementwise(e.MUL, x, w, act=0)
    return g.const(np.asarray(one * other, one.dtype))


@imports()
def MatMulInteger(g: Op, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    """In floats where all sums are exact, or those of a few parts are, else in 32 bits on the host."""
    parts = pieces(g, b, b_zero, -2 if g.rank(b) > 1 else 0, -2, reach(g, a, a_zero))
    if parts:
        x = centred(g, a, a_zero, g.rank(a) - 2)
        return total(g, [g.cast(g.call("MatMul", cut(g, x, g.rank(a) - 1, at), centred(
            g, w, b_zero, g.rank(b) - 1))[0], I32) for at, w in parts])
    zero = column(g, a_zero)
    x = g.reshape(a, (1, *g.shape(a))) if g.rank(a) == 1 else a
    y = g.reshape(b, (*g.shape(b), 1)) if g.rank(b) == 1 else b
    found = g(grids.MATMUL_INTEGER, x, y, zero, b_zero)
    batch, rows, columns = found.shape[:-2], found.shape[-2:-1][:g.rank(a) > 1], found.shape[-1:][:g.rank(b) > 1]
    return g.reshape(found, (*batch, *rows, *columns))


def column(g: Op, zero: Value | None) -> Value | None:
    """A zero point for each row, as a column."""
    return zero if zero is None or g.rank(zero) != 1 or zero.shape == (1,) else g.reshape(zero, (*zero.shape, 1))


def centred(g: Op, x: Value, zero: Value | None, axis: int) -> Value:
    """Codes less their zero point, as floats."""
    return scaled(g, x, g.const(np.float32(1)), zero, max(axis, 0))


def reach(g: Op, x: Value, zero: Value | None) -> int:
    """The largest difference of a code and the zero point."""
    info, found = np.iinfo(x.type.dtype), np.zeros((), np.int64) if zero is None else g.known(zero)
    points = (int(info.min), int(info.max)) if found is None else (int(found.min()), int(found.max()))
    return max(int(info.max) - points[0], points[1] - int(info.min))


def sums(g: Op, w: Value, zero: Value | None, axes: int | tuple[int, ...]) -> int:
    """The largest sum along axes of the differences of codes and the zero point; `EXACT` where it is open."""
    codes, points = g.known(w), np.zeros((), np.int64) if zero is None else g.known(zero)
    if codes is not None and points is not None:
        if points.ndim == 1 and isinstance(axes, tuple):
            points = points.reshape(-1, *(1,) * len(axes))
        axis = -1 if isinstance(axes, int) and codes.ndim == 1 else axes
        return int(np.abs(codes.astype(np.int64) - points.astype(np.int64)).sum(axis).max(initial=0))
    sizes = g.shape(w)[1:] if isinstance(axes, tuple) else g.shape(w)[-2:-1] or g.shape(w)
    return product(sizes) * reach(g, w, zero) if all(map(known, sizes)) else EXACT


#: The most parts that a sum is taken in.
MOST_PARTS = 8
Part = tuple[range | None, Value]


def pieces(g: Op, w: Value, zero: Value | None, axis: int, axes: int | tuple[int, ...], most: int) -> list[Part]:
    """Weights in as few parts along an axis as make all sums with codes of at most `most` exact in floats.

    A part is the indices it has, None for all of them, and the weights; none where there are too many.
    """
    if most * sums(g, w, zero, axes) < EXACT:
        return [(None, w)]
    codes, count = g.known(w), 2
    while codes is not None and count <= min(MOST_PARTS, codes.shape[axis]):
        ends = [codes.shape[axis] * i // count for i in range(count + 1)]
        ranges = [range(a, b) for a, b in pairwise(ends)]
        parts = [(at, g.const(codes.take(at, axis), w.type)) for at in ranges]
        if all(most * sums(g, part, zero, axes) < EXACT for _, part in parts):
            return [*parts]
        count *= 2
    return []


def cut(g: Op, x: Value, axis: int, at: range | None) -> Value:
    """Some of x along an axis."""
    if at is None:
        return x
    starts, ends, axes = (g.const(np.array([n], np.int64)) for n in (at.start, at.stop, axis))
    found: Value = g.call("Slice", x, starts, ends, axes)[0]
    return found


def total(g: Op, parts: list[Value]) -> Value:
    """The sum of whole numbers of 32 bits."""
    found = parts[0]
    for y in parts[1:]:
        found = g.elementwise(e.ADD, found, y, act=0)
    return found


@imports()
def ConvInteger(g: Op, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, *,
                auto_pad: str = "NOTSET", dilations: tuple[int, ...] = (), group: int = 1,
                kernel_shape: tuple[int, ...] = (), pads: tuple[int, ...] = (), strides: tuple[int, ...] = ()) -> Value:
    """As MatMulInteger, in parts of the channels; a border is the zero point."""
    axes = g.rank(x) - 2
    if x.type not in BYTES or w.type not in BYTES or axes < 1:
        raise FormatError("takes images of bytes")
    parts = pieces(g, w, w_zero, 1, tuple(range(1, axes + 2)), reach(g, x, x_zero))
    if parts and (group == 1 or len(parts) == 1):
        image, named = centred(g, x, x_zero, 0), convolution(auto_pad, dilations, group, kernel_shape, pads, strides)
        return total(g, [g.cast(g.call("Conv", cut(g, image, 1, at), centred(g, part, w_zero, 0), **named)[0], I32)
                         for at, part in parts])
    one, none = (1,) * axes, (0,) * 2 * axes
    ends = none if auto_pad == "VALID" else pads or none
    if auto_pad not in ("NOTSET", "", "VALID"):
        s = sliding(g, x, filters(g, x, w, kernel_shape), strides, dilations, None, auto_pad)
        if s.scheme:
            g.unsupported(f"has the padding {auto_pad} over open sizes", "give the input sizes")
        ends = s.pads
    return g(grids.CONV_INTEGER, x, w, x_zero, w_zero, ends, strides or one, dilations or one, groups=group)
