"""Resizing images as TFLite's reference kernels do it: coordinates, weights and roundings."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Array
from .fixedpoint import away, f32
from .kernel import Run, Site

Size = tuple[int, int, int, int]


def _scale(size: int, out: int, align: bool) -> Any:
    """Cells of the image per cell of the output, in float32."""
    return f32(size - 1) / f32(out - 1) if align and out > 1 else f32(size) / f32(out)


def nearest_rows(size: int, out: int, align: bool, half: bool) -> Array:
    """The cell nearest to each output cell, along one axis."""
    at = (np.arange(out, dtype=f32) + f32(0.5 if half else 0.0)) * _scale(size, out, align)
    cells = (away(at) if align else np.floor(at)).astype(np.int64)
    cells = np.minimum(cells, size - 1)
    return np.asarray(np.maximum(cells, 0) if half else cells)


def nearest(size: Size, out: tuple[int, int], align: bool, half: bool) -> Run:
    """Rows and columns picked."""
    rows = nearest_rows(size[1], out[0], align, half)
    columns = nearest_rows(size[2], out[1], align, half)

    def run(out: Array, x: Array) -> None:
        np.copyto(out, x[:, rows[:, None], columns])
    return run


def between(size: int, out: int, align: bool, half: bool) -> tuple[Array, Array, Array]:
    """The cells on either side of each output cell, and its float32 distance from the first."""
    scale = _scale(size, out, align)
    at = np.arange(out, dtype=f32)
    at = (at + f32(0.5)) * scale - f32(0.5) if half else at * scale
    low = np.maximum(np.floor(at).astype(np.int64), 0)
    return low, np.minimum(np.ceil(at).astype(np.int64), size - 1), at - low.astype(f32)


def between_fixed(size: int, out: int, align: bool, half: bool) -> tuple[Array, Array, Array]:
    """The same in 10-bit fixed point, as for int8 and int16."""
    scale = ((size - 1) * 1024 + (out - 1) // 2) // (out - 1) if align and out > 1 else (size * 1024 + out // 2) // out
    at = np.arange(out, dtype=np.int64) * scale + (scale // 2 - 512 if half else 0)
    low = np.maximum(np.trunc(at / 1024).astype(np.int64), 0)
    high = np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), size - 1)
    return low, high, at - 1024 * low


def bilinear(site: Site, size: Size, dtype: np.dtype[Any], out: tuple[int, int], align: bool, half: bool) -> Run:
    """The run for NHWC images of a type."""
    if dtype.kind == "i":
        return _fixed(size, out, align, half)
    if dtype.kind == "u":
        return _bytes(size, out, align, half)
    return _floats(site, size, out, align, half)


def _floats(site: Site, size: Size, out: tuple[int, int], align: bool, half: bool) -> Run:
    """Rows first, then columns: what is between two rows is needed once."""
    n, h, w, c = size
    top, bottom, down = between(h, out[0], align, half)
    left, right, along = between(w, out[1], align, half)
    y, x_ = down[:, None, None], along[:, None]
    for _ in range(2):
        site.scratch((out[0], w, c))
    for _ in range(2):
        site.scratch((*out, c))

    def run(to: Array, x: Array, upper: Array, lower: Array, first: Array, second: Array) -> None:
        for i in range(n):
            image = x[i] if x.dtype == f32 else x[i].astype(f32)
            blend(image, 0, top, bottom, y, upper, lower)
            blend(upper, 1, left, right, x_, first, second)
            np.copyto(to[i], first, casting="unsafe")
    return run


def blend(x: Array, axis: int, low: Array, high: Array, share: Array, first: Array, second: Array) -> None:
    """first = x[low] + (x[high] - x[low]) * share, along an axis; `second` is lost."""
    np.take(x, low, axis=axis, out=first, mode="clip")
    np.take(x, high, axis=axis, out=second, mode="clip")
    np.subtract(second, first, out=second)
    np.multiply(second, share, out=second)
    np.add(first, second, out=first)


def _fixed(size: Size, out: tuple[int, int], align: bool, half: bool) -> Run:
    """int8 and int16: weights of 10 bits, one rounding at the end, halves away from zero."""
    top, bottom, down = between_fixed(size[1], out[0], align, half)
    left, right, along = between_fixed(size[2], out[1], align, half)
    y, x_ = down[:, None, None], along[:, None]

    def run(to: Array, x: Array) -> None:
        wide = x.astype(np.int64)
        rows = wide[:, top] * (1024 - y) + wide[:, bottom] * y
        total = rows[:, :, left] * (1024 - x_) + rows[:, :, right] * x_
        total = np.where(total > 0, (total + (1 << 19)) >> 20, -((-total + (1 << 19)) >> 20))
        np.copyto(to, total, casting="unsafe")
    return run


def _bytes(size: Size, out: tuple[int, int], align: bool, half: bool) -> Run:
    """uint8: four float32 terms added in the reference's order, then a half, then cut."""
    top, bottom, down = between(size[1], out[0], align, half)
    left, right, along = between(size[2], out[1], align, half)
    y, x_ = down[:, None, None], along[:, None]
    one = f32(1)

    def run(to: Array, x: Array) -> None:
        real = x.astype(f32)
        upper, lower = real[:, top], real[:, bottom]
        total = upper[:, :, left] * (one - y) * (one - x_)
        total += lower[:, :, left] * y * (one - x_)
        total += upper[:, :, right] * (one - y) * x_
        total += lower[:, :, right] * y * x_
        total += f32(0.5)
        np.copyto(to, total, casting="unsafe")
    return run
