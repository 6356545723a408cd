"""Reduction and search along axes."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...ops import reduce as r
from ...schema import OpDef
from ...types import Array, Shape, Tensor
from ..fixedpoint import grid, limits, multiplier, scale32, scale64, wrap32
from ..kernel import Run, Site, ints, kernel
from . import quantized as q
from .tables import on_grid

I64 = np.int64
#: From the sums along the axes (kept with size 1), and the number summed, to the output.
Finish = Callable[[Array, Array, int], None]


def kept(x: Tensor, axes: Tensor) -> tuple[tuple[int, ...], Shape, int]:
    """The axes, ascending; x's shape with them at 1; how many elements each output is made from."""
    found = tuple(sorted({a % x.rank for a in ints(axes)}))
    shape = tuple(1 if i in found else n for i, n in enumerate(x.shape))
    return found, shape, prod(x.shape[a] for a in found)


def summed(x: Array, axes: tuple[int, ...], kind: type | None = None) -> Array:
    """The sums along axes, which stay with size 1."""
    return np.asarray(np.add.reduce(x, axis=axes, dtype=kind, keepdims=True))


@kernel(r.MEAN)
def MEAN(site: Site, x: Tensor, axes: Tensor, keep: int) -> Run:
    """Integers that stand for themselves round toward zero."""
    over, shape, n = kept(x, axes)
    if on_grid(x) and on_grid(site.out):
        return _quantised_sum(site, x, over, shape, n, mean=True)
    kind = x.type.dtype

    def run(out: Array, x: Array, axes: Array) -> None:
        to = out.reshape(shape)
        if kind.kind in "iu":
            total = summed(x, over, I64)
            np.copyto(to, np.sign(total) * (abs(total) // max(n, 1)), casting="unsafe")
        elif kind == np.float16:
            np.copyto(to, summed(x, over, np.float32) / np.float32(n), casting="unsafe")
        else:
            np.add.reduce(x, axis=over, out=to, keepdims=True)
            np.divide(to, n, out=to)
    return run


def _quantised_sum(site: Site, x: Tensor, over: tuple[int, ...], shape: Shape, n: int, mean: bool) -> Run:
    """SUM, or MEAN with the division in the multiplier, as LiteRT folds it there."""
    (sx, zx), (so, _) = grid(x), grid(site.out)
    m, s = multiplier(float(sx) / float(so))
    if mean and n:
        shift = min(n.bit_length() - 1, 32, 31 + s)
        m, s = (m << shift) // n, s - shift
    finish = q.clamped(site.out, *limits(site.out))

    def run(out: Array, x: Array, axes: Array) -> None:
        total = summed(x, over, I64) - zx * n
        np.copyto(out.reshape(shape), finish(scale32(wrap32(total), m, s)))
    return run


@kernel(r.REDUCE_SUM)
def REDUCE_SUM(site: Site, x: Tensor, axes: Tensor, keep: bool) -> Run:
    """Integers wrap."""
    over, shape, n = kept(x, axes)
    if on_grid(x) and on_grid(site.out):
        return _quantised_sum(site, x, over, shape, n, mean=False)
    return _by_ufunc(x, over, shape, np.add)


def _by_ufunc(x: Tensor, over: tuple[int, ...], shape: Shape, function: np.ufunc) -> Run:
    """A reduction in the tensor's own type, float16 in float32."""
    dtype = x.type.dtype

    def run(out: Array, x: Array, *axes: Array) -> None:
        to = out.reshape(shape)
        if dtype == np.float16:
            np.copyto(to, function.reduce(x.astype(np.float32), axis=over, keepdims=True), casting="unsafe")
        else:
            function.reduce(x, axis=over, dtype=dtype, out=to, keepdims=True)
    return run


@kernel(r.REDUCE_PROD)
def REDUCE_PROD(site: Site, x: Tensor, axes: Tensor, keep: bool) -> Run:
    over, shape, n = kept(x, axes)
    if not (on_grid(x) and on_grid(site.out)):
        return _by_ufunc(x, over, shape, np.multiply)
    (sx, zx), (so, _) = grid(x), grid(site.out)
    m, s = multiplier(float(sx) / float(so) ** (1.0 / max(n, 1)))
    finish = q.clamped(site.out, *limits(site.out))

    def run(out: Array, x: Array, axes: Array) -> None:
        # One factor at a time, rescaled after each: that is LiteRT's definition of the result.
        rows = np.moveaxis(x.astype(I64) - zx, over, range(len(over)))
        rows = rows.reshape(n, *rows.shape[len(over):])
        total = rows[0] if n else np.ones(rows.shape[1:], I64)
        for row in rows[1:]:
            total = scale64(total * row, m, s)
        np.copyto(out.reshape(shape), finish(scale64(total, m, s)).reshape(shape))
    return run


def extreme_along(site: Site, x: Tensor, over: tuple[int, ...], shape: Shape, largest: bool) -> Run:
    """`run(out, x, ...)`: the largest or smallest over axes; what is no number does not count, as in TFLite."""
    dtype = x.type.dtype
    info = np.finfo(dtype) if dtype.kind == "f" else None if dtype.kind == "b" else np.iinfo(dtype)
    function = (np.fmax if largest else np.fmin) if info is not None and dtype.kind == "f" else (
        np.maximum if largest else np.minimum)
    start = (info.min if largest else info.max) if info is not None else not largest
    if dtype.kind == "f":
        start = -np.inf if largest else np.inf
    move = q.moved(x, site.out) if on_grid(x) and on_grid(site.out) and x.quant != site.out.quant else None

    def run(out: Array, x: Array, *axes: Array) -> None:
        if move:
            np.copyto(out.reshape(shape), move(function.reduce(x, axis=over, keepdims=True, initial=start)))
        else:
            function.reduce(x, axis=over, out=out.reshape(shape), keepdims=True, initial=start)
    return run


@kernel(r.REDUCE_MAX)
def REDUCE_MAX(site: Site, x: Tensor, axes: Tensor, keep: bool) -> Run:
    return extreme_along(site, x, *kept(x, axes)[:2], largest=True)


@kernel(r.REDUCE_MIN)
def REDUCE_MIN(site: Site, x: Tensor, axes: Tensor, keep: bool) -> Run:
    return extreme_along(site, x, *kept(x, axes)[:2], largest=False)


def _logical(op: OpDef, function: np.ufunc) -> None:
    @kernel(op)
    def prepare(site: Site, x: Tensor, axes: Tensor, keep: bool) -> Run:
        over, shape, _ = kept(x, axes)

        def run(out: Array, x: Array, axes: Array) -> None:
            function.reduce(x, axis=over, out=out.reshape(shape), keepdims=True)
        return run


_logical(r.REDUCE_ALL, np.logical_and)
_logical(r.REDUCE_ANY, np.logical_or)


def _search(op: OpDef, find: Callable[..., Array], worst: float) -> None:
    """The first extreme along an axis; TFLite passes over what is not a number."""
    @kernel(op)
    def prepare(site: Site, x: Tensor, axis: int) -> Run:
        shape = site.out.shape

        def run(out: Array, x: Array) -> None:
            at = find(x, axis=axis, keepdims=True)
            if x.dtype.kind == "f" and np.isnan(np.take_along_axis(x, at, axis)).any():
                at = find(np.where(np.isnan(x), x.dtype.type(worst), x), axis=axis, keepdims=True)
            np.copyto(out, at.reshape(shape), casting="unsafe")
        return run


_search(r.ARGMAX, np.argmax, -np.inf)
_search(r.ARGMIN, np.argmin, np.inf)


def best(site: Site, x: Tensor, k: int, first: bool) -> Run:
    """The k largest along the last axis; among equals the smaller index first, or the larger one.

    What is not a number comes last, as it does in TFLite's heap.
    """
    def run(values: Array, indices: Array, x: Array) -> None:
        rows = x[..., ::-1] if first else x
        if x.dtype.kind == "f":
            rows = np.where(np.isnan(rows), x.dtype.type(-np.inf), rows)
        at = np.argsort(rows, axis=-1, kind="stable")[..., :x.shape[-1] - k - 1 if k < x.shape[-1] else None:-1]
        at = x.shape[-1] - 1 - at if first else at
        np.copyto(values, np.take_along_axis(x, at, -1))
        np.copyto(indices, at, casting="unsafe")
    return run


@kernel(r.TOPK_V2)
def TOPK_V2(site: Site, x: Tensor, k: int) -> Run:
    return best(site, x, k, first=False)
