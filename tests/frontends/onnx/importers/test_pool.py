"""Pools against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, n

import nnx_convert
from nnx_convert.errors import NnxError, RunError

R = np.random.default_rng(6)
WIDE = (np.float64, np.float16, ml_dtypes.bfloat16)


def f(*shape: int) -> np.ndarray:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


IMAGE, ROW, CUBE = f(2, 3, 7, 6), f(2, 3, 9), f(1, 2, 5, 4, 6)
BYTES = np.abs(IMAGE * 40).astype(np.uint8)
SAME = ("SAME_UPPER", "SAME_LOWER")
KERNELS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2]}, {"kernel_shape": [2, 3], "strides": [2, 3]},
    {"kernel_shape": [3, 3], "pads": [1, 2, 0, 1], "strides": [2, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 4], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}]
GAPS = {"kernel_shape": [2, 2], "dilations": [2, 3]}


def filled(x: np.ndarray, kernel: list[int], strides: list[int], pads: list[int]) -> np.ndarray:
    """The sums of the absolute values under a window."""
    padded = np.pad(np.abs(x.astype(np.float64)), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
    return np.asarray(windows[:, :, ::strides[0], ::strides[1]])


def lp(p: int, kernel: list[int], strides: list[int], pads: list[int]) -> Node:
    """A case with its answer: the reference scales what the border cuts off."""
    want = (filled(IMAGE, kernel, strides, pads) ** p).sum((4, 5)) ** (1 / p)
    return n("LpPool", IMAGE, kernel_shape=kernel, strides=strides, pads=pads, p=p, want=[want.astype(np.float32)])


INDEXED = np.float32([[[[1, 5, 2], [5, 3, 0], [7, 7, 4]]]])
LARGEST = np.float32([[[[5, 5], [7, 7]]]])
PEAKS = np.lib.stride_tricks.sliding_window_view(CUBE, [2, 2, 2], (2, 3, 4)).reshape(1, 2, 4, 3, 5, 8)
#: Where in the cube the largest of each window is.
FIRST = sum(np.unravel_index(PEAKS.argmax(-1), (2, 2, 2))[i] * (24, 6, 1)[i] for i in range(3)) + np.arange(
    240).reshape(CUBE.shape)[:, :, :4, :3, :5]
CASES: list[Node] = [
    *(n(op, IMAGE, **how) for op in ("MaxPool", "AveragePool") for how in KERNELS),
    *(n("AveragePool", IMAGE, count_include_pad=1, **how) for how in KERNELS),
    *(n(op, IMAGE, kernel_shape=[3, 2], strides=list(s), auto_pad=how) for op in ("MaxPool", "AveragePool")
      for how in (*SAME, "VALID") for s in ((1, 1), (2, 2)) if op == "AveragePool" or how != "SAME_LOWER"),
    *(n(op, IMAGE, **GAPS) for op in ("MaxPool", "AveragePool")),
    *(n("AveragePool", IMAGE, pads=[1, 1, 1, 0], count_include_pad=i, ceil_mode=c, strides=[2, 1], **GAPS)
      for i in (0, 1) for c in (0, 1)), n("MaxPool", IMAGE, pads=[1, 1, 1, 0], strides=[2, 1], ceil_mode=1, **GAPS),
    n("MaxPool", ROW, kernel_shape=[3], dilations=[2], pads=[1, 2]), n("LpPool", IMAGE, p=1, **GAPS),
    *(n(op, x, kernel_shape=[2] * (x.ndim - 2), strides=[2] * (x.ndim - 2)) for op in ("MaxPool", "AveragePool")
      for x in (ROW, CUBE)),
    *(n(op, CUBE, kernel_shape=[2, 3, 2], pads=[1] * 6, ceil_mode=1, strides=[2, 2, 2]) for op in (
        "MaxPool", "AveragePool")), n("AveragePool", CUBE, kernel_shape=[3, 2, 2], pads=[1] * 6, count_include_pad=1),
    *(n("MaxPool", BYTES.astype(k), kernel_shape=[2, 3], strides=[2, 1]) for k in (np.uint8, np.int8)),
    *(n(op, IMAGE.astype(k), kernel_shape=[2, 2]) for op in ("MaxPool", "AveragePool") for k in WIDE
      if op == "MaxPool" or k != ml_dtypes.bfloat16),
    n("MaxPool", INDEXED, kernel_shape=[2, 2], outputs=2, want=[LARGEST, np.array([[[[1, 1], [6, 7]]]])]),
    n("MaxPool", INDEXED, kernel_shape=[2, 2], outputs=2, storage_order=1,
      want=[LARGEST, np.array([[[[3, 3], [2, 5]]]])]),
    n("MaxPool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], outputs=2),
    n("MaxPool", CUBE, kernel_shape=[2, 2, 2], outputs=2, opset=12, want=[PEAKS.max(-1), FIRST]),
    n("MaxPool", ROW, kernel_shape=[3], opset=1),
    n("AveragePool", IMAGE, kernel_shape=[3, 3], opset=1), n("MaxPool", f(0, 2, 4, 4), kernel_shape=[2, 2]),
    *(lp(p, k, s, pads) for p in (1, 2, 3) for k, s, pads in [
        ([2, 3], [1, 2], [0] * 4), ([3, 2], [2, 1], [1, 0, 1, 1])]),
    n("LpPool", ROW, kernel_shape=[3], opset=2), n("LpPool", CUBE, kernel_shape=[2, 2, 2], p=1),
    n("LpPool", IMAGE, kernel_shape=[2, 2], dilations=[2, 1]),
    *(n(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool")), n("GlobalAveragePool", CUBE),
    n("GlobalAveragePool", ROW), n("GlobalMaxPool", ROW, want=[ROW.max(2, keepdims=True)]),
    n("GlobalMaxPool", CUBE, want=[CUBE.max((2, 3, 4), keepdims=True)]),
    *(n("GlobalLpPool", x, p=p, want=[(np.abs(x.astype(np.float64)) ** p).sum(tuple(range(2, x.ndim)), keepdims=True)
                                      ** (1 / p)]) for x in (ROW, IMAGE) for p in (1, 2, 3)),
    n("MaxUnpool", np.float32([[[[5, 6], [7, 8]]]]), np.array([[[[5, 7], [13, 15]]]]), kernel_shape=[2, 2],
      strides=[2, 2]),
    n("MaxUnpool", np.float32([[[[5, 6], [7, 8]]]]), np.array([[[[5, 7], [13, 15]]]]), np.array([1, 1, 5, 5]),
      kernel_shape=[2, 2], strides=[2, 2]),
    n("MaxRoiPool", np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4), np.float32([
        [0, 0, 0, 3, 2], [1, 1.4, 0.6, 3.4, 9], [0, 2, 2, 1, 1], [1, -9, -9, -5, -5]]), pooled_shape=[2, 2],
      want=[np.float32([[[[5, 7], [9, 11]]], [[[22, 23], [0, 0]]], [[[10, 10], [10, 10]]], [[[0, 0], [0, 0]]]])])]


def as_typed(case: Node) -> Node:
    """The case, its answers in the type of the input where they are no places."""
    x = case.inputs[0]
    assert x is not None
    want = None if case.want is None else [w if w.dtype == np.int64 else np.asarray(w, x.dtype) for w in case.want]
    return Node(case.op, case.inputs, case.attributes, case.opset, case.outputs, want, case.fixed)


def told_by_sizes(case: Node) -> bool:
    """Whether the padding follows from sizes that have to be known."""
    a = case.attributes
    slow = max(a.get("strides", [1])) > 1
    return case.op == "MaxUnpool" or a.get("auto_pad") == "SAME_LOWER" and slow or a.get(
        "auto_pad") == "SAME_UPPER" and slow and bool(a.get("count_include_pad"))


@pytest.mark.parametrize(("case", "way"), [(as_typed(c), w) for c, w in product(CASES, WAYS) if w != "open" or
                                           not told_by_sizes(c)], ids=str)
def test_against_the_reference(case: Node, way: str) -> None:
    narrow = case.inputs[0] is not None and case.inputs[0].dtype.itemsize == 2
    check(case, way, 0.02 if narrow else 1e-4)


@pytest.mark.parametrize("case", [c for c in CASES if told_by_sizes(c)], ids=str)
def test_what_only_open_sizes_would_tell(case: Node) -> None:
    with pytest.raises(NnxError, match="open sizes"):
        nnx_convert.convert(built(case, "open")[0].SerializeToString())


#: An operator, and the operations it becomes beside those that move elements.
NATIVE: list[tuple[Node, list[str]]] = [
    (n("MaxPool", IMAGE, **KERNELS[3]), ["MAX_POOL_2D"]), (n("MaxPool", ROW, kernel_shape=[3]), ["MAX_POOL_2D"]),
    (n("MaxPool", BYTES, kernel_shape=[2, 2], want=[BYTES]), ["MAX_POOL_2D"]),
    (n("MaxPool", IMAGE, **GAPS), ["STRIDED_SLICE", "STRIDED_SLICE", "MAXIMUM"] * 2),
    (n("AveragePool", IMAGE, **GAPS), ["DEPTHWISE_CONV_2D", "DIV"]),
    (n("LpPool", IMAGE, **GAPS), ["MUL", "DEPTHWISE_CONV_2D", "SQRT"]),
    (n("MaxPool", IMAGE, outputs=2, **GAPS), ["MAX_POOL_ND"]),
    (n("AveragePool", IMAGE, **KERNELS[4]), ["AVERAGE_POOL_2D"]),
    (n("AveragePool", IMAGE, count_include_pad=1, **KERNELS[4]), ["PAD", "AVERAGE_POOL_2D"]),
    (n("LpPool", IMAGE, kernel_shape=[2, 2], pads=[1, 1, 0, 0]), ["PAD", "L2_POOL_2D", "MUL"]),
    *((n(op, CUBE, kernel_shape=[2, 3, 2], pads=[1, 1, 0, 0, 1, 1], strides=[2, 1, 2]), [name, name])
      for op, name in (("MaxPool", "MAX_POOL_2D"), ("AveragePool", "AVERAGE_POOL_2D"))),
    (n("AveragePool", CUBE, kernel_shape=[2, 2, 2], dilations=[1, 2, 1]), ["AVERAGE_POOL_ND"]),
    (n("GlobalAveragePool", IMAGE), ["MEAN"]), (n("GlobalMaxPool", IMAGE), ["REDUCE_MAX"])]


@pytest.mark.parametrize(("case", "ops"), NATIVE, ids=str)
def test_what_it_becomes(case: Node, ops: list[str]) -> None:
    found = [o.op.name for o in converted(built(case, "fixed")[0]).operations]
    assert [o.removesuffix("_EX") for o in found if o not in ("TRANSPOSE", "RESHAPE")] == ops


def test_a_place_outside_is_a_failed_run() -> None:
    x, places = np.ones((1, 1, 1, 2), np.float32), np.array([[[[0, 8]]]])
    with pytest.raises(RunError, match="an index is not in"):
        check(n("MaxUnpool", x, places, kernel_shape=[2, 2], strides=[2, 2], want=[x]), "fed")


#: Schemes whose padding begins alike whatever the size is.
ALIKE = [("SAME_LOWER", 3, 2), ("SAME_LOWER", 5, 2), ("SAME_UPPER", 2, 2), ("SAME_UPPER", 4, 2), ("SAME_UPPER", 1, 3)]


@pytest.mark.parametrize(("how", "kernel", "stride"), ALIKE)
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool", "LpPool"])
def test_schemes_over_open_sizes_that_begin_alike(op: str, how: str, kernel: int, stride: int) -> None:
    counted = {"count_include_pad": 1} if op == "AveragePool" else {}
    window = {} if op == "Conv" else {"kernel_shape": [kernel, kernel], **counted}
    inputs = [IMAGE, f(4, 3, kernel, kernel)] if op == "Conv" else [IMAGE]
    file = built(n(op, *inputs, auto_pad=how, strides=[stride, stride], want=[IMAGE], **window),
                 "open")[0].SerializeToString()
    anywhere = nnx_convert.compile(file, threads=1)
    for x in (IMAGE, IMAGE[:1, :, :6], IMAGE[..., :5]):
        there = nnx_convert.compile(nnx_convert.convert(file, shapes={"x0": x.shape}), threads=1)
        np.testing.assert_allclose(anywhere.run([x])[0], there.run([x])[0], rtol=1e-5, atol=1e-6)
