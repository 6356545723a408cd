"""A filter sliding over an NHWC image: geometry, padded copies, and windows gathered into rows for a matrix product."""
from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..frozen import frozen
from ..types import Array

#: Elements worked on at a time, so that what one pass writes the next still finds in the cache.
CHUNK = 1 << 16


@frozen
class Window:
    """Sizes of the image (n, h, w, c), of the filter, strides, dilations and padding (top, bottom, left, right)."""

    image: tuple[int, int, int, int]
    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def reach(self) -> tuple[int, int]:
        """How many rows and columns the filter spans."""
        return ((self.size[0] - 1) * self.dilations[0] + 1, (self.size[1] - 1) * self.dilations[1] + 1)

    @property
    def out(self) -> tuple[int, int]:
        """Positions of the filter: rows and columns of the output."""
        (_, h, w, _), (top, bottom, left, right) = self.image, self.pads
        return ((h + top + bottom - self.reach[0]) // self.strides[0] + 1,
                (w + left + right - self.reach[1]) // self.strides[1] + 1)

    @property
    def met(self) -> Window:
        """The same without what of the filter, which is not dilated, is in the border at all positions."""
        if 0 in (*self.image, *self.out):
            return self
        (rows, columns), (top, bottom, left, right) = self.size, self.pads
        size, pads = [rows, columns], [top, bottom, left, right]
        for axis in (0, 1):
            before, after = 2 * axis, 2 * axis + 1
            first = max(pads[before] - (self.out[axis] - 1) * self.strides[axis], 0)
            last = min(self.image[1 + axis] + pads[before], size[axis])
            if first < last:
                pads[before], pads[after] = pads[before] - first, pads[after] - (size[axis] - last)
                size[axis] = last - first
        (rows, columns), (top, bottom, left, right) = size, pads
        return Window(self.image, (rows, columns), self.strides, self.dilations, (top, bottom, left, right))

    @property
    def padded(self) -> tuple[int, int, int]:
        """One image with its border: rows, columns, channels."""
        (_, h, w, c), (top, bottom, left, right) = self.image, self.pads
        return h + top + bottom, w + left + right, c

    @property
    def depth(self) -> int:
        """Elements under the filter."""
        return self.size[0] * self.size[1] * self.image[3]

    @property
    def pointwise(self) -> bool:
        """Whether each position is one pixel, in order: the image itself is the matrix."""
        return self.size == self.strides == (1, 1) and not any(self.pads)

    def bands(self, width: int) -> Iterator[tuple[int, int]]:
        """Ranges of output rows, each with about `CHUNK` elements where a position has `width`."""
        rows, columns = self.out
        step = max(1, CHUNK // max(1, columns * width))
        return ((at, min(at + step, rows)) for at in range(0, rows, step))

    def band_rows(self, width: int) -> int:
        """The rows of the largest band."""
        return max(1, min(self.out[0], CHUNK // max(1, self.out[1] * width)))


def put_padded(to: Array, image: Array, top: int, left: int, fill: float) -> None:
    """Copy one image [h, w, c] into `to`, which is as large or larger, at a place; the border is set to `fill`."""
    h, w, _ = image.shape
    rows = to[top:top + h]
    if top:
        to[:top] = fill
    if top + h < to.shape[0]:
        to[top + h:] = fill
    if left:
        rows[:, :left] = fill
    if left + w < to.shape[1]:
        rows[:, left + w:] = fill
    np.copyto(rows[:, left:left + w], image, casting="unsafe")


def windows_of(padded: Array, g: Window) -> Array:
    """Every window of a padded image as a view [rows, columns, kh, kw, c]."""
    row, column, channel = padded.strides
    strides = (g.strides[0] * row, g.strides[1] * column, g.dilations[0] * row, g.dilations[1] * column, channel)
    return np.ndarray((*g.out, *g.size, padded.shape[2]), padded.dtype, padded, 0, strides)


@frozen
class Taps:
    """A filter's taps over an image whose columns are dealt out by stride, so that each tap reads runs.

    Column q of the padded image is at [q % stride, q // stride]: neighbours of one output row are neighbours
    in memory whatever the stride. A row of `tile` outputs by channels is one run.
    """

    window: Window
    channels: int
    tile: int

    @classmethod
    def of(cls, window: Window, channels: int) -> Taps:
        """The widest tile that keeps the weights repeated along it small."""
        columns, taps = window.out[1], window.size[0] * window.size[1]
        fits = [t for t in range(1, columns + 1) if columns % t == 0 and t * channels * taps <= CHUNK // 2]
        return cls(window, channels, max(fits, default=1))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the dealt image: stride, rows, columns, channels."""
        stride, reach = self.window.strides[1], self.window.reach[1]
        return stride, self.window.padded[0], (reach - 1) // stride + self.window.out[1], self.channels

    @cached_property
    def phases(self) -> list[tuple[int, int, int, list[int]]]:
        """The taps of a row by the phase they read: (phase, first column, columns from one to the next, taps)."""
        stride, dilation = self.window.strides[1], self.window.dilations[1]
        found: dict[int, list[int]] = {}
        for j in range(self.window.size[1]):
            found.setdefault(j * dilation % stride, []).append(j)
        columns = {p: [j * dilation // stride for j in taps] for p, taps in found.items()}
        return [(p, columns[p][0], columns[p][1] - columns[p][0] if len(taps) > 1 else 0, taps)
                for p, taps in found.items()]

    def weights(self, w: Array) -> list[Array]:
        """Weights [kh * kw, channels] repeated along a tile: [kh, taps, tile * channels] of each phase."""
        kh, kw = self.window.size
        tiled = np.tile(w.reshape(-1, self.channels), (1, self.tile)).reshape(kh, kw, -1)
        return [np.ascontiguousarray(tiled[:, taps]) for _, _, _, taps in self.phases]

    def deal(self, to: Array, image: Array, fill: float) -> None:
        """Copy one image [h, w, channels] into `to` (`shape`), the border set to `fill`."""
        w, (top, _, left, _) = image.shape[1], self.window.pads
        stride, _, width, _ = self.shape
        for phase in range(stride):
            first = (phase - left) % stride
            at = (left + first) // stride
            count = max(0, min(-(-(w - first) // stride), width - at))
            put_padded(to[phase], image[:, first:first + count * stride:stride], top, at, fill)

    def views(self, dealt: Array, start: int, rows: int) -> list[Array]:
        """What taps read for output rows [start, start + rows): [kh, taps, rows, tiles, tile * channels] of a phase."""
        g, item = self.window, dealt.itemsize
        _, height, width, c = self.shape
        line = width * c * item
        found: list[Array] = []
        for phase, column, step, taps in self.phases:
            offset = (phase * height + start * g.strides[0]) * line + column * c * item
            found.append(np.ndarray(
                (g.size[0], len(taps), rows, g.out[1] // self.tile, self.tile * c), dealt.dtype, dealt, offset,
                (g.dilations[0] * line, step * c * item, g.strides[0] * line, self.tile * c * item, item)))
        return found

    def each(self, dealt: Array, start: int, rows: int) -> list[Array]:
        """The same tap by tap: [rows, columns, channels]."""
        return [tap.reshape(rows, -1, self.channels) for view in self.views(dealt, start, rows)
                for row in view for tap in row]


def accumulate(acc: Array, views: list[Array], weights: list[Array], product: Array) -> None:
    """acc = sum over taps of view * weights; `product` holds a phase's sums."""
    np.einsum("ijrtn,ijn->rtn", views[0], weights[0], out=acc)
    for view, w in zip(views[1:], weights[1:], strict=True):
        np.einsum("ijrtn,ijn->rtn", view, w, out=product)
        np.add(acc, product, out=acc)
