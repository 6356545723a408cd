"""Which operations on signed bytes are the same on unsigned ones, and what stands in for the others.

The same: moving all bytes and zero points up by 128 moves the answer up by 128. Where TFLite's kernel for uint8
rounds otherwise than that for int8 there is a rewrite with int8's answer, or else the operation stays on int8.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..graph import Evaluate, Build, Node, Value
from ..ops import conv, elementwise as e, image
from ..ops.convert import CAST, QUANTIZE
from ..types import Array, F32, I32, Q8, Q8S, QPC, ChannelQuant, Quant, Tensor, known
from .exact import computed, grid, near, same_steps

#: These count from the zero point, or move bytes, or compare them.
NAMES = """
    ABS ADD ARGMAX ARGMIN BATCH_TO_SPACE_ND BROADCAST_TO CHANNEL_SHUFFLE CONCATENATION DEPTH_TO_SPACE
    DEQUANTIZE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FULLY_CONNECTED GATHER GATHER_BATCHED GATHER_ND GREATER
    GREATER_EQUAL HARD_SWISH IF LEAKY_RELU LESS LESS_EQUAL LOG LOGISTIC MAX_POOL_2D MEAN MIRROR_PAD MUL NEG NOT_EQUAL
    PACK PACK_EX PAD PAD_V2 PRELU QUANTIZE RANK REDUCE_MAX REDUCE_MIN REDUCE_SUM RELU RELU1 RELU6 RELU_0_TO_1
    REQUANTIZE RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE RSQRT SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT
    SPLIT_EX SQRT SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB TANH TILE TOPK_FIRST TOPK_V2 TRANSPOSE UNPACK_EX WHILE
    LINEAR QUANTIZE_EVEN RELABEL
"""
NEUTRAL = frozenset(NAMES.split())
#: As long as all their operands are on one grid; they round halves away from raw zero where they move one.
ON_ONE_GRID = frozenset(("MAXIMUM", "MINIMUM", "SELECT", "WHERE"))
PRODUCTS = {o.name: axis for o, axis in (
    (conv.CONV_2D, 0), (conv.GROUPED_CONV_2D, 0), (conv.TRANSPOSE_CONV_2D, 0), (conv.DEPTHWISE_CONV_2D, 3))}
ACTS = {1: e.RELU, 2: e.RELU1, 3: e.RELU6}
#: A float32 holds bytes times weights of so many bits along each of two axes.
BITS = 8


def neutral(node: Node) -> bool:
    """Whether the operation is the same on unsigned bytes."""
    name = node.op.plain.name
    if name in ON_ONE_GRID:
        return len({v.tensor.quant for v in (*node.inputs, *node.outputs) if v.type == Q8S}) == 1
    return name in NEUTRAL or name in PRODUCTS and node.args["w"].type == QPC


def same_products(evaluate: Evaluate, node: Node, moved: Node) -> bool:
    """Whether a convolution with one scale gives the same on unsigned bytes, where the scales' product is a float32.

    Its sums are tried near each step of the output, as the biases of a convolution of nothing.
    """
    x, w, out = node.args["x"].tensor, node.args["w"].tensor, node.outputs[0].tensor
    (so, zo), depth = (grid(out).scale, grid(out).zero), max(w.size // w.shape[0], prod(w.shape[1:3]))
    most = min(depth << 15, 1 << 30)
    middle = (np.arange(-127, 128) - 0.5 - zo) * so / (grid(x).scale * grid(w).scale)
    points = near(middle, -most, most)
    first, second = (computed(evaluate, partial(_of_nothing, node=n, sums=points)) for n in (node, moved))
    if first is None or second is None:
        return False
    return same_steps(points, first.ravel(), (second.view(np.uint8) ^ 0x80).view(np.int8).ravel())


def _of_nothing(g: Build, node: Node, sums: Array) -> Value:
    """A convolution of zeros with zeros on the grids of another, `sums` added."""
    def zeros(v: Value, *dims: int) -> Value:
        return g.full(dims, grid(v.tensor).zero, v.tensor)
    x, w, b, out = (*(node.args[n] for n in "xwb"), node.outputs[0].tensor)
    return g(conv.CONV_2D, zeros(x, 1, 1, 1, 1), zeros(w, sums.size, 1, 1, 1), g.const(sums, I32, b.tensor), scheme=2,
             sw=1, sh=1, act=node.args["act"], out=Tensor(out.type, None, out.quant))


def by_channels(node: Node) -> Node | None:
    """A convolution with one scale as one with equal scales, whose products are those of int8; None where w varies."""
    w, b, axis = node.args["w"], node.args["b"], PRODUCTS[node.op.plain.name]
    if not w.constant or not b.constant or grid(w.tensor).zero:
        return None
    quant = ChannelQuant((grid(w.tensor).scale,) * w.shape[axis], axis)
    weights = Value(w.name, replace(w.tensor, type=QPC, quant=quant), w.sparse)
    bias = Value(b.name, replace(b.tensor, quant=None), b.sparse)
    return replace(node, args=node.args | {"w": weights, "b": bias})


Rewrite = Callable[[Build, Node, Value, Tensor], Value | None]


def on_raw_floats(g: Build, node: Node, x: Value, out: Tensor) -> Value:
    """The operation on int8's raw numbers as floats, rounded halves away from zero as int8's kernel does.

    `x`: the input moved up; `out`: what the moved output is.
    """
    raw = g(e.ADD, g(CAST, x, to=F32), g.const([-128.0], F32), act=0)
    args: dict[str, Any] = node.args | {"x": raw} | ({"act": 0} if "act" in node.args else {})
    whole = g(QUANTIZE, g(node.op.plain, **args), to=Q8, out=Tensor(Q8, None, Quant(1.0, 128)))
    y = g(CAST, g(CAST, whole, to=F32), to=Q8, out=out)
    act = ACTS.get(node.args.get("act", 0))
    return g(act, y, out=out) if act else y


def average(g: Build, node: Node, x: Value, out: Tensor) -> Value | None:
    """AVERAGE_POOL_2D: the sums of fewer than 2 ** 16 bytes are exact in float32, and so is half of a whole number."""
    return on_raw_floats(g, node, x, out) if node.args["kh"] * node.args["kw"] < 1 << 16 else None


def bilinear(g: Build, node: Node, x: Value, out: Tensor) -> Value | None:
    """RESIZE_BILINEAR where the weights have few bits, so that fixed point and floats hold the same."""
    a = node.args
    if "oh" not in a or not all(map(known, (*x.shape, a["oh"], a["ow"]))):
        return None
    pairs = ((x.shape[1 + a["nchw"]], a["oh"]), (x.shape[2 + a["nchw"]], a["ow"]))
    return on_raw_floats(g, node, x, out) if all(few_bits(*p, a["align"], a["half"]) for p in pairs) else None


def few_bits(size: int, out: int, align: bool, half: bool) -> bool:
    """Whether the distances between source cells are whole multiples of a small power of two, in both kernels."""
    step = Fraction(size - 1, out - 1) if align and out > 1 else Fraction(size, out)
    return (1 << BITS) % (step.denominator * (2 if half else 1)) == 0


REWRITES: dict[str, Rewrite] = {image.AVERAGE_POOL_2D.name: average, image.RESIZE_BILINEAR.name: bilinear}
#: Why these are not the same on unsigned bytes.
WHY = {"AVERAGE_POOL_2D": "uint8 rounds halves up, int8 away from zero", "RESIZE_BILINEAR":
       "uint8 is scaled in float32, int8 in fixed point", "L2_NORMALIZATION": "int8 rounds once more than uint8",
       **dict.fromkeys(PRODUCTS, "uint8 takes the product of the scales as a float32")}
