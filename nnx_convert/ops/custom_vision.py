"""Custom operators with public meaning: LiteRT's detections and audio features, MediaPipe's pools and landmarks."""
from __future__ import annotations

from typing import Annotated

from ..kinds import Act, Bool, Float, Int, Ints, Ints1, Natural, Positive, Scheme, T, rank, scheme_pads, window
from ..schema import Rule, host
from ..signature import Must
from ..types import F32, I32, Tensor, maybe, product
from .host import AnyT

REAL = {F32: 27}
Three = Annotated[AnyT, rank(3)]
Four = Annotated[T, rank(4)]
Some = Annotated[Float, Must("is positive", lambda v: v > 0)]

POINTS = Rule("left, right and subset are points of x", lambda x, left, right, subset:
              all(0 <= i < x.size // 3 for i in (left, right, *subset.ints())))


@host(60320, REAL, Rule("scores are of two classes or more", lambda scores: scores.shape[2] > 1),
      Rule("anchors are four per anchor", lambda scores, anchors: anchors.shape == (scores.shape[1], 4)),
      Rule("deltas are at least four per anchor", lambda scores, deltas:
           deltas.shape[:2] == scores.shape[:2] and deltas.shape[2] >= 4),
      outs=("scores_out", "boxes", "classes", "count"))
def DETECTIONS(scores: Annotated[T, rank(3)], deltas: Three, anchors: AnyT, y_scale: Some, x_scale: Some,
               h_scale: Some, w_scale: Some, regular: Bool, max_detections: Positive, max_classes: Positive,
               max_per_class: Positive, score_threshold: Float, iou_threshold: Float,
               background: Bool) -> tuple[T, AnyT, Ints, Ints]:
    """DETECTION_POSTPROCESSING with thresholds of any sign."""
    n, d = scores.shape[0], maybe(lambda: max_detections if regular else max_detections * max_classes)
    return scores.free((n, d)), scores.free((n, d, 4)), Tensor(I32, (n, d)), Tensor(I32, (n,))


@host(60321, REAL, outs=("out", "places"))
def MAX_POOL_ARGMAX(x: Four, scheme: Scheme, sw: Positive, sh: Positive, kw: Positive, kh: Positive,
                    act: Act) -> tuple[T, AnyT]:
    """MAX_POOL_2D, and each maximum's place in its window, counted by rows, plus 0.1."""
    sizes = zip(x.shape[1:3], (kh, kw), (sh, sw), strict=True)
    h, w = (window(n, k, stride, 1, scheme_pads(scheme, n, k, stride)) for n, k, stride in sizes)
    shape = (x.shape[0], h, w, x.shape[3])
    return x.free(shape), x.free(shape)


@host(60322, REAL, Rule("places has the shape of x", lambda x, places: x.shape == places.shape))
def MAX_UNPOOL(x: Four, places: AnyT, sw: Positive, sh: Positive, kw: Positive, kh: Positive) -> T:
    """Zeros, kh and kw times as large, with each x at its place in its window."""
    n, h, w, c = x.shape
    return x.free((n, h * kh, w * kw, c))


@host(60323, REAL, Rule("x is one image", lambda x: x.shape[0] == 1),
      Rule("matrix has two rows of four at least", lambda matrix: matrix.size >= 8))
def TRANSFORM_TENSOR(x: Four, matrix: AnyT, h: Positive, w: Positive, centers: Bool) -> T:
    """x at matrix * (column, row, 0, 1) for each place of an h by w image, bilinear, 0 outside."""
    return x.free((1, h, w, x.shape[3]))


@host(60324, REAL, Rule("x is points of two or three dimensions", lambda x, dims:
                        2 <= dims <= 3 and x.shape[-1] % dims == 0),
      Rule("matrix has two rows of four at least", lambda matrix: matrix.size >= 8))
def TRANSFORM_LANDMARKS(x: T, matrix: AnyT, dims: Int, scale: Float) -> T:
    """matrix * (x, y, 0, 1) of each point, what the matrix adds times scale; z stays."""
    return x.free(x.shape)


@host(60325, REAL, POINTS)
def LANDMARKS_MATRIX(x: T, subset: Ints1, left: Int, right: Int, span: Some, grow: Float, in_h: Positive,
                     in_w: Positive, out_h: Positive, out_w: Positive) -> T:
    """The transform of an out_h by out_w image onto the box of some points, turned like the line left to right."""
    return x.free((1, 4, 4))


@host(60326, REAL, POINTS)
def LANDMARKS_MATRIX_2(x: T, subset: Ints1, left: Int, right: Int, turn: Float, out_h: Positive, out_w: Positive,
                       scale_x: Some, scale_y: Some) -> T:
    """LANDMARKS_MATRIX in the points' own units, turned until the line has the angle turn."""
    return x.free((1, 4, 4))


@host(60330, REAL, Rule("x has a window of samples", lambda x, size: x.shape[0] >= size > 1))
def AUDIO_SPECTROGRAM(x: Annotated[T, rank(2)], size: Positive, stride: Positive, squared: Bool) -> T:
    """Per channel of x and window: the magnitudes of the Fourier transform under a Hann window, or their squares."""
    samples, channels = x.shape
    bins = maybe(lambda: (1 << (size - 1).bit_length()) // 2 + 1)
    return x.free((channels, (samples - size) // stride + 1, bins))


@host(60331, REAL, Rule("rate is one number", lambda rate: product(rate.shape) == 1),
      Rule("low and high are frequencies, in order", lambda low, high: 0 <= low < high),
      Rule("x has two bins or more", lambda x: x.shape[2] > 1))
def MFCC(x: Annotated[T, rank(3)], rate: Ints1, high: Float, low: Float, channels: Positive, count: Natural) -> T:
    """The first count cosine coefficients of the logarithms of channels mel bands of squared magnitudes x."""
    return x.free((*x.shape[:2], count))
