"""Each operator as the operations it becomes, and what importers refuse."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

from nnx_convert.errors import FormatError, Unsupported
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.frontends.tflite.records import OPERATORS
from nnx_convert.frontends.tflite.registry import all_importers, narrow
from nnx_convert.graph import Value
from nnx_convert.types import Q8S, ChannelQuant, Quant, known

from .cases import ACT, CASES, CHANNEL, STRIDES, XQ, F, X, bytes_, f32, i32, scalar, weights
from .host_cases import HOST
from .one_operator import Case, T, const, q8, write


def test_importers_are_called_as_the_schema_calls_operators() -> None:
    assert {n for n in all_importers() if not n.startswith("CUSTOM ")} <= set(OPERATORS.values())


@pytest.mark.parametrize("name", all_importers())
def test_every_signature_can_be_read(name: str) -> None:
    """Nothing reads it before a file has such an operator."""
    importer = all_importers()[name]
    assert all(p.name for p in importer.inputs) and isinstance(importer.options, type | None)


@pytest.mark.parametrize("case", [*CASES, *HOST], ids=str)
def test_an_operator_becomes_these_operations(case: Case) -> None:
    graph = load(write(case))
    assert " ".join(n.op.name for n in graph.nodes) == case.nodes
    found = {k: a for n in graph.nodes for k, a in n.args.items() if not isinstance(a, Value)}
    assert {k: found[k] for k in case.args} == case.args
    for want, value, port in zip(case.outputs, graph.outputs, graph.rim.outputs, strict=True):
        shape = tuple(None if n < 0 else n for n in want.signature or want.shape or ())
        assert (port.dtype, port.shape) == (want.dtype, shape)
        assert tuple(n if known(n) else None for n in value.tensor.shape) == (shape or (1,))


CONV = (weights(3, 3, 3, 4), weights(3))
REFUSED = [
    (FormatError, "neither SAME", Case("CONV_2D", [X, *CONV], [f32(1, 3, 6, 3)], "", "Conv2DOptions", {"Padding": 7})),
    (FormatError, "is positive", Case("CONV_2D", [X, *CONV], [f32(1, 3, 6, 3)], "", "Conv2DOptions")),
    (FormatError, "the file says", Case("CONV_2D", [X, *CONV], [f32(1, 3, 6, 5)], "", "Conv2DOptions", STRIDES)),
    (FormatError, "another operator", Case("CONV_2D", [X, *CONV], [f32(1, 3, 6, 3)], "", "AddOptions")),
    (FormatError, "4 inputs, 3 at most", Case("CONV_2D", [X, *CONV, F], [f32(1, 3, 6, 3)], "", "Conv2DOptions",
    STRIDES)),
    (FormatError, "is left out", Case("CONV_2D", [X], [f32(1, 3, 6, 3)], "", "Conv2DOptions", STRIDES)),
    (FormatError, "is left out", Case("ADD", [F, None], [F], "", "AddOptions")),
    (FormatError, "one element per filter",
     Case("CONV_2D", [X, CONV[0], weights(2)], [f32(1, 3, 6, 3)], "", "Conv2DOptions", STRIDES)),
    (Unsupported, "activation 5", Case("ADD", [F, F], [F], "", "AddOptions", {ACT: 5})),
    (Unsupported, "activation 4", Case("ADD", [q8(2), q8(2)], [q8(2)], "", "AddOptions", {ACT: 4})),
    (Unsupported, "shuffled", Case("FULLY_CONNECTED", [f32(2, 12), weights(3, 12)], [f32(2, 3)], "",
                                   "FullyConnectedOptions", {"WeightsFormat": 1})),
    (FormatError, "axis 3 of", Case("SUM", [F, const([3])], [f32(2)], "", "ReducerOptions")),
    (FormatError, "axis -4 of", Case("CONCATENATION", [F, F], [F], "", "ConcatenationOptions", {"Axis": -4})),
    (FormatError, "axis 3 of", Case("GATHER", [F, const([0])], [F], "", "GatherOptions", {"Axis": 3})),
    (FormatError, "axis -2", Case("ONE_HOT", [i32(2), scalar(4), scalar(1.0, "float32"), scalar(0.0, "float32")],
                                  [f32(2, 4)], "", "OneHotOptions", {"Axis": -2})),
    (FormatError, "2 outputs where", Case("SPLIT", [scalar(0), F], [F, F], "", "SplitOptions", {"NumSplits": 1 << 30})),
    (FormatError, "splits 4 into", Case("SPLIT_V", [F, const([1, 2]), scalar(2)], [f32(2, 3, 1), f32(2, 3, 2)], "",
                                        "SplitVOptions", {"NumSplits": 2})),
    (FormatError, "splits into", Case("SPLIT_V", [F, const([-1, -1]), scalar(2)], [F, F], "", "SplitVOptions")),
    (FormatError, "cannot be made up", Case("FILL", [const([1 << 20, 1 << 20]), scalar(1)], [i32(1)], "")),
    (FormatError, "counts from", Case("RANGE", [scalar(0), scalar(9), scalar(0)], [i32(1)], "")),
    (Unsupported, "must be a constant", Case("ARG_MAX", [F, T("int32", (1,))], [i32(2, 4)], "", "ArgMaxOptions")),
    (FormatError, "slices 4 axes", Case("STRIDED_SLICE", [F, *[const([0] * 4)] * 3], [F], "", "StridedSliceOptions")),
    (Unsupported, "no NNAPI operation for CONCAT_EMB", Case("CONCAT_EMBEDDINGS", [i32(3)], [i32(3)], "")),
    (FormatError, "sizes agree", Case("RESHAPE", [F, const([5, 5])], [f32(5, 5)], "")),
    (FormatError, "crops", Case("BATCH_TO_SPACE_ND", [f32(4, 3, 2, 1), const([2, 2]), const([[-1, 0], [0, 0]])],
                                [f32(1, 7, 4, 1)], "")),
]


@pytest.mark.parametrize(("error", "says", "case"), REFUSED, ids=lambda x: getattr(x, "__name__", str(x)))
def test_what_cannot_be_is_refused_with_the_reason(error: type[Exception], says: str, case: Case) -> None:
    with pytest.raises(error, match=says) as found:
        load(write(case))
    assert f"op 0 {case.name}" in str(found.value)


def bias_of(w: T, x: T = XQ, **named: Any) -> Value:
    """The bias of a convolution of x with w, the file's own being `named`."""
    case = Case("CONV_2D", [x, w, const([1, 2, 3], **named)], [q8(1, 3, 6, 3)], "", "Conv2DOptions", STRIDES)
    found: Value = load(write(case)).nodes[-1].args["b"]
    return found


@pytest.mark.parametrize("named", [{}, {"scale": 0.05, "zero": 0, "axis": 3}, {"scale": 9.0},
{"scale": [1.0, 2.0, 3.0]}])
def test_a_bias_is_on_the_grid_of_the_products(named: dict[str, Any]) -> None:
    per_tensor, per_channel = bytes_(3, 1, 1, 4, scale=0.25, zero=0), bytes_(3, 1, 1, 4, **CHANNEL)
    assert bias_of(per_tensor, **named).tensor.quant == Quant(0.125, 0)
    assert bias_of(per_channel, **named).tensor.quant is None
    np.testing.assert_array_equal(bias_of(per_channel, **named).array, [1, 2, 3])


def test_one_scale_is_no_scale_per_channel() -> None:
    w = bytes_(1, 1, 1, 4, scale=[0.5], zero=[0])
    case = Case("CONV_2D", [XQ, w, const([1])], [q8(1, 3, 6, 1)], "", "Conv2DOptions", STRIDES)
    found = load(write(case)).nodes[0].args["w"]
    assert (found.type, found.tensor.quant) == (Q8S, Quant(0.5, 0))


def test_a_scale_per_channel_keeps_its_axis() -> None:
    case = next(c for c in CASES if c.name == "DEPTHWISE_CONV_2D" and c.inputs[0] is XQ)
    quant = load(write(case)).nodes[0].args["w"].tensor.quant
    assert isinstance(quant, ChannelQuant) and quant.axis == 3
    np.testing.assert_allclose(quant.scales, [0.1, 0.2, 0.4, 0.3])


@pytest.mark.parametrize(("named", "says"), [
    ({"scale": [0.1, 0.2], "zero": [0, 0]}, "2 scales along"),
    ({"scale": [0.1, 0.2, 0.3], "zero": [0, 1, 0]}, "zero point"),
    ({"scale": [0.1, 0.2, 0.3], "zero": [0, 0, 0], "axis": 7}, "dimension 7"), ({"scale": -1.0}, "not a positive"),
    ({"scale": float("nan")}, "not a positive"), ({"scale": float("inf")}, "not a positive"),
    ({"scale": 0.5, "zero": 300}, "zero point 300"), ({"scale": [0.1, 0.0, 0.3], "zero": [0, 0, 0]},
    "or a zero among")])
def test_a_grid_that_is_none_is_refused(named: dict[str, Any], says: str) -> None:
    case = Case("CONV_2D", [XQ, bytes_(3, 1, 1, 4, **named)], [q8(1, 3, 6, 3)], "", "Conv2DOptions", STRIDES)
    with pytest.raises(FormatError, match=says):
        load(write(case))


COMPOSITE = "STABLEHLO_COMPOSITE", "StableHLOCompositeOptions", "DecompositionSubgraphIndex"
CALL = "CALL", "CallOptions", "Subgraph"


def composites(depth: int, each: int, by: tuple[str, str, str] = COMPOSITE) -> bytes:
    """Subgraphs that each stand for the next `each` times, one after the other; the last is a RELU."""
    name, options, index = by
    w = TFLiteWriter()
    for level in range(depth + 1):
        if level:
            w.subgraph(f"part {level}")
        tensors = [w.tensor(f"t{i}", "float32", (2,)) for i in range(each + 1)]
        for x, y in itertools.pairwise(tensors):
            if level < depth:
                w.op(name, [x], [y], options, {index: level + 1})
            else:
                w.op("RELU", [x], [y])
        w.ends([tensors[0]], [tensors[-1]])
    return w.finish([0], [each])


@pytest.mark.parametrize("by", [COMPOSITE, CALL], ids=lambda by: by[0])
@pytest.mark.parametrize(("depth", "each"), [(1, 1), (1, 3), (3, 2)])
def test_a_composite_is_what_it_is_made_of(depth: int, each: int, by: tuple[str, str, str]) -> None:
    graph = load(composites(depth, each, by))
    assert [n.op.name for n in graph.nodes] == ["RELU"] * each ** (depth + 1)
    assert graph.outputs[0].name == f"t{each}" and len({v for n in graph.nodes for v in n.outputs}) == len(graph.nodes)


def test_composites_of_composites_do_not_multiply_without_end() -> None:
    with pytest.raises(FormatError, match="more often"):
        load(composites(12, 8))
    with pytest.raises(Unsupported, match="nested more than 16 deep"):
        load(composites(20, 1))


@pytest.mark.parametrize(("dtype", "value", "want"), [
    ("int64", 2**40, 2**31 - 1), ("int64", -(2**40), -(2**31)), ("int64", -7, -7), ("int32", -7, -7), ("int16", 9, 9),
    ("uint32", 2**32 - 1, 2**31 - 1)])
def test_an_index_beyond_int32_is_the_nearest_int32(dtype: str, value: int, want: int) -> None:
    assert narrow(np.array([value], dtype)).tolist() == [want]


def test_runs_of_words_are_of_any_number() -> None:
    case = Case("SKIP_GRAM", [T("string", (1,))], [T("string", (1,), signature=(-1,))], "", "SkipGramOptions",
                {"NgramSize": 3, "MaxSkipSize": 2, "IncludeAllNgrams": True})
    (node,) = load(write(case)).nodes
    assert (node.op.name, node.args["size"], node.args["skip"], node.args["every"]) == ("SKIP_GRAM", 3, 2, True)
