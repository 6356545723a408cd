"""ONNX models of a few nodes, made, converted and run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper

import nnx_convert
from nnx_convert.model import Model

#: An input or an output: its name, element type and shape; or its name and type.
Port = tuple[str, int, Sequence[int | str | None] | None] | tuple[str, TypeProto]


def port(p: Port) -> onnx.ValueInfoProto:
    """The message."""
    if len(p) == 2:
        return helper.make_value_info(p[0], p[1])
    return helper.make_tensor_value_info(*p)


def model(nodes: Sequence[NodeProto], inputs: Sequence[Port], outputs: Sequence[Port], opset: int = 28,
          **more: Any) -> ModelProto:
    """A model of these nodes."""
    graph = helper.make_graph(nodes, "graph", list(map(port, inputs)), list(map(port, outputs)), **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)


def converted(made: ModelProto) -> Model:
    """The model for the default target."""
    return nnx_convert.convert(made.SerializeToString())


def run(made: ModelProto, *inputs: Any) -> list[Any]:
    """Its outputs."""
    return list(nnx_convert.compile(converted(made)).run(list(inputs)))


def element(array: np.ndarray[Any, Any]) -> int:
    """ONNX's number of an array's type."""
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))
