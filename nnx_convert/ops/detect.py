"""Detection and regions of interest. Boxes are [x1, y1, x2, y2]; how many come out execution decides."""
from __future__ import annotations

from typing import Annotated

from ..kinds import (
    EIGHTHS, FROM29, MATH, T2, T3, T4, Bool, Boxes, Fx, Int, Ints, Ints1, Natural, NaturalFx, Positive, PositiveFx, T,
    by_key, image, nhwc, rank)
from ..schema import Rule, op
from ..signature import Must
from ..types import F16, F32, I32, Q8, Q8S, Q16A, Q16S, UNKNOWN, Quant, Tensor, maybe

EIGHTH = Quant(0.125, 0)
BOXES = {Q16A: EIGHTH}
Deltas = Annotated[Tensor, by_key("deltas", {F32: {F32: 29}, F16: {F16: 29}, Q16A: {Q8: 29, Q8S: 30}}), rank(2)]
Anchors = Annotated[Tensor, by_key("anchors", {F32: {F32: 29}, F16: {F16: 29}, Q8: {Q16S: 29},
                                               Q8S: {Q16S: 30}}), rank(2),
                    Must("has scale 0.125 when quantised", lambda t: t.type != Q16S or t.scale == 0.125)]
Corners = Annotated[T2, EIGHTHS]
Rois = Annotated[Boxes, rank(2)]
FOUR_WIDE = Rule("rois are [n, 4]", lambda rois: rois.shape[1] == 4)
PER_ROI = Rule("batch has one element per roi", lambda rois, batch: batch.shape[0] == rois.shape[0])


@op(MATH | {Q16A: 29}, FOUR_WIDE, PER_ROI,
    Rule("deltas are four per roi and class, of one class or more", lambda rois, deltas:
         deltas.shape[0] == rois.shape[0] and deltas.shape[1] % 4 == 0 and deltas.shape[1] > 0),
    Rule("image_info is [images, 2]", lambda image_info: image_info.shape[1] == 2))
def AXIS_ALIGNED_BBOX_TRANSFORM(rois: Corners, deltas: Deltas, batch: Ints1, image_info: Corners) -> T:
    """Each roi moved by dx, dy sizes, scaled by exp(dw), exp(dh), clipped to its image, per class."""
    return rois.like(deltas.shape)


@op(FROM29, PER_ROI, Rule("kernel is 0 hard, 1 linear or 2 gaussian", lambda kernel: 0 <= kernel <= 2),
    Rule("rois are four per class, of two classes or more", lambda scores, rois:
         rois.shape == (scores.shape[0], 4 * scores.shape[1]) and scores.shape[1] > 1),
    outs=("scores_out", "rois_out", "classes", "batch_out"))
def BOX_WITH_NMS_LIMIT(scores: T2, rois: Rois, batch: Ints1, score_threshold: Fx, max_detections: Int,
                       kernel: Int, iou_threshold: Fx, sigma: Fx,
                       nms_score_threshold: Fx) -> tuple[T, Boxes, Ints, Ints]:
    """Per class non-maximum suppression, then the best max_detections of each image."""
    per_box = Tensor(I32, (UNKNOWN,))
    return scores.like((UNKNOWN,)), rois.like((UNKNOWN, 4)), per_box, per_box


@op(MATH, Rule("scores are of two classes or more", lambda scores: scores.shape[2] > 1),
    Rule("anchors are four per anchor", lambda scores, anchors: anchors.shape == (scores.shape[1], 4)),
    Rule("deltas are at least four per anchor", lambda scores, deltas:
         deltas.shape[:2] == scores.shape[:2] and deltas.shape[2] >= 4),
    Rule("max_per_class is positive where it counts: when regular", lambda regular, max_per_class:
         not regular or max_per_class > 0),
    Rule("max_classes is positive where it counts: when not regular", lambda regular, max_classes:
         regular or max_classes > 0),
    outs=("scores_out", "boxes", "classes", "count"))
def DETECTION_POSTPROCESSING(scores: T3, deltas: T3, anchors: T2, y_scale: PositiveFx, x_scale: PositiveFx,
                             h_scale: PositiveFx, w_scale: PositiveFx, regular: Bool, max_detections: Positive,
                             max_classes: Int, max_per_class: Int, score_threshold: NaturalFx,
                             iou_threshold: NaturalFx, background: Bool) -> tuple[T, T, Ints, Ints]:
    """Boxes [y1, x1, y2, x2] decoded from deltas and anchors, suppressed, the best first, zero-filled."""
    n, d = scores.shape[0], maybe(lambda: max_detections if regular else max_detections * max_classes)
    return scores.free((n, d)), scores.free((n, d, 4)), Tensor(I32, (n, d)), Tensor(I32, (n,))


@op(FROM29, Rule("deltas are four per score", lambda scores, deltas, nchw:
                     nhwc(deltas, nchw) == (*nhwc(scores, nchw)[:3], 4 * nhwc(scores, nchw)[3])),
    Rule("anchors are four per anchor", lambda scores, anchors, nchw:
         anchors.shape == (nhwc(scores, nchw)[3], 4)),
    Rule("image_info is [images, 2]", lambda scores, image_info: image_info.shape == (scores.shape[0], 2)),
    outs=("scores_out", "rois", "batch"))
def GENERATE_PROPOSALS(scores: T4, deltas: T4, anchors: Anchors, image_info: Rois, h_stride: PositiveFx,
                       w_stride: PositiveFx, pre_nms: Int, post_nms: Int, iou_threshold: Fx, min_size: Fx,
                       nchw: Bool) -> tuple[T, Boxes, Ints]:
    """Anchors moved by deltas at each cell, clipped, filtered by size and suppressed, best first."""
    rois = Tensor(image_info.type, (UNKNOWN, 4), BOXES.get(image_info.type))
    return scores.like((UNKNOWN,)), rois, Tensor(I32, (UNKNOWN,))


@op(FROM29, Rule("heatmaps are square and at least 2 wide", lambda heatmap, nchw:
                     nhwc(heatmap, nchw)[1] == nhwc(heatmap, nchw)[2] >= 2),
    Rule("there is one box per heatmap", lambda heatmap, rois: rois.shape == (heatmap.shape[0], 4)),
    outs=("score", "xy"))
def HEATMAP_MAX_KEYPOINT(heatmap: T4, rois: Rois, nchw: Bool) -> tuple[T, Boxes]:
    """The peak of each heatmap, refined between cells, and its place in the box."""
    n, _, _, k = nhwc(heatmap, nchw)
    return heatmap.free((n, k)), Tensor(rois.type, (n, k, 2), BOXES.get(rois.type))


def regions(x: Tensor, rois: Tensor, oh: int, ow: int, nchw: bool) -> tuple[int, ...]:
    """The shape of x cut to an oh by ow image for each roi."""
    return image(rois.shape[0], oh, ow, nhwc(x, nchw)[3], nchw)


@op(FROM29, FOUR_WIDE, PER_ROI)
def ROI_ALIGN(x: T4, rois: Rois, batch: Ints1, oh: Positive, ow: Positive, h_stride: PositiveFx, w_stride: PositiveFx,
              h_samples: Natural, w_samples: Natural, nchw: Bool) -> T:
    """Each roi as oh by ow bins, a bin the mean of bilinear samples; 0 samples: one per cell."""
    return x.free(regions(x, rois, oh, ow, nchw))


@op(FROM29, FOUR_WIDE, PER_ROI)
def ROI_POOLING(x: T4, rois: Rois, batch: Ints1, oh: Positive, ow: Positive, h_stride: PositiveFx, w_stride: PositiveFx,
                nchw: Bool) -> T:
    """Each roi as oh by ow bins, a bin the largest of its cells, logical zero where it has none."""
    return x.like(regions(x, rois, oh, ow, nchw))
