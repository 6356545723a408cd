"""Reductions and searches along axes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.ops import reduce as r
from nnx_convert.ops.host import TOPK_FIRST, host_twin
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, F16, F32, F64, I32, I64, Q8, Q8S, Quant, Tensor, Type

LITERT = rows(*(o.name for o in vars(r).values() if isinstance(o, OpDef)))
X = np.random.default_rng(5).integers(-9, 9, (3, 4, 5)).astype(np.float64) / 4
REAL = {r.MEAN: np.mean, r.REDUCE_SUM: np.sum, r.REDUCE_PROD: np.prod, r.REDUCE_MAX: np.max, r.REDUCE_MIN: np.min}
AXES: list[tuple[int, ...]] = [(0,), (1,), (-1,), (0, 2), (2, 0, 2), (0, 1, 2), (-3, 1), ()]


def run(op: OpDef, x: Tensor, axes: tuple[int, ...], keep: bool, out: Tensor | None = None) -> Any:
    """The reduction, by the host's row where NNAPI's takes no such type."""
    args = {"x": x, "axes": tensor(axes, I32), "keep": keep}
    return run_op(op if x.type in op.types else host_twin(op), args, *([out] if out else []))[0]


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    got, golden = found(row)
    np.testing.assert_array_equal(got, golden)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", [F32, F16, F64], ids=lambda t: t.name)
@pytest.mark.parametrize("op", REAL, ids=lambda o: o.name)
def test_floats(op: OpDef, kind: Type, keep: bool, axes: tuple[int, ...]) -> None:
    over = tuple(sorted({a % 3 for a in axes}))
    want = REAL[op](X, axis=over, keepdims=keep)
    got = run(op, tensor(X, kind), axes, keep)
    assert got.shape == (want.shape or (1,)) and got.dtype == kind.dtype
    np.testing.assert_allclose(got, want.reshape(got.shape), rtol=1e-3 if kind == F16 else 1e-6, atol=1e-6)


# operation, values, wanted over the last axis
INTEGERS = [(r.MEAN, [[1, 2], [-1, -2]], [1, -1]), (r.REDUCE_SUM, [[2**31 - 1, 1]], [-2**31]),
            (r.REDUCE_PROD, [[65536, 65536]], [0]), (r.REDUCE_MAX, [[-5, -3]], [-3]), (r.REDUCE_MIN, [[-5, -3]], [-5])]


@pytest.mark.parametrize(("op", "x", "want"), INTEGERS, ids=lambda v: getattr(v, "name", None))
def test_integers(op: OpDef, x: Any, want: list[int]) -> None:
    """A mean is rounded toward zero; sums and products wrap."""
    assert run(op, tensor(x, I32), (1,), False).tolist() == want


def test_truth() -> None:
    x = tensor([[True, True], [False, True], [False, False]], B8)
    assert run(r.REDUCE_ALL, x, (1,), False).tolist() == [True, False, False]
    assert run(r.REDUCE_ANY, x, (-1,), True).tolist() == [[True], [True], [False]]


EMPTY = [(r.REDUCE_SUM, 0), (r.REDUCE_PROD, 1), (r.REDUCE_MAX, -np.inf), (r.REDUCE_MIN, np.inf)]


@pytest.mark.parametrize(("op", "want"), EMPTY, ids=lambda v: getattr(v, "name", None))
def test_over_nothing(op: OpDef, want: float) -> None:
    assert run(op, tensor(np.empty((2, 0)), F32), (1,), False).tolist() == [want] * 2
    assert run(op, tensor(np.empty((0, 2)), F32), (1,), False).shape == (0,)


def test_what_is_no_number_does_not_count() -> None:
    x = tensor([[1, np.nan, 2], [np.nan, 1, 0], [1, 2, np.nan]], F32)
    assert run(r.REDUCE_MAX, x, (1,), False).tolist() == [2, 1, 2]
    assert run(r.REDUCE_MIN, x, (1,), False).tolist() == [1, 0, 1]


@given(st.lists(st.lists(st.integers(0, 255), min_size=6, max_size=6), min_size=1, max_size=5),
       st.floats(2.0**-8, 4, width=32), st.floats(2.0**-8, 4, width=32), st.integers(0, 255), st.integers(0, 255))
@settings(max_examples=80)
def test_quantised_mean(rows_: list[list[int]], si: float, so: float, zi: int, zo: int) -> None:
    """The division is folded into the multiplier, truncated there."""
    m, s = scalars.multiplier(si / so)
    shift = min(2, 31 + s)
    m, s = (m << shift) // 6, s - shift
    got = run_op(host_twin(r.MEAN), {"x": tensor(rows_, Q8, Quant(si, zi)), "axes": tensor([1], I32), "keep": 0},
                 Tensor(Q8, None, Quant(so, zo)))[0]
    assert got.tolist() == [scalars.clamp(scalars.scale32(sum(v) - 6 * zi, m, s) + zo, 0, 255) for v in rows_]


# values along one row, the index of the largest, of the smallest
EXTREMES: list[tuple[Any, Any, int, int]] = [
    (F32, [2, 5, 5, 1, 1], 1, 3), (F32, [np.nan, 1, 7], 2, 1), (F32, [1, np.nan, 7], 2, 0), (F32, [np.nan] * 2, 0, 0),
    (F16, [-1, -0.5, -0.5], 1, 0), (I32, [-2**31, 0, 2**31 - 1], 2, 0), (Q8, [3, 255, 0, 255], 1, 2),
    (Q8S, [-128, -1, 5], 2, 0), (I64, [2**40, 2**41, 2**41], 1, 0)]


@pytest.mark.parametrize(("kind", "x", "most", "least"), EXTREMES)
def test_search(kind: Type, x: list[Any], most: int, least: int) -> None:
    """The first among equals; what is no number is passed over, as LiteRT does."""
    t = tensor([x, x], kind, Quant(1.0, 0) if kind in (Q8, Q8S) else None)
    for op, want in ((r.ARGMAX, most), (r.ARGMIN, least)):
        row = op if kind in op.types else host_twin(op)
        assert run_op(row, {"x": t, "axis": -1})[0].tolist() == [want, want]


def test_search_along_any_axis() -> None:
    for axis in (-3, 0, 1, 2):
        np.testing.assert_array_equal(run_op(r.ARGMAX, {"x": tensor(X, F32), "axis": axis})[0], X.argmax(axis))


# values, k, values and indices with the larger index first, indices with the smaller first
TOP: list[tuple[Type, list[Any], int, list[Any], list[int], list[int]]] = [
    (F32, [3, 1, 3, 2, 3], 2, [3, 3], [4, 2], [0, 2]), (F32, [3, 1, 2], 3, [3, 2, 1], [0, 2, 1], [0, 2, 1]),
    (F32, [1, np.nan, 2, 3], 2, [3, 2], [3, 2], [3, 2]), (I32, [-2**31, 2**31 - 1], 1, [2**31 - 1], [1], [1]),
    (Q8S, [-128, -128, 127], 2, [127, -128], [2, 1], [2, 0]), (F32, [1, 2], 0, [], [], []),
    (F16, [0.0, -0.0], 1, [0.0], [1], [0])]


@pytest.mark.parametrize(("kind", "x", "k", "values", "larger", "smaller"), TOP)
def test_topk(kind: Type, x: Any, k: int, values: Any, larger: Any, smaller: Any) -> None:
    t = tensor([x], kind, Quant(1.0, 0) if kind == Q8S else None)
    for op, want in ((r.TOPK_V2, larger), (TOPK_FIRST, smaller)):
        found_values, indices = run_op(op, {"x": t, "k": k}, *[None] * 2)      # type: ignore[list-item]
        assert (found_values.tolist(), indices.tolist()) == ([values], [want])
