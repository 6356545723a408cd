"""Pools, resizing and block moves against their definitions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import Slide
from one_op import run_op, tensor
from test_conv import slid

from nnx_convert.ops import image as ops
from nnx_convert.types import F16, F32, I16, I32, Q8, Q8S, Quant, Tensor

Array = np.ndarray[Any, Any]
SLIDES = [Slide((2, 2), (2, 2)), Slide((3, 3), (1, 2), pads=(1, 1, 1, 0)), Slide((3, 2), (2, 1), pads=(2, 1, 0, 1)),
          Slide((6, 5)), Slide((5, 5), pads=(2, 2, 2, 2)), Slide((1, 1), (3, 3)),
          Slide((15, 13), pads=(8, 8, 7, 8)), Slide((17, 16), (3, 4), pads=(9, 8, 8, 9))]
SHAPE = (2, 6, 5, 3)


def pooled(slide: Slide, **more: Any) -> dict[str, Any]:
    """A slide as a pool's arguments."""
    return slid(slide, kh=slide.size[0], kw=slide.size[1]) | more


def cells_of(x: Array, slide: Slide, fold: Any) -> Array:
    """`fold` over the cells of each window: an array [cells, n, c]."""
    return slide.over(x, lambda cells: fold(np.array([x[:, r, c] for _, _, r, c in cells])))


@pytest.mark.parametrize("slide", SLIDES, ids=str)
@pytest.mark.parametrize("nchw", [False, True])
@pytest.mark.parametrize("code", [F32, F16], ids=lambda c: c.name)
@pytest.mark.parametrize(("op", "fold"), [
    (ops.MAX_POOL_2D, lambda v: v.max(0)), (ops.AVERAGE_POOL_2D, lambda v: v.mean(0)),
    (ops.L2_POOL_2D, lambda v: np.sqrt((v * v).mean(0)))], ids=["max", "average", "l2"])
def test_float_pools(slide: Slide, nchw: bool, code: Any, op: Any, fold: Any) -> None:
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(code.dtype)
    image = x.transpose(0, 3, 1, 2) if nchw else x
    (found,) = run_op(op, pooled(slide, x=tensor(image, code), act=2) | {"nchw": nchw})
    want = np.clip(cells_of(x.astype(np.float64), slide, fold), -1, 1)
    close = 1e-6 if code is F32 else 2e-3
    np.testing.assert_allclose(found.transpose(0, 2, 3, 1) if nchw else found, want, rtol=close, atol=close)


def mean_away(cells: Array) -> Array:
    """Integer means, halves away from zero."""
    total, n = cells.sum(0), len(cells)
    return np.where(total > 0, (total + n // 2) // n, -((n // 2 - total) // n))


@pytest.mark.parametrize("slide", SLIDES, ids=str)
@pytest.mark.parametrize("code", [Q8, Q8S], ids=lambda c: c.name)
def test_integer_pools_are_exact(slide: Slide, code: Any) -> None:
    info = np.iinfo(code.dtype)
    x = np.random.default_rng(2).integers(info.min, info.max + 1, SHAPE)
    given = tensor(x, code, Quant(0.1, 4))
    for op, fold in ((ops.MAX_POOL_2D, lambda v: v.max(0)), (ops.AVERAGE_POOL_2D, mean_away)):
        (found,) = run_op(op, pooled(slide, x=given, act=1))
        assert np.array_equal(found, np.clip(cells_of(x, slide, fold), 4, info.max))


def test_an_average_rounds_away_from_zero() -> None:
    x = tensor([[[[1], [2], [-1], [-2]]]], Q8S, Quant(1.0, 0))
    (found,) = run_op(ops.AVERAGE_POOL_2D, pooled(Slide((1, 2), (1, 2)), x=x, act=0))
    assert found.reshape(-1).tolist() == [2, -2]


@pytest.mark.parametrize(("op", "fold"), [(ops.MAX_POOL_2D, np.max), (ops.AVERAGE_POOL_2D, np.mean)],
                         ids=["max", "average"])
def test_what_of_a_window_meets_no_cell_takes_neither_memory_nor_time(op: Any, fold: Any) -> None:
    half = 1 << 29
    x = np.arange(24, dtype=np.float32).reshape(1, 4, 3, 2)
    (found,) = run_op(op, pooled(Slide((2 * half, 2 * half), pads=(half,) * 4), x=tensor(x, F32), act=0))
    assert found.shape == (1, 5, 4, 2) and (found == fold(x, (1, 2), keepdims=True)).all()


@pytest.mark.parametrize("op", [ops.MAX_POOL_2D, ops.AVERAGE_POOL_2D, ops.L2_POOL_2D], ids=lambda o: o.name)
def test_a_pool_of_windows_larger_than_the_image_is_empty(op: Any) -> None:
    x = tensor(np.ones((1, 1, 1, 3)), F32)
    assert run_op(op, pooled(Slide((2, 2), (2, 2)), x=x, act=0))[0].shape == (1, 0, 0, 3)


#: Rows of a 2-wide image [0, 1] resized to 4 (traps 46), and of a 2-wide one to 5 by nearest (trap 47).
BILINEAR = {(False, False): [0, .5, 1, 1], (True, False): [0, 1 / 3, 2 / 3, 1], (False, True): [0, .25, .75, 1]}
NEAREST = {(False, False): [0, 0, 0, 1, 1], (True, False): [0, 0, 1, 1, 1], (False, True): [0, 0, 1, 1, 1]}


@pytest.mark.parametrize(("flags", "want"), BILINEAR.items(), ids=str)
def test_bilinear_coordinates(flags: tuple[bool, bool], want: list[float]) -> None:
    x = tensor(np.array([0, 1]).reshape(1, 1, 2, 1), F32)
    (found,) = run_op(ops.RESIZE_BILINEAR, {"x": x, "ow": 4, "oh": 1, "align": flags[0], "half": flags[1],
                                            "nchw": False})
    np.testing.assert_allclose(found.reshape(-1), want, atol=1e-6)


@pytest.mark.parametrize(("flags", "want"), NEAREST.items(), ids=str)
def test_nearest_coordinates(flags: tuple[bool, bool], want: list[int]) -> None:
    x = tensor(np.array([0, 1]).reshape(1, 1, 1, 2), F32)
    (found,) = run_op(ops.RESIZE_NEAREST_NEIGHBOR, {"x": x, "ow": 5, "oh": 1, "align": flags[0], "half": flags[1],
                                                    "nchw": True})
    assert found.reshape(-1).tolist() == want


@pytest.mark.parametrize("code", [Q8, Q8S], ids=lambda c: c.name)
@pytest.mark.parametrize("flags", list(BILINEAR), ids=str)
def test_integer_resizing_is_within_a_step_of_the_real_one(code: Any, flags: tuple[bool, bool]) -> None:
    info = np.iinfo(code.dtype)
    x = np.random.default_rng(3).integers(info.min, info.max + 1, (1, 5, 4, 2))
    args = {"ow": 7, "oh": 9, "align": flags[0], "half": flags[1], "nchw": False}
    (real,) = run_op(ops.RESIZE_BILINEAR, args | {"x": tensor(x, F32)})
    (found,) = run_op(ops.RESIZE_BILINEAR, args | {"x": tensor(x, code, Quant(1.0, 0))})
    assert np.abs(found - real).max() <= 1


def test_depth_and_space_change_places() -> None:
    x = np.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    for nchw in (False, True):
        given = tensor(x.transpose(0, 3, 1, 2) if nchw else x, F32)
        (deep,) = run_op(ops.SPACE_TO_DEPTH, {"x": given, "block": 2, "nchw": nchw})
        first = deep[0, :, 0, 0] if nchw else deep[0, 0, 0]
        assert first.tolist() == [*x[0, 0, 0], *x[0, 0, 1], *x[0, 1, 0], *x[0, 1, 1]]
        (back,) = run_op(ops.DEPTH_TO_SPACE, {"x": tensor(deep, F32), "block": 2, "nchw": nchw})
        assert np.array_equal(back, given.data)


def test_batch_and_space_change_places() -> None:
    x = np.arange(1 * 3 * 5 * 2).reshape(1, 3, 5, 2) % 200
    args = {"x": tensor(x, Q8, Quant(1.0, 9)), "blocks": tensor([2, 3], I32), "nchw": False}
    (many,) = run_op(ops.SPACE_TO_BATCH_ND, args | {"pads": tensor([[1, 0], [0, 1]], I32)},
                     Tensor(Q8, None, Quant(1.0, 9)))
    assert many.shape == (6, 2, 2, 2) and many[0, 0, 0].tolist() == [9, 9]
    assert many[3, 0, 0].tolist() == x[0, 0, 0].tolist()
    (back,) = run_op(ops.BATCH_TO_SPACE_ND, args | {"x": tensor(many, Q8, Quant(1.0, 9))})
    assert np.array_equal(back[:, 1:, :5], x)


@pytest.mark.parametrize("slide", SLIDES, ids=str)
def test_pool_of_plain_integers(slide: Slide) -> None:
    """Integers without a grid are clamped as the numbers they are."""
    x = np.random.default_rng(1).integers(-9, 9, SHAPE)
    (found,) = run_op(ops.MAX_POOL_2D, pooled(slide, x=tensor(x, I16), act=3))
    np.testing.assert_array_equal(found, np.clip(cells_of(x, slide, lambda v: v.max(0)), 0, 6))
