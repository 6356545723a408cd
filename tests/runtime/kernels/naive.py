"""Convolutions and pools by definition, one output position at a time, in exact integers or float64."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Slide:
    """Filter size, strides, dilations, and padding as top, bottom, left, right."""

    size: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    def out(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of positions over an image [n, h, w, c]."""
        spans = [(k - 1) * d + 1 for k, d in zip(self.size, self.dilations, strict=True)]
        return ((shape[1] - spans[0] + self.pads[0] + self.pads[1]) // self.strides[0] + 1,
                (shape[2] - spans[1] + self.pads[2] + self.pads[3]) // self.strides[1] + 1)

    def cells(self, shape: tuple[int, ...], y: int, x: int) -> Iterator[tuple[int, int, int, int]]:
        """(tap row, tap column, image row, image column) of each cell of a window that lies on the image."""
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                r = y * self.strides[0] + i * self.dilations[0] - self.pads[0]
                c = x * self.strides[1] + j * self.dilations[1] - self.pads[2]
                if 0 <= r < shape[1] and 0 <= c < shape[2]:
                    yield i, j, r, c

    def over(self, x: Array, make: Callable[[list[tuple[int, int, int, int]]], Array]) -> Array:
        """`make` of the cells of each window: [n, channels] for each position, as [n, rows, columns, channels]."""
        rows, columns = self.out(x.shape)
        return np.stack([np.stack([make(list(self.cells(x.shape, i, j))) for j in range(columns)], 1)
                         for i in range(rows)], 1)


def conv(x: Array, w: Array, slide: Slide, groups: int = 1) -> Array:
    """Sums of x [n, h, w, c] times w [out, kh, kw, c / groups]."""
    units, depth = w.shape[0], w.shape[3]
    group = np.arange(units) // (units // groups)

    def at(cells: list[tuple[int, int, int, int]]) -> Array:
        total = np.zeros((x.shape[0], units), x.dtype)
        for i, j, r, c in cells:
            for u in range(units):
                total[:, u] += x[:, r, c, group[u] * depth:(group[u] + 1) * depth] @ w[u, i, j]
        return total
    return slide.over(x, at)


def depthwise(x: Array, w: Array, slide: Slide, mult: int) -> Array:
    """Sums of x times w [1, kh, kw, c * mult], channel by channel."""
    wide = np.repeat(x, mult, 3)

    def at(cells: list[tuple[int, int, int, int]]) -> Array:
        return np.sum([wide[:, r, c] * w[0, i, j] for i, j, r, c in cells], 0, dtype=x.dtype) if cells else \
            np.zeros((x.shape[0], w.shape[3]), x.dtype)
    return slide.over(x, at)


def transposed(x: Array, w: Array, strides: tuple[int, int], pads: tuple[int, int, int, int]) -> Array:
    """Each pixel's products with w [out, kh, kw, c] added where the filter lies."""
    n, h, width, _ = x.shape
    units, kh, kw, _ = w.shape
    full = np.zeros((n, (h - 1) * strides[0] + kh, (width - 1) * strides[1] + kw, units), x.dtype)
    for i in range(h):
        for j in range(width):
            full[:, i * strides[0]:i * strides[0] + kh, j * strides[1]:j * strides[1] + kw] += np.einsum(
                "nc,ukvc->nkvu", x[:, i, j], w)
    return full[:, pads[0]:full.shape[1] - pads[1], pads[2]:full.shape[2] - pads[3]]


def requantised(total: Array, real: list[float], zero: int, low: int, high: int) -> Array:
    """TFLite's double rounding in Python integers, one element at a time."""
    from nnx_convert.runtime.fixedpoint import multiplier
    out = np.empty(total.shape, np.int64)
    for at in np.ndindex(*total.shape):
        m, s = multiplier(real[at[-1]])
        y = (int(total[at]) * (1 << max(s, 0)) * m + (1 << 30)) >> 31
        n = max(-s, 0)
        y = (y + (1 << n >> 1) - (1 if y < 0 and n else 0)) >> n
        out[at] = min(max(y + zero, low), high)
    return out
