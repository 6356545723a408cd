"""Transforms of signals against their definitions."""
from __future__ import annotations

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert import RunError
from nnx_convert.ops import signal as s
from nnx_convert.types import F16, F32, F64, I64, Type

REAL = np.linspace(-1, 1, 12).reshape(2, 6, 1) ** 3


def matrix(n: int, m: int) -> np.ndarray:
    """exp(-2 pi i j k / n), m rows."""
    return np.exp(-2j * np.pi * np.outer(np.arange(m), np.arange(n)) / n)


@pytest.mark.parametrize(("kind", "near"), [(F64, 1e-12), (F32, 1e-5), (F16, 1e-2)], ids=str)
@pytest.mark.parametrize("length", [6, 4, 9])
def test_a_transform_is_a_product_by_roots_of_one(kind: Type, near: float, length: int) -> None:
    x = np.zeros((2, length))
    x[:, :min(6, length)] = REAL[:, :length, 0]
    want = x @ matrix(length, length).T
    args = {"x": tensor(REAL, kind), "length": tensor([length], I64), "axis": tensor([1], I64)}
    (whole,) = run_op(s.DFT, args | {"inverse": False, "onesided": False})
    (half,) = run_op(s.DFT, args | {"inverse": False, "onesided": True})
    assert whole.dtype == kind.dtype and half.shape == (2, length // 2 + 1, 2)
    np.testing.assert_allclose(whole[..., 0] + 1j * whole[..., 1], want, atol=near)
    np.testing.assert_array_equal(half, whole[:, :length // 2 + 1])
    back = {"x": tensor(whole, kind), "length": None, "axis": tensor([-2], I64), "inverse": True, "onesided": False}
    np.testing.assert_allclose(run_op(s.DFT, back)[0][..., 0], x, atol=near)
    real = back | {"x": tensor(half, kind), "length": tensor([length], I64), "onesided": True}
    np.testing.assert_allclose(run_op(s.DFT, real)[0][..., 0], x, atol=near)


def test_a_transform_of_no_length_fails() -> None:
    with pytest.raises(RunError, match="length 0"):
        run_op(s.DFT, {"x": tensor(REAL, F32), "length": tensor([0], I64), "axis": tensor([1], I64),
                       "inverse": False, "onesided": False})


@pytest.mark.parametrize("axis", [-1, 2, 3, -4, 2**63 - 1])
def test_a_transform_of_an_axis_that_has_no_numbers_fails(axis: int) -> None:
    x = tensor(np.zeros((2, 4, 1)), F32)
    with pytest.raises(RunError, match=f"there is no axis {axis} among 2"):
        run_op(s.DFT, {"x": x, "length": None, "axis": tensor([axis], I64), "inverse": False, "onesided": False})


def test_frames_start_a_step_apart() -> None:
    (found,) = run_op(s.FRAMES, {"x": tensor(REAL, F32), "step": tensor([2], I64), "size": tensor([3], I64)})
    np.testing.assert_array_equal(found, np.stack([REAL[:, 0:3], REAL[:, 2:5]], 1).astype(np.float32))


def test_mel_weights_are_triangles() -> None:
    args = {"bins": 5, "length": 64, "rate": 8000}
    given = {n: tensor([v], I64) for n, v in args.items()}
    (found,) = run_op(s.MEL_WEIGHTS, given | {"low": tensor([0], F32), "high": tensor([4000], F32)})
    assert found.shape == (33, 5) and found.min() == 0 and found.max() == 1
    assert (found.max(0) == 1).all() and (np.diff(found.argmax(0)) > 0).all()
