"""Convolutions against ONNX's reference, whatever is constant, fed or of an open size."""
from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_node import converted, model
from onnx import TensorProto, helper, numpy_helper
from three_ways import WAYS, Node, built, check, expected, n

import nnx_convert
from nnx_convert.errors import NnxError

R = np.random.default_rng(5)
WIDE = (np.float64, np.float16, ml_dtypes.bfloat16)


def f(*shape: int) -> np.ndarray:
    """Numbers drawn."""
    return R.normal(size=shape).astype(np.float32)


IMAGE, ROW, CUBE = f(2, 4, 6, 5), f(2, 4, 9), f(1, 2, 5, 4, 6)
SAME = ("SAME_UPPER", "SAME_LOWER")
CONV: list[Node] = [
    n("Conv", IMAGE, f(3, 4, 3, 2)), n("Conv", IMAGE, f(3, 4, 3, 2), f(3), pads=[1, 0, 2, 1], strides=[2, 1]),
    n("Conv", IMAGE, f(3, 4, 2, 2), None, dilations=[2, 3], kernel_shape=[2, 2]),
    n("Conv", IMAGE, f(3, 4, 1, 1), f(3), opset=1), n("Conv", IMAGE, f(2, 4, 6, 5), opset=11),
    n("Conv", IMAGE, f(6, 2, 3, 3), f(6), group=2, pads=[1, 1, 1, 1]),
    n("Conv", IMAGE, f(6, 2, 2, 2), f(6), group=2, dilations=[2, 2]),
    n("Conv", IMAGE, f(4, 1, 3, 3), f(4), group=4), n("Conv", IMAGE, f(8, 1, 2, 2), group=4, dilations=[2, 1]),
    *(n("Conv", IMAGE, f(3, 4, 3, 2), auto_pad=how, strides=list(s)) for how in (*SAME, "VALID")
      for s in ((1, 1), (2, 3))),
    n("Conv", ROW, f(3, 4, 3), f(3), pads=[2, 1], strides=[2]), n("Conv", ROW, f(4, 1, 3), group=4, dilations=[2]),
    n("Conv", ROW, f(6, 2, 1), group=2, auto_pad="SAME_UPPER"),
    n("Conv", CUBE, f(3, 2, 2, 1, 3), f(3), pads=[1, 0, 1, 0, 0, 2], strides=[2, 1, 1], dilations=[1, 2, 1]),
    n("Conv", CUBE, f(4, 1, 2, 2, 2), f(4), group=2), n("Conv", f(1, 1, 2, 2, 2, 2), f(1, 1, 2, 1, 2, 1)),
    n("Conv", f(0, 4, 6, 5), f(3, 4, 3, 2), want=[np.zeros((0, 3, 4, 4), np.float32)]),
    *(n("Conv", IMAGE.astype(k), f(3, 4, 3, 2).astype(k), f(3).astype(k)) for k in WIDE)]
TRANSPOSED: list[Node] = [
    n("ConvTranspose", IMAGE, f(4, 3, 3, 2)), n("ConvTranspose", IMAGE, f(4, 3, 3, 2), f(3), strides=[2, 3]),
    n("ConvTranspose", IMAGE, f(4, 3, 3, 3), f(3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
    n("ConvTranspose", IMAGE, f(4, 3, 2, 2), None, dilations=[2, 3], pads=[0, 1, 2, 0]),
    n("ConvTranspose", IMAGE, f(4, 3, 3, 3), strides=[3, 2], output_shape=[18, 11]),
    *(n("ConvTranspose", IMAGE, f(4, 3, 3, 3), strides=[2, 2], auto_pad=how) for how in SAME),
    n("ConvTranspose", ROW, f(4, 2, 3), f(2), strides=[2], pads=[1, 0]),
    n("ConvTranspose", CUBE, f(2, 3, 2, 2, 1), f(3), strides=[1, 2, 2])]
#: In groups the reference mistakes the filters; those of one group by themselves are right.
GROUPED = [({"strides": [2, 2]}, 2, (3, 2)), ({"dilations": [1, 2], "pads": [1, 0, 0, 1]}, 4, (2, 2)),
           ({"strides": [1, 3], "output_padding": [0, 2]}, 2, (2, 2))]
COLUMNS: list[Node] = [
    n("Col2Im", f(1, 8, 20), np.array([5, 6]), np.array([2, 2])),
    n("Col2Im", f(2, 12, 6), np.array([5, 6]), np.array([2, 2]), strides=[2, 2], fixed=[1, 2]),
    n("Col2Im", f(1, 4, 36), np.array([5, 6]), np.array([2, 2]), pads=[1, 0, 1, 1]),
    n("Col2Im", f(1, 4, 15), np.array([5, 6]), np.array([2, 2]), dilations=[2, 1], fixed=[2]),
    n("Col2Im", f(1, 8, 12), np.array([3, 4, 3]), np.array([2, 2, 2])),
    n("Col2Im", np.arange(24).reshape(1, 4, 6), np.array([3, 4]), np.array([2, 2]))]
DEFORMED: list[Node] = [
    n("DeformConv", f(1, 2, 4, 5), f(3, 2, 2, 2), f(1, 8, 3, 4), f(3)),
    n("DeformConv", f(2, 4, 4, 4), f(2, 2, 2, 2), f(2, 16, 3, 3), None, f(2, 8, 3, 3), group=2, offset_group=2),
    n("DeformConv", f(1, 2, 5, 5), f(2, 2, 2, 2), f(1, 8, 2, 3), strides=[2, 1], dilations=[2, 3], pads=[1, 0, 0, 1])]
CASES = [*CONV, *TRANSPOSED, *COLUMNS, *DEFORMED]


def told_by_sizes(case: Node) -> bool:
    """Whether the padding follows from sizes that have to be known."""
    a = case.attributes
    return "output_shape" in a or case.op == "Conv" and a.get("auto_pad") == "SAME_LOWER" and max(a["strides"]) > 1


@pytest.mark.parametrize(("case", "way"), [(c, w) for c, w in product(CASES, WAYS) if w != "open" or
                                           not told_by_sizes(c)], ids=str)
def test_against_the_reference(case: Node, way: str) -> None:
    narrow = case.inputs[0] is not None and case.inputs[0].dtype.itemsize == 2
    check(case, way, 0.05 if narrow else 1e-4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("attributes", "groups", "kernel"), GROUPED, ids=str)
def test_transposed_in_groups(attributes: dict[str, Any], groups: int, kernel: tuple[int, int], way: str) -> None:
    w, b = f(4, 2, *kernel), f(2 * groups)
    parts = zip(np.split(IMAGE, groups, 1), np.split(w, groups), np.split(b, groups), strict=True)
    single = [n("ConvTranspose", *part, **attributes) for part in parts]
    want = np.concatenate([expected(s)[0] for s in single], 1)
    check(n("ConvTranspose", IMAGE, w, b, group=groups, want=[want], **attributes), way, 1e-4)


#: An operator of constant filters, and the operations it becomes beside those that move elements.
NATIVE: list[tuple[Node, list[str]]] = [
    (CONV[1], ["CONV_2D"]), (CONV[5], ["GROUPED_CONV_2D"]), (CONV[6], ["CONV_2D", "CONV_2D"]),
    (CONV[7], ["DEPTHWISE_CONV_2D"]), (CONV[8], ["DEPTHWISE_CONV_2D"]), (n("Conv", ROW, f(3, 4, 3)), ["CONV_2D"]),
    (n("Conv", CUBE, f(3, 2, 2, 1, 3), pads=[1, 0, 0, 0, 0, 0]), ["PAD", "STRIDED_SLICE", "STRIDED_SLICE", "CONV_2D"]),
    (n("Conv", CUBE, f(4, 1, 2, 2, 2), group=2), ["CONV_ND"]), (TRANSPOSED[2], ["TRANSPOSE_CONV_2D"]),
    (TRANSPOSED[3], ["TRANSPOSE_CONV_2D"]), (COLUMNS[0], ["TRANSPOSE_CONV_2D"])]
MOVES = ("TRANSPOSE", "RESHAPE", "SPLIT", "SPLIT_EX", "CONCATENATION")


@pytest.mark.parametrize(("case", "ops"), NATIVE, ids=str)
def test_what_it_becomes(case: Node, ops: list[str]) -> None:
    found = [o.op.name for o in converted(built(case, "fixed")[0]).operations]
    assert [o for o in found if o not in MOVES] == ops


def test_the_causal_one_hands_on_what_it_saw_last() -> None:
    x, w, b, past = f(2, 3, 5), f(3, 1, 4), f(3), f(2, 3, 3)
    for state, bias, act in product((None, past), (None, b), ("none", "silu")):
        check(n("CausalConvWithState", x, w, bias, state, activation=act, opset=27, outputs=2), "fed", 1e-4)


#: What is refused, and with which words.
WRONG: list[tuple[Node, str]] = [
    (n("Conv", IMAGE, f(3, 4, 3)), "filters of rank 3 for a tensor of rank 4"),
    (n("Conv", IMAGE, f(3, 4, 3, 2), kernel_shape=[2, 2]), "kernel_shape is [2, 2]"),
    (n("Conv", IMAGE, f(3, 4, 3, 2), strides=[1]), "strides has 1 numbers, not 2"),
    (n("Conv", IMAGE, f(3, 4, 3, 2), strides=[0, 1]), "is not positive"),
    (n("Conv", IMAGE, f(3, 4, 3, 2), pads=[1, 1]), "pads has 2 numbers, not 4"),
    (n("Conv", IMAGE, f(3, 4, 3, 2), auto_pad="SOME"), "auto_pad is 'SOME'"),
    (n("Conv", IMAGE, f(3, 2, 3, 2), group=2), "3 filters in 2 groups"),
    (n("Conv", IMAGE, f(4, 3, 3, 2)), "w is as deep as x"),
    (n("Conv", IMAGE, f(4, 4, 8, 2)), "would have the shape"),
    (n("ConvTranspose", IMAGE, f(4, 3, 3, 2), output_padding=[1]), "output_padding has 1 numbers, not 2"),
    (n("ConvTranspose", IMAGE, f(4, 3, 3, 2), group=3), "4 channels in 3 groups"),
    (n("Col2Im", f(1, 8, 21), np.array([5, 6]), np.array([2, 2])), "columns of shape [1, 8, 21]"),
    (n("DeformConv", f(1, 2, 4, 5), f(3, 2, 2, 2), f(1, 6, 3, 4)), "offset has a row and a column")]


@pytest.mark.parametrize(("case", "said"), WRONG, ids=[w for _, w in WRONG])
def test_what_does_not_fit_is_refused(case: Node, said: str) -> None:
    names = [f"x{i}" for i in range(len(case.inputs))]
    node = helper.make_node(case.op, names, ["y"], **case.attributes)
    arrays = dict(zip(names, case.inputs, strict=True))
    made = model([node], [("x0", TensorProto.FLOAT, arrays["x0"].shape)], [("y", TensorProto.FLOAT, None)], 22,
                 initializer=[numpy_helper.from_array(v, name) for name, v in arrays.items() if name != "x0"])
    with pytest.raises(NnxError) as found:
        nnx_convert.convert(made.SerializeToString())
    assert said in str(found.value)


@pytest.mark.parametrize("case", [c for c in CASES if told_by_sizes(c)], ids=str)
def test_what_only_open_sizes_would_tell(case: Node) -> None:
    with pytest.raises(NnxError, match="open sizes"):
        nnx_convert.convert(built(case, "open")[0].SerializeToString())
