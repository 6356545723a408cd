"""DEQUANTIZE, an operation, QUANTIZE_EVEN: which of these groups are one operation on codes, and why others are not."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..graph import Node, Value
from ..ops import conv, convert, elementwise as e, grids, host, image, linear, norm, reduce as r, shape
from ..ops.elementwise import LOGISTIC_QUANT, TANH_QUANT
from ..schema import OpDef
from ..types import (
    BYTES, F32, I32, Q8, Q8S, QPC, Array, ChannelQuant, Quant, Shape, Tensor, Type, known, product)
from .fuse import CODES, TAKERS
from .grids import FUNCTIONS, uniform
from .qdq import QDQ, number
from .retype import SIGNED_FROM
from .rewrite import Refusal, Result, Rewriter

#: A bias of floats may be off by this part of a step of the output.
FINE = 1 / 256
#: Scales as far apart are the same number, computed in another way.
ALIKE = 1e-5
#: The largest bias, in steps of the products: 32 bits leave that much for the sums.
MOST = (1 << 31) - (1 << 26)
#: How many steps stand for a number that is there only once. The more, the smaller the multiplier that brings products
#: to their grid; TFLite's rounds twice, which is felt where it is large.
STEPS = {Q8: 128, Q8S: 64}
#: The largest filter of ones that a mean becomes.
LARGEST_FILTER = 1 << 16
#: What keeps each element: it may as well be done to the codes.
KEPT = (shape.RESHAPE, shape.TRANSPOSE, shape.SQUEEZE, shape.EXPAND_DIMS)
Args = dict[str, Any]
#: The rule of a product, which may have a term for each channel besides its bias.
Product = Callable[[Rewriter, Node, Tensor, Array | None], tuple[OpDef, Args]]


class Unfit(Exception):
    """Why a group stays on floats."""


@QDQ.on(grids.QUANTIZE_EVEN)
def unchanged(g: Rewriter, node: Node) -> Result:
    """Codes that were dequantised and are quantised on the same grid."""
    before = g.producer(node.args["x"])
    if before is None or before.op is not convert.DEQUANTIZE:
        return None
    codes_: Value = before.args["x"]
    return codes_ if same(codes_.tensor, node.outputs[0].tensor) else None


@QDQ.on(grids.QUANTIZE_EVEN)
def fuse(g: Rewriter, node: Node) -> Result:
    """The operation before, on codes."""
    x, out = node.args["x"], node.outputs[0].tensor
    if g.target.qdq == "floats":
        return None
    made, act, moves = under(g, x)
    whole = None if made is None else biased(g, made)
    made, term = whole or (made, None)
    if made is None or made.op is convert.DEQUANTIZE or not any(map(partial(dequantised, g), made.inputs)):
        return None                              # a float value becomes codes here
    try:
        y = grouped(g, made, term, act, out)
    except Unfit as why:
        return None if of_a_byte(g, made) else Refusal(f"{made.op.name} stays on floats: {why}")
    for n in reversed(moves):
        y = g(n.op, out=Tensor(out.type, n.outputs[0].tensor.dims, out.quant), **n.args | {"x": y})
    return y


def dequantised(g: Rewriter, v: Value) -> bool:
    """Whether a float was codes."""
    made = g.producer(v)
    return made is not None and made.op in (convert.DEQUANTIZE, grids.DEQUANTIZE_LINEAR)


def of_a_byte(g: Rewriter, made: Node) -> bool:
    """Whether the answers will be looked up: a function of one byte."""
    sources = {v for v in made.inputs if not (v.tensor.data is not None and uniform(v.array))}
    return made.op.name in FUNCTIONS and len(sources) == 1 and dequantised(g, *sources)


def same(a: Tensor, b: Tensor) -> bool:
    """Whether codes of two tensors mean the same."""
    return a.type == b.type and a.quant == b.quant


def under(g: Rewriter, x: Value) -> tuple[Node | None, int, list[Node]]:
    """The operation under an activation and what keeps elements, the activation's code, and the latter, last first."""
    act, moves = 0, list[Node]()
    made = g.producer(x)
    while made is not None and g.sole(x) and (made.op in KEPT or made.op.name in CODES and not act):
        before = g.producer(made.args["x"])
        if before is None or before.op is convert.DEQUANTIZE:
            break
        if made.op in KEPT:
            moves.append(made)
        else:
            act = CODES[made.op.name]
        x, made = made.args["x"], before
    return made, act, moves


def biased(g: Rewriter, made: Node) -> tuple[Node, Array] | None:
    """The product to which an addition adds a constant for each of its channels, and that; None of anything else."""
    if made.op is not e.ADD or made.args["act"] or not g.sole(made.outputs[0]):
        return None
    for own, other in (("x", "y"), ("y", "x")):
        before, term = g.producer(made.args[own]), made.args[other]
        if before is None or before.op not in PRODUCTS or before.args.get("act", 0) or term.type != F32 \
                or term.tensor.data is None or not g.sole(made.args[own]):
            continue
        dims, size = before.outputs[0].tensor.dims, made.outputs[0].tensor.dims
        axis = 1 if before.args.get("nchw") else -1
        if dims is None or size is None or len(dims) != len(size) or not known(dims[axis]):
            continue
        channels = [dims[axis] if i == axis % len(dims) else 1 for i in range(len(dims))]
        if len(term.shape) <= len(dims) and all(n in (1, m) for n, m in zip(
                reversed(term.shape), reversed(channels), strict=False)):
            return before, np.broadcast_to(term.array, channels).reshape(-1)
    return None


def grouped(g: Rewriter, made: Node, term: Array | None, act: int, out: Tensor) -> Value:
    """The operation on codes, with a term for each channel and the activation; raises `Unfit`."""
    if made.op not in GROUPS and made.op not in PRODUCTS:
        raise Unfit("it has no form on bytes")
    if not g.sole(made.outputs[0]):
        raise Unfit("the float result is read as well")
    wanted = Tensor(out.type, made.outputs[0].tensor.dims, out.quant)
    op, args = PRODUCTS[made.op](g, made, wanted, term) if made.op in PRODUCTS else GROUPS[made.op](g, made, wanted)
    taken = act and op in (*TAKERS, linear.LINEAR) and args.get("act", 0) == 0
    y = g(op, out=wanted, **args | ({"act": act} if taken else {}))
    # Signed bytes become unsigned ones for targets that have none.
    target = g.target if out.type == Q8 else replace(g.target, level=max(g.target.level, SIGNED_FROM))
    if fault := next((f for n in g.build.nodes[g.since:] if n.op.code is not None and (
            f := target.fault(n.op, n.verdict))), ""):
        raise Unfit(fault)
    return y if taken or not act else g(next(o for o in (e.RELU, e.RELU1, e.RELU6) if CODES[o.name] == act), y)


def codes(g: Rewriter, v: Any, out: Tensor, what: str = "its input") -> Value:
    """The bytes behind a DEQUANTIZE, of the type of the output."""
    made = g.producer(v)
    if made is None or made.op is not convert.DEQUANTIZE:
        raise Unfit(f"{what} is not dequantised")
    x: Value = made.args["x"]
    if x.type not in BYTES or not isinstance(x.tensor.quant, Quant):
        raise Unfit(f"{what} is quantised per axis")
    if x.type != out.type:
        raise Unfit(f"{what} is {x.type.name}, its output {out.type.name}")
    return x


# Products with constant weights.
def filtered(axis: int) -> Product:
    """The rule of a product whose weights have their output channels along an axis."""
    def rule(g: Rewriter, made: Node, out: Tensor, term: Array | None) -> tuple[OpDef, Args]:
        x = codes(g, made.args["x"], out)
        w = weights(g, made.args["w"], x.type, axis)
        return made.op, made.args | {"x": x, "w": w, "b": bias(g, made.args["b"], x, w, out, term)}
    return rule


def weights(g: Rewriter, v: Value, type_: Type, axis: int) -> Value:
    """Constant codes: of the type of x, or int8 with a scale for each output channel."""
    moves, made = list[Node](), g.producer(v)
    while made is not None and made.op in (shape.TRANSPOSE, shape.RESHAPE):
        moves.append(made)
        made = g.producer(made.args["x"])
    if made is None or made.op is not convert.DEQUANTIZE or made.args["x"].tensor.data is None:
        raise Unfit("its weights are not constant codes" if not v.constant else "its weights are floats")
    w: Value = made.args["x"]
    for n in reversed(moves):
        w = moved(w, n)
    quant = w.tensor.quant
    if isinstance(quant, Quant):
        return w if w.type == type_ else shifted(w, type_)
    if not isinstance(quant, ChannelQuant) or quant.axis != axis:
        raise Unfit("its weights have scales along another axis")
    return w


def moved(w: Value, node: Node) -> Value:
    """Constant codes in another order or shape, the axis of their scales with them."""
    quant = w.tensor.quant
    if node.op is shape.TRANSPOSE:
        perm = node.args["perm"].tensor.ints()
        data = w.array.transpose(perm)
        axis = perm.index(quant.axis) if isinstance(quant, ChannelQuant) else 0
    else:
        data = w.array.reshape(node.outputs[0].shape)
        axis = kept(w.shape, data.shape, quant.axis) if isinstance(quant, ChannelQuant) else 0
    quant = replace(quant, axis=axis) if isinstance(quant, ChannelQuant) else quant
    return Value(w.name, Tensor(w.type, data.shape, quant, np.ascontiguousarray(data)))


def kept(old: Shape, new: Shape, axis: int) -> int:
    """Where an axis is in another shape of the same elements; raises `Unfit` where it is not kept."""
    found = [i for i, n in enumerate(new) if n == old[axis] and product(new[:i]) == product(old[:axis])]
    if not found:
        raise Unfit("its weights are reshaped across their scales")
    return found[0]


def shifted(w: Value, type_: Type) -> Value:
    """int8 codes as uint8, or back: 128 is added to the codes and to the zero point."""
    quant = w.tensor.quant
    assert isinstance(quant, Quant)
    moved_ = Quant(quant.scale, quant.zero + (128 if type_ == Q8 else -128))
    return Value(w.name, Tensor(type_, w.shape, moved_, (w.array.view(np.uint8) ^ np.uint8(128)).view(type_.dtype)))


def bias(g: Rewriter, v: Value, x: Value, w: Value, out: Tensor, term: Array | None) -> Value:
    """A bias and a term on the grid of the products, which may be off by a small part of a step of the output."""
    scales = np.float64(x.tensor.scale) * np.asarray(
        w.tensor.quant.scales if isinstance(w.tensor.quant, ChannelQuant) else w.tensor.scale, np.float64)
    dims = v.shape
    while (made := g.producer(v)) is not None and made.op is shape.RESHAPE:
        v = made.args["x"]
    steps = constant(v, made, scales)
    steps = steps if term is None else steps + term.reshape(dims).astype(np.float64) / scales
    if (np.abs(steps) > MOST).any():
        raise Unfit("its bias has more than 32 bits on the grid of the products")
    if not np.array_equal(steps, np.rint(steps)) and (scales * 0.5 > out.scale * FINE).any():
        raise Unfit("its bias is too fine for the grid of the products")
    grid = None if w.type == QPC else Quant(float(scales))
    return g.build.const(np.rint(steps).astype(np.int32).reshape(dims), I32, Tensor(I32, (1,), grid), v.name)


def constant(v: Value, made: Node | None, scales: Array) -> Array:
    """A constant bias in steps of the products: its own codes where they are on that grid."""
    if v.tensor.data is not None and v.type == F32:
        return np.asarray(v.array.astype(np.float64) / scales)
    if made is None or made.op not in (grids.DEQUANTIZE_LINEAR, convert.DEQUANTIZE):
        raise Unfit("its bias is computed")
    c: Value = made.args["x"]
    if c.tensor.data is None or isinstance(c.tensor.quant, ChannelQuant):
        raise Unfit("its bias is computed")
    if made.op is convert.DEQUANTIZE:
        assert isinstance(c.tensor.quant, Quant)
        own, zero = np.float64(c.tensor.quant.scale), np.asarray(c.tensor.quant.zero)
    else:
        scale, point = made.args["scale"].tensor.data, made.args["zero"]
        if scale is None or point is not None and point.tensor.data is None or made.args["block"]:
            raise Unfit("its bias is computed")
        own, zero = scale.astype(np.float64), np.zeros(()) if point is None else point.tensor.data
    steps = c.array.astype(np.float64) - zero.astype(np.float64)
    if np.allclose(own, scales, rtol=ALIKE, atol=0):
        return np.asarray(steps)
    return np.asarray(steps * own / scales)


def multiplied(g: Rewriter, made: Node, out: Tensor, term: Array | None) -> tuple[OpDef, Args]:
    """By constant weights, LINEAR; else BATCH_MATMUL, which takes signed bytes from level 6 on."""
    a = made.args
    x = codes(g, a["x"], out)
    single = product(a["y"].shape[:-2]) == 1 and len(a["y"].shape) <= len(a["x"].shape)
    if known_matrix(g, a["y"]) and single and not a["adj_x"]:
        w = weights(g, a["y"], x.type, len(a["y"].shape) - (2 if a["adj_y"] else 1))
        w = matrix(w) if a["adj_y"] else turned(matrix(w))
        zeros = g.build.const(np.zeros(w.shape[0], np.float32), F32)
        return linear.LINEAR, {"x": x, "w": w, "b": bias(g, zeros, x, w, out, term), "flat": 1}
    if term is not None:
        raise Unfit("the sum of matrices and a constant has no form on bytes")
    y_codes = codes(g, a["y"], out, "its second input")
    if x.type != Q8S or x.shape[:-2] != y_codes.shape[:-2]:
        raise Unfit("BATCH_MATMUL takes signed bytes of equal leading axes")
    return conv.BATCH_MATMUL, a | {"x": x, "y": y_codes}


def known_matrix(g: Rewriter, v: Value) -> bool:
    """Whether a float follows from constant codes."""
    made = g.producer(v)
    while made is not None and made.op in (shape.TRANSPOSE, shape.RESHAPE):
        made = g.producer(made.args["x"])
    return made is not None and made.op is convert.DEQUANTIZE and made.args["x"].constant


def matrix(w: Value) -> Value:
    """Constant codes without the axes of size 1 before the last two."""
    quant, more = w.tensor.quant, len(w.shape) - 2
    quant = replace(quant, axis=quant.axis - more) if isinstance(quant, ChannelQuant) else quant
    return Value(w.name, Tensor(w.type, w.shape[more:], quant, w.array.reshape(w.shape[more:])))


def turned(w: Value) -> Value:
    """A constant matrix transposed."""
    quant = w.tensor.quant
    quant = replace(quant, axis=1 - quant.axis) if isinstance(quant, ChannelQuant) else quant
    return Value(w.name, Tensor(w.type, w.shape[::-1], quant, np.ascontiguousarray(w.array.T)))


# Two operands, and several.
def pair(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """Two operands of the output's type."""
    found = {n: as_code(g, made.args[n], out.type) or codes(g, made.args[n], out, n) for n in "xy"}
    if made.op is e.MUL and not out.scale > found["x"].tensor.scale * found["y"].tensor.scale:
        raise Unfit("the output's scale does not exceed the product of the inputs'")
    return made.op, made.args | found


def as_code(g: Rewriter, v: Value, type_: Type) -> Value | None:
    """A single number is exact as many steps of a scale that is a power of two smaller."""
    value = number(v) if v.type == F32 else None
    if value is None or not np.isfinite(value):
        return None
    zero = STEPS[type_] if value < 0 and type_ == Q8 else 0
    code = zero + STEPS[type_] * ((value > 0) - (value < 0))
    grid = Quant((abs(value) or 1.0) / STEPS[type_], zero)
    return g.build.const(np.full(v.shape, code), type_, Tensor(type_, v.shape, grid))


def chosen(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """One of two operands of the output's type."""
    return made.op, made.args | {n: as_code(g, made.args[n], out.type) or codes(g, made.args[n], out, n) for n in "xy"}


def joined(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """Operands of the output's type; their scales may differ."""
    return made.op, made.args | {"xs": tuple(codes(g, x, out) for x in made.args["xs"])}


# One operand.
def averaged(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """Onto the input's grid as it is; onto another as a convolution with ones, which is rounded once."""
    x = codes(g, made.args["x"], out)
    window = None if x.tensor.quant == out.quant else whole_window(made, x)
    if window is None:
        return equal(g, made, out)
    (rows, columns), channels = window["size"], x.shape[1 if window["nchw"] else 3]
    if not known(channels) or not 0 < rows * columns * channels <= LARGEST_FILTER:
        raise Unfit("its output has another grid than its input")
    ones = np.full((1, rows, columns, channels), STEPS[x.type], x.type.dtype)
    grid = Quant(1 / (STEPS[x.type] * rows * columns))
    w = g.build.const(ones, x.type, Tensor(x.type, ones.shape, grid))
    b = g.build.const(np.zeros(channels), I32, Tensor(I32, (channels,), Quant(x.tensor.scale * grid.scale)))
    return conv.DEPTHWISE_CONV_2D, window["slide"] | {"x": x, "w": w, "b": b, "mult": 1, "nchw": window["nchw"]}


def whole_window(made: Node, x: Value) -> Args | None:
    """The windows of a mean, all of them as large: of a pool without padding, or over height and width."""
    a = made.args
    if made.op is image.AVERAGE_POOL_2D:
        names = ("pl", "pr", "pt", "pb") if "pl" in a else ("scheme",)
        slide = {n: a[n] for n in (*names, "sw", "sh", "act")}
        plain = a["scheme"] == 2 if "scheme" in a else not any(a[n] for n in names)
        return {"size": (a["kh"], a["kw"]), "slide": slide, "nchw": a["nchw"]} if plain else None
    axes = sorted(i % len(x.shape) for i in a["axes"].tensor.ints())
    nchw = axes == [2, 3]
    size = tuple(x.shape[i] for i in axes)
    if len(x.shape) != 4 or axes not in ([1, 2], [2, 3]) or not a["keep"] or not all(map(known, size)):
        return None
    return {"size": size, "slide": {"scheme": 2, "sw": 1, "sh": 1, "act": 0}, "nchw": nchw}


def equal(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """NNAPI wants the input's grid on the output; bringing that to another would round twice."""
    x = codes(g, made.args["x"], out)
    if x.tensor.quant != out.quant:
        raise Unfit("its output has another grid than its input")
    return made.op, made.args | {"x": x}


def fixed(quants: Mapping[Type, Quant]) -> Callable[[Rewriter, Node, Tensor], tuple[OpDef, Args]]:
    """The rule of an operation whose output's grid NNAPI dictates."""
    def rule(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
        x, want, grid = codes(g, made.args["x"], out), quants[out.type], out.quant
        assert isinstance(grid, Quant)
        if grid != want:
            raise Unfit(f"its output has scale {grid.scale:.6g} and zero point {grid.zero}, not {want.scale:.6g} and "
                        f"{want.zero}")
        return made.op, made.args | {"x": x}
    return rule


def free(g: Rewriter, made: Node, out: Tensor) -> tuple[OpDef, Args]:
    """Any grids."""
    return made.op, made.args | {"x": codes(g, made.args["x"], out)}


PRODUCTS: dict[OpDef, Product] = {
    **dict.fromkeys((conv.CONV_2D, conv.GROUPED_CONV_2D, conv.TRANSPOSE_CONV_2D, linear.LINEAR, conv.FULLY_CONNECTED),
                    filtered(0)),
    conv.DEPTHWISE_CONV_2D: filtered(3), host.MATMUL: multiplied}
GROUPS: dict[OpDef, Callable[[Rewriter, Node, Tensor], tuple[OpDef, Args]]] = {
    **dict.fromkeys((e.ADD, e.SUB, e.MUL, e.PRELU), pair), **dict.fromkeys((e.MAXIMUM, e.MINIMUM, e.SELECT), chosen),
    shape.CONCATENATION: joined, e.HARD_SWISH: free,
    **dict.fromkeys((image.AVERAGE_POOL_2D, r.MEAN), averaged),
    **dict.fromkeys((image.RESIZE_BILINEAR, e.RELU6, e.RELU1), equal),
    norm.SOFTMAX: fixed(LOGISTIC_QUANT), e.LOGISTIC: fixed(LOGISTIC_QUANT), e.TANH: fixed(TANH_QUANT)}
