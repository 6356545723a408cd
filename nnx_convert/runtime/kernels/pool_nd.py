"""Pools over any number of axes: each tap of the window in its turn."""
from __future__ import annotations

from functools import reduce

import numpy as np

from ...errors import RunError
from ...ops import pool_nd as p
from ...types import Array, Shape, Tensor
from ..fixedpoint import away
from ..kernel import Run, Site, ints, kernel
from ..slides import Slide, computed_in, picked


def slide(kernel: Tensor, pads: Tensor, strides: Tensor, dilations: Tensor) -> Slide:
    """The window of a pool."""
    return Slide.of(ints(kernel), pads, strides, dilations)


@kernel(p.MAX_POOL_ND)
def MAX_POOL_ND(site: Site, x: Tensor, kernel: Tensor, pads: Tensor, strides: Tensor, dilations: Tensor, ceil: bool,
                column_major: bool) -> Run:
    """A window without any cell gives 0 at -1; what is not greater than the first cell, NaN too, changes nothing."""
    window, sizes, out_sizes = slide(kernel, pads, strides, dilations), x.shape[2:], site.out.shape[2:]
    steps = np.cumprod([1, *sizes[:-1]]) if column_major else np.cumprod([1, *sizes[:0:-1]])[::-1]
    planes = np.arange(int(np.prod(x.shape[:2]))).reshape(*x.shape[:2], *(1,) * len(sizes)) * int(np.prod(sizes))

    def run(out: Array, indices: Array, x: Array, *_: Array) -> None:
        out.fill(0)
        place, found = np.full(out.shape, -1, np.int64), np.zeros(out_sizes, bool)
        for tap in window.taps:
            where, there = window.cells(tap, out_sizes, sizes)
            part = picked(x, where)
            better = there & (~found | (part > out))
            flat = reduce(np.add.outer, [w * s for w, s in zip(where, steps.tolist(), strict=True)])
            np.copyto(out, part, where=better)
            np.copyto(place, flat, where=better)
            found |= there
        np.copyto(indices, np.where(found, place + planes, -1), casting="unsafe")
    return run


@kernel(p.AVERAGE_POOL_ND)
def AVERAGE_POOL_ND(site: Site, x: Tensor, kernel: Tensor, pads: Tensor, strides: Tensor, dilations: Tensor,
                    ceil: bool, counted: bool) -> Run:
    """Where padding is counted, cells behind it, which only `ceil` reaches, are not."""
    window, dtype, out_sizes = slide(kernel, pads, strides, dilations), computed_in(x), site.out.shape[2:]
    counts = reduce(np.multiply.outer, [cells(window, i, n, size, counted) for i, (n, size) in enumerate(
        zip(out_sizes, x.shape[2:], strict=True))])

    def run(out: Array, x: Array, *_: Array) -> None:
        total = summed(window, x.astype(dtype, copy=False), out_sizes)
        mean = total / np.maximum(counts, 1).astype(dtype)
        np.copyto(out, away(mean) if dtype.kind == "i" else mean, casting="unsafe")
    return run


def cells(window: Slide, axis: int, count: int, size: int, counted: bool) -> Array:
    """How many cells each window along an axis has."""
    low, high = (-window.heads[axis], size + window.tails[axis]) if counted else (0, size)
    place = window.starts(axis, count)[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
    return np.asarray(((place >= low) & (place < high)).sum(1))


def summed(window: Slide, x: Array, out_sizes: Shape) -> Array:
    """The sum over each window of the cells that are there."""
    total = np.zeros((*x.shape[:2], *out_sizes), x.dtype)
    for tap in window.taps:
        part, there = window.read(x, tap, out_sizes)
        np.add(total, part, out=total, where=np.broadcast_to(there, total.shape))
    return total


@kernel(p.LP_POOL_ND)
def LP_POOL_ND(site: Site, x: Tensor, kernel: Tensor, pads: Tensor, strides: Tensor, dilations: Tensor, ceil: bool,
               p: float) -> Run:
    window, dtype, out_sizes = slide(kernel, pads, strides, dilations), computed_in(x), site.out.shape[2:]

    def run(out: Array, x: Array, *_: Array) -> None:
        powers = np.power(np.abs(x.astype(dtype, copy=False)), dtype.type(p))
        np.copyto(out, np.power(summed(window, powers, out_sizes), dtype.type(1 / p)), casting="unsafe")
    return run


@kernel(p.UNPOOL_ND)
def UNPOOL_ND(site: Site, x: Tensor, indices: Tensor, inner: Tensor, shape: Tensor) -> Run:
    sizes = ints(inner)
    count = int(np.prod(sizes))

    def run(out: Array, x: Array, indices: Array, *_: Array) -> None:
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < count:
            raise RunError(f"an index is not in [0, {count})")
        flat = np.zeros(count, out.dtype)
        flat[indices.reshape(-1)] = x.reshape(-1)
        out.fill(0)
        out[tuple(slice(0, n) for n in sizes)] = flat.reshape(sizes)
    return run


@kernel(p.MAX_ROI_POOL)
def MAX_ROI_POOL(site: Site, x: Tensor, rois: Tensor, oh: int, ow: int, scale: float) -> Run:
    """Corners are rounded, halves away from zero, and a region is one cell at least."""
    images, sizes = x.shape[0], x.shape[2:]

    def edges(first: float, last: float, count: int, size: int) -> list[tuple[int, int]]:
        step = np.float32(max(last - first + 1, 1)) / np.float32(count)
        ends = np.arange(count, dtype=np.float32)
        heads, tails = np.floor(ends * step) + first, np.ceil((ends + 1) * step) + first
        return [(int(a), int(b)) for a, b in zip(np.clip(heads, 0, size), np.clip(tails, 0, size), strict=True)]

    def run(out: Array, x: Array, rois: Array) -> None:
        if rois.size and not 0 <= rois[:, 0].min() <= rois[:, 0].max() < images:
            raise RunError(f"a region is of an image that is not in [0, {images})")
        for i, roi in enumerate(rois):
            x1, y1, x2, y2 = away(roi[1:].astype(np.float32) * np.float32(scale)).tolist()
            columns = edges(x1, x2, ow, sizes[1])
            for y, (top, bottom) in enumerate(edges(y1, y2, oh, sizes[0])):
                for z, (left, right) in enumerate(columns):
                    cell = x[int(roi[0]), :, top:bottom, left:right]
                    out[i, :, y, z] = cell.max((1, 2)) if cell.size else 0
    return run
