"""One operator three ways: all inputs fed, the small ones constant, and these with sizes that only a run tells."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from one_node import Port, element, model
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import nnx_convert

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Node:
    """A node with its inputs (None: left out), how many outputs it has, and its answers where ONNX's reference
    evaluator is not to be asked."""

    op: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 25
    outputs: int = 1
    want: Sequence[Array] | None = None
    fixed: Sequence[int] | None = None           # the inputs that are constants; all but the first where None

    def __str__(self) -> str:
        shapes = " ".join("-" if v is None else f"{v.dtype}{list(v.shape)}" for v in self.inputs)
        rest = " ".join(f"{n}={v}" for n, v in self.attributes.items())
        return f"{self.op}-{self.opset} {shapes} {rest}"[:90]


def n(op: str, *inputs: Any, opset: int = 25, outputs: int = 1, want: Sequence[Any] | None = None,
      fixed: Sequence[int] | None = None, **attributes: Any) -> Node:
    """A case, short to write."""
    return Node(op, inputs, attributes, opset, outputs, want, fixed)


WAYS = ("fed", "fixed", "open")


def built(node: Node, way: str) -> tuple[ModelProto, dict[str, Array]]:
    """The model and what to feed it."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(node.inputs)]
    there = {f"x{i}": v for i, v in enumerate(node.inputs) if v is not None}
    chosen = range(1, len(names)) if node.fixed is None else node.fixed
    fixed = {f"x{i}" for i in chosen if f"x{i}" in there} if way != "fed" else set[str]()
    made = helper.make_node(node.op, names, [f"y{i}" for i in range(node.outputs)], **node.attributes)
    sizes = {name: [f"{name}_{i}" if way == "open" else size for i, size in enumerate(v.shape)]
             for name, v in there.items() if name not in fixed}
    inputs: list[Port] = [(name, element(there[name]), shape) for name, shape in sizes.items()]
    constants = [helper.make_tensor(name, element(there[name]), there[name].shape, there[name].reshape(-1).tolist())
                 for name in sorted(fixed)]
    answers = expected(node)
    outputs: list[Port] = [(f"y{i}", element(v), None) for i, v in enumerate(answers)]
    return (model([made], inputs, outputs, node.opset, initializer=constants),
            {name: v for name, v in there.items() if name not in fixed})


def expected(node: Node) -> list[Array]:
    """The answers."""
    if node.want is not None:
        return [np.asarray(v) for v in node.want]
    there = {f"x{i}": v for i, v in enumerate(node.inputs) if v is not None}
    names = ["" if v is None else f"x{i}" for i, v in enumerate(node.inputs)]
    made = helper.make_node(node.op, names, [f"y{i}" for i in range(node.outputs)], **node.attributes)
    inputs: list[Port] = [(name, element(v), v.shape) for name, v in there.items()]
    outputs: list[Port] = [(f"y{i}", 1, None) for i in range(node.outputs)]
    found = ReferenceEvaluator(model([made], inputs, outputs, node.opset)).run(None, there)
    return [np.asarray(v) for v in found]


def check(node: Node, way: str, rtol: float = 1e-5) -> None:
    """Run it, and compare."""
    node = replace(node, want=expected(node))
    made, fed = built(node, way)
    got = nnx_convert.compile(made.SerializeToString(), threads=1).run(list(fed.values()))
    for want, found in zip(expected(node), got, strict=True):
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        if found.dtype.kind in "fc":
            np.testing.assert_allclose(found, want, rtol=rtol, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, want)


def as_wanted(case: Node) -> Node:
    """The case with lists as answers in the type of the first input."""
    if case.want is None:
        return case
    return replace(case, want=[np.asarray(v, case.inputs[0].dtype) if isinstance(v, list) else v for v in case.want])
