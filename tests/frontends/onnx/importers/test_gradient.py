"""Gradients against differences, through what works element by element; what else is refused by name."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_node import Port, element
from onnx import ModelProto, NodeProto, TensorProto, helper

import nnx_convert
from nnx_convert.errors import FormatError, Unsupported

DOMAIN = "ai.onnx.preview.training"
A = np.array([[0.5, 1.5, 2.5], [3.5, 0.25, 1.25]])
B, S = np.array([2.0, 0.75, 1.5]), np.array(0.7)
node = helper.make_node
Array = np.ndarray[Any, Any]

#: From a [2, 3], b [3] and s [] to y.
GRAPHS: dict[str, list[NodeProto]] = {
    "a sum": [node("Add", ["a", "b"], ["y"])],
    "a product of itself": [node("Mul", ["a", "a"], ["t"]), node("Mul", ["t", "a"], ["y"])],
    "differences and quotients": [node("Sub", ["a", "b"], ["t"]), node("Div", ["t", "b"], ["u"]),
                                  node("Div", ["s", "a"], ["v"]), node("Sub", ["u", "v"], ["y"])],
    "functions": [node("Exp", ["a"], ["t"]), node("Log", ["t"], ["u"]), node("Sqrt", ["b"], ["v"]),
                  node("Tanh", ["v"], ["w"]), node("Sigmoid", ["s"], ["z"]), node("Sum", ["u", "w", "z"], ["y"])],
    "a negative": [node("Neg", ["a"], ["t"]), node("Mul", ["t", "b"], ["y"])],
    "a square": [node("Pow", ["a", "two"], ["t"]), node("Mul", ["t", "s"], ["y"])],
    "two ways": [node("Mul", ["a", "b"], ["t"]), node("Add", ["t", "a"], ["u"]), node("Mul", ["u", "t"], ["y"])],
    "another shape": [node("Reshape", ["a", "shape"], ["t"]), node("Mul", ["t", "s"], ["u"]),
                      node("Mul", ["u", "t"], ["y"])],
    "without a": [node("Mul", ["b", "s"], ["y"])]}


def made(nodes: list[NodeProto], xs: list[str], way: str = "fixed", kind: Any = np.float64,
         **changes: Any) -> ModelProto:
    """A graph and the gradient of its y."""
    inputs = {"a": A.astype(kind), "b": B.astype(kind), "s": S.astype(kind)}
    attributes = {"xs": xs, "y": "y"} | {k: v for k, v in changes.items() if k != "given"}
    last = node("Gradient", changes.get("given", xs), [f"d{x}" for x in xs], domain=DOMAIN, **attributes)
    ports: list[Port] = [(n, element(v), ["n", *v.shape[1:]] if way == "open" and n == "a" else v.shape)
                         for n, v in inputs.items()]
    graph = helper.make_graph(
        [*nodes, last], "graph", [helper.make_tensor_value_info(*p) for p in ports],
        [helper.make_empty_tensor_value_info(n) for n in ("y", *last.output)],
        [helper.make_tensor("two", element(inputs["a"]), (), [2.0]),
         helper.make_tensor("shape", TensorProto.INT64, (2,), [3, -1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)],
                             ir_version=8)


def differences(run: Any, inputs: list[Array]) -> list[Array]:
    """The derivatives of the sum of y by each element."""
    found = []
    for i, x in enumerate(inputs):
        slope = np.zeros(x.size)
        for j in range(x.size):
            ends = [[v.copy() for v in inputs] for _ in range(2)]
            for e, step in zip(ends, (1e-5, -1e-5), strict=True):
                e[i].reshape(-1)[j] += step
            slope[j] = (run(ends[0])[0].sum() - run(ends[1])[0].sum()) / 2e-5
        found.append(slope.reshape(x.shape))
    return found


@pytest.mark.parametrize("way", ["fixed", "open"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_gradient_is_the_limit_of_differences(name: str, way: str) -> None:
    ready = nnx_convert.compile(made(GRAPHS[name], ["a", "b", "s"], way).SerializeToString(), threads=1)
    got = ready.run([A, B, S])
    for found, want in zip(got[1:], differences(ready.run, [A, B, S]), strict=True):
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def test_in_the_middle_of_a_graph_nothing_before_counts() -> None:
    nodes = [node("Softmax", ["a"], ["t"]), node("Mul", ["t", "b"], ["y"])]
    y, dt = nnx_convert.compile(made(nodes, ["t"]).SerializeToString()).run([A, B, S])
    np.testing.assert_allclose(dt, np.broadcast_to(B, y.shape))


def test_floats_stay_floats() -> None:
    given = [v.astype(np.float32) for v in (A, B, S)]
    got = nnx_convert.compile(made(GRAPHS["two ways"], ["b"], kind=np.float32).SerializeToString()).run(given)
    assert got[1].dtype == np.float32


@pytest.mark.parametrize(("nodes", "changes", "kind", "why"), [
    ([node("Softmax", ["a"], ["y"])], {}, Unsupported, "differentiates Softmax"),
    (GRAPHS["a sum"], {"given": ["b"]}, Unsupported, "other values"),
    (GRAPHS["a sum"], {"given": ["a", "b"]}, FormatError, "2 inputs for 1 names"),
    (GRAPHS["a sum"], {"y": "none"}, FormatError, "nothing before it defines"),
    (GRAPHS["a sum"], {"y": "shape"}, FormatError, "neither float nor double")])
def test_what_is_not_differentiated(nodes: list[NodeProto], changes: dict[str, Any], kind: Any, why: str) -> None:
    with pytest.raises(kind, match=why):
        nnx_convert.compile(made(nodes, ["a"], **changes).SerializeToString())
