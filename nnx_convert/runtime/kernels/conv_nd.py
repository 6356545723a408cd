"""Convolutions over any number of axes: a matrix product for each tap of the kernel."""
from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ...ops import conv_nd as c
from ...types import Array, Shape, Tensor
from ..kernel import Run, Site, ints, kernel
from ..places import corners, weighted
from ..slides import Slide, computed_in


def biased(out: Array, sums: Array, b: Array | None) -> None:
    """Sums [n, c, *sizes] and a bias per channel as the output."""
    if b is not None:
        sums = sums + b.astype(sums.dtype).reshape(-1, *(1,) * (sums.ndim - 2))
    np.copyto(out, sums, casting="unsafe")


def convolved(parts: Iterator[Array], w: Array, groups: int, shape: Shape) -> Array:
    """The sum over taps of what each reads [n, c, *out] times the weights [units, c / groups, *kernel], as a shape."""
    units, depth = w.shape[:2]
    taps = w.reshape(groups, units // groups, depth, -1)
    total: Array | None = None
    for i, part in enumerate(parts):
        flat = part.reshape(len(part), groups, depth, -1)
        made = np.matmul(np.ascontiguousarray(taps[..., i]), flat)
        total = made if total is None else np.add(total, made, out=total)
    return np.zeros(shape, w.dtype) if total is None else total.reshape(shape)


@kernel(c.CONV_ND)
def CONV_ND(site: Site, x: Tensor, w: Tensor, b: Tensor | None, pads: Tensor, strides: Tensor, dilations: Tensor,
            groups: int) -> Run:
    slide, dtype, positions = Slide.of(w.shape[2:], pads, strides, dilations), computed_in(x), site.out.shape[2:]

    def run(out: Array, x: Array, w: Array, b: Array | None, *_: Array) -> None:
        padded = slide.padded(x, positions, dtype)
        parts = (slide.under(padded, tap, positions) for tap in slide.taps)
        biased(out, convolved(parts, w.astype(dtype, copy=False), groups, out.shape), b)
    return run


@kernel(c.TRANSPOSE_CONV_ND)
def TRANSPOSE_CONV_ND(site: Site, x: Tensor, w: Tensor, b: Tensor | None, pads: Tensor, strides: Tensor,
                      dilations: Tensor, groups: int) -> Run:
    slide, dtype = Slide.of(w.shape[2:], pads, strides, dilations), computed_in(x)
    positions, shape = x.shape[2:], site.out.shape

    def run(out: Array, x: Array, w: Array, b: Array | None, *_: Array) -> None:
        flat = x.astype(dtype, copy=False).reshape(x.shape[0], groups, x.shape[1] // groups, -1)
        taps = w.astype(dtype, copy=False).reshape(groups, flat.shape[2], w.shape[1], -1).transpose(3, 0, 2, 1)
        columns = (np.matmul(tap, flat).reshape(*shape[:2], *positions) for tap in taps)
        biased(out, slide.scattered(columns, shape, positions, dtype), b)
    return run


@kernel(c.COL2IM)
def COL2IM(site: Site, x: Tensor, sizes: Tensor, kernel: Tensor, pads: Tensor, strides: Tensor,
           dilations: Tensor) -> Run:
    slide, dtype, shape = Slide.of(ints(kernel), pads, strides, dilations), computed_in(x), site.out.shape
    positions = c.slid(shape[2:], slide.kernel, ints(pads), slide.strides, slide.dilations)

    def run(out: Array, x: Array, *_: Array) -> None:
        columns = x.reshape(*shape[:2], prod(slide.kernel), *positions)
        parts = (columns[:, :, i] for i in range(prod(slide.kernel)))
        np.copyto(out, slide.scattered(parts, shape, positions, dtype), casting="unsafe")
    return run


@kernel(c.DEFORM_CONV)
def DEFORM_CONV(site: Site, x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None, mask: Tensor | None, pads: Tensor,
                strides: Tensor, dilations: Tensor, groups: int, offset_groups: int) -> Run:
    """Zeros surround x, and a cell between them and it is interpolated."""
    slide, dtype, positions = Slide.of(w.shape[2:], pads, strides, dilations), computed_in(x), site.out.shape[2:]
    n, channels, cells = x.shape[0], x.shape[1], prod(w.shape[2:])
    rows, columns = (slide.starts(i, positions[i]) for i in range(2))

    def run(out: Array, x: Array, w: Array, offset: Array, b: Array | None, mask: Array | None, *_: Array) -> None:
        real = x.astype(dtype, copy=False).reshape(n * offset_groups, channels // offset_groups, *x.shape[2:])
        moved = offset.astype(dtype, copy=False).reshape(n * offset_groups, cells, 2, *positions)
        shares = None if mask is None else mask.astype(dtype).reshape(n * offset_groups, 1, cells, *positions)

        def read() -> Iterator[Array]:
            for i, (y, z) in enumerate(slide.taps):
                at = [moved[:, i, 0] + (rows + y * slide.dilations[0])[:, None],
                      moved[:, i, 1] + (columns + z * slide.dilations[1])]
                part = weighted(real, [corners(a) for a in at], "zeros", True)
                part = part if shares is None else part * shares[:, :, i]
                yield part.reshape(n, channels, *positions)
        biased(out, convolved(read(), w.astype(dtype, copy=False), groups, out.shape), b)
    return run
