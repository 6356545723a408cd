"""`rounding="fast"`: one product in FLOAT32, rounded to the nearest integer, halves to even, as XNNPACK has it.

Sums of two numbers are of their products with integers of 21 bits, shifted once. It differs from the definition of the
operations by one step of the output's grid in about one result of a thousand.
"""
from __future__ import annotations

import math

import numpy as np

from ...types import Array, Tensor
from ..fixedpoint import grid, scales
from .ir import Function, vector

#: The instructions that round to the nearest, halves to even, by lanes of x86.
ROUNDED = {4: "llvm.x86.sse2.cvtps2dq", 8: "llvm.x86.avx.cvt.ps2dq.256", 16: "llvm.x86.avx512.mask.cvtps2dq.512"}
#: The rounding of AVX-512's instructions that is the processor's own.
CURRENT = 4
#: The bits of the larger multiplier of a sum, and the ratios of scales that XNNPACK sums.
BITS, LEAST, MOST = 20, 2.0 ** -10, 2.0 ** 8


def product_scales(x: Tensor, w: Tensor, out: Tensor, count: int) -> Array:
    """What sums of products of x with w are multiplied by, [count] as FLOAT32."""
    return np.float32(grid(x)[0]) * scales(w, count) / np.float32(grid(out)[0])


def mean_scale(x: Tensor, out: Tensor, count: int) -> Array:
    """What sums of so many numbers are multiplied by, [1] as FLOAT32."""
    return np.array([np.float32(grid(x)[0]) / np.float32(grid(out)[0]) / np.float32(count)], np.float32)


def addends(x: Tensor, y: Tensor, out: Tensor) -> tuple[int, int, int] | None:
    """The multipliers of two numbers that are added, and the shift of their sum; None where XNNPACK has none."""
    ratios = [float(np.float32(grid(t)[0]) / np.float32(grid(out)[0])) for t in (x, y)]
    if not all(LEAST <= r < MOST for r in ratios):
        return None
    shift = BITS - math.floor(math.log2(max(ratios)))
    first, second = (math.floor(math.ldexp(r, shift) + 0.5) for r in ratios)
    return first, second, shift


def nearest(f: Function, lanes: int, x: str) -> str:
    """FLOAT32 numbers as the nearest integers of 32 bits."""
    real, whole = vector(lanes), vector(lanes, "i32")
    if not f.machine.x86:
        even = f.call(real, f"llvm.roundeven.v{lanes}f32", (real, x))
        return f.let(f"fptosi {real} {even} to {whole}")
    more = ((whole, "zeroinitializer"), ("i16", "-1"), ("i32", str(CURRENT))) if lanes == max(ROUNDED) else ()
    return f.call(whole, ROUNDED[lanes], (real, x), *more)
