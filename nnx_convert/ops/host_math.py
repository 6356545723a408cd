"""What NNAPI has no operation for: functions of elements, running sums, bits, random numbers."""
from __future__ import annotations

from typing import Annotated

import numpy as np

from ..kinds import AXIS, BROADCASTS, Bool, Float, Int, Ints, Ints1, T, To, rank, takes
from ..schema import Rule, composite, host
from ..types import F32, I32, Tensor
from .elementwise import both
from .host import ALL, AnyT, ToAny

SAME_BITS = Rule("the last axis of x is as long as the elements are wider", lambda x, to:
                 x.type.dtype.itemsize >= to.dtype.itemsize or x.rank > 0 and
                 x.shape[-1] * x.type.dtype.itemsize == to.dtype.itemsize)

#: floor(x + it) rounds a float32 that is not negative to the nearest integer, halves up; with 0.5 itself the sum of the
#: last float below one half is rounded to 1.
BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))


# Composites.
@composite(ALL)
def SIGN(x: T) -> T:
    """-1, 0 or 1 as x is below, at or above 0; 0 for what is not a number."""
    return x.free(x.shape)


@composite(ALL)
def GELU(x: T, approximate: Bool) -> T:
    """x / 2 * erfc(-x / sqrt(2)), or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))."""
    return x.free(x.shape)


@composite(ALL)
def BUCKETIZE(x: T, boundaries: Annotated[Tensor, takes(F32), rank(1)]) -> Ints:
    """How many of the ascending boundaries are not above x."""
    return Tensor(I32, x.shape)


@composite(ALL, AXIS)
def CUMSUM(x: T, axis: Int, exclusive: Bool, reverse: Bool) -> T:
    """Running sums along axis, without the element itself if exclusive, from the end if reverse."""
    return x


# Host operations.
@host(60030, ALL, SAME_BITS)
def BITCAST(x: T, to: ToAny) -> To:
    """The bytes of x read as another type; wider elements gain a last axis, narrower ones lose it."""
    wide, narrow = x.type.dtype.itemsize, to.dtype.itemsize
    shape = x.shape if wide == narrow else (*x.shape, wide // narrow) if wide > narrow else x.shape[:-1] or (1,)
    return Tensor(to, shape)


@host(60031, ALL, BROADCASTS)
def BITWISE_XOR(x: T, y: T) -> T:
    """x ^ y, bit by bit."""
    return both(x, y)


@host(60032, ALL, BROADCASTS)
def RIGHT_SHIFT(x: T, y: T) -> T:
    """x >> y, the sign staying; y is brought into 0 to one less than the width."""
    return both(x, y)


@host(60033, ALL)
def REAL(x: T) -> AnyT:
    """The real parts of complex numbers."""
    return Tensor(F32, x.shape)


@host(60034, ALL)
def IMAG(x: T) -> AnyT:
    """The imaginary parts of complex numbers."""
    return Tensor(F32, x.shape)


@host(60035, ALL)
def FAKE_QUANT(x: T, least: Float, most: Float, bits: Int, narrow: Bool) -> T:
    """x at the nearest of 2 ** bits (less one if narrow) even steps from least to most, moved so that one is 0."""
    return x


def fake_grid(least: float, most: float, bits: int, narrow: bool) -> tuple[float, float, float, float]:
    """FAKE_QUANT's range, moved to where a step is 0, the step and its inverse, in TFLite's float32 arithmetic."""
    f32, first, last = np.float32, int(narrow), (1 << bits) - 1
    scale = (f32(most) - f32(least)) / f32(last - first)
    zero = np.clip(np.floor(f32(first) - f32(least) / scale + f32(BELOW_HALF)), f32(first), f32(last))
    return float((f32(first) - zero) * scale), float((f32(last) - zero) * scale), float(scale), float(f32(1) / scale)


@host(60036, ALL, pure=False)
def RANDOM_UNIFORM(shape: Ints1, seed: Int, seed2: Int) -> AnyT:
    """Numbers in [0, 1) by Philox 4x32 of two seeds; seeds of 0, 0 draw anew each time."""
    return Tensor(F32, shape.ints())


@host(60037, ALL, pure=False)
def RANDOM_STANDARD_NORMAL(shape: Ints1, seed: Int, seed2: Int) -> AnyT:
    """Normally distributed numbers by Philox 4x32 of two seeds; seeds of 0, 0 draw anew each time."""
    return Tensor(F32, shape.ints())
