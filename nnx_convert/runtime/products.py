"""Sums of products and what follows them: bias, activation, and on integers TFLite's exact requantisation.

Integers are multiplied as floats, which is exact while every partial sum stays below 2 ** 24 (float32) or
2 ** 53 (float64). The image is taken as stored, so that the border holds its zero point; what that adds to
each sum is a constant per channel, folded into the bias.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..frozen import frozen
from ..types import Array, F16, F32, Q8, ChannelQuant, Tensor
from .fixedpoint import activation_range, away, f32, grid, limits, multipliers, scale64, scales, to_int32, wrap32
from .kernel import NeedsValue, Site
from .requantize import Requantizer

#: Bounds of the fused activations on floats, by NNAPI's codes.
BOUNDS: dict[int, tuple[float | None, float | None]] = {0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
EXACT_F32 = 1 << 24
#: (sums, out, work) -> None, and the buffer `work` is.
Finish = tuple[Callable[[Array, Array, Array | None], None], Callable[[int], tuple[tuple[int], Any]] | None]


@frozen
class Products:
    """One way to sum products: `weights` [k, n] in the type to multiply in, `fill` what a border holds.

    `finish(sums, out, work)` makes outputs of sums, channels last; `work` is a buffer as `ask` has it made.
    Where `direct` is set the sums are written to the output's own array first.
    """

    weights: Array
    fill: float
    finish: Callable[[Array, Array, Array | None], None]
    direct: bool
    buffer: Callable[[int], tuple[tuple[int], Any]] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type sums are in."""
        dtype: np.dtype[Any] = self.weights.dtype
        return dtype

    def ask(self, site: Site, count: int) -> None:
        """Ask for the buffers that outputs made `count` at a time need: the sums', then `work`; see `given`."""
        if not self.direct:
            site.scratch((count,), self.dtype)
        if self.buffer:
            site.scratch(*self.buffer(count))

    def given(self, buffers: Sequence[Array]) -> tuple[Array | None, Array | None]:
        """The sums' buffer and `work`, of those that `ask` asked for last; None for one there is no need of."""
        work = buffers[-1] if self.buffer else None
        return (None if self.direct else buffers[-2 if self.buffer else -1]), work


def constant(t: Tensor) -> Array:
    """The value of a tensor; raises `NeedsValue` where only a run knows it."""
    if t.data is None:
        raise NeedsValue
    return t.data


def products(site: Site, x: Tensor, w: Tensor, matrix: Array, b: Tensor | None, act: int, *, exact: str = "",
             centred: bool = False) -> Products:
    """The arithmetic of a convolution or a matrix product of x with weights laid out as `matrix` [k, n].

    `exact` names the requantisation where the types do not say it: "float64" is FULLY_CONNECTED's, "wide" that
    of 64-bit sums. `centred`: the caller takes the zero point off x, because not all sums have all taps.
    """
    bias = None if b is None else constant(b)
    if x.type in (F32, F16):
        return _floats(site, matrix, bias, act)
    return _integers(site, x, w, matrix, bias, act, exact, centred)


def _floats(site: Site, matrix: Array, bias: Array | None, act: int) -> Products:
    added = None if bias is None or not bias.any() else bias.astype(f32)
    low, high = BOUNDS[act]

    def finish(sums: Array, out: Array, _work: Array | None) -> None:
        if added is not None:
            np.add(sums, added, out=sums)
        if high is not None:
            np.clip(sums, low, high, out=sums)
        elif low is not None:
            np.maximum(sums, low, out=sums)
        if out is not sums:
            np.copyto(out, sums, casting="unsafe")
    return Products(np.asarray(matrix, f32), 0.0, finish, site.out.type.dtype == f32)


def _integers(site: Site, x: Tensor, w: Tensor, matrix: Array, bias: Array | None, act: int, exact: str,
              centred: bool) -> Products:
    weights = matrix.astype(f32) - f32(grid(w)[1])
    zero, (low, high) = grid(x)[1], limits(x)
    shift = 0 if centred else zero
    span = max(high - zero, zero - low)                    # of |x| less its zero point
    reach, total = (v.sum(0, dtype=np.float64).astype(np.int64) for v in (np.abs(weights), weights))
    added = np.zeros(matrix.shape[1], np.int64) if bias is None else bias.astype(np.int64)
    stored = span if centred else max(-low, high)
    if stored * int(reach.max(initial=0)) >= EXACT_F32:
        weights = weights.astype(np.float64)
    wide = exact == "wide" or (x.type.dtype.itemsize == 2 and bias is not None and bias.dtype == np.int64)
    make = _rounded if exact == "float64" else _wide if wide else _requantized
    real, bound = real_multipliers(x, w, site.out, matrix.shape[1], exact == "float64"), reach * span + np.abs(added)
    finish, buffer = make(site.out, real, added - shift * total, bound, act)
    return Products(weights, float(zero), finish, False, buffer)


def real_multipliers(x: Tensor, w: Tensor, out: Tensor, count: int, wide: bool) -> Array:
    """What products of x with w are multiplied by to be steps of the output's grid, [channels] as FLOAT64.

    Unless `wide`, the scales' product is a float32 where uint8 is multiplied by uint8, or int16 by int16.
    """
    sx, so = grid(x)[0], float(grid(out)[0])
    narrow = x.type == Q8 and w.type == Q8 or w.type.dtype.itemsize == 2 and not isinstance(w.quant, ChannelQuant)
    if narrow and not wide:
        return np.full(count, float(f32(sx * grid(w)[0])) / so)
    return float(sx) * scales(w, count).astype(np.float64) / so


def _requantized(out: Tensor, real: Array, added: Array, bound: Array, act: int) -> Finish:
    """Two roundings in fixed point (`MultiplyByQuantizedMultiplier`)."""
    low, high = activation_range(act, out)
    zero = 0 if out.type.dtype.itemsize == 2 else grid(out)[1]
    made = Requantizer(*multipliers(real), zero, low, high, bound, added)
    return made.apply, made.scratch


def _wide(out: Tensor, real: Array, added: Array, bound: Array, act: int) -> Finish:
    """Of 64-bit sums of int16 products: the multiplier cut to 15 bits, one rounding."""
    low, high = activation_range(act, out)
    m, s = multipliers(real)

    def finish(sums: Array, to: Array, _work: Array | None) -> None:
        np.copyto(to, np.clip(scale64(sums.astype(np.int64) + added, m, s), low, high), casting="unsafe")
    return finish, None


def _rounded(out: Tensor, real: Array, added: Array, bound: Array, act: int) -> Finish:
    """FULLY_CONNECTED's: a float64 product rounded to the nearest, halves away from zero."""
    low, high = activation_range(act, out)
    factor, zero, most = real, grid(out)[1], int(bound.max(initial=1))

    def finish(sums: Array, to: Array, _work: Array | None) -> None:
        total = sums.astype(np.float64) + added
        if most >= 1 << 31:
            total = wrap32(total).astype(np.float64)
        rounded = away(total * factor)
        if most * float(factor.max(initial=0.0)) >= 1 << 31:
            rounded = to_int32(rounded)
        np.copyto(to, np.clip(rounded + zero, low, high), casting="unsafe")
    return finish, None
