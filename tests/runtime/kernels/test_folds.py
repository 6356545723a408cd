"""Searches from the end and running folds, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from natively import Net
from one_op import run_op, tensor

from nnx_convert import CompiledModel, OperandCode, RunError
from nnx_convert.ops import folds as f
from nnx_convert.types import F16, F32, F64, I32, I64, U32, Type

ROWS = np.array([[2, 5, 5, 1], [0, 0, 7, 7], [3, 3, 3, 3]])


@pytest.mark.parametrize("kind", [F32, I64], ids=lambda t: t.name)
def test_the_last_of_equals(kind: Type) -> None:
    x = tensor(ROWS, kind)
    assert run_op(f.ARGMAX_LAST, {"x": x, "axis": 1})[0].tolist() == [2, 3, 3]
    assert run_op(f.ARGMIN_LAST, {"x": x, "axis": -1})[0].tolist() == [3, 1, 3]
    assert run_op(f.ARGMAX_LAST, {"x": x, "axis": 0})[0].tolist() == [2, 0, 1, 1]


@pytest.mark.parametrize("kind", [F32, F16, F64, I32, I64, U32], ids=lambda t: t.name)
@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_running_folds(kind: Type, product: bool, axis: int) -> None:
    x, whole = tensor(ROWS, kind), np.cumprod if product else np.cumsum
    for exclusive in (False, True):
        for reverse in (False, True):
            rows = np.flip(ROWS, axis) if reverse else ROWS
            found = whole(rows, axis)
            if exclusive:
                first = np.full_like(np.take(found, [0], axis), int(product))
                found = np.concatenate((first, np.take(found, range(rows.shape[axis] - 1), axis)), axis)
            want = np.flip(found, axis) if reverse else found
            args = {"x": x, "axis": tensor([axis], I64), "exclusive": exclusive, "reverse": reverse, "product": product}
            (got,) = run_op(f.CUMULATE, args)
            assert got.dtype == kind.dtype
            np.testing.assert_array_equal(got, want)


def test_integers_wrap() -> None:
    args = {"axis": tensor([0], I32), "exclusive": False, "reverse": False, "product": True}
    assert run_op(f.CUMULATE, {"x": tensor([2**31, 4, 3], I64), **args})[0].tolist() == [2**31, 2**33, 3 * 2**33]
    assert run_op(f.CUMULATE, {"x": tensor([2**31 - 1, 2], I32), **args})[0].tolist() == [2**31 - 1, -2]


def test_nothing_has_no_sums() -> None:
    args = {"axis": tensor([0], I32), "exclusive": True, "reverse": True, "product": False}
    assert run_op(f.CUMULATE, {"x": tensor(np.zeros((0, 2)), F32), **args})[0].shape == (0, 2)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("axis", [2, -3, 2**31 - 1, -2**31])
def test_an_axis_that_a_run_gives_is_one_of_the_tensor(axis: int, backend: str) -> None:
    net = Net()
    x, at = net.input(np.ones((2, 3))), net.input(np.array([axis]), OperandCode.TENSOR_INT32)
    found = net.op("CUMULATE", x, at, *map(net.scalar, (False, False, False)), shape=(2, 3))
    with pytest.raises(RunError, match=f"there is no axis {axis} among 2"):
        CompiledModel(net.finish(found), backend=backend).run(net.given)
