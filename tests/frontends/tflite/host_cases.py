"""The importers' cases of operators that NNAPI has no operation for, or not for computed arguments."""
from __future__ import annotations

from typing import Any

import numpy as np

from .cases import B, STRIDES, F, G, I, L, X, f32, i32, same, scalar, weights
from .one_operator import Case, T, const, q8

C = T("complex64", (2, 3))
ROW, ROWS = const([0.5, -1.0, 3.0], "float32"), const([[0.5, -1.0], [3.0, 2.0], [1.0, 1.0]], "float32")
OPEN = T("float32", (2, 3), signature=(-1, 3))
BOXES = const([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 0.9, 0, -0.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
              "float32")
SCORES = const([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], "float32")


def boxes(version: int, most: int, iou: float, least: float, *sigma: float) -> Case:
    """Non-maximum suppression of the same six boxes."""
    numbers = [scalar(v, "float32") for v in (iou, least, *sigma)]
    outs = [i32(most), *[f32(most)] * len(sigma), T("int32", ())]
    corners = T("float32", (6, 4), fed=BOXES.data)
    return Case(f"NON_MAX_SUPPRESSION_V{version}", [corners, SCORES, scalar(most), *numbers], outs,
                "NON_MAX_SUPPRESSION")


def codes(dtype: str, zero: int) -> Any:
    """Every byte but the zero point, which LiteRT divides into the least byte."""
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    return np.where(every == zero, zero + 1, every).reshape(16, 16)


MATH = [
    same("ATAN2", "ATAN2", F, 2),
    same("SIGN"), same("SIGN", x=I), *(same(n, n, x, 2) for n in ("BITWISE_XOR", "RIGHT_SHIFT")
                                       for x in (I, T("int8", (2, 3)), T("uint8", (2, 3)), T("int16", (2, 3)))),
    Case("RIGHT_SHIFT", [I, const([0, 1, 31, 40])], [I], "RIGHT_SHIFT"),
    Case("GELU", [F], [F], "GELU", "GeluOptions", {"Approximate": False}, {"approximate": False}),
    Case("GELU", [F], [F], "GELU", "GeluOptions", {"Approximate": True}, {"approximate": True}),
    *(Case("GELU", [q8(16, 16, dtype=d, scale=0.05, zero=9)], [q8(16, 16, dtype=d, scale=0.02, zero=20)], "GELU",
           "GeluOptions", {"Approximate": a}) for d in ("int8", "uint8") for a in (False, True)),
    *(Case("GELU", [T("int16", (8, 8), None, 2 / 32768, 0)], [T("int16", (8, 8), None, 1.5 / 32768, 0)], "GELU",
           "GeluOptions", {"Approximate": a}) for a in (False, True)),
    *(Case("DIV", [T(d, (16, 16), None, 0.05, z, fed=codes(d, z)), const(z + 1 + np.arange(16), d, scale=0.03, zero=z)],
           [q8(16, 16, dtype=d, scale=0.07, zero=z)], "DIV", "DivOptions", {"FusedActivationFunction": a})
      for d, z in (("int8", -7), ("uint8", 120)) for a in (0, 1)),
    *(Case("BUCKETIZE", [x], [i32(2, 3, 4)], "BUCKETIZE", "BucketizeOptions", {"Boundaries": [-2.0, -1.0, 0.5, 3.0]})
      for x in (F, I, L)),
    *(Case("CUMSUM", [x, scalar(-2)], [x], "CUMSUM", "CumsumOptions", {"Exclusive": e, "Reverse": v}, {"axis": 1})
      for x in (F, I, L) for e in (False, True) for v in (False, True)),
    Case("BITCAST", [F], [I], "BITCAST"), Case("BITCAST", [F], [T("uint8", (2, 3, 4, 4))], "BITCAST"),
    Case("BITCAST", [T("int16", (3, 2))], [i32(3)], "BITCAST"), Case("REAL", [C], [f32(2, 3)], "REAL"),
    Case("IMAG", [C], [f32(2, 3)], "IMAG"), Case("COMPLEX_ABS", [C], [f32(2, 3)], "COMPLEX_ABS"),
    *(Case(n, [const([3, 5])], [f32(3, 5)], n, "RandomOptions", {"Seed": 7, "Seed2": -9})
      for n in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")),
    *(Case("FAKE_QUANT", [F], [F], "FAKE_QUANT", "FakeQuantOptions", {"Min": low, "Max": 3.0, "NumBits": n,
                                                                     "NarrowRange": narrow}, {"narrow": narrow})
      for low, n, narrow in ((-1.5, 4, False), (-1.5, 4, True), (0.5, 8, False), (-2.0, 16, False), (-2.0, 8, True))),
]
ARRAYS = [
    Case("UNIQUE", [T("int32", (5,), fed=[3, 1, 3, 2, 1])], [T("int32", (3,), signature=(-1,)), i32(5)], "UNIQUE",
         "UniqueOptions", {"IdxOutType": 2}),
    Case("UNIQUE", [const([0.5, 0.5, -1.0], "float32")], [f32(2), T("int64", (3,))], "UNIQUE", "UniqueOptions",
         {"IdxOutType": 4}),
    *(Case("MATRIX_DIAG", [T(kind, shape)], [T(kind, (*shape, shape[-1]))], "MATRIX_DIAG")
      for kind, shape in (("float32", (3, 4)), ("int32", (3,)))),
    Case("MATRIX_SET_DIAG", [F, f32(2, 3)], [F], "MATRIX_SET_DIAG"),
    Case("MATRIX_SET_DIAG", [T("int64", (4, 2)), T("int64", (2,))], [T("int64", (4, 2))], "MATRIX_SET_DIAG"),
    Case("REVERSE_SEQUENCE", [F, const([2, 3])], [F], "REVERSE_SEQUENCE", "ReverseSequenceOptions",
         {"SeqDim": 1, "BatchDim": 0}, {"axis": 1, "batch": 0}),
    Case("REVERSE_SEQUENCE", [F, const([1, 2, 0, 1], "int64")], [F], "REVERSE_SEQUENCE", "ReverseSequenceOptions",
         {"SeqDim": 0, "BatchDim": 2}),
    *(Case("DYNAMIC_UPDATE_SLICE", [x, T(x.dtype, (1, 2)), const(s)], [x], "DYNAMIC_UPDATE_SLICE")
      for x in (G, T("int32", (3, 4)), T("int8", (3, 4))) for s in ([1, 1], [2, 3], [-1, 9])),
    Case("DILATE", [G, const([2, 3]), scalar(-1.0, "float32")], [f32(5, 10)], "DILATE"),
    Case("DILATE", [T("int32", (3, 4)), const([1, 2]), scalar(7)], [i32(3, 7)], "DILATE"),
    *(Case("REDUCE_WINDOW", [X, scalar(start, "float32"), const([1, 2, 3, 1], "int64"), const([1, 2, 1, 1], "int64"),
                             const([1, 1, 2, 1], "int64")], [f32(1, 2, 2, 4)], "REDUCE_WINDOW", "ReduceWindowOptions",
           {"ReduceFunction": f}, {"function": f}) for f, start in ((1, 0.0), (2, 1.0), (3, 9.0), (4, -9.0))),
    Case("REDUCE_WINDOW", [X, scalar(np.finfo(np.float32).min, "float32"), const([1, 2, 3, 1], "int64"),
                           const([1, 2, 1, 1], "int64"), const([1, 1, 1, 1], "int64")], [f32(1, 2, 4, 4)],
         "REDUCE_WINDOW", "ReduceWindowOptions", {"ReduceFunction": 4}),
    *(Case("REDUCE_WINDOW", [B, scalar(start, "bool"), *(const(v, "int64") for v in ([1, 2], [1, 1], [1, 1]))],
           [T("bool", (2, 2))], "REDUCE_WINDOW", "ReduceWindowOptions", {"ReduceFunction": f})
      for f, start in ((5, True), (6, False))),
    *(Case("SPARSE_TO_DENSE", [at, const(size), values, scalar(-1.0, "float32")], [f32(*size)], "SPARSE_TO_DENSE",
           "SparseToDenseOptions")
      for at, size, values in ((scalar(2), [4], T("float32", ())), (const([0, 2, 3]), [5], f32(3)),
                               (const([[0, 1], [2, 2], [1, 0]]), [3, 4], f32(3)),
                               (const([[0, 1], [2, 2]], "int64"), [3, 4], scalar(8.0, "float32")))),
    *(Case("EMBEDDING_LOOKUP_SPARSE", [const([1, 3, 0]), const([[0, 0], [2, 0], [2, 1]]), const([3, 2]),
                                       T("float32", (3,), fed=[0.5, 2, 3]), weights(4, 3, 2)], [f32(3, 3, 2)],
           "EMBEDDING_LOOKUP_SPARSE", "EmbeddingLookupSparseOptions", {"Combiner": c}, {"combiner": c})
      for c in range(3)),
    *(Case(f"UNSORTED_SEGMENT_{n}", [x, const([2, 0]), scalar(4)], [T(x.dtype, (4, 3, 4))], f"UNSORTED_SEGMENT_{n}")
      for n in ("SUM", "PROD", "MAX", "MIN") for x in (F, I)),
    Case("UNSORTED_SEGMENT_SUM", [F, const([[2, -1, 0], [0, 2, 2]]), scalar(3)], [f32(3, 4)], "UNSORTED_SEGMENT_SUM"),
    *(Case("CONV_3D_TRANSPOSE", [const(size), weights(2, 3, 2, 3, 2), f32(1, 2, 3, 3, 2), weights(3)], [f32(*size)],
           "CONV_3D_TRANSPOSE", "Conv3DOptions", {"Padding": p, "StrideD": 1, "StrideH": 2, "StrideW": 2,
                                                  "FusedActivationFunction": 1, "DilationDFactor": 1,
                                                  "DilationHFactor": 1, "DilationWFactor": 1})
      for p, size in ((0, (1, 2, 6, 6, 3)), (0, (1, 2, 5, 6, 3)), (1, (1, 3, 7, 6, 3)))),
    *(Case("CONV_3D", [f32(1, 4, 5, 6, 2), weights(2, 2, 2, 2, 3), weights(3)], [f32(*size)], "CONV_3D",
           "Conv3DOptions", {"Padding": p, "StrideD": 1, "StrideH": 1, "StrideW": 1, "DilationDFactor": 2,
                             "DilationHFactor": 1, "DilationWFactor": 3}, {"dd": 2, "dw": 3})
      for p, size in ((0, (1, 4, 5, 6, 3)), (1, (1, 2, 4, 3, 3)))),
    Case("CONV_2D", [X, weights(6, 3, 3, 2), weights(6)], [f32(1, 3, 6, 6)], "SPLIT CONV_2D CONV_2D CONCATENATION",
         "Conv2DOptions", STRIDES | {"DilationHFactor": 2, "DilationWFactor": 2}, {"dw": 2, "dh": 2}),
    boxes(4, 6, 0.5, 0.0), boxes(4, 2, 0.5, 0.0), boxes(4, 6, 0.5, 0.55), boxes(4, 6, 1.0, 0.0),
    boxes(5, 6, 0.5, 0.0, 0.0), boxes(5, 6, 1.0, 0.0, 0.5), boxes(5, 6, 0.9, 0.3, 0.7),
    *(Case("LSH_PROJECTION", [const(np.sin(np.arange(6)).reshape(2, 3), "float32"), T("int32", (4, 2)), *weight],
           [i32(n)], "LSH_PROJECTION", "LSHProjectionOptions", {"Type": t}, {"type": found})
      for t, found, n in ((1, 3, 2), (2, 2, 6)) for weight in ([], [weights(4)])),
    Case("WHERE", [B], [T("int64", (1, 2), signature=(-1, 2))], "NON_ZERO"),
    Case("RFFT2D", [T("float32", (2, 4, 8)), const([4, 8])], [T("complex64", (2, 4, 5))], "RFFT"),
    Case("RFFT2D", [T("float32", (4, 8)), const([2, 4])], [T("complex64", (2, 3))], "RFFT"),
    *(Case("SEGMENT_SUM", [x, const([0, 1])], [T(x.dtype, (2, 3, 4))], "SEGMENT_SUM") for x in (F, I)),
    Case("HASHTABLE_LOOKUP", [T("int32", (3,), fed=[5, 9, 1]), const([1, 5, 7]), ROWS], [f32(3, 2), T("uint8", (3,))],
         "HASHTABLE_LOOKUP"),
]

COMPUTED = [
    Case("MULTINOMIAL", [f32(2, 5), scalar(7)], [i32(2, 7)], "RANDOM_MULTINOMIAL", "RandomOptions",
         {"Seed": 3, "Seed2": 4}, {"samples": 7}),
    Case("SHAPE", [OPEN], [i32(2)], "SHAPE", "ShapeOptions", {"OutType": 2}),
    Case("ZEROS_LIKE", [OPEN], [OPEN], "SHAPE BROADCAST_TO"),
    Case("TOPK_V2", [F, T("int32", (), fed=2)],
         [T("float32", (2, 3, 1), signature=(2, 3, -1)), T("int32", (2, 3, 1), signature=(2, 3, -1))], "TOPK"),
    Case("RANGE", [T("int32", (), fed=v) for v in (9, 1, -3)], [T("int32", (1,), signature=(-1,))], "RANGE"),
    Case("RANGE", [T("float32", (), fed=v) for v in (0.0, 3.0, 0.1)], [T("float32", (1,), signature=(-1,))], "RANGE"),
    *(Case(n, [X, T("int32", (2,), fed=[7, 4])], [T("float32", (1, 7, 4, 4), signature=(1, -1, -1, 4))], "RESIZE",
           o, {"AlignCorners": a, "HalfPixelCenters": h}, {"align": a, "half": h})
      for n, o in (("RESIZE_BILINEAR", "ResizeBilinearOptions"),
                   ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"))
      for a, h in ((False, False), (True, False), (False, True))),
    Case("FILL", [const([2, 3]), T("float32", ())], [f32(2, 3)], "BROADCAST_TO"),
    Case("BROADCAST_ARGS", [T("int32", (2,), fed=v) for v in ([1, 3], [2, 1])], [i32(2)], "EQUAL SELECT"),
    Case("STRIDED_SLICE", [F, *(T("int32", (2,), fed=v) for v in ([0, 1], [0, 3])), const([1, 1])],
         [T("float32", (2, 3, 1), signature=(2, 3, -1))], "GATHER GATHER STRIDED_SLICE", "StridedSliceOptions",
         {"EllipsisMask": 1}, {"begin_mask": 3, "end_mask": 3}),
    Case("STRIDED_SLICE", [F, *(T("int32", (3,), fed=v) for v in ([0, 1, 1], [1, 2, 0])), const([1, 1, 1])],
         [T("float32", (1, 2, 4), signature=(1, -1, 4))], "GATHER GATHER STRIDED_SLICE RESHAPE", "StridedSliceOptions",
         {"NewAxisMask": 1, "ShrinkAxisMask": 2, "EndMask": 4}),
    Case("STRIDED_SLICE", [F, *(T("int32", (3,), fed=v) for v in ([0, 1, 1], [1, 1, 2])), const([1, 1, 1])],
         [T("float32", (1, 1, 2), signature=(-1, -1, -1))], "ADD STRIDED_SLICE", "StridedSliceOptions",
         {"Offset": True}),
]
HOST = [*MATH, *ARRAYS, *COMPUTED]
