"""The importers' cases: one operator each, the operations it becomes and the arguments that matter."""
from __future__ import annotations

from typing import Any

import numpy as np

from .one_operator import Case, T, const, q8

F = T("float32", (2, 3, 4))
G = T("float32", (3, 4))
I = T("int32", (2, 3, 4))  # noqa: E741
L = T("int64", (2, 3, 4))
B = T("bool", (2, 3))
W = np.arange(24, dtype=np.float32) / 8
ACT = "FusedActivationFunction"


def f32(*shape: int) -> T:
    """A float input or output."""
    return T("float32", shape)


def i32(*shape: int) -> T:
    """An integer input or output."""
    return T("int32", shape)


def scalar(value: Any, dtype: str = "int32") -> T:
    """A constant of rank 0."""
    return const(np.asarray(value), dtype)


def weights(*shape: int, **named: Any) -> T:
    """Constant weights: small multiples of 1/8."""
    return const((np.arange(np.prod(shape)) % 11 - 5).reshape(shape) / 8, "float32", **named)


def bytes_(*shape: int, **named: Any) -> T:
    """Constant int8 weights."""
    return const((np.arange(np.prod(shape)) % 11 - 5).reshape(shape), "int8", **named)


def same(name: str, node: str = "", x: T = F, n: int = 1, out: str = "") -> Case:
    """An operator that keeps shapes."""
    return Case(name, [x] * n, [T(out or x.dtype, x.shape, None, x.scale, x.zero)], node or name)


UNARY = [
    *map(same, ("ABS", "FLOOR", "NEG", "SIN", "EXP", "LOG", "SQRT", "RSQRT", "RELU", "RELU6", "TANH", "LOGISTIC")),
    *map(same, ("CEIL", "COS", "ROUND", "SQUARE", "RELU_0_TO_1", "HARD_SWISH", "ELU")), same("RELU_N1_TO_1", "RELU1"),
    same("LOGICAL_NOT", x=B), same("RELU", x=q8(2, 3)),
    Case("RELU", [q8(2, 3)], [q8(2, 3, scale=0.25)], "host.RELU"),
    Case("LOGISTIC", [q8(2, 3)], [q8(2, 3, scale=1 / 256, zero=-128)], "LOGISTIC"),
    Case("LOGISTIC", [q8(2, 3)], [q8(2, 3, scale=0.01)], "host.LOGISTIC"),
    Case("TANH", [q8(2, 3)], [q8(2, 3, scale=1 / 128, zero=0)], "TANH"),
    Case("LEAKY_RELU", [F], [F], "LEAKY_RELU", "LeakyReluOptions", {"Alpha": 1.5}, {"alpha": 1.5}),
    Case("SOFTMAX", [F], [F], "SOFTMAX", "SoftmaxOptions", {"Beta": 2.0}, {"beta": 2.0}),
    Case("SOFTMAX", [q8(2, 3)], [T("int16", (2, 3), None, 1 / 65536, -32768)], "host.SOFTMAX", "SoftmaxOptions",
         {"Beta": 1.0}),
    Case("LOG_SOFTMAX", [F], [F], "LOG_SOFTMAX", None, {}, {"axis": -1, "beta": 1.0}),
    Case("L2_NORMALIZATION", [F], [F], "L2_NORMALIZATION RELU", "L2NormOptions", {ACT: 1}),
]
BINARY = [
    *(same(n, n, x, 2, "bool") for n in ("GREATER", "GREATER_EQUAL", "LESS_EQUAL", "NOT_EQUAL", "EQUAL", "LESS")
      for x in (F, I)),
    *(same(n, n, B, 2) for n in ("LOGICAL_AND", "LOGICAL_OR")), same("MAXIMUM", "MAXIMUM", F, 2),
    same("MINIMUM", "MINIMUM", F, 2), same("SQUARED_DIFFERENCE", "SQUARED_DIFFERENCE", F, 2),
    same("ADD_N", "ADD ADD", F, 3), Case("POW", [f32(2, 3), f32(3)], [f32(2, 3)], "POW"),
    Case("PRELU", [F, weights(1, 1, 4)], [F], "PRELU"),
    Case("ADD", [F, G], [F], "ADD", "AddOptions", {ACT: 3}, {"act": 3}),
    Case("SUB", [F, G], [F], "SUB TANH", "SubOptions", {ACT: 4}),
    Case("MUL", [q8(2, 3), q8(2, 3)], [q8(2, 3, scale=1.0)], "MUL", "MulOptions", {ACT: 1}, {"act": 1}),
    Case("DIV", [F, const(np.full((3, 4), 2.0), "float32")], [F], "DIV", "DivOptions", {ACT: 0}),
    Case("DIV", [I, const(np.full(4, 3))], [I], "TRUNC_DIV", "DivOptions"),
    Case("FLOOR_DIV", [I, const(np.full(4, -2))], [I], "FLOOR_DIV"),
    Case("FLOOR_MOD", [I, const(np.full(4, -3))], [I], "FLOOR_MOD"),
    Case("SELECT", [T("bool", (3, 4)), G, G], [G], "SELECT"),
    Case("SELECT", [T("bool", (3,)), G, G], [G], "RESHAPE WHERE"),
    Case("SELECT", [T("bool", (4,)), f32(4, 4), f32(4, 4)], [f32(4, 4)], "RESHAPE WHERE"),
    Case("SELECT", [const([True, False, True], "bool"), G, G], [G], "WHERE"),
    Case("SELECT_V2", [T("bool", (3, 1)), F, G], [F], "WHERE"),
]
REDUCE = [
    *(Case(n, [F, const([1, -1])], [f32(2, 1, 1) if k else f32(2)], node, "ReducerOptions", {"KeepDims": k},
           {"keep": k})
      for n, node in (("SUM", "REDUCE_SUM"), ("REDUCE_MAX", "REDUCE_MAX"), ("REDUCE_MIN", "REDUCE_MIN"),
                      ("MEAN", "MEAN"), ("REDUCE_PROD", "REDUCE_PROD")) for k in (False, True)),
    Case("REDUCE_ANY", [B, const([1])], [T("bool", (2,))], "REDUCE_ANY", "ReducerOptions"),
    Case("REDUCE_ALL", [B, const([0])], [T("bool", (3,))], "REDUCE_ALL", "ReducerOptions"),
    Case("SUM", [F, const(np.zeros(0))], [F], "", "ReducerOptions"),
    Case("MEAN", [F, const([0, 1, 2])], [T("float32", ())], "MEAN", "ReducerOptions"),
    Case("MEAN", [q8(1, 2, 2, 3), const([1, 2])], [q8(1, 3)], "MEAN", "ReducerOptions"),
    Case("MEAN", [q8(1, 2, 2, 3), const([1, 2])], [q8(1, 3, scale=0.25)], "host.MEAN", "ReducerOptions"),
    Case("ARG_MAX", [F, const([-1])], [i32(2, 3)], "ARGMAX", "ArgMaxOptions", {"OutputType": 2}, {"axis": -1}),
    Case("ARG_MIN", [F, const(np.array([1]), "int64")], [i32(2, 4)], "ARGMIN", "ArgMinOptions", {"OutputType": 2}),
    Case("ARG_MAX", [F, const([1])], [T("int64", (2, 4))], "ARGMAX", "ArgMaxOptions", {"OutputType": 4}),
    Case("TOPK_V2", [F, scalar(2)], [f32(2, 3, 2), i32(2, 3, 2)], "TOPK_FIRST", None, {}, {"k": 2}),
]
TYPES = [
    Case("CAST", [B], [f32(2, 3)], "CAST", "CastOptions", {"InDataType": 6, "OutDataType": 0}),
    Case("CAST", [F], [I], "CAST", "CastOptions"), Case("CAST", [I], [I], "", "CastOptions"),
    Case("CAST", [I], [T("uint8", (2, 3, 4))], "FLOOR_MOD CAST", "CastOptions"),
    Case("CAST", [I], [T("int8", (2, 3, 4))], "SUB FLOOR_MOD ADD CAST", "CastOptions"),
    Case("QUANTIZE", [F], [q8(2, 3, 4)], "QUANTIZE"), Case("DEQUANTIZE", [q8(2, 3)], [f32(2, 3)], "DEQUANTIZE"),
    Case("QUANTIZE", [q8(2, 3)], [q8(2, 3, scale=0.25, zero=3, dtype="uint8")], "REQUANTIZE"),
    Case("DEQUANTIZE", [T("float16", (2, 3))], [f32(2, 3)], "CAST"),
    *(Case("ONE_HOT", [i32(2, 3), scalar(4), scalar(2.0, "float32"), scalar(-1.0, "float32")],
           [f32(2, 3, 4) if a == -1 else f32(4, 2, 3)], "ONE_HOT_EX", "OneHotOptions", {"Axis": a},
           {"on": 2.0, "off": -1.0, "depth": 4, "axis": a}) for a in (-1, 0)),
    Case("ONE_HOT", [T("int32", ()), scalar(4), scalar(1.0, "float32"), scalar(0.0, "float32")], [f32(4)],
         "ONE_HOT_EX RESHAPE", "OneHotOptions", {"Axis": -1}),
]
SHAPES = [
    Case("RESHAPE", [F, const([6, -1])], [f32(6, 4)], "RESHAPE"),
    Case("RESHAPE", [F], [f32(4, 6)], "RESHAPE", "ReshapeOptions", {"NewShape": [4, -1]}),
    Case("RESHAPE", [f32(1, 1)], [T("float32", ())], "RESHAPE", "ReshapeOptions", {"NewShape": [0]}),
    Case("RESHAPE", [q8(2, 3), const([6])], [T("int8", (6,))], "RESHAPE"),
    Case("SQUEEZE", [f32(1, 3, 1)], [f32(1, 3)], "SQUEEZE", "SqueezeOptions", {"SqueezeDims": [-1]}),
    Case("SQUEEZE", [f32(1, 3, 1)], [f32(3)], "SQUEEZE", "SqueezeOptions"),
    Case("EXPAND_DIMS", [G, scalar(-1)], [f32(3, 4, 1)], "EXPAND_DIMS", None, {}, {"axis": -1}),
    Case("EXPAND_DIMS", [T("float32", ()), scalar(0)], [f32(1)], ""),
    Case("TRANSPOSE", [F, const([2, 0, 1])], [f32(4, 2, 3)], "TRANSPOSE"),
    Case("CONCATENATION", [G, G], [f32(3, 8)], "CONCATENATION RELU6", "ConcatenationOptions", {"Axis": -1, ACT: 3}),
    Case("PACK", [G, G], [f32(3, 4, 2)], "PACK_EX", "PackOptions", {"ValuesCount": 2, "Axis": -1},
         {"count": 2, "axis": -1}),
    Case("PACK", [T("float32", ())] * 3, [f32(3)], "CONCATENATION", "PackOptions", {"ValuesCount": 3}),
    Case("UNPACK", [G], [f32(4)] * 3, "UNPACK_EX", "UnpackOptions", {"Num": 3}, {"count": 3, "axis": 0}),
    Case("UNPACK", [f32(2)], [T("float32", ())] * 2, "RESHAPE UNPACK_EX", "UnpackOptions", {"Num": 2}),
    Case("SPLIT", [scalar(-1), F], [f32(2, 3, 2)] * 2, "SPLIT", "SplitOptions", {"NumSplits": 2}),
    Case("SPLIT_V", [F, const([1, -1]), scalar(2)], [f32(2, 3, 1), f32(2, 3, 3)], "SLICE SLICE", "SplitVOptions",
         {"NumSplits": 2}),
    Case("TILE", [G, const(np.array([2, 1]), "int64")], [f32(6, 4)], "TILE"),
    Case("BROADCAST_TO", [G, const([2, 3, 4])], [F], "BROADCAST_TO", version=3),
    Case("SHAPE", [F], [i32(3)], "", "ShapeOptions", {"OutType": 2}),
         Case("RANK", [T("float32", ())], [T("int32", ())], ""),
    Case("FILL", [const([2, 2]), scalar(1.5, "float32")], [f32(2, 2)], ""), Case("ZEROS_LIKE", [F], [F], ""),
    Case("RANGE", [scalar(1), scalar(7), scalar(2)], [i32(3)], ""),
    Case("BROADCAST_ARGS", [const([3, 1]), const([2, 1, 4])], [i32(3)], ""),
    Case("REVERSE_V2", [G, const([-1])], [G], "REVERSE"),
]
CUTS = [
    Case("SLICE", [F, const([0, 1, 1]), const([-1, 2, 2])], [f32(2, 2, 2)], "SLICE"),
    Case("STRIDED_SLICE", [F, const([0, 0, 1]), const([0, 0, 2]), const([1, 1, 1])], [f32(2, 3, 1)],
         "STRIDED_SLICE RESHAPE",
         "StridedSliceOptions", {"EllipsisMask": 1, "NewAxisMask": 2, "ShrinkAxisMask": 4}),
    Case("STRIDED_SLICE", [F, const([9, 1, 2]), const([2, 0, 3]), const([1, 2, 1])], [f32(2, 1)], "STRIDED_SLICE",
         "StridedSliceOptions", {"BeginMask": 1, "EndMask": 2, "ShrinkAxisMask": 4}),
    Case("STRIDED_SLICE", [G, const([-1, 3]), const([-4, 0]), const([-1, -2])], [f32(3, 2)], "STRIDED_SLICE",
         "StridedSliceOptions"),
    Case("STRIDED_SLICE", [G, const([-1]), const([0]), const([1])], [f32(4)], "STRIDED_SLICE", "StridedSliceOptions",
         {"ShrinkAxisMask": 1}),
    Case("STRIDED_SLICE", [G, const([2]), const([3]), const([1])], [f32(4)], "STRIDED_SLICE", "StridedSliceOptions",
         {"ShrinkAxisMask": 1, "BeginMask": 1}),
    Case("STRIDED_SLICE", [G, const([1, 1]), const([2, 2]), const([1, 1])], [f32(2, 2)], "STRIDED_SLICE",
         "StridedSliceOptions", {"Offset": True}),
    Case("STRIDED_SLICE", [G, const(np.array([0, 1]), "int64"), const(np.array([2**62, 2**62]), "int64"),
                           const(np.array([1, 1]), "int64")], [f32(3, 3)], "STRIDED_SLICE", "StridedSliceOptions"),
    Case("STRIDED_SLICE", [G, *(T("int32", (2,), fed=v) for v in ([1, 1], [3, 0])), const([1, 1])], [f32(2, 3)],
         "STRIDED_SLICE", "StridedSliceOptions", {"EndMask": 2}, {"end_mask": 2}),
    Case("PAD", [G, const([[1, 0], [0, 2]])], [f32(4, 6)], "PAD"),
    Case("PADV2", [G, const([[1, 0], [0, 2]]), scalar(7.0, "float32")], [f32(4, 6)], "PAD_V2", None, {},
         {"value": 7.0}),
    Case("MIRROR_PAD", [G, const([[1, 2], [0, 1]])], [f32(6, 5)], "MIRROR_PAD", "MirrorPadOptions", {"Mode": 1},
         {"mode": 1}),
]
GATHERS = [
    Case("GATHER", [F, const([[0, 2], [1, 1]])], [f32(2, 2, 4)], "GATHER_BATCHED", "GatherOptions",
         {"Axis": 1, "BatchDims": 1},
         {"axis": 1, "batch": 1}),
    Case("GATHER", [F, const([[0, 2, 1], [3, 1, 0]])], [f32(2, 3)], "GATHER_BATCHED", "GatherOptions",
         {"Axis": 2, "BatchDims": 2}, {"axis": 2, "batch": 2}),
    Case("GATHER", [F, const([2, 0])], [f32(2, 3, 2)], "GATHER", "GatherOptions", {"Axis": -1}, {"axis": 2}),
    Case("GATHER", [F, scalar(2)], [f32(2, 4)], "GATHER RESHAPE", "GatherOptions", {"Axis": 1}, {}),
    Case("GATHER", [F, const(np.array([1, 0]), "int64")], [F], "GATHER", "GatherOptions"),
    Case("GATHER", [F, T("int64", (2,), fed=[1, 0])], [F], "GATHER", "GatherOptions"),
    Case("GATHER_ND", [F, const([[0, 2], [1, 1]])], [f32(2, 4)], "GATHER_ND"),
    Case("EMBEDDING_LOOKUP", [const([2, 0]), G], [f32(2, 4)], "EMBEDDING_LOOKUP"),
    Case("SCATTER_ND", [const([[1], [3]]), f32(2, 2), const([4, 2])], [f32(4, 2)], "SCATTER_ND"),
]
X = f32(1, 5, 6, 4)
XQ = q8(1, 5, 6, 4, scale=0.5, zero=3)
CHANNEL = {"scale": [0.1, 0.2, 0.4], "zero": [0, 0, 0]}
STRIDES = {"StrideW": 1, "StrideH": 2}
MATRICES = [
    Case("CONV_2D", [X, weights(3, 3, 3, 4), weights(3)], [f32(1, 3, 6, 3)], "CONV_2D", "Conv2DOptions",
         STRIDES | {"Padding": 0, ACT: 1}, {"scheme": 1, "sh": 2, "sw": 1, "act": 1, "dw": 1}),
    Case("CONV_2D", [X, weights(3, 3, 3, 4)], [f32(1, 1, 4, 3)], "CONV_2D", "Conv2DOptions",
         STRIDES | {"Padding": 1, "DilationHFactor": 2}, {"scheme": 2, "dh": 2, "dw": 1}),
    Case("CONV_2D", [X, weights(6, 3, 3, 2), weights(6)], [f32(1, 3, 6, 6)], "GROUPED_CONV_2D", "Conv2DOptions",
         STRIDES,
         {"groups": 2}),
    Case("CONV_2D", [XQ, bytes_(3, 1, 1, 4, **CHANNEL), const([1, 2, 3], scale=[0.05, 0.1, 0.2], axis=3)],
         [q8(1, 3, 6, 3)], "CONV_2D", "Conv2DOptions", STRIDES),
    Case("CONV_2D", [X, bytes_(3, 1, 1, 4, **CHANNEL), weights(3)], [f32(1, 3, 6, 3)], "HYBRID_CONV_2D",
         "Conv2DOptions", STRIDES, {"asymmetric": True, "groups": 1}),
    Case("DEPTHWISE_CONV_2D", [X, weights(1, 3, 3, 8), weights(8)], [f32(1, 3, 6, 8)], "DEPTHWISE_CONV_2D",
         "DepthwiseConv2DOptions", STRIDES | {"DepthMultiplier": 0, ACT: 3}, {"mult": 2, "act": 3}),
    Case("FULLY_CONNECTED", [f32(2, 12), weights(3, 12), weights(3)], [f32(2, 3)], "FULLY_CONNECTED",
         "FullyConnectedOptions"),
    Case("FULLY_CONNECTED", [F, weights(5, 4), None], [f32(2, 3, 5)], "RESHAPE FULLY_CONNECTED RESHAPE",
         "FullyConnectedOptions",
         {"KeepNumDims": True}),
    Case("FULLY_CONNECTED", [F, weights(5, 12)], [f32(2, 5)], "RESHAPE FULLY_CONNECTED", "FullyConnectedOptions"),
    Case("TRANSPOSE_CONV", [const([1, 6, 6, 3]), weights(3, 3, 3, 4), f32(1, 3, 3, 4)], [f32(1, 6, 6, 3)],
         "TRANSPOSE_CONV_2D",
         "TransposeConvOptions", {"StrideW": 2, "StrideH": 2}, {"scheme": 1, "sw": 2}),
    Case("BATCH_MATMUL", [F, weights(5, 4)], [f32(2, 3, 5)], "MATMUL", "BatchMatMulOptions", {"AdjY": True},
         {"adj_x": False, "adj_y": True}),
]
U8 = q8(1, 5, 6, 4, scale=0.5, zero=100, dtype="uint8")
QUANTISED = [
    Case("CONV_2D", [U8, const(np.arange(108).reshape(3, 3, 3, 4), "uint8", scale=0.01, zero=50), const([9, -9, 99])],
         [q8(1, 3, 6, 3, scale=0.75, zero=120, dtype="uint8")], "CONV_2D", "Conv2DOptions", STRIDES | {ACT: 1}),
    Case("DEPTHWISE_CONV_2D", [XQ, bytes_(1, 3, 3, 4, scale=[0.1, 0.2, 0.4, 0.3], zero=[0] * 4, axis=3),
         const([1, 2, 3, 4])],
         [q8(1, 3, 6, 4)], "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", STRIDES, {"mult": 1}),
    Case("FULLY_CONNECTED", [q8(2, 12), bytes_(3, 12, **CHANNEL), const([1, 2, 3])], [q8(2, 3, zero=-5)],
         "FULLY_CONNECTED",
         "FullyConnectedOptions", {ACT: 1}),
    Case("TRANSPOSE_CONV", [const([1, 6, 6, 3]), bytes_(3, 3, 3, 4, **CHANNEL), q8(1, 3, 3, 4)], [q8(1, 6, 6, 3)],
         "TRANSPOSE_CONV_2D", "TransposeConvOptions", {"StrideW": 2, "StrideH": 2}),
    Case("ADD", [q8(2, 3), q8(2, 3, scale=0.25, zero=7)], [q8(2, 3, scale=0.8, zero=-3)], "ADD", "AddOptions"),
    Case("CONCATENATION", [q8(2, 3, dtype="uint8"), q8(2, 3, scale=0.25, zero=9, dtype="uint8")],
         [q8(4, 3, scale=0.3, zero=2, dtype="uint8")], "CONCATENATION", "ConcatenationOptions", {"Axis": 0}),
    Case("PAD", [XQ, const([[0, 0], [1, 1], [2, 0], [0, 0]])], [q8(1, 7, 8, 4, scale=0.5, zero=3)], "PAD"),
    Case("PRELU", [q8(2, 3), const([[3, -4, 5]], "int8", scale=0.1, zero=1)], [q8(2, 3)], "PRELU"),
    Case("HARD_SWISH", [q8(2, 3, scale=0.05, zero=4)], [q8(2, 3, scale=0.03, zero=-9)], "HARD_SWISH"),
    Case("EQUAL", [q8(2, 3), q8(2, 3, scale=0.25)], [T("bool", (2, 3))], "EQUAL"),
    Case("RESIZE_BILINEAR", [XQ, const([7, 9])], [q8(1, 7, 9, 4, scale=0.5, zero=3)], "RESIZE_BILINEAR",
         "ResizeBilinearOptions"),
    Case("AVERAGE_POOL_2D", [XQ], [q8(1, 3, 3, 4, scale=0.5, zero=3)], "AVERAGE_POOL_2D", "Pool2DOptions",
         {"StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 2}),
    Case("SPACE_TO_DEPTH", [q8(1, 4, 4, 1)], [q8(1, 2, 2, 4, scale=0.25, zero=9)], "SPACE_TO_DEPTH host.RESHAPE",
         "SpaceToDepthOptions", {"BlockSize": 2}),
    Case("SUM", [q8(2, 3, dtype="uint8"), const([1])], [q8(2, scale=0.25, dtype="uint8")], "REDUCE_SUM",
         "ReducerOptions"),
    Case("FULLY_CONNECTED", [f32(2, 12), const(np.arange(36).reshape(3, 12) % 13 - 6, "int4", scale=0.5, zero=0)],
         [f32(2, 3)], "HYBRID_FULLY_CONNECTED", "FullyConnectedOptions", {"AsymmetricQuantizeInputs": True},
         {"asymmetric": True}),
]
POOL = {"StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 2}
IMAGES = [
    *(Case(n, [X], [f32(1, 3, 3, 4)], n, "Pool2DOptions", POOL | {ACT: a}, {"kw": 3, "kh": 2, "scheme": 1, "act": a})
      for n, a in (("AVERAGE_POOL_2D", 0), ("MAX_POOL_2D", 1), ("L2_POOL_2D", 0))),
    Case("RESIZE_BILINEAR", [X, const([7, 9])], [f32(1, 7, 9, 4)], "RESIZE_BILINEAR", "ResizeBilinearOptions",
         {"HalfPixelCenters": True}, {"ow": 9, "oh": 7, "half": True, "align": False}),
    Case("RESIZE_NEAREST_NEIGHBOR", [X, const([7, 9])], [f32(1, 7, 9, 4)], "RESIZE_NEAREST_NEIGHBOR",
         "ResizeNearestNeighborOptions", {"AlignCorners": True}, {"ow": 9, "oh": 7, "align": True, "half": False}),
    Case("SPACE_TO_DEPTH", [f32(1, 4, 6, 2)], [f32(1, 2, 3, 8)], "SPACE_TO_DEPTH", "SpaceToDepthOptions",
         {"BlockSize": 2}),
    Case("DEPTH_TO_SPACE", [f32(1, 2, 3, 8)], [f32(1, 4, 6, 2)], "DEPTH_TO_SPACE", "DepthToSpaceOptions",
         {"BlockSize": 2}),
    Case("SPACE_TO_BATCH_ND", [X, const([2, 3]), const([[1, 0], [0, 0]])], [f32(6, 3, 2, 4)], "SPACE_TO_BATCH_ND"),
    Case("SPACE_TO_BATCH_ND", [f32(1, 5, 4), const([2]), const([[1, 0]])], [f32(2, 3, 4)],
         "RESHAPE SPACE_TO_BATCH_ND RESHAPE"),
    Case("BATCH_TO_SPACE_ND", [f32(4, 3, 2, 1), const([2, 2]), const([[1, 0], [0, 2]])], [f32(1, 5, 2, 1)],
         "BATCH_TO_SPACE_ND STRIDED_SLICE"),
    Case("LOCAL_RESPONSE_NORMALIZATION", [X], [X], "LOCAL_RESPONSE_NORMALIZATION", "LocalResponseNormalizationOptions",
         {"Radius": 1, "Bias": 1.0, "Alpha": 0.5, "Beta": 0.75},
         {"radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.75}),
]
CASES = [*UNARY, *BINARY, *REDUCE, *TYPES, *SHAPES, *CUTS, *GATHERS, *MATRICES, *IMAGES, *QUANTISED]
