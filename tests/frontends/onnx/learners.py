"""One operator of ai.onnx.ml, its rows of a fixed number and of an open one."""
from __future__ import annotations

from typing import Any

import numpy as np
from one_node import Port, element
from onnx import ModelProto, helper

import nnx_convert

ML = "ai.onnx.ml"
Array = np.ndarray[Any, Any]
WAYS = ("fixed", "open")
#: What is done to scores at last, in NumPy.
TRANSFORMS: dict[str, Any] = {
    "NONE": lambda x: x, "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "SOFTMAX": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "SOFTMAX_ZERO": lambda x: np.where(x == 0, 0, np.exp(x)) / np.where(x == 0, 0, np.exp(x)).sum(-1, keepdims=True)}


def texts(*values: Any) -> Array:
    """Texts as ONNX's strings are in NumPy."""
    return np.array(values, object)


def made(op: str, inputs: list[Array], outputs: int = 1, way: str = "fixed", version: int = 3,
         domain: str = ML, **attributes: Any) -> ModelProto:
    """A model of one node."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain,
                            **{k: v for k, v in attributes.items() if v is not None})
    shapes = [["n", *v.shape[1:]] if way == "open" and i == 0 and v.ndim else v.shape for i, v in enumerate(inputs)]
    ports: list[Port] = [(n, element(v), s) for n, v, s in zip(names, inputs, shapes, strict=True)]
    graph = helper.make_graph([node], "graph", [helper.make_tensor_value_info(*p) for p in ports],
                              [helper.make_empty_tensor_value_info(n) for n in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, version)],
                             ir_version=8)


def answers(op: str, *inputs: Any, **more: Any) -> list[Any]:
    """What the operator gives, in the order of its outputs."""
    given = [np.asarray(v) for v in inputs]
    return list(nnx_convert.compile(made(op, given, **more).SerializeToString()).run(given))
