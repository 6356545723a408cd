"""Pools. What NNAPI's do not count is padding; where ONNX counts it, it is a PAD before."""
from __future__ import annotations

from dataclasses import replace
from math import prod, sqrt
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import conv, elementwise as e, image, pool_nd, reduce as r, shape
from ....schema import OpDef
from ....types import F16, F32, Q8, Q8S, Shape, known
from ..importer import Op
from ..registry import imports
from .norm import full
from .sliding import Sliding, as_before, as_plane, sized, sliding

FLOATS = (F32, F16)


def native(x: Value, s: Sliding, *types: Any) -> bool:
    """Whether NNAPI has a pool for this type and window."""
    small = all(a < k for a, k in zip(s.pads, s.kernel * 2, strict=True))
    return x.type in types and len(s.kernel) <= 2 and max(s.dilations) == 1 and small and min(s.pads) >= 0


def ended(s: Sliding, sizes: Shape, ceil: int) -> Sliding | None:
    """The window with as much padding at the end as those have that `ceil` cuts off; None where that is open."""
    if not ceil or max(s.strides) == 1:
        return s
    if s.scheme or not all(map(known, sizes)):
        return None
    axes = zip(sizes, s.kernel, s.strides, s.dilations, s.heads, s.tails, strict=True)
    counts = [pool_nd.positions(n, k, s_, d, h, t, True) for n, k, s_, d, h, t in axes]
    tails = [max(t, (c - 1) * k + r - n - h) for t, c, k, r, n, h in zip(
        s.tails, counts, s.strides, s.reach, sizes, s.heads, strict=True)]
    return s.ended(tuple(tails))


def pooled(g: Op, op: OpDef, x: Value, s: Sliding) -> Value:
    """One of NNAPI's pools over an image, or a row of cells."""
    p = s.plane
    return as_before(g, g(op, as_plane(g, x), **p.amounts, **p.steps, kw=p.kernel[1], kh=p.kernel[0], act=0,
                          nchw=True), x)


def stepwise(g: Op, op: OpDef, x: Value, s: Sliding) -> Value | None:
    """A pool over volumes as one over their layers, then one across them; None where that does not do.

    All windows of a layer have as many cells as those of the layers beside it, so the mean of means is the mean.
    """
    if len(s.kernel) != 3 or not all(map(known, x.shape[1:])):
        return None
    (n, c, layers, *sizes), across = x.shape, s.part(slice(1, 3))
    along = Sliding((s.kernel[0], 1), (s.strides[0], 1), (s.dilations[0], 1), (s.heads[0], 0), (s.tails[0], 0))
    if not native(x, across, *FLOATS) or not native(x, along, *FLOATS):
        return None
    out = s.out(x.shape[2:])
    flat = pooled(g, op, g.reshape(x, (n, c * layers, *sizes)), across)
    return g.reshape(pooled(g, op, g.reshape(flat, (n, c, layers, out[1] * out[2])), along), (n, c, *out))


def spaced(g: Op, x: Value, s: Sliding) -> Value | None:
    """The sum over a window with gaps, a convolution with ones; None where NNAPI's does not do."""
    if x.type not in FLOATS or len(s.kernel) > 2 or s.scheme or min(s.pads) < 0 or not known(x.shape[1]):
        return None
    p, channels = s.plane, x.shape[1]
    ones, none = (g.const(np.full(n, v, x.type.dtype), x.type) for n, v in (
        ((1, *p.kernel, channels), 1), (channels, 0)))
    made = g(conv.DEPTHWISE_CONV_2D, as_plane(g, x), ones, none, **p.amounts, **p.steps, mult=1, act=0, nchw=True,
             dw=p.dilations[1], dh=p.dilations[0])
    return as_before(g, made, x)


def counts(s: Sliding, sizes: Shape, tails: Shape, counted: bool) -> np.ndarray:
    """How many cells each window has, those of the padding up to `tails` among them where it is counted."""
    found = np.ones((), np.int64)
    for i, (n, out) in enumerate(zip(sizes, s.out(sizes), strict=True)):
        place = np.arange(out)[:, None] * s.strides[i] - s.heads[i] + np.arange(s.kernel[i]) * s.dilations[i]
        low, high = (-s.heads[i], n + tails[i]) if counted else (0, n)
        found = np.multiply.outer(found, ((place >= low) & (place < high)).sum(1))
    return found


def farthest(g: Op, x: Value, s: Sliding) -> Value | None:
    """The largest over a window with gaps, axis by axis, cell by cell; None where that does not do."""
    if x.type not in FLOATS or len(s.kernel) > 2 or s.scheme or min(s.pads) < 0 or not all(map(known, x.shape[2:])):
        return None
    if not counts(s, x.shape[2:], s.tails, False).all():
        return None
    if s.padded:
        x = g(shape.PAD_V2, x, [[0, 0], [0, 0], *map(list, zip(s.heads, s.tails, strict=True))], value=-np.inf)
    for i, (k, d, step, out) in enumerate(zip(s.kernel, s.dilations, s.strides, bare(s).out(x.shape[2:]), strict=True)):
        rank, axis = len(x.shape), i + 2
        rest = (1 << rank) - 1 - (1 << axis)
        cells = [g(shape.STRIDED_SLICE, x, *([v if j == axis else w for j in range(rank)] for v, w in (
            (at * d, 0), (at * d + (out - 1) * step + 1, 0), (step, 1))), begin_mask=rest, end_mask=rest, shrink_mask=0)
            for at in range(k)]
        x = cells[0]
        for cell in cells[1:]:
            x = g(e.MAXIMUM, x, cell)
    return x


def padded(g: Op, x: Value, s: Sliding) -> Value:
    """x with zeros around it that count."""
    if not s.padded:
        return x
    return g(shape.PAD, x, [[0, 0], [0, 0], *map(list, zip(s.heads, s.tails, strict=True))])


def bare(s: Sliding) -> Sliding:
    """The window without padding."""
    none = (0,) * len(s.kernel)
    return replace(s, heads=none, tails=none)


def over(s: Sliding) -> dict[str, Any]:
    """The window as pools over any axes take it."""
    return {"kernel": list(s.kernel), **s.nd}


@imports()
def MaxPool(g: Op, x: Value, *, kernel_shape: tuple[int, ...], auto_pad: str = "NOTSET", ceil_mode: int = 0,
            dilations: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None, storage_order: int = 0,
            strides: tuple[int, ...] | None = None) -> Any:
    s = sliding(g, x, kernel_shape, strides, dilations, pads, auto_pad)
    whole = ended(s, x.shape[2:], ceil_mode)
    if whole is not None and not g.wanted(1) and native(x, whole, *FLOATS, Q8, Q8S):
        return pooled(g, image.MAX_POOL_2D, x, whole)
    made = None if whole is None or g.wanted(1) else stepwise(g, image.MAX_POOL_2D, x, whole) if len(
        s.kernel) == 3 else farthest(g, x, whole)
    if made is not None:
        return made
    if s.scheme:
        g.unsupported("pads by a scheme that follows from open sizes", "give the input sizes")
    found = g.add(pool_nd.MAX_POOL_ND, x, ceil=bool(ceil_mode), column_major=storage_order == 1, **over(s))
    return found if g.count > 1 else found[0]


@imports(arithmetic=True)
def AveragePool(g: Op, x: Value, *, kernel_shape: tuple[int, ...], auto_pad: str = "NOTSET", ceil_mode: int = 0,
                count_include_pad: int = 0, dilations: tuple[int, ...] | None = None,
                pads: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Value:
    s = sliding(g, x, kernel_shape, strides, dilations, pads, auto_pad)
    whole, counted = ended(s, x.shape[2:], ceil_mode), bool(count_include_pad) and s.padded
    if s.scheme and (counted or not native(x, s, *FLOATS)):
        g.unsupported("pads by a scheme that follows from open sizes", "give the input sizes")
    if whole is not None and native(x, bare(whole) if counted else whole, *FLOATS):
        if not counted:
            return pooled(g, image.AVERAGE_POOL_2D, x, whole)
        rest = tuple(w - t for w, t in zip(whole.tails, s.tails, strict=True))
        if native(x, bare(s).ended(rest), *FLOATS):
            return pooled(g, image.AVERAGE_POOL_2D, padded(g, x, s), bare(s).ended(rest))
    made = None if whole is None or counted else stepwise(g, image.AVERAGE_POOL_2D, x, whole)
    if made is not None:
        return made
    if whole is not None and all(map(known, x.shape[2:])):
        total, cells = spaced(g, x, whole), counts(whole, x.shape[2:], s.tails, bool(count_include_pad))
        if total is not None and cells.all():
            return g(e.DIV, total, g.const(cells.reshape(1, 1, *cells.shape).astype(x.type.dtype), x.type), act=0)
    return g(pool_nd.AVERAGE_POOL_ND, x, ceil=bool(ceil_mode), counted=bool(count_include_pad), **over(s))


@imports(arithmetic=True)
def LpPool(g: Op, x: Value, *, kernel_shape: tuple[int, ...], auto_pad: str = "NOTSET", ceil_mode: int = 0,
           dilations: tuple[int, ...] | None = None, p: float = 2.0, pads: tuple[int, ...] | None = None,
           strides: tuple[int, ...] | None = None) -> Value:
    """NNAPI's is the root of a mean, ONNX's of a sum."""
    s = sliding(g, x, kernel_shape, strides, dilations, pads, auto_pad)
    whole = ended(s, x.shape[2:], ceil_mode)
    if s.scheme:
        g.unsupported("pads by a scheme that follows from open sizes", "give the input sizes")
    if whole is not None and p in (1, 2) and max(s.dilations) > 1:
        total = spaced(g, g(e.ABS, x) if p == 1 else g(e.MUL, x, x, act=0), whole)
        if total is not None:
            return total if p == 1 else g(e.SQRT, total)
    if whole is None or p not in (1, 2) or not native(x, bare(whole), *FLOATS):
        return g(pool_nd.LP_POOL_ND, x, ceil=bool(ceil_mode), p=float(p), **over(s))
    cells = prod(whole.kernel)
    found = padded(g, x if p == 2 else g(e.ABS, x), whole)
    made = pooled(g, image.L2_POOL_2D if p == 2 else image.AVERAGE_POOL_2D, found, bare(whole))
    return g(e.MUL, made, full(g, made, sqrt(cells) if p == 2 else cells), act=0)


def spatial(g: Op, x: Value) -> list[int]:
    """The axes behind the channels; raises `FormatError` where there are none."""
    if g.rank(x) < 3:
        raise FormatError(f"a tensor of rank {g.rank(x)} has no axes to pool over")
    return list(range(2, g.rank(x)))


@imports(arithmetic=True)
def GlobalAveragePool(g: Op, x: Value) -> Value:
    return g(r.MEAN, x, spatial(g, x), keep=1)


@imports(arithmetic=True)
def GlobalMaxPool(g: Op, x: Value) -> Value:
    return g(r.REDUCE_MAX, x, spatial(g, x), keep=True)


@imports(arithmetic=True)
def GlobalLpPool(g: Op, x: Value, *, p: float = 2.0) -> Value:
    if p == 2:
        return g(e.SQRT, g(r.REDUCE_SUM, g(e.MUL, x, x, act=0), spatial(g, x), keep=True))
    powers = g(e.ABS, x) if p == 1 else g(e.POW, g(e.ABS, x), full(g, x, p))
    total = g(r.REDUCE_SUM, powers, spatial(g, x), keep=True)
    return total if p == 1 else g(e.POW, total, full(g, total, 1 / p))


@imports(arithmetic=True)
def MaxRoiPool(g: Op, x: Value, rois: Value, *, pooled_shape: tuple[int, ...], spatial_scale: float = 1.0) -> Value:
    oh, ow = sized("pooled_shape", pooled_shape, 2, 1)
    return g(pool_nd.MAX_ROI_POOL, x, rois, oh=oh, ow=ow, scale=spatial_scale)


@imports()
def MaxUnpool(g: Op, x: Value, indices: Value, output_shape: Value | None = None, *, kernel_shape: tuple[int, ...],
              pads: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Value:
    """The indices count in the shape that the pool had before it; an output_shape may be larger."""
    s = sliding(g, x, kernel_shape, strides, None, pads, "NOTSET")
    inner = (*x.shape[:2], *((n - 1) * k + r - a - b for n, k, r, a, b in zip(
        x.shape[2:], s.strides, s.reach, s.heads, s.tails, strict=True)))
    if not all(map(known, inner)):
        g.unsupported("has open sizes", "give the input sizes")
    outer: Any = list(inner) if output_shape is None else g.index(output_shape)
    return g(pool_nd.UNPOOL_ND, x, indices, list(inner), outer)
