"""Trees, kernels, votes, probabilities of pairs, labels and maps against loops and formulas."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert import RunError
from nnx_convert.ops import classical as c
from nnx_convert.types import F32, F64, I32, I64, LIST, STR, Tensor, Type

RNG = np.random.default_rng(11)
ROWS = RNG.normal(size=(6, 3)).astype(np.float32)
ASKS = {"LEQ": lambda a, b: a <= b, "LT": lambda a, b: a < b, "GTE": lambda a, b: a >= b, "GT": lambda a, b: a > b,
        "EQ": lambda a, b: a == b, "NEQ": lambda a, b: a != b}


def words(*values: str) -> Tensor:
    return Tensor(STR, (len(values),), None, objects(v.encode() for v in values))


def objects(values: Any) -> Any:
    items = list(values)
    found = np.empty(len(items), object)
    for i, v in enumerate(items):
        found[i] = v
    return found


LOOKED_UP: list[tuple[Any, Type, list[Any], list[Any], Type, Any]] = [
    ([[3, 9], [1, 1]], I64, [1, 3, 3], [10, 20, 30], I64, [[30, -1], [10, 10]]),
    ([1.5, np.nan, -0.0], F32, [np.nan, 0.0], [7, 8], I32, [-1, 7, 8]),
    ([2.0], F64, [], [], F32, [-1]), ([], I32, [1], [2], F32, [])]


@pytest.mark.parametrize(("x", "kind", "keys", "values", "to", "want"), LOOKED_UP)
def test_an_element_has_the_last_value_of_its_key(x: Any, kind: Type, keys: list[Any], values: list[Any], to: Type,
                                                  want: Any) -> None:
    (found,) = run_op(c.LOOKUP, {"x": tensor(x, kind), "keys": tensor(keys, kind), "values": tensor(values, to),
                                 "default": tensor([-1], to)})
    assert found.dtype == to.dtype and found.tolist() == want


def test_texts_are_looked_up_and_found() -> None:
    (numbers,) = run_op(c.LOOKUP, {"x": words("b", "z", "a"), "keys": words("a", "b"), "values": tensor([1, 2], F32),
                                   "default": tensor([9], F32)})
    (names,) = run_op(c.LOOKUP, {"x": tensor([[2], [5]], I64), "keys": tensor([1, 2], I64), "values": words("a", "é"),
                                 "default": words("?")})
    assert numbers.tolist() == [2, 9, 1] and names.tolist() == [["é".encode()], [b"?"]]


#: x0 <= 0 ? (x1 == 1 ? leaf 3 : leaf 4) : leaf 2, and a tree that is a leaf.
TREE: dict[str, list[Any]] = {
    "feature": [0, 1, 0, 0, 0, 0], "split": [0, 1, 0, 0, 0, 0], "mode": [0, 4, 6, 6, 6, 6], "yes": [1, 3, 0, 0, 0, 0],
    "no": [2, 4, 0, 0, 0, 0], "missing": [1, 0, 0, 0, 0, 0], "roots": [0, 5], "first": [0, 0, 0, 1, 2, 4, 5],
    "target": [0, 0, 1, 0, 0], "weight": [1, 2, 4, 8, 16]}
#: Per row the weights of the leaves that it comes to: of target 0, of target 1.
REACHED = {(-1, 1): ([2, 16], []), (0, 0): ([8, 16], [4]), (1, 1): ([1, 16], []), (np.nan, 1): ([2, 16], []),
           (-1, np.nan): ([8, 16], [4])}
FOLDS = {c.SUM: sum, c.AVERAGE: lambda v: sum(v) / 2, c.LEAST: lambda v: min(v, default=0),
         c.MOST: lambda v: max(v, default=0)}


def columns(**changes: Any) -> dict[str, Tensor]:
    return {n: tensor(v, F64 if n in ("split", "weight") else I64) for n, v in (TREE | changes).items()}


@pytest.mark.parametrize("kind", [F32, F64], ids=str)
@pytest.mark.parametrize("aggregate", FOLDS)
def test_a_row_comes_to_a_leaf_of_each_tree(kind: Type, aggregate: int) -> None:
    args = columns() | {"x": tensor(list(REACHED), kind), "aggregate": aggregate, "targets": 2}
    (found,) = run_op(c.TREES, args)
    assert found.dtype == kind.dtype
    assert found.tolist() == [[FOLDS[aggregate](w) for w in row] for row in REACHED.values()]


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("missing", [0, 1])
def test_a_node_asks(name: str, missing: int) -> None:
    values = [-1.0, 0.5, 2.0, np.nan, np.inf]
    one = {"feature": [0, 0, 0], "split": [0.5, 0, 0], "mode": [c.MODES.index(name), 6, 6], "yes": [1, 0, 0],
           "no": [2, 0, 0], "missing": [missing, 0, 0], "roots": [0], "first": [0, 0, 1, 2], "target": [0, 0],
           "weight": [1, np.inf]}
    args = columns(**one) | {"x": tensor([[v] for v in values], F64), "aggregate": c.LEAST, "targets": 1}
    want = [1 if ASKS[name](v, 0.5) or missing and math.isnan(v) else np.inf for v in values]
    assert run_op(c.TREES, args)[0].reshape(-1).tolist() == want


def test_many_rows_go_in_parts() -> None:
    x = RNG.normal(size=(200_000, 2)).astype(np.float32)
    args = columns() | {"x": tensor(x, F32), "aggregate": c.SUM, "targets": 2}
    low, one = x[:, 0] <= 0, x[:, 1] == 1
    want = np.where(low, np.where(one, 2, 8), 1) + 16
    np.testing.assert_array_equal(run_op(c.TREES, args)[0], np.stack([want, np.where(low & ~one, 4, 0)], 1))


def test_nodes_in_circles_fail() -> None:
    args = columns(yes=[1, 0, 0, 0, 0, 0], no=[1, 0, 0, 0, 0, 0]) | {
        "x": tensor([[0.0, 0.0]], F32), "aggregate": c.SUM, "targets": 2}
    with pytest.raises(RunError, match="circles"):
        run_op(c.TREES, args)


@pytest.mark.parametrize("kind", [c.LINEAR, c.POLY, c.RBF, c.SIGMOID])
@pytest.mark.parametrize("precision", [F32, F64], ids=str)
def test_a_kernel_compares_rows_with_vectors(kind: int, precision: Type) -> None:
    vectors = ROWS[::-1][:4] + 0.5
    near = {c.LINEAR: lambda a, b: a @ b, c.POLY: lambda a, b: (0.5 * (a @ b) + 0.25) ** 3,
            c.RBF: lambda a, b: np.exp(-0.5 * sum((a - b) ** 2)), c.SIGMOID: lambda a, b: np.tanh(0.5 * (a @ b) + 0.25)}
    want = [[near[kind](a.astype(float), b.astype(float)) for b in vectors] for a in ROWS]
    (found,) = run_op(c.KERNEL, {"x": tensor(ROWS, precision), "vectors": tensor(vectors, precision), "kind": kind,
                                 "gamma": 0.5, "offset": 0.25, "degree": 3.0})
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_pairs_vote() -> None:
    x = tensor([[1, -1, 0], [2, 3, 4], [-1, -2, -3]], F32)
    assert run_op(c.VOTES, {"x": x, "classes": 3})[0].tolist() == [[1, 0, 2], [2, 1, 0], [0, 1, 2]]


def test_probabilities_of_pairs_agree() -> None:
    """The system that Wu, Lin and Weng's second way solves: Q p = b, the probabilities' sum is 1."""
    pairs = np.array([[0.9, 0.8, 0.4], [0.5, 0.5, 0.5], [0.1, 0.3, 0.6]])
    (found,) = run_op(c.COUPLED, {"x": tensor(pairs, F64), "classes": 3})
    for row, got in zip(pairs, found, strict=True):
        r = np.zeros((3, 3))
        r[0, 1], r[0, 2], r[1, 2] = row
        r[1, 0], r[2, 0], r[2, 1] = 1 - row
        q = np.array([[sum(r[k, i] ** 2 for k in range(3) if k != i) if i == j else -r[j, i] * r[i, j]
                       for j in range(3)] for i in range(3)])
        whole = np.block([[q, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
        np.testing.assert_allclose(got, np.linalg.solve(whole, [0, 0, 0, 1])[:3], atol=5e-3)


def test_probit_undoes_the_normal_distribution_nearly() -> None:
    """As nearly as in ONNX Runtime, whose closed form it is."""
    z = np.array([-3, -1, 0, 0.5, 2])
    shares = [(1 + math.erf(v / math.sqrt(2))) / 2 for v in z]
    np.testing.assert_allclose(run_op(c.PROBIT, {"x": tensor(shares, F64)})[0], z, atol=6e-3)
    ends = run_op(c.PROBIT, {"x": tensor([0, 1, -1, 2], F32)})[0]
    assert ends[:2].tolist() == [-np.inf, np.inf] and np.isnan(ends[2:]).all()


def test_rows_become_maps() -> None:
    (found,) = run_op(c.ZIP_MAP, {"x": tensor([[1, 2], [3, 4]], F32), "labels": words("a", "b")})
    assert [m[0] for m in found] == [{b"a": 1, b"b": 2}, {b"a": 3, b"b": 4}]
    assert found[0][0][b"a"].dtype == np.float32


def mapped(given: dict[Any, Any]) -> Tensor:
    return Tensor(LIST, (1,), None, objects([{k: np.array(v, np.float32) for k, v in given.items()}]))


def test_maps_become_rows() -> None:
    zero = tensor([0], F32)
    (found,) = run_op(c.MAP_VALUES, {"x": mapped({1: 5, 3: 7}), "vocabulary": tensor([3, 2, 1], I64), "default": zero})
    assert found.tolist() == [[7, 0, 5]]
    args = {"x": mapped({3: 7, 1: 5}), "default": zero}
    assert run_op(c.MAP_DENSE, args | {"size": 9, "sparse": False})[0].tolist() == [[5, 7]]
    assert run_op(c.MAP_DENSE, args | {"size": 2, "sparse": True})[0].tolist() == [[0, 5, 0, 7]]
    assert run_op(c.MAP_DENSE, args | {"size": 6, "sparse": True})[0].tolist() == [[0, 5, 0, 7, 0, 0]]


@pytest.mark.parametrize("keys", [{-1: 1}, {1 << 60: 1}])
def test_keys_that_are_no_places_fail(keys: dict[int, int]) -> None:
    with pytest.raises(RunError, match=r"key -1|values of a map"):
        run_op(c.MAP_DENSE, {"x": mapped(keys), "default": tensor([0], F32), "size": 1, "sparse": True})
