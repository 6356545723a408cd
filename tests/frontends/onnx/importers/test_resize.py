"""Resizing against ONNX's reference, whatever is constant, fed or of an open size; and by which operations."""
from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, expected, n

import nnx_convert
from nnx_convert.errors import NnxError, RunError

R = np.random.default_rng(8)


def f(*shape: int) -> np.ndarray:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


IMAGE, ROW, CUBE = f(1, 2, 4, 6), f(1, 2, 5), f(1, 1, 3, 4, 2)
GRIDS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def by(*scales: float, x: np.ndarray = IMAGE, **more: Any) -> Node:
    """A case by factors of the axes behind the channels."""
    return n("Resize", x, None, np.array([1, 1, *scales], np.float32), **more)


def to(*sizes: int, x: np.ndarray = IMAGE, **more: Any) -> Node:
    """A case by sizes of the axes behind the channels."""
    return n("Resize", x, None, None, np.array([*x.shape[:2], *sizes]), **more)


def grid(name: str) -> dict[str, Any]:
    """The attribute."""
    return {"coordinate_transformation_mode": name}


ROI = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1], np.float32)
CASES: list[Node] = [
    *(make(*sizes, **grid(g), nearest_mode=r) for g, r in product(GRIDS, ROUNDINGS)
      for make, sizes in ((by, (2.0, 3.0)), (to, (3, 7)))),
    *(make(*sizes, mode=m, **grid(g)) for m, g in product(("linear", "cubic"), GRIDS)
      for make, sizes in ((by, (2.0, 0.5)), (to, (3, 7)), (by, (1.5, 1.0)))),
    *(make(*sizes, mode=m, antialias=1) for m in ("linear", "cubic")
      for make, sizes in ((by, (0.6, 0.5)), (to, (2, 9)))),
    by(2.0, 0.6, mode="cubic", exclude_outside=1), by(2.0, 0.6, mode="cubic", cubic_coeff_a=-0.5),
    *(n("Resize", IMAGE, ROI, None, np.array([1, 2, 3, 5]), mode=m, extrapolation_value=9.0,
        **grid("tf_crop_and_resize")) for m in ("linear", "nearest")),
    *(n("Resize", IMAGE, None, None, np.array([7, 6]), axes=[2, 3], keep_aspect_ratio_policy=p, mode=m)
      for p in ("not_larger", "not_smaller") for m in ("nearest", "linear")),
    n("Resize", IMAGE, None, np.array([2, 0.5], np.float32), axes=[3, 2], mode="linear"),
    n("Resize", IMAGE, np.zeros(0, np.float32), np.zeros(0, np.float32), np.array([1, 2, 8, 12]), opset=11),
    to(3, 7, opset=13), by(3.0, x=ROW), by(1.5, x=ROW, mode="linear"), by(2.0, 1.5, 1.0, x=CUBE, mode="linear"),
    to(4, 2, 3, x=CUBE), by(1.0, 1.0), to(4, 6), by(2.0, 2.0, x=f(0, 2, 3, 3), want=[np.zeros((0, 2, 6, 6))]),
    *(by(2.0, 2.0, x=(IMAGE * 50).astype(k)) for k in (np.int8, np.int32, np.float64, np.float16, ml_dtypes.bfloat16)),
    *(by(2.0, 1.5, x=(IMAGE * 50).astype(k), mode="linear") for k in (np.int32, np.float64, np.float16)),
    n("Upsample", IMAGE, np.array([1, 1, 2, 3], np.float32), opset=9)]


def as_typed(case: Node) -> Node:
    """The case, its answers in the type of the input."""
    x = case.inputs[0]
    assert x is not None
    want = case.want and [np.asarray(w, x.dtype) for w in case.want]
    return Node(case.op, case.inputs, case.attributes, case.opset, case.outputs, want, case.fixed)


@pytest.mark.parametrize(("case", "way"), [(as_typed(c), w) for c, w in product(CASES, WAYS)], ids=str)
def test_against_the_reference(case: Node, way: str) -> None:
    narrow = case.inputs[0] is not None and case.inputs[0].dtype.itemsize == 2
    check(case, way, 0.01 if narrow else 1e-4)


#: A case of known sizes, or of open ones, and the operations it becomes.
NATIVE: list[tuple[Node, str, list[str]]] = [
    (by(2.0, 2.0), "fixed", ["RESIZE_NEAREST_NEIGHBOR"]), (by(2.0, 2.0), "open", ["RESIZE_NEAREST_NEIGHBOR"]),
    (by(2.0, 2.0, mode="linear"), "fixed", ["RESIZE_BILINEAR"]),
    (by(2.0, 2.0, mode="linear", **grid("align_corners")), "open", ["RESIZE_BILINEAR"]),
    (to(8, 9, mode="linear", **grid("align_corners")), "fixed", ["RESIZE_BILINEAR"]),
    (by(1.0, 2.0, **grid("asymmetric"), nearest_mode="floor"), "fixed", ["RESIZE_NEAREST_NEIGHBOR"]),
    (to(4, 9, nearest_mode="ceil"), "fixed", ["GATHER"]),
    (to(3, 9, nearest_mode="ceil"), "fixed", ["GATHER", "GATHER"]),
    (by(2.0, 2.0, mode="cubic"), "fixed", ["FULLY_CONNECTED", "FULLY_CONNECTED"]),
    (by(0.5, 1.0, mode="linear", antialias=1), "fixed", ["FULLY_CONNECTED"]),
    (by(1.5, 2.0, mode="linear"), "open", ["INTERPOLATE"]),
    (by(2.0, 2.0, **grid("align_corners")), "open", ["INTERPOLATE"]), (to(4, 6), "fixed", [])]


@pytest.mark.parametrize(("case", "way", "ops"), NATIVE, ids=str)
def test_what_it_becomes(case: Node, way: str, ops: list[str]) -> None:
    found = [o.op.name for o in converted(built(case, way)[0]).operations]
    assert [o.removesuffix("_EX") for o in found if o not in ("TRANSPOSE", "RESHAPE")] == ops


def test_an_image_enlarged_by_attributes() -> None:
    want = [IMAGE.repeat(2, 2).repeat(3, 3)]
    check(n("Upsample", IMAGE, opset=7, scales=[1.0, 1.0, 2.0, 3.0], want=want), "fed")
    between = n("Resize", IMAGE, None, np.array([1, 1, 2, 3], np.float32), mode="linear", **grid("asymmetric"))
    scales = np.array([1, 1, 2, 3], np.float32)
    check(n("Upsample", IMAGE, scales, opset=9, mode="linear", want=expected(between)), "fed")
    check(n("Upsample", IMAGE, opset=1, height_scale=2.0, width_scale=3.0, want=want), "fed")


@pytest.mark.parametrize("way", WAYS)
def test_before_version_11_cells_are_taken_from_the_corner(way: str) -> None:
    cases = [((2.0, 1.0), IMAGE.repeat(2, 2)), ((0.5, 0.5), IMAGE[:, :, ::2, ::2]),
             ((2.0, 0.5), IMAGE.repeat(2, 2)[..., ::2])]
    for scales, want in cases:
        check(n("Resize", IMAGE, np.array([1, 1, *scales], np.float32), opset=10, want=[want]), way)


def test_before_version_11_axes_that_get_smaller_round_up() -> None:
    want = IMAGE[:, :, [0, 0, 1, 2, 2, 3]][..., [0, 2, 3, 5]]
    check(n("Resize", IMAGE, np.array([1, 1, 1.5, 0.67], np.float32), opset=10, want=[want]), "fixed")


#: A factor, a rounding, a grid, and which cells ONNX Runtime takes of a row at places from 9 on: ties in float32.
TIES = [(1.1, "floor", "asymmetric", [8, 9, 10]), (1.1, "round_prefer_ceil", "half_pixel", [8, 9, 10]),
        (0.7, "round_prefer_floor", "half_pixel", [13, 14, 16]), (1.2, "floor", "asymmetric", [7, 8, 9])]


@pytest.mark.parametrize(("factor", "rounding", "name", "want"), TIES)
@pytest.mark.parametrize("way", WAYS)
def test_places_are_single_precision_where_a_cell_is_picked(factor: float, rounding: str, name: str, want: list[int],
                                                            way: str) -> None:
    row = np.arange(40, dtype=np.float32).reshape(1, 1, 40)
    made, fed = built(n("Resize", row, None, np.float32([1, 1, factor]), nearest_mode=rounding, want=[row],
                        **grid(name)), way)
    found = nnx_convert.compile(made.SerializeToString(), threads=1).run(list(fed.values()))[0]
    assert found[0, 0, 9:12].tolist() == want


#: What is refused, and with which words.
WRONG: list[tuple[Node, str]] = [
    (by(2.0, 2.0, mode="sharp", want=[IMAGE]), "mode is 'sharp'"), (by(2.0, -1.0, want=[IMAGE]), "scales are"),
    (by(2.0, want=[IMAGE]), "scales are"), (by(2.0, 2.0, axes=[1, 2, 3, 9], want=[IMAGE]), "axes [1, 2, 3, 9]"),
    (n("Resize", IMAGE, None, np.ones(4, np.float32), np.array(IMAGE.shape), want=[IMAGE]), "either scales or sizes"),
    (n("Resize", IMAGE, None, None, None, want=[IMAGE]), "either scales or sizes"),
    (by(2.0, 2.0, **grid("elsewhere"), want=[IMAGE]), "coordinate_transformation_mode is 'elsewhere'")]


@pytest.mark.parametrize(("case", "said"), WRONG, ids=[w for _, w in WRONG])
def test_what_does_not_fit_is_refused(case: Node, said: str) -> None:
    with pytest.raises(NnxError) as found:
        nnx_convert.convert(built(case, "fixed")[0].SerializeToString())
    assert said in str(found.value)


def test_factors_that_are_none_fail_the_run() -> None:
    with pytest.raises(RunError, match="scales are"):
        check(by(0.0, 2.0, want=[IMAGE]), "fed")
