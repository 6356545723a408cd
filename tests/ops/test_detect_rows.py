"""The rows of detection and regions: what they take, and what they refuse before anything runs."""
from __future__ import annotations

from typing import Any

import pytest

from nnx_convert.ops import detect as ops
from nnx_convert.schema import OpError
from nnx_convert.types import F16, F32, I32, Tensor, Type

NMS = {"score_threshold": 0.0, "max_detections": -1, "kernel": 0, "iou_threshold": 0.5, "sigma": 0.5,
       "nms_score_threshold": 0.01}
DECODE = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "regular": True, "max_detections": 4,
          "max_classes": 2, "max_per_class": 3, "score_threshold": 0.1, "iou_threshold": 0.4, "background": False}
PROPOSE = {"h_stride": 4.0, "w_stride": 2.0, "pre_nms": -1, "post_nms": -1, "iou_threshold": 0.5, "min_size": 1.0,
           "nchw": False}
#: An operation of each row: shapes and numbers by name.
SHAPES: dict[str, dict[str, Any]] = {
    "AXIS_ALIGNED_BBOX_TRANSFORM": {"rois": (3, 4), "deltas": (3, 8), "batch": (3,), "image_info": (2, 2)},
    "BOX_WITH_NMS_LIMIT": {"scores": (3, 2), "rois": (3, 8), "batch": (3,)} | NMS,
    "DETECTION_POSTPROCESSING": {"scores": (1, 3, 2), "deltas": (1, 3, 4), "anchors": (3, 4)} | DECODE,
    "GENERATE_PROPOSALS": {"scores": (1, 3, 3, 2), "deltas": (1, 3, 3, 8), "anchors": (2, 4),
                           "image_info": (1, 2)} | PROPOSE,
    "HEATMAP_MAX_KEYPOINT": {"heatmap": (1, 3, 3, 2), "rois": (1, 4), "nchw": False},
    "ROI_ALIGN": {"x": (1, 3, 3, 2), "rois": (2, 4), "batch": (2,), "oh": 1, "ow": 1, "h_stride": 1.0, "w_stride": 1.0,
                  "h_samples": 0, "w_samples": 0, "nchw": False},
    "ROI_POOLING": {"x": (1, 3, 3, 2), "rois": (2, 4), "batch": (2,), "oh": 1, "ow": 1, "h_stride": 1.0,
                    "w_stride": 1.0, "nchw": False},
}
#: What is wrong with it, and the words of the rule.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("AXIS_ALIGNED_BBOX_TRANSFORM", {"rois": (3, 5)}, "rois are"),
    ("AXIS_ALIGNED_BBOX_TRANSFORM", {"deltas": (3, 6)}, "deltas are four"),
    ("AXIS_ALIGNED_BBOX_TRANSFORM", {"deltas": (2, 8)}, "deltas are four"),
    ("AXIS_ALIGNED_BBOX_TRANSFORM", {"batch": (2,)}, "batch has one"),
    ("AXIS_ALIGNED_BBOX_TRANSFORM", {"image_info": (2, 3)}, "image_info is"),
    ("BOX_WITH_NMS_LIMIT", {"kernel": 3}, "kernel is 0 hard"),
    ("BOX_WITH_NMS_LIMIT", {"scores": (3, 1), "rois": (3, 4)}, "two classes or more"),
    ("BOX_WITH_NMS_LIMIT", {"scores": (2, 2)}, "rois are four per class"),
    ("BOX_WITH_NMS_LIMIT", {"batch": (4,)}, "batch has one"),
    ("DETECTION_POSTPROCESSING", {"scores": (1, 3, 1)}, "two classes or more"),
    ("DETECTION_POSTPROCESSING", {"anchors": (2, 4)}, "anchors are four"),
    ("DETECTION_POSTPROCESSING", {"deltas": (1, 3, 3)}, "deltas are at least four"),
    ("DETECTION_POSTPROCESSING", {"y_scale": 0.0}, "y_scale is positive"),
    ("DETECTION_POSTPROCESSING", {"score_threshold": -0.1}, "score_threshold is not negative"),
    ("DETECTION_POSTPROCESSING", {"max_detections": 0}, "max_detections is positive"),
    ("DETECTION_POSTPROCESSING", {"max_per_class": 0}, "max_per_class is positive"),
    ("DETECTION_POSTPROCESSING", {"max_classes": 0, "regular": False}, "max_classes is positive"),
    ("GENERATE_PROPOSALS", {"deltas": (1, 3, 3, 4)}, "deltas are four"),
    ("GENERATE_PROPOSALS", {"deltas": (1, 3, 2, 8)}, "deltas are four"),
    ("GENERATE_PROPOSALS", {"anchors": (3, 4)}, "anchors are four"),
    ("GENERATE_PROPOSALS", {"image_info": (2, 2)}, "image_info is"),
    ("GENERATE_PROPOSALS", {"h_stride": 0.0}, "h_stride is positive"),
    ("HEATMAP_MAX_KEYPOINT", {"heatmap": (1, 3, 2, 2)}, "heatmaps are square"),
    ("HEATMAP_MAX_KEYPOINT", {"heatmap": (1, 1, 1, 2)}, "heatmaps are square"),
    ("HEATMAP_MAX_KEYPOINT", {"rois": (2, 4)}, "one box per heatmap"),
    ("ROI_ALIGN", {"h_samples": -1}, "h_samples is not negative"),
    ("ROI_ALIGN", {"oh": 0}, "oh is positive"),
    ("ROI_POOLING", {"w_stride": -1.0}, "w_stride is positive"),
    ("ROI_POOLING", {"rois": (2, 3)}, "rois are"),
]
#: What reads like a fault and is none.
TAKEN: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SHAPES), ("DETECTION_POSTPROCESSING", {"max_classes": 0}),
    ("DETECTION_POSTPROCESSING", {"max_per_class": 0, "regular": False}), ("BOX_WITH_NMS_LIMIT", {"max_detections": 0}),
    ("DETECTION_POSTPROCESSING", {"deltas": (1, 3, 7)})]


def checked(name: str, change: dict[str, Any], code: Type = F32) -> Any:
    """The table's verdict on an operation of these shapes."""
    op = getattr(ops, name)
    args = {n: Tensor(I32 if n == "batch" else code, v) if isinstance(v, tuple) else v
            for n, v in (SHAPES[name] | change).items()}
    return op.check(op.forms[0].operands(args, op.types), [])


@pytest.mark.parametrize(("name", "change", "words"), REFUSED, ids=str)
def test_what_a_row_refuses(name: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(OpError, match=words):
        checked(name, change)


@pytest.mark.parametrize(("name", "change"), TAKEN, ids=str)
@pytest.mark.parametrize("code", [F32, F16], ids=lambda c: c.name)
def test_what_a_row_takes(name: str, change: dict[str, Any], code: Type) -> None:
    assert checked(name, change, code).level == 29


#: The sizes of DETECTION_POSTPROCESSING's outputs: fast mode gives max_classes for each detection.
SIZES = {True: 4, False: 8}


@pytest.mark.parametrize("regular", SIZES)
def test_the_number_of_detections(regular: bool) -> None:
    found = checked("DETECTION_POSTPROCESSING", {"regular": regular}).outputs
    assert [t.dims for t in found] == [(1, SIZES[regular]), (1, SIZES[regular], 4), (1, SIZES[regular]), (1,)]
