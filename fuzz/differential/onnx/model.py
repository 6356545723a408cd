"""A random ONNX model from a seed."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from ..draw import Array, Draw
from .growing import Growing, type_code

VERSIONS = tuple(range(7, 22))
Tensors = Mapping[str, Array]


@dataclass(frozen=True)
class Onnx:
    """A model with inputs for it. `dtypes` are those of all its tensors; `open`: inputs say no sizes."""

    version: int
    nodes: Sequence[NodeProto]
    constants: Tensors
    dtypes: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    given: Tensors
    open: bool = False
    form: str = "onnx"

    @cached_property
    def data(self) -> bytes:
        """The file."""
        used = {n for node in self.nodes for n in read(node)}
        graph = helper.make_graph(
            self.nodes, "random", [self._info(n, self.given[n].shape) for n in self.inputs],
            [self._info(n, None) for n in self.outputs],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in used])
        opsets = [helper.make_opsetid("", self.version)]
        if any(n.domain for n in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        found: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        return found

    def _info(self, name: str, shape: tuple[int, ...] | None) -> Any:
        sizes = None if shape is None else [f"{name}_{i}" for i in range(len(shape))] if self.open else shape
        return helper.make_tensor_value_info(name, type_code(self.dtypes[name]), sizes)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators' names in order."""
        return tuple(n.op_type for n in self.nodes)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the last node."""
        return {a.name: helper.get_attribute_value(a) for a in self.nodes[-1].attribute}

    def __str__(self) -> str:
        def said(name: str) -> str:
            a = self.constants.get(name, self.given.get(name))
            return name or "none" if a is None else f"{name}:{a.dtype}{list(a.shape)}={a.ravel()[:4].tolist()}"
        return f"opset {self.version}{', open sizes' if self.open else ''}\n" + "\n".join(
            f"{n.op_type}({', '.join(map(said, n.input))}) -> {', '.join(n.output)} " + str(
                {a.name: helper.get_attribute_value(a) for a in n.attribute if not a.HasField('g')})
            for n in self.nodes)

    def parts(self) -> list[Onnx]:
        """Each node as a model of its own; what they are given is not there yet."""
        return [self._part(n) for n in self.nodes if any(o in self.dtypes for o in n.output)]

    def _part(self, node: NodeProto) -> Onnx:
        """A node, behind those that give it lists."""
        lists = [n for n in self.nodes for o in n.output if o not in self.dtypes and o in node.input]
        inputs = dict.fromkeys(i for n in (*lists, node) for i in read(n) if i in self.dtypes and
                               i not in self.constants)
        return replace(self, nodes=[*lists, node], given={}, open=False, inputs=tuple(inputs),
                       outputs=tuple(o for o in node.output if o))

    def fed(self, given: Tensors) -> Onnx:
        """The same with other values for its inputs."""
        return replace(self, given=given)

    def changed(self, change: Callable[[Array], Array]) -> Onnx:
        """The same with other values for its inputs and constants of single precision."""
        constants = {n: change(a) if a.dtype == np.float32 else a for n, a in self.constants.items()}
        return replace(self, constants=constants, given={n: change(a) for n, a in self.given.items()})


def read(node: NodeProto) -> Iterator[str]:
    """The names a node reads, those that its bodies take from around them included."""
    yield from node.input
    for a in node.attribute:
        if a.HasField("g"):
            yield from _outer(a.g)


def _outer(graph: GraphProto) -> Iterator[str]:
    own = {i.name for i in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
    for node in graph.node:
        yield from (n for n in read(node) if n not in own)
    yield from (o.name for o in graph.output if o.name not in own)


def model(seed: int) -> Onnx:
    """The model of a seed: one to three inputs, up to twelve nodes, all that nothing reads as outputs."""
    draw = Draw(seed)
    m = Growing(draw, draw.one(VERSIONS))
    rank = draw.one([4, 4, 3, 5, None, None])
    for _ in range(draw.one([1, 1, 2, 2, 3])):
        m.input(draw.shape(rank))
    if draw.chance(0.4):
        m.input(draw.shape(), draw.one(["float32", "int32", "int64", "int64", "bool", "uint8", "int8"]))
    if draw.chance(0.02):
        m.input(tuple(0 if draw.chance(0.3) else n for n in draw.shape(draw.between(1, 4))))
    while not m.nodes:
        m.grow(draw.one([1, 1, 2, 3, 3, 4, 5, 6, 8, 10, 12]))
    used = {n for node in m.nodes for n in read(node)}
    made = [o for node in m.nodes for o in node.output if o]
    outputs = tuple(o for o in made if o in m.dtypes and (o not in used or draw.chance(0.1)))
    given = {n: a for n, a in m.given.items() if n in used}
    return Onnx(m.version, m.nodes, m.constants, m.dtypes, tuple(given), outputs, given, draw.chance(0.1))
