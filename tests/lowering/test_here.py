"""What stays as it is where the target is this machine: it is faster, or rounds as the file's own runtime does."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from gated_cases import SEQUENCE, gru
from rule_cases import MEAN, Made, graph_of

from nnx_convert import CompiledModel
from nnx_convert.convert import HERE, evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import control, elementwise as e, recurrent, shape
from nnx_convert.ops.conv import FULLY_CONNECTED
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, Q8S, QPC, ChannelQuant, Quant, Rim, Tensor, Type


def rnn(act: int) -> Made:
    """SEQUENCE_RNN that begins with the last step."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        r = np.random.default_rng(3)
        given = [g.const(r.normal(size=s), F32) for s in ((3, 4), (3, 3), (3,), (2, 3))]
        return g.add(recurrent.SEQUENCE_RNN, xs[0], *given, act=act, time_major=True, asymmetric=False, backward=True,
                     outs=(None, None))
    return make


@pytest.mark.parametrize("made", [gru(linear=True), gru(2), rnn(1), rnn(4)])
def test_a_sequence_stays_whole(made: Made) -> None:
    graph = graph_of(made, [SEQUENCE])
    whole, steps = (lower(graph, target, evaluate)[0] for target in (HERE, Target(HERE.level)))
    assert [n.op for n in whole.nodes] == [n.op for n in graph.nodes] != [n.op for n in steps.nodes]
    x = np.random.default_rng(0).standard_normal(SEQUENCE[1]).astype(np.float32)
    got, want = (CompiledModel(flatten(g, ())).run([x]) for g in (whole, steps))
    assert all(np.abs(a - b).max() < 1e-6 for a, b in zip(got, want, strict=True))


def test_a_dense_product_with_scales_per_channel_is_rounded_once() -> None:
    scales, rows = (3.1e-3, 7.7e-4, 1.9e-3), 256
    w = np.random.default_rng(1).integers(-127, 128, (3, 40)).astype(np.int8)

    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        weights = Value("w", Tensor(QPC, w.shape, ChannelQuant(scales, 0), w))
        return g.add(FULLY_CONNECTED, xs[0], weights, g.const([0, 0, 0], I32), act=0,
                     outs=(Tensor(Q8S, None, Quant(1.0, 3)),))
    graph = graph_of(make, [(Q8S, (rows, 40))])
    x = np.random.default_rng(2).integers(-128, 128, (rows, 40)).astype(np.int8)
    here, device = (CompiledModel(flatten(lower(graph, target, evaluate)[0], ())).run([x])[0]
                    for target in (HERE, Target()))
    sums = (x.astype(np.int64) + 3) @ w.T.astype(np.int64) * (0.5 * np.float32(scales).astype(np.float64))
    want = np.clip(np.copysign(np.floor(np.abs(sums) + 0.5), sums) + 3, -128, 127)
    assert (here == want).all() and np.abs(device - want).max() <= 1


def listed(rest: Sequence[int] = (), first: int = 0, plus: int = 1, swapped: bool = False) -> Made:
    """A row of x [5, 2, 3] written as TensorFlow's converter spells it out: what is before, the row, what is behind."""
    def make(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        x, row, at = xs
        after = g(e.ADD, *((g.const([plus], I32), at) if swapped else (at, g.const([plus], I32))), act=0)
        size, begin = (g(shape.CONCATENATION, xs=(g(shape.RESHAPE, v, (1,)), g.const(n, I32)), axis=0)
                       for v, n in ((at, list(rest) or [-1, -1]), (after, [0, 0])))
        before = g(shape.SLICE, x, [first, 0, 0], size)
        behind = g(shape.SLICE, x, begin, [-1, -1, -1])
        return g.add(shape.CONCATENATION, xs=(before, row, behind), axis=0, outs=(x.tensor,))
    return make


ROWS = [(F32, (5, 2, 3)), (F32, (1, 2, 3)), (I32, (1,))]


@pytest.mark.parametrize("made", [listed(), listed([2, 3]), listed(swapped=True)])
def test_a_row_is_written_over(made: Made) -> None:
    graph = graph_of(made, ROWS)
    whole, parts = (lower(graph, target, evaluate)[0] for target in (HERE, Target(HERE.level)))
    assert "host.DYNAMIC_UPDATE_SLICE" in [n.op.name for n in whole.nodes]
    assert shape.SLICE in [n.op for n in parts.nodes] and shape.SLICE not in [n.op for n in whole.nodes]
    x, row = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for _, s in ROWS[:2])
    for at in range(5):
        given = [x, row, np.array([at], np.int32)]
        got, want = (CompiledModel(flatten(g, ())).run(given)[0] for g in (whole, parts))
        assert (got == want).all() and (got[at] == row[0]).all()


@pytest.mark.parametrize("made", [listed([1, 3]), listed(first=1), listed(plus=2)])
def test_other_parts_are_put_together(made: Made) -> None:
    whole = lower(graph_of(made, ROWS), HERE, evaluate)[0]
    assert shape.SLICE in [n.op for n in whole.nodes]


def branch(op: OpDef | None, kind: Type, size: int, count: int = 1) -> Graph:
    """x, after so many times op(x, y)."""
    g, tensor = Build("branch"), Tensor(kind, (size,))
    x, y = (Value(n, tensor) for n in "xy")
    found = x
    for _ in range(count if op else 0):
        found = g(op, found, y, act=0) if op in (e.ADD, e.DIV) else g(op, found, y)
    return g.finish((x, y), (found,), Rim())


@pytest.mark.parametrize(("op", "kind", "size", "count", "left"), [
    (e.ADD, F32, 3, 1, False), (e.MAXIMUM, I32, 3, 4, False), (e.LOGICAL_AND, B8, 1, 1, False),
    (e.DIV, I32, 3, 1, True), (e.ADD, F32, 9000, 1, True), (e.ADD, F32, 3, 9, True)])
def test_small_branches_are_done_both(op: OpDef, kind: Type, size: int, count: int, left: bool) -> None:
    def made(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        return g.add(control.IF, xs[0], branch(op, kind, size, count), branch(None, kind, size), args=tuple(xs[1:]))
    graph = graph_of(made, [(B8, (1,)), (kind, (size,)), (kind, (size,))])
    whole = lower(graph, HERE, evaluate)[0]
    assert any(n.graphs for n in whole.nodes) == left
    rng = np.random.default_rng(0)
    given = [rng.integers(0, 2, size).astype(kind.dtype) + kind.dtype.type(kind != B8) for _ in range(2)]
    for yes in (True, False):
        got, want = (CompiledModel(flatten(g, ()), backend="numpy").run([np.array([yes]), *given])[0]
                     for g in (whole, lower(graph, Target(), evaluate)[0]))
        assert (got == want).all()


@pytest.mark.parametrize("axes", [(1, 2), (1,), (3,)])
def test_the_mean_of_bytes_stays_one(axes: tuple[int, ...]) -> None:
    """Where none of the axes is the last one; elsewhere, a convolution or a pool with the same answers is faster."""
    def made(g: Build, xs: Sequence[Value]) -> Sequence[Value]:
        return g.add(MEAN, xs[0], axes=axes, keep=1, outs=(Tensor(Q8S, None, xs[0].tensor.quant),))
    graph = graph_of(made, [(Q8S, (2, 4, 8, 16))])
    whole, parts = (lower(graph, target, evaluate)[0] for target in (HERE, Target(HERE.level)))
    assert ([n.op.name for n in whole.nodes] == ["host.MEAN"]) == (axes != (3,))
    assert "host.MEAN" not in [n.op.name for n in parts.nodes]
    x = np.random.default_rng(0).integers(-128, 128, (2, 4, 8, 16)).astype(np.int8)
    got, want = (CompiledModel(flatten(g, ())).run([x])[0] for g in (whole, parts))
    assert (got == want).all()
