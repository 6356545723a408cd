"""Elements by index against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import model
from onnx import helper
from three_ways import WAYS, Node, as_wanted, built, check, n

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, RunError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)
KINDS = (np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint32, np.uint64,
         ml_dtypes.bfloat16)
AT = np.array([[[1, 0, -1, 2]], [[-3, 0, 1, 2]]])
PAIRS = np.array([[[1, -1], [0, 2]], [[-2, 0], [1, 1]]])
SCATTERED = np.array([[[0, -2, 2, 3], [9.5, 5, 6, 7], [8, 9, 3, 4]],
                      [[5, 6, 14, 15], [16, 17, 7, 19], [20, 21, 22, 8]]], np.float32)
UPDATES = np.array([[[9.5, -2, 3, 4]], [[5, 6, 7, 8]]], np.float32)


def longs(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def texts(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64).astype(str).astype(object)


CASES: list[Node] = [
    n("Gather", X, longs(1, -1, 0), axis=1), n("Gather", X, longs([0, 2], [-2, 1]), axis=-2),
    n("Gather", ROW, longs(3)), n("Gather", X, np.array(-1), axis=2), n("Gather", ROW, np.array(1)),
    n("Gather", X, longs()), n("Gather", X, longs(1).astype(np.int32)),
    *(n("Gather", X.astype(kind), longs(-1, 0), axis=2) for kind in KINDS),
    n("Gather", X > 9, longs(2, 0), axis=1), n("Gather", X, longs(1), opset=1, want=[X[1:2]]),
    n("GatherElements", X, AT, axis=1), n("GatherElements", X, X[..., :1].astype(np.int64) % 4, axis=-1,
      want=[[[[0.0], [4], [8]], [[12], [16], [20]]]]),
    n("GatherElements", X, AT[:1, :, :2], axis=1, want=[[[[4.0, 1]]]]),
    n("GatherElements", ROW, longs(4, -5)), *(n("GatherElements", X.astype(kind), AT, axis=1) for kind in KINDS),
    n("GatherND", X, PAIRS), n("GatherND", X, longs([1, 2, 3])),
    n("GatherND", X, longs(1, -1, 0)), n("GatherND", X, longs(-1)),
    n("GatherND", X, longs([[-1], [0]], [[1], [2]]), batch_dims=1), n("GatherND", X, longs(1, 0)),
    n("GatherND", X, np.array([[[1], [-1], [3]], [[0], [0], [-4]]]), batch_dims=2),
    *(n("GatherND", X.astype(kind), PAIRS) for kind in KINDS),
    n("ScatterElements", X, AT, UPDATES, axis=1), n("ScatterElements", ROW, longs(4, -5), ROW[:2]),
    *(n("ScatterElements", X.astype(kind), AT, abs(UPDATES).astype(kind), axis=1, reduction=how)
      for how in ("none", "add", "mul", "max", "min") for kind in (np.float32, *KINDS)
      if how in ("none", "max") or kind not in (np.int8, np.uint8, np.uint32, np.uint64)),
    n("Scatter", X, AT, UPDATES, axis=1, opset=9, want=[SCATTERED]),
    n("ScatterND", X, longs([1], [0]), -X), n("ScatterND", X, longs([1, -1], [0, 0]), X[0, :2]),
    n("ScatterND", X, longs([[1, 2, 3]], [[0, 0, 0]]), np.array([[7.5], [8]], np.float32)),
    *(n("ScatterND", X.astype(kind), longs([1], [1]), X[:2].astype(kind), reduction=how)
      for how in ("add", "mul", "max", "min") for kind in (np.float32, np.int64)),
    n("TensorScatter", X, X[:, :1], longs(2, 0)), n("TensorScatter", X, X[:, 1:]),
    n("TensorScatter", X, -X[:, :2], longs(2, 1), mode="circular"),
    n("TensorScatter", X, -X[..., :2], longs(2, 1), axis=-1),
    n("Where", X[:1] > 5, X, -X), n("Where", X > 5, np.array(1.5, np.float32), ROW[:4]),
    n("Where", np.array(True), np.array(1.5, np.float32), np.array(2, np.float32)),
    n("Where", np.array([True, False]), np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32)),
    *(n("Where", X > 5, X.astype(kind), X[:1].astype(kind)) for kind in KINDS), n("Where", X > 5, X > 9, X < 20),
    n("Compress", X, np.array([True, False, True]), axis=1), n("Compress", X, np.arange(24) % 5 == 0),
    n("Compress", X, np.array([False, True]), axis=-1), *(n("Compress", X.astype(kind), np.array([False, True]), axis=0)
                                                          for kind in KINDS),
    n("OneHot", longs(0, -1, 3, 2), np.array(3), np.array([5, 7], np.float32)),
    n("OneHot", longs([1, 2], [0, 3]), np.array(4), longs(0, 1), axis=1),
    n("OneHot", longs(1, 0), longs(2), longs(3, 9), want=[longs([3, 9], [9, 3])]),
    n("OneHot", longs([1, 2]), np.array(4), np.array([0, 1], np.float32), axis=0), n("OneHot", np.array(
        [1, 0], np.int32), np.array(3, np.int32), np.array([1, 2], np.int32)),
    n("OneHot", np.array([1.0, 0, 2], np.float32), np.array(3.0, np.float32), np.array([1, 2], np.float64)),
    n("OneHot", np.array(2), np.array(3), np.array([0, 1], np.float32)), n("OneHot", np.array(
        [1, 200], np.uint8), np.array(3), np.array([0, 1], np.float32)),
    n("NonZero", X % 2), n("NonZero", X > 9), n("NonZero", np.array(1.0, np.float32)), n("NonZero", np.array(0)),
    *(n("NonZero", (X % 3).astype(kind)) for kind in KINDS),
    n("Unique", X % 5, outputs=4), n("Unique", np.array([3, 1, 3, 2.0], np.float32), sorted=0, outputs=4),
    n("Unique", np.array([[1, 0], [1, 0], [0, 1]]), axis=0, outputs=4), n("Unique", np.array([[1, 0, 1]]), axis=-1),
    *(n("Unique", (X % 3).astype(kind)) for kind in KINDS if kind is not ml_dtypes.bfloat16)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Node, way: str) -> None:
    check(as_wanted(case), way)


OUTSIDE = [n("Gather", X, longs(2)), n("Gather", X, longs(-4), axis=1), n("GatherElements", ROW, longs(5)),
           n("GatherND", X, longs([2, 0])), n("ScatterElements", ROW, longs(-6), ROW[:1]),
           n("ScatterND", X, longs([2]), X[:1]), n("TensorScatter", X, X[:, :2], longs(2, 0)),
           n("Compress", ROW, np.ones(6, bool), axis=0)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", OUTSIDE, ids=str)
def test_an_index_outside_is_a_fault_with_a_place(case: Node, way: str) -> None:
    answered = Node(case.op, case.inputs, case.attributes, case.opset, 1, [X])
    made, fed = built(answered, way)
    with pytest.raises(NnxError, match=case.op) as fault:
        nnx_convert.compile(made.SerializeToString(), threads=1).run(list(fed.values()))
    assert isinstance(fault.value, FormatError | RunError)


def test_texts_are_moved() -> None:
    x, at = texts(X), longs(1, 0)
    nodes = [helper.make_node("Gather", ["x", "at"], ["a"], axis=1),
             helper.make_node("Concat", ["a", "x"], ["b"], axis=1),
             helper.make_node("ScatterElements", ["b", "where", "a"], ["y"], axis=1)]
    made = model(nodes, [("x", 8, x.shape), ("at", 7, at.shape), ("where", 7, (2, 2, 4))], [("y", 8, None)], 25)
    where = np.broadcast_to(np.array([[[3], [4]]]), (2, 2, 4)).copy()
    (got,) = nnx_convert.compile(made.SerializeToString()).run([x, at, where])
    want = np.concatenate((x[:, [1, 0]], x), 1)
    want[:, 3:5] = x[:, [1, 0]]
    assert got.tolist() == want.tolist()


def test_an_assigned_slice_is_pieces_joined() -> None:
    """Exporters write `x[:, 1:2] = u` as one index tuple for each element."""
    where = np.stack(np.meshgrid(np.arange(2), np.arange(1, 2), indexing="ij"), -1)
    case = n("ScatterND", X, where, -X[:, :1], fixed=[1])
    made, _ = built(case, "fixed")
    legal = nnx_convert.convert(made.SerializeToString())
    assert not any(o.op.host for o in legal.operations)
    check(case, "fixed")
