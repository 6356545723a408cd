"""Diagonals, windows, segments, elements by their index: operators that the host's operations were made for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tflite

from ....errors import Unsupported
from ....graph import Value, Values
from ....ops import host_arrays as h
from ....schema import OpDef
from ....types import F32
from ..importer import Op
from ..registry import imports
from .common import activated, axis_of, index
from .conv import scheme


@imports()
def UNIQUE(g: Op, x: Value) -> Values:
    return g.add(h.UNIQUE, x)


@imports()
def MATRIX_DIAG(g: Op, x: Value) -> Value:
    return g(h.MATRIX_DIAG, x)


@imports()
def MATRIX_SET_DIAG(g: Op, x: Value, diagonal: Value) -> Value:
    return g(h.MATRIX_SET_DIAG, x, diagonal)


@imports()
def REVERSE_SEQUENCE(g: Op, o: tflite.ReverseSequenceOptions, x: Value, lengths: Value) -> Value:
    axis, batch = (axis_of(a, len(x.shape)) for a in (o.SeqDim(), o.BatchDim()))
    return g(h.REVERSE_SEQUENCE, x, index(g, lengths), axis=axis, batch=batch)


@imports()
def DYNAMIC_UPDATE_SLICE(g: Op, x: Value, update: Value, start: Value) -> Value:
    return g(h.DYNAMIC_UPDATE_SLICE, x, update, index(g, start))


@imports()
def DILATE(g: Op, x: Value, dilations: Value, value: Value) -> Value:
    return g(h.DILATE, x, index(g, dilations), value)


@imports()
def REDUCE_WINDOW(g: Op, o: tflite.ReduceWindowOptions, x: Value, start: Value, size: Value, strides: Value,
                  dilations: Value) -> Value:
    return g(h.REDUCE_WINDOW, x, start, *(index(g, v) for v in (size, strides, dilations)),
             function=o.ReduceFunction())


@imports()
def SPARSE_TO_DENSE(g: Op, indices: Value, size: Value, values: Value, default: Value) -> Value:
    """TFLite, too, does not look whether the indices ascend."""
    return g(h.SPARSE_TO_DENSE, index(g, indices), index(g, size), values, default)


@imports()
def EMBEDDING_LOOKUP_SPARSE(g: Op, o: tflite.EmbeddingLookupSparseOptions, lookups: Value, indices: Value,
                            size: Value, weights: Value, values: Value) -> Value:
    lookups, indices, size = (index(g, v) for v in (lookups, indices, size))
    return g(h.EMBEDDING_LOOKUP_SPARSE, lookups, indices, size, weights, values, combiner=o.Combiner())


def segments(op: OpDef) -> Callable[..., Any]:
    """The importer of a reduction by segments that come in any order."""
    def importer(g: Op, x: Value, ids: Value, count: Value) -> Value:
        return g(op, x, index(g, ids), index(g, count))
    return importer


for op_ in (h.UNSORTED_SEGMENT_SUM, h.UNSORTED_SEGMENT_PROD, h.UNSORTED_SEGMENT_MAX, h.UNSORTED_SEGMENT_MIN):
    imports(op_.name)(segments(op_))


@imports()
def CONV_3D_TRANSPOSE(g: Op, o: tflite.Conv3DOptions, size: Value, w: Value, x: Value,
                      b: Value | None = None) -> Value:
    if (o.DilationDFactor(), o.DilationHFactor(), o.DilationWFactor()) != (1, 1, 1):
        raise Unsupported("a dilation in three dimensions, transposed")
    return activated(g, o.FusedActivationFunction(), lambda act: g(
        h.CONV_3D_TRANSPOSE, index(g, size), w, x, b, scheme=scheme(o.Padding()), sd=o.StrideD(), sh=o.StrideH(),
        sw=o.StrideW(), act=act))


@imports()
def NON_MAX_SUPPRESSION_V5(g: Op, boxes: Value, scores: Value, most: Value, iou_threshold: Value,
                           score_threshold: Value, sigma: Value) -> Values:
    return g.add(h.NON_MAX_SUPPRESSION, boxes, scores, index(g, most), iou_threshold, score_threshold, sigma)


@imports()
def NON_MAX_SUPPRESSION_V4(g: Op, boxes: Value, scores: Value, most: Value, iou_threshold: Value,
                           score_threshold: Value) -> tuple[Value, Value]:
    """The fifth version without fading and without the scores."""
    indices, _, count = NON_MAX_SUPPRESSION_V5(g, boxes, scores, most, iou_threshold, score_threshold,
                                               g.const([0.0], F32))
    return indices, count


@imports()
def SKIP_GRAM(g: Op, o: tflite.SkipGramOptions, x: Value) -> Value:
    return g(h.SKIP_GRAM, x, size=o.NgramSize(), skip=o.MaxSkipSize(), every=o.IncludeAllNgrams())
