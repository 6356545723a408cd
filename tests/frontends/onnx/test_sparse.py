"""Sparse initializers, kept compressed or made dense."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import SparseTensorProto, helper, numpy_helper

import nnx_convert
from nnx_convert.codes import OperationCode
from nnx_convert.errors import FormatError, NnxError
from nnx_convert.frontends.onnx.external import Folder
from nnx_convert.frontends.onnx.sparse import constant
from nnx_convert.graph import Sparse

NOWHERE = Folder(None)


def sparse(values: Any, at: Any, dims: tuple[int, ...], dtype: Any = np.float32) -> SparseTensorProto:
    """A message called s."""
    return helper.make_sparse_tensor(numpy_helper.from_array(np.array(values, dtype), "s"),
                                     numpy_helper.from_array(np.array(at, np.int64)), dims)


def thinned(dims: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An array with a tenth of its elements."""
    rng = np.random.default_rng(len(dims))
    return (rng.integers(1, 100, dims) * (rng.random(dims) < 0.1)).astype(dtype)


def message(array: np.ndarray, tuples: bool) -> SparseTensorProto:
    """The message of an array's elements that are not zero; indices as tuples or as numbers."""
    at = np.flatnonzero(array)
    where = np.stack(np.unravel_index(at, array.shape), -1) if tuples else at
    return sparse(array.reshape(-1)[at], where, array.shape, array.dtype)


def spread(s: Sparse, dims: tuple[int, ...]) -> np.ndarray:
    """What a compressed constant of which only the last axis is sparse stands for."""
    segments, indices = s.pairs[-2:]
    assert segments is not None and indices is not None
    full = np.zeros((len(segments) - 1, dims[-1]), s.data.dtype)
    full[np.repeat(np.arange(len(segments) - 1), np.diff(segments)), indices] = s.data
    return full.reshape(dims)


@pytest.mark.parametrize("tuples", [False, True], ids=["numbers", "tuples"])
@pytest.mark.parametrize("dims", [(9, 40), (3, 4, 5, 40)], ids=str)
def test_what_pays_is_kept_compressed(dims: tuple[int, ...], tuples: bool) -> None:
    array = thinned(dims)
    found = constant(message(array, tuples), NOWHERE)
    assert found.sparse is not None and found.shape == dims
    assert (spread(found.sparse, dims) == array).all()


@pytest.mark.parametrize("array", [
    thinned((40,)), thinned((9, 40), np.int64), np.eye(2, dtype=np.float32), np.zeros((9, 40), np.float32)],
    ids=["one axis", "int64", "little to save", "nothing"])
def test_the_rest_is_made_dense(array: np.ndarray) -> None:
    found = constant(message(array, False), NOWHERE)
    assert found.sparse is None and (found.array == array).all() and found.array.dtype == array.dtype


def test_texts() -> None:
    proto = sparse([1], [2], (3,))
    proto.values.CopyFrom(helper.make_tensor("s", 8, (1,), [b"a"]))
    assert constant(proto, NOWHERE).array.tolist() == [b"", b"", b"a"]


WRONG: dict[str, tuple[SparseTensorProto, str]] = {
    "no shape": (sparse([1], [0], ()), "is sparse with the shape []"),
    "a shape too large": (sparse([1], [0], (1 << 20, 1 << 20)), "is sparse with the shape [1048576, 1048576]"),
    "a negative size": (sparse([1], [0], (-1, 2)), "has the shape [-1, 2]"),
    "values of two axes": (sparse([[1]], [0], (2,)), "its values have the shape [1, 1]"),
    "too few indices": (sparse([1, 2], [0], (2,)), "2 values, and its indices are int64[1]"),
    "tuples of another rank": (sparse([1, 2], [[0, 1, 0], [1, 1, 0]], (2, 2)), "its indices are int64[2, 3]"),
    "beyond the end": (sparse([1], [4], (2, 2)), "has an index outside its shape [2, 2]"),
    "negative": (sparse([1], [-1], (2, 2)), "has an index outside"),
    "a tuple beyond the end": (sparse([1], [[0, 2]], (2, 2)), "has an index outside"),
    "in no order": (sparse([1, 2], [2, 1], (2, 2)), "that do not ascend"),
    "twice": (sparse([1, 2], [[1, 1], [1, 1]], (2, 2)), "one of them twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    proto, said = WRONG[name]
    with pytest.raises(FormatError, match="tensor 's'") as found:
        constant(proto, NOWHERE)
    assert said in str(found.value)


def test_indices_of_another_type() -> None:
    proto = sparse([1], [0], (2,))
    proto.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int32)))
    with pytest.raises(NnxError, match="its indices are int32"):
        constant(proto, NOWHERE)


def model(op: str, w: np.ndarray, x: tuple[int, ...], y: tuple[int, ...], **attributes: int) -> bytes:
    """A model of one node with sparse weights."""
    ends = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", x), ("y", y))]
    graph = helper.make_graph([helper.make_node(op, ["x", "s"], ["y"], **attributes)], "g", ends[:1], ends[1:])
    graph.sparse_initializer.append(message(w, False))
    return helper.make_model(graph).SerializeToString()


@pytest.mark.parametrize(("target", "densified"), [
    (nnx_convert.Target(), True), (nnx_convert.Target(experimental=False), False),
    (nnx_convert.Target(sparse="fold"), False)], ids=["experimental", "not", "fold"])
def test_a_model_multiplies_by_it(target: nnx_convert.Target, densified: bool) -> None:
    w, x = thinned((40, 9)), np.arange(80, dtype=np.float32).reshape(2, 40)
    made = nnx_convert.convert(model("MatMul", w, (2, 40), (2, 9)), target)
    assert (OperationCode.DENSIFY in [o.op.code for o in made.operations]) == densified
    assert (nnx_convert.compile(made).run({"x": x})["y"] == x @ w).all()


@pytest.mark.parametrize(("op", "shape", "x", "y", "attributes", "ops"), [
    ("MatMul", (40, 9), (2, 40), (2, 9), {}, ["DENSIFY", "FULLY_CONNECTED"]),
    ("Gemm", (9, 40), (2, 40), (2, 9), {"transB": 1}, ["DENSIFY", "FULLY_CONNECTED"]),
    ("Conv", (8, 4, 3, 30), (1, 4, 8, 40), (1, 8, 6, 11), {}, ["CONV_2D", "DENSIFY", "TRANSPOSE", "TRANSPOSE"])],
    ids=["MatMul", "Gemm", "Conv"])
def test_weights_are_not_turned_in_a_run(op: str, shape: tuple[int, ...], x: tuple[int, ...], y: tuple[int, ...],
                                         attributes: dict[str, int], ops: list[str]) -> None:
    data = model(op, thinned(shape), x, y, **attributes)
    kept, dense = (nnx_convert.convert(data, nnx_convert.Target(sparse=way)) for way in ("keep", "fold"))
    assert sorted(o.op.name for o in kept.operations) == ops
    given = {"x": np.random.default_rng(0).integers(-3, 4, x).astype(np.float32)}
    want, got = (nnx_convert.compile(m).run(given)["y"] for m in (dense, kept))
    np.testing.assert_allclose(got, want, rtol=1e-6)
