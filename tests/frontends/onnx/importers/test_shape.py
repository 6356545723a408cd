"""Shapes, slices and paddings against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted, element, model, run
from onnx import helper
from three_ways import WAYS, Node, as_wanted, built, check, n

from nnx_convert.errors import FormatError, NnxError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)
ONE = np.array(2.5, np.float32)
END = 2**63 - 1


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def typed(x: np.ndarray) -> list[np.ndarray]:
    """The same numbers of many types."""
    kinds = (np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64,
             ml_dtypes.bfloat16)
    return [x.astype(kind) for kind in kinds] + [x % 3 == 1]


CASES: list[Node] = [
    n("Reshape", X, longs(4, 6)), n("Reshape", X, longs(0, -1)), n("Reshape", X, longs(-1, 0, 2)),
    n("Reshape", X, longs(0, 0, 2, 2)), n("Reshape", X, longs(1, 0, -1), fixed=()), n("Reshape", ONE, longs(1, 1)),
    n("Reshape", X[:0], longs(3, 0), allowzero=1), n("Reshape", X[:0], longs(0, 12)), n("Reshape", ROW[:1], longs()),
    *(n("Reshape", x, longs(6, 4)) for x in typed(X)), n("Reshape", X, opset=1, shape=[3, -1], want=[X.reshape(3, 8)]),
    *(n("Flatten", X, axis=a) for a in (0, 1, 2, 3, -1)), n("Flatten", ROW, axis=0), n("Flatten", X, opset=9),
    n("Squeeze", X[:1, :, None], longs(0, -2)), n("Squeeze", X[:1, :1, :1], longs(0, 1, 2)), n("Squeeze", X[:, :1]),
    n("Squeeze", X[:1], opset=11, axes=[0]), n("Squeeze", X[:, :1], opset=1), n("Squeeze", ONE),
    n("Unsqueeze", X, longs(0, -1)), n("Unsqueeze", X, longs(3, 1)), n("Unsqueeze", ONE, longs(0, 1)),
    n("Unsqueeze", X, opset=11, axes=[-2]), n("Unsqueeze", ROW, opset=1, axes=[0]),
    n("Transpose", X), n("Transpose", X, perm=[1, 2, 0]), n("Transpose", ROW), n("Transpose", ONE),
    *(n("Transpose", x, perm=[2, 0, 1]) for x in typed(X)),
    n("Concat", X, X[:, :1], X[:, :0], axis=1), n("Concat", X, X[:1], axis=-3), n("Concat", X, axis=0),
    n("Concat", X, X, opset=1, want=[np.tile(X, (1, 2, 1))]), *(n("Concat", x, x, axis=2) for x in typed(X)),
    n("Split", X, longs(1, 2), axis=1, outputs=2), n("Split", X, longs(2, 2), axis=-1, outputs=2),
    n("Split", X, axis=0, num_outputs=2, outputs=2), n("Split", ROW, num_outputs=2, outputs=2),
    n("Split", np.arange(7.0), num_outputs=3, outputs=3, want=[[0.0, 1, 2], [3.0, 4, 5], [6.0]]),
    n("Split", X, opset=13, axis=2, outputs=2), n("Split", X, opset=2, axis=2, split=[1, 3], outputs=2),
    n("Split", X, longs(3, 0), axis=1, outputs=2), n("Split", X, longs(3), axis=1),
    n("Slice", X, longs(1), longs(3), longs(2)), n("Slice", X, longs(0, 1), longs(END, -1)),
    n("Slice", X, longs(-1), longs(-END - 1), longs(-1), longs(-1)),
    n("Slice", X, longs(3, 2), longs(0, -9), longs(2, 1), longs(-2, -1)), n("Slice", X, longs(5), longs(9), longs(0)),
    n("Slice", X, longs(1), longs(10**9), longs(1), longs(2)), n("Slice", X, longs(0), longs(END), longs(-3)),
    n("Slice", X, longs(0, 0), longs(1, 0), longs(0, 1)), n("Slice", X, opset=9, starts=[1], ends=[-1], axes=[2]),
    n("Slice", X, np.array([1], np.int32), np.array([2], np.int32), np.array([1], np.int32)),
    *(n("Slice", x, longs(1), longs(4), longs(2), longs(2)) for x in typed(X)),
    *(n("Slice", x, longs(1), longs(3), longs(1)) for x in typed(X)),
    n("Expand", X[:, :1], longs(3, 1)), n("Expand", X, longs(5, 1, 1, 1)), n("Expand", ONE, longs(2, 3)),
    n("Expand", X, longs(1)), n("Expand", ROW, longs(2, 5)), n("Expand", ONE, longs()),
    *(n("Expand", x[:, :1], longs(2, 3, 4)) for x in typed(X)),
    n("Tile", X, longs(1, 2, 3)), n("Tile", ROW, longs(1)), n("Tile", X, longs(0, 1, 1)),
    *(n("Tile", x, longs(2, 1, 1)) for x in typed(X)),
    n("Tile", X, np.array(2, np.float32), np.array(1, np.float32), opset=5, want=[np.tile(X, (1, 2, 1))]),
    n("Identity", X), n("Identity", ONE), n("Shape", X), n("Shape", X, start=1), n("Shape", X, start=-2, end=-1),
    n("Shape", X, end=9), n("Shape", ONE), n("Shape", X, start=2, end=1), n("Size", X), n("Size", ONE),
    n("ConstantOfShape", longs(2, 3), fixed=[0]), n("ConstantOfShape", longs(), fixed=[0]),
    n("ConstantOfShape", longs(2, 0), fixed=[0]),
    *(n("Range", *(np.array(v, kind) for v in (1, 8, 3))) for kind in (
        np.float32, np.float64, np.int64, np.int32, np.int16)),
    n("Range", *map(np.int64, (5, 0, -2)), fixed=[0, 1, 2]), n("Range", *map(np.float32, (3, 1, 1)), fixed=[0, 1, 2]),
    n("EyeLike", X[0]), n("EyeLike", X[0], k=1, dtype=7), n("EyeLike", X[0].astype(np.int32), k=-1),
    n("Trilu", X), n("Trilu", X, np.array(1)), n("Trilu", X, np.array(-1), upper=0), n("Trilu", X, upper=0),
    *(n("Trilu", x, np.array(1)) for x in typed(X)),
    n("DepthToSpace", X.reshape(1, 4, 2, 3), blocksize=2), n("DepthToSpace", np.tile(X, (1, 4, 1))[None].reshape(
        1, 8, 3, 4), blocksize=2, mode="CRD"), n("SpaceToDepth", X[None], blocksize=1),
    n("SpaceToDepth", np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6), blocksize=2),
    n("ReverseSequence", X[..., 0], longs(1, 3), batch_axis=0, time_axis=1),
    n("ReverseSequence", X, longs(1, 2, 0)), *(n("ReverseSequence", x[..., 0], longs(2, 1, 2)) for x in typed(X)),
    n("CenterCropPad", X, longs(4, 2), axes=[1, 2]), n("CenterCropPad", X, longs(1, 4, 4))]

PADS: list[Node] = [
    n("Pad", X, longs(0, 1, 0, 0, 2, 1)), n("Pad", X, longs(0, 1, 0, 0, 2, 1), np.array(7, np.float32)),
    n("Pad", X, longs(1, 0), None, longs(1)), n("Pad", X, longs(1, 0), np.array(-1, np.float32), longs(-1)),
    n("Pad", ROW, longs(-1, 2), want=[[1.0, 2, 3, 4, 0, 0]]), n("Pad", ROW, longs(-2, -2), want=[[2.0]]),
    n("Pad", ROW, longs(3, -1), mode="edge", want=[[0.0, 0, 0, 0, 1, 2, 3]]),
    *(n("Pad", X, longs(0, 1, 2, 0, 1, 1), mode=mode) for mode in ("reflect", "edge", "wrap")),
    n("Pad", ROW, longs(2, 3), mode="wrap"), n("Pad", ROW, longs(4, 4), mode="reflect"),
    n("Pad", X, opset=1, paddings=[0, 0, 1, 0, 1, 0]), n("Pad", X, opset=2, pads=[0, 0, 1, 0, 1, 0], value=3.0),
    n("Pad", X, longs(1, 1), None, longs(0), mode="edge", opset=18),
    *(n("Pad", x, longs(0, 0, 1, 1, 0, 0), x.reshape(-1)[1]) for x in typed(X)),
    *(n("Pad", x, longs(0, 0, 1, 1, 0, 0)) for x in typed(X)),
    *(n("Pad", x, longs(0, 1, 1, 0, 0, 0), mode="reflect") for x in typed(X))]


#: What is refused where all sizes are open.
CLOSED = ("mode=CRD", "allowzero=1", "Squeeze-25 float32[2, 1, 4] ", "Squeeze-1 float32[2, 1, 4] ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES + PADS, ids=str)
def test_case(case: Node, way: str) -> None:
    if way == "open" and any(text in str(case) for text in CLOSED):
        with pytest.raises(NnxError):
            check(case, way)
    else:
        check(as_wanted(case), way)


SPARSE = helper.make_sparse_tensor(helper.make_tensor("v", 1, [2], [5.0, 6]), helper.make_tensor("i", 7, [2], [1, 5]),
                                   [2, 3])
CONSTANTS: list[tuple[dict[str, Any], Any]] = [
    ({"value": helper.make_tensor("v", 7, [2], [3, 4])}, longs(3, 4)), ({"value_float": 1.5}, np.float32(1.5)),
    ({"value_int": 7}, np.int64(7)), ({"value_floats": [1.0, 2]}, np.array([1, 2], np.float32)),
    ({"value_ints": [1, 2]}, longs(1, 2)), ({"value_string": "a"}, np.array("a", object)),
    ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
    ({"sparse_value": SPARSE}, np.array([[0, 5, 0], [0, 0, 6]], np.float32))]


@pytest.mark.parametrize(("attributes", "want"), CONSTANTS, ids=[next(iter(a)) for a, _ in CONSTANTS])
def test_constant(attributes: dict[str, Any], want: Any) -> None:
    kind = 8 if want.dtype == object else element(want)
    made = model([helper.make_node("Constant", [], ["y"], **attributes)], [], [("y", kind, want.shape)], 25)
    (got,) = run(made)
    assert got.dtype == want.dtype and got.tolist() == want.tolist()


@pytest.mark.parametrize("attributes", [{}, {"value_int": 1, "value_float": 1.0}], ids=["none", "two"])
def test_a_constant_has_one_value(attributes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="exactly one value"):
        converted(model([helper.make_node("Constant", [], ["y"], **attributes)], [], [("y", 7, None)], 25))


WRONG: list[tuple[Node, str]] = [
    (n("Reshape", X, longs(5, -1)), "leave no whole size"), (n("Reshape", X, longs(-1, -1)), "is a reshape to"),
    (n("Reshape", X, longs(2, 3, 4, 0)), "copies sizes"), (n("Squeeze", X, longs(1)), "drops axis 1"),
    (n("Unsqueeze", X, longs(0, 0)), "an axis twice"), (n("Transpose", X, perm=[0, 1]), "orders 2 axes of 3"),
    (n("Concat", X, X, axis=3), "has the axis 3"), (n("Split", X, longs(1, 1), axis=1, outputs=2), "splits 3 into"),
    (n("Slice", X, longs(0), longs(1), longs(0), longs(0)), "steps of 0"),
    (n("Pad", X, longs(1, 1)), "2 pads for 3 axes"),
    (n("Pad", X, longs(0, 0, 0, 0, 0, 0), mode="twice"), "the mode 'twice'"), (n("EyeLike", ONE), "like rank 0"),
    (n("ReverseSequence", X[..., 0], longs(1, 4), batch_axis=0, time_axis=1), "of 3 elements"),
    (n("ConstantOfShape", longs(-1), fixed=[0]), "has the shape"), (n("DepthToSpace", X, blocksize=2), "takes blocks"),
    (n("Range", *map(np.int64, (1, 5, 0)), fixed=[0, 1, 2]), "steps of 0")]


@pytest.mark.parametrize(("case", "text"), WRONG, ids=[str(c) for c, _ in WRONG])
def test_what_cannot_be_is_a_fault_of_the_file(case: Node, text: str) -> None:
    answered = Node(case.op, case.inputs, case.attributes, case.opset, case.outputs, [X] * case.outputs, case.fixed)
    with pytest.raises(FormatError, match=text):
        converted(built(answered, "fixed")[0])
