"""Float activations as int8 for a product with int8 weights, as TFLite's dynamic range kernels make them.

Source: LiteRT's `neon_tensor_utils.cc` (`SymmetricQuantizeFloats`, `AsymmetricQuantizeFloats`; it is what runs on x86,
too, where vectors of SSE take NEON's place) and the hybrid paths of its reference kernels, bit by bit. Every step is
rounded to float32 by itself; sums of products are exact.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..types import Array, Tensor
from .fixedpoint import away, f32, grid, scales
from .products import constant

EXACT_F32 = 1 << 24
#: The largest distance of an int8 from its zero point.
SPAN = 255
#: A row that spans less counts as zeros: the inverse of its scale may be beyond float32, where TFLite's answer is open.
LEAST = f32(1e-36)


class Rows(NamedTuple):
    """Rows of activations as integers less their zero points, in floats, and the scale of each row."""

    ints: Array
    scale: Array


def symmetric(rows: Array) -> Rows:
    """[n, k] on grids around 0: the largest magnitude becomes 127. A row of (nearly) zeros has the scale 1."""
    reach = np.maximum(np.abs(rows.min(1)), np.abs(rows.max(1)))
    zero = reach < LEAST
    reach = np.where(zero, f32(1), reach)
    inverse = np.where(zero, f32(0), f32(127) / reach)
    ints = np.clip(away(rows * inverse[:, None]), -127, 127)
    return Rows(ints, np.where(zero, f32(1), reach / f32(127)))


def asymmetric(rows: Array) -> Rows:
    """[n, k] on grids that cover the values of a row and 0."""
    low, high = np.minimum(f32(0), rows.min(1)), np.maximum(f32(0), rows.max(1))
    zero = high - low < LEAST
    scale = np.where(zero, 1, (high - low) / np.float64(SPAN))
    first, last = low / scale, high / scale
    point = np.where(128 + np.abs(first) < 127 + np.abs(last), -128 - first, 127 - last)
    point = np.where(zero, 0, away(np.clip(point, -128, 127))).astype(f32)[:, None]
    scale = scale.astype(f32)
    ints = np.clip(point + away(rows * (f32(1) / scale)[:, None]), -128, 127)
    return Rows(np.where(zero[:, None], f32(0), ints - point), scale)


def quantized(rows: Array, wide: bool) -> Rows:
    """Rows of floats [n, k] as integers; `wide` for the asymmetric grids. An empty row has no range."""
    if not rows.shape[1]:
        return Rows(rows, np.ones(len(rows), f32))
    return asymmetric(rows) if wide else symmetric(rows)


def exactly(weights: Array) -> Array:
    """Weights [k, n] in the float type that sums their products with int8 exactly."""
    reach = SPAN * int(np.abs(weights.astype(np.int64)).sum(0).max(initial=0))
    return np.asarray(weights, f32 if reach < EXACT_F32 else np.float64)


def centred(w: Tensor) -> Array:
    """Constant weights less their zero point; raises `NeedsValue` where they are computed."""
    return np.asarray(constant(w).astype(np.int16) - np.int16(grid(w)[1]))


class Matrix:
    """Weights [k, n] with a scale for each column, to be multiplied by rows of floats."""

    def __init__(self, weights: Array, scale: Array, wide: bool) -> None:
        self.weights, self.scale, self.wide = exactly(weights), scale, wide

    def times(self, rows: Array) -> Array:
        """rows [m, k] -> [m, n] in float32."""
        found = quantized(rows, self.wide)
        sums = found.ints.astype(self.weights.dtype, copy=False) @ self.weights
        return np.asarray(sums.astype(f32, copy=False) * (found.scale[:, None] * self.scale))


def of_rows(arrays: Any, tensors: Any, wide: bool) -> Matrix:
    """Several matrices [units, k] side by side, each with its tensor's scales."""
    pairs = [(a, t) for a, t in zip(arrays, tensors, strict=True) if a is not None]
    return Matrix(np.concatenate([a for a, _ in pairs]).T,
                  np.concatenate([scales(t, len(a)) for a, t in pairs]), wide)
