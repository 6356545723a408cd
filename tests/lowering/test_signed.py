"""Signed bytes as unsigned ones below level 30: every operation gives the same answers, 128 higher."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from signed_cases import OTHERWISE, SAME, Case

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.retype import unsigning
from nnx_convert.lowering.rewrite import Event
from nnx_convert.lowering.signed import NEUTRAL, ON_ONE_GRID, PRODUCTS, REWRITES, WHY, few_bits
from nnx_convert.ops import control, elementwise as e, host, image, reduce as r, rnn
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, Q16S, Q8S, Port, Quant, Rim, Tensor

#: Floats around which casting and quantising turn. Beyond an int32 TFLite's quantising has no definition.
EDGES = (-128.5, -1.5, -0.9999999, -1e-9, 1e-9, 0.025, 0.5, 0.9999999, 1.5, 126.99999, 127.5, 1e7)
#: They hold graphs, and have tests of their own.
OF_GRAPHS = {"IF", "WHILE"}
OLD = [Target(27, False, False), Target(28, False, False), Target(29, False, False), Target(29, True, False)]
Array = np.ndarray[Any, Any]


def graph_of(case: Case) -> Graph:
    """The case as a graph whose rim is what the file says."""
    make, kinds = case
    g = Build("case")
    xs = tuple(Value(f"x{i}", Tensor(t, dims, quant)) for i, (t, dims, quant) in enumerate(kinds))
    made = make(g, xs)
    outs = (made,) if isinstance(made, Value) else tuple(made)
    inputs, outputs = (tuple(Port(v.name, v.type.dtype.name, v.shape, v.tensor.quant) for v in vs) for vs in (xs, outs))
    return g.finish(xs, outs, Rim(inputs, outputs))


def numbers(graph: Graph) -> list[Array]:
    """All bytes in order where there are so many, else random ones; numbers around them where they are no bytes."""
    rng = np.random.default_rng(1)
    found: list[Array] = []
    for v in graph.inputs:
        if v.type == B8:
            found.append(rng.random(v.shape) < 0.5)
        elif v.type == F32:
            found.append(np.append(rng.normal(0, 60, v.shape[0] - len(EDGES)), EDGES).astype(np.float32))
        elif v.type == I32:
            found.append(rng.integers(-128, 128, v.shape).astype(np.int32))
        else:
            low, size = np.iinfo(v.type.dtype).min, int(np.prod(v.shape))
            raw = np.arange(size) + low if size in (128, 256) else rng.integers(low, low + 256, size)
            found.append(raw.astype(v.type.dtype).reshape(v.shape))
    return found


def run(graph: Graph, inputs: list[Array]) -> list[Array]:
    return CompiledModel(flatten(HOST(graph, Target(8), [])), threads=1).run(inputs)


def same(found: list[Array], wanted: list[Array]) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_every_neutral_operation_is_tried() -> None:
    assert {*SAME} == (NEUTRAL | ON_ONE_GRID | {*PRODUCTS}) - OF_GRAPHS


@pytest.mark.parametrize("name", SAME)
def test_a_neutral_operation_is_the_same_on_unsigned_bytes(name: str) -> None:
    graph, trace = graph_of(SAME[name]), list[Event]()
    moved = unsigning(evaluate)(graph, OLD[0], trace)
    assert not trace and len(moved.nodes) == len(graph.nodes)
    inputs = numbers(graph)
    wanted = run(graph, inputs)
    assert all(w.size < 4 or len(np.unique(w)) > 1 for w in wanted)
    same(run(moved, inputs), wanted)


@pytest.mark.parametrize("target", OLD, ids=str)
@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_not_the_same_is_rewritten_or_stays(name: str, target: Target) -> None:
    case, rewritten = OTHERWISE[name]
    graph = graph_of(case)
    legal, trace = lower(graph, target, evaluate)
    assert not any(target.fault(n.op, n.verdict) for n in legal.walk())
    if target.level >= 29:
        assert any(n.op.host for n in legal.nodes) != rewritten, [str(ev) for ev in trace]
        assert any(ev.did and ev.rule in ("unsigned", "to_host") and ev.why for ev in trace) or "cast" in name
    inputs = numbers(graph)
    same(run(legal, inputs), run(graph, inputs))


def branch(op: OpDef) -> Graph:
    """A graph of one operation on one signed value, which is the same grid after it."""
    g, x = Build("branch"), Value("x", OUT)
    y = g(op, x, x, act=0, out=OUT) if op is e.ADD else g(op, x, out=OUT)
    return g.finish((x,), (y,), Rim())


OUT = Tensor(Q8S, (1, 4, 4, 2), Quant(0.05, -3))


@pytest.mark.parametrize("picked", [True, False])
def test_branches_are_unsigned_like_what_is_around_them(picked: bool) -> None:
    g, x = Build("g"), Value("x", OUT)
    y = g(control.IF, g.const([picked], B8), branch(e.ADD), branch(e.RELU6), args=(x,))
    port = Port("x", "int8", OUT.shape, OUT.quant)
    graph = g.finish((x,), (y,), Rim((port,), (port,)))
    legal, _ = lower(graph, OLD[2], evaluate)
    assert not any(v.type == Q8S for n in legal.walk() for v in (*n.inputs, *n.outputs))
    inputs = numbers(graph)
    same(run(legal, inputs), run(graph, inputs))


def test_loops_are_unsigned_like_what_is_around_them() -> None:
    """x = x + x while its largest element is below a bound."""
    g, v = Build("cond"), Value("v", OUT)
    largest = g(r.REDUCE_MAX, v, (0, 1, 2, 3), keep=False)
    below = g.finish((v,), (g(e.LESS, largest, g.const([60], Q8S, OUT)),), Rim())
    g, x = Build("g"), Value("x", OUT)
    y = g(control.WHILE, below, branch(e.ADD), values=(x,), count=1)
    port = Port("x", "int8", OUT.shape, OUT.quant)
    graph = g.finish((x,), (y,), Rim((port,), (port,)))
    legal, _ = lower(graph, OLD[2], evaluate)
    assert not any(v.type == Q8S for n in legal.walk() for v in (*n.inputs, *n.outputs))
    inputs = [np.arange(-16, 16, dtype=np.int8).reshape(OUT.shape)]
    wanted = run(graph, inputs)
    assert wanted[0].max() >= 60
    same(run(legal, inputs), wanted)


def test_integer_recurrence_stays_signed_and_says_so() -> None:
    """SVDF has no kernel for unsigned bytes: weights stay as they are, what goes in and comes out is moved."""
    rng = np.random.default_rng(3)
    g, x = Build("g"), Value("x", Tensor(Q8S, (1, 4), Quant(0.05, -3)))
    w = g.const(rng.integers(-127, 128, (6, 4)), Q8S, Tensor(Q8S, None, Quant(0.01)))
    wt = g.const(rng.integers(-999, 999, (6, 5)), Q16S, Tensor(Q16S, None, Quant(0.001)))
    b = g.const(rng.integers(-99, 99, 3), I32, Tensor(I32, None, Quant(0.00001)))
    state = Value("state", Tensor(Q16S, (1, 30), Quant(0.01)))
    state_, y = g.add(host.host_twin(rnn.SVDF), x, w, wt, b, state, rank=2, act=0,
                      outs=(state.tensor, Tensor(Q8S, (1, 3), Quant(0.02, 4))))
    graph = g.finish((x, state), (y, state_), Rim(
        (Port("x", "int8", x.shape, x.tensor.quant), Port("state", "int16", state.shape, state.tensor.quant)),
        (Port("y", "int8", y.shape, y.tensor.quant), Port("state", "int16", state.shape, state.tensor.quant))))
    legal, trace = lower(graph, OLD[2], evaluate)
    assert [n.op.name for n in legal.nodes] == ["host.REQUANTIZE", "host.SVDF", "host.REQUANTIZE"]
    assert any("SVDF" in ev.why for ev in trace if ev.did)
    inputs = [np.int8([[-128, -3, 50, 127]]), rng.integers(-999, 999, (1, 30)).astype(np.int16)]
    same(run(legal, inputs), run(graph, inputs))


def test_every_rewrite_says_why() -> None:
    assert {*REWRITES, *PRODUCTS} <= {*WHY}


@pytest.mark.parametrize(("sizes", "few"), [
    ((8, 16), True), ((7, 14), True), ((8, 2), True), ((3, 5), False), ((1, 9), False), ((6, 4), True),
    ((1000, 1), True), ((1, 512), False)], ids=str)
def test_few_bits(sizes: tuple[int, int], few: bool) -> None:
    assert few_bits(*sizes, align=False, half=False) == few


@pytest.mark.parametrize("target", OLD, ids=str)
def test_what_an_attempt_moved_over_stays_when_the_attempt_fails(target: Target) -> None:
    """A pool that stays signed, read by a resize that is tried on unsigned bytes first, and by the rim."""
    def made(g: Build, xs: tuple[Value, ...]) -> tuple[Value, ...]:
        pool = g(image.AVERAGE_POOL_2D, xs[0], scheme=1, sw=1, sh=1, kw=1, kh=1, act=0)
        return g(image.RESIZE_BILINEAR, pool, ow=3, oh=7, align=True), pool
    graph = graph_of((made, [(Q8S, (1, 3, 5, 2), Quant(0.025, 0))]))
    want = CompiledModel(flatten(lower(graph, Target(), evaluate)[0])).run(numbers(graph))
    found = CompiledModel(flatten(lower(graph, target, evaluate)[0])).run(numbers(graph))
    assert all(np.array_equal(a, b) for a, b in zip(found, want, strict=True))
