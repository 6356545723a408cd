"""Pools over any axes, by hand: windows cut off, nothing under them, places; ONNX's answers are the importers'."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.errors import RunError
from nnx_convert.ops import pool_nd as p
from nnx_convert.types import F32, F64, I32, I64, Q8, Quant, Tensor

ROW = np.array([3, 1, 4, 1, 5]).reshape(1, 1, 5)


def window(size: int, pads: list[int], stride: int = 1, dilation: int = 1, ceil: bool = False) -> dict[str, Any]:
    """The arguments that say where a window goes."""
    named = {"kernel": [size], "pads": pads, "strides": [stride], "dilations": [dilation]}
    return {n: tensor(v, I32) for n, v in named.items()} | {"ceil": ceil}


MAXIMA: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    (window(2, [0, 0]), [3, 4, 4, 5], [0, 2, 2, 4]), (window(2, [1, 1], 2), [3, 4, 5], [0, 2, 4]),
    (window(2, [0, 0], 2, ceil=True), [3, 4, 5], [0, 2, 4]), (window(2, [0, 0], 1, 3), [3, 5], [0, 4]),
    (window(1, [2, 0]), [0, 0, 3, 1, 4, 1, 5], [-1, -1, 0, 1, 2, 3, 4]),
    (window(2, [0, 1], 4, ceil=True), [3, 5], [0, 4])]


@pytest.mark.parametrize(("args", "want", "places"), MAXIMA, ids=range(len(MAXIMA)))
@pytest.mark.parametrize("kind", [F32, F64, I64, Q8], ids=lambda k: k.name)
def test_the_largest_and_where_it_is_first(kind: Any, args: dict[str, Any], want: list[Any], places: list[Any]) -> None:
    x = tensor(ROW, kind, Quant(1.0, 0) if kind == Q8 else None)
    outs = Tensor(kind, None, x.quant), Tensor(I64, None)
    found = run_op(p.MAX_POOL_ND, {"x": x, "column_major": False} | args, *outs)
    assert [v.reshape(-1).tolist() for v in found] == [want, places]


MEANS: list[tuple[dict[str, Any], bool, list[float]]] = [
    (window(2, [1, 1]), False, [3, 2, 2.5, 2.5, 3, 5]), (window(2, [1, 1]), True, [1.5, 2, 2.5, 2.5, 3, 2.5]),
    (window(2, [0, 0], 2, ceil=True), True, [2, 2.5, 5]), (window(3, [0, 1], 2, ceil=True), True, [8 / 3, 10 / 3, 2.5])]


@pytest.mark.parametrize(("args", "counted", "want"), MEANS, ids=range(len(MEANS)))
def test_means(args: dict[str, Any], counted: bool, want: list[float]) -> None:
    found = run_op(p.AVERAGE_POOL_ND, {"x": tensor(ROW, F32), "counted": counted} | args)[0]
    np.testing.assert_allclose(found.reshape(-1), want, rtol=1e-6)


@pytest.mark.parametrize(("power", "want"), [(1, [4, 5, 5, 6]), (2, [10 ** 0.5, 17 ** 0.5, 17 ** 0.5, 26 ** 0.5])])
def test_sums_of_powers(power: float, want: list[float]) -> None:
    found = run_op(p.LP_POOL_ND, {"x": tensor(-ROW, F32), "p": float(power)} | window(2, [0, 0]))[0]
    np.testing.assert_allclose(found.reshape(-1), want, rtol=1e-6)


def placed(indices: list[int]) -> list[Any]:
    """Two numbers put back into a row of four, of a row of five."""
    args = {"x": tensor([[[7, 8]]], F32), "indices": tensor([[indices]], I64), "inner": tensor([1, 1, 4], I32),
            "shape": tensor([1, 1, 5], I32)}
    return list(run_op(p.UNPOOL_ND, args)[0].reshape(-1))


def test_numbers_put_back() -> None:
    assert placed([3, 1]) == [0, 8, 0, 7, 0]
    for wrong in ([4, 0], [-1, 0]):
        with pytest.raises(RunError, match=r"an index is not in \[0, 4\)"):
            placed(wrong)


def test_regions() -> None:
    x = tensor(np.arange(12).reshape(1, 1, 3, 4), F32)
    args = {"x": x, "oh": 1, "ow": 2, "scale": 0.5}
    found = run_op(p.MAX_ROI_POOL, args | {"rois": tensor([[0, 0, 0, 5, 2], [0, 40, 40, 50, 50]], F32)})[0]
    assert found.reshape(-1).tolist() == [5, 7, 0, 0]
    with pytest.raises(RunError, match=r"an image that is not in \[0, 1\)"):
        run_op(p.MAX_ROI_POOL, args | {"rois": tensor([[1, 0, 0, 5, 2]], F32)})
