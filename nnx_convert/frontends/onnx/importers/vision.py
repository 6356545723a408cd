"""Reading images at places, regions and boxes; images in files."""
from __future__ import annotations

import numpy as np

from ....errors import FormatError
from ....graph import LARGEST_MADE, Value
from ....ops import sampling as s
from ....ops.host import MATMUL
from ....types import F32, F64, known, product
from ..importer import Op
from ..registry import imports

BETWEEN = {"nearest": s.NEAREST, "bilinear": s.LINEAR, "linear": s.LINEAR, "bicubic": s.CUBIC, "cubic": s.CUBIC}


@imports()
def GridSample(g: Op, x: Value, grid: Value, *, align_corners: int = 0, mode: str | None = None,
               padding_mode: str = "zeros") -> Value:
    way = mode or "linear"
    if way not in BETWEEN or padding_mode not in s.OUTSIDE:
        raise FormatError(f"mode is {way!r}, padding_mode {padding_mode!r}")
    grid = grid if grid.type in (F32, F64) else g.cast(grid, F32)
    return g(s.GRID_SAMPLE, x, grid, mode=BETWEEN[way], outside=s.OUTSIDE.index(padding_mode),
             align=bool(align_corners))


@imports(arithmetic=True)
def AffineGrid(g: Op, theta: Value, size: Value, *, align_corners: int = 0) -> Value:
    """The places of all cells, the last axis first, times the transposed matrices."""
    wanted = g.ints(size)
    if wanted is None or not all(map(known, wanted)) or len(wanted) not in (4, 5):
        return g(s.AFFINE_GRID, theta, g.index(size), align=bool(align_corners))
    sizes = wanted[2:]
    if product(wanted[2:]) > LARGEST_MADE:
        g.unsupported(f"makes a grid of {list(sizes)}")
    lines = [line(n, bool(align_corners)) for n in sizes]
    places = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(sizes)], -1)
    rows = places.reshape(1, product(sizes), -1).astype(theta.type.dtype)
    made = g(MATMUL, g.const(rows, theta.type), theta, adj_x=False, adj_y=True)
    return g.reshape(made, (theta.shape[0], *sizes, len(sizes)))


def line(count: int, align: bool) -> np.ndarray:
    """The middles of cells from -1 to 1; their ends where the corners are aligned."""
    if align:
        return np.linspace(-1, 1, count) if count > 1 else np.full(count, -1.0)
    return (2 * np.arange(count) + 1) / max(count, 1) - 1


def regions(g: Op, x: Value, rois: Value, batch: Value, height: int, width: int, samples: int, scale: float,
            mode: str, half: bool) -> Value:
    """Regions of images pooled to one size."""
    if mode not in ("avg", "max"):
        raise FormatError(f"mode is {mode!r}")
    return g(s.ROI_ALIGN_ND, x, rois, batch, oh=height, ow=width, scale=scale, samples=samples, half=half,
             largest=mode == "max")


@imports("RoiAlign", until=15)
def roi_align_from_corners(g: Op, x: Value, rois: Value, batch_indices: Value, *, mode: str = "avg",
                           output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
                           spatial_scale: float = 1.0) -> Value:
    return regions(g, x, rois, batch_indices, output_height, output_width, sampling_ratio, spatial_scale, mode, False)


@imports(since=16, arithmetic=True)
def RoiAlign(g: Op, x: Value, rois: Value, batch_indices: Value, *, coordinate_transformation_mode: str = "half_pixel",
             mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
             spatial_scale: float = 1.0) -> Value:
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise FormatError(f"coordinate_transformation_mode is {coordinate_transformation_mode!r}")
    return regions(g, x, rois, batch_indices, output_height, output_width, sampling_ratio, spatial_scale, mode,
                   coordinate_transformation_mode == "half_pixel")


@imports(since=10)
def NonMaxSuppression(g: Op, boxes: Value, scores: Value, most: Value | None = None,
                      iou_threshold: Value | None = None, score_threshold: Value | None = None, *,
                      center_point_box: int = 0) -> Value:
    return g(s.SELECT_BOXES, boxes, scores, most, iou_threshold, score_threshold, centred=bool(center_point_box))


@imports()
def ImageDecoder(g: Op, stream: Value, *, pixel_format: str = "RGB") -> Value:
    formats = ("RGB", "BGR", "Grayscale")
    if pixel_format not in formats:
        raise FormatError(f"pixel_format is {pixel_format!r}")
    return g(s.DECODE_IMAGE, stream, format=formats.index(pixel_format))
