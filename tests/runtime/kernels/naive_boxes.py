"""Boxes and regions in plain float64, one at a time: the definitions the kernels are held against."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Box = Sequence[float]


def moved(box: Box, delta: Box, height: float, width: float) -> list[float]:
    """A box [x1, y1, x2, y2] after dx, dy, dw, dh, inside an image."""
    found = []
    for axis, most in ((0, width), (1, height)):
        size, middle = box[axis + 2] - box[axis], (box[axis] + box[axis + 2]) / 2
        middle, size = middle + delta[axis] * size, math.exp(delta[axis + 2]) * size
        found.append([min(max(middle + side * size / 2, 0), most) for side in (-1, 1)])
    return [found[0][0], found[1][0], found[0][1], found[1][1]]


def iou(a: Box, b: Box) -> float:
    """Intersection over union; 0 where the union is empty."""
    both = math.prod(max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0) for i in (0, 1))
    union = sum((v[2] - v[0]) * (v[3] - v[1]) for v in (a, b)) - both
    return both / union if union else 0.0


def greedy(scores: Sequence[float], boxes: Sequence[Box], most: int, change: Callable[[float, float], float | None]
           ) -> list[tuple[int, float]]:
    """Indices and scores, the best first: `change(overlap, score)` is a score after a pick, None where it is out."""
    left, found = dict(enumerate(scores)), list[tuple[int, float]]()
    while left and len(found) < most:
        best = max(left, key=lambda i: (left[i], -i))
        found.append((best, left.pop(best)))
        after = {i: change(iou(boxes[best], boxes[i]), s) for i, s in left.items()}
        left = {i: s for i, s in after.items() if s is not None}
    return found


def aligned(image: Array, roi: Box, size: tuple[int, int], samples: tuple[int, int]) -> Array:
    """A roi (x1, y1, x2, y2 in cells) of an image [h, w, c]: means of bilinear samples."""
    steps = [max(roi[i + 2] - roi[i], 1) / size[1 - i] for i in (0, 1)]
    nx, ny = samples[1] or math.ceil(steps[0]), samples[0] or math.ceil(steps[1])
    out = np.zeros((*size, image.shape[2]))
    for i, j in np.ndindex(size):
        points = [at(image, roi[1] + (i + (v + 0.5) / ny) * steps[1], roi[0] + (j + (u + 0.5) / nx) * steps[0])
                  for v in range(ny) for u in range(nx)]
        out[i, j] = np.mean(points, axis=0)
    return out


def at(image: Array, y: float, x: float) -> Array:
    """An image between its cells; beyond the last row and column it goes on as there."""
    (h, w, _), y0, x0 = image.shape, math.floor(y), math.floor(x)
    (y0, y), (x0, x) = ((y0, y) if y0 < h - 1 else (h - 1, h - 1)), ((x0, x) if x0 < w - 1 else (w - 1, w - 1))
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    top = image[y0, x0] * (x0 + 1 - x) + image[y0, x1] * (x - x0)
    bottom = image[y1, x0] * (x0 + 1 - x) + image[y1, x1] * (x - x0)
    found: Array = top * (y0 + 1 - y) + bottom * (y - y0)
    return found


def pooled(image: Array, roi: Box, size: tuple[int, int], zero: float) -> Array:
    """A roi (in cells) of an image [h, w, c]: the largest of each bin's cells, `zero` where it has none."""
    x1, y1, x2, y2 = (math.floor(v + 0.5) for v in roi)
    out = np.full((*size, image.shape[2]), zero, image.dtype)
    down, across = max(y2 - y1 + 1, 1) / size[0], max(x2 - x1 + 1, 1) / size[1]
    for i, j in np.ndindex(size):
        cells = image[math.floor(y1 + i * down):math.ceil(y1 + (i + 1) * down),
                      math.floor(x1 + j * across):math.ceil(x1 + (j + 1) * across)]
        if cells.size:
            out[i, j] = cells.max((0, 1))
    return out


def peak(heat: Array) -> tuple[float, float, float]:
    """Value and place (x, y in cells, from the first one's edge) of a heatmap's first largest cell, a Newton step on.

    Borders mirror; there is no step where the curvature has no inverse, and none longer than 1.5 either way.
    """
    row, column = divmod(int(heat.argmax()), heat.shape[1])
    g = np.pad(heat, 1, mode="reflect")[row:row + 3, column:column + 3]
    slope = np.array([g[1, 2] - g[1, 0], g[2, 1] - g[0, 1]]) / 2
    cross = (g[2, 2] - g[2, 0] - g[0, 2] + g[0, 0]) / 4
    bend = np.array([[g[1, 0] - 2 * g[1, 1] + g[1, 2], cross], [cross, g[0, 1] - 2 * g[1, 1] + g[2, 1]]])
    step = np.zeros(2) if abs(np.linalg.det(bend)) < 1e-6 else -np.linalg.solve(bend, slope)
    step = step / max(1.0, float(np.abs(step).max()) / 1.5)
    return float(g[1, 1] + slope @ step + step @ bend @ step / 2), column + step[0] + 0.5, row + step[1] + 0.5
