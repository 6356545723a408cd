"""Functions in fixed point: exponential, logistic, tanh, reciprocal, inverse square root, logarithm.

Source: gemmlowp's `fixedpoint.h` and LiteRT's `internal/common.h`, bit by bit. `Fixed(width)` works on raw values
of 32 or 16 bits, carried as int64. An argument `k` is the number of integer bits of the raw value: it stands for
value * 2^(k + 1 - width).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..frozen import frozen
from ..types import Array
from .fixedpoint import high_mul, shift_right, wrap16, wrap32

I64 = np.int64
#: (e, exp(-2^e) * 2^31): the factors of exp(-x) for each bit of x's quarters.
FACTORS = ((-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535), (3, 720401), (4, 242))
EXP_EIGHTH, THIRD = 1895147668, 715827883
NEWTON_A, NEWTON_B = 1515870810, -1010580540            # 48/17 and -32/17, with two integer bits
SQRT_HALF, SQRT_SQRT_HALF, LOG_2 = 1518500250, 1805811301, 1488522236
LOG_NUM, LOG_DEN, LOG_I, LOG_F = 117049297, 127690142, 1057819769, 638450708


@frozen
class Fixed:
    """Fixed-point numbers of one width: 32 or 16."""

    width: int

    @property
    def most(self) -> int:
        """The greatest raw value; it stands for 1 with no integer bits."""
        return (1 << (self.width - 1)) - 1

    def wrap(self, x: Any) -> Array:
        """The low bits, signed."""
        return wrap32(x) if self.width == 32 else wrap16(x)

    def const(self, value: int) -> int:
        """A constant given in 32 bits."""
        return int(shift_right(value, 32 - self.width))

    def mul(self, a: Any, b: Any) -> Array:
        """The product of two raw values."""
        return high_mul(a, b, self.width)

    def shift(self, x: Any, by: int) -> Array:
        """x * 2^by, saturating to the left, rounding ties away from zero to the right."""
        if by <= 0:
            return shift_right(x, -by)
        top = (1 << (self.width - 1 - by)) - 1
        x = np.asarray(x, I64)
        return np.where(x > top, self.most, np.where(x < -top, -self.most - 1, self.wrap(x << by)))

    def exp(self, a: Any, k: int) -> Array:
        """exp(a) of a <= 0 with k integer bits; the result has none."""
        a = np.asarray(a, I64)
        bits = self.width - 1 - k
        quarter = 1 << (bits - 2)
        rest = (a & (quarter - 1)) - quarter
        x = self.wrap(self.shift(rest, k) + (1 << (self.width - 4)))
        x2 = self.mul(x, x)
        x3, x4 = self.mul(x2, x), self.mul(x2, x2)
        t = shift_right(self.wrap(self.mul(self.wrap(shift_right(x4, 2) + x3), self.const(THIRD)) + x2), 1)
        start = self.const(EXP_EIGHTH)
        y = start + self.mul(start, self.wrap(x + t))
        y = np.clip(y, -self.most - 1, self.most) if self.width == 16 else wrap32(y)
        whole = self.wrap(rest - a)
        for e, factor in FACTORS:
            if k > e:
                y = np.where(whole & (1 << (bits + e)), self.mul(y, self.const(factor)), y)
        if k > 5:
            least = -(1 << (36 - k))
            y = np.where(a < (least if self.width == 32 else self.const(least)), 0, y)
        return np.where(a == 0, self.most, y)

    def _newton(self, a: Any) -> tuple[Array, int]:
        """2 / (1 + a) of a in [0, 1], with two integer bits, and 1 in those."""
        total = np.asarray(a, I64) + self.most
        half = np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))
        one = 1 << (self.width - 3)
        x = self.wrap(self.const(NEWTON_A) + self.mul(half, self.const(NEWTON_B)))
        for _ in range(3):
            x = self.wrap(x + self.shift(self.mul(x, self.wrap(one - self.mul(half, x))), 2))
        return x, one

    def one_over_one_plus(self, a: Any) -> Array:
        """1 / (1 + a) of a in [0, 1]."""
        return self.shift(self._newton(a)[0], 1)

    def logistic(self, a: Any, k: int) -> Array:
        """1 / (1 + exp(-a))."""
        a = np.asarray(a, I64)
        size = np.where(a > 0, a, self.wrap(-a))
        y = self.one_over_one_plus(self.exp(self.wrap(-size), k))
        return np.where(a == 0, self.const(1 << 30), np.where(a > 0, y, self.wrap(self.most - y)))

    def tanh(self, a: Any, k: int) -> Array:
        """tanh(a)."""
        a = np.asarray(a, I64)
        x, one = self._newton(self.exp(np.where(a < 0, a, self.wrap(-a)), k + 1))
        y = self.shift(self.wrap(x - one), 2)
        return np.where(a == 0, 0, np.where(a < 0, self.wrap(-y), y))


F32, F16 = Fixed(32), Fixed(16)


def leading_zeros(x: Any) -> Array:
    """Zero bits above the highest one of a non-negative int32."""
    return 32 - np.frexp(np.asarray(x, np.float64))[1].astype(I64)


def reciprocal(x: Any, k: int) -> tuple[Array, Array]:
    """1 / x of x >= 1 with k integer bits: a raw value without integer bits, and the bits to shift it right by."""
    x = np.asarray(x, I64)
    zeros = leading_zeros(x)
    return F32.one_over_one_plus(wrap32((x << zeros) - (1 << 31))), k - zeros


def inv_sqrt(v: Any) -> tuple[Array, Array]:
    """1 / sqrt(v) of integers v as a multiplier (m, s): m * 2^(s - 31) (`GetInvSqrtQuantizedMultiplierExp`)."""
    given = np.asarray(v, I64)
    v = np.maximum(given, 2)
    steps = (np.maximum(32 - leading_zeros(v) - 29, 0) + 1) // 2
    shift, v = 11 + steps, v >> (2 * steps)
    more = (leading_zeros(v) - 1) // 2 - 1
    shift, v = shift - more, v << (2 * more)
    half, x = shift_right(v >> 1, 1), np.full(v.shape, 1 << 28, I64)
    for _ in range(5):
        cube = F32.shift(F32.mul(F32.mul(x, x), x), 6)
        x = F32.shift(wrap32(F32.mul((1 << 28) + (1 << 27), x) - F32.mul(half, cube)), 3)
    m = F32.mul(x, SQRT_HALF) << np.maximum(-shift, 0)
    small = given <= 1
    return np.where(small, (1 << 31) - 1, m), np.where(small, 0, -np.maximum(shift, 0))


def log_ge1(v: Any, k_in: int, k_out: int) -> Array:
    """The natural logarithm of v >= 1, from k_in integer bits to k_out (`log_x_for_x_greater_than_or_equal_to_1`)."""
    v, k = np.asarray(v, I64), k_out + 1
    quarter = int(F32.shift(1 << 29, -k))

    def exponent(zeros: Array, add: int) -> Array:
        return np.asarray(np.clip(F32.shift(k_in - zeros, 31 - k) + add, -(1 << 31), (1 << 31) - 1))
    zeros = leading_zeros(v)
    zeros_b = leading_zeros(F32.mul(v, SQRT_HALF)) - 1
    r = np.minimum(F32.shift(F32.mul(_left(v, zeros - 1), SQRT_HALF), 1), _left(v, zeros_b))
    z = np.maximum(exponent(zeros, quarter), exponent(zeros_b, -quarter))
    total = r + SQRT_SQRT_HALF
    p = np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))
    q = wrap32(2 * wrap32(r - SQRT_SQRT_HALF))
    square = F32.mul(q, q)
    num = wrap32(F32.mul(q, r) + F32.mul(F32.mul(q, square), LOG_NUM))
    den = wrap32(F32.mul(p, wrap32(LOG_I + q + F32.mul(LOG_DEN, square))) + F32.mul(LOG_F, q))
    found = F32.mul(z, LOG_2) + F32.mul(shift_right(num, k), F32.one_over_one_plus(den))
    return F32.shift(wrap32(found), 1)


def _left(x: Array, by: Array) -> Array:
    """x * 2^by, saturating, by an amount per element; as it is where that is not positive."""
    wide = x << np.maximum(by, 0)
    return np.asarray(np.clip(wide, -(1 << 31), (1 << 31) - 1))
