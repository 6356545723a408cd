"""ONNX's codes: which groups become operations on codes, that these are within a step of the float way, and the rim."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rule_cases import CASES, graph_of

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.qdq import fusing
from nnx_convert.lowering.rewrite import Event
from nnx_convert.ops import conv, convert, elementwise as e, grids, host, image, norm, reduce as r, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, Q8, Q8S, Port, Quant, Rim, Shape, Tensor, Type

Array = np.ndarray[Any, Any]
PLAIN = Quant(1.0, 0)
RNG = np.random.default_rng(5)
#: A middle zero point of each type.
MIDDLE = {Q8: 128, Q8S: 0}
Made = Callable[[Build, Sequence[Value]], Value]


def codes(type_: Type, shape_: Shape) -> Array:
    """Codes of all sizes."""
    info = np.iinfo(type_.dtype)
    return RNG.integers(info.min, info.max, shape_, type_.dtype, endpoint=True)


def real(g: Build, x: Value, scale: Any = 0.05, zero: Any = None, axis: int = 0) -> Value:
    """DequantizeLinear."""
    points = None if zero is None else g.const(zero, x.type, Tensor(x.type, (1,), PLAIN))
    return g(grids.DEQUANTIZE_LINEAR, x, g.const(np.atleast_1d(scale), F32), points, axis=axis, block=0, to=F32)


def coded(g: Build, y: Value, type_: Type, scale: float, zero: int) -> Value:
    """QuantizeLinear."""
    point = g.const([zero], type_, Tensor(type_, (1,), PLAIN))
    return g(grids.QUANTIZE_LINEAR, y, g.const([scale], F32), point, axis=0, block=0, saturate=True, to=type_,
             out=Tensor(type_, None, PLAIN))


def constant(g: Build, type_: Type, shape_: Shape) -> Value:
    """Codes as an initializer has them."""
    return Value("w", Tensor(type_, shape_, PLAIN, codes(type_, shape_)))


def group(make: Made, type_: Type, shapes: Sequence[Shape], scale: float, zero: int, own: float = 0.05) -> Graph:
    """What is made of dequantised inputs, quantised."""
    g = Build("main")
    inputs = tuple(Value(f"x{i}", Tensor(type_, s, PLAIN)) for i, s in enumerate(shapes))
    xs = [real(g, x, own * (1 + 0.3 * i), MIDDLE[type_] - 5 * i) for i, x in enumerate(inputs)]
    y = coded(g, make(g, xs), type_, scale, zero)
    name = type_.dtype.name
    return g.finish(inputs, (y,), Rim(tuple(Port(v.name, name, v.shape) for v in inputs), (Port("y", name, y.shape),)))


def convolved(g: Build, xs: Sequence[Value], axis: int | None = None, act: bool = True) -> Value:
    """Conv as an importer says it: filters [out, in, kh, kw] turned, a bias on the grid of the products."""
    type_ = Q8S if axis is not None else Q8
    w = constant(g, type_, (4, 3, 2, 2))
    scale = np.linspace(0.01, 0.02, 4) if axis is not None else np.float64(0.015)
    filters = g(shape.TRANSPOSE, real(g, w, scale, None if axis is not None else [120], 0), (0, 2, 3, 1))
    b = Value("b", Tensor(I32, (4,), None, np.array([900, -700, 0, 44], np.int32)))
    bias = real(g, b, np.float32(0.05) * np.float32(scale))
    y = g(conv.CONV_2D, xs[0], filters, bias, pl=1, pr=0, pt=1, pb=0, sw=2, sh=1, act=0, nchw=True)
    return g(e.RELU, y) if act else y


def depthwise(g: Build, xs: Sequence[Value]) -> Value:
    w = real(g, constant(g, Q8S, (3, 1, 2, 2)), [0.01, 0.02, 0.03])
    zeros = g.const([0, 0, 0], F32)
    return g(conv.DEPTHWISE_CONV_2D, xs[0], g(shape.TRANSPOSE, w, (1, 2, 3, 0)), zeros, pl=0, pr=0, pt=0, pb=0, sw=1,
             sh=1, mult=1, act=0, nchw=True)


def multiplied(g: Build, xs: Sequence[Value], float_bias: bool = False) -> Value:
    """MatMul by codes, or LINEAR with a bias of floats, which is rounded to the grid of the products."""
    w = real(g, constant(g, Q8S, (6, 5)), [0.01], [3])
    if not float_bias:
        return g(host.MATMUL, xs[0], w, adj_x=False, adj_y=False)
    return g(LINEAR, xs[0], g(shape.TRANSPOSE, w, (1, 0)), g.const([0.1, -0.2, 3.33, 0, 1], F32))


def summed(make: Made, term: Shape) -> Made:
    """A constant for each channel added afterwards."""
    def made(g: Build, xs: Sequence[Value]) -> Value:
        c = g.const(np.linspace(-2, 2, int(np.prod(term))).reshape(term), F32)
        return g(e.RELU6, g(e.ADD, c, make(g, xs), act=0))
    return made


def two(op: OpDef) -> Made:
    return lambda g, xs: g(op, *xs, **{"act": 0} if op in (e.ADD, e.SUB, e.MUL) else {})


def with_number(op: OpDef, value: float) -> Made:
    return lambda g, xs: g(op, xs[0], g.const(np.full((1, 1, 1), value), F32),
                           **{"act": 0} if op in (e.ADD, e.MUL) else {})


def moved(g: Build, xs: Sequence[Value]) -> Value:
    """Padding, a pool, a transposition, a reshape: codes are moved throughout."""
    y = g(shape.PAD_V2, xs[0], [[0, 0], [0, 0], [1, 1], [1, 0]], value=0.0)
    y = g(image.MAX_POOL_2D, y, pl=0, pr=0, pt=0, pb=0, sw=1, sh=1, kw=2, kh=2, act=0, nchw=True)
    return g(shape.RESHAPE, g(shape.TRANSPOSE, g(e.RELU, y), (0, 2, 3, 1)), (2, -1))


def pooled(g: Build, xs: Sequence[Value]) -> Value:
    return g(image.AVERAGE_POOL_2D, xs[0], pl=0, pr=0, pt=0, pb=0, sw=1, sh=1, kw=2, kh=3, act=0, nchw=True)


def mean(g: Build, xs: Sequence[Value]) -> Value:
    """ReduceMean drops its axes by a RESHAPE, which QUANTIZE_EVEN passes."""
    return g(shape.RESHAPE, g(r.MEAN, xs[0], (2, 3), keep=1), (2, 3))


IMAGE, ROWS, THREE = (2, 3, 9, 8), (40, 6), (2, 3, 40)
#: A group: how it is made, of which types and shapes, the grid of the output, and what it becomes.
GROUPS: dict[str, tuple[Graph, set[str]]] = {
    "convolution": (group(convolved, Q8, [IMAGE], 0.4, 30), {"CONV_2D"}),
    "convolution per channel": (group(lambda g, xs: convolved(g, xs, 0), Q8S, [IMAGE], 0.3, -90), {"CONV_2D"}),
    "signed weights beside unsigned": (group(lambda g, xs: convolved(g, xs, 0), Q8, [IMAGE], 0.3, 7), {"CONV_2D"}),
    "depthwise": (group(depthwise, Q8S, [IMAGE], 0.2, 3), {"DEPTHWISE_CONV_2D"}),
    "product": (group(multiplied, Q8S, [ROWS], 0.3, 4), {"LINEAR"}),
    "product of unsigned": (group(multiplied, Q8, [(2, 4, 6)], 0.3, 100), {"LINEAR"}),
    "convolution, a term": (group(
        summed(lambda g, xs: convolved(g, xs, None, False), (1, 4, 1, 1)), Q8, [IMAGE], 0.4, 3), {"CONV_2D"}),
    "product, a term": (group(summed(multiplied, (5,)), Q8S, [(2, 4, 6)], 0.1, -100), {"LINEAR"}),
    "float bias": (group(lambda g, xs: multiplied(g, xs, True), Q8, [ROWS], 0.3, 100), {"LINEAR"}),
    **{f"{op.name} {t.name}": (group(two(op), t, [THREE, (3, 1)], 0.1234, MIDDLE[t] + 3), {op.name})
       for op in (e.ADD, e.SUB, e.MUL, e.PRELU, e.MAXIMUM) for t in (Q8, Q8S)},
    "number added": (group(with_number(e.ADD, -1.5), Q8, [THREE], 0.07, 120), {"ADD"}),
    "number multiplied": (group(with_number(e.MUL, 1 / 6), Q8S, [THREE], 0.011, 1), {"MUL"}),
    "number at most": (group(with_number(e.MINIMUM, 1.3), Q8, [THREE], 0.03, 100), {"MINIMUM"}),
    "moves": (group(moved, Q8, [IMAGE], 0.05, 128), {"PAD_V2", "MAX_POOL_2D", "RELU", "TRANSPOSE", "RESHAPE"}),
    "pool": (group(pooled, Q8, [IMAGE], 0.05, 128), {"AVERAGE_POOL_2D"}),
    "pool onto another grid": (group(pooled, Q8S, [IMAGE], 0.031, 5), {"DEPTHWISE_CONV_2D"}),
    "mean onto another grid": (group(mean, Q8, [IMAGE], 0.02, 99), {"DEPTHWISE_CONV_2D", "RESHAPE"}),
    "softmax": (group(lambda g, xs: g(norm.SOFTMAX, xs[0], beta=1.0), Q8, [ROWS], 1 / 256, 0), {"SOFTMAX"}),
    "sigmoid": (group(lambda g, xs: g(e.LOGISTIC, xs[0]), Q8S, [ROWS], 1 / 256, -128), {"LOGISTIC"}),
    "joined": (group(lambda g, xs: g(shape.CONCATENATION, xs=tuple(xs), axis=1), Q8, [THREE, (2, 2, 40)], 0.061, 128),
               {"CONCATENATION"}),
}


def run(graph: Graph, inputs: Sequence[Array]) -> Array:
    """The output."""
    found = CompiledModel(flatten(graph), threads=1).run(list(inputs))
    return np.asarray(found[0])


def fused(graph: Graph, trace: list[Event] | None = None) -> Graph:
    """The pass alone."""
    return fusing(evaluate)(graph, Target(), [] if trace is None else trace)


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_one_operation_on_codes(name: str) -> None:
    graph, becomes = GROUPS[name]
    assert {n.op.name for n in fused(graph).nodes} == becomes


@pytest.mark.parametrize("name", GROUPS)
def test_its_codes_are_within_a_step_of_those_of_the_float_way(name: str) -> None:
    graph, _ = GROUPS[name]
    inputs = [codes(v.type, v.shape) for v in graph.inputs]
    want, got = run(HOST(graph, Target(8), []), inputs), run(lower(graph, Target(), evaluate)[0], inputs)
    off = np.abs(want.astype(int) - got)
    assert got.dtype == want.dtype and got.shape == want.shape and off.max() <= 1
    # Averages meet halves, and PRELU, of bytes as they are, is rounded twice.
    assert (off > 0).mean() <= (0.2 if "pool" in name or "PRELU" in name else 0.05)


@pytest.mark.parametrize("name", ["moves", "number at most", "sigmoid"])
def test_what_only_moves_or_bounds_codes_is_exact(name: str) -> None:
    graph, _ = GROUPS[name]
    inputs = [codes(v.type, v.shape) for v in graph.inputs]
    np.testing.assert_array_equal(run(lower(graph, Target(), evaluate)[0], inputs),
                                  run(HOST(graph, Target(8), []), inputs))


@pytest.mark.parametrize("name", GROUPS)
def test_floats_between_codes_are_exact_where_they_are_wanted(name: str) -> None:
    graph, _ = GROUPS[name]
    inputs = [codes(v.type, v.shape) for v in graph.inputs]
    got = run(lower(graph, Target(qdq="floats"), evaluate)[0], inputs)
    off = np.abs(run(HOST(graph, Target(8), []), inputs).astype(int) - got)
    assert off.max() <= 1 and (off > 0).mean() <= 0.01                   # sums of floats have an order


@pytest.mark.parametrize("level", [27, 28, 29, 8])
@pytest.mark.parametrize("name", GROUPS)
def test_other_levels_give_the_same_within_a_step(name: str, level: int) -> None:
    graph, _ = GROUPS[name]
    inputs = [codes(v.type, v.shape) for v in graph.inputs]
    want, got = run(HOST(graph, Target(8), []), inputs), run(lower(graph, Target(level), evaluate)[0], inputs)
    assert np.abs(want.astype(int) - got).max() <= 1


#: What stays on floats, and the reason.
REFUSED: dict[str, tuple[Graph, str]] = {
    "no form": (group(lambda g, xs: g(norm.LOG_SOFTMAX, xs[0], beta=1.0, axis=-1), Q8, [THREE], 0.5, 0),
                "it has no form on bytes"),
    "softmax": (group(lambda g, xs: g(norm.SOFTMAX, xs[0], beta=1.0), Q8, [ROWS], 1 / 255, 0), "its output has scale"),
    "floats": (group(lambda g, xs: g(e.ADD, xs[0], g.const(np.arange(40), F32), act=0), Q8, [THREE], 0.5, 0),
               "y is not dequantised"),
    "scale": (group(two(e.MUL), Q8, [THREE, THREE], 0.001, 0), "the output's scale does not exceed"),
    "matrices": (group(lambda g, xs: g(host.MATMUL, *xs, adj_x=False, adj_y=True), Q8S, [THREE, THREE], 0.5, 0),
                 "BATCH_MATMUL is there from 6"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_on_floats_says_why_and_is_exact(name: str) -> None:
    graph, why = REFUSED[name]
    inputs, trace = [codes(v.type, v.shape) for v in graph.inputs], list[Event]()
    fused(graph, trace)
    assert any(why in ev.why for ev in trace if not ev.did)
    np.testing.assert_array_equal(run(lower(graph, Target(), evaluate)[0], inputs),
                                  run(HOST(graph, Target(8), []), inputs))


def test_matrices_of_signed_bytes_are_multiplied_where_the_target_can() -> None:
    found = fusing(evaluate)(REFUSED["matrices"][0], Target(8), [])
    assert [n.op.name for n in found.nodes] == ["BATCH_MATMUL"]


def test_a_float_result_that_is_read_as_well_is_computed() -> None:
    graph, _ = GROUPS["ADD TENSOR_QUANT8_ASYMM"]
    before = next(n for n in graph.nodes if n.op is e.ADD).outputs[0]
    more = replace(graph, outputs=(*graph.outputs, before), rim=replace(
        graph.rim, outputs=(*graph.rim.outputs, Port("f", "float32", before.shape))))
    trace = list[Event]()
    fused(more, trace)
    assert any("the float result is read as well" in ev.why for ev in trace)


def test_what_is_quantised_for_each_reader_is_quantised_once() -> None:
    g = Build("main")
    x = Value("x", Tensor(Q8, THREE, PLAIN))
    y = g(e.ADD, real(g, x, 0.05, [3]), real(g, x, 0.05, [3]), act=0)
    first, second = (coded(g, y, Q8, 0.1, 9) for _ in range(2))
    z = coded(g, g(e.MUL, real(g, first, 0.1, [9]), real(g, second, 0.1, [9]), act=0), Q8, 0.5, 0)
    found = fused(g.finish((x,), (z,), Rim((Port("x", "uint8", THREE),), (Port("z", "uint8", THREE),))))
    assert [n.op for n in found.nodes] == [e.ADD, e.MUL]


def test_the_largest_is_searched_among_codes() -> None:
    g = Build("main")
    x = Value("x", Tensor(Q8, THREE, PLAIN))
    y = g(r.ARGMAX, real(g, x, 0.05, [3]), axis=-1)
    graph = g.finish((x,), (y,), Rim((Port("x", "uint8", THREE),), (Port("y", "int32", y.shape),)))
    assert [n.op for n in fused(graph).nodes] == [r.ARGMAX]
    data = codes(Q8, THREE)
    np.testing.assert_array_equal(run(lower(graph, Target(), evaluate)[0], [data]), data.argmax(-1))


def test_the_rim_has_the_grids_and_the_user_sees_codes() -> None:
    graph, _ = GROUPS["moves"]
    found = fused(graph)
    assert [v.tensor.quant for v in (*found.inputs, *found.outputs)] == [Quant(float(np.float32(0.05)), 128)] * 2
    assert found.rim == graph.rim


def test_codes_that_others_read_as_integers_keep_their_grid() -> None:
    g = Build("main")
    x = Value("x", Tensor(Q8, THREE, PLAIN))
    y, z = coded(g, g(e.ABS, real(g, x, 0.5, [9])), Q8, 0.25, 3), g(shape.RESHAPE, x, (240,))
    graph = g.finish((x,), (y, z), Rim((Port("x", "uint8", THREE),), (
        Port("y", "uint8", THREE), Port("z", "uint8", z.shape))))
    assert fused(graph).inputs[0].tensor.quant == PLAIN
    data = codes(Q8, THREE)
    got = CompiledModel(flatten(lower(graph, Target(), evaluate)[0])).run([data])
    np.testing.assert_array_equal(got[1], data.reshape(-1))
    np.testing.assert_array_equal(got[0], np.clip(np.rint(abs(data.astype(int) - 9) * 0.5 / 0.25) + 3, 0, 255))


@pytest.mark.parametrize("name", ["concat_byte", "cast_byte", "exp_byte"])
def test_a_graph_without_onnx_quantisation_is_left_alone(name: str) -> None:
    if name not in CASES:
        name = next(n for n in CASES if n.endswith("_byte"))
    graph = graph_of(*CASES[name])
    assert fused(graph) is graph


def test_whole_numbers_are_multiplied_in_floats_and_not_cast() -> None:
    """DynamicQuantizeLinear, MatMulInteger, Cast, Mul."""
    g = Build("main")
    x, scale = Value("x", Tensor(F32, ROWS)), Value("s", Tensor(F32, (1,)))
    q = g(grids.QUANTIZE_LINEAR, x, scale, None, axis=0, block=0, saturate=True, to=Q8, out=Tensor(Q8, None, PLAIN))
    w = real(g, constant(g, Q8S, (6, 5)), [1.0], [3])
    y = g(host.MATMUL, real(g, q, [1.0]), w, adj_x=False, adj_y=False)
    y = g(e.MUL, g(convert.CAST, g(convert.CAST, y, to=I32), to=F32), scale, act=0)
    graph = g.finish((x, scale), (y,), Rim())
    names = [n.op.name for n in fused(graph).nodes]
    assert "CAST" not in names and "QUANTIZE" not in names
    data = [RNG.uniform(0, 9, ROWS).astype(np.float32), np.array([0.04], np.float32)]
    np.testing.assert_array_equal(run(lower(graph, Target(), evaluate)[0], data), run(HOST(graph, Target(8), []), data))
