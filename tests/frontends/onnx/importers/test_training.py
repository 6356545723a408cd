"""Steps of training against their formulas, of one tensor and of several."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_node import element
from onnx import ModelProto, helper

import nnx_convert
from nnx_convert.errors import FormatError

DOMAIN = "ai.onnx.preview.training"
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)


def adagrad(r: float, t: int, x: Array, g: Array, h: Array, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0) -> list[Array]:
    g = norm_coefficient * x + g
    h = h + g * g
    return [x - r / (1 + t * decay_factor) * g / (np.sqrt(h) + epsilon), h]


def adam(r: float, t: int, x: Array, g: Array, v: Array, h: Array, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> list[Array]:
    g = norm_coefficient * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    rate = r * np.sqrt(1 - beta ** t) / (1 - alpha ** t) if t else r
    return [(1 - norm_coefficient_post) * (x - rate * v / (np.sqrt(h) + epsilon)), v, h]


def momentum(r: float, t: int, x: Array, g: Array, v: Array, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> list[Array]:
    g = norm_coefficient * x + g
    v = alpha * v + (beta if t else 1) * g
    return [x - r * (g + alpha * v if mode == "nesterov" else v), v]


STEPS: dict[str, tuple[Any, int, list[dict[str, Any]]]] = {
    "Adagrad": (adagrad, 3, [{}, {"decay_factor": 0.1, "epsilon": 1e-3, "norm_coefficient": 0.01}]),
    "Adam": (adam, 4, [{}, {"alpha": 0.95, "beta": 0.85, "epsilon": 1e-2, "norm_coefficient": 0.001,
                            "norm_coefficient_post": 0.25}]),
    "Momentum": (momentum, 3, [{"alpha": 0.95, "beta": 0.1, "mode": m, "norm_coefficient": c}
                               for m in ("standard", "nesterov") for c in (0.0, 0.001)])}
CASES = [(op, i) for op, (_, _, all_) in STEPS.items() for i in range(len(all_))]


def made(op: str, inputs: list[Array], count: int, way: str = "fixed", **attributes: Any) -> ModelProto:
    """A model of one step; of an open way, the first axis of each tensor."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, [f"y{i}" for i in range(count)], domain=DOMAIN, **attributes)
    sizes = [[f"n{v.ndim}", *v.shape[1:]] if way == "open" and v.ndim else v.shape for v in inputs]
    graph = helper.make_graph([node], "graph", [helper.make_tensor_value_info(n, element(v), s) for n, v, s in
                                                zip(names, inputs, sizes, strict=True)],
                              [helper.make_empty_tensor_value_info(n) for n in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=8)


def group(size: int, kind: Any, *shape: int) -> list[Array]:
    """A tensor, its gradient and a state that is positive."""
    found = [RNG.normal(size=shape).astype(kind) for _ in range(size)]
    return [*found[:2], *(abs(v) for v in found[2:])]


@pytest.mark.parametrize("way", ["fixed", "open"])
@pytest.mark.parametrize("updates", [0, 1, 7])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "which"), CASES)
def test_a_step(op: str, which: int, kind: Any, updates: int, way: str) -> None:
    formula, size, all_ = STEPS[op]
    attributes, rate = all_[which], np.array(0.1, kind)
    groups = [group(size, kind, 4), group(size, kind, 3, 2)]
    inputs = [rate, np.array(updates), *(v for place in zip(*groups, strict=True) for v in place)]
    got = nnx_convert.compile(made(op, inputs, 2 * (size - 1), way, **attributes).SerializeToString()).run(inputs)
    wide = [formula(0.1, updates, *(v.astype(float) for v in g), **attributes) for g in groups]
    for found, want in zip(got, [v for place in zip(*wide, strict=True) for v in place], strict=True):
        assert (found.dtype, found.shape) == (np.dtype(kind), want.shape)
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-5)


def test_a_rate_of_another_precision() -> None:
    inputs = [np.array(0.5, np.float64), np.array(0), *group(3, np.float32, 4)]
    got = nnx_convert.compile(made("Adagrad", inputs, 2).SerializeToString()).run(inputs)
    assert [v.dtype for v in got] == [np.float32] * 2


X = np.ones(4, np.float32)
RATE, COUNT = np.array(0.1, np.float32), np.array(1)
MOMENTUM: dict[str, Any] = {"alpha": 0.9, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.0}


@pytest.mark.parametrize(("op", "tensors", "attributes", "why"), [
    ("Adagrad", [X, X], {}, "2 tensors in groups of 3"), ("Adam", [X] * 3, {}, "groups of 4"), ("Adagrad", [], {}, "0"),
    ("Adagrad", [X, X, X.astype(float)], {}, "several types"), ("Adagrad", [X, X, X[None]], {}, "ranks"),
    ("Adagrad", [X, X[:3], X], {}, "broadcast"), ("Momentum", [X] * 3, MOMENTUM | {"mode": "none"}, "none"),
    ("Momentum", [X] * 3, {"mode": "standard"}, "lacks the attribute")])
def test_what_is_no_step_is_refused(op: str, tensors: list[Array], attributes: dict[str, Any], why: str) -> None:
    model = made(op, [RATE, COUNT, *tensors], 2, **attributes)
    with pytest.raises(FormatError, match=why):
        nnx_convert.compile(model.SerializeToString())
