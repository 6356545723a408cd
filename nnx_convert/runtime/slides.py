"""A kernel sliding over all axes behind the channels, tap by tap; x is [n, channels, *sizes]."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..frozen import frozen
from ..types import Array, Shape, Tensor
from .kernel import ints


def computed_in(x: Tensor) -> np.dtype[Any]:
    """The type that sums of a tensor's elements are in: wide enough for integers, float32 for halves."""
    kind = x.type.dtype
    if kind.kind in "iub":
        return np.dtype(np.int64)
    return np.dtype(np.float32) if kind.itemsize == 2 else kind


def picked(x: Array, where: Sequence[Array]) -> Array:
    """The elements of x [n, c, *sizes] at places along each of its sizes: [n, c, *places]."""
    at: Any = (slice(None), slice(None), *np.ix_(*where))
    return np.asarray(x[at])


@frozen
class Slide:
    """Sizes of a kernel, the amounts before and after each axis, and its steps."""

    kernel: Shape
    heads: Shape
    tails: Shape
    strides: Shape
    dilations: Shape

    @classmethod
    def of(cls, kernel: Shape, pads: Tensor, strides: Tensor, dilations: Tensor) -> Slide:
        """That of an operation's arguments; raises `NeedsValue` where they are no constants."""
        amounts, axes = ints(pads), len(kernel)
        return cls(kernel, amounts[:axes], amounts[axes:], ints(strides), ints(dilations))

    @property
    def taps(self) -> Iterator[Shape]:
        """The cells of the kernel in order."""
        return iter(np.ndindex(*self.kernel))

    def starts(self, axis: int, count: int) -> Array:
        """The first cell of each window along an axis, counted in the image."""
        return np.arange(count) * self.strides[axis] - self.heads[axis]

    def cells(self, tap: Shape, out: Shape, sizes: Shape) -> tuple[list[Array], Array]:
        """Where a tap reads for each window [*out], along each axis, moved inside the image; whether it is there."""
        where, there = list[Array](), np.ones((), bool)
        for i, (at, count, size) in enumerate(zip(tap, out, sizes, strict=True)):
            place = self.starts(i, count) + at * self.dilations[i]
            where.append(np.clip(place, 0, max(size - 1, 0)))
            there = np.logical_and.outer(there, (place >= 0) & (place < size))
        return where, there

    def read(self, x: Array, tap: Shape, out: Shape) -> tuple[Array, Array]:
        """What a tap reads [n, c, *out], and where that is there."""
        where, there = self.cells(tap, out, x.shape[2:])
        return picked(x, where), there

    def padded(self, x: Array, out: Shape, dtype: np.dtype[Any]) -> Array:
        """x with zeros around it, as far as windows reach."""
        reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(
            out, self.strides, self.kernel, self.dilations, strict=True)]
        ends = [(max(h, 0), max(r - n - h, 0)) for h, r, n in zip(self.heads, reach, x.shape[2:], strict=True)]
        cut = tuple(slice(max(-h, 0), None) for h in self.heads)
        return np.pad(x.astype(dtype, copy=False), [(0, 0), (0, 0), *ends])[(slice(None), slice(None), *cut)]

    def under(self, padded: Array, tap: Shape, out: Shape) -> Array:
        """The view of a padded image that a tap has: [n, c, *out]."""
        return padded[(slice(None), slice(None), *(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(
            tap, self.dilations, out, self.strides, strict=True)))]

    def scattered(self, columns: Iterator[Array], shape: Shape, positions: Shape, dtype: np.dtype[Any]) -> Array:
        """Columns [n, c, *positions], one for each tap, added up where the taps lie on an image of a shape."""
        reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(
            positions, self.strides, self.kernel, self.dilations, strict=True)]
        before = [max(-h, 0) for h in self.heads]
        whole = [max(r + b, b + h + n) for r, b, h, n in zip(reach, before, self.heads, shape[2:], strict=True)]
        sums = np.zeros((*shape[:2], *whole), dtype)
        inner = sums[(slice(None), slice(None), *(slice(b, None) for b in before))]
        for tap, part in zip(self.taps, columns, strict=True):
            view = self.under(inner, tap, positions)
            view += part
        return sums[(slice(None), slice(None), *(slice(b + h, b + h + n) for b, h, n in zip(
            before, self.heads, shape[2:], strict=True)))]
