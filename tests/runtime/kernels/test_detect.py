"""Detection and regions against their definitions; every type, edges, ties, and what is refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_boxes import aligned, greedy, moved, peak, pooled
from one_op import run_op, tensor

from nnx_convert.errors import RunError
from nnx_convert.ops import detect as ops
from nnx_convert.runtime.boxes import reader
from nnx_convert.types import F16, F32, I32, Q8, Q8S, Q16A, Q16S, Quant, Tensor, Type

Array = np.ndarray[Any, Any]
EIGHTH = Quant(0.125, 0)
#: Types of T; what boxes are beside each, and grids for scores, deltas and images.
CODES = [F32, F16, Q8, Q8S]
BOX = {F32: F32, F16: F16, Q8: Q16A, Q8S: Q16A}
GRIDS = {Q8: Quant(0.02, 100), Q8S: Quant(0.02, -20), Q16A: EIGHTH, Q16S: EIGHTH}
TYPED = pytest.mark.parametrize("code", CODES, ids=lambda c: c.name)
LAYOUTS = pytest.mark.parametrize("nchw", [False, True], ids=["nhwc", "nchw"])
#: How far apart results of a type may be, in real values.
CLOSE = {F32: 1e-5, F16: 8e-3, Q8: 0.02, Q8S: 0.02, Q16A: 0.125}


def typed(values: Any, code: Type) -> Tensor:
    """Values as a tensor of a type, rounded to its grid."""
    real, quant = np.asarray(values, np.float64), GRIDS.get(code)
    return tensor(np.round(real / quant.scale) + quant.zero if quant else real, code, quant)


def real(t: Tensor) -> Array:
    """What a constant stands for."""
    assert t.data is not None
    return reader(t)(t.data).astype(np.float64)


def unpacked(found: Array, code: Type) -> Array:
    """An output of a type as real values."""
    return real(tensor(found, code, GRIDS.get(code)))


def boxes_of(seed: int, count: int, size: float = 20.0) -> Array:
    """Boxes [count, 4] on eighths, inside a square."""
    ends = np.sort(np.random.default_rng(seed).integers(0, int(size * 8) + 1, (count, 2, 2)) / 8, axis=1)
    return ends.reshape(count, 4)


def image_of(seed: int, *shape: int) -> Array:
    """An image of numbers on the grids of every type."""
    return np.random.default_rng(seed).integers(-50, 50, shape) * 0.02


def laid(x: Array, nchw: bool) -> Array:
    """An NHWC image in the other order."""
    return x.transpose(0, 3, 1, 2) if nchw else x


# AXIS_ALIGNED_BBOX_TRANSFORM

@pytest.mark.parametrize(("code", "moves"), [(F32, F32), (F16, F16), (Q16A, Q8), (Q16A, Q8S)], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_boxes_move(code: Type, moves: Type, count: int) -> None:
    random = np.random.default_rng(count)
    args = {"rois": typed(boxes_of(1, count), code), "deltas": typed(random.uniform(-0.7, 0.7, (count, 12)), moves),
            "batch": tensor(random.integers(0, 2, count), I32), "image_info": typed([[16, 20], [18, 12]], code)}
    (found,) = run_op(ops.AXIS_ALIGNED_BBOX_TRANSFORM, args)
    rois, deltas, sizes = (real(args[n]) for n in ("rois", "deltas", "image_info"))
    want = [[moved(rois[i], deltas[i, c:c + 4], *sizes[b]) for c in (0, 4, 8)]
            for i, b in enumerate(args["batch"].data)]
    np.testing.assert_allclose(unpacked(found, code), np.reshape(want, found.shape), atol=CLOSE[code], rtol=1e-3)


WRONG_BOXES = {"ends before it starts": [3, 0, 2, 4], "upside down": [0, 5, 1, 4], "not a number": [0, 0, np.nan, 1]}


@pytest.mark.parametrize("box", WRONG_BOXES.values(), ids=list(WRONG_BOXES))
@pytest.mark.parametrize("op", [ops.AXIS_ALIGNED_BBOX_TRANSFORM, ops.ROI_ALIGN, ops.ROI_POOLING,
                                ops.HEATMAP_MAX_KEYPOINT, ops.BOX_WITH_NMS_LIMIT, ops.GENERATE_PROPOSALS],
                         ids=lambda o: o.name)
def test_a_box_that_ends_before_it_starts_is_refused(op: Any, box: list[float]) -> None:
    one, image = tensor([box], F32), tensor(np.ones((1, 3, 3, 1)), F32)
    args = {"rois": one, "batch": tensor([0], I32), "x": image, "heatmap": image, "nchw": False, "oh": 1, "ow": 1,
            "deltas": tensor(np.zeros((1, 4)), F32), "image_info": tensor([[9, 9]], F32), "scores": image,
            "h_stride": 1.0, "w_stride": 1.0, "h_samples": 1, "w_samples": 1} | NMS
    if op is ops.BOX_WITH_NMS_LIMIT:
        args |= {"scores": tensor([[0.5, 0.5]], F32), "rois": tensor([box * 2], F32)}
    if op is ops.GENERATE_PROPOSALS:
        args |= {"deltas": tensor(np.zeros((1, 3, 3, 4)), F32), "anchors": one} | PROPOSE
    with pytest.raises(RunError, match="ends before it starts"):
        run_op(op, {n: args[n] for n in op.forms[0].names})


# BOX_WITH_NMS_LIMIT

NMS: dict[str, Any] = {"score_threshold": 0.0, "max_detections": -1, "kernel": 0, "iou_threshold": 0.5, "sigma": 0.5,
                       "nms_score_threshold": 0.01}


def limited(scores: Any, boxes: Any, batch: Any, code: Type = F32, **more: Any) -> list[Array]:
    """BOX_WITH_NMS_LIMIT on real values."""
    return run_op(ops.BOX_WITH_NMS_LIMIT, NMS | {
        "scores": typed(scores, code), "rois": typed(boxes, BOX[code]), "batch": tensor(batch, I32)} | more)


def limited_by_definition(scores: Array, boxes: Array, batch: Array, **more: Any
                          ) -> list[tuple[float, list[float], int, int]]:
    """The same: (score, box, class, image) of each detection."""
    o = NMS | more
    weigh = (lambda v: float(v < o["iou_threshold"]), lambda v: 1.0 if v < o["iou_threshold"] else 1 - v,
             lambda v: np.exp(-v * v / o["sigma"]))[o["kernel"]]
    most = o["max_detections"] if o["max_detections"] >= 0 else 1 << 30
    found = []
    for image in dict.fromkeys(batch.tolist()):
        picked = []
        for label in range(1, scores.shape[1]):
            index = [i for i in np.flatnonzero(batch == image) if scores[i, label] > o["score_threshold"]]
            own = boxes.reshape(*scores.shape, 4)[index, label]
            kept = greedy(scores[index, label].tolist(), own.tolist(), most, lambda v, s:
                          None if s * weigh(v) < o["nms_score_threshold"] else s * weigh(v))
            picked += [(s, own[i].tolist(), label, image) for i, s in kept]
        best = sorted(sorted(range(len(picked)), key=lambda n: -picked[n][0])[:most])
        found += [picked[n] for n in best]
    return found


@TYPED
@pytest.mark.parametrize("kernel", [0, 1, 2], ids=["hard", "linear", "gaussian"])
@pytest.mark.parametrize("most", [-1, 0, 3])
@pytest.mark.parametrize("count", [0, 1, 12])
def test_suppression_per_class(code: Type, kernel: int, most: int, count: int) -> None:
    random = np.random.default_rng(count)
    scores = typed(np.arange(1, 3 * count + 1)[random.permutation(3 * count)].reshape(count, 3) * 0.04, code)
    rois, batch = typed(boxes_of(kernel, 3 * count).reshape(count, 12), BOX[code]), np.arange(count) // 5
    more = {"kernel": kernel, "max_detections": most, "score_threshold": 0.1}
    found = run_op(ops.BOX_WITH_NMS_LIMIT, NMS | more | {"scores": scores, "rois": rois, "batch": tensor(batch, I32)})
    want = limited_by_definition(real(scores), real(rois), batch, **more)
    assert found[2].tolist() == [w[2] for w in want] and found[3].tolist() == [w[3] for w in want]
    np.testing.assert_allclose(unpacked(found[0], code), [w[0] for w in want], atol=CLOSE[code] / 2 + 1e-6)
    assert unpacked(found[1], BOX[code]).tolist() == [w[1] for w in want]


@given(st.data())
def test_suppression_of_any_boxes(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 8))
    coordinate, score = st.integers(0, 6), st.integers(0, 16).map(lambda n: n / 16)
    ends = np.sort(np.array(data.draw(st.lists(coordinate, min_size=8 * count, max_size=8 * count)),
                            np.float64).reshape(count * 2, 2, 2), axis=1)
    scores = np.array(data.draw(st.lists(score, min_size=2 * count, max_size=2 * count)), np.float64).reshape(count, 2)
    more = {"kernel": data.draw(st.integers(0, 1)), "iou_threshold": 0.375,
            "max_detections": data.draw(st.integers(-1, 4)), "nms_score_threshold": 0.03}
    batch = np.sort(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    found = limited(scores, ends.reshape(count, 8), batch, **more)
    want = limited_by_definition(scores, ends.reshape(count, 8), np.asarray(batch), **more)
    np.testing.assert_allclose(found[0], [w[0] for w in want], rtol=1e-5)
    assert found[1].tolist() == [w[1] for w in want] and found[3].tolist() == [w[3] for w in want]


#: Two boxes of one class: what is left of the scores 0.5 and 0.5, by what the rule of the case is about.
PAIRS: dict[str, tuple[dict[str, Any], list[float], list[float]]] = {
    "an overlap of the threshold goes": ({"iou_threshold": 0.5}, [0, 0, 2, 1], [0.5]),
    "less stays": ({"iou_threshold": 0.51}, [0, 0, 2, 1], [0.5, 0.5]),
    "linear": ({"kernel": 1}, [0, 0, 2, 1], [0.5, 0.25]),
    "gaussian": ({"kernel": 2, "sigma": 0.5}, [0, 0, 2, 2], [0.5, 0.5 * np.exp(-2)]),
    "a score below the least goes": ({"kernel": 1, "nms_score_threshold": 0.3}, [0, 0, 2, 1], [0.5]),
    "without a least, hard leaves it at 0": ({"nms_score_threshold": 0.0}, [0, 0, 2, 2], [0.5, 0.0]),
    "two without an area do not overlap": ({}, [1, 1, 1, 1], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_boxes(name: str) -> None:
    more, second, want = PAIRS[name]
    first = second if second == [1, 1, 1, 1] else [0, 0, 2, 2]
    scores, boxes, classes, _ = limited([[0.9, 0.5]] * 2, [[0] * 4 + first, [0] * 4 + second], [0, 0], **more)
    np.testing.assert_allclose(scores, want, rtol=1e-6)
    assert boxes[0].tolist() == first and set(classes.tolist()) == {1}


def test_equal_scores_stay_in_order() -> None:
    boxes = np.arange(200)[:, None] * 4 + np.array([0, 0, 2, 2, 0, 0, 2, 2])
    scores = np.random.default_rng(0).integers(1, 4, 200) / 4
    found = limited(scores[:, None].repeat(2, 1), boxes, [0] * 200, max_detections=150)[1]
    assert found[:, 0].tolist() == (4 * np.argsort(-scores, kind="stable")[:150]).tolist()


# DETECTION_POSTPROCESSING

DECODE: dict[str, Any] = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "regular": True,
                          "max_detections": 4, "max_classes": 2, "max_per_class": 3, "score_threshold": 0.1,
                          "iou_threshold": 0.4, "background": False}


def decoded_by_definition(scores: Array, deltas: Array, anchors: Array, o: dict[str, Any]
                          ) -> list[tuple[float, list[float], int]]:
    """One image's detections: (score, box, label)."""
    a, d = anchors, deltas / np.array([o["y_scale"], o["x_scale"], o["h_scale"], o["w_scale"]])
    middle, half = a[:, :2] + a[:, 2:] * d[:, :2], a[:, 2:] * np.exp(d[:, 2:]) / 2
    boxes = np.concatenate((middle - half, middle + half), 1).tolist()
    cut = lambda v, s: None if v >= o["iou_threshold"] else s  # noqa: E731
    if o["regular"]:
        found = []
        for c in range(1, scores.shape[1]):
            index = [i for i in range(len(a)) if scores[i, c] > o["score_threshold"]]
            kept = greedy(scores[index, c].tolist(), [boxes[i] for i in index], o["max_per_class"], cut)
            found += [(s, boxes[index[i]], c) for i, s in kept]
        found = sorted(found, key=lambda f: -f[0])[:o["max_detections"]]
    else:
        best = scores[:, 1:].max(1)
        index = [i for i in range(len(a)) if best[i] > o["score_threshold"]]
        kept = greedy(best[index].tolist(), [boxes[i] for i in index], o["max_detections"], cut)
        found = [(scores[index[i], c], boxes[index[i]], int(c)) for i, _ in kept
                 for c in 1 + np.argsort(-scores[index[i], 1:], kind="stable")[:o["max_classes"]]]
    return [(s, b, c - (not o["background"])) for s, b, c in found]


@pytest.mark.parametrize("code", [F32, F16], ids=lambda c: c.name)
@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(("anchors", "labels"), [(1, 2), (9, 4)])
def test_detections(code: Type, regular: bool, background: bool, anchors: int, labels: int) -> None:
    random = np.random.default_rng(anchors)
    scores = np.stack([random.permutation(anchors * labels).reshape(anchors, labels) / 64 for _ in range(2)])
    args = {"scores": typed(scores, code), "deltas": typed(random.uniform(-2, 2, (2, anchors, 6)), code),
            "anchors": typed(random.uniform(0.2, 0.8, (anchors, 4)), code)}
    more = DECODE | {"regular": regular, "background": background}
    found = run_op(ops.DETECTION_POSTPROCESSING, args | more)
    size = 4 if regular else 8
    assert [f.shape for f in found] == [(2, size), (2, size, 4), (2, size), (2,)]
    given_scores, deltas, given_anchors = map(real, args.values())
    for i in range(2):
        want = decoded_by_definition(given_scores[i], deltas[i, :, :4], given_anchors, more)
        n = len(want)
        assert found[3][i] == n and not any(f[i, n:].any() for f in found[:3])
        np.testing.assert_allclose(found[0][i, :n], [w[0] for w in want], atol=1e-3)
        np.testing.assert_allclose(found[1][i, :n], np.reshape([w[1] for w in want], (n, 4)), atol=2e-3)
        assert found[2][i, :n].tolist() == [w[2] for w in want]


#: Two anchors that overlap by half, scores 0.5 and 0.25: how many detections there are, by what the limit is.
LIMITS = {"an overlap of the threshold goes": ({"iou_threshold": 0.5}, 1), "less stays": ({"iou_threshold": 0.51}, 2),
          "a score of the threshold is none": ({"iou_threshold": 0.51, "score_threshold": 0.25}, 1),
          "at most so many": ({"iou_threshold": 0.51, "max_detections": 1}, 1)}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("regular", [True, False])
def test_two_detections(name: str, regular: bool) -> None:
    more, count = LIMITS[name]
    args = {"scores": tensor([[[0.9, 0.5], [0.9, 0.25]]], F32), "deltas": tensor(np.zeros((1, 2, 4)), F32),
            "anchors": tensor([[1, 1, 2, 2], [1, 0.5, 2, 1]], F32)}
    found = run_op(ops.DETECTION_POSTPROCESSING, args | DECODE | more | {"regular": regular, "max_classes": 1})
    assert found[3].tolist() == [count] and found[0][0, 0] == 0.5 and found[1][0, 0].tolist() == [0, 0, 2, 2]


# GENERATE_PROPOSALS

PROPOSE: dict[str, Any] = {"h_stride": 4.0, "w_stride": 2.0, "pre_nms": -1, "post_nms": -1, "iou_threshold": 0.5,
                           "min_size": 1.0, "nchw": False}


def proposed_by_definition(scores: Array, deltas: Array, anchors: Array, size: Array, o: dict[str, Any]
                           ) -> list[tuple[float, list[float]]]:
    """One image's proposals."""
    every = []
    for y, x, a in np.ndindex(scores.shape):
        shift = np.array([x * o["w_stride"], y * o["h_stride"]] * 2)
        every.append((scores[y, x, a], moved(anchors[a] + shift, deltas[y, x, 4 * a:4 * a + 4], *size)))
    if 0 < o["pre_nms"] < len(every):
        every = sorted(every, key=lambda e: -e[0])[:o["pre_nms"]]
    every = [(s, b) for s, b in every if min(b[2] - b[0], b[3] - b[1]) > o["min_size"]
             and (b[0] + b[2]) / 2 < size[1] and (b[1] + b[3]) / 2 < size[0]]
    kept = greedy([s for s, _ in every], [b for _, b in every], o["post_nms"] if o["post_nms"] > 0 else 1 << 30,
                  lambda v, s: None if v >= o["iou_threshold"] else s)
    return [every[i] for i, _ in kept]


@TYPED
@LAYOUTS
@pytest.mark.parametrize("more", [{}, {"pre_nms": 5}, {"post_nms": 2}, {"pre_nms": 0, "post_nms": 0},
                                  {"min_size": 1000.0}], ids=str)
def test_proposals(code: Type, nchw: bool, more: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    scores = typed(np.stack([random.permutation(18).reshape(3, 3, 2) * 0.04 for _ in range(2)]), code)
    deltas = typed(random.uniform(-0.4, 0.4, (2, 3, 3, 8)), code)
    anchors = typed([[-1, 0, 4, 3], [0, -2, 3, 6]], {Q8: Q16S, Q8S: Q16S}.get(code, code))
    sizes = typed([[10, 9], [12, 8]], BOX[code])
    o = PROPOSE | more | {"nchw": nchw}
    found = run_op(ops.GENERATE_PROPOSALS, o | {
        "scores": Tensor(code, laid(scores.data, nchw).shape, scores.quant, laid(scores.data, nchw)),
        "deltas": Tensor(code, laid(deltas.data, nchw).shape, deltas.quant, laid(deltas.data, nchw)),
        "anchors": anchors, "image_info": sizes})
    want = [(*p, i) for i in range(2) for p in proposed_by_definition(
        real(scores)[i], real(deltas)[i], real(anchors), real(sizes)[i], o)]
    assert found[2].tolist() == [w[2] for w in want]
    np.testing.assert_allclose(unpacked(found[0], code), [w[0] for w in want], atol=1e-3)
    np.testing.assert_allclose(unpacked(found[1], BOX[code]), np.reshape([w[1] for w in want], (-1, 4)),
                               atol=CLOSE[BOX[code]])


#: One anchor in an image of 4 by 4: whether it is a proposal.
KEPT = {"larger than the least": ([0, 0, 2, 2], 1.5, 1), "as large as the least": ([0, 0, 2, 2], 2.0, 0),
        "clipped, its middle inside": ([3, 0, 5, 2], 0.5, 1), "clipped, its middle at the end": ([4, 0, 6, 2], -1.0, 0)}


@pytest.mark.parametrize("name", KEPT)
def test_a_proposal(name: str) -> None:
    anchor, least, count = KEPT[name]
    scores, boxes, of = run_op(ops.GENERATE_PROPOSALS, PROPOSE | {
        "scores": tensor([[[[0.5]]]], F32), "deltas": tensor(np.zeros((1, 1, 1, 4)), F32),
        "anchors": tensor([anchor], F32), "image_info": tensor([[4, 4]], F32), "min_size": least})
    assert len(scores) == len(boxes) == len(of) == count


# HEATMAP_MAX_KEYPOINT

@TYPED
@LAYOUTS
def test_a_peak_between_cells(code: Type, nchw: bool) -> None:
    tops = np.array([[2.25, 3.0], [3.4, 1.75], [1.0, 4.3]])
    y, x = np.mgrid[:6, :6]
    heat = np.stack([1.5 - 0.06 * (x - u) ** 2 - 0.09 * (y - v) ** 2 for u, v in tops], -1)[None]
    heatmap, rois = typed(laid(heat, nchw), code), typed([[2, 4, 14, 28]], BOX[code])
    score, xy = run_op(ops.HEATMAP_MAX_KEYPOINT, {"heatmap": heatmap, "rois": rois, "nchw": nchw},
                       Tensor(code, None, GRIDS.get(code)), Tensor(BOX[code], None, GRIDS.get(BOX[code])))
    rough = 0.8 if code in GRIDS else 0.1 if code is F16 else 1e-4
    np.testing.assert_allclose(unpacked(score, code)[0], 1.5, atol=max(rough / 10, 1e-5))
    want = (tops + 0.5) / 6 * [12, 24] + [2, 4]
    np.testing.assert_allclose(unpacked(xy, BOX[code])[0], want, atol=2 * rough)


#: A 3 by 3 heatmap, and the peak's value and place in a box of 3 by 3.
HEATS: dict[str, tuple[list[list[float]], float, list[float]]] = {
    "flat: the first cell's middle": ([[1, 1, 1]] * 3, 1, [0.5, 0.5]),
    "a ridge has no top of its own": ([[0, 0, 0], [1, 1, 1], [0, 0, 0]], 1, [0.5, 1.5]),
    "the first corner is mirrored": ([[4, 2, 0], [2, 1, 0], [0, 0, 0]], 4, [0.5, 0.5]),
    "a step is at most 1.5 cells": ([[11, 15, 0], [5, 16, 12], [8, 15, 15]], 17.25, [13 / 6, 3.0]),
    "so is the last corner": ([[0, 0, 0], [0, 1, 2], [0, 2, 4]], 4, [2.5, 2.5]),
    "no numbers but one": ([[np.nan] * 3, [np.nan] * 3, [np.nan, np.nan, 7]], np.nan, [np.nan, np.nan]),
}


@pytest.mark.parametrize("name", HEATS)
def test_peaks_at_the_edge(name: str) -> None:
    heat, value, place = HEATS[name]
    score, xy = run_op(ops.HEATMAP_MAX_KEYPOINT, {
        "heatmap": tensor(np.array(heat)[None, :, :, None], F32), "rois": tensor([[0, 0, 3, 3]], F32), "nchw": False})
    np.testing.assert_allclose(score.item(), value, rtol=1e-6)
    np.testing.assert_allclose(xy.reshape(2), place, rtol=1e-6)


@given(st.integers(2, 5), st.data())
def test_any_peak(size: int, data: st.DataObject) -> None:
    cells = st.lists(st.integers(0, 6), min_size=size * size, max_size=size * size)
    heat = np.array(data.draw(cells), np.float64).reshape(size, size)
    score, xy = run_op(ops.HEATMAP_MAX_KEYPOINT, {"heatmap": tensor(heat[None, ..., None], F32), "nchw": False,
                                                  "rois": tensor([[0, 0, size, size]], F32)})
    np.testing.assert_allclose([*score[0], *xy[0, 0]], peak(heat), rtol=1e-4, atol=1e-4)


# ROI_ALIGN and ROI_POOLING

def regions(op: Any, x: Array, rois: Array, batch: Any, code: Type, size: tuple[int, int], nchw: bool = False,
            stride: float = 2.0, **more: Any) -> Array:
    """A region kernel's output in NHWC, raw."""
    (found,) = run_op(op, {"x": typed(laid(x, nchw), code), "rois": typed(rois, BOX[code]), "batch": tensor(batch, I32),
                           "oh": size[0], "ow": size[1], "h_stride": stride, "w_stride": stride, "nchw": nchw} | more,
                      Tensor(code, None, GRIDS.get(code)))
    return found.transpose(0, 2, 3, 1) if nchw else found


@TYPED
@LAYOUTS
@pytest.mark.parametrize("samples", [(0, 0), (2, 3)], ids=str)
@pytest.mark.parametrize("count", [0, 6])
def test_regions_aligned(code: Type, nchw: bool, samples: tuple[int, int], count: int) -> None:
    x, rois, batch = image_of(4, 2, 10, 10, 3), boxes_of(5, count), np.arange(count) % 2
    found = regions(ops.ROI_ALIGN, x, rois, batch, code, (3, 2), nchw, h_samples=samples[0], w_samples=samples[1])
    assert found.shape == (count, 3, 2, 3)
    for i, b in enumerate(batch):
        want = aligned(real(typed(x, code))[b], rois[i] / 2, (3, 2), samples)
        np.testing.assert_allclose(unpacked(found[i], code), want, atol=CLOSE[code] + 1e-6)


@given(st.integers(0, 2**32), st.tuples(st.integers(1, 4), st.integers(1, 4)),
       st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_any_region_aligned(seed: int, size: tuple[int, int], samples: tuple[int, int]) -> None:
    x, rois = image_of(seed, 1, 5, 7, 2), np.minimum(boxes_of(seed, 3, 7), [7, 5, 7, 5])
    found = regions(ops.ROI_ALIGN, x, rois, [0] * 3, F32, size, stride=1.0, h_samples=samples[0], w_samples=samples[1])
    want = [aligned(x[0].astype(np.float32).astype(np.float64), r, size, samples) for r in rois]
    np.testing.assert_allclose(found, want, atol=2e-6)


@TYPED
@LAYOUTS
@pytest.mark.parametrize("count", [0, 6])
def test_regions_pooled(code: Type, nchw: bool, count: int) -> None:
    x, rois, batch = image_of(6, 2, 10, 10, 3), boxes_of(7, count), np.arange(count) % 2
    found = regions(ops.ROI_POOLING, x, rois, batch, code, (2, 4), nchw)
    assert found.shape == (count, 2, 4, 3)
    raw, zero = typed(x, code).data, GRIDS[code].zero if code in GRIDS else 0
    for i, b in enumerate(batch):
        assert np.array_equal(found[i], pooled(raw[b], rois[i] / 2, (2, 4), zero))


@given(st.integers(0, 2**32), st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8])))
def test_any_region_pooled(seed: int, size: tuple[int, int]) -> None:
    x, rois = image_of(seed, 1, 5, 7, 2), np.minimum(boxes_of(seed, 4, 7), [7, 5, 7, 5])
    found = regions(ops.ROI_POOLING, x, rois, [0] * 4, Q8, size, stride=1.0)
    assert np.array_equal(found, [pooled(typed(x, Q8).data[0], r, size, 100) for r in rois])


#: A roi on the last row and column, on nothing, and one cell wide: pooled to 1 by 1 of an image of 2 by 2.
CELLS = {"the border": ([2, 2, 2, 2], 0.0), "the last cell": ([1, 1, 1, 1], 4.0), "a point": ([0, 0, 0, 0], 1.0),
         "all": ([0, 0, 2, 2], 4.0)}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_pooled(name: str) -> None:
    roi, want = CELLS[name]
    x = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    assert regions(ops.ROI_POOLING, x, np.array([roi]), [0], F32, (1, 1), stride=1.0).item() == want


#: What a region kernel meets that it cannot cut: roi, image of the batch, words.
OUTSIDE = {"to the left": ([-1, 0, 2, 2], 0, "inside"), "beyond the right": ([0, 0, 21, 4], 0, "inside"),
           "below": ([0, 0, 4, 20.5], 0, "inside"), "no such image": ([0, 0, 4, 4], 2, "image 2 is not in"),
           "image -1": ([0, 0, 4, 4], -1, "image -1 is not in")}


@pytest.mark.parametrize("op", [ops.ROI_ALIGN, ops.ROI_POOLING], ids=lambda o: o.name)
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_roi_outside_is_refused(op: Any, name: str) -> None:
    roi, image, words = OUTSIDE[name]
    more = {"h_samples": 0, "w_samples": 0} if op is ops.ROI_ALIGN else {}
    with pytest.raises(RunError, match=words):
        regions(op, image_of(0, 2, 10, 10, 1), np.array([roi]), [image], F32, (2, 2), **more)
