"""Reading images between their cells, regions and boxes as ONNX has them: what NNAPI has no operation for."""
from __future__ import annotations

from typing import Annotated

import numpy as np

from ..kinds import Bool, Bools, Float, Int, Ints1, Natural, Positive, T, rank
from ..schema import Rule, host
from ..signature import Kind
from ..types import B8, I64, Q8, UNKNOWN, Shape, Tensor, given, known, maybe
from .host import ALL, AnyT

#: Codes of INTERPOLATE: between cells, of grids, of roundings, of what becomes of the aspect ratio.
NEAREST, LINEAR, CUBIC = range(3)
GRIDS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_crop_and_resize")
HALF, SYMMETRIC, PYTORCH, ALIGNED, ASYMMETRIC, CROPPED = range(len(GRIDS))
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
POLICIES = ("stretch", "not_larger", "not_smaller")
#: Codes of GRID_SAMPLE of what is outside.
OUTSIDE = ("zeros", "border", "reflection")
Longs = Annotated[Tensor, Kind({I64: 27})]


def scaled(size: int, scale: float) -> int:
    """A size times a factor, rounded down in float32."""
    return int(np.floor(np.float32(size) * np.float32(scale)))


def kept(sizes: Shape, wanted: Shape, policy: int) -> tuple[Shape, tuple[float, ...]]:
    """The sizes made of wanted ones, all by one factor unless stretched, and the factors."""
    factors = tuple(w / n for n, w in zip(sizes, wanted, strict=True))
    if policy == 0:
        return wanted, factors
    factor = (min if policy == 1 else max)(factors)
    return tuple(int(factor * n + 0.5) for n in sizes), (factor,) * len(sizes)


def resampled(shape: Shape, axes: Shape, scales: Tensor | None, sizes: Tensor | None, policy: int) -> Shape:
    """The shape with some axes of other sizes."""
    old, found = tuple(shape[a] for a in axes), (UNKNOWN,) * len(axes)
    if sizes is not None and sizes.data is not None and (policy == 0 or all(map(known, old))):
        found = sizes.ints() if policy == 0 else kept(old, sizes.ints(), policy)[0]
    elif sizes is None and scales is not None and scales.data is not None:
        found = tuple(maybe(scaled, n, f) if known(n) else UNKNOWN
                      for n, f in zip(old, scales.data.reshape(-1).tolist(), strict=True))
    return tuple(found[axes.index(i)] if i in axes else n for i, n in enumerate(shape))


@host(60600, ALL, Rule("axes are distinct axes of x", lambda x, axes:
                       len({*axes.ints()}) == len(axes.ints()) and all(0 <= a < x.rank for a in axes.ints())),
      Rule("scales or sizes, or both, have a number for each of axes, and roi two", lambda axes, scales, sizes, roi:
           (given(scales) or given(sizes)) and all(not given(v) or v.shape == axes.shape for v in (scales, sizes)) and
           (not given(roi) or roi.shape == (2 * axes.shape[0],))),
      Rule("mode, grid, rounding and policy are codes", lambda mode, grid, rounding, policy:
           0 <= mode < 3 and 0 <= grid < len(GRIDS) and 0 <= rounding < len(ROUNDINGS) and 0 <= policy < 3),
      Rule("roi is there where the grid is its", lambda roi, grid: given(roi) or grid != CROPPED))
def INTERPOLATE(x: T, roi: AnyT | None, scales: AnyT | None, sizes: AnyT | None, axes: Ints1, mode: Int, grid: Int,
                rounding: Int, policy: Int, a: Float, inside: Bool, extrapolation: Float, smooth: Bool) -> T:
    """x on another grid along axes, as ONNX's Resize; inside: only cells of x count; smooth: antialiased."""
    return x.like(resampled(x.shape, axes.ints(), scales, sizes, policy))


@host(60601, ALL, Rule("grid has a place of as many numbers as x has axes behind the channels", lambda x, grid:
                       grid.rank == x.rank and grid.shape[-1] == x.rank - 2 and grid.shape[0] == x.shape[0]),
      Rule("mode and outside are 0, 1 or 2", lambda mode, outside: 0 <= mode < 3 and 0 <= outside < 3))
def GRID_SAMPLE(x: Annotated[T, rank(3, 8)], grid: AnyT, mode: Int, outside: Int, align: Bool) -> T:
    """x at places, last axis first, from -1 to 1; mode: nearest, linear, cubic; outside: zeros, border, reflection."""
    return x.like((*x.shape[:2], *grid.shape[1:-1]))


@host(60602, ALL, Rule("x has rank 4", lambda x: x.rank == 4),
      Rule("rois are [n, 4], batch has one image for each", lambda rois, batch:
           rois.rank == 2 and rois.shape[1] == 4 and batch.shape == rois.shape[:1]))
def ROI_ALIGN_ND(x: T, rois: T, batch: AnyT, oh: Positive, ow: Positive, scale: Float, samples: Natural, half: Bool,
                 largest: Bool) -> T:
    """ROI_ALIGN of an image [n, c, h, w]; half: cells are points between; largest: of weighted corners, no mean."""
    return x.like((rois.shape[0], x.shape[1], oh, ow))


@host(60603, ALL, Rule("boxes are [n, boxes, 4], scores [n, classes, boxes]", lambda boxes, scores:
                       boxes.rank == scores.rank == 3 and boxes.shape == (scores.shape[0], scores.shape[2], 4)))
def SELECT_BOXES(boxes: T, scores: T, most: AnyT | None, iou_threshold: AnyT | None, score_threshold: AnyT | None,
                 centred: Bool) -> Longs:
    """[image, class, box] of the boxes that no better one of their class overlaps, best first, `most` a class."""
    return Tensor(I64, (UNKNOWN, 3))


@host(60604, ALL, outs=("out", "mask"), pure=False)
def DROPOUT(x: T, ratio: AnyT, training: Bools, seed: Int, seeded: Bool) -> tuple[T, Bools]:
    """x / (1 - ratio) where mask, else 0; mask is drawn, all true unless in training."""
    return x, Tensor(B8, x.shape)


@host(60605, ALL, Rule("theta is [n, 2, 3] or [n, 3, 4], and size has a number for each axis of an image of n", lambda
                       theta, size: theta.rank == 3 and theta.shape[1:] in ((2, 3), (3, 4)) and
                       size.shape == (theta.shape[1] + 2,)))
def AFFINE_GRID(theta: T, size: Ints1, align: Bool) -> T:
    """The places of the cells of an image, the last axis first, times the matrices theta."""
    return theta.free((theta.shape[0], *size.ints()[2:], theta.shape[1]))


@host(60606, {Q8: 27}, Rule("stream is the bytes of a file", lambda stream: stream.rank == 1),
      Rule("format is 0 RGB, 1 BGR or 2 grey", lambda format: format in (0, 1, 2)))
def DECODE_IMAGE(stream: T, format: Int) -> T:
    """The pixels [height, width, channels] of an image file: PNG, BMP, PNM, TIFF, JPEG, JPEG 2000."""
    return stream.like((UNKNOWN, UNKNOWN, 1 if known(format) and format == 2 else 3))
