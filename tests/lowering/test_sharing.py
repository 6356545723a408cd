"""Chains of computed sizes, once for all values of the same named sizes."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.rewrite import prune
from nnx_convert.lowering.sharing import shared
from nnx_convert.ops import elementwise as e, shape
from nnx_convert.ops.host_arrays import SHAPE
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, UNKNOWN, Port, Rim, Shape, Tensor, known, symbol

N, M = symbol("n"), symbol("m")


def turned(g: Build, x: Value, sizes: Shape) -> Value:
    """x with its last axis cut, the others being read off it."""
    whole = g(SHAPE, x)
    head = [g(shape.SLICE, whole, [i], [1]) for i in range(2)]
    dims = g(shape.CONCATENATION, xs=(*head, g.const(sizes[2:], I32)), axis=0)
    return g(shape.RESHAPE, x, dims, out=Tensor(F32, sizes))


def chains(*inputs: Shape) -> Graph:
    """Every input and its negative reshaped by chains of their own."""
    g = Build("main")
    xs = [Value(f"x{i}", Tensor(F32, dims)) for i, dims in enumerate(inputs)]
    outs = [turned(g, v, (*dims[:2], 2, 3)) for x, dims in zip(xs, inputs, strict=True) for v in (x, g(e.NEG, x))]

    def ports(values: Sequence[Value]) -> tuple[Port, ...]:
        return tuple(Port(v.name, "float32", tuple(n if known(n) else None for n in v.shape)) for v in values)
    return g.finish(tuple(xs), tuple(outs), Rim(ports(xs), ports(outs)))


def counts(graph: Graph) -> Counter[str]:
    """The operations by name."""
    return Counter(n.op.name for n in graph.nodes)


def test_equal_names_are_computed_once() -> None:
    before = chains((N, M, 6), (N, M, 6))
    after = shared(before, Target(), [])
    assert counts(before)["SHAPE"] == 4 and counts(before)["CONCATENATION"] == 4
    assert counts(after) == {"SHAPE": 1, "SLICE": 2, "CONCATENATION": 1, "RESHAPE": 4, "NEG": 2}
    data = [np.random.default_rng(i).standard_normal((2, 5, 6)).astype(np.float32) for i in range(2)]
    runs = [CompiledModel(flatten(HOST(prune(g, Target(), []), Target(), []))).run(data) for g in (before, after)]
    for want, got in zip(*runs, strict=True):
        np.testing.assert_array_equal(got, want)


def test_other_names_are_other_sizes() -> None:
    after = shared(chains((N, M, 6), (M, N, 6)), Target(), [])
    assert counts(after)["SHAPE"] == 2 and counts(after)["CONCATENATION"] == 2


def test_sizes_without_a_name_may_differ() -> None:
    graph = chains((UNKNOWN, M, 6), (UNKNOWN, M, 6))
    assert shared(graph, Target(), []) is graph


def test_what_is_computed_once_already_is_the_same_object() -> None:
    g = Build("main")
    x = Value("x", Tensor(F32, (N, M, 6)))
    graph = g.finish((x,), (turned(g, x, (N, M, 2, 3)),), Rim())
    assert shared(graph, Target(), []) is graph
