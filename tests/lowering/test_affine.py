"""Factors, terms and padding around products of constant weights: gone, and the answer is the same."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Graph, Value
from nnx_convert.lowering import pipeline
from nnx_convert.lowering.affine import AFFINE
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.lowering.rewrite import prune
from nnx_convert.ops import conv, elementwise as e, shape
from nnx_convert.ops.linear import LINEAR
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import F32, Port, Rim, Tensor

IMAGE = (2, 4, 6, 5)
R = np.random.default_rng(11)
Made = Callable[[Build, Value], Value]
PADS = {"pl": 1, "pr": 0, "pt": 0, "pb": 1}
STEPS = {"sw": 1, "sh": 2, "act": 0, "nchw": True}


def const(g: Build, *shape_: int) -> Value:
    """Numbers drawn."""
    return g.const(R.normal(size=shape_), F32)


def plain(g: Build, x: Value) -> Value:
    return g(conv.CONV_2D, x, const(g, 6, 3, 2, 4), const(g, 6), **PADS, **STEPS)


def moved(g: Build, x: Value) -> Value:
    w = g(shape.TRANSPOSE, const(g, 6, 4, 3, 2), [0, 2, 3, 1])
    return g(conv.CONV_2D, x, w, const(g, 6), **PADS, **STEPS)


def depthwise(g: Build, x: Value) -> Value:
    return g(conv.DEPTHWISE_CONV_2D, x, const(g, 1, 3, 2, 8), const(g, 8), mult=2, **PADS, **STEPS)


def grouped(g: Build, x: Value) -> Value:
    return g(conv.GROUPED_CONV_2D, x, const(g, 6, 3, 2, 2), const(g, 6), groups=2, **PADS, **STEPS)


def scattered(g: Build, x: Value) -> Value:
    return g(conv.TRANSPOSE_CONV_2D, x, const(g, 6, 3, 2, 4), const(g, 6), **PADS, **STEPS)


def rows(g: Build, x: Value) -> Value:
    return g(LINEAR, x, const(g, 7, 5), const(g, 7), flat=1, act=0)


def channels(g: Build, y: Value, last: bool = False) -> Value:
    """A number for each channel, none of them zero."""
    axis = len(y.shape) - 1 if last else 1
    return g.const(R.uniform(0.5, 2, [n if i == axis else 1 for i, n in enumerate(y.shape)]), F32)


def after(make: Made, last: bool = False) -> Made:
    """A batch normalisation, a quotient and a difference after a product, then an activation."""
    def built(g: Build, x: Value) -> Value:
        y = make(g, x)
        y = g(e.ADD, g(e.MUL, y, channels(g, y, last), act=0), channels(g, y, last), act=0)
        y = g(e.DIV, g(e.MUL, channels(g, y, last), y, act=0), channels(g, y, last), act=0)
        return g(e.SUB, y, g.const(np.full((1,) * len(y.shape), 0.5), F32), act=1)
    return built


def row(g: Build, x: Value) -> Value:
    """A row of cells as an image of height 1, and back before the factor."""
    flat = g(shape.RESHAPE, x, [2, 4, 1, 30])
    y = g(conv.CONV_2D, flat, const(g, 6, 1, 3, 4), const(g, 6), pl=0, pr=0, pt=0, pb=0, **STEPS)
    y = g(shape.RESHAPE, y, [2, 6, 28])
    return g(e.MUL, y, channels(g, y), act=0)


def padded(g: Build, x: Value) -> Value:
    return plain(g, g(shape.PAD, x, [[0, 0], [0, 0], [1, 2], [0, 1]]))


def channels_last(op: Any, *pads: list[int], **more: Any) -> Made:
    """Padding, then a convolution of a scheme over [2, 4, 6, 5]."""
    def built(g: Build, x: Value) -> Value:
        w = (1, 3, 2, 5) if op is conv.DEPTHWISE_CONV_2D else (6, 3, 2, 5)
        return g(op, g(shape.PAD, x, pads), const(g, *w), const(g, w[0] if w[0] > 1 else 5), sw=1, sh=2, act=0, **more)
    return built


AROUND = ([0, 0], [1, 2], [0, 1], [0, 0])
FOLDED: dict[str, tuple[Made, list[str]]] = {
    "conv": (after(plain), ["CONV_2D"]), "moved weights": (after(moved), ["CONV_2D"]),
    "depthwise": (after(depthwise), ["DEPTHWISE_CONV_2D"]), "grouped": (after(grouped), ["GROUPED_CONV_2D"]),
    "scattered": (after(scattered), ["TRANSPOSE_CONV_2D"]), "rows": (after(rows, True), ["LINEAR"]),
    "row": (row, ["RESHAPE", "CONV_2D", "RESHAPE"]), "padded": (padded, ["CONV_2D"]),
    "padded, channels last": (channels_last(conv.CONV_2D, *AROUND, scheme=2), ["CONV_2D"]),
    "padded twice": (channels_last(conv.DEPTHWISE_CONV_2D, *AROUND, mult=1, **PADS), ["DEPTHWISE_CONV_2D"])}


def twice(g: Build, x: Value) -> Value:
    """What something else reads as well stays."""
    y = plain(g, x)
    return g(e.ADD, g(e.MUL, y, channels(g, y), act=0), y, act=0)


def kept(op: Any, *numbers: Any) -> Made:
    """A product and an operation with numbers that it does not take."""
    def built(g: Build, x: Value) -> Value:
        y = plain(g, x)
        return g(op, y, g.const(np.broadcast_to(np.asarray(numbers, float), (1, 1, 1, y.shape[3])), F32), act=0)
    return built


def clipped(g: Build, x: Value) -> Value:
    y = g(conv.CONV_2D, x, const(g, 6, 3, 2, 4), const(g, 6), **PADS, **STEPS | {"act": 1})
    return g(e.MUL, y, channels(g, y), act=0)


def stretched(g: Build, x: Value) -> Value:
    return plain(g, g(shape.PAD_V2, x, [[0, 0], [0, 0], [1, 2], [0, 1]], value=1.0))


def by_zero(g: Build, x: Value) -> Value:
    y = plain(g, x)
    return g(e.DIV, y, g.const(np.zeros((1, 6, 1, 1)), F32), act=0)


def computed(g: Build, x: Value) -> Value:
    w = g(shape.RESHAPE, x, [6, 4, 2, 5])
    return g(e.MUL, g(conv.CONV_2D, x, g(shape.TRANSPOSE, w, [0, 2, 3, 1]), const(g, 6), **PADS, **STEPS),
             g.const(np.ones((1, 6, 1, 1)), F32), act=0)


KEPT: dict[str, tuple[Made, list[str]]] = {
    "read twice": (twice, ["CONV_2D", "MUL", "ADD"]),
    "along another axis": (kept(e.ADD, 1, 2, 3, 4, 5), ["CONV_2D", "ADD"]),
    "after an activation": (clipped, ["CONV_2D", "MUL"]), "padded with ones": (stretched, ["PAD_V2", "CONV_2D"]),
    "padded to the stride": (channels_last(conv.CONV_2D, *AROUND, scheme=1), ["PAD", "CONV_2D"]),
    "other images": (channels_last(conv.CONV_2D, [0, 1], *AROUND[1:], scheme=2), ["PAD", "CONV_2D"]),
    "divided by zero": (by_zero, ["CONV_2D", "DIV"]),
    "computed weights": (computed, ["RESHAPE", "TRANSPOSE", "CONV_2D", "MUL"])}


def graph_of(make: Made) -> Graph:
    """The graph from an image to what is made of it."""
    g = Build("g")
    x = Value("x", Tensor(F32, IMAGE))
    y = make(g, x)
    return g.finish((x,), (y,), Rim((Port("x", "float32", IMAGE),), (Port("y", "float32", y.shape),)))


def run(graph: Graph, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The output on the default target."""
    return CompiledModel(flatten(lower(graph, Target(), evaluate)[0]), threads=1).run([x])[0]


def names(graph: Graph) -> Sequence[str]:
    """The operations after the pass, those on constants left out."""
    done = prune(AFFINE(graph, Target(), []), Target(), [])
    return [n.op.name for n in done.nodes if any(not v.constant for v in n.inputs)]


@pytest.mark.parametrize("name", FOLDED)
def test_gone_and_the_same(name: str) -> None:
    graph = graph_of(FOLDED[name][0])
    assert names(graph) == FOLDED[name][1]
    x = R.normal(size=IMAGE).astype(np.float32)
    want = run(graph, x)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(pipeline, "AFFINE", lambda graph, target, trace: graph)
        np.testing.assert_allclose(run(graph, x), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", KEPT)
def test_what_stays(name: str) -> None:
    assert names(graph_of(KEPT[name][0])) == KEPT[name][1]
