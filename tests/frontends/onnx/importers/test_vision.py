"""Places, regions and boxes of images against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, expected, n

import nnx_convert
from nnx_convert.errors import NnxError, RunError

R = np.random.default_rng(10)


def f(*shape: int) -> np.ndarray:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


def places(*shape: int) -> np.ndarray:
    """Places, some of them outside."""
    return R.uniform(-1.6, 1.6, shape).astype(np.float32)


IMAGE, CUBE = f(2, 3, 4, 5), f(1, 2, 3, 4, 2)
AT, THERE = places(2, 3, 2, 2), places(1, 2, 2, 2, 3)
#: Far outside, no number, and halfway between two cells.
ODD = np.array([[[[np.nan, 0], [np.inf, 0], [-1e30, 0.5], [0.2, -0.75]]]] * 2, np.float32)
SAMPLED = [
    *(n("GridSample", IMAGE, AT, mode=m, padding_mode=p, align_corners=a) for m in ("nearest", "linear", "cubic")
      for p in ("zeros", "border", "reflection") for a in (0, 1) if (m, p) != ("cubic", "border")),
    *(n("GridSample", CUBE, THERE, mode=m, padding_mode=p) for m in ("nearest", "linear")
      for p in ("zeros", "reflection")),
    *(n("GridSample", IMAGE, AT, mode=f"bi{m}", opset=16, want=expected(n("GridSample", IMAGE, AT, mode=m)))
      for m in ("linear", "cubic")),
    n("GridSample", (IMAGE * 50).astype(np.int32), AT, mode="nearest"), n("GridSample", IMAGE.astype(np.float64), AT),
    n("GridSample", np.ones((2, 1, 2, 2), np.float32), ODD, want=[np.float32([[[[0, 0, 0, 0.75]]]] * 2)])]

#: A region within, one at the border, one of another image, one that is turned round, one far outside.
ROIS = np.float32([[0, 0, 3, 3], [2.5, 1, 9, 5], [1, 1, 1.2, 1.1], [3, 3, 1, 1], [-30, -30, -20, -25]])
OF = np.array([0, 1, 1, 0, 1])
REGIONS = [n("RoiAlign", IMAGE, ROIS, OF, mode=m, output_height=2, output_width=3, sampling_ratio=s, spatial_scale=0.8,
             coordinate_transformation_mode=c) for m in ("avg", "max") for s in (0, 2)
           for c in ("half_pixel", "output_half_pixel")]

BOXES = R.uniform(0, 1, (2, 9, 4)).astype(np.float32)
SCORES = np.round(R.uniform(0, 1, (2, 2, 9)), 1).astype(np.float32)


def boxes(most: int, overlap: float, *least: float, **more: Any) -> Node:
    """A case of NonMaxSuppression."""
    return n("NonMaxSuppression", BOXES, SCORES, np.array([most]), np.float32([overlap]), *map(np.float32, [least]
             if least else []), **more)


SUPPRESSED = [boxes(9, 0.5), boxes(2, 0.2, 0.3), boxes(9, 0.0), boxes(9, 1.0, 0.9), boxes(4, 0.5, center_point_box=1),
              boxes(0, 0.5), n("NonMaxSuppression", BOXES, SCORES, want=[np.zeros((0, 3), np.int64)]),
              n("NonMaxSuppression", np.float32([[[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]]]),
                np.float32([[[0.5, 0.5, 0.7]]]), np.array([5]), np.float32([0.5]), opset=10)]

THETA2, THETA3 = f(2, 2, 3), f(1, 3, 4)
GRIDS = [*(n("AffineGrid", THETA2, np.array([2, 1, 3, 4]), align_corners=a) for a in (0, 1)),
         *(n("AffineGrid", THETA3, np.array([1, 1, 2, 3, 4]), align_corners=a) for a in (0, 1))]
CASES = [*SAMPLED, *REGIONS, *SUPPRESSED, *GRIDS]


@pytest.mark.parametrize(("case", "way"), list(product(CASES, WAYS)), ids=str)
def test_against_the_reference(case: Node, way: str) -> None:
    check(case, way, 1e-4)


def test_what_it_becomes() -> None:
    for case, want in ((GRIDS[0], {"RESHAPE", "FULLY_CONNECTED", "BATCH_MATMUL"}), (REGIONS[0], {"ROI_ALIGN_ND"}),
                       (SAMPLED[0], {"GRID_SAMPLE"}), (SUPPRESSED[0], {"SELECT_BOXES"})):
        found = {o.op.name for o in converted(built(case, "fixed")[0]).operations}
        assert found & want


#: What is refused, and with which words.
WRONG: list[tuple[Node, str]] = [
    (n("GridSample", IMAGE, AT, mode="sharp", want=[IMAGE]), "mode is 'sharp'"),
    (n("GridSample", IMAGE, THERE, want=[IMAGE]), "grid has a place of as many numbers"),
    (n("RoiAlign", IMAGE, ROIS, OF, mode="least", want=[IMAGE]), "mode is 'least'"),
    (n("RoiAlign", IMAGE, ROIS[:, :3], OF, want=[IMAGE]), "rois are [n, 4]"),
    (n("NonMaxSuppression", BOXES, SCORES[:, :, :4], want=[OF]), "boxes are [n, boxes, 4]"),
    (n("ImageDecoder", np.zeros(9, np.uint8), pixel_format="CMYK", want=[OF]), "pixel_format is 'CMYK'")]


@pytest.mark.parametrize(("case", "said"), WRONG, ids=[w for _, w in WRONG])
def test_what_does_not_fit_is_refused(case: Node, said: str) -> None:
    with pytest.raises(NnxError) as found:
        nnx_convert.convert(built(case, "fixed")[0].SerializeToString())
    assert said in str(found.value)


def test_a_picture_in_a_file() -> None:
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    data = np.frombuffer(b"P6 4 2 255 " + colours.tobytes(), np.uint8)
    wanted = {"RGB": colours, "BGR": colours[..., ::-1], "Grayscale": colours[..., 1:2]}
    for name, want in wanted.items():
        check(n("ImageDecoder", data, pixel_format=name, want=[want]), "fed")


def test_regions_of_images_that_are_not_there_fail_the_run() -> None:
    with pytest.raises(RunError, match="an image that is not in"):
        check(n("RoiAlign", IMAGE, ROIS, OF + 5, want=[IMAGE]), "fed")
