"""More than four axes beside an open size: it goes together with its neighbours, whatever it is."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import elementwise as e, gather, host, norm, reduce as r, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import F32, Port, Rim, Shape, Tensor, known, symbol

N, M = symbol("n"), symbol("m")
FIVE = (N, 3, 4, 2, 5)


def reshape(g: Build, x: Value, dims: Shape) -> Value:
    """x in another shape, one size of which is open."""
    return g(shape.RESHAPE, x, [n if known(n) else -1 for n in dims], out=Tensor(x.type, dims))


def wide(then: Callable[[Build, Value], Value], last: Shape, sizes: Shape = (N, 12, 10)) -> Graph:
    """Something done to a value of five axes, which comes from few and goes to few."""
    g = Build("main")
    x = Value("x", Tensor(F32, sizes))
    y = reshape(g, then(g, reshape(g, x, FIVE)), last)
    ports = [Port(v.name, "float32", tuple(n if known(n) else None for n in v.shape)) for v in (x, y)]
    return g.finish((x,), (y,), Rim((ports[0],), (ports[1],)))


CASES: dict[str, tuple[Callable[[Build, Value], Value], Shape]] = {
    "transpose": (lambda g, x: g(shape.TRANSPOSE, x, [0, 3, 1, 4, 2]), (N, 120)),
    "transpose_batch": (lambda g, x: g(shape.TRANSPOSE, x, [1, 3, 0, 2, 4]), (6, N, 20)),
    "heads": (lambda g, x: g(shape.TRANSPOSE, x, [2, 0, 3, 1, 4]), (4, N * 6, 5)),
    "elements": (lambda g, x: g(e.ADD, g(e.RELU, x), x, act=0), (N, 120)),
    "constants": (lambda g, x: g(e.MUL, x, g.const(np.arange(5), F32), act=0), (N, 120)),
    "number": (lambda g, x: g(e.MUL, x, g.const([2], F32), act=0), (N, 120)),
    "mean": (lambda g, x: g(r.MEAN, x, [3, 4], keep=0), (N, 12)),
    "softmax": (lambda g, x: g(norm.SOFTMAX, x, beta=1.0, axis=-1), (N, 120)),
    "softmax_inner": (lambda g, x: g(norm.SOFTMAX, x, beta=1.0, axis=2), (N, 120)),
    "joined": (lambda g, x: g(shape.CONCATENATION, xs=(x, x), axis=3), (N, 240)),
    "picked": (lambda g, x: g(gather.GATHER, x, axis=1, indices=[1]), (N, 40)),
    "cut": (lambda g, x: g(shape.SLICE, x, [0, 1, 0, 0, 0], [-1, 2, -1, -1, -1]), (N, 80)),
    "cut_apart": (lambda g, x: g(shape.STRIDED_SLICE, x, [0, 2, 0, 0, 4], [0, 0, 4, 2, 0], [1, -1, 1, 1, -2],
                                 begin_mask=1, end_mask=1, shrink_mask=0), (N, 32)),
    "product": (lambda g, x: g(LINEAR, x, g.const(np.arange(15).reshape(3, 5), F32), g.const([1, 2, 3], F32)), (N, 72)),
    "repeated": (lambda g, x: g(shape.TILE, x, [1, 1, 2, 1, 1]), (N, 240)),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_to_the_host(name: str) -> None:
    before = wide(*CASES[name])
    after, trace = lower(before, Target(30), evaluate)
    assert not any(n.op.host for n in after.nodes), [str(event) for event in trace]
    want, got = (CompiledModel(flatten(g)) for g in (HOST(before, Target(8), []), after))
    for n in (1, 2, 3):
        x = np.random.default_rng(n).standard_normal((n, 12, 10)).astype(np.float32)
        np.testing.assert_allclose(got.run([x])[0], want.run([x])[0], rtol=1e-5, atol=1e-6)


def test_what_may_be_repeated_is_left_alone() -> None:
    """Sizes of two names may be 1 or not."""
    g = Build("main")
    x, y = Value("x", Tensor(F32, (N, 12, 10))), Value("y", Tensor(F32, (M, 12, 10)))
    z = g(host.SQUARED_DIFFERENCE, reshape(g, x, FIVE), reshape(g, y, (M, *FIVE[1:])))
    ports = tuple(Port(v.name, "float32", (None, *v.shape[1:])) for v in (x, y, z))
    graph = g.finish((x, y), (z,), Rim(ports[:2], ports[2:]))
    after, _ = lower(graph, Target(30), evaluate)
    compiled = CompiledModel(flatten(after))
    a, b = (np.random.default_rng(n).standard_normal((n, 12, 10)).astype(np.float32) for n in (3, 1))
    np.testing.assert_allclose(compiled.run([a, b])[0], ((a - b) ** 2).reshape(3, 3, 4, 2, 5), rtol=1e-6)
