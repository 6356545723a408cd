"""TFLite's integer arithmetic one Python integer at a time: what the whole-array forms are tested against."""
from __future__ import annotations

import math
from fractions import Fraction


def clamp(v: int, low: int, high: int) -> int:
    """v within bounds."""
    return min(max(v, low), high)


def wrap(v: int, bits: int = 32) -> int:
    """The low bits, signed."""
    half = 1 << (bits - 1)
    return (v + half) % (1 << bits) - half


def away(v: Fraction | float) -> int:
    """The nearest integer, halves away from zero."""
    whole = math.floor(abs(v) + Fraction(1, 2))
    return whole if v >= 0 else -whole


def high_mul(a: int, b: int, bits: int = 32) -> int:
    """round(a * b / 2^(bits - 1)), ties up, saturated."""
    return min((a * b + (1 << (bits - 2))) >> (bits - 1), (1 << (bits - 1)) - 1)


def shift_right(v: int, n: int) -> int:
    """v / 2^n, ties away from zero."""
    return away(Fraction(v, 1 << n))


def scale32(v: int, m: int, s: int) -> int:
    """`MultiplyByQuantizedMultiplier` of an int32."""
    return shift_right(high_mul(wrap(v << max(s, 0)), m), max(-s, 0))


def scale64(v: int, m: int, s: int) -> int:
    """`MultiplyByQuantizedMultiplier` of an int64."""
    cut = (m + (1 << 15)) >> 16 if m < 0x7FFF0000 else 0x7FFF
    return wrap((v * cut + (1 << (14 - s))) >> (15 - s))


def multiplier(real: float) -> tuple[int, int]:
    """`QuantizeMultiplier`."""
    if real == 0:
        return 0, 0
    fraction, exponent = math.frexp(real)
    m = away(Fraction(fraction) * (1 << 31))
    if m == 1 << 31:
        m, exponent = m // 2, exponent + 1
    return (0, 0) if exponent < -31 else (m, exponent)
