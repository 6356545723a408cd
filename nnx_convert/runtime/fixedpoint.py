"""TFLite's integer arithmetic: multipliers in fixed point and the roundings that go with them.

Source: LiteRT's reference kernels (gemmlowp's fixed point, `MultiplyByQuantizedMultiplier`), bit by bit. All
functions take and give whole arrays; integers are carried as int64 where a product needs it.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import Array, ChannelQuant, Quant, Tensor

f32 = np.float32
I64 = np.int64


def away(x: Any) -> Any:
    """Round to the nearest integer, halves away from zero, in x's own precision (C's `round`)."""
    whole = np.trunc(x)
    return whole + np.trunc(2 * (x - whole))


def wrap32(x: Any) -> Array:
    """The low 32 bits, signed."""
    return np.asarray((np.asarray(x, I64) + 2**31 & 0xFFFFFFFF) - 2**31)


def wrap16(x: Any) -> Array:
    """The low 16 bits, signed."""
    return np.asarray((np.asarray(x, I64) + 2**15 & 0xFFFF) - 2**15)


def to_int32(x: Any) -> Array:
    """C's float -> int32 on x86: out of range, or not a number, is the least integer. int64 carriers."""
    x = np.asarray(x, np.float64)
    good = (x > -2147483649.0) & (x < 2147483648.0)
    return np.where(good, np.where(good, x, 0.0), -2.0**31).astype(I64)


def multiplier(real: float) -> tuple[int, int]:
    """A real number as m * 2 ** (s - 31), m of 31 bits (`QuantizeMultiplier`)."""
    if real == 0:
        return 0, 0
    fraction, exponent = math.frexp(real)
    m = int(away(np.float64(fraction * 2.0**31)))
    if m == 1 << 31:
        m, exponent = m >> 1, exponent + 1
    return (0, 0) if exponent < -31 else (m, exponent)


def multipliers(reals: Sequence[float] | Array) -> tuple[Array, Array]:
    """`multiplier` of each, as arrays of m and of s."""
    fraction, exponent = np.frexp(np.asarray(reals, np.float64))
    m, s = away(fraction * 2.0**31).astype(I64), exponent.astype(I64)
    over = m == 1 << 31
    m, s = np.where(over, m >> 1, m), s + over
    tiny = (s < -31) | (m == 0)
    return np.where(tiny, 0, m), np.where(tiny, 0, s)


def high_mul(a: Any, b: Any, width: int = 32) -> Array:
    """round(a * b / 2 ** (width - 1)), ties up; least times least saturates (`SaturatingRoundingDoublingHighMul`)."""
    a, b = np.asarray(a, I64), np.asarray(b, I64)
    least = -(1 << (width - 1))
    found = (a * b + (1 << (width - 2))) >> (width - 1)
    return np.where((a == least) & (b == least), -least - 1, found)


def shift_right(x: Any, n: Any) -> Array:
    """x / 2 ** n, ties away from zero (`RoundingDivideByPOT`)."""
    x, n = np.asarray(x, I64), np.asarray(n, I64)
    half = np.where(n > 0, I64(1) << np.maximum(n - 1, 0), 0)
    return np.asarray((x + half - ((x < 0) & (n > 0))) >> n)


def scale32(x: Any, m: Any, s: Any) -> Array:
    """x * m * 2 ** (s - 31) for an int32 x, rounded twice (`MultiplyByQuantizedMultiplier`)."""
    s = np.asarray(s, I64)
    y = high_mul(wrap32(np.asarray(x, I64) << (np.maximum(s, 0) & 31)), m)
    return shift_right(y, np.maximum(-s, 0))


def scale64(x: Any, m: Any, s: Any) -> Array:
    """The same for an int64 x: the multiplier is cut to 15 bits, one rounding, ties up."""
    m, s = np.asarray(m, I64), np.asarray(s, I64)
    cut = np.where(m < 0x7FFF0000, (m + (1 << 15)) >> 16, 0x7FFF)
    total = 15 - s
    return wrap32((np.asarray(x, I64) * cut + (I64(1) << (total - 1))) >> total)


def limits(t: Tensor) -> tuple[int, int]:
    """The least and the greatest integer of a tensor's type."""
    info = np.iinfo(t.type.dtype)
    return int(info.min), int(info.max)


def activation_range(act: int, out: Tensor) -> tuple[int, int]:
    """The bounds a fused activation (NNAPI's codes) sets on a quantised output: limits on its own grid.

    TFLite refuses a grid on which they are no int32; here such a bound is the nearest one.
    """
    low, high = limits(out)
    scale, zero = grid(out)

    def at(value: float) -> int:
        return zero + int(np.clip(float(away(f32(f32(value) / scale))), -2.0**31, 2.0**31 - 1))
    if act == 1:
        return max(low, at(0)), high
    if act == 2:
        return max(low, at(-1)), min(high, at(1))
    if act == 3:
        return max(low, at(0)), min(high, at(6))
    return low, high


def grid(t: Tensor) -> tuple[np.float32, int]:
    """Scale and zero point of a tensor quantised as a whole; (0, 0) where it is not, as TFLite reads it."""
    return (f32(t.quant.scale), t.quant.zero) if isinstance(t.quant, Quant) else (f32(0), 0)


def scales(t: Tensor, count: int) -> Array:
    """A scale per channel, [channels] as FLOAT32: the tensor's own, or its single one `count` times."""
    if isinstance(t.quant, ChannelQuant):
        return np.array(t.quant.scales, f32)
    return np.full(count, grid(t)[0])
