"""Normalisation along an axis: floats against the formula, bytes against LiteRT and the real function."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.ops import norm as n
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OpDef
from nnx_convert.types import F16, F32, F64, Q8, Q8S, Q16S, Quant, Tensor, Type

LITERT = rows(*(o.name for o in vars(n).values() if isinstance(o, OpDef)))
X = np.random.default_rng(2).normal(0, 3, (2, 3, 5, 4))
FLOATS = pytest.mark.parametrize(("kind", "error"), [(F32, 2e-6), (F16, 4e-3), (F64, 1e-12)])


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    got, golden = found(row)
    np.testing.assert_array_equal(got, golden)


def run(op: OpDef, x: Any, kind: Type, **args: Any) -> Any:
    """A float run, by the host's row where NNAPI's takes no such type."""
    return run_op(op if kind in op.types else host_twin(op), {"x": tensor(x, kind)} | args)[0]


def softmax(x: Any, axis: int) -> Any:
    """exp(x) / its sum."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@FLOATS
@pytest.mark.parametrize("axis", [0, 1, -2, 3])
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_softmax(kind: Type, error: float, axis: int, beta: float) -> None:
    want = softmax(beta * X, axis)
    np.testing.assert_allclose(run(n.SOFTMAX, X, kind, beta=beta, axis=axis), want, atol=error)
    np.testing.assert_allclose(run(n.LOG_SOFTMAX, X, kind, beta=beta, axis=axis), np.log(want), atol=error * 10)


@pytest.mark.parametrize("shape", [(1, 40), (100, 2), (0, 3), (3, 1), (2, 17)], ids=str)
def test_softmax_of_any_width(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(0, 2, shape)
    np.testing.assert_allclose(run(n.SOFTMAX, x, F32, beta=1.0, axis=-1), softmax(x, -1) if x.size else x, atol=1e-6)


def test_softmax_of_large_values() -> None:
    x = [[1e30, 1e30, -1e30], [-1e4, -1e4, -1e4], [0, -np.inf, 0]]
    np.testing.assert_allclose(run(n.SOFTMAX, x, F32, beta=1.0, axis=1), [[.5, .5, 0], [1 / 3] * 3, [.5, 0, .5]])


ROWS = st.lists(st.lists(st.integers(-128, 127), min_size=7, max_size=7), min_size=1, max_size=4)


@given(ROWS, st.floats(2.0**-12, 1, width=32), st.floats(0.25, 3, width=32), st.sampled_from([0, 1]))
@settings(max_examples=60)
def test_quantised_softmax_is_within_a_step(values: Any, scale: float, beta: float, axis: int) -> None:
    x = np.array(values)
    want = softmax(beta * scale * x, axis)
    for kind, zero in ((Q8S, 0), (Q8, 128)):
        t = tensor(x + zero, kind, Quant(scale, zero))
        got = run_op(n.SOFTMAX, {"x": t, "beta": beta, "axis": axis})[0].astype(int) + (128 if kind == Q8S else 0)
        assert np.abs(got / 256 - np.minimum(want, 255 / 256)).max() <= 1.001 / 256


@given(ROWS, st.floats(2.0**-12, 2.0**-6, width=32))
@settings(max_examples=40)
def test_int16_softmax_is_close(values: Any, scale: float) -> None:
    x = np.array(values) * 200
    got = run_op(host_twin(n.SOFTMAX), {"x": tensor(x, Q16S, Quant(scale)), "beta": 1.0, "axis": -1},
                 Tensor(Q16S, None, Quant(2.0**-15)))[0]
    assert np.abs(got * 2.0**-15 - softmax(scale * x, -1)).max() < 1e-3


OTHER_GRIDS = [(n.SOFTMAX, Quant(1 / 100, 3)), (n.LOG_SOFTMAX, Quant(0.2, 100))]


@pytest.mark.parametrize(("op", "quant"), OTHER_GRIDS, ids=lambda v: getattr(v, "name", ""))
def test_other_output_grids_go_through_real_values(op: OpDef, quant: Quant) -> None:
    x = np.arange(-12, 12).reshape(4, 6)
    want = softmax(0.25 * x, -1)
    want = np.log(want) if op is n.LOG_SOFTMAX else want
    got = run_op(host_twin(op), {"x": tensor(x, Q8S, Quant(0.25, 0)), "beta": 1.0, "axis": -1},
                 Tensor(Q8S, None, quant))[0]
    assert np.abs((got.astype(int) - quant.zero) * quant.scale - want).max() <= quant.scale * 0.51


@FLOATS
@pytest.mark.parametrize("axis", [0, -1, 2])
def test_l2(kind: Type, error: float, axis: int) -> None:
    want = X / np.sqrt((X * X).sum(axis, keepdims=True))
    np.testing.assert_allclose(run(n.L2_NORMALIZATION, X, kind, axis=axis), want, atol=error)


def test_l2_of_nothing_long() -> None:
    np.testing.assert_allclose(run(n.L2_NORMALIZATION, [[0, 0], [3, 4]], F32, axis=1), [[0, 0], [0.6, 0.8]], rtol=1e-6)


@FLOATS
@pytest.mark.parametrize("radius", [0, 1, 2, 9])
@pytest.mark.parametrize("axis", [-1, 1])
def test_lrn(kind: Type, error: float, radius: int, axis: int) -> None:
    rows_ = np.moveaxis(X, axis, -1)
    size = rows_.shape[-1]
    near = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= radius
    want = np.moveaxis(rows_ * (2 + 0.5 * (rows_**2 @ near)) ** -0.75, -1, axis)
    got = run(n.LOCAL_RESPONSE_NORMALIZATION, X, kind, radius=radius, bias=2.0, alpha=0.5, beta=0.75, axis=axis)
    np.testing.assert_allclose(got, want, atol=error)


@FLOATS
@pytest.mark.parametrize("nchw", [False, True])
def test_instance_norm(kind: Type, error: float, nchw: bool) -> None:
    over = (2, 3) if nchw else (1, 2)
    want = (X - X.mean(over, keepdims=True)) * 1.5 / np.sqrt(X.var(over, keepdims=True) + 0.01) - 0.25
    got = run(n.INSTANCE_NORMALIZATION, X, kind, gamma=1.5, beta=-0.25, eps=0.01, nchw=nchw)
    np.testing.assert_allclose(got, want, atol=error * 2)
