"""Accumulators to quantised outputs: TFLite's double rounding, exact, over whole arrays.

`MultiplyByQuantizedMultiplier` is y = floor(x * m / 2^31 + 1/2) and then y / 2^r, ties away from zero. Both
steps fit float64 while |x| * 2^max(s, 0) stays below 2^22: x * m has at most 53 bits, and so has the sum with
1/2. The second tie is turned away from zero by the factor 1 + 2^-32, which is larger than any rounding here
and smaller than any distance to a tie that is none. Every step is monotone, so that larger accumulators are
right as well where those at the limit lie beyond the output's range. Elsewhere the same is done in int64.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Array
from .cuts import CHUNK, cuts, repeats
from .fixedpoint import scale32

#: Largest |x| * 2^max(s, 0) that float64 scales exactly.
EXACT = (1 << 22) - 1
TILT = 1 + 2.0**-32


class Requantizer:
    """clamp(zero + (acc + bias) * m * 2^(s - 31)), per channel, for accumulators whose last axis is channels.

    `m`, `s`: multipliers as `fixedpoint.multiplier` gives them, one per channel or a single one. `bias`: int64
    per channel. `bound`: no |acc + bias| is larger, for any channel or for each; it must be below 2^31. `low`
    and `high` clamp on the output's grid. Bit-equal to `fixedpoint.scale32`. Frozen once made: several threads
    may apply one.
    """

    def __init__(self, m: Array, s: Array, zero: int, low: int, high: int, bound: int | Array,
                 bias: Array | None = None) -> None:
        given = [np.zeros(1) if bias is None else bias, m, s, bound]
        b, m, s, limit = (np.array(a, np.int64) for a in np.broadcast_arrays(*(np.atleast_1d(a) for a in given)))
        self.zero, self.low, self.high = zero, low, high
        self.channels = b.size
        left, right = np.maximum(s, 0), np.maximum(-s, 0)
        tile = repeats(self.channels)

        def tiled(a: Array) -> Array:
            return np.tile(a, tile)
        self.width = self.channels * tile
        self._way: Callable[[Array, Array, Array, slice], None]
        if np.ldexp(limit.astype(np.float64), left).max() >= 1 << 31:
            self._way = self._plainly
            self._bias, self._m, self._shift = tiled(b), tiled(m), tiled(s)
        elif self._fits(b, m, s, limit):
            first = np.ldexp(m.astype(np.float64), left - 31)
            self._way = self._floats
            self._first, self._half = tiled(first), tiled(b * first + 0.5)
            self._second = tiled(np.ldexp(TILT, -right))
        else:
            self._way = self._integers
            self._m, self._bias, self._shift = tiled(m << left), tiled(b), tiled(31 + right)
            half = (1 << 30) + (right > 0) * (np.int64(1) << (30 + right))
            self._half, self._down = tiled(half), tiled((right > 0) * np.int64(1 << 31))

    def _fits(self, b: Array, m: Array, s: Array, limit: Array) -> bool:
        """Whether float64 is exact on every accumulator that is not clamped."""
        most = EXACT >> np.maximum(s, 0)
        if (2 * np.abs(b) > most).any() or (most == 0).any():
            return False
        inside = most - np.abs(b)
        up = scale32(inside, m, s) + self.zero >= self.high
        down = scale32(-inside, m, s) + self.zero <= self.low
        return bool(((limit <= inside) | up & down).all())

    def scratch(self, count: int) -> tuple[tuple[int], Any]:
        """Shape and type of the buffer `apply` wants for accumulators of `count` elements."""
        return (min(count, max(CHUNK, self.width)),), np.float64

    def apply(self, acc: Array, out: Array, work: Array | None = None) -> None:
        """Scale `acc` [..., C] (integers in float32, float64, int32 or int64; contiguous) into `out` of its shape.

        `acc` is left as it is; `work` is a buffer as `scratch` describes it, made here when not given.
        """
        if out.dtype.itemsize > 2:
            raise TypeError(f"outputs have 8 or 16 bits, not {out.dtype}")
        flat, to = acc.reshape(-1), out.reshape(-1)
        if work is None:
            work = np.empty(*self.scratch(flat.size))
        for part, use in cuts(flat.size, self.width):
            self._way(flat[part], to[part], work[:part.stop - part.start], use)

    def _floats(self, x: Array, out: Array, t: Array, use: slice) -> None:
        rows = (-1, use.stop)
        info = np.iinfo(out.dtype)
        x, t = x.reshape(rows), t.reshape(rows)
        np.multiply(x, self._first[use], out=t)
        t += self._half[use]
        np.floor(t, out=t)
        t *= self._second[use]
        t += self.zero - info.min + 0.5
        np.clip(t, self.low - info.min, self.high - info.min, out=t)
        # No value is negative now: truncation is floor, and the flip of the top bit takes the shift back.
        plain = out.view(f"u{out.itemsize}")
        np.copyto(plain, t.reshape(-1), casting="unsafe")
        if info.min:
            np.bitwise_xor(plain, plain.dtype.type(-info.min), out=plain)

    def _integers(self, x: Array, out: Array, t: Array, use: slice) -> None:
        rows = (-1, use.stop)
        y = t.view(np.int64).reshape(rows)
        np.copyto(y, x.reshape(rows), casting="unsafe")
        y += self._bias[use]
        y *= self._m[use]
        y -= np.bitwise_and(y >> 63, self._down[use])
        y += self._half[use]
        y >>= self._shift[use]
        y += self.zero
        np.clip(y, self.low, self.high, out=y)
        np.copyto(out, y.reshape(-1), casting="unsafe")

    def _plainly(self, x: Array, out: Array, _: Array, use: slice) -> None:
        rows = x.reshape(-1, use.stop).astype(np.int64) + self._bias[use]
        y = scale32(rows, self._m[use], self._shift[use]) + self.zero
        np.copyto(out, np.clip(y, self.low, self.high).reshape(-1), casting="unsafe")
