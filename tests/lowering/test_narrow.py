"""More axes than NNAPI takes: merged where an operation treats neighbours alike, entered with fewer at the rim."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from narrow_cases import NARROWED
from rule_cases import graph_of, numbers, of

from nnx_convert.artifact.files import load, save
from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.narrow import FREE, grouped, joined
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import elementwise as e, shape
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import F32, Rim, Tensor

#: Kinds of axes, and the runs they make.
KINDS: list[tuple[list[object], list[tuple[int, int]]]] = [
    ([1, 1, 2], [(0, 2), (2, 3)]), ([FREE, 1, FREE, 2, FREE], [(0, 3), (3, 5)]), ([FREE, FREE], [(0, 2)]),
    ([1, FREE, 1], [(0, 3)]), ([1, 2, 1], [(0, 1), (1, 2), (2, 3)])]


@pytest.mark.parametrize(("kinds", "runs"), KINDS, ids=str)
def test_neighbours_of_one_kind_are_one(kinds: list[object], runs: list[tuple[int, int]]) -> None:
    assert [(run.start, run.stop) for run in grouped(kinds)] == runs


def run(graph: Graph, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return CompiledModel(flatten(graph), threads=1).run(list(inputs))[0]


SHAPES = st.lists(st.integers(1, 3), min_size=5, max_size=7)


@settings(max_examples=60)
@given(st.data(), SHAPES)
def test_any_transposition_is_one_of_four_axes_or_several(data: st.DataObject, dims: list[int]) -> None:
    perm = data.draw(st.permutations(range(len(dims))))
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    sizes, order = joined(tuple(dims), perm)
    np.testing.assert_array_equal(x.reshape(sizes).transpose(order).ravel(), x.transpose(perm).ravel())
    graph = graph_of(of(shape.TRANSPOSE, perm=perm), [(F32, tuple(dims))])
    legal, _ = lower(graph, Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_array_equal(run(legal, x), x.transpose(perm))


@settings(max_examples=60)
@given(st.data(), SHAPES)
def test_any_two_shapes_that_broadcast_give_the_sum(data: st.DataObject, dims: list[int]) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    fewer = [n if keep else 1 for n, keep in zip(dims, kept, strict=True)][data.draw(st.integers(0, 4)):]
    x, y = (np.arange(np.prod(d), dtype=np.float32).reshape(d) for d in (dims, fewer))
    legal, _ = lower(graph_of(of(e.ADD, act=0), [(F32, x.shape), (F32, y.shape)]), Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_array_equal(run(legal, x, y), x + y)


@settings(max_examples=60)
@given(st.data(), SHAPES)
def test_any_cut_is_the_same_with_fewer_axes(data: st.DataObject, dims: list[int]) -> None:
    ends = st.integers(-4, 4)
    cuts = [data.draw(st.tuples(ends, ends, st.sampled_from([-2, -1, 1, 2]))) for _ in dims]
    cuts = [c if len(range(n)[slice(*c)]) else (0, n, 1) for c, n in zip(cuts, dims, strict=True)]
    begin, end, strides = map(list, zip(*cuts, strict=True))
    made = of(shape.STRIDED_SLICE, begin=begin, end=end, strides=strides, begin_mask=0, end_mask=0, shrink_mask=0)
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    legal, _ = lower(graph_of(made, [(F32, x.shape)]), Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    np.testing.assert_array_equal(run(legal, x), x[tuple(slice(*c) for c in cuts)])


def test_an_input_of_five_axes_enters_with_fewer_and_is_shown_as_it_was(tmp_path: Path) -> None:
    graph = graph_of(*NARROWED["add_row"])
    legal, _ = lower(graph, Target(), evaluate)
    assert [len(v.shape) for v in legal.inputs] == [4, 1]
    save(flatten(legal), tmp_path / "wide.nnx")
    compiled = CompiledModel(load(tmp_path / "wide.nnx"), threads=1)
    assert compiled.inputs[0].shape == graph.inputs[0].shape
    compiled.prepare()
    x, y = numbers("add_row", graph)
    np.testing.assert_array_equal(compiled.run([x, y])[0], x + y)


def test_an_input_enters_as_it_is_where_that_spares_nothing() -> None:
    graph = graph_of(of(e.EXP), [(F32, (1, 2, 3, 4, 5))])
    assert lower(graph, Target(29, False, False), evaluate)[0].inputs == graph.inputs


def test_what_a_caller_knows_of_a_subgraph_stays() -> None:
    g, x = Build("body"), Value("x", Tensor(F32, (1, 2, 3, 4, 5)))
    body = g.finish((x,), (g(e.RELU, x),), Rim())
    assert lower(body, Target(), evaluate)[0].inputs == (x,)
    assert [n.op.name for n in HOST(body, Target(), []).nodes] == ["host.RELU"]
