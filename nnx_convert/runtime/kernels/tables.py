"""Lookup tables: a function of one quantised value has 256 or 65536 answers, a function of two bytes 65536.

A table is in the order of the bit patterns read as unsigned numbers. TFLite's own tables (`LUTPopulate`) are
made in float32; their functions are computed in float64 and rounded, which gives the shipped tables on every
platform.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Array, Q8, Q8S, Q16A, Q16S, QS, I16, Quant, Tensor
from ..cuts import CHUNK, cuts
from ..fixedpoint import away, f32, grid, limits, wrap16, wrap32
from ..kernel import Run, Site

I64 = np.int64
#: A function of real values, float32 in and out.
Real = Callable[[Array], Array]
#: More steps than any grid here has.
FAR = f32(1 << 20)
INTEGERS = frozenset((Q8, Q8S, QS, Q16A, Q16S, I16))


def on_grid(t: Tensor) -> bool:
    """Whether the integers of a tensor stand for real values, all on one grid."""
    return t.type in INTEGERS and isinstance(t.quant, Quant)


def patterns(t: Tensor) -> Array:
    """Every value of an 8- or 16-bit type, in the order of a table."""
    dtype = t.type.dtype
    return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)


def reals(t: Tensor, q: Array) -> Array:
    """Raw values as float32, scale * (q - zero)."""
    scale, zero = grid(t)
    return np.asarray(scale * (q.astype(I64) - zero).astype(f32), f32)


def raw(t: Tensor, x: Array) -> Array:
    """Float32 values on a grid: round(x * (1 / scale)) half away from zero, + zero, saturated; as TFLite's tables."""
    scale, zero = grid(t)
    low, high = limits(t)
    steps = np.clip((x * (f32(1) / scale)).astype(f32), -FAR, FAR)
    return np.asarray(np.clip(np.nan_to_num(away(steps) + f32(zero), nan=low), low, high), t.type.dtype)


def by_real(x: Tensor, out: Tensor, function: Real) -> Array:
    """The table of a real function."""
    return raw(out, function(reals(x, patterns(x))))


def interpolated(x: Tensor, out: Tensor, function: Real, kind: Any = np.float32) -> Array:
    """TFLite's int16 tables: 513 points, linear between them, each point lowered by half the error midway."""
    points = sampled(x, out, function, kind)
    return between(points, patterns(x)).astype(np.int16)


def sampled(x: Tensor, out: Tensor, function: Real, kind: Any = np.float32) -> Array:
    """The 513 points of `interpolated`, computed in `kind`."""
    (si, zi), (so, zo) = ((kind(t.scale), grid(t)[1]) for t in (x, out))
    first, last = kind(si * kind(-32768 - zi)), kind(si * kind(32767 - zi))
    step = kind(kind(last - first) / kind(512))
    inverse = kind(kind(65536) / kind(kind(so * kind(32767 - zo)) - kind(so * kind(-32768 - zo))))
    at = np.arange(513, dtype=kind)
    here = function((first + at[:512] * step).astype(kind)).astype(kind)
    there = function((first + at[1:] * step).astype(kind)).astype(kind)
    middle = function(((first + at[:512] * step).astype(kind) + kind(step / 2)).astype(kind)).astype(kind)
    sample = away(here * inverse)
    guess = away(((there * inverse).astype(kind) + sample) / kind(2))
    bias = away((guess - away(middle * inverse)) / kind(2))
    end = away(function(np.array([last], kind)).astype(kind) * inverse)
    return np.asarray(np.clip(np.concatenate([sample - bias, end]), -32768, 32767), I64)


def between(points: Array, x: Array) -> Array:
    """Linear interpolation in 513 points at int16 values, as int64."""
    wide = x.astype(I64)
    i = 256 + (wide >> 7)
    slope = wrap16(points[i + 1] - points[i])
    return wrap16(points[i] + ((slope * (wide & 127) + 64) >> 7))


def _sigmoid_points() -> Array:
    """65536 * logistic(i / 24), each lowered by half the error of linear interpolation midway."""
    def g(z: Array) -> Array:
        return 65536 / (1 + np.exp(-z / 24))
    i = np.arange(256.0)
    points = away(g(i) - ((g(i) + g(i + 1)) / 2 - g(i + 0.5)) / 2).astype(I64)
    points[255] = 65535
    return np.asarray(points)


SIGMOID = _sigmoid_points()


def power_of_two(scale: Any) -> int | None:
    """The exponent of a scale that TFLite takes for a power of two (`CheckedLog2`)."""
    log = f32(f32(np.log(np.float64(f32(scale)))) * f32(f32(1) / f32(np.log(2.0))))
    whole = away(log)
    return int(whole) if abs(float(f32(log - whole))) < 1e-3 else None


def sigmoid16(x: Tensor, tanh: bool) -> Array:
    """The table of an int16 LOGISTIC or TANH, whose output has scale 1/32768."""
    exponent = power_of_two(grid(x)[0])
    shift, m = 0, 0.0
    if exponent is not None and 0 <= 12 + exponent <= int(tanh):
        m = 3 << (12 + exponent)
    else:
        m = float(grid(x)[0]) * 12288
        while m <= 32767 / 2 and shift <= 30:
            shift, m = shift + 1, m * 2
    v = wrap32(patterns(x).astype(I64) * int(m) + (1 << shift >> 1)) >> shift
    size, bits = np.abs(v), 8 if tanh else 9
    i = np.minimum(size >> bits, 254)
    t = (SIGMOID[i] << bits) + (size & ((1 << bits) - 1)) * (SIGMOID[i + 1] - SIGMOID[i])
    t = np.where(size >> bits >= 255, 0xFFFF << 8 if tanh else 0x7FFF << 10, t)
    if tanh:
        return wrap16(np.where(v >= 0, t - (1 << 23) + 128, -t + (1 << 23) + 127) >> 8).astype(np.int16)
    return wrap16(np.where(v >= 0, t + 512, (1 << 25) - t + 511) >> 10).astype(np.int16)


def plain(x: Array) -> Array:
    """Integers of 8 or 16 bits, or truth values, as flat unsigned numbers: a table's indices."""
    return np.ascontiguousarray(x).reshape(-1).view(f"u{x.itemsize}")


def looked_up(table: Array) -> Run:
    """`run(out, x)` that maps each element of x through a table of its 256 or 65536 values."""
    unsigned = table.view(f"u{table.itemsize}") if table.dtype.kind in "iub" else table
    if table.size == 256 and unsigned.dtype == np.uint8:
        return _translated(table, unsigned.tobytes())

    def run(out: Array, x: Array) -> None:
        at, to = plain(x), out.reshape(-1).view(unsigned.dtype)
        for part, _ in cuts(to.size):
            np.take(unsigned, at[part], out=to[part], mode="clip")
    return run


def _translated(table: Array, mapping: bytes) -> Run:
    """Bytes to bytes; a table that only clamps needs no looking up."""
    signed = table.astype(I64)
    same = np.arange(256, dtype=np.uint8).view(table.dtype)
    low, high = table.min(), table.max()
    if table.dtype.kind in "iu" and (np.clip(same, low, high).astype(I64) == signed).all():
        def clamp(out: Array, x: Array) -> None:
            np.clip(x.view(table.dtype), low, high, out=out)
        return clamp

    def run(out: Array, x: Array) -> None:
        at, to = plain(x), out.reshape(-1).view(np.uint8)
        for part, _ in cuts(to.size, step=1 << 18):
            to[part] = np.frombuffer(at[part].tobytes().translate(mapping), np.uint8)
    return run


def paired(site: Site, x: Tensor, y: Tensor, table: Array) -> Run:
    """`run(out, x, y, scratch)` through a table of 256 x 256 answers."""
    flat = np.ascontiguousarray(table).reshape(-1)
    flat = flat.view(f"u{flat.itemsize}")
    if x.size == y.size == site.out.size:
        site.scratch((min(x.size, CHUNK),), np.uint16)

        def run(out: Array, x: Array, y: Array, index: Array) -> None:
            a, b, to = plain(x), plain(y), out.reshape(-1).view(flat.dtype)
            for part, _ in cuts(to.size):
                at = index[:part.stop - part.start]
                _joined(a[part], b[part], at)
                np.take(flat, at, out=to[part], mode="clip")
        return run
    site.scratch(site.out.shape, np.uint16)

    def spread(out: Array, x: Array, y: Array, index: Array) -> None:
        _joined(x.view(np.uint8), y.view(np.uint8), index)
        looked(out, index)
    looked = looked_up(flat)
    return spread


def _joined(high: Array, low: Array, out: Array) -> None:
    """Two bytes as one number of 16 bits."""
    np.left_shift(high, 8, out=out, dtype=np.uint16)
    np.bitwise_or(out, low, out=out)


def exactly(function: Callable[[Array], Any]) -> Real:
    """A float64 function as one of float32 values, rounded once."""
    def rounded(x: Array) -> Array:
        return np.asarray(function(x.astype(np.float64)), f32)
    return rounded
