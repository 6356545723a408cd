"""Reductions, searches and running folds against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import model, run
from onnx import helper
from three_ways import WAYS, Node, as_wanted, built, check, n

import nnx_convert
from nnx_convert.errors import NnxError

X = np.array([[[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], [[9, 7, 9, 3], [2, 3, 8, 4], [6, 2, 6, 4]]], np.float32)
ONE, ROW = np.array(2.5, np.float32), np.array([3, 1, 3, 2, 3], np.float32)
NONE = np.zeros((2, 0, 4), np.float32)
NAMES = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum",
         "ReduceLogSumExp", "ReduceSumSquare")
INF = np.inf


def longs(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


REDUCED: list[Node] = [
    *(n(name, X, longs(*axes), keepdims=keep, opset=opset) for name in NAMES for opset in (18, 28) for axes, keep in (
        ((1,), 1), ((0, -1), 0), ((2, 1, 0), 0))),
    *(n(name, X, keepdims=0) for name in NAMES), *(n(name, X) for name in NAMES),
    *(n(name, X, longs(), noop_with_empty_axes=1) for name in NAMES), *(n(name, X, longs()) for name in NAMES),
    *(n(name, X, noop_with_empty_axes=1) for name in NAMES),
    *(n(name, ONE) for name in NAMES if name != "ReduceLogSumExp"), n("ReduceLogSumExp", ONE, want=[ONE]),
    *(n(name, X, opset=opset, axes=[-2]) for name in NAMES for opset in (1, 11) if opset > 10 or name != "ReduceSum"),
    *(n(name, X, opset=12, axes=[0, 2], keepdims=0) for name in NAMES),
    *(n(name, NONE, longs(1), keepdims=keep) for name in NAMES if name != "ReduceMean" for keep in (0, 1)),
    *(n(name, X.astype(kind), longs(1)) for name in NAMES for kind in (np.float64, np.float16)),
    *(n(name, X.astype(kind), longs(1), opset=18) for name in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin",
                                                                "ReduceL1", "ReduceSumSquare")
      for kind in (np.int64, np.int32, np.uint32, np.uint64) if name != "ReduceSumSquare" or kind(0).itemsize == 8),
    *(n(name, X.astype(kind), longs(2)) for name in ("ReduceMax", "ReduceMin") for kind in (
        np.int8, np.uint8, ml_dtypes.bfloat16)),
    *(n(name, X > 2, longs(1), keepdims=keep) for name in ("ReduceMax", "ReduceMin") for keep in (0, 1)),
    n("ReduceMean", np.array([[1, 2], [-1, -2]]), longs(1), want=[[[1], [-1]]]),
    n("ReduceL2", np.array([[3, 4], [5, 6]]), longs(1), opset=18, want=[[[5], [7]]]),
    n("ReduceLogSum", np.array([[3, 40]]), longs(1), opset=18, want=[[[3]]]),
    n("ReduceLogSumExp", floats([1e4, 1e4], [-INF, -INF], [INF, 0], [-INF, 3]), longs(1), keepdims=0,
      want=[[1e4 + np.log(2), -INF, INF, 3]]),
    n("ReduceMax", floats([-INF, -INF]), longs(1)), n("ReduceSum", X, np.array(1))]

SEARCHED: list[Node] = [
    *(n(name, X, axis=axis, keepdims=keep, select_last_index=last) for name in ("ArgMax", "ArgMin")
      for axis in (0, 1, -1) for keep, last in ((0, 0), (1, 1), (1, 0), (0, 1))),
    *(n(name, ROW, keepdims=keep) for name in ("ArgMax", "ArgMin") for keep in (0, 1)),
    n("ArgMax", ROW, opset=1, axis=0),
    *(n("ArgMax", X.astype(kind), axis=1) for kind in (np.float64, np.float16, np.int64, np.int32, np.int16, np.int8,
                                                       np.uint8, np.uint16, np.uint32, ml_dtypes.bfloat16)),
    n("TopK", ROW, longs(3), outputs=2), n("TopK", ROW, longs(2), largest=0, outputs=2),
    *(n("TopK", X, longs(2), axis=axis, largest=most, outputs=2) for axis in (0, 1, 2, -2) for most in (0, 1)),
    n("TopK", X, longs(3), sorted=0, axis=1, outputs=2), n("TopK", X, longs(4), outputs=2),
    n("TopK", X, longs(0), outputs=2, want=[X[..., :0], longs().reshape(2, 3, 0)]),
    n("TopK", X, opset=1, k=2, outputs=2, axis=1), n("TopK", X, longs(1), opset=10, outputs=2),
    *(n("TopK", X.astype(kind), longs(2), axis=1, largest=most, outputs=2) for most in (0, 1) for kind in (
        np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64)),
    n("TopK", np.array([-2**31, 5, 2**31 - 1], np.int32), longs(3), largest=0, outputs=2),
    n("TopK", np.array([-2**63, 5, 2**63 - 1]), longs(2), largest=0, outputs=2),
    n("TopK", np.array([0, 2**64 - 1, 7], np.uint64), longs(3), largest=0, outputs=2),
    n("Hardmax", X), n("Hardmax", X, axis=0), n("Hardmax", ROW), n("Hardmax", X.astype(np.float64), axis=1),
    n("Hardmax", X.astype(np.float16), axis=-2), n("Hardmax", ROW.reshape(5, 1).astype(ml_dtypes.bfloat16), axis=0),
    n("Hardmax", X, opset=11, axis=1, want=[np.eye(12)[[5, 0]].reshape(2, 3, 4).tolist()]),
    n("Hardmax", X, opset=1, axis=2, want=[np.eye(4)[[2, 1, 3, 0, 2, 0]].reshape(2, 3, 4).tolist()])]

RUNNING: list[Node] = [
    *(n(name, X.astype(kind), np.array(axis), exclusive=out, reverse=back, opset=26)
      for name in ("CumSum", "CumProd") for kind in (np.float32, np.float64, np.int32, np.int64, np.uint32)
      for axis, out, back in ((1, 0, 0), (-1, 1, 0), (0, 0, 1), (2, 1, 1))),
    n("CumSum", ROW, np.array(0, np.int32), opset=11), n("CumSum", ROW.astype(np.float16), np.array(0))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", REDUCED + SEARCHED + RUNNING, ids=str)
def test_case(case: Node, way: str) -> None:
    check(as_wanted(case), way, 2e-3 if case.inputs[0].dtype == np.float16 else 1e-5)


WRONG = [n("ReduceSum", X, longs(3)), n("ArgMax", X, axis=3), n("TopK", X, longs(5)),
         n("CumSum", X, np.array(3)), n("TopK", X, longs(-1))]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_what_there_is_not_is_a_fault(case: Node) -> None:
    answered = Node(case.op, case.inputs, case.attributes, case.opset, 1, [X])
    for way in ("fed", "fixed"):
        made, fed = built(answered, way)
        with pytest.raises(NnxError):
            nnx_convert.compile(made.SerializeToString(), threads=1).run(list(fed.values()))


def test_a_mean_of_nothing_is_no_number() -> None:
    node = helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)
    made = model([node], [("x", 1, NONE.shape)], [("y", 1, [2, 4])],
                 initializer=[helper.make_tensor("axes", 7, [1], [1])])
    (got,) = run(made, NONE)
    assert got.shape == (2, 4) and np.isnan(got).all()
