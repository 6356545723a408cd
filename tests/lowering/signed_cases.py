"""Operations on signed bytes, each with grids and shapes that would show a difference on unsigned ones."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnx_convert.graph import Build, Value
from nnx_convert.ops import (
    conv, convert, elementwise as e, ex, gather, grids, host, image, linear, norm, reduce as r, shape)
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, F32, I32, Q8, Q8S, QPC, ChannelQuant, Quant, Tensor, Type

Made = Callable[[Build, Sequence[Value]], Value | Sequence[Value]]
Kind = tuple[Type, tuple[int, ...], Quant | None]
Case = tuple[Made, list[Kind]]
GRID, OTHER, COARSE = Quant(0.05, -3), Quant(0.033, 17), Quant(0.25, 9)


def bytes_(*dims: int, quant: Quant = GRID) -> Kind:
    return Q8S, dims, quant


OUT = Tensor(Q8S, None, GRID)
#: The scale of weights; its float32 product with that of GRID differs from the true one where it shows.
STEP = 0.00312
#: An output step of two products: whole sums are halves of it, and the last bit of a multiplier shows.
TWO = float(np.float32(2 * np.float32(GRID.scale) * np.float32(STEP)))
ALL, PAIRS, CUBE = [bytes_(256)], [bytes_(256, 1), bytes_(1, 256, quant=OTHER)], [bytes_(2, 3, 4)]
IMAGE = [bytes_(2, 6, 8, 4)]


def on(op: OpDef, quant: Quant | None = None, /, **named: Any) -> Made:
    """The operation, on any grid, its output on this one where NNAPI leaves that open."""
    out = Tensor(Q8S, None, quant) if quant else None
    return lambda g, xs: g.add(host.host_twin(op) if quant else op, *xs, outs=(out,) if out else (), **named)


def product(op: OpDef, weights: tuple[int, ...], channels: bool, scale: float, **named: Any) -> Made:
    """A convolution with random weights, with a scale per channel or one."""
    def make(g: Build, xs: Sequence[Value]) -> Value:
        rng = np.random.default_rng(sum(weights))
        axis = 3 if op is conv.DEPTHWISE_CONV_2D else 0
        units, reach = weights[axis], 1 if scale == TWO else 127
        quant = ChannelQuant(tuple(0.004 + 0.001 * i for i in range(units)), axis) if channels else Quant(STEP)
        raw = rng.integers(-reach, reach + 1, weights, np.int8)
        w = Value("w", Tensor(QPC if channels else Q8S, weights, quant, raw))
        bias = Tensor(I32, None, None if channels else Quant(GRID.scale * STEP))
        b = g.const(rng.integers(-9 * reach, 9 * reach, units), I32, bias)
        return g(op, x=xs[0], w=w, b=b, out=Tensor(Q8S, None, Quant(scale, 5)), **named)
    return make


def cast(g: Build, xs: Sequence[Value]) -> Value:
    return g(convert.CAST, xs[0], to=Q8S, out=OUT)


SLIDE: dict[str, Any] = {"scheme": 1, "sw": 2, "sh": 1, "act": 1, "nchw": False}
BARE = SLIDE | {"act": 0}
POOL: dict[str, Any] = {"scheme": 1, "sw": 1, "sh": 2, "kw": 3, "kh": 2, "nchw": False}
#: Unary functions, each tried on every byte; a grid for the output.
UNARY: dict[OpDef, Quant] = {
    **dict.fromkeys((e.ABS, e.NEG, e.EXP, e.LOG, e.SQRT, e.RSQRT, e.RELU, e.RELU1, e.RELU6, host.RELU_0_TO_1,
                     e.HARD_SWISH), OTHER), e.LOGISTIC: Quant(1 / 256, -128), e.TANH: Quant(1 / 128, 0)}
BINARY = (host.SQUARED_DIFFERENCE, e.PRELU)
COMPARE = (e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL, e.LESS, e.LESS_EQUAL)
SAME: dict[str, Case] = {
    **{o.name: (on(o, q), ALL) for o, q in UNARY.items()},
    "ELU": (on(e.ELU, OTHER, alpha=1.0), ALL), "LEAKY_RELU": (on(host.LEAKY_RELU, OTHER, alpha=0.3), ALL),
    "DEQUANTIZE": (on(convert.DEQUANTIZE, to=F32), ALL), "REQUANTIZE": (on(host.REQUANTIZE, COARSE, to=Q8S), ALL),
    "QUANTIZE": (lambda g, xs: g(convert.QUANTIZE, xs[0], to=Q8S, out=OUT), [(F32, (999,), None)]),
    **{o.name: (on(o, Quant(0.09, -7), act=3), PAIRS) for o in (e.ADD, e.SUB)},
    "MUL": (on(e.MUL, COARSE, act=1), PAIRS),
    **{o.name: (on(o, COARSE), PAIRS) for o in BINARY}, **{o.name: (on(o), PAIRS) for o in COMPARE},
    **{o.name: (on(o, GRID), [bytes_(256, 1), bytes_(1, 256)]) for o in (e.MAXIMUM, e.MINIMUM)},
    "SELECT": (on(e.SELECT, GRID), [(B8, (99,), None), bytes_(99), bytes_(99)]),
    "WHERE": (on(host.WHERE, GRID), [(B8, (9, 1), None), bytes_(9, 9), bytes_(9)]),
    **{o.name: (on(o, axis=1), CUBE) for o in (r.ARGMAX, r.ARGMIN)},
    **{o.name: (on(o, axes=(1,), keep=True), CUBE) for o in (r.REDUCE_MAX, r.REDUCE_MIN)},
    "MEAN": (on(r.MEAN, OTHER, axes=(1, 2), keep=1), [bytes_(40, 3, 3, 9)]),
    "REDUCE_SUM": (on(r.REDUCE_SUM, COARSE, axes=(1, 2), keep=True), [bytes_(40, 3, 3, 9)]),
    "TOPK_V2": (on(r.TOPK_V2, k=3), CUBE), "TOPK_FIRST": (on(host.TOPK_FIRST, k=3), CUBE),
    "SOFTMAX": (on(norm.SOFTMAX, beta=1.0, axis=-1), [bytes_(64, 40)]),
    "CONV_2D": (product(conv.CONV_2D, (5, 3, 3, 4), True, 0.03, **SLIDE), IMAGE),
    "GROUPED_CONV_2D": (product(conv.GROUPED_CONV_2D, (6, 3, 3, 2), True, 0.02, groups=2, **SLIDE), IMAGE),
    "DEPTHWISE_CONV_2D": (product(conv.DEPTHWISE_CONV_2D, (1, 3, 3, 8), True, 0.02, mult=2, **SLIDE), IMAGE),
    "TRANSPOSE_CONV_2D": (
        product(conv.TRANSPOSE_CONV_2D, (5, 3, 3, 4), True, 0.02, shape=[2, 6, 16, 5], **SLIDE), IMAGE),
    "FULLY_CONNECTED": (product(conv.FULLY_CONNECTED, (7, 300), False, 0.03, act=0), [bytes_(99, 300)]),
    "LINEAR": (product(linear.LINEAR, (7, 300), False, 0.03, act=0), [bytes_(99, 300)]),
    "QUANTIZE_EVEN": (lambda g, xs: g(grids.QUANTIZE_EVEN, xs[0], to=Q8S, out=OUT), [(F32, (999,), None)]),
    "RELABEL": (on(grids.RELABEL, COARSE), ALL),
    "MAX_POOL_2D": (on(image.MAX_POOL_2D, act=1, **POOL), IMAGE),
    "RESIZE_NEAREST_NEIGHBOR": (on(image.RESIZE_NEAREST_NEIGHBOR, ow=5, oh=9, nchw=False), IMAGE),
    "DEPTH_TO_SPACE": (on(image.DEPTH_TO_SPACE, block=2, nchw=False), IMAGE),
    "SPACE_TO_DEPTH": (on(image.SPACE_TO_DEPTH, block=2, nchw=False), IMAGE),
    "BATCH_TO_SPACE_ND": (on(image.BATCH_TO_SPACE_ND, blocks=(1, 2), nchw=False), IMAGE),
    "SPACE_TO_BATCH_ND": (on(image.SPACE_TO_BATCH_ND, blocks=(2, 2), pads=[[0, 0], [1, 1]], nchw=False), IMAGE),
    "CHANNEL_SHUFFLE": (on(shape.CHANNEL_SHUFFLE, groups=2, axis=3), IMAGE),
    "CONCATENATION": (lambda g, xs: g(shape.CONCATENATION, xs=tuple(xs), axis=1, out=Tensor(Q8S, None, COARSE)), [
        bytes_(9, 99), bytes_(9, 99, quant=OTHER), bytes_(9, 9, quant=COARSE)]),
    "PACK": (lambda g, xs: g(shape.PACK, xs=tuple(xs), axis=1), CUBE * 2),
    "PACK_EX": (lambda g, xs: g(ex.PACK_EX, xs=tuple(xs), count=2, axis=1, out=OUT), CUBE * 2),
    "UNPACK_EX": (lambda g, xs: g.add(ex.UNPACK_EX, xs[0], count=3, axis=1, outs=(OUT,) * 3), CUBE),
    "SPLIT": (on(shape.SPLIT, axis=2, count=2), CUBE),
    "SPLIT_EX": (lambda g, xs: g.add(ex.SPLIT_EX, xs[0], axis=2, count=2, outs=(OUT,) * 2), CUBE),
    "PAD": (on(shape.PAD, paddings=[[0, 1], [2, 0], [1, 1]]), CUBE),
    "PAD_V2": (on(shape.PAD_V2, paddings=[[0, 1], [2, 0], [1, 1]], value=-90), CUBE),
    "MIRROR_PAD": (on(shape.MIRROR_PAD, paddings=[[0, 1], [2, 0], [1, 1]], mode=0), CUBE),
    "RESHAPE": (on(shape.RESHAPE, shape=(4, 6)), CUBE), "TRANSPOSE": (on(shape.TRANSPOSE, perm=(2, 0, 1)), CUBE),
    "EXPAND_DIMS": (on(shape.EXPAND_DIMS, axis=1), CUBE), "SQUEEZE": (on(shape.SQUEEZE, dims=(1,)), [bytes_(2, 1, 9)]),
    "SLICE": (on(shape.SLICE, begin=(0, 1, 1), size=(2, 2, 3)), CUBE),
    "TILE": (on(shape.TILE, multiples=(2, 1, 3)), CUBE),
    "STRIDED_SLICE": (on(shape.STRIDED_SLICE, begin=(0, 2, 3), end=(2, 0, 0), strides=(1, -1, -2), begin_mask=0,
                         end_mask=0, shrink_mask=0), CUBE),
    "REVERSE": (on(shape.REVERSE, axis=[1]), CUBE), "RANK": (on(shape.RANK), CUBE),
    "BROADCAST_TO": (on(host.BROADCAST_TO, shape=(5, 2, 3, 4)), CUBE),
    "GATHER": (on(gather.GATHER, axis=1, indices=[2, 0]), CUBE),
    "GATHER_ND": (on(host.GATHER_ND, indices=np.array([[0, 2], [1, 1]])), CUBE),
    "GATHER_BATCHED": (on(host.GATHER_BATCHED, indices=np.array([[0, 2], [1, 1]]), axis=1, batch=1), CUBE),
    "EMBEDDING_LOOKUP": (lambda g, xs: g(gather.EMBEDDING_LOOKUP, g.const([1, 0, 1], I32), xs[0]), CUBE),
}
#: Operations that are not the same on unsigned bytes; whether level 29 has operations with the same answer.
OTHERWISE: dict[str, tuple[Case, bool]] = {
    "average pool": ((on(image.AVERAGE_POOL_2D, act=0, **POOL), IMAGE), True),
    "average pool, relu6": ((on(image.AVERAGE_POOL_2D, act=3, **POOL), IMAGE), True),
    "bilinear x2": ((on(image.RESIZE_BILINEAR, ow=16, oh=12, nchw=False), IMAGE), True),
    "bilinear /4": ((on(image.RESIZE_BILINEAR, ow=2, oh=3, nchw=False), IMAGE), True),
    "bilinear 8 to 5": ((on(image.RESIZE_BILINEAR, ow=5, oh=12, nchw=False), IMAGE), False),
    "bilinear, halves": ((on(image.RESIZE_BILINEAR, ow=16, oh=12, nchw=False, half=True), IMAGE), False),
    "length": ((on(norm.L2_NORMALIZATION, axis=3), IMAGE), False),
    "largest across grids": ((lambda g, xs: g(e.MAXIMUM, *xs, out=Tensor(Q8S, None, COARSE)), PAIRS), False),
    "running sum": ((on(r.REDUCE_PROD, COARSE, axes=(1,), keep=True), CUBE), False),
    "conv, one scale": ((product(conv.CONV_2D, (5, 1, 1, 4), False, TWO, **BARE), IMAGE), True),
    "depthwise, one scale": (
        (product(conv.DEPTHWISE_CONV_2D, (1, 1, 1, 8), False, TWO, mult=2, **BARE), IMAGE), True),
    "scatter, one scale": ((product(conv.TRANSPOSE_CONV_2D, (5, 1, 1, 4), False, TWO, shape=[2, 6, 16, 5], **BARE),
                            IMAGE), True),
    "cast to float": ((on(convert.CAST, to=F32), ALL), True), "cast to int": ((on(convert.CAST, to=I32), ALL), True),
    "cast of float": ((cast, [(F32, (999,), None)]), True), "cast of int": ((cast, [(I32, (999,), None)]), True),
    "cast of unsigned": ((cast, [(Q8, (128,), Quant(0.05, 3))]), True),
}
