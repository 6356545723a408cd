"""Quantised arithmetic, element by element, as LiteRT's reference kernels do it.

Each function here is given the tensors and returns a function from raw integers (any shapes that broadcast) to
raw integers of the output's type.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Array, Tensor
from ..fixedmath import inv_sqrt, leading_zeros, reciprocal
from ..fixedpoint import (
    activation_range, away, f32, grid, high_mul, limits, multiplier, scale32, shift_right, to_int32, wrap16, wrap32)
from ..requantize import Requantizer
from .tables import patterns, power_of_two

I64 = np.int64
One = Callable[[Array], Array]
Two = Callable[[Array, Array], Array]
Pair = tuple[int, int]


def ratio(*scales: Any, over: Any) -> Pair:
    """The multiplier of a product of scales over another, every step rounded to float32."""
    real = scales[0]
    for s in scales[1:]:
        real = f32(real * s)
    return multiplier(float(f32(real / over)))


def centred(t: Tensor) -> One:
    """Raw values less the zero point, as int64."""
    zero = grid(t)[1]
    return lambda q: np.asarray(q, I64) - zero


def clamped(out: Tensor, low: int, high: int) -> One:
    """Steps of the output's scale as raw values: the zero point added, then clamped."""
    zero, dtype = grid(out)[1], out.type.dtype
    return lambda v: np.asarray(np.clip(v + zero, low, high), dtype)


def scaled(out: Tensor, pair: Pair, low: int, high: int, bound: int) -> One:
    """Integers no larger than `bound`, times a multiplier, as raw values of the output."""
    made = Requantizer(np.array(pair[:1]), np.array(pair[1:]), grid(out)[1], low, high, bound)

    def finish(v: Array) -> Array:
        found = np.empty(v.shape, out.type.dtype)
        made.apply(np.ascontiguousarray(v), found)
        return found
    return finish


def brought(t: Tensor, left: int, pair: Pair) -> One:
    """Raw values with `left` more bits, times a multiplier: a table where they are of one byte or two."""
    values = scale32(centred(t)(patterns(t)) << left, *pair)
    return lambda q: values[q.view(f"u{q.itemsize}")]


def add(x: Tensor, y: Tensor, out: Tensor, act: int, sign: int = 1, shifted: bool = False) -> Two:
    """x + y, or x - y (`AddElementwise`): both brought to twice the larger scale with 20 more bits, 15 for int16.

    `shifted`: by shifts alone where int16 scales allow it.
    """
    (sx, _), (sy, _), (so, _) = map(grid, (x, y, out))
    wide = x.type.dtype.itemsize == 2
    shifts = powers(x, y, out) if wide and shifted else None
    if shifts:
        low, high = activation_range(act, out)

        def by_shifts(a: Array, b: Array) -> Array:
            v = shift_right(a, shifts[0]) + sign * shift_right(b, shifts[1])
            return np.asarray(np.clip(np.clip(v, -32768, 32767), low, high), out.type.dtype)
        return by_shifts
    left = 15 if wide else 20
    twice = 2.0 * max(float(sx), float(sy))
    mx, my = multiplier(float(sx) / twice), multiplier(float(sy) / twice)
    mo = multiplier(twice / float(f32((1 << left) * so)))
    first, second = brought(x, left, mx), brought(y, left, my)
    finish = scaled(out, mo, *activation_range(act, out), bound=_most(x, y))
    return lambda a, b: finish(first(a) + sign * second(b))


def _most(x: Tensor, y: Tensor) -> int:
    """No sum or product here is larger; int16 values off a zero point may fill an int32."""
    off = x.type.dtype.itemsize == 2 and (grid(x)[1] or grid(y)[1])
    return 1 << (31 if off else 30)


def powers(x: Tensor, y: Tensor, out: Tensor) -> Pair | None:
    """Right shifts onto the output's grid where all int16 scales are powers of two and one input is on it."""
    a, b, o = (power_of_two(grid(t)[0]) for t in (x, y, out))
    if a is None or b is None or o is None or not (o >= a and o >= b and o in (a, b)):
        return None
    return o - a, o - b


def sub(x: Tensor, y: Tensor, out: Tensor, act: int) -> Two:
    """x - y."""
    return add(x, y, out, act, sign=-1)


def mul(x: Tensor, y: Tensor, out: Tensor, act: int) -> Two:
    """x * y (`MulElementwise`); of int16 into 8 bits TFLite ignores the scales."""
    low, high = activation_range(act, out)
    finish, first, second = clamped(out, low, high), centred(x), centred(y)
    if x.type.dtype.itemsize == 2 and out.type.dtype.itemsize == 1:
        return lambda a, b: finish(shift_right(high_mul(a, b, 16), 8))
    rescale = scaled(out, ratio(grid(x)[0], grid(y)[0], over=grid(out)[0]), low, high, _most(x, y))
    return lambda a, b: rescale(wrap32(first(a) * second(b)))


def div(x: Tensor, y: Tensor, out: Tensor, act: int) -> Two:
    """x / y by the reciprocal of y in fixed point, y's sign moved to x; of y = 0 whatever comes out."""
    (sx, _), (sy, _), (so, _) = map(grid, (x, y, out))
    left, right, finish = centred(x), centred(y), clamped(out, *activation_range(act, out))
    m, exponent = multiplier(float(f32(sx / f32(sy * so))))

    def run(a: Array, b: Array) -> Array:
        u, v = left(a), right(b)
        u, v = np.where(v < 0, -u, u), np.maximum(np.abs(v), 1)
        inverse, moved = reciprocal(v, 31)
        room = np.where(u < 0, leading_zeros(2 * np.abs(u) - (u < 0)), leading_zeros(np.abs(u)) - 1)
        unscaled = high_mul(u << room, inverse)
        return finish(shift_right(high_mul(unscaled, m), moved + room - exponent))
    return run


def squared_difference(x: Tensor, y: Tensor, out: Tensor) -> Two:
    """(x - y) ** 2 (`SquaredDifference`): as subtraction with 7 more bits."""
    (sx, _), (sy, _), (so, _) = map(grid, (x, y, out))
    twice = 2.0 * max(float(sx), float(sy))
    mx, my = multiplier(float(sx) / twice), multiplier(float(sy) / twice)
    mo = multiplier(twice * twice / float(f32((1 << 14) * so)))
    first, second, finish = centred(x), centred(y), clamped(out, *limits(out))

    def run(a: Array, b: Array) -> Array:
        d = scale32(first(a) << 7, *mx) - scale32(second(b) << 7, *my)
        return finish(scale32(wrap32(d * d), *mo))
    return run


def prelu(x: Tensor, y: Tensor, out: Tensor) -> Two:
    """x where x >= 0, else y * x."""
    sx, sy, so = (grid(t)[0] for t in (x, y, out))
    up, down = ratio(sx, over=so), ratio(sx, sy, over=so)
    first, second, finish = centred(x), centred(y), clamped(out, *limits(out))

    def run(a: Array, b: Array) -> Array:
        q = first(a)
        return finish(np.where(q >= 0, scale32(q, *up), scale32(q * second(b), *down)))
    return run


def leaky_relu(x: Tensor, out: Tensor, alpha: float) -> One:
    """x where x >= 0, else alpha * x; the multiplier is |alpha|'s, and its sign is put back afterwards."""
    sx, so = grid(x)[0], grid(out)[0]
    up, (m, s) = ratio(sx, over=so), ratio(sx, f32(alpha), over=so)
    first, finish = centred(x), clamped(out, *limits(out))

    def run(a: Array) -> Array:
        q = first(a)
        below = scale32(q, abs(m), s) * (-1 if m < 0 else 1)
        return finish(np.where(q >= 0, scale32(q, *up), below))
    return run


def relu(x: Tensor, out: Tensor, least: float, most: float | None) -> One:
    """min(max(x, least), most)."""
    (scale, zero), (low, high) = grid(out), limits(out)

    def at(value: float) -> int:
        return zero + int(to_int32(away(f32(f32(value) / scale))))
    finish = clamped(out, max(low, at(least)), high if most is None else min(high, at(most)))
    m, first = ratio(grid(x)[0], over=scale), centred(x)
    return lambda a: finish(scale32(first(a), *m))


def absolute(x: Tensor, out: Tensor) -> One:
    """|x|, scaled only where the scales differ."""
    sx, so = grid(x)[0], grid(out)[0]
    m, first, finish = ratio(sx, over=so), centred(x), clamped(out, *limits(out))
    return lambda a: finish(scale32(abs(first(a)), *m) if sx != so else abs(first(a)))


def square_root(x: Tensor, out: Tensor) -> One:
    """sqrt(x) in float32, truncated; of a negative x, which TFLite refuses, the square root of zero."""
    sx, so = grid(x)[0], grid(out)[0]
    first, finish = centred(x), clamped(out, *limits(out))

    def run(a: Array) -> Array:
        root = np.sqrt((sx * np.maximum(first(a), 0).astype(f32)).astype(f32))
        return finish(to_int32(np.trunc((root / so).astype(f32))))
    return run


def rsqrt(x: Tensor, out: Tensor) -> One:
    """1 / sqrt(x) of bytes; the largest value where x is zero or, which TFLite refuses, below."""
    sx, so = grid(x)[0], grid(out)[0]
    low, high = limits(out)
    m, s = multiplier(1.0 / float(f32(np.sqrt(sx) * so)))
    first, finish = centred(x), clamped(out, low, high)

    def run(a: Array) -> Array:
        q = first(a)
        im, shift = inv_sqrt(np.maximum(q, 1))
        root = scale32(scale32(np.ones_like(q), im, shift + 20), m, s - 20)
        return np.where(q <= 0, out.type.dtype.type(high), finish(root))
    return run


def hard_swish(x: Tensor, out: Tensor) -> One:
    """x * min(max(x + 3, 0), 6) / 6 in 16 bits, both multipliers cut to 15."""
    fine = f32(f32(1 / 128) * grid(x)[0])
    (om, oe), (rm, re) = ratio(fine, over=grid(out)[0]), ratio(fine, over=f32(f32(3) / f32(32768)))
    om, rm = _cut(om), _cut(rm)
    first, finish = centred(x), clamped(out, *limits(out))

    def narrow(v: Array) -> Array:
        return np.clip(v, -32768, 32767)

    def run(a: Array) -> Array:
        v = wrap16(first(a) << 7)
        r = high_mul(narrow(v << (re - 1)) if re > 0 else v, rm, 16)
        r = narrow(r << 1) if re > 0 else shift_right(r, -re)
        t = ((r + 32768) >> 1) * high_mul(v, om, 16)
        toward_zero = np.where(t >= 0, t >> 15, -((-t) >> 15))
        return finish(shift_right(narrow(toward_zero), max(-oe, 0)))
    return run


def _cut(m: int) -> int:
    """A multiplier of 31 bits as one of 15."""
    return 32767 if m >= (1 << 31) - 1 - (1 << 15) else (m + (1 << 15)) >> 16


def comparable(x: Tensor) -> One:
    """Raw values as TFLite compares them: with 8 more bits, times the scale."""
    m, first = multiplier(float(grid(x)[0])), centred(x)
    return lambda a: scale32(first(a) << 8, *m)


def rescale(x: Tensor, out: Tensor) -> One:
    """x on the output's grid (QUANTIZE of integers): one multiplier, the ratio of the scales in float64."""
    sx, so = grid(x)[0], grid(out)[0]
    m, first, finish = multiplier(float(sx) / float(so)), centred(x), clamped(out, *limits(out))
    return lambda a: finish(scale32(wrap32(first(a)), *m))


def moved(x: Tensor, out: Tensor) -> One:
    """x on the output's grid as NNAPI's MAXIMUM, MINIMUM and SELECT bring it there; raw values where it is that."""
    if x.quant == out.quant or not (grid(x)[0] and grid(out)[0]):
        return np.asarray
    (sx, zx), (so, zo), (low, high) = grid(x), grid(out), limits(out)

    def run(a: Array) -> Array:
        real = (np.asarray(a, np.float64) - zx) * float(sx) / float(so) + zo
        return np.asarray(np.clip(away(real), low, high), out.type.dtype)
    return run
