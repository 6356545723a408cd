"""The driver and the passes that are not rules: sparse constants, folding, fusing, signed bytes, outputs."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rule_cases import CASES, F, graph_of, of

from nnx_convert.convert import evaluate
from nnx_convert.errors import Unsupported
from nnx_convert.graph import Build, Graph, GraphError, Sparse, Value
from nnx_convert.lowering.densify import densifying
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.fold import folding
from nnx_convert.lowering.fuse import FUSE, TAKERS
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.rewrite import Event, Rules
from nnx_convert.ops import control, conv, convert, elementwise as e, gather, host, image, rnn, shape
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import B8, F16, F32, I32, I64, Q8, Q8S, QPC, ChannelQuant, Quant, Rim, Tensor, Type

OLD = Target(29, False, False)


def ops(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes]


def finished(g: Build, inputs: list[Value], *outputs: Value) -> Graph:
    return g.finish(tuple(inputs), outputs, Rim())


def run(graph: Graph, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    return CompiledModel(flatten(graph), threads=1).run(list(inputs))


# The driver.
def test_a_rule_cannot_change_a_value() -> None:
    bad = Rules("bad")
    bad.on(e.EXP)(lambda g, node: g(shape.RESHAPE, node.args["x"], (24,)))
    with pytest.raises(GraphError, match="turns"):
        bad(graph_of(of(e.EXP), [F]), Target(), list[Event]())


def test_rules_in_a_circle_are_found() -> None:
    loop = Rules("loop")
    loop.on(e.EXP)(lambda g, node: g(e.EXP, node.args["x"]))
    with pytest.raises(GraphError, match="without end"):
        loop(graph_of(of(e.EXP), [F]), Target(), list[Event]())


def test_untouched_nodes_are_the_same_objects() -> None:
    graph = graph_of(of(e.EXP), [F])
    assert Rules("none")(graph, Target(), []).nodes[0] is graph.nodes[0]


@pytest.mark.parametrize("name", CASES)
def test_lowering_what_is_lowered_changes_nothing(name: str) -> None:
    once, _ = lower(graph_of(*CASES[name]), Target(), evaluate)
    again, trace = lower(once, Target(), evaluate)
    assert ops(again) == ops(once), [str(ev) for ev in trace]


@pytest.mark.parametrize("target", [Target(), OLD], ids=str)
def test_rounding_is_right_for_every_size_of_number(target: Target) -> None:
    values = np.float32([0.5, 1.5, 2.5, 0.3, 4194303.5, 4194304.5, 8388606.5, 8388607.5, 8388609, 3e9, 1e30, np.inf, 0])
    given = np.concatenate([values, -values, np.float32([np.nan])])
    graph = graph_of(of(host.ROUND), [(F32, given.shape)])
    legal, _ = lower(graph, target, evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_array_equal(run(legal, given)[0], np.rint(given))


# Sparse constants.
def csr(type_: Type, quant: Quant | ChannelQuant | None = None, implicit: int = 0) -> Value:
    """[[0, 1, 0], [2, 0, 3]] with `implicit` in place of the zeros."""
    pairs = (None, None, np.array([0, 1, 3], np.int32), np.array([1, 0, 2], np.int32))
    stored = Sparse(np.array([1, 2, 3]).astype(type_.dtype), (0, 1), (), (0, 1), (2, 3), pairs, implicit)
    return Value("w", Tensor(type_, (2, 3), quant), stored)


DENSE = np.array([[0, 1, 0], [2, 0, 3]])
#: A sparse constant: its type, its grid, what is not stored, the target; whether it stays sparse.
SPARSE: dict[str, tuple[Type, Quant | ChannelQuant | None, int, Target, bool]] = {
    "float": (F32, None, 0, Target(), True), "half": (F16, None, 0, Target(), True),
    "folded as asked": (F32, None, 0, Target(sparse="fold"), False),
    "not experimental": (F32, None, 0, Target(experimental=False), False),
    "int32": (I32, None, 0, Target(), True), "bool": (B8, None, 0, Target(), True),
    "zero point 0": (Q8S, Quant(0.5, 0), 0, Target(), True), "zero point 5": (Q8S, Quant(0.5, 5), 0, Target(), False),
    "byte, zero point 128": (Q8, Quant(0.5, 128), 0, Target(), False),
    "byte that was signed": (Q8, Quant(0.5, 128), 128, Target(), True),
    "per channel": (QPC, ChannelQuant((0.5, 0.25), 0), 0, Target(), False), "int64": (I64, None, 0, Target(), False)}


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_constant_has_one_densify_or_is_dense(name: str) -> None:
    type_, quant, implicit, target, kept = SPARSE[name]
    w, g = csr(type_, quant, implicit), Build("g")
    outs = [g(shape.RESHAPE, w, (3, 2)), g(shape.RESHAPE, w, (6,)), g(shape.TRANSPOSE, w, (1, 0))]
    trace: list[Event] = []
    found = densifying(evaluate)(finished(g, [], *outs), target, trace)
    assert ops(found).count("DENSIFY") == kept and len(found.nodes) == 3 + kept
    reads = {n.args["x"] for n in found.nodes if n.op.name != "DENSIFY"}
    assert len(reads) == 1 and not any(v.sparse for v in reads)
    if not kept:
        want = DENSE.astype(type_.dtype)
        want[DENSE == 0] = np.array(implicit).astype(type_.dtype)
        np.testing.assert_array_equal(next(iter(reads)).array, want)
        assert [bool(ev.why) for ev in trace] == [True]


def test_a_kept_constant_stays_compressed_behind_other_operations() -> None:
    g = Build("g")
    x = Value("x", Tensor(F32, (4, 3)))
    real = g(convert.CAST, csr(F16), to=F32)
    y = g(conv.FULLY_CONNECTED, x, real, g.const([0, 0], F32), act=0)
    legal, _ = lower(finished(g, [x], y), Target(), evaluate)
    assert ops(legal)[0] == "DENSIFY" and not any(v.tensor.data is not None and v.shape == (2, 3)
                                                  for n in legal.nodes for v in n.inputs)
    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run(legal, given)[0], given @ DENSE.T)


def test_a_sparse_output_is_written() -> None:
    legal, _ = lower(finished(Build("g"), [], csr(F32)), Target(), evaluate)
    np.testing.assert_array_equal(run(legal)[0], DENSE)


def test_signed_bytes_stay_sparse_as_unsigned_ones() -> None:
    g = Build("g")
    y = g(shape.RESHAPE, csr(Q8S, Quant(0.5, 0)), (6,))
    legal, _ = lower(finished(g, [], y), Target(29), evaluate)
    assert "DENSIFY" in ops(legal)
    np.testing.assert_array_equal(run(legal)[0], DENSE.reshape(6) + 128)


def test_what_cannot_be_folded_is_said() -> None:
    g = Build("g")
    y = g(shape.RESHAPE, csr(F32), (6,))
    with pytest.raises(Unsupported, match="w: a sparse constant"):
        lower(finished(g, [], y), Target(sparse="fold"), lambda node, values: None)


# Folding.
def folded(g: Build, *outputs: Value) -> Graph:
    return folding(evaluate)(finished(g, [], *outputs), Target(), [])


def test_chains_of_wide_integers_fold() -> None:
    g = Build("g")
    x = g.const(np.array([2 ** 40, 3]), I64)
    y = g(e.ADD, x, g.const([1, 1], I64), act=0, out=Tensor(I64, (2,)))
    found = folded(g, g(convert.CAST, y, to=I64, out=Tensor(I64, (2,))))
    assert not found.nodes and found.outputs[0].array.tolist() == [2 ** 40 + 1, 4]


def test_random_draws_and_failures_are_left_to_the_run() -> None:
    g = Build("g")
    draw = g(control.RANDOM_MULTINOMIAL, g.const([[0.0, 1.0]], F32), samples=3, seeds=(0, 0))
    beyond = g(gather.GATHER, g.const([1, 2], I32), axis=0, indices=g.const([5], I32))
    assert ops(folded(g, draw, beyond)) == ["RANDOM_MULTINOMIAL", "GATHER"]


# Fusing.
def before(g: Build, op: OpDef) -> tuple[Value, Value]:
    """An operation that could take an activation: its input, its output."""
    x, zeros = Value("x", Tensor(F32, (1, 4, 4, 2))), np.zeros
    pool = {"scheme": 2, "sw": 1, "sh": 1, "kw": 2, "kh": 2, "act": 0}
    window = {"scheme": 2, "sw": 1, "sh": 1, "act": 0, "nchw": False}
    named: dict[str, Any] = {
        **{o.name: {"y": x, "act": 0} for o in (e.ADD, e.SUB, e.MUL, e.DIV)},
        **{o.name: pool for o in (image.AVERAGE_POOL_2D, image.MAX_POOL_2D, image.L2_POOL_2D)},
        "CONV_2D": window | {"w": g.const(zeros((3, 2, 2, 2)), F32)},
        "DEPTHWISE_CONV_2D": window | {"w": g.const(zeros((1, 2, 2, 4)), F32), "mult": 2},
        "GROUPED_CONV_2D": window | {"w": g.const(zeros((4, 2, 2, 1)), F32), "groups": 2},
        "TRANSPOSE_CONV_2D": window | {"w": g.const(zeros((3, 2, 2, 2)), F32), "shape": (1, 5, 5, 3)},
        "FULLY_CONNECTED": {"w": g.const(zeros((3, 2)), F32), "act": 0}}[op.name]
    if "w" in named:
        depth = named["w"].shape[3 if op.name == "DEPTHWISE_CONV_2D" else 0]
        named = named | {"b": g.const(zeros(depth), F32)}
    return x, g(op, x=x, **named)


@pytest.mark.parametrize("op", TAKERS, ids=lambda o: o.name)
@pytest.mark.parametrize(("act", "code"), [(e.RELU, 1), (e.RELU1, 2), (e.RELU6, 3)], ids=["relu", "relu1", "relu6"])
def test_an_activation_is_taken_in(op: OpDef, act: OpDef, code: int) -> None:
    g = Build("g")
    x, y = before(g, op)
    graph = finished(g, [x], g(act, y))
    legal, _ = lower(graph, Target(ex=False), evaluate)
    assert ops(legal) == [op.name] and legal.nodes[0].args["act"] == code


def test_not_where_the_value_is_read_twice_nor_where_the_grid_changes() -> None:
    g = Build("g")
    x, y = before(g, e.ADD)
    trace: list[Event] = []
    assert "RELU" in ops(FUSE(finished(g, [x], g(e.RELU, y), y), Target(), trace))
    assert any("something else reads" in ev.why for ev in trace)


def test_not_into_a_recurrence() -> None:
    g = Build("g")
    x = Value("x", Tensor(F32, (2, 3, 4)))
    w, r, b, h = (g.const(np.zeros(s), F32) for s in ((5, 4), (5, 5), (5,), (2, 5)))
    y = g.add(rnn.UNIDIRECTIONAL_SEQUENCE_RNN, x, w, r, b, h, act=0, time_major=0, outs=(None,))[0]
    found = FUSE(finished(g, [x], g(e.RELU6, y)), Target(), [])
    assert ops(found) == ["UNIDIRECTIONAL_SEQUENCE_RNN", "RELU6"]


@pytest.mark.parametrize("act", [e.RELU, e.RELU1, e.RELU6], ids=lambda o: o.name)
@pytest.mark.parametrize("type_", [F32, F16, Q8, Q8S], ids=lambda t: t.name)
@pytest.mark.parametrize("op", [e.ADD, e.SUB, e.MUL], ids=lambda o: o.name)
def test_taking_it_in_changes_no_bit(op: OpDef, type_: Type, act: OpDef) -> None:
    rng = np.random.default_rng(5)
    grid = Quant(0.046875, 5) if type_.dtype.itemsize == 1 else None
    x, y = (Value(n, Tensor(type_, (64, 64), grid)) for n in "xy")
    g = Build("g")
    graph = finished(g, [x, y], g(act, g(op, x, y, act=0, out=Tensor(type_, (64, 64), grid))))
    fused = lower(graph, Target(), evaluate)[0]
    assert len(fused.nodes) == 1
    given = [rng.integers(-100, 100, (64, 64)).astype(type_.dtype) if grid
             else (rng.standard_normal((64, 64)) * 4).astype(type_.dtype) for _ in range(2)]
    for a, b in zip(run(graph, *given), run(fused, *given), strict=True):
        np.testing.assert_array_equal(a, b)


# Outputs, and signed bytes below level 30.
def test_outputs_are_written_each_by_an_operation() -> None:
    x, g = Value("x", Tensor(F32, (2,))), Build("g")
    y = g(e.RELU, x)
    legal, _ = lower(finished(g, [x], y, y, x, g.const([3.0], F32)), Target(), evaluate)
    assert len(set(legal.outputs)) == 4 and {*legal.outputs} <= {v for n in legal.nodes for v in n.outputs}
    assert [a.tolist() for a in run(legal, np.float32([-1, 2]))] == [[0, 2], [0, 2], [-1, 2], [3]]


@pytest.mark.parametrize("op", [e.RELU, e.RELU6, e.LOGISTIC, e.TANH], ids=lambda o: o.name)
def test_signed_bytes_run_as_unsigned_below_30(op: OpDef) -> None:
    x, g = Value("x", Tensor(Q8S, (256,), Quant(0.0625, -3))), Build("g")
    graph = finished(g, [x], g(op, x))
    codes = np.arange(-128, 128).astype(np.int8)
    legal, _ = lower(graph, OLD, evaluate)
    assert not any(n.op.host for n in legal.nodes)
    shifted = run(legal, codes.view(np.uint8) ^ 0x80)[0]
    np.testing.assert_array_equal((shifted ^ 0x80).view(np.int8), run(graph, codes)[0])
