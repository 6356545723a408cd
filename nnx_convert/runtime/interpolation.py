"""ONNX's Resize along one axis: where each output cell lies on the input, which cells count and how much.

Source: the operator's text and its reference in `onnx.reference.ops.op_resize`, in float64. Where a cell is picked,
places are float32 as in ONNX Runtime: a factor of 1.1 is 1.10000002 in the file, and the 11th cell is not the 10th.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..frozen import frozen
from ..ops.sampling import ALIGNED, ASYMMETRIC, CROPPED, NEAREST, PYTORCH, ROUNDINGS, SYMMETRIC
from ..types import Array
from .memory import affordable
from .places import keys

#: The bytes for a cell that counts for a place: its number, how far it is and its share, and these once more.
WORK = 6 * 8


@frozen
class Axis:
    """An axis of `size` cells made `out` ones, by a factor; `roi` is the part of it that is wanted."""

    size: int
    out: int
    factor: float
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.size == self.out and bool(np.isclose(self.factor, 1)) and bool(np.allclose(self.roi, (0, 1)))

    def places(self, grid: int, real: type[np.floating[Any]] = np.float64) -> Array:
        """Where output cells lie, in cells of the input; `real` is what half-pixel and asymmetric grids count in."""
        y, length, factor = np.arange(self.out, dtype=real), self.factor * self.size, real(self.factor)
        if grid == ALIGNED:
            return np.zeros(self.out) if length == 1 else y.astype(np.float64) * (self.size - 1) / (length - 1)
        if grid == ASYMMETRIC:
            return np.asarray(y / factor)
        if grid == CROPPED:
            start, end = (float(v) * (self.size - 1) for v in self.roi)
            return np.full(self.out, (start + end) / 2) if self.out == 1 else start + y * (end - start) / (length - 1)
        if grid == PYTORCH and self.out == 1:
            return np.zeros(1)
        # In the order that ONNX's reference adds in: places that are whole numbers stay so.
        shift = real(self.size / 2 * (1 - self.out / length)) if grid == SYMMETRIC else real(0)
        return np.asarray(shift + (y + real(0.5)) / factor - real(0.5))

    def picked(self, grid: int, rounding: int) -> Array:
        """The nearest cell of each place, inside."""
        at = self.places(grid, np.float32).astype(np.float64)
        found = {"round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
                 "floor": np.floor(at), "ceil": np.ceil(at)}[ROUNDINGS[rounding]]
        return np.clip(found, 0, self.size - 1).astype(np.int64)

    def shares(self, grid: int, mode: int, a: float, inside: bool, smooth: bool) -> tuple[Array, Array]:
        """The cells that count for each place, inside, and how much: both [out, count]."""
        at = self.places(grid)
        low, radius = np.floor(at), mode                       # linear reaches one cell each way, cubic two
        scale = min(self.factor, 1.0) if smooth else 1.0
        reach = -(int(np.floor(-radius / scale)) + 1)
        affordable(max(self.out, 1) * (2 * reach + 2) * WORK, "what counts for a place")
        cells = low[:, None] + np.arange(-reach, reach + 2)
        distance = np.abs(cells - at[:, None]) * scale
        share = np.clip(1 - distance, 0, 1) if radius == 1 else keys(distance, a)
        if inside:
            share = np.where((cells < 0) | (cells >= self.size), 0, share)
        if inside or smooth:
            total = share.sum(1, keepdims=True)
            share = share / np.where(total == 0, 1, total)
        return np.clip(cells, 0, self.size - 1).astype(np.int64), share

    def outside(self, grid: int) -> Array | None:
        """The places that a cropped grid has outside of the input; None on another grid."""
        if grid != CROPPED:
            return None
        at = self.places(grid)
        return np.asarray((at < 0) | (at > self.size - 1))


@frozen
class Way:
    """How INTERPOLATE goes between cells: its arguments of these names."""

    mode: int
    grid: int
    rounding: int
    a: float
    inside: bool
    extrapolation: float
    smooth: bool

    def along(self, x: Array, at: int, axis: Axis) -> Array:
        """x with an axis on its new grid."""
        if self.mode == NEAREST:
            made = np.take(x, axis.picked(self.grid, self.rounding), at)
        else:
            cells, shares = axis.shares(self.grid, self.mode, self.a, self.inside, self.smooth)
            wide = (-1, *(1,) * (x.ndim - 1 - at))
            parts = (np.take(x, c, at) * s.astype(x.dtype).reshape(wide)
                     for c, s in zip(cells.T, shares.T, strict=True))
            made = np.asarray(sum(parts))
        outside = axis.outside(self.grid)
        if outside is not None and outside.any():
            made = np.where(outside.reshape(-1, *(1,) * (x.ndim - 1 - at)), made.dtype.type(self.extrapolation), made)
        return made
