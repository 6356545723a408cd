"""LINEAR by hand, on the types NNAPI has and those the host has."""
from __future__ import annotations

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.ops.linear import LINEAR
from nnx_convert.types import F16, F32, F64, I32, I64, Q8, Quant, Tensor, Type

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("code", [F32, F16, F64, I32, I64], ids=lambda c: c.name)
@pytest.mark.parametrize(("x", "flat", "w", "b"), [
    ((2, 3), 1, (4, 3), (4,)), ((2, 3, 5), 2, (4, 3, 5), (4,)), ((2, 3, 5), 2, (4, 15), (4,)),
    ((2, 1, 3), 1, (2, 2, 3), (2, 2)), ((6,), 1, (5, 6), (5,)), ((0, 3), 1, (4, 3), (4,))])
def test_sums_over_the_last_axes(code: Type, x: tuple[int, ...], flat: int, w: tuple[int, ...], b: tuple[int, ...]
                                 ) -> None:
    xs, ws, bs = (RNG.integers(-9, 10, s) for s in (x, w, b))
    depth = int(np.prod(x[len(x) - flat:]))
    want = xs.reshape(*x[:len(x) - flat], depth) @ ws.reshape(-1, depth).T + bs.reshape(-1)
    for act, low, high in ((0, -np.inf, np.inf), (1, 0, np.inf), (3, 0, 6)):
        (got,) = run_op(LINEAR, {"x": tensor(xs, code), "w": tensor(ws, code), "b": tensor(bs, code), "flat": flat,
                                 "act": act})
        assert got.shape == (*x[:len(x) - flat], *b) and got.dtype == code.dtype
        np.testing.assert_array_equal(got, np.clip(want, low, high).reshape(got.shape))


def test_integers_wrap() -> None:
    (got,) = run_op(LINEAR, {"x": tensor([[2**31 - 1]], I32), "w": tensor([[1]], I32), "b": tensor([1], I32),
                             "flat": 1, "act": 0})
    assert got.tolist() == [[-2**31]]


def test_bytes_are_those_of_fully_connected() -> None:
    x, w = tensor([[3, 5], [0, 9]], Q8, Quant(0.5, 1)), tensor([[4, 2], [7, 1]], Q8, Quant(0.25, 2))
    b = tensor([8, -8], I32, Quant(0.125, 0))
    (got,) = run_op(LINEAR, {"x": x, "w": w, "b": b, "flat": 1, "act": 0}, Tensor(Q8, None, Quant(0.25, 10)))
    sums = (np.array([[2, 4], [-1, 8]]) @ np.array([[2, 0], [5, -1]]).T + [8, -8]) * 0.125
    assert got.tolist() == (np.floor(sums / 0.25 + 0.5) + 10).tolist()
