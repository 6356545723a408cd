"""ONNX's quantisation where it stays between floats, for `test_rules`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rule_cases import F, Kind, Made, S, Y, grid

from nnx_convert.graph import Build, Value
from nnx_convert.ops import convert, elementwise as e, grids
from nnx_convert.schema import OpDef
from nnx_convert.types import F32, I4, I16, Q8, Q8S, Q16A, U2, Tensor, Type


def quantized(type_: Type, scale: float, zero: int) -> Made:
    """Floats onto a grid, halves to even."""
    return lambda g, xs: g.add(grids.QUANTIZE_EVEN, *xs, to=type_, outs=(grid(type_, scale, zero),))


def function(op: OpDef, type_: Type, scale: float, zero: int) -> Made:
    """A function of bytes onto another grid."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        y = g(op, g(convert.DEQUANTIZE, xs[0], to=F32))
        return g.add(grids.QUANTIZE_EVEN, y, to=type_, outs=(grid(type_, scale, zero),))
    return make


def swish(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """Several operations on the same bytes, with a number."""
    x = g(convert.DEQUANTIZE, xs[0], to=F32)
    half = g.const(np.full((1, 1, 1), 0.5), F32)
    y = g(e.MUL, g(e.ADD, x, half, act=0), g(e.LOGISTIC, x), act=0)
    return g.add(grids.QUANTIZE_EVEN, y, to=Q8, outs=(grid(Q8, 0.25, 7),))


def relabelled(type_: Type) -> Made:
    """The same bytes on two grids, both of them read."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        other = g(grids.RELABEL, xs[0], out=grid(type_, 2.0, 5))
        return g.add(e.ADD, other, xs[0], act=0, outs=(grid(type_, 3.0, 2),))
    return make


def by_axis(type_: Type, zero: bool) -> Made:
    """A scale for each index of the middle axis."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        scale, points = g.const([0.5, 0.25, 2.0], F32), g.const([3, 0, 9], type_, grid(type_, 1.0, 0))
        return g.add(grids.QUANTIZE_LINEAR, xs[0], scale, points if zero else None, axis=1, block=0, saturate=True,
                     to=type_, outs=(grid(type_, 1.0, 0),))
    return make


def computed(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """A scale that only a run knows."""
    return g.add(grids.QUANTIZE_LINEAR, xs[0], g(e.ABS, xs[1]), None, axis=0, block=0, saturate=True, to=Q8,
                 outs=(grid(Q8, 1.0, 0),))


def off_the_axis(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
    """Bytes that count as plain integers, dequantised along an axis."""
    plain = g(grids.RELABEL, xs[0], out=grid(Q8, 1.0, 0))
    scale, zero = g.const([0.5, 0.25, 2.0, 1.0], F32), g.const([3, 0, 9, 200], Q8, Tensor(Q8, (1,), plain.tensor.quant))
    return g.add(grids.DEQUANTIZE_LINEAR, plain, scale, zero, axis=-1, block=0, to=F32)


def there_and_back(type_: Type, zero: int, block: int = 0) -> Made:
    """Onto codes of a type that NNAPI has not, and back: floats throughout."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        scale = g.const([[[0.5], [0.25]]] * 2 if block else [0.125], F32)
        plain = grid(type_, 1.0, 0) if type_ == Q16A else Tensor(type_, None)
        point = g.const([zero], type_, plain)
        more: dict[str, Any] = {"scale": scale, "axis": 1, "block": block}
        codes = g(grids.QUANTIZE_LINEAR, xs[0], zero=point, saturate=True, to=type_, out=plain, **more)
        return g.add(grids.DEQUANTIZE_LINEAR, codes, zero=point, to=F32, **more)
    return make


GRIDDED: dict[str, tuple[Made, list[Kind]]] = {
    "quantize_even": (quantized(Q8, 0.5, 100), [F]), "quantize_even_signed": (quantized(Q8S, 0.25, -3), [F]),
    "quantize_even_plain": (quantized(Q8, 1.0, 0), [F]),
    "tanh_looked_up": (function(e.TANH, Q8, 0.013, 99), [Y]), "abs_looked_up": (function(e.ABS, Q8S, 0.7, 1), [S]),
    "swish_looked_up": (swish, [Y]), "relabel": (relabelled(Q8), [Y]), "relabel_signed": (relabelled(Q8S), [S]),
    "quantize_axis": (by_axis(Q8, True), [F]), "quantize_axis_signed": (by_axis(Q8S, False), [F]),
    "quantize_computed": (computed, [F, (F32, (1,))]), "dequantize_axis": (off_the_axis, [Y]),
    "int16": (there_and_back(I16, -99), [F]), "uint16": (there_and_back(Q16A, 32000), [F]),
    "int4": (there_and_back(I4, 1), [F]), "uint2_blocks": (there_and_back(U2, 0, 2), [(F32, (2, 3, 1))]),
}
#: Where they need the host: QUANTIZE, MAXIMUM, CAST and GATHER come with level 29, or with EX.
GRIDDED_HOSTED = {name: (0, 1) if "looked_up" in name else (0, 1, 2) for name in GRIDDED if name != "dequantize_axis"}
