"""Cases of what moves, picks, joins, cuts, reduces and converts."""
from __future__ import annotations

import numpy as np
from row_case import BYTES, FLOATS, Case, X, c

from nnx_convert.types import F32, I32, Quant

REDUCED = [((2, 3, 4), [1]), ((2, 3, 4), [0, -1]), ((4, 3), [0, 1]), ((5,), [0]), ((2, 3, 2, 5), [1, 2]),
           ((2, 3, 4), [1, 1, -2])]
EMPTY = [((0, 3), [1]), ((2, 0, 3), [2])]
KEPT = ("REDUCE_SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY")
DROPPED = ("REDUCE_MAX_EX", "REDUCE_MIN_EX", "REDUCE_SUM_EX")
SEARCHED = [((2, 5), 1), ((2, 3, 4), -2), ((7,), 0), ((2, 2, 3, 2, 2), 2), ((0, 3), 1)]
#: Equal elements, of every type that is searched.
TIES = X(values=[[3, 1, 3, 2, 3], [1, 1, 1, 1, 1], [0, 2, 1, 2, 0]])
SHAPES = [(5,), (2, 3), (2, 3, 4), (1, 2, 3, 4)]
CUTS = [([0, 0], [2, 3]), ([1, 2], [1, -1]), ([0, 0], [-1, -1]), ([2, 1], [2, 0])]
GATHERED = [((4, 3), 0, [2, 0, 2]), ((4, 3), -1, [[0, 1], [2, 2]]), ((2, 3, 4), 1, [1]), ((5,), 0, [4, 4, 0, 1])]
NUMBERS = [0.0, -0.5, 0.5, 1.5, -1.5, 2.5, 254.6, 255.4, 300.0, -7.9, 127.5, -128.5]

CASES: list[Case] = [
    *(c("MEAN", x=x, axes=axes, keep=keep) for x, axes in [*REDUCED, *EMPTY] for keep in (0, 1)),
    *(c(op, x=x, axes=axes, keep=keep) for op in KEPT for x, axes in [*REDUCED, *EMPTY] for keep in (False, True)),
    *(c(op, x=x, axes=axes) for op in DROPPED for x, axes in [*REDUCED, *EMPTY]),
    *(c(op, x=x, axis=axis) for op in ("ARGMAX", "ARGMIN", "ARGMAX_EX") for x, axis in SEARCHED),
    *(c(op, x=TIES, axis=axis) for op in ("ARGMAX", "ARGMIN", "ARGMAX_EX") for axis in (0, 1)),
    *(c(op, x=x, k=k) for op in ("TOPK_V2", "TOPK_V2_EX") for x, k in [
        ((2, 5), 3), ((7,), 7), ((2, 3, 4), 1), ((0, 3), 2), (TIES, 4), (TIES, 0)]),
    *(c("RESHAPE", x=x, shape=to) for x, to in [((2, 6), [3, 4]), ((2, 6), [-1, 2, 2]), ((12,), [1, 12]),
                                                ((2, 3, 2), [-1])]),
    *(c("TRANSPOSE", x=x, perm=perm) for x, perm in [((2, 3), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 3), None),
                                                     ((1, 2, 3, 4), [3, 1, 0, 2]), ((0, 3), [1, 0]), ((4,), [0])]),
    *(c("SQUEEZE", x=x, dims=dims) for x, dims in [((1, 3, 1, 2), None), ((1, 3, 1, 2), [0]), ((1, 3, 1, 2), [-2]),
                                                   ((1, 1), None)]),
    *(c("EXPAND_DIMS", x=x, axis=axis) for x in SHAPES for axis in (0, 1, -1)),
    c("CONCATENATION", xs=[(2, 3), (2, 1), (2, 4)], axis=1),
    c("CONCATENATION", xs=[(2, 3), (1, 3)], axis=0), c("CONCATENATION", same=True, xs=[(2, 2, 3), (2, 2, 3)], axis=2),
    c("CONCATENATION", xs=[(1, 2, 2, 3)], axis=3), c("CONCATENATION", xs=[(0, 3), (2, 3)], axis=0),
    *(c("PACK", same=True, axis=axis, xs=[(2, 3)] * 3) for axis in (0, 1, 2)),
    *(c("PACK_EX", same=True, xs=[(2, 3)] * 3, count=3, axis=axis) for axis in (0, 2, -1, -3)),
    *(c(op, x=x, axis=axis, count=n) for op in ("SPLIT", "SPLIT_EX") for x, axis, n in [
        ((6, 2), 0, 3), ((2, 6), -1, 2), ((2, 3, 4), 1, 1), ((0, 4), 1, 2)]),
    *(c("UNPACK_EX", x=x, count=n, axis=axis) for x, n, axis in [((3, 2), 3, 0), ((2, 3, 4), 4, -1), ((2, 3, 4), 3, 1),
                                                                 ((4,), 4, 0)]),
    *(c("SLICE", x=(4, 3), begin=begin, size=size) for begin, size in CUTS),
    c("SLICE", x=(2, 3, 2, 3, 2), begin=[0, 1, 0, 2, 1], size=[2, 1, -1, 1, 1]),
    *(c("STRIDED_SLICE", x=(4, 5), begin=b, end=e, strides=s, begin_mask=bm, end_mask=em, shrink_mask=sm)
      for b, e, s, bm, em, sm in [
          ([0, 0], [4, 5], [1, 2], 0, 0, 0), ([3, 4], [0, 0], [-1, -2], 0, 0, 0), ([1, -2], [2, 5], [1, 1], 0, 0, 1),
          ([9, 9], [0, 0], [1, 1], 3, 3, 0), ([-9, -9], [9, 9], [3, 2], 0, 0, 0), ([3, 1], [1, 2], [1, 1], 0, 0, 0)]),
    *(c("PAD", x=x, paddings=p) for x, p in [((2, 3), [[1, 0], [0, 2]]), ((3,), [[2, 2]]),
                                             ((1, 2, 2, 1), [[0, 0], [1, 1], [2, 0], [0, 1]]),
                                             ((0, 2), [[1, 1], [0, 1]])]),
    *(c("PAD_V2", x=(2, 3), paddings=[[1, 0], [0, 2]], value=value) for value in (0, 3, 9)),
    *(c("MIRROR_PAD", x=(3, 4), paddings=p, mode=mode) for p, mode in [([[2, 1], [0, 3]], 0), ([[3, 1], [0, 4]], 1),
                                                                      ([[0, 0], [0, 0]], 0)]),
    *(c("TILE", x=x, multiples=m) for x, m in [((2, 3), [2, 1]), ((2,), [3]), ((1, 2, 2), [2, 2, 2]),
                                               ((2, 3), [0, 2])]),
    *(c("REVERSE", x=x, axis=axis) for x, axis in [((4,), [0]), ((2, 3, 4), [1]), ((2, 3, 4), [2]), ((0, 2), [1])]),
    *(c("CHANNEL_SHUFFLE", x=x, groups=g, axis=axis) for x, g, axis in [((2, 6), 3, 1), ((1, 2, 2, 8), 2, -1),
                                                                       ((6, 2), 2, 0), ((4,), 4, 0)]),
    *(c("FILL", dims=dims, value=value) for dims in ([2, 3], [4], [0, 2]) for value in (0, 3, -7)),
    *(c("RANK", x=x) for x in SHAPES), c("RANK", x=(1, 1, 2, 1, 2)),
    *(c("GATHER", x=x, axis=axis, indices=i) for x, axis, i in GATHERED),
    *(c("GATHER_EX", x=x, indices=i, axis=axis) for x, axis, i in GATHERED),
    *(c("EMBEDDING_LOOKUP", lookups=[2, 0, 2], values=x) for x in [(3, 2), (4, 2, 3)]),
    *(c("HASHTABLE_LOOKUP", lookups=[4, 7, 123, -5], keys=[-5, 4, 123], values=x) for x in [(3, 2), (3,), (3, 2, 2)]),
    *(c("CAST", x=x) for x in [(7,), (2, 3, 4), (0, 2)]),
    c("CAST", only=FLOATS, x=X(values=[0.0, -0.5, 1.9, -1.9, 250.5, 0.25])),
    *(c("CAST_EX", x=x) for x in [(7,), (2, 3, 4), (0, 2)]),
    *(c("QUANTIZE", x=x) for x in [(30,), (2, 3, 4), (0, 2), X(values=NUMBERS)]),
    c("QUANTIZE", out=(Quant(1.0, 0),), x=X(values=NUMBERS)),
    *(c("DEQUANTIZE", x=x) for x in [(30,), (3, 3, 4), (2, 2, 2, 3)]), c("DEQUANTIZE", only=BYTES, x=(0, 3)),
    *(c("ONE_HOT_EX", indices=X(shape, span=(-1, 4)), depth=4, on=3, off=-1, axis=axis) for shape in [(3,), (2, 3)]
      for axis in (-1, 0, 1)),
    c("ONE_HOT_EX", indices=(2, 3), depth=3, on=1, off=0),
    c("ONE_HOT_EX", indices=(4,), depth=3, on=1, off=0, axis=None),
    *(c("TRANSPOSE_CONV_EX", shape=[2, h, w, 4], w=(4, 3, 2, 3), x=(2, 4, 3, 3), scheme=scheme, sw=2, sh=3)
      for scheme, h, w in [(1, 12, 6), (1, 10, 5), (2, 12, 6)]),
    # Without elements.
    c("RESHAPE", x=(0, 4), shape=[2, 0]), c("SQUEEZE", x=(1, 0), dims=[0]), c("EXPAND_DIMS", x=(0, 3), axis=1),
    c("SLICE", x=(0, 3), begin=[0, 1], size=[0, 2]), c("PAD_V2", x=(0, 2), paddings=[[1, 0], [0, 1]], value=3),
    c("STRIDED_SLICE", x=(0, 3), begin=[0, 0], end=[0, 3], strides=[1, 2], begin_mask=0, end_mask=0, shrink_mask=0),
    c("MIRROR_PAD", x=(0, 3), paddings=[[0, 0], [1, 2]], mode=1), c("CHANNEL_SHUFFLE", x=(0, 4), groups=2, axis=1),
    c("GATHER", x=(0, 3), axis=1, indices=[2]), c("GATHER_EX", x=(0, 3), indices=[2], axis=1), c("RANK", x=(0, 2)),
    c("EMBEDDING_LOOKUP", lookups=[1], values=(3, 0)), c("HASHTABLE_LOOKUP", lookups=[1], keys=[1, 2], values=(2, 0)),
    c("PACK", same=True, axis=1, xs=[(0, 3)] * 2), c("PACK_EX", same=True, xs=[(0, 3)] * 2, count=2, axis=0),
    c("UNPACK_EX", x=(2, 0), count=2, axis=0), c("ONE_HOT_EX", indices=(0, 2), depth=3, on=1, off=0),
    c("TRANSPOSE_CONV_EX", shape=[0, 4, 4, 2], w=(2, 1, 1, 3), x=(0, 2, 2, 3), scheme=1, sw=2, sh=2),
    # Numbers that are no float32.
    c("ARGMAX", only=(I32, F32), x=X(values=np.array([[2 ** 30, -2 ** 30], [-2 ** 30, 2 ** 30]])), axis=0),
]
