"""What open sizes do not stand in the way of: one lowering, the same answer at every size."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnx_convert import CompiledModel
from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import elementwise as e, host, host_arrays as h, host_math
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, Rim, Tensor, symbol

Made = Callable[[Build, Value], Value]
N, M = symbol("n"), symbol("m")


def repeated(*want: int) -> Made:
    """x repeated to sizes of which the open ones stay; NNAPI's shape has 1 there."""
    return lambda g, x: g(host.BROADCAST_TO, x, [n if isinstance(n, int) else 1 for n in want])


#: A value of the shape [n, 1, 4] or another, what is made of it, and how many host operations are left.
CASES: dict[str, tuple[tuple[int, ...], Made, int]] = {
    "repeated along a known axis": ((N, 1, 4), repeated(N, 3, 4), 0),
    "repeated along one that is put before": ((N, 4), repeated(3, N, 4), 0),
    "as it is": ((N, M, 4), repeated(N, M, 4), 0),
    "one more axis, two open sizes": ((N, M), repeated(1, N, M), 0),
    "chosen from equal shapes": ((N, 4), lambda g, x: g(
        host.WHERE, g(e.GREATER, x, g.const([[0]], F32)), x, g(e.NEG, x)), 0),
    "chosen by a row": ((N, 1, 4), lambda g, x: g(host.WHERE, g(e.GREATER, x, g.const([[[0]]], F32)), x, g(
        host.BROADCAST_TO, g(e.NEG, x), [1, 3, 4])), 1),
    "chosen from a number": ((N, 4), lambda g, x: g(host.WHERE, g(e.GREATER, x, g.const([[0]], F32)), x, g.const(
        [[5]], F32)), 1),
    "repeated for a sum": ((N, 4), lambda g, x: g(e.ADD, x, g(host.BROADCAST_TO, g.const([[1, 2, 3, 4]], F32), g(
        h.SHAPE, x), out=Tensor(F32, (N, 4))), act=0), 0),
    "a row repeated for a product": ((N, 4), lambda g, x: g(e.MUL, g(host.BROADCAST_TO, g.const([1, 2, 3, 4], F32), g(
        h.SHAPE, x), out=Tensor(F32, (N, 4))), x, act=0), 0),
    "both repeated": ((N, 1), lambda g, x: g(e.MAXIMUM, g(host.BROADCAST_TO, x, [1, 4]), g(
        host.BROADCAST_TO, g.const([[1, -2, 3, 4]], F32), [1, 4])), 0),
    "sums along a known axis": ((N, 4), lambda g, x: g(host_math.CUMSUM, x, axis=1, exclusive=True, reverse=True), 0),
    "sums along the open one": ((N, 4), lambda g, x: g(host_math.CUMSUM, x, axis=0, exclusive=False, reverse=False), 1),
}


def run(graph: Graph, x: np.ndarray) -> np.ndarray:
    return np.asarray(CompiledModel(flatten(graph)).run([x])[0])


@pytest.mark.parametrize("name", CASES)
def test_open_sizes(name: str) -> None:
    dims, build, hosted = CASES[name]
    g, x = Build("open"), Value("x", Tensor(F32, dims))
    graph = g.finish((x,), (build(g, x),), Rim())
    legal, trace = lower(graph, Target(), evaluate)
    assert sum(n.op.host for n in legal.nodes) == hosted, [str(ev) for ev in trace]
    for sizes in ({N: 2, M: 3}, {N: 5, M: 1}):
        x0 = np.random.default_rng(1).integers(-9, 9, [sizes.get(d, d) for d in dims]).astype(np.float32)
        np.testing.assert_array_equal(run(legal, x0), run(HOST(graph, Target(8), []), x0))


def test_truth_values_are_repeated_by_the_host() -> None:
    g, x = Build("open"), Value("x", Tensor(B8, (N, 1)))
    y = g(e.LOGICAL_NOT, g(host.BROADCAST_TO, x, [1, 3]))
    legal, _ = lower(g.finish((x,), (y,), Rim()), Target(), evaluate)
    assert legal.nodes[0].op.name == "host.BROADCAST_TO"
    found = CompiledModel(flatten(legal)).run([np.array([[True], [False]])])[0]
    assert found.tolist() == [[False] * 3, [True] * 3]
