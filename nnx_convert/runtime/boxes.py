"""Boxes: their reading and writing, overlap, suppression, and moving them by deltas.

Boxes are float32 [n, 4]: two corners, the lesser one first; which axis is first matters to the image's sizes
alone. The arithmetic is that of AOSP's reference executor, in its order, in float32; where that leaves an order
of equals to chance, the lower index is first.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..frozen import frozen
from ..types import Array, Tensor
from .fixedpoint import I64, away, f32, grid, limits

Change = Callable[[Array], Array]
#: Of overlaps with the box picked and scores: the scores from now on, and which boxes stay.
Verdict = Callable[[Array, Array], tuple[Array, Array]]


def reader(t: Tensor) -> Change:
    """Arrays of a tensor as float32: what they stand for."""
    scale, zero = grid(t)
    if t.type.dtype.kind == "f":
        return lambda q: np.asarray(q, f32)
    return lambda q: np.asarray(scale * (q.astype(I64) - zero).astype(f32), f32)


def writer(t: Tensor) -> Change:
    """Float32 as a tensor holds it: quantised, round(x / scale + zero) half away from zero, saturated."""
    scale, zero = grid(t)
    if t.type.dtype.kind == "f":
        return lambda x: np.asarray(x, t.type.dtype)
    low, high = limits(t)

    def write(x: Array) -> Array:
        steps = np.clip(np.asarray(x / scale + f32(zero), f32), low, high)
        return np.asarray(away(np.where(np.isnan(steps), low, steps)), t.type.dtype)
    return write


def check_proper(boxes: Array) -> None:
    """Raise `ValueError` where a box of [..., 4] ends before it starts, or is not a number."""
    good = (boxes[..., 0] <= boxes[..., 2]) & (boxes[..., 1] <= boxes[..., 3])
    if not good.all():
        raise ValueError(f"box {[float(v) for v in boxes[~good][0]]} ends before it starts")


def check_batch(batch: Array, size: int) -> None:
    """Raise `ValueError` where an image of a batch is not in [0, size)."""
    wrong = batch[(batch < 0) | (batch >= size)]
    if wrong.size:
        raise ValueError(f"image {wrong[0]} is not in [0, {size})")


def transformed(boxes: Array, deltas: Array, sizes: Array) -> Array:
    """Boxes [n, 4] moved by deltas [n, k, 4] (dx, dy, dw, dh) and clipped to images of sizes [n, 2] (h, w): [n, k, 4].

    The centre moves by d times the size, the size grows by exp(d).
    """
    size = boxes[:, None, 2:] - boxes[:, None, :2]
    centre = (boxes[:, None, :2] + boxes[:, None, 2:]) / f32(2)
    half = np.exp(deltas[..., 2:]) * size / f32(2)
    middle = centre + deltas[..., :2] * size
    most = sizes[:, None, [1, 0, 1, 0]]
    return np.asarray(np.minimum(np.maximum(np.concatenate((middle - half, middle + half), -1), f32(0)), most))


def overlaps(box: Array, boxes: Array) -> Array:
    """Intersection over union of a box [4] with each of boxes [n, 4]; 0 where the union is empty."""
    both = np.maximum(np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2]), f32(0)).prod(1)
    union = (box[2:] - box[:2]).prod() + (boxes[:, 2:] - boxes[:, :2]).prod(1) - both
    return np.asarray(np.divide(both, union, out=np.zeros_like(both), where=union != 0))


def hard(threshold: float) -> Verdict:
    """A box that overlaps by the threshold or more goes."""
    return lambda overlap, scores: (scores, ~(overlap >= f32(threshold)))


def soft(weight: Change, least: float) -> Verdict:
    """Scores are multiplied by the weight of the overlap; one that falls below the least goes."""
    def verdict(overlap: Array, scores: Array) -> tuple[Array, Array]:
        scores = scores * weight(overlap)
        return scores, ~(scores < f32(least))
    return verdict


def weights(kernel: int, iou_threshold: float, sigma: float) -> Change:
    """The weight of an overlap: 0 hard, 1 linear, 2 gaussian."""
    def above(rest: Change) -> Change:
        return lambda overlap: np.where(overlap < f32(iou_threshold), f32(1), rest(overlap))
    return (above(np.zeros_like), above(lambda overlap: f32(1) - overlap),
            lambda overlap: np.exp(-overlap * overlap / f32(sigma)))[kernel]


def suppressed(scores: Array, boxes: Array, most: int | None, verdict: Verdict) -> tuple[Array, Array]:
    """Indices of the boxes that stay, the best first, and their scores; `most` of them, or all where that is None."""
    rest, left = np.arange(len(scores)), scores
    picked, found = list[Any](), list[Any]()
    while len(rest) and (most is None or len(picked) < most):
        at = int(left.argmax())
        best, score = rest[at], left[at]
        picked.append(best)
        found.append(score)
        rest, left = np.delete(rest, at), np.delete(left, at)
        left, stays = verdict(overlaps(boxes[best], boxes[rest]), left)
        rest, left = rest[stays], left[stays]
    return np.array(picked, np.intp), np.array(found, f32)


@frozen
class Detections:
    """Boxes picked, one per class and box: their index, class and score."""

    box: Array
    label: Array
    score: Array

    def __getitem__(self, order: Array) -> Detections:
        return Detections(self.box[order], self.label[order], self.score[order])


def best_per_class(scores: Array, boxes: Array, threshold: float, most: int | None, verdict: Verdict) -> Detections:
    """Suppression class by class among scores [n, k] above the threshold, without class 0, the background.

    boxes [n, k, 4]. By class, and the best first in each.
    """
    found = [Detections(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, f32))]
    for label in range(1, scores.shape[1]):
        index = np.flatnonzero(scores[:, label] > f32(threshold))
        picked, left = suppressed(scores[index, label], boxes[index, label], most, verdict)
        found.append(Detections(index[picked], np.full(len(picked), label), left))
    return Detections(*(np.concatenate([getattr(d, name) for d in found]) for name in ("box", "label", "score")))


def descending(scores: Array) -> Array:
    """The indices that put scores in descending order, equals as they stand."""
    return np.argsort(-scores, kind="stable")


def limit(count: int) -> int | None:
    """A number of boxes as a slice takes it: a negative one is no limit."""
    return None if count < 0 else count


@frozen
class Corners:
    """Samples along an axis: the cell before each, the one after, and how far between them it is."""

    low: Array
    high: Array
    part: Array


def sampled(start: np.float32, step: np.float32, bins: int, count: int, size: int) -> Corners:
    """`count` samples in each of `bins` bins of width `step` from `start`, along an axis of `size` cells."""
    width = step / f32(count)
    first = (step * np.arange(bins, dtype=f32) + start)[:, None]
    at = (first + width / f32(2) + width * np.arange(count, dtype=f32)).reshape(-1)
    low = np.minimum(np.floor(at).astype(np.intp), size - 1)
    return Corners(low, np.minimum(low + 1, size - 1), np.where(low >= size - 1, f32(0), at - low.astype(f32)))


def bilinear(image: Array, y: Corners, x: Corners, weigh: Change = lambda w: w) -> Array:
    """An image [h, w, c] sampled where the rows y and the columns x cross; `weigh` makes weights of fractions."""
    near_y, near_x = f32(1) - y.part, f32(1) - x.part
    pairs = ((y.low, near_y, x.low, near_x), (y.low, near_y, x.high, x.part),
             (y.high, y.part, x.low, near_x), (y.high, y.part, x.high, x.part))
    terms = [weigh(wx * wy[:, None])[..., None] * image[np.ix_(rows, columns)] for rows, wy, columns, wx in pairs]
    total: Array = terms[0] + terms[1] + terms[2] + terms[3]
    return total
