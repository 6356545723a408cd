"""A trained `digits_network` as a .tflite file: float, fully quantised int8, or with block-sparse weights.

Every file takes "image" [1, 8, 8, 1] and gives "probabilities" [1, 10].
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from digits_network import Array, Layer, Network, forward
from tflite_writer import OptionValue, TFLiteWriter, sparsify

SAME, VALID, NONE, RELU = 0, 1, 0, 1
INPUT_SHAPE: tuple[int, ...] = (1, 8, 8, 1)
#: (scale, zero point) of a tensor, or nothing.
Grid = tuple[float, int] | None


@dataclass(frozen=True)
class Encoding:
    """How a file stores a network: `grid` of a tensor by name, how a layer's weight and bias become tensors."""

    dtype: str
    grid: Callable[[str], Grid]
    weight: Callable[[TFLiteWriter, Layer, Array], int]
    bias: Callable[[TFLiteWriter, Layer, Array, Array, Grid], int]


def write(network: Network, parameters: Mapping[str, Array], encoding: Encoding, description: str) -> bytes:
    """The file's bytes: the layers in order, the shape of a dense layer's input, softmax at the end."""
    writer = TFLiteWriter(description)
    shape, grid = INPUT_SHAPE, encoding.grid("image")
    x = image = _activation(writer, encoding, "image", shape)
    for layer in network:
        if layer.kind == "dense" and len(shape) == 4:
            x, shape = _flatten(writer, encoding, x, shape, grid)
        operands = [x]
        if layer.weight_shape:
            weight, bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
            operands += [encoding.weight(writer, layer, weight), encoding.bias(writer, layer, weight, bias, grid)]
        shape = _output_shape(layer, shape)
        # A pool keeps the grid of what it looks at: TFLite asks for it.
        grid = encoding.grid(layer.name) if layer.weight_shape else grid
        x = writer.tensor(layer.name, encoding.dtype, shape, **_quantization(grid))
        fused = RELU if layer.relu and layer.weight_shape else NONE
        _operator(writer, encoding, layer.kind, operands, x, {"FusedActivationFunction": fused})
    probabilities = _activation(writer, encoding, "probabilities", shape)
    _operator(writer, encoding, "softmax", [x], probabilities, {})
    return writer.finish([image], [probabilities])


def _quantization(grid: Grid) -> dict[str, Any]:
    return {} if grid is None else {"scale": grid[0], "zero": grid[1]}


def _activation(writer: TFLiteWriter, encoding: Encoding, name: str, shape: tuple[int, ...]) -> int:
    return writer.tensor(name, encoding.dtype, shape, **_quantization(encoding.grid(name)))


def _output_shape(layer: Layer, shape: tuple[int, ...]) -> tuple[int, ...]:
    if layer.kind == "pool":
        return (shape[0], shape[1] // 2, shape[2] // 2, shape[3])
    return (*shape[:-1], layer.outputs)


def _flatten(writer: TFLiteWriter, encoding: Encoding, x: int, shape: tuple[int, ...],
             grid: Grid) -> tuple[int, tuple[int, ...]]:
    flat = (1, int(np.prod(shape)))
    new_shape = writer.tensor("flat/shape", "int32", (2,), np.array(flat))
    y = writer.tensor("flat", encoding.dtype, flat, **_quantization(grid))
    writer.op("RESHAPE", [x, new_shape], [y], "ReshapeOptions", {"NewShape": flat})
    return y, flat


_WINDOW: Mapping[str, OptionValue] = {"Padding": SAME, "StrideW": 1, "StrideH": 1}
_POOL: Mapping[str, OptionValue] = {"Padding": VALID, "StrideW": 2, "StrideH": 2, "FilterWidth": 2, "FilterHeight": 2}
#: Operator, options table and options by kind of layer, and the operator version that takes int8.
_OPERATORS: Mapping[str, tuple[str, str, Mapping[str, OptionValue], int]] = {
    "conv": ("CONV_2D", "Conv2DOptions", _WINDOW, 3),
    "depthwise": ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", {**_WINDOW, "DepthMultiplier": 1}, 3),
    "dense": ("FULLY_CONNECTED", "FullyConnectedOptions", {}, 4),
    "pool": ("MAX_POOL_2D", "Pool2DOptions", _POOL, 2),
    "softmax": ("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}, 2),
}


def _operator(writer: TFLiteWriter, encoding: Encoding, kind: str, operands: list[int], output: int,
              options: Mapping[str, OptionValue]) -> None:
    name, table, own, version = _OPERATORS[kind]
    writer.op(name, operands, [output], table, {**own, **options}, version if encoding.dtype == "int8" else 1)


def float_encoding() -> Encoding:
    """Everything as float32."""
    return Encoding("float32", lambda _name: None, _plain_weight, _plain_bias)


def _plain_weight(writer: TFLiteWriter, layer: Layer, weight: Array) -> int:
    return writer.tensor(f"{layer.name}/weight", "float32", weight.shape, weight)


def _plain_bias(writer: TFLiteWriter, layer: Layer, _weight: Array, bias: Array, _grid: Grid) -> int:
    return writer.tensor(f"{layer.name}/bias", "float32", bias.shape, bias)


def sparse_encoding(block: int) -> Encoding:
    """float32; a weight with zero blocks of 1x`block` along its inputs is stored block-sparse, DENSIFY after it."""

    def weight_tensor(writer: TFLiteWriter, layer: Layer, weight: Array) -> int:
        last = weight.ndim - 1
        if weight.shape[last] % block or weight.reshape(-1, block).any(axis=1).all():
            return _plain_weight(writer, layer, weight)
        traversal = (*range(weight.ndim), weight.ndim)
        sparsity, values = sparsify(weight, traversal, "d" * last + "sd", blocks={last: block}, index="uint8",
                                    segments="uint16")
        stored = writer.tensor(f"{layer.name}/sparse", "float32", weight.shape, values, sparsity=sparsity)
        dense = writer.tensor(f"{layer.name}/weight", "float32", weight.shape)
        writer.op("DENSIFY", [stored], [dense], "DensifyOptions")
        return dense

    return Encoding("float32", lambda _name: None, weight_tensor, _plain_bias)


def int8_encoding(network: Network, parameters: Mapping[str, Array], images: Array) -> Encoding:
    """Fully int8 as TFLite specifies it, the ranges taken from the activations of `images` [N, 8, 8, 1].

    Convolution weights are per output channel, dense ones per tensor (NNAPI's FULLY_CONNECTED takes no other),
    both symmetric; the softmax has TFLite's fixed grid.
    """
    outputs, _ = forward(network, parameters, images)
    grids = {name: _grid(float(x.min()), float(x.max())) for name, x in {"image": images, **outputs}.items()}
    grids["probabilities"] = (1 / 256, -128)
    return Encoding("int8", grids.__getitem__, _int8_weight, _int32_bias)


def _grid(low: float, high: float) -> tuple[float, int]:
    """The int8 grid of a range, which is widened to hold 0 exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / 255))
    return scale, round(-128 - low / scale)


def _weight_scales(layer: Layer, weight: Array) -> tuple[Array, int]:
    """The symmetric float32 scales (one, or one per output channel) and the channel axis."""
    axis = {"conv": 0, "depthwise": 3, "dense": 0}[layer.kind]
    others = tuple(a for a in range(weight.ndim) if a != axis or layer.kind == "dense")
    return np.atleast_1d(np.abs(weight).max(axis=others) / np.float32(127)), axis


def _int8_weight(writer: TFLiteWriter, layer: Layer, weight: Array) -> int:
    scales, axis = _weight_scales(layer, weight)
    steps = scales.reshape([-1 if a == axis else 1 for a in range(weight.ndim)])
    codes = np.clip(np.rint(weight / steps), -127, 127).astype(np.int8)
    return writer.tensor(f"{layer.name}/weight", "int8", weight.shape, codes, scale=scales.tolist(), zero=0, axis=axis)


def _int32_bias(writer: TFLiteWriter, layer: Layer, weight: Array, bias: Array, grid: Grid) -> int:
    if grid is None:
        raise ValueError(f"{layer.name}: the input of a quantised layer needs a grid")
    # The accumulator counts in steps of input scale times weight scale; the bias is added to it.
    scales = np.float32(grid[0]) * _weight_scales(layer, weight)[0]
    codes = np.rint(bias.astype(np.float64) / scales).astype(np.int32)
    return writer.tensor(f"{layer.name}/bias", "int32", bias.shape, codes, scale=scales.tolist(), zero=0)
