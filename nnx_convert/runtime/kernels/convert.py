"""Between types: casts and quantisation."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import convert as c
from ...ops.host import host_twin
from ...types import Array, ChannelQuant, Tensor
from ..cuts import cuts
from ..fixedpoint import away, f32, grid, limits, to_int32, wrap32
from ..kernel import Run, Site, kernel
from .elements import PIECE, in_pieces

I64 = np.int64
#: From here on no int32 holds a float32.
BEYOND = f32(2.0**31)


@kernel(c.CAST)
def CAST(site: Site, x: Tensor, to: int) -> Run:
    """NNAPI's: integers too large for a byte are clamped."""
    dtype = site.out.type.dtype
    clamp = dtype.itemsize == 1 and dtype.kind in "iu" and x.type.dtype.kind in "iu"

    def run(out: Array, x: Array) -> None:
        if clamp:
            info = np.iinfo(dtype)
            np.copyto(out, np.clip(x, *_within(x.dtype, info)), casting="unsafe")
        else:
            converted(out, x)
    return run


@kernel(host_twin(c.CAST))
def HOST_CAST(site: Site, x: Tensor, to: int) -> Run:
    """TFLite's: integers wrap."""
    return converted


def _within(dtype: Any, info: Any) -> tuple[int, int]:
    """The bounds of a type as far as another one has them."""
    own = np.iinfo(dtype)
    return max(int(info.min), int(own.min)), min(int(info.max), int(own.max))


def converted(out: Array, x: Array) -> None:
    """x as out's type: floats are truncated and saturate, not a number is the largest integer; integers wrap."""
    if out.dtype.kind == "b":
        np.not_equal(x, 0, out=out)
    elif x.dtype.kind == "f" and out.dtype.kind in "iu":
        info = np.iinfo(out.dtype)
        wide = np.trunc(x.astype(np.float64))
        high = wide >= float(info.max)
        inside = np.where(high | np.isnan(wide), 0, np.maximum(wide, float(info.min)))
        np.copyto(out, np.where(high | np.isnan(wide), info.max, inside.astype(I64 if info.min else np.uint64)),
                  casting="unsafe")
    else:
        np.copyto(out, x.real if out.dtype.kind != "c" else x, casting="unsafe")


def modular(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers of ONNX's casts: those of 8 and 16 bits, and of 32 without a sign, are the low bits of what
    INT32, or INT64, takes; of 64 without a sign, numbers from 0 up saturate."""
    between = np.empty(x.shape, np.int32 if dtype.itemsize < 4 else dtype if dtype.kind == "i" else I64)
    converted(between, x)
    found: Array = between.astype(dtype)
    if dtype == np.uint64:
        above = np.empty(x.shape, dtype)
        converted(above, x)
        found = np.where(x < 0, found, above)
    return found


@kernel(c.QUANTIZE)
def QUANTIZE(site: Site, x: Tensor, to: int) -> Run:
    """A division in float32, halves away from zero.

    What no int32 holds becomes the least of them in TFLite; the zero point, where negative, takes it round.
    """
    out = site.out
    if isinstance(out.quant, ChannelQuant):
        return _per_channel(out)
    (scale, zero), (low, high) = grid(out), limits(out)
    if out.type.dtype.itemsize > 2:
        return _into_wide(out)
    size = min(out.size, PIECE)
    site.scratch((size,))
    site.scratch((size,))

    def run(out: Array, x: Array, whole: Array, part: Array) -> None:
        given, to = x.reshape(-1), out.reshape(-1)
        for cut, _ in cuts(to.size, step=PIECE):
            n = cut.stop - cut.start
            v, t = whole[:n], part[:n]
            np.divide(given[cut], scale, out=t, casting="same_kind")
            if not (t.max() < BEYOND and t.min() > -BEYOND):
                t[~(abs(t) < BEYOND)] = -BEYOND if zero >= 0 else BEYOND
            np.trunc(t, out=v)
            np.subtract(t, v, out=t)
            np.add(t, t, out=t)
            np.trunc(t, out=t)
            np.add(v, t, out=v)
            np.clip(v, low - zero, high - zero, out=v)
            np.add(v, zero, out=v)
            np.copyto(to[cut], v, casting="unsafe")
    return run


def _into_wide(out: Tensor) -> Run:
    (scale, zero), (low, high) = grid(out), limits(out)

    def run(out: Array, x: Array) -> None:
        steps = to_int32(away((x.astype(f32) / scale).astype(f32)))
        np.copyto(out, np.clip(wrap32(steps + zero), low, high), casting="unsafe")
    return run


def _per_channel(t: Tensor) -> Run:
    scales = along_channels(t)

    def run(out: Array, x: Array) -> None:
        steps = to_int32(away((x.astype(f32) / scales).astype(f32)))
        np.copyto(out, np.clip(steps, *limits(t)), casting="unsafe")
    return run


def along_channels(t: Tensor) -> Array:
    """A tensor's scales per channel as an array that broadcasts against it."""
    if not isinstance(t.quant, ChannelQuant):
        raise TypeError(t.type.name)
    shape = [1] * t.rank
    shape[t.quant.axis] = -1
    return np.array(t.quant.scales, f32).reshape(shape)


@kernel(c.DEQUANTIZE)
def DEQUANTIZE(site: Site, x: Tensor, to: int) -> Run:
    """scale * (x - zero), rounded to float32 once."""
    scale, zero = grid(x)
    if isinstance(x.quant, ChannelQuant):
        scales = along_channels(x)
        return lambda out, x: np.copyto(out, x.astype(f32) * scales, casting="unsafe")
    if site.out.type.dtype != f32 or x.type.dtype.itemsize > 2:
        return lambda out, x: np.copyto(out, (np.float64(scale) * (x.astype(I64) - zero)).astype(f32),
                                        casting="unsafe")

    def step(out: Array, x: Array) -> None:
        np.copyto(out, x)
        if zero:
            np.subtract(out, zero, out=out)
        np.multiply(out, scale, out=out)
    return in_pieces(site, (x,), step)
