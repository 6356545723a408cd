"""Pooling, resizing, and moving blocks between space, depth and batch."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import image
from ...types import Array, Tensor
from ..fixedpoint import activation_range, grid
from ..kernel import Run, Site, ints, kernel
from ..products import BOUNDS
from ..resize import bilinear, nearest
from ..windows import Taps, Window, put_padded, windows_of
from .conv import nhwc

Bounds = tuple[float | None, float | None]
#: Windows so few that each is reduced whole; otherwise tap by tap over all of them.
FEW = 4


def bounded(site: Site, act: int) -> Bounds:
    """The bounds of a fused activation in the output's own units."""
    return activation_range(act, site.out) if grid(site.out)[0] else BOUNDS[act]


def clipped(out: Array, bounds: Bounds) -> None:
    """Apply bounds in place."""
    if bounds != (None, None):
        np.clip(out, *bounds, out=out, casting="unsafe")


@frozen
class Pool:
    """How the cells of a window become one: `ufunc` over them in `sums`' type, then `finish(sums, cells, out)`.

    `work` is the type cells are read in, `fill` what stands for a cell that is not there; `cells` counts the
    others. `square` squares them first.
    """

    ufunc: np.ufunc
    work: Any
    sums: Any
    fill: float
    finish: Callable[[Array, Array, Array], None]
    square: bool = False


def pooled(site: Site, g: Window, pool: Pool) -> Run:
    """The run of a pool over NHWC images."""
    (n, _, _, c), (rows, columns) = g.image, g.out
    if 0 in site.out.shape:
        return lambda out, x: None
    few = rows * columns <= FEW
    taps, cells = Taps(g, c, 1), valid_cells(g).astype(pool.sums)
    band = rows if few else g.band_rows(c)
    site.scratch(g.padded if few else taps.shape, pool.work)
    site.scratch((band, columns, c), pool.sums)

    def run(out: Array, x: Array, held: Array, sums: Array) -> None:
        for i in range(n):
            if few:
                put_padded(held, x[i], g.pads[0], g.pads[2], pool.fill)
            else:
                taps.deal(held, x[i], pool.fill)
            if pool.square:
                np.square(held, out=held)
            for at in range(0, rows, band):
                to = out[i, at:at + band]
                part = sums[:len(to)]
                if few:
                    pool.ufunc.reduce(windows_of(held, g), axis=(2, 3), out=part, dtype=pool.sums)
                else:
                    folded(pool.ufunc, taps.each(held, at, len(to)), part)
                pool.finish(part, cells[at:at + band], to)
    return run


def folded(ufunc: np.ufunc, views: list[Array], out: Array) -> None:
    """out = ufunc over all views."""
    np.copyto(out, views[0])
    for v in views[1:]:
        ufunc(out, v, out=out)


def valid_cells(g: Window) -> Array:
    """How many cells of the image each window has: [rows, columns, 1], int32."""
    def along(size: int, head: int, axis: int) -> Array:
        starts = np.arange(g.out[axis]) * g.strides[axis] - head
        return np.minimum(starts + g.size[axis], size) - np.maximum(starts, 0)
    counts = along(g.image[1], g.pads[0], 0)[:, None] * along(g.image[2], g.pads[2], 1)
    return counts[..., None].astype(np.int32)


def pools(site: Site, x: Tensor, pads: tuple[int, int, int, int], strides: tuple[int, int], size: tuple[int, int],
          nchw: bool, pool: Pool) -> Run:
    """The run of a pool in either layout; pads are top, bottom, left, right."""
    return nhwc(site, x, nchw, lambda shape: pooled(site, Window(shape, size, strides, (1, 1), pads).met, pool))


@kernel(image.MAX_POOL_2D)
def MAX_POOL_2D(site: Site, x: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int, sh: int, kw: int, kh: int,
                act: int, nchw: bool) -> Run:
    dtype, bounds = x.type.dtype, bounded(site, act)
    least = -np.inf if dtype.kind == "f" else float(np.iinfo(dtype).min)

    def finish(sums: Array, _cells: Array, out: Array) -> None:
        np.copyto(out, sums)
        clipped(out, bounds)
    return pools(site, x, (pt, pb, pl, pr), (sh, sw), (kh, kw), nchw, Pool(np.maximum, dtype, dtype, least, finish))


@kernel(image.AVERAGE_POOL_2D)
def AVERAGE_POOL_2D(site: Site, x: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int, sh: int, kw: int, kh: int,
                    act: int, nchw: bool) -> Run:
    """The mean of the cells that are there; raw integers are summed and divided, halves away from zero."""
    dtype, bounds = x.type.dtype, bounded(site, act)

    def whole(sums: Array, cells: Array, out: Array) -> None:
        half = cells // 2
        mean = np.where(sums > 0, (sums + half) // cells, -((half - sums) // cells))
        np.copyto(out, np.clip(mean, *bounds), casting="unsafe")

    def real(sums: Array, cells: Array, out: Array) -> None:
        np.divide(sums, cells, out=sums)
        clipped(sums, bounds)
        np.copyto(out, sums, casting="unsafe")
    floats, integers = Pool(np.add, np.float32, np.float32, 0, real), Pool(np.add, dtype, np.int32, 0, whole)
    pool = floats if dtype.kind == "f" else integers
    return pools(site, x, (pt, pb, pl, pr), (sh, sw), (kh, kw), nchw, pool)


@kernel(image.L2_POOL_2D)
def L2_POOL_2D(site: Site, x: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int, sh: int, kw: int, kh: int,
               act: int, nchw: bool) -> Run:
    """The root of the mean of squares of the cells that are there."""
    bounds = bounded(site, act)

    def finish(sums: Array, cells: Array, out: Array) -> None:
        np.divide(sums, cells, out=sums)
        np.sqrt(sums, out=sums)
        clipped(sums, bounds)
        np.copyto(out, sums, casting="unsafe")
    pool = Pool(np.add, np.float32, np.float32, 0, finish, square=True)
    return pools(site, x, (pt, pb, pl, pr), (sh, sw), (kh, kw), nchw, pool)


@kernel(image.RESIZE_BILINEAR)
def RESIZE_BILINEAR(site: Site, x: Tensor, ow: int, oh: int, nchw: bool, align: bool, half: bool) -> Run:
    return nhwc(site, x, nchw, lambda size: bilinear(site, size, x.type.dtype, (oh, ow), align, half))


@kernel(image.RESIZE_NEAREST_NEIGHBOR)
def RESIZE_NEAREST_NEIGHBOR(site: Site, x: Tensor, ow: int, oh: int, nchw: bool, align: bool, half: bool) -> Run:
    return nhwc(site, x, nchw, lambda size: nearest(size, (oh, ow), align, half))


@kernel(image.DEPTH_TO_SPACE)
def DEPTH_TO_SPACE(site: Site, x: Tensor, block: int, nchw: bool) -> Run:
    def make(size: tuple[int, int, int, int]) -> Run:
        n, h, w, c = size

        def run(out: Array, x: Array) -> None:
            cells = x.reshape(n, h, w, block, block, c // (block * block))
            np.copyto(out.reshape(n, h, block, w, block, c // (block * block)), cells.transpose(0, 1, 3, 2, 4, 5))
        return run
    return nhwc(site, x, nchw, make)


@kernel(image.SPACE_TO_DEPTH)
def SPACE_TO_DEPTH(site: Site, x: Tensor, block: int, nchw: bool) -> Run:
    def make(size: tuple[int, int, int, int]) -> Run:
        n, h, w, c = size

        def run(out: Array, x: Array) -> None:
            cells = x.reshape(n, h // block, block, w // block, block, c)
            np.copyto(out.reshape(n, h // block, w // block, block, block, c), cells.transpose(0, 1, 3, 2, 4, 5))
        return run
    return nhwc(site, x, nchw, make)


@kernel(image.BATCH_TO_SPACE_ND)
def BATCH_TO_SPACE_ND(site: Site, x: Tensor, blocks: Tensor, nchw: bool) -> Run:
    bh, bw = ints(blocks)

    def make(size: tuple[int, int, int, int]) -> Run:
        n, h, w, c = size

        def run(out: Array, x: Array, _blocks: Array) -> None:
            cells = x.reshape(bh, bw, n // (bh * bw), h, w, c)
            np.copyto(out.reshape(n // (bh * bw), h, bh, w, bw, c), cells.transpose(2, 3, 0, 4, 1, 5))
        return run
    return nhwc(site, x, nchw, make)


@kernel(image.SPACE_TO_BATCH_ND)
def SPACE_TO_BATCH_ND(site: Site, x: Tensor, blocks: Tensor, pads: Tensor, nchw: bool) -> Run:
    (bh, bw), (top, bottom, left, right) = ints(blocks), ints(pads)

    def make(size: tuple[int, int, int, int]) -> Run:
        n, h, w, c = size
        padded = (n, h + top + bottom, w + left + right, c)
        site.scratch(padded, x.type.dtype)

        def run(out: Array, x: Array, _blocks: Array, _pads: Array, held: Array) -> None:
            for i in range(n):
                put_padded(held[i], x[i], top, left, grid(site.out)[1])
            cells = held.reshape(n, padded[1] // bh, bh, padded[2] // bw, bw, c)
            np.copyto(out.reshape(bh, bw, n, padded[1] // bh, padded[2] // bw, c), cells.transpose(2, 4, 0, 1, 3, 5))
        return run
    return nhwc(site, x, nchw, make)
