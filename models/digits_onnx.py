"""A trained `digits_network` as an ONNX file (opset 17): "image" [1, 1, 8, 8] to "probabilities" [1, 10]."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from digits_network import Array, Layer, Network
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8
INPUT_SHAPE: tuple[int, ...] = (1, 1, 8, 8)


def write(network: Network, parameters: Mapping[str, Array], description: str) -> bytes:
    """The file's bytes; images are NCHW, so weights and the rows of the first dense layer are reordered."""
    nodes, weights, x, shape = [], [], "image", INPUT_SHAPE
    for layer in network:
        if layer.kind == "dense" and len(shape) == 4:
            nodes.append(helper.make_node("Flatten", [x], ["flat"], name="flat"))
            x = "flat"
        operands = [x]
        if layer.weight_shape:
            weight = _reordered(layer, parameters[f"{layer.name}.weight"], shape)
            weights += [numpy_helper.from_array(np.ascontiguousarray(weight), f"{layer.name}.weight"),
                        numpy_helper.from_array(parameters[f"{layer.name}.bias"], f"{layer.name}.bias")]
            operands += [f"{layer.name}.weight", f"{layer.name}.bias"]
        x = f"{layer.name}.linear" if layer.relu and layer.weight_shape else layer.name
        nodes.append(_node(layer, operands, x))
        if x != layer.name:
            nodes.append(helper.make_node("Relu", [x], [layer.name], name=f"{layer.name}.relu"))
            x = layer.name
        shape = _output_shape(layer, shape)
    nodes.append(helper.make_node("Softmax", [x], ["probabilities"], name="probabilities", axis=-1))
    graph = helper.make_graph(
        nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, INPUT_SHAPE)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape)], weights, doc_string=description)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                              producer_name="nnx_convert/models")
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def _output_shape(layer: Layer, shape: tuple[int, ...]) -> tuple[int, ...]:
    if layer.kind == "pool":
        return (*shape[:2], shape[2] // 2, shape[3] // 2)
    return (shape[0], layer.outputs, *(() if layer.kind == "dense" else shape[2:]))


def _reordered(layer: Layer, weight: Array, shape: tuple[int, ...]) -> Array:
    """OHWI to OIHW, the depthwise [1, K, K, C] to [C, 1, K, K], dense columns from (h, w, c) to (c, h, w) order."""
    if layer.kind == "conv":
        return weight.transpose(0, 3, 1, 2)
    if layer.kind == "depthwise":
        return weight.transpose(3, 0, 1, 2)
    if len(shape) == 2:
        return weight
    _, channels, height, width = shape
    return weight.reshape(-1, height, width, channels).transpose(0, 3, 1, 2).reshape(len(weight), -1)


def _node(layer: Layer, operands: list[str], output: str) -> onnx.NodeProto:
    match layer.kind:
        case "pool":
            return helper.make_node("MaxPool", operands, [output], name=layer.name, kernel_shape=[2, 2], strides=[2, 2])
        case "dense":
            return helper.make_node("Gemm", operands, [output], name=layer.name, transB=1)
        case _:
            return helper.make_node(
                "Conv", operands, [output], name=layer.name, kernel_shape=[layer.side] * 2,
                pads=[layer.side // 2] * 4, group=layer.outputs if layer.kind == "depthwise" else 1)
