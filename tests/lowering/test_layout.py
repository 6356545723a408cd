"""The order of axes: whatever is chosen, a graph computes the same, and no image is left in the source's order."""
from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from layout_graphs import BATCH, IMAGE, graph

from nnx_convert.convert import evaluate
from nnx_convert.graph import Graph
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.layout import layout
from nnx_convert.lowering.layout_search import chosen, prepared
from nnx_convert.lowering.pipeline import lower, own_outputs
from nnx_convert.lowering.rewrite import prune
from nnx_convert.lowering.sinks import SINKS
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target

Array = np.ndarray[Any, Any]


def run(graph: Graph, inputs: list[Array]) -> list[Array]:
    """The graph as it is, what NNAPI does not have on the host."""
    graph = own_outputs(graph, Target(8), [])
    return CompiledModel(flatten(HOST(graph, Target(8), []))).run(inputs)


def same(got: list[Array], want: list[Array]) -> None:
    """Equal but for the rounding of sums in another order."""
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        else:
            assert np.mean(a != b) < 0.02        # a tie that rounding breaks


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_graphs_compute_the_same(start: int, free: bool) -> None:
    for seed in range(start, start + 20):
        before = graph(seed, free)
        after = layout(before, Target(8), [])
        x = np.random.default_rng(seed).standard_normal((BATCH, *IMAGE)).astype(np.float32)
        assert not any(n.args.get("nchw") is True for n in after.nodes)
        same(run(after, [x]), run(before, [x]))


@pytest.mark.parametrize("target", [Target(27, False, False), Target(28), Target(29, False), Target(30), Target(8)],
                         ids=str)
def test_random_graphs_lowered_compute_the_same(target: Target) -> None:
    for seed in range(200, 210):
        before = graph(seed, seed % 2 == 1)
        after, _ = lower(before, target, evaluate)
        x = np.random.default_rng(seed).standard_normal((BATCH, *IMAGE)).astype(np.float32)
        same(CompiledModel(flatten(after)).run([x]), run(before, [x]))


def test_the_search_finds_the_best_of_all() -> None:
    """Compared with every choice there is, on small graphs."""
    tried = 0
    for seed in range(60):
        small = graph(seed, False, 12)
        before = prune(SINKS(prune(small, Target(8), []), Target(8), []), Target(8), [])
        search = prepared(before, Target(8))
        if 2 < prod(map(len, search.ways.values())) <= 2000:
            _, found = chosen(before, Target(8))
            least = found
            for choice in product(*search.ways.values()):
                search.choice = dict(zip(search.ways, choice, strict=True))
                least = min(least, search.total())
            assert found == least, seed
            tried += 1
    assert tried >= 15
