"""Sizes, diagonals, windows, segments, elements by their index: what NNAPI has no operation for."""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...errors import RunError
from ...ops import host_arrays as h
from ...ops.sparse import LARGEST
from ...schema import OpDef
from ...types import Array, Tensor
from ..boxes import Verdict, suppressed
from ..fixedpoint import f32
from ..given import objects
from ..kernel import Compute, Run, Site, kernel, sized
from .elementwise import clamp
from .gather import within
from .host import tuples
from .image import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
from .reduce import best

I64 = np.int64
#: What a window is folded by, by TFLite's code.
FOLDS: dict[int, np.ufunc] = {h.SUM: np.add, h.PRODUCT: np.multiply, h.LEAST: np.minimum, h.MOST: np.maximum,
                              h.EVERY: np.logical_and, h.ANY: np.logical_or}


def bearable(count: int) -> int:
    """A number of elements that values ask for; raises `RunError` where that is beyond sense."""
    if count > LARGEST:
        raise RunError(f"{count} elements are asked for")
    return count


@kernel(h.SHAPE, hollow=True)
def SHAPE(site: Site, x: Tensor) -> Run:
    sizes = x.shape
    return lambda out, x: np.copyto(out, sizes)


@sized(h.RANGE)
def RANGE(site: Site, start: Tensor, limit: Tensor, delta: Tensor) -> Compute:
    """Each number is the one before it and delta, so that floats are rounded as in TFLite."""
    def run(start: Array, limit: Array, delta: Array) -> list[Array]:
        first, last, step = (v.item() for v in (start, limit, delta))
        if not step or (last - first) / step < 0:
            raise RunError(f"counts from {first} to {last} by {step}")
        steps = np.full(bearable(int(np.ceil((last - first) / step))), step, start.dtype)
        steps[:1] = first
        return [np.add.accumulate(steps, dtype=start.dtype)]
    return run


@sized(h.TOPK)
def TOPK(site: Site, x: Tensor, k: Tensor) -> Compute:
    found = partial(best, site, x, first=True)

    def run(x: Array, k: Array) -> list[Array]:
        count = int(k.item())
        if not 0 <= count <= x.shape[-1]:
            raise RunError(f"the {count} largest of {x.shape[-1]}")
        made = np.empty((*x.shape[:-1], count), x.dtype), np.empty((*x.shape[:-1], count), np.int32)
        found(k=count)(*made, x)
        return list(made)
    return run


@sized(h.UNIQUE)
def UNIQUE(site: Site, x: Tensor) -> Compute:
    def run(x: Array) -> list[Array]:
        _, first, which = np.unique(x, return_index=True, return_inverse=True, equal_nan=False)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return [x[first[order]], place[which].astype(np.int32)]
    return run


@kernel(h.MATRIX_DIAG)
def MATRIX_DIAG(site: Site, x: Tensor) -> Run:
    def run(out: Array, x: Array) -> None:
        out.fill(0)
        on_diagonal(out)[...] = x
    return run


@kernel(h.MATRIX_SET_DIAG)
def MATRIX_SET_DIAG(site: Site, x: Tensor, diagonal: Tensor) -> Run:
    def run(out: Array, x: Array, diagonal: Array) -> None:
        np.copyto(out, x)
        on_diagonal(out)[...] = diagonal
    return run


def on_diagonal(x: Array) -> Array:
    """A view of the diagonals of matrices."""
    least = min(x.shape[-2:])
    found: Array = np.einsum("...ii->...i", x[..., :least, :least])
    return found


@kernel(h.REVERSE_SEQUENCE)
def REVERSE_SEQUENCE(site: Site, x: Tensor, lengths: Tensor, axis: int, batch: int) -> Run:
    size = x.shape[axis]
    at = [-1 if i == axis else 1 for i in range(x.rank)], [-1 if i == batch else 1 for i in range(x.rank)]
    ramp = np.arange(size).reshape(at[0])

    def run(out: Array, x: Array, lengths: Array) -> None:
        if ((lengths < 0) | (lengths > size)).any():
            raise RunError(f"a length is not in [0, {size}]")
        ends = lengths.astype(I64).reshape(at[1])
        np.copyto(out, np.take_along_axis(x, np.where(ramp < ends, ends - 1 - ramp, ramp), axis))
    return run


@kernel(h.DYNAMIC_UPDATE_SLICE)
def DYNAMIC_UPDATE_SLICE(site: Site, x: Tensor, update: Tensor, start: Tensor) -> Run:
    room = np.subtract(x.shape, update.shape)

    def run(out: Array, x: Array, update: Array, start: Array) -> None:
        first = np.clip(start, 0, room)
        np.copyto(out, x)
        out[tuple(slice(int(a), int(a) + n) for a, n in zip(first, update.shape, strict=True))] = update
    return run


@kernel(h.DILATE)
def DILATE(site: Site, x: Tensor, dilations: Tensor, value: Tensor) -> Run:
    def run(out: Array, x: Array, dilations: Array, value: Array) -> None:
        out.fill(value.item())
        out[tuple(slice(None, None, int(d)) for d in dilations)] = x
    return run


@kernel(h.REDUCE_WINDOW)
def REDUCE_WINDOW(site: Site, x: Tensor, start: Tensor, sizes: Tensor, strides: Tensor, dilations: Tensor,
                  function: int) -> Run:
    fold, rank = FOLDS[function], x.rank
    reach = [(k - 1) * d + 1 for k, d in zip(sizes.ints(), dilations.ints(), strict=True)]
    cut = (*(slice(None, None, s) for s in strides.ints()), *(slice(None, None, d) for d in dilations.ints()))

    def run(out: Array, x: Array, start: Array, *_: Array) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(x, reach)[cut]
        found = fold.reduce(windows, axis=tuple(range(rank, 2 * rank)), dtype=None if x.dtype == bool else x.dtype)
        np.copyto(out, fold(found, start.item()), casting="unsafe")
    return run


@kernel(h.SPARSE_TO_DENSE)
def SPARSE_TO_DENSE(site: Site, indices: Tensor, shape: Tensor, values: Tensor, default: Tensor) -> Run:
    """Of several values for one element the last one stays."""
    full = site.out.shape

    def run(out: Array, indices: Array, shape: Array, values: Array, default: Array) -> None:
        out.fill(default.item())
        out[tuples(indices if indices.ndim > 1 else indices.reshape(-1, 1), full)] = values
    return run


@kernel(h.EMBEDDING_LOOKUP_SPARSE)
def EMBEDDING_LOOKUP_SPARSE(site: Site, lookups: Tensor, indices: Tensor, shape: Tensor, weights: Tensor,
                            values: Tensor, combiner: int) -> Run:
    size, full, wide = values.shape[0], site.out.shape, values.rank - 1

    def run(out: Array, lookups: Array, indices: Array, shape: Array, weights: Array, values: Array) -> None:
        within(lookups, size)
        at = tuples(indices[:, :-1], full)
        out.fill(0)
        np.add.at(out, at, values[lookups] * weights.reshape(-1, *[1] * wide))
        if combiner != h.BAG_SUM:
            total = np.zeros(full[:len(at)], weights.dtype)
            np.add.at(total, at, weights if combiner == h.BAG_MEAN else weights * weights)
            total = total if combiner == h.BAG_MEAN else np.sqrt(total)
            np.divide(out, total.reshape(*total.shape, *[1] * wide), out=out, where=(total != 0).reshape(
                *total.shape, *[1] * wide))
    return run


def _segments(op: OpDef, fold: np.ufunc, start: Any) -> None:
    """`start`: of the type, what a segment without rows is; `lowest` and `highest` are the type's own."""
    @kernel(op)
    def prepare(site: Site, x: Tensor, ids: Tensor, count: Tensor) -> Run:
        dtype, total = x.type.dtype, site.out.shape[0]
        ends = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        first = {"lowest": ends.min, "highest": ends.max}.get(start, start)

        def run(out: Array, x: Array, ids: Array, count: Array) -> None:
            out.fill(first)
            used = ids >= 0
            within(ids[used], total)
            fold.at(out, ids[used], x[used])
        return run


_segments(h.UNSORTED_SEGMENT_SUM, np.add, 0)
_segments(h.UNSORTED_SEGMENT_PROD, np.multiply, 1)
_segments(h.UNSORTED_SEGMENT_MAX, np.maximum, "lowest")
_segments(h.UNSORTED_SEGMENT_MIN, np.minimum, "highest")


@kernel(h.CONV_3D_TRANSPOSE)
def CONV_3D_TRANSPOSE(site: Site, shape: Tensor, w: Tensor, x: Tensor, b: Tensor | None, scheme: int, sd: int,
                      sh: int, sw: int, act: int) -> Run:
    """One matrix product per tap of the filter, added where it falls."""
    full, taps, strides = site.out.shape, w.shape[:3], (sd, sh, sw)
    cuts = h.edges(full[1:4], taps, strides, scheme)
    reach = [max((n - 1) * s + k, m + p[0]) for n, k, s, m, p in
             zip(x.shape[1:4], taps, strides, full[1:4], cuts, strict=True)]
    inner = (slice(None), *(slice(p[0], p[0] + n) for p, n in zip(cuts, full[1:4], strict=True)))
    counts = x.shape[1:4]

    def run(out: Array, shape: Array, w: Array, x: Array, b: Array | None) -> None:
        made = np.zeros((full[0], *reach, full[4]), f32)
        for tap in np.ndindex(*taps):
            where = (slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(tap, counts, strides, strict=True))
            made[(slice(None), *where)] += x @ w[tap].T
        total = made[inner] if b is None else made[inner] + b
        np.copyto(out, total, casting="unsafe")
        clamp(out, act)
    return run


@sized(h.NON_MAX_SUPPRESSION)
def NON_MAX_SUPPRESSION(site: Site, boxes: Tensor, scores: Tensor, most: Tensor, iou_threshold: Tensor,
                        score_threshold: Tensor, sigma: Tensor) -> Compute:
    """Corners of a box may come in either order; among equal scores the first box is first."""
    def run(boxes: Array, scores: Array, most: Array, iou: Array, least: Array, sigma: Array) -> list[Array]:
        count = bearable(int(most.item()))
        corners = np.concatenate((np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])), 1)
        index = np.flatnonzero(scores > least.item())
        picked, left = suppressed(scores[index], corners[index], count, fading(iou.item(), least.item(), sigma.item()))
        made = np.zeros(count, np.int32), np.zeros(count, f32), np.array([len(picked)], np.int32)
        made[0][:len(picked)], made[1][:len(picked)] = index[picked], left
        return list(made)
    return run


def fading(iou: float, least: float, sigma: float) -> Verdict:
    """A box that overlaps by `iou` or more goes; with a sigma, others fade, and go at the least score."""
    def verdict(overlap: Array, scores: Array) -> tuple[Array, Array]:
        stays = overlap < f32(iou)
        if not sigma:
            return scores, stays
        faded = scores * np.exp(f32(-0.5 / sigma) * overlap * overlap)
        return faded, stays & (faded > f32(least))
    return verdict


@sized(h.RESIZE)
def RESIZE(site: Site, x: Tensor, size: Tensor, nearest: bool, align: bool, half: bool) -> Compute:
    prepare = RESIZE_NEAREST_NEIGHBOR if nearest else RESIZE_BILINEAR

    def run(image: Array, size: Array) -> list[Array]:
        height, width = size.tolist()
        if min(height, width) <= 0:
            raise RunError(f"an image of {height} by {width}")
        bearable(x.shape[0] * x.shape[3] * height * width)
        out = Tensor(site.out.type, (x.shape[0], height, width, x.shape[3]), site.out.quant)
        inner, made = Site((out,), site.threads, site.relaxed), np.empty(out.shape, out.type.dtype)
        resize = prepare(inner, x, width, height, False, align, half)
        resize(made, image, *(np.empty(shape, kind) for shape, kind in inner.buffers))
        return [made]
    return run


@sized(h.SKIP_GRAM)
def SKIP_GRAM(site: Site, x: Tensor, size: int, skip: int, every: bool) -> Compute:
    def runs(words: list[bytes], at: tuple[int, ...]) -> Iterator[bytes]:
        """The runs that begin with the words at these places."""
        if len(at) < size:
            for n in range(at[-1] + 1, min(at[-1] + skip + 2, len(words))):
                yield from runs(words, (*at, n))
        if every or len(at) == size:
            yield b" ".join(words[i] for i in at)

    def run(x: Array) -> list[Array]:
        words = x[0].split()
        found = [g for n in range(len(words)) for g in runs(words, (n,))] if len(words) >= size else []
        return [objects(found)]
    return run
