"""What exporters spell out: each spelling is one operation again, what only looks like it is left alone."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_rules import as_it_is, run

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering.patterns import patterns
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.rewrite import Event
from nnx_convert.ops import elementwise as e, functions as f, host, norm, reduce as r, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.target import Target
from nnx_convert.types import F16, F32, Port, Rim, Source, Tensor, Type

SHAPE = (2, 3, 5)
ROOT, TANH = 2.0 ** 0.5, (2 / np.pi) ** 0.5
Spelt = Callable[["Spell", Value], Value]


class Spell:
    """Writes formulas: numbers stand for constants of one element."""

    def __init__(self, kind: Type = F32) -> None:
        self.build, self.kind = Build("g"), kind

    def __getattr__(self, name: str) -> Callable[..., Value]:
        op: Any = {"mul": e.MUL, "add": e.ADD, "div": e.DIV, "tanh": e.TANH, "erf": f.ERF, "pow": e.POW, "exp": e.EXP,
                   "log": e.LOG, "sqrt": e.SQRT, "square": host.SQUARE, "relu6": e.RELU6, "unit": host.RELU_0_TO_1,
                   "softplus": f.SOFTPLUS}[name]
        act = {"act": 0} if name in ("mul", "add", "div") else {}
        return lambda *xs: self.build(op, *map(self.value, xs), **act)

    def value(self, x: Value | float) -> Value:
        return x if isinstance(x, Value) else self.build.const([[[x]]], self.kind)


def made(spelt: Spelt, source: str = "ONNX", twice: bool = False, kind: Type = F32) -> Graph:
    """The graph of a formula; `twice`: what stands before the last operation is an output, too."""
    g, x = Spell(kind), Value("x", Tensor(kind, SHAPE))
    y = spelt(g, x)
    inside = [v for v in g.build.nodes[-1].inputs if v is not x and not v.constant]
    outs = (y, *inside) if twice else (y,)
    ports = tuple(Port(v.name, kind.dtype.name, v.shape) for v in (x, *outs))
    return g.build.finish((x,), outs, Rim(ports[:1], ports[1:], source=Source(source)))


def passed(graph: Graph) -> Graph:
    """The graph after the pass."""
    return patterns(graph, Target(), [])


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes]


def cubed(g: Spell, x: Value) -> Value:
    return g.add(x, g.mul(0.044715, g.pow(x, 3)))


SPELT: dict[str, tuple[Spelt, list[str]]] = {
    "gelu, torch": (lambda g, x: g.mul(g.mul(x, g.add(g.erf(g.div(x, ROOT)), 1)), 0.5), ["GELU"]),
    "gelu, half first": (lambda g, x: g.mul(g.mul(0.5, x), g.add(1, g.erf(g.mul(x, 1 / ROOT)))), ["GELU"]),
    "gelu, half inside": (lambda g, x: g.mul(x, g.mul(g.add(g.erf(g.div(x, ROOT)), 1), 0.5)), ["GELU"]),
    "gelu, divided": (lambda g, x: g.div(g.mul(g.add(g.erf(g.div(x, ROOT)), 1), x), 2), ["GELU"]),
    "gelu, short root": (lambda g, x: g.mul(g.mul(x, g.add(g.erf(g.div(x, 1.4142135381698608)), 1)), 0.5), ["GELU"]),
    "tanh": (lambda g, x: g.mul(g.mul(0.5, x), g.add(1, g.tanh(g.mul(TANH, cubed(g, x))))), ["GELU"]),
    "tanh, squares": (lambda g, x: g.mul(x, g.mul(0.5, g.add(g.tanh(g.mul(TANH, g.add(g.mul(g.mul(
        g.square(x), x), 0.044715), x))), 1))), ["GELU"]),
    "tanh, factored": (lambda g, x: g.mul(g.mul(0.5, x), g.add(1, g.tanh(g.mul(g.mul(x, 0.7978845608), g.add(
        1, g.mul(g.mul(0.044715, x), x)))))), ["GELU"]),
    "hard swish": (lambda g, x: g.div(g.mul(x, g.relu6(g.add(x, 3))), 6), ["HARD_SWISH"]),
    "hard swish, inside": (lambda g, x: g.mul(x, g.div(g.relu6(g.add(x, 3)), 6)), ["HARD_SWISH"]),
    "hard swish of a hard sigmoid": (lambda g, x: g.mul(g.unit(g.add(g.mul(x, 1 / 6), 0.5)), x), ["HARD_SWISH"]),
    "softplus": (lambda g, x: g.log(g.add(g.exp(x), 1)), ["SOFTPLUS"]),
    "mish": (lambda g, x: g.mul(x, g.tanh(g.log(g.add(1, g.exp(x))))), ["MISH"]),
    "inverse root": (lambda g, x: g.div(1, g.sqrt(g.add(g.square(x), 1))), ["SQUARE", "ADD", "RSQRT"]),
    "norm": (lambda g, x: g.div(x, g.sqrt(g.add(g.build(r.MEAN, g.square(x), [2], keep=1), 1e-5))),
             ["SQUARE", "MEAN", "ADD", "RSQRT", "MUL"]),
    "scaled softmax": (lambda g, x: g.build(norm.SOFTMAX, g.div(x, 4), beta=1.0, axis=2), ["SOFTMAX"])}
#: What is nearly one of these.
OTHERWISE: dict[str, Spelt] = {
    "another root": lambda g, x: g.mul(g.mul(x, g.add(g.erf(g.div(x, 1.414)), 1)), 0.5),
    "another half": lambda g, x: g.mul(g.mul(x, g.add(g.erf(g.div(x, ROOT)), 1)), 0.4),
    "another x": lambda g, x: g.mul(g.mul(x, g.add(g.erf(g.div(g.exp(x), ROOT)), 1)), 0.5),
    "another cube": lambda g, x: g.mul(g.mul(0.5, x), g.add(1, g.tanh(g.mul(TANH, g.add(
        x, g.mul(0.044, g.pow(x, 3))))))),
    "another width": lambda g, x: g.div(g.mul(x, g.relu6(g.add(x, 3))), 5),
    "a wider root": lambda g, x: g.div(x, g.sqrt(g.add(g.square(x), 1))),
    "log of two": lambda g, x: g.log(g.add(g.exp(x), 2)),
    "negative softmax": lambda g, x: g.build(norm.SOFTMAX, g.mul(x, -1), beta=1.0, axis=2)}


def layer(g: Spell, x: Value) -> Value:
    """x through five units, the bias added afterwards."""
    w = g.build.const(np.arange(25).reshape(5, 5) / 25, F32)
    return g.add(g.build(LINEAR, x, w, g.build.const(np.zeros(5), F32)), g.build.const([[[1, 2, 3, 4, 5]]], F32))


def scores(g: Spell, x: Value) -> Value:
    """What attention does before it scales."""
    q, k = (g.build(shape.TRANSPOSE, g.build(shape.RESHAPE, layer(g, x), (2, 3, 1, 5)), [0, 2, 1, 3]) for _ in "qk")
    return g.build(host.MATMUL, q, k, adj_x=False, adj_y=True)


#: A number times what comes of a layer; the operations that are left of it.
SCALED: dict[str, Spelt] = {
    "scores": lambda g, x: g.div(scores(g, x), 4), "queries": lambda g, x: g.mul(0.5, g.build(
        shape.TRANSPOSE, layer(g, x), [1, 0, 2]))}


@pytest.mark.parametrize("name", SCALED)
def test_a_factor_of_attention_is_its_layers(name: str) -> None:
    graph = made(SCALED[name])
    legal, _ = lower(graph, Target(), evaluate)
    assert not {"MUL", "DIV", "ADD"} & {n.op.name for n in legal.nodes}
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype(np.float32)
    np.testing.assert_allclose(run(legal, [x])[0], run(as_it_is(graph), [x])[0], rtol=1e-5, atol=1e-5)


def test_norms_are_named_in_the_trace() -> None:
    trace: list[Event] = []
    centred = lambda g, x: g.build(e.SUB, x, g.build(r.MEAN, x, [2], keep=1), act=0)  # noqa: E731
    for first, name in ((centred, "a layer norm"), (lambda g, x: x, "a root mean square norm")):
        trace.clear()

        def norm_(g: Spell, x: Value, first: Any = first) -> Value:
            d = first(g, x)
            return g.div(d, g.sqrt(g.add(g.build(r.MEAN, g.square(d), [2], keep=1), 1e-5)))
        patterns(made(norm_), Target(), trace)
        assert [ev.why for ev in trace if ev.did] == [name]


@pytest.mark.parametrize("name", SPELT)
def test_a_spelling_is_one_operation(name: str) -> None:
    spelt, want = SPELT[name]
    graph = made(spelt)
    found = passed(graph)
    assert names(found) == want
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype(np.float32)
    np.testing.assert_allclose(run(as_it_is(found), [x])[0], run(as_it_is(graph), [x])[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in SPELT if "gelu" in n or n.startswith(("tanh", "hard"))])
def test_halves_lose_more_of_a_constant(name: str) -> None:
    assert names(passed(made(SPELT[name][0], kind=F16))) == SPELT[name][1]


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_only_looks_like_it_is_left_alone(name: str) -> None:
    graph = made(OTHERWISE[name])
    assert names(passed(graph)) == names(graph)


@pytest.mark.parametrize("name", [n for n in SPELT if not n.startswith("inverse")])
def test_what_is_read_elsewhere_stays(name: str) -> None:
    graph = made(SPELT[name][0], twice=True)
    assert len(passed(graph).nodes) >= min(len(graph.nodes), 2)
    assert passed(graph).outputs[1:] == graph.outputs[1:]


def test_a_tflite_file_is_left_alone() -> None:
    graph = made(SPELT["gelu, torch"][0], "TFLite")
    assert patterns(graph, Target(), []) is graph
    assert names(passed(replace(graph, rim=Rim()))) == ["GELU"]
