"""Reading images between their cells, regions and boxes."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import RunError
from ...ops import sampling as s
from ...types import Array, Shape, Tensor
from ..images import grey, pixels
from ..interpolation import Axis, Way
from ..kernel import Compute, Run, Site, ints, kernel, sized
from ..places import Along, corners, cubic, ends, nearest, reflected, weighted
from ..slides import computed_in
from .host_arrays import bearable

#: Boxes that are compared at a time.
BLOCK = 64


def saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Real numbers as elements of a type: rounded, halves to even, and brought into its range."""
    if dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.round(x), info.min, info.max).astype(dtype)


def real(x: Array) -> Array:
    """x in a type to interpolate in."""
    return x.astype(np.float32 if x.dtype == np.float16 else np.float64) if x.dtype.kind in "iub" or \
        x.dtype == np.float16 else x


@sized(s.INTERPOLATE)
def INTERPOLATE(site: Site, x: Tensor, roi: Tensor | None, scales: Tensor | None, sizes: Tensor | None, axes: Tensor,
                mode: int, grid: int, rounding: int, policy: int, a: float, inside: bool, extrapolation: float,
                smooth: bool) -> Compute:
    where, way = ints(axes), Way(mode, grid, rounding, a, inside, extrapolation, smooth)

    def run(x: Array, roi: Array | None, scales: Array | None, sizes: Array | None, _axes: Array) -> list[Array]:
        old = tuple(x.shape[i] for i in where)
        new, factors = grown(old, scales, sizes, policy)
        bearable(int(np.prod([*(n for i, n in enumerate(x.shape) if i not in where), *new])))
        parts = [(0.0, 1.0)] * len(where) if roi is None or not roi.size else list(zip(
            roi[:len(where)].tolist(), roi[len(where):].tolist(), strict=True))
        found = x if mode == s.NEAREST else real(x)
        for at, n, out, factor, part in zip(where, old, new, factors, parts, strict=True):
            axis = Axis(n, out, factor, part if grid == s.CROPPED else (0.0, 1.0))
            found = found if axis.same else way.along(found, at, axis)
        return [found if found.dtype == x.dtype else saturated(found, x.dtype)]
    return run


def grown(old: Shape, scales: Array | None, sizes: Array | None, policy: int) -> tuple[Shape, tuple[float, ...]]:
    """The new sizes of axes, and by which factors they grow; raises `RunError` on what is no size or factor."""
    wanted: Shape = ()
    if sizes is not None:
        wanted = tuple(int(n) for n in sizes.reshape(-1))
        if min(wanted, default=0) < 0 or 0 in old:
            raise RunError(f"sizes {list(old)} become {list(wanted)}")
        if scales is None:
            return s.kept(old, wanted, policy)
    assert scales is not None
    factors = tuple(float(f) for f in scales.reshape(-1))
    if not all(0 < f < np.inf for f in factors):
        raise RunError(f"scales are {list(factors)}")
    if sizes is not None:
        return wanted, factors
    return tuple(s.scaled(n, f) for n, f in zip(old, factors, strict=True)), factors


@kernel(s.GRID_SAMPLE)
def GRID_SAMPLE(site: Site, x: Tensor, grid: Tensor, mode: int, outside: int, align: bool) -> Run:
    """Source: `onnx.reference.ops.op_grid_sample`; cubic at the border as in PyTorch and ONNX Runtime, cell by cell."""
    said, sizes = s.OUTSIDE[outside], x.shape[2:]

    def along(at: Array, size: int) -> Along:
        kind = at.dtype.type
        at = (at + kind(1)) / kind(2) * kind(size - 1) if align else ((at + kind(1)) * kind(size) - kind(1)) / kind(2)
        at = np.rint(at) if mode == s.NEAREST else at
        low, high = ends(size, align)
        if said == "border" and mode != s.CUBIC:
            at = np.where((at < low) | (at > high), np.clip(at, 0, size - 1), at)
        elif said == "reflection":
            at = reflected(at, low, high)
        return [nearest, corners, cubic][mode](at)

    def run(out: Array, x: Array, grid: Array) -> None:
        places = grid.astype(computed_in(site.out) if grid.dtype == np.float16 else grid.dtype)
        image = x if mode == s.NEAREST else real(x)
        found = weighted(image, [along(places[..., -1 - i], n) for i, n in enumerate(sizes)], said, align)
        np.copyto(out, saturated(found, out.dtype), casting="unsafe")
    return run


@kernel(s.ROI_ALIGN_ND)
def ROI_ALIGN_ND(site: Site, x: Tensor, rois: Tensor, batch: Tensor, oh: int, ow: int, scale: float, samples: int,
                 half: bool, largest: bool) -> Run:
    """A region's samples lie on a grid, so each axis has its own cells and shares."""
    dtype, sizes = computed_in(x), x.shape[2:]

    def samples_of(start: Any, end: Any, count: int, size: int) -> tuple[list[Array], list[Array], int]:
        """The cells below and above each sample, their shares, and how many samples an output cell has."""
        length = end - start if half else np.maximum(end - start, dtype.type(1))
        step = length / dtype.type(count)
        each = samples or max(int(np.ceil(step)), 0)
        within = (np.arange(each, dtype=dtype) + dtype.type(0.5)) * step / dtype.type(max(each, 1))
        at = (start + np.arange(count, dtype=dtype)[:, None] * step + within).reshape(-1)
        there = (at >= -1) & (at <= size)
        low = np.clip(np.trunc(np.maximum(at, 0)), 0, size - 1).astype(np.int64)
        share = np.where(low >= size - 1, 0, np.maximum(at, 0) - low).astype(dtype)
        return [low, np.minimum(low + 1, size - 1)], [(1 - share) * there, share * there], each

    def cut(image: Array, roi: Array, plain: bool) -> Array:
        x1, y1, x2, y2 = roi.astype(dtype) * dtype.type(scale) - dtype.type(0.5 if half else 0)
        rows, down, high = samples_of(y1, y2, oh, sizes[0])
        columns, along, wide = samples_of(x1, x2, ow, sizes[1])
        if not high or not wide:
            return np.zeros((len(image), oh, ow), dtype)
        if plain and not largest:
            return averaged(image, (rows, down, oh), (columns, along, ow))
        corner = [image[:, r][:, :, c] * (p[:, None] * q) for r, p in zip(rows, down, strict=True)
                  for c, q in zip(columns, along, strict=True)]
        found = np.maximum.reduce(corner) if largest else np.add.reduce(corner)
        cells = found.reshape(len(image), oh, high, ow, wide)
        return np.asarray(cells.max((2, 4)) if largest else cells.mean((2, 4)))

    def run(out: Array, x: Array, rois: Array, batch: Array) -> None:
        if batch.size and not 0 <= batch.min() <= batch.max() < len(x):
            raise RunError(f"a region is of an image that is not in [0, {len(x)})")
        plain = bool(np.isfinite(x).all())
        for to, roi, i in zip(out, rois, batch.reshape(-1).tolist(), strict=True):
            np.copyto(to, cut(x[i].astype(dtype, copy=False), roi, plain), casting="unsafe")
    return run


#: Along an axis: the cells below and above each sample, their shares, and how many cells come out.
Samples = tuple[list[Array], list[Array], int]


def averaged(image: Array, down: Samples, across: Samples) -> Array:
    """The means of the samples of each cell, the same number of them: [c, rows, columns]."""
    reach = [(int(cells[0].min()), int(cells[1].max()) + 1) for cells, _, _ in (down, across)]
    rows, columns = (averaging([c - low for c in cells], shares, count, high - low)
                     for (cells, shares, count), (low, high) in zip((down, across), reach, strict=True))
    part = image[:, slice(*reach[0]), slice(*reach[1])]
    return np.tensordot(np.tensordot(part, columns, (2, 1)), rows, (1, 1)).swapaxes(1, 2)


def averaging(cells: list[Array], shares: list[Array], count: int, size: int) -> Array:
    """The matrix [count, size] whose rows weigh the cells that samples read, equally many for each."""
    each = len(cells[0]) // count
    made = np.zeros((count, size), shares[0].dtype)
    for where, share in zip(cells, shares, strict=True):
        np.add.at(made, (np.arange(count).repeat(each), where), share / each)
    return made


@sized(s.SELECT_BOXES)
def SELECT_BOXES(site: Site, boxes: Tensor, scores: Tensor, most: Tensor | None, iou_threshold: Tensor | None,
                 score_threshold: Tensor | None, centred: bool) -> Compute:
    """Among equal scores the first box is best; none is taken where `most` is left out."""
    def run(boxes: Array, scores: Array, most: Array | None, iou: Array | None, least: Array | None) -> list[Array]:
        limit = 0 if most is None or not most.size else max(int(most.item()), 0)
        overlap = 0.0 if iou is None or not iou.size else float(iou.item())
        floor = None if least is None or not least.size else least.item()
        places_of = (edges(b, centred) for b in boxes)
        found = [(n, k, i) for n, (of_image, places) in enumerate(zip(scores, places_of, strict=True))
                 for k, row in enumerate(of_image) for i in chosen(places, row, limit, overlap, floor)]
        return [np.array(found, np.int64).reshape(-1, 3)]
    return run


def edges(boxes: Array, centred: bool) -> Array:
    """Boxes as two opposite corners, the lesser first: [boxes, 4]."""
    if centred:
        x, y, w, h = boxes.T
        return np.stack((x - w / 2, y - h / 2, x + w / 2, y + h / 2), 1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), 1)


def chosen(boxes: Array, scores: Array, most: int, overlap: float, least: float | None) -> list[int]:
    """The boxes of one class that are kept, best first: a block of candidates at a time."""
    there = np.arange(len(scores)) if least is None else np.flatnonzero(scores > least)
    order, kept = there[np.argsort(-scores[there], kind="stable")], list[int]()
    for at in range(0, len(order), BLOCK):
        if len(kept) >= most:
            break
        block = order[at:at + BLOCK]
        free = np.asarray(~overlapping(boxes[block], boxes[kept], overlap).any(1))
        among = overlapping(boxes[block], boxes[block], overlap)
        for i in np.flatnonzero(free).tolist():
            if free[i]:
                kept.append(int(block[i]))
                free &= ~among[i]
    return kept[:most]


def overlapping(a: Array, b: Array, limit: float) -> Array:
    """Which pairs of boxes share more than a part of what they cover together: [boxes of a, boxes of b]."""
    sides = np.minimum(a[:, None, 2:], b[:, 2:]) - np.maximum(a[:, None, :2], b[:, :2])
    shared = np.where((sides > 0).all(2), sides[..., 0] * sides[..., 1], 0)
    first, second = ((v[:, 2] - v[:, 0]) * (v[:, 3] - v[:, 1]) for v in (a, b))
    union = first[:, None] + second - shared
    valid = (shared > 0) & (first[:, None] > 0) & (second > 0) & (union > 0)
    return np.asarray(valid & (shared / np.where(valid, union, 1) > a.dtype.type(limit)))


@kernel(s.DROPOUT)
def DROPOUT(site: Site, x: Tensor, ratio: Tensor, training: Tensor, seed: int, seeded: bool) -> Run:
    """With a seed the draw is NumPy's `RandomState`, as in ONNX's reference."""
    def run(out: Array, mask: Array, x: Array, ratio: Array, training: Array) -> None:
        share = float(ratio.item())
        np.copyto(out, x)
        mask.fill(True)
        if not training.item() or share == 0:
            return
        draw = np.random.RandomState(seed if seeded else None)
        np.copyto(mask, draw.uniform(0, 1.0, x.shape) >= share)
        scale = 1 / (1 - share) if share < 1 else 0.0
        np.copyto(out, np.where(mask, x * x.dtype.type(scale), np.zeros((), x.dtype)))
    return run


@kernel(s.AFFINE_GRID)
def AFFINE_GRID(site: Site, theta: Tensor, size: Tensor, align: bool) -> Run:
    sizes = ints(size)[2:]
    lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / max(n, 1) - 1 for n in sizes]
    places = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(sizes)], -1)
    rows = places.reshape(-1, len(sizes) + 1).astype(computed_in(theta))

    def run(out: Array, theta: Array, _size: Array) -> None:
        made = np.matmul(rows, theta.astype(rows.dtype, copy=False).swapaxes(1, 2))
        np.copyto(out, made.reshape(out.shape), casting="unsafe")
    return run


@sized(s.DECODE_IMAGE)
def DECODE_IMAGE(site: Site, stream: Tensor, format: int) -> Compute:
    def run(stream: Array) -> list[Array]:
        found = pixels(stream.tobytes())
        if format == 2:
            return [grey(found)]
        whole = np.broadcast_to(found, (*found.shape[:2], 3))
        return [np.ascontiguousarray(whole[..., ::-1] if format == 1 else whole)]
    return run
