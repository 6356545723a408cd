"""Small networks of the kinds that are deployed: a transpose for each image that comes in or goes out, no more."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

from nnx_convert import CompiledModel, Model, Target, convert

Array = np.ndarray[Any, Any]
SIZE = 16


@dataclass
class Net:
    """An ONNX model in the making. A value is its name."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    channels: dict[str, int] = field(default_factory=lambda: {"x": 3})
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __call__(self, op: str, *inputs: str, channels: int = 0, **attributes: Any) -> str:
        """Add an operator; give its output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, inputs, [name], **attributes))
        self.channels[name] = channels or self.channels.get(inputs[0], 0)
        return name

    def const(self, array: Any) -> str:
        """Add a constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def random(self, *shape: int) -> str:
        """Weights."""
        return self.const((self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def conv(self, x: str, units: int, k: int = 3, s: int = 1, groups: int = 1) -> str:
        """Convolution, batch normalisation."""
        depth = self.channels[x] // groups
        y = self("Conv", x, self.random(units, depth, k, k), channels=units, strides=[s, s], group=groups,
                 pads=[k // 2] * 4)
        ones = np.linspace(0.5, 1.5, units, dtype=np.float32)
        return self("BatchNormalization", y, *(self.const(v) for v in (ones, ones - 1, ones * 0, ones)))

    def block(self, x: str, units: int, s: int = 1) -> str:
        """A depthwise convolution, then one of single pixels."""
        y = self("Relu", self.conv(x, self.channels[x], s=s, groups=self.channels[x]))
        return self("Relu", self.conv(y, units, k=1))

    def made(self, *outputs: str, batch: int | str = 1, channels: int = 3) -> onnx.ModelProto:
        """The model; the types of outputs follow from it."""
        x = h.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, SIZE, SIZE])
        whole = {n.output[0] for n in self.nodes if n.op_type == "ArgMax"}
        empty = [h.make_tensor_value_info(name, TensorProto.INT64 if name in whole else TensorProto.FLOAT, None)
                 for name in outputs]
        return h.make_model(h.make_graph(self.nodes, "net", [x], empty, self.weights), ir_version=9,
                            opset_imports=[h.make_opsetid("", 17)])


def mobilenet(n: Net) -> Sequence[str]:
    """Inverted residuals with squeeze and excitation, pooled, multiplied."""
    x = n("HardSwish", n.conv("x", 8, s=2))
    for _ in range(2):
        y = n("HardSwish", n.conv(n("HardSwish", n.conv(x, 16, k=1)), 16, groups=16))
        gate = n("GlobalAveragePool", y)
        gate = n("Relu", n("Conv", gate, n.random(4, 16, 1, 1), n.random(4), channels=4))
        gate = n("HardSigmoid", n("Conv", gate, n.random(16, 4, 1, 1), n.random(16), channels=16))
        x = n("Add", x, n.conv(n("Mul", y, gate), 8, k=1))
    y = n("Flatten", n("GlobalAveragePool", x), axis=1)
    return [n("Gemm", y, n.random(10, 8), n.random(10), transB=1)]


def residual(n: Net) -> Sequence[str]:
    """A stem, residual blocks, a tail that flattens an image."""
    x = n("MaxPool", n("Relu", n.conv("x", 8, k=7, s=2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = n("Relu", n("Add", n.conv(n("Relu", n.conv(x, 8)), 8), x))
    x = n("Relu", n("Add", n.conv(n("Relu", n.conv(x, 12, s=2)), 12), n.conv(x, 12, k=1, s=2)))
    y = n("Reshape", x, n.const(np.array([0, -1])))
    return [n("Softmax", n("MatMul", y, n.random(12 * 2 * 2, 5)), axis=-1)]


def faces(n: Net) -> Sequence[str]:
    """Heads at two scales, each turned, reshaped, joined: scores and boxes of anchors."""
    a = n.block(n("Relu", n.conv("x", 8, s=2)), 12)
    b = n.block(a, 16, s=2)
    scores, boxes = list[str](), list[str]()
    for x, anchors in ((a, 3), (b, 2)):
        for found, width in ((scores, 2), (boxes, 4)):
            y = n("Conv", x, n.random(anchors * width, n.channels[x], 3, 3), pads=[1, 1, 1, 1])
            y = n("Transpose", y, perm=[0, 2, 3, 1])
            found.append(n("Reshape", y, n.const(np.array([1, -1, width]))))
    places = n("Mul", n("Concat", *boxes, axis=1), n.const(np.float32(0.1)))
    return [n("Softmax", n("Concat", *scores, axis=1), axis=2), places]


def cells(n: Net) -> Sequence[str]:
    """Heads of cells, reshaped with the channels first, joined, turned last."""
    a = n("Mul", y := n.conv("x", 8, s=2), n("Sigmoid", y))
    b = n.conv(a, 8, s=2)
    up = n("Concat", n("Resize", b, "", n.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                       coordinate_transformation_mode="asymmetric", nearest_mode="floor"), a, axis=1, channels=16)
    found = list[str]()
    for x, cells_ in ((up, 64), (b, 16)):
        y = n("Concat", n.conv(x, 4, k=1), n("Sigmoid", n.conv(x, 3, k=1)), axis=1)
        found.append(n("Reshape", y, n.const(np.array([1, 7, cells_]))))
    return [n("Transpose", n("Concat", *found, axis=2), perm=[0, 2, 1])]


def shuffled(n: Net) -> Sequence[str]:
    """Channels split, shuffled and joined."""
    x = n("Relu", n.conv("x", 8))
    for _ in range(2):
        w = n.const(np.array([4, 4]))
        n.nodes.append(h.make_node("Split", [x, w], [f"{x}a", f"{x}b"], axis=1))
        n.channels |= {f"{x}a": 4, f"{x}b": 4}
        y = n("Concat", f"{x}a", n.block(f"{x}b", 4), axis=1, channels=8)
        y = n("Reshape", y, n.const(np.array([1, 2, 4, SIZE, SIZE])))
        y = n("Transpose", y, perm=[0, 2, 1, 3, 4])
        x = n("Reshape", y, n.const(np.array([1, 8, SIZE, SIZE])), channels=8)
    return [n("ReduceMean", x, axes=[2, 3], keepdims=0)]


def segments(n: Net) -> Sequence[str]:
    """Down and up again, an image of classes."""
    a = n("Relu", n.conv("x", 6))
    b = n("Relu", n.conv(n("AveragePool", a, kernel_shape=[2, 2], strides=[2, 2]), 8))
    n("ConvTranspose", b, n.random(8, 6, 2, 2), strides=[2, 2], channels=6)
    up = n("Concat", a, list(n.channels)[-1], axis=1, channels=12)
    g = n("Reshape", n("InstanceNormalization", n("Reshape", up, n.const(np.array([0, 4, -1]))),
                       n.const(np.ones(4, np.float32)), n.const(np.zeros(4, np.float32)), epsilon=1e-5),
          n("Shape", up), channels=12)
    y = n("LeakyRelu", n("PRelu", g, n.random(12, 1, 1)), alpha=0.1)
    return [n("Softmax", n.conv(y, 5, k=1), axis=1), n("ArgMax", n.conv(y, 5, k=1), axis=1, keepdims=0)]


def enlarged(n: Net) -> Sequence[str]:
    """An image made larger, pixels out of channels."""
    x = n("Tanh", n.conv("x", 8, k=5))
    return [n("DepthToSpace", n.conv(x, 12), blocksize=2, mode="CRD")]


def sounds(n: Net) -> Sequence[str]:
    """Convolutions over time, each with an activation."""
    x = n("Reshape", "x", n.const(np.array([0, 3, SIZE * SIZE])))
    for units in (4, 6):
        x = n("Relu", n("Conv", x, n.random(units, n.channels[x], 5), n.random(units), channels=units, strides=[2]))
    return [n("ReduceMax", x, axes=[2], keepdims=0)]


def test_one_axis_of_space_is_two_throughout() -> None:
    net = Net()
    proto = net.made(*sounds(net), batch="n")
    model = convert(proto.SerializeToString())
    found = [o.op.name for o in model.operations]
    assert len(found) <= 6 and [n for n in found if n != "RESHAPE"][:3] == ["TRANSPOSE", "CONV_2D", "CONV_2D"], found
    agree(proto, model, np.random.default_rng(1).standard_normal((2, 3, SIZE, SIZE)).astype(np.float32))


#: A network, and the images that come in and go out.
NETS: dict[str, tuple[Callable[[Net], Sequence[str]], int]] = {
    "mobilenet": (mobilenet, 1), "residual": (residual, 1), "faces": (faces, 1), "cells": (cells, 1),
    "shuffled": (shuffled, 1), "segments": (segments, 2), "enlarged": (enlarged, 2)}


def turned(model: Model) -> list[str]:
    """The transposes of a model."""
    return [at for o, at in zip(model.operations, model.origin, strict=True) if o.op.name == "TRANSPOSE"]


def agree(proto: onnx.ModelProto, model: Model, x: Array) -> None:
    """Whether a model gives what ONNX says."""
    for want, got in zip(ReferenceEvaluator(proto).run(None, {"x": x}), CompiledModel(model).run([x]), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [Target(), Target(28), Target(8)], ids=str)
@pytest.mark.parametrize("name", NETS)
def test_a_transpose_for_each_image_at_the_rim(name: str, target: Target) -> None:
    make, images = NETS[name]
    net = Net()
    proto = net.made(*make(net))
    model = convert(proto.SerializeToString(), target)
    assert len(turned(model)) <= images, turned(model)
    agree(proto, model, np.random.default_rng(1).standard_normal((1, 3, SIZE, SIZE)).astype(np.float32))


@pytest.mark.parametrize("name", ["mobilenet", "residual", "segments"])
def test_and_none_more_where_the_batch_is_open(name: str) -> None:
    make, images = NETS[name]
    net = Net()
    proto = net.made(*make(net), batch="n")
    model = convert(proto.SerializeToString())
    assert len(turned(model)) <= images, turned(model)
    for batch in (1, 3):
        agree(proto, model, np.random.default_rng(1).standard_normal((batch, 3, SIZE, SIZE)).astype(np.float32))
