"""Functions of elements, running sums, bits, random numbers: what NNAPI has no operation for."""
from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...ops import host_math as h
from ...types import Array, Tensor
from ..fixedpoint import f32
from ..kernel import Run, Site, kernel
from ..philox import fractions, normal, words
from ..special import erfc
from .elements import called, in_pieces, unary
from .elementwise import tabulated


@kernel(h.SIGN, inplace=("x",))
def SIGN(site: Site, x: Tensor) -> Run:
    def step(out: Array, x: Array) -> None:
        np.subtract((x > 0).view(np.int8), (x < 0).view(np.int8), out=out, casting="unsafe")
    return unary(site, x, step, ints=True)


@kernel(h.GELU)
def GELU(site: Site, x: Tensor, approximate: bool) -> Run:
    """In float32 as TFLite has it, but for erfc itself."""
    def by_tanh(out: Array, x: Array) -> None:
        kind = x.dtype.type
        np.multiply(kind(0.044715) * x * x, x, out=out)
        np.add(out, x, out=out)
        np.tanh(np.multiply(out, kind(math.sqrt(2 / math.pi)), out=out), out=out)
        np.multiply(kind(0.5) * x, np.add(out, kind(1), out=out), out=out)

    def by_erfc(out: Array, x: Array) -> None:
        np.multiply(x.dtype.type(0.5) * x, erfc(x * x.dtype.type(-math.sqrt(0.5))), out=out, casting="unsafe")
    step = by_tanh if approximate else by_erfc
    return unary(site, x, step, exact=partial(tabulated, function=called(step)))


@kernel(h.BUCKETIZE)
def BUCKETIZE(site: Site, x: Tensor, boundaries: Tensor) -> Run:
    """Integers are compared as float32; what is not a number is above every boundary."""
    kind = np.float64 if x.type.dtype == np.float64 else f32

    def run(out: Array, x: Array, boundaries: Array) -> None:
        np.copyto(out, np.searchsorted(boundaries, x.astype(kind), side="right"), casting="unsafe")
    return run


@kernel(h.CUMSUM)
def CUMSUM(site: Site, x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Run:
    at = axis % x.rank

    def run(out: Array, x: Array) -> None:
        x, to = (np.moveaxis(v, at, 0)[::-1 if reverse else 1] for v in (x, out))
        if exclusive:
            to[:1], x, to = 0, x[:-1], to[1:]
        np.add.accumulate(x, axis=0, out=to)
    return run


@kernel(h.BITCAST)
def BITCAST(site: Site, x: Tensor, to: int) -> Run:
    def run(out: Array, x: Array) -> None:
        np.copyto(out.reshape(-1).view(np.uint8), np.ascontiguousarray(x).reshape(-1).view(np.uint8))
    return run


@kernel(h.BITWISE_XOR, inplace=("x", "y"))
def BITWISE_XOR(site: Site, x: Tensor, y: Tensor) -> Run:
    return in_pieces(site, (x, y), lambda out, x, y: np.bitwise_xor(x, y, out=out), passes=1)


@kernel(h.RIGHT_SHIFT, inplace=("x", "y"))
def RIGHT_SHIFT(site: Site, x: Tensor, y: Tensor) -> Run:
    most = 8 * x.type.dtype.itemsize - 1
    return in_pieces(site, (x, y), lambda out, x, y: np.right_shift(x, np.clip(y, 0, most), out=out))


@kernel(h.REAL)
def REAL(site: Site, x: Tensor) -> Run:
    return lambda out, x: np.copyto(out, x.real)


@kernel(h.IMAG)
def IMAG(site: Site, x: Tensor) -> Run:
    return lambda out, x: np.copyto(out, x.imag)


@kernel(h.FAKE_QUANT, inplace=("x",))
def FAKE_QUANT(site: Site, x: Tensor, least: float, most: float, bits: int, narrow: bool) -> Run:
    """(x - low) * (1 / step), rounded half away from zero."""
    low, high, scale, inverse = map(f32, h.fake_grid(least, most, bits, narrow))

    def step(out: Array, x: Array) -> None:
        np.clip(x, low, high, out=out)
        np.multiply(np.subtract(out, low, out=out), inverse, out=out)
        np.floor(np.add(out, f32(h.BELOW_HALF), out=out), out=out)
        np.add(np.multiply(out, scale, out=out), low, out=out)
    return unary(site, x, step)


@kernel(h.RANDOM_UNIFORM)
def RANDOM_UNIFORM(site: Site, shape: Tensor, seed: int, seed2: int) -> Run:
    return lambda out, shape: np.copyto(out, fractions(words(out.size, seed, seed2)).reshape(out.shape))


@kernel(h.RANDOM_STANDARD_NORMAL)
def RANDOM_STANDARD_NORMAL(site: Site, shape: Tensor, seed: int, seed2: int) -> Run:
    def run(out: Array, shape: Array) -> None:
        np.copyto(out, normal(words(out.size + out.size % 2, seed, seed2))[:out.size].reshape(out.shape))
    return run
