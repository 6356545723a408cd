"""LiteRT's detections and audio features, MediaPipe's pools and landmarks."""
from __future__ import annotations

import struct

import numpy as np

from ....errors import FormatError, Unsupported
from ....graph import Value, Values
from ....ops import convert, custom_vision as v, detect, elementwise, shape
from ....types import F32, I32
from ..flexible import Options
from ..importer import Op
from ..registry import imports

#: `TfLitePoolParams`: padding, strides, sizes and a fused activation.
POOL = struct.Struct("<6i")


def real(g: Op, x: Value) -> Value:
    """A tensor as floats."""
    return x if x.type == F32 else g(convert.DEQUANTIZE, x, to=F32)


@imports("CUSTOM TFLite_Detection_PostProcess")
def detections(g: Op, deltas: Value, scores: Value, anchors: Value) -> Values:
    """A score counts from the threshold on, in NNAPI above it: the next smaller number says the same."""
    o, scores = Options(g.custom), real(g, scores)
    classes, most = o.whole("num_classes"), o.whole("max_classes_per_detection")
    if scores.shape[2] not in (classes, classes + 1):
        raise FormatError(f"has scores of {scores.shape[2]} classes, not of {classes} and the background")
    if scores.shape[2] == classes:
        none = g.build.full((*scores.shape[:2], 1), 0, scores.tensor)
        scores = g(shape.CONCATENATION, xs=(none, scores), axis=2)
    regular = o.flag("use_regular_nms", False)
    if most > classes and not regular:
        raise Unsupported(f"gives {most} classes per box of {classes} there are")
    least = float(np.nextafter(np.float32(o.real("nms_score_threshold")), np.float32(-np.inf)))
    row = detect.DETECTION_POSTPROCESSING if least >= 0 else v.DETECTIONS
    scales = (o.real(f"{side}_scale") for side in "yxhw")
    found = g.add(row, scores, real(g, deltas), real(g, anchors), *scales, regular, o.whole("max_detections"), most,
                  o.whole("detections_per_class", 100), least, o.real("nms_iou_threshold"), background=False)
    count = g(convert.CAST, found[3], to=F32)
    if most > 1 and not regular:
        count = g(elementwise.DIV, count, g.const([most], F32), act=0)
    g.ranked.add(count)
    return found[1], g(convert.CAST, found[2], to=F32), found[0], count


def pool(g: Op) -> tuple[int, int, int, int, int, int]:
    """Padding, stride width and height, filter width and height, fused activation."""
    if len(g.custom) < POOL.size:
        raise FormatError(f"has {len(g.custom)} bytes of options, not {POOL.size}")
    scheme, sw, sh, kw, kh, act = POOL.unpack_from(g.custom)
    return scheme, sw, sh, kw, kh, act


@imports("CUSTOM MaxPoolingWithArgmax2D")
def max_pooling_with_argmax(g: Op, x: Value) -> Values:
    return g.add(v.MAX_POOL_ARGMAX, x, *pool(g))


@imports("CUSTOM MaxUnpooling2D")
def max_unpooling(g: Op, x: Value, places: Value) -> Value:
    _, *sizes, _ = pool(g)
    return g(v.MAX_UNPOOL, x, places, *sizes)


@imports("CUSTOM TransformTensor")
@imports("CUSTOM TransformTensorBilinear")
def transform_tensor(g: Op, x: Value, matrix: Value) -> Value:
    """Version 1 has one size and looks at corners of cells, version 2 at their centres."""
    o = Options(g.custom)
    first = "output_size" in o
    sizes = o.wholes("output_size") if first else [o.whole("output_height"), o.whole("output_width")]
    if len(sizes) != 2:
        raise FormatError(f"has {len(sizes)} sizes, not two")
    return g(v.TRANSFORM_TENSOR, x, matrix, *sizes, centers=not first)


@imports("CUSTOM TransformLandmarks")
def transform_landmarks(g: Op, x: Value, matrix: Value) -> Value:
    """Version 1 has options, version 2 reads the dimensions off the points."""
    if len(x.shape) == 3:
        return g(v.TRANSFORM_LANDMARKS, x, matrix, dims=x.shape[2], scale=1.0)
    o = Options(g.custom)
    return g(v.TRANSFORM_LANDMARKS, x, matrix, dims=o.whole("dimensions"), scale=o.real("scale", 1.0))


@imports("CUSTOM Landmarks2TransformMatrix")
def landmarks_to_matrix(g: Op, x: Value) -> Value:
    o = Options(g.custom)
    left, right = o.whole("left_rotation_idx"), o.whole("right_rotation_idx")
    if "input_hw" not in o:
        return g(v.LANDMARKS_MATRIX_2, x, g.const(o.wholes("subset_idxs"), I32), left, right,
                 o.real("target_rotation_radians"), o.whole("output_height"), o.whole("output_width"),
                 o.real("scale_x"), o.real("scale_y"))
    sizes = [*o.wholes("input_hw"), *o.wholes("output_hw")]
    if len(sizes) != 4 or o.whole("dimensions") != 3:
        raise FormatError("takes points of three dimensions, and two sizes of an image")
    return g(v.LANDMARKS_MATRIX, x, g.const(o.wholes("subset"), I32), left, right, o.real("landmarks_range"),
             o.real("bbox_size_multiplier"), *sizes)


@imports("CUSTOM AudioSpectrogram")
def audio_spectrogram(g: Op, x: Value) -> Value:
    o = Options(g.custom)
    return g(v.AUDIO_SPECTROGRAM, x, o.whole("window_size"), o.whole("stride"), o.flag("magnitude_squared"))


@imports("CUSTOM Mfcc")
def mfcc(g: Op, x: Value, rate: Value) -> Value:
    o = Options(g.custom)
    return g(v.MFCC, x, rate, o.real("upper_frequency_limit"), o.real("lower_frequency_limit"),
             o.whole("filterbank_channel_count"), o.whole("dct_coefficient_count"))
