"""A small network in plain NumPy: layers as data, one forward function per kind that returns its own backward.

Images are [N, H, W, C]; weights lie as TFLite keeps them: conv [O, K, K, I], depthwise [1, K, K, C], dense [O, I].
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Parameters = dict[str, Array]
Backward = Callable[[Array], tuple[Array, Array | None, Array | None]]


@dataclass(frozen=True)
class Layer:
    """One layer; convolutions pad to keep the size (SAME) and stride 1, pools take the maximum of 2x2.

    kind: "conv", "depthwise", "pool" or "dense". side: kernel height and width. relu: whether max(0, x) follows.
    """

    name: str
    kind: str
    inputs: int = 0
    outputs: int = 0
    side: int = 1
    relu: bool = True

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """The weight's shape; empty for a pool."""
        return {"conv": (self.outputs, self.side, self.side, self.inputs), "dense": (self.outputs, self.inputs),
                "depthwise": (1, self.side, self.side, self.outputs), "pool": ()}[self.kind]


Network = Sequence[Layer]


def initial(network: Network, rng: np.random.Generator) -> Parameters:
    """He-normal weights "<layer>.weight" and zero biases "<layer>.bias", float32."""
    parameters: Parameters = {}
    for layer in network:
        if layer.weight_shape:
            fan_in = layer.side * layer.side * (1 if layer.kind == "depthwise" else layer.inputs)
            weight = rng.normal(0, np.sqrt(2 / fan_in), layer.weight_shape)
            parameters[f"{layer.name}.weight"] = weight.astype(np.float32)
            parameters[f"{layer.name}.bias"] = np.zeros(layer.outputs, np.float32)
    return parameters


def forward(network: Network, parameters: Mapping[str, Array], x: Array) -> tuple[dict[str, Array], list[Backward]]:
    """Every layer's output by its name (the last is the logits), and the backward functions in layer order."""
    outputs: dict[str, Array] = {}
    backwards: list[Backward] = []
    for layer in network:
        x, back = FORWARD[layer.kind](x, parameters.get(f"{layer.name}.weight"), parameters.get(f"{layer.name}.bias"))
        if layer.relu and layer.weight_shape:
            x, back = _relu(x, back)
        outputs[layer.name] = x
        backwards.append(back)
    return outputs, backwards


def gradients(network: Network, backwards: Sequence[Backward], grad: Array) -> Parameters:
    """The gradient of every parameter from that of the logits."""
    found: Parameters = {}
    for layer, back in zip(reversed(network), reversed(backwards), strict=True):
        grad, weight, bias = back(grad)
        if weight is not None and bias is not None:
            found[f"{layer.name}.weight"], found[f"{layer.name}.bias"] = weight, bias
    return found


def softmax(logits: Array) -> Array:
    """exp(x) / sum(exp(x)) along the last axis."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def _relu(x: Array, back: Backward) -> tuple[Array, Backward]:
    positive = x > 0
    return x * positive, lambda grad: back(grad * positive)


def _patches(x: Array, side: int) -> Array:
    """[N, H, W, side, side, C]: the neighbourhood of every pixel, zeros outside."""
    half = side // 2
    padded = np.pad(x, ((0, 0), (half, half), (half, half), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), (1, 2))
    return np.asarray(windows.transpose(0, 1, 2, 4, 5, 3))


def _unpatch(grad: Array) -> Array:
    """The adjoint of `_patches`: sums what every pixel gave to its neighbours."""
    n, h, w, side, _, c = grad.shape
    padded = np.zeros((n, h + side - 1, w + side - 1, c), grad.dtype)
    for dy in range(side):
        for dx in range(side):
            padded[:, dy:dy + h, dx:dx + w] += grad[:, :, :, dy, dx]
    half = side // 2
    return padded[:, half:half + h, half:half + w]


def _conv(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    side, patches = weight.shape[1], _patches(x, weight.shape[1])
    rows, matrix = patches.reshape(-1, side * side * x.shape[-1]), weight.reshape(weight.shape[0], -1)

    def back(grad: Array) -> tuple[Array, Array, Array]:
        flat = grad.reshape(-1, grad.shape[-1])
        return _unpatch((flat @ matrix).reshape(patches.shape)), (flat.T @ rows).reshape(weight.shape), flat.sum(axis=0)

    return (rows @ matrix.T + bias).reshape(*x.shape[:3], -1), back


def _depthwise(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    patches, kernel = _patches(x, weight.shape[1]), weight[0]

    def back(grad: Array) -> tuple[Array, Array, Array]:
        return (_unpatch(grad[:, :, :, None, None, :] * kernel),
                np.einsum("nhwijc,nhwc->ijc", patches, grad)[None], grad.sum(axis=(0, 1, 2)))

    return np.einsum("nhwijc,ijc->nhwc", patches, kernel) + bias, back


def _pool(x: Array, _weight: None, _bias: None) -> tuple[Array, Backward]:
    n, h, w, c = x.shape
    cells = x.reshape(n, h // 2, 2, w // 2, 2, c)
    top = cells.max(axis=(2, 4), keepdims=True)

    def back(grad: Array) -> tuple[Array, None, None]:
        first = cells == top
        share = first / first.sum(axis=(2, 4), keepdims=True, dtype=np.float32)
        return (share * grad[:, :, None, :, None, :]).reshape(x.shape), None, None

    return top[:, :, 0, :, 0], back


def _dense(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    rows = x.reshape(len(x), -1)

    def back(grad: Array) -> tuple[Array, Array, Array]:
        return (grad @ weight).reshape(x.shape), grad.T @ rows, grad.sum(axis=0)

    return rows @ weight.T + bias, back


FORWARD: Mapping[str, Callable[..., tuple[Array, Backward]]] = {
    "conv": _conv, "depthwise": _depthwise, "pool": _pool, "dense": _dense}
