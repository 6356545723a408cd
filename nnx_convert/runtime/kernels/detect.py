"""Detection and regions of interest, as AOSP's reference executor computes them: in float32, whatever the types."""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...ops import detect
from ...types import Array, F16, Tensor
from ..boxes import (
    Detections, best_per_class, bilinear, check_batch, check_proper, descending, hard, limit, reader, sampled, soft,
    suppressed, transformed, weights, writer)
from ..fixedpoint import away, f32, grid, limits, multiplier, scale32
from ..kernel import Compute, Run, Site, kernel, sized

#: What makes one bin grid of a roi: the image [h, w, c] and the roi in its cells -> [oh, ow, c].
Cut = Callable[[Array, Array], Array]


def channels_last(x: Array, nchw: bool) -> Array:
    """A view of an image with its channels last."""
    return x.transpose(0, 2, 3, 1) if nchw else x


@kernel(detect.AXIS_ALIGNED_BBOX_TRANSFORM)
def AXIS_ALIGNED_BBOX_TRANSFORM(site: Site, rois: Tensor, deltas: Tensor, batch: Tensor, image_info: Tensor) -> Run:
    boxes, moves, sizes, write = reader(rois), reader(deltas), reader(image_info), writer(site.out)
    images, shape = image_info.shape[0], (rois.shape[0], deltas.shape[1] // 4, 4)

    def run(out: Array, rois: Array, deltas: Array, batch: Array, image_info: Array) -> None:
        check_batch(batch, images)
        real = boxes(rois)
        check_proper(real)
        moved = transformed(real, moves(deltas).reshape(shape), sizes(image_info)[batch])
        out[:] = write(moved).reshape(out.shape)
    return run


@sized(detect.BOX_WITH_NMS_LIMIT)
def BOX_WITH_NMS_LIMIT(site: Site, scores: Tensor, rois: Tensor, batch: Tensor, score_threshold: float,
                       max_detections: int, kernel: int, iou_threshold: float, sigma: float,
                       nms_score_threshold: float) -> Compute:
    """Every kernel is a weight on the score: with a threshold of 0 a hard one leaves what it suppresses, at score 0."""
    real, boxes, write = reader(scores), reader(rois), writer(site.out)
    verdict = soft(weights(kernel, iou_threshold, sigma), nms_score_threshold)
    most, shape = limit(max_detections), (*scores.shape, 4)

    def of_image(scores: Array, boxes: Array) -> Detections:
        found = best_per_class(scores, boxes, score_threshold, most, verdict)
        return found[np.sort(descending(found.score)[:most])]

    def run(scores: Array, rois: Array, batch: Array) -> tuple[Array, ...]:
        given, placed = real(scores), boxes(rois).reshape(shape)
        check_proper(placed)
        ends = [0, *(np.flatnonzero(np.diff(batch)) + 1), len(batch)]
        found = [(a, of_image(given[a:b], placed[a:b])) for a, b in pairwise(ends)]
        index = np.concatenate([a + d.box for a, d in found])
        label = np.concatenate([d.label for _, d in found])
        score = np.concatenate([d.score for _, d in found])
        return write(score), rois.reshape(shape)[index, label], label.astype(np.int32), batch[index]
    return run


@kernel(detect.DETECTION_POSTPROCESSING)
def DETECTION_POSTPROCESSING(site: Site, scores: Tensor, deltas: Tensor, anchors: Tensor, y_scale: float,
                             x_scale: float, h_scale: float, w_scale: float, regular: bool, max_detections: int,
                             max_classes: int, max_per_class: int, score_threshold: float, iou_threshold: float,
                             background: bool) -> Run:
    verdict, scale = hard(iou_threshold), np.array([y_scale, x_scale, h_scale, w_scale], f32)
    labels, shift = min(scores.shape[2] - 1, max_classes), 0 if background else 1

    def by_class(scores: Array, boxes: Array) -> Detections:
        every = np.broadcast_to(boxes[:, None], (*scores.shape, 4))
        found = best_per_class(scores, every, score_threshold, max_per_class, verdict)
        return found[descending(found.score)[:max_detections]]

    def by_anchor(scores: Array, boxes: Array) -> Detections:
        best = scores[:, 1:].max(1)
        index = np.flatnonzero(best > f32(score_threshold))
        index = index[suppressed(best[index], boxes[index], max_detections, verdict)[0]]
        label = 1 + np.argsort(-scores[index, 1:], axis=1, kind="stable")[:, :labels].reshape(-1)
        index = index.repeat(labels)
        return Detections(index, label, scores[index, label])

    def run(out: Array, boxes: Array, classes: Array, count: Array, scores: Array, deltas: Array,
            anchors: Array) -> None:
        for rest in (out, boxes, classes):
            rest.fill(0)
        for i, (given, moves) in enumerate(zip(scores.astype(f32), deltas.astype(f32), strict=True)):
            placed = decoded(moves[:, :4], anchors.astype(f32), scale)
            found = by_class(given, placed) if regular else by_anchor(given, placed)
            n = len(found.box)
            out[i, :n], boxes[i, :n], classes[i, :n], count[i] = found.score, placed[found.box], found.label - shift, n
    return run


def decoded(deltas: Array, anchors: Array, scale: Array) -> Array:
    """Boxes [n, 4] of y1, x1, y2, x2 from deltas and anchors, both of centre and size."""
    centre = anchors[:, :2] + anchors[:, 2:] * deltas[:, :2] / scale[:2]
    half = anchors[:, 2:] * np.exp(deltas[:, 2:] / scale[2:]) * f32(0.5)
    return np.concatenate((centre - half, centre + half), 1)


@sized(detect.GENERATE_PROPOSALS)
def GENERATE_PROPOSALS(site: Site, scores: Tensor, deltas: Tensor, anchors: Tensor, image_info: Tensor,
                       h_stride: float, w_stride: float, pre_nms: int, post_nms: int, iou_threshold: float,
                       min_size: float, nchw: bool) -> Compute:
    read = reader(scores), reader(deltas), reader(anchors), reader(image_info)
    write, place, verdict = writer(site.outs[0]), writer(site.outs[1]), hard(iou_threshold)
    strides = np.array([w_stride, h_stride] * 2, f32)

    def of_image(scores: Array, boxes: Array, size: Array) -> Array:
        index = np.arange(len(scores))
        if 0 < pre_nms < len(scores):
            index = descending(scores)[:pre_nms]
        index = index[large(boxes[index], size, min_size)]
        return index[suppressed(scores[index], boxes[index], post_nms if post_nms > 0 else None, verdict)[0]]

    def run(*arrays: Array) -> tuple[Array, ...]:
        scores, deltas, anchors, sizes = (change(a) for change, a in zip(read, arrays, strict=True))
        check_proper(anchors)
        scores = channels_last(scores, nchw)
        n, h, w, _ = scores.shape
        cells = np.stack(np.meshgrid(np.arange(w, dtype=f32), np.arange(h, dtype=f32)), -1)
        placed = (anchors + (np.concatenate((cells, cells), -1) * strides)[:, :, None]).reshape(-1, 4)
        scores, moves = scores.reshape(n, -1), channels_last(deltas, nchw).reshape(n, -1, 1, 4)
        boxes = [transformed(placed, m, np.broadcast_to(s, (len(placed), 2)))[:, 0]
                 for m, s in zip(moves, sizes, strict=True)]
        found = [of_image(*image) for image in zip(scores, boxes, sizes, strict=True)]
        of = np.repeat(np.arange(n, dtype=np.int32), [len(f) for f in found])
        index = np.concatenate(found)
        return write(scores[of, index]), place(np.stack(boxes)[of, index]), of
    return run


def large(boxes: Array, size: Array, least: float) -> Array:
    """Which boxes are larger than the least both ways and have their centre before an image's end; size (h, w)."""
    sides = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + sides / f32(2)
    return np.asarray(((sides > f32(least)) & (centres < size[::-1])).all(1))


@kernel(detect.HEATMAP_MAX_KEYPOINT)
def HEATMAP_MAX_KEYPOINT(site: Site, heatmap: Tensor, rois: Tensor, nchw: bool) -> Run:
    """A peak is refined by one Newton step; where the curvature does not say which way, the cell's middle is it."""
    read, boxes, (write, place) = reader(heatmap), reader(rois), map(writer, site.outs)
    tolerance = f32(1e-3 if heatmap.type == F16 else 1e-5)

    def run(score: Array, xy: Array, heatmap: Array, rois: Array) -> None:
        box, x = boxes(rois), channels_last(read(heatmap), nchw)
        check_proper(box)
        n, size, _, k = x.shape
        peak = np.where(np.isnan(x), -np.inf, x).reshape(n, size * size, k).argmax(1)
        row, column = peak // size, peak % size
        around = [[x[np.arange(n)[:, None], mirrored(row + i, size), mirrored(column + j, size), np.arange(k)]
                   for j in (-1, 0, 1)] for i in (-1, 0, 1)]
        delta, refined = newton(np.array(around), tolerance)
        at = (np.stack((column, row), -1).astype(f32) + delta + f32(0.5)) / f32(size)
        score[:] = write(refined)
        xy[:] = place(at * (box[:, None, 2:] - box[:, None, :2]) + box[:, None, :2])
    return run


def mirrored(index: Array, size: int) -> Array:
    """Indices from -1 to size, those outside put on the second cell from the border."""
    return np.where(index < 0, 1, np.where(index >= size, size - 2, index))


def newton(g: Array, tolerance: np.float32) -> tuple[Array, Array]:
    """From values [3, 3, ...] around a peak, how far beside it (x, y) the top is [..., 2], at most 1.5, and the value.

    No step where the determinant of the curvature is next to nothing.
    """
    bx, by = (g[1, 0] - g[1, 2]) / f32(2), (g[0, 1] - g[2, 1]) / f32(2)
    axx, ayy = g[1, 0] - 2 * g[1, 1] + g[1, 2], g[0, 1] - 2 * g[1, 1] + g[2, 1]
    axy = (g[2, 2] - g[2, 0] - g[0, 2] + g[0, 0]) / f32(4)
    det = axx * ayy - axy * axy
    flat = np.abs(det) < tolerance + tolerance * axx * ayy
    det = np.where(flat, f32(1), det)
    step = np.stack(((ayy * bx - axy * by) / det, (axx * by - axy * bx) / det), -1)
    longest = np.abs(step).max(-1, keepdims=True)
    step = step * np.where(longest > f32(1.5), f32(1.5) / np.maximum(longest, f32(1.5)), f32(1))
    step = np.where(flat[..., None], f32(0), step)
    dx, dy = step[..., 0], step[..., 1]
    return step, g[1, 1] - bx * dx - by * dy + ((axx * dx + axy * dy) * dx + (axy * dx + ayy * dy) * dy) / f32(2)


def per_roi(x: Tensor, rois: Tensor, h_stride: float, w_stride: float, nchw: bool, read: Callable[[Array], Array],
            cut: Cut) -> Run:
    """The run that cuts each roi out of its image; raises `ValueError` on a roi that is not inside it."""
    boxes = reader(rois)
    n, h, w = (x.shape[i] for i in ((0, 2, 3) if nchw else (0, 1, 2)))
    scale = np.array([1 / f32(w_stride), 1 / f32(h_stride)] * 2, f32)

    def run(out: Array, x: Array, rois: Array, batch: Array) -> None:
        real = boxes(rois)
        check_batch(batch, n)
        check_proper(real)
        cells = real * scale
        if not ((real >= 0) & (cells <= np.array([w, h, w, h]))).all():
            raise ValueError(f"a roi is not inside its image of {h} by {w} cells")
        images, result = channels_last(read(x), nchw), channels_last(out, nchw)
        for i, roi in enumerate(cells):
            result[i] = cut(images[batch[i]], roi)
    return run


@kernel(detect.ROI_ALIGN)
def ROI_ALIGN(site: Site, x: Tensor, rois: Tensor, batch: Tensor, oh: int, ow: int, h_stride: float, w_stride: float,
              h_samples: int, w_samples: int, nchw: bool) -> Run:
    """Floats are averaged; integers with weights in 255ths, and requantised in fixed point as AOSP does."""
    exact, (scale, zero), dtype = grid(x)[0] > 0, grid(x), site.out.type.dtype

    def cut(image: Array, roi: Array) -> Array:
        steps = np.maximum(roi[2:] - roi[:2], f32(1)) / np.array([ow, oh], f32)
        across, down = (given or int(np.ceil(s)) for given, s in zip((w_samples, h_samples), steps, strict=True))
        y = sampled(roi[1], steps[1], oh, down, image.shape[0])
        x = sampled(roi[0], steps[0], ow, across, image.shape[1])
        points = bilinear(image, y, x, in_255ths) if exact else bilinear(image, y, x)
        sums = points.reshape(oh, down, ow, across, -1).sum((1, 3))
        return requantised(sums, across * down) if exact else (sums / f32(across * down)).astype(dtype)

    def requantised(sums: Array, count: int) -> Array:
        out_scale, out_zero = grid(site.out)
        factor = scale * f32(1 / 255) / out_scale / f32(count)
        return np.asarray(np.clip(scale32(sums, *multiplier(float(factor))) + out_zero, *limits(site.out)), dtype)
    read = (lambda q: q.astype(np.int64) - zero) if exact else reader(x)
    return per_roi(x, rois, h_stride, w_stride, nchw, read, cut)


def in_255ths(weight: Array) -> Array:
    """Fractions as integers of 255ths."""
    return np.asarray(away(weight / f32(1 / 255)), np.int64)


@kernel(detect.ROI_POOLING)
def ROI_POOLING(site: Site, x: Tensor, rois: Tensor, batch: Tensor, oh: int, ow: int, h_stride: float,
                w_stride: float, nchw: bool) -> Run:
    zero = grid(x)[1]

    def bins(first: Any, last: Any, count: int, size: int) -> list[slice]:
        step = f32(max(last - first + 1, 1)) / f32(count)
        edges = step * np.arange(count + 1, dtype=f32) + f32(first)
        heads = np.minimum(np.floor(edges[:-1]).astype(int), size)
        return [slice(a, b) for a, b in zip(heads, np.minimum(np.ceil(edges[1:]).astype(int), size), strict=True)]

    def largest(cells: Array, axis: int) -> Array:
        return np.asarray(cells.max(axis)) if cells.shape[axis] else np.full(np.delete(cells.shape, axis), zero,
                                                                             cells.dtype)

    def cut(image: Array, roi: Array) -> Array:
        x1, y1, x2, y2 = away(roi).astype(int)
        down, across = bins(y1, y2, oh, image.shape[0]), bins(x1, x2, ow, image.shape[1])
        rows = np.stack([largest(image[s], 0) for s in down])
        return np.stack([largest(rows[:, s], 1) for s in across], 1)
    return per_roi(x, rois, h_stride, w_stride, nchw, lambda q: q, cut)
