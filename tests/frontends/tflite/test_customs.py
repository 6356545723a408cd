"""Custom operators with public meaning: LiteRT's against its own recorded answers, MediaPipe's against loops."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_convert import Target
from nnx_convert.convert import compile as compiled, convert
from nnx_convert.emit.facts import by_kind
from nnx_convert.errors import FormatError, RunError, Unsupported

from . import litert_customs
from .signal_cases import Array, Case, packed

RECORDED = dict(np.load(litert_customs.GOLDENS))
BY_NAME = {c.name: c for c in litert_customs.CASES}
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("name", BY_NAME)
def test_an_operator_gives_what_litert_gives(name: str) -> None:
    case = BY_NAME[name]
    found = compiled(convert(case.model())).run([x[0] for x in case.inputs])
    counted = slice(None)
    if "Detection" in case.op:                                 # LiteRT leaves what it does not count unwritten
        counted = slice(int(found.pop()[0]) * int(case.options["max_classes_per_detection"]))
        assert counted.stop == RECORDED[f"{name}/3"][0] * case.options["max_classes_per_detection"]
    for i, a in enumerate(found):
        np.testing.assert_allclose(a[:, counted], RECORDED[f"{name}/{i}"][:, counted], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("name", "kind"), [("fast", "base"), ("regular", "base"), ("below_zero", "host")])
def test_detections_are_nnapis_where_it_takes_them(name: str, kind: str) -> None:
    model = convert(BY_NAME[name].model(), Target(30, False, False))
    assert {"DETECTION_POSTPROCESSING", "DETECTIONS"} & set(by_kind([model])[kind])


def run(op: str, inputs: list[Array], outs: list[tuple[int, ...]], options: Any) -> list[Array]:
    """The outputs of a MediaPipe operator."""
    case = Case("x", op, [x[None] for x in inputs], [("float32", s) for s in outs], {}, prefix="")
    raw = options if isinstance(options, bytes) else packed(options)
    return compiled(convert(case.model(raw))).run(inputs)


def pool_options(scheme: int, sw: int, sh: int, kw: int, kh: int, act: int = 0) -> bytes:
    """`TfLitePoolParams`."""
    return np.array([scheme, sw, sh, kw, kh, act], np.int32).tobytes()


def pooled(x: Array, out: tuple[int, ...], s: tuple[int, int], k: tuple[int, int],
           pads: tuple[int, int]) -> tuple[Array, Array]:
    """Each maximum and its place, cell by cell."""
    best, places = np.zeros(out, np.float32), np.zeros(out, np.float32)
    for n, i, j, c in np.ndindex(out):
        found = (-np.inf, 0)
        for a, b in np.ndindex(k):
            row, column = i * s[0] - pads[0] + a, j * s[1] - pads[1] + b
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2] and x[n, row, column, c] > found[0]:
                found = (x[n, row, column, c], a * k[1] + b)
        best[n, i, j, c], places[n, i, j, c] = found[0], np.float32(found[1]) + np.float32(0.1)
    return best, places


@pytest.mark.parametrize(("scheme", "strides", "sizes", "out"), [
    (2, (2, 2), (2, 2), (1, 3, 2, 3)), (1, (2, 2), (3, 2), (1, 3, 3, 3)), (1, (1, 2), (3, 3), (1, 6, 3, 3)),
    (2, (1, 1), (2, 3), (1, 5, 3, 3))])
def test_a_pool_gives_maxima_and_their_places(scheme: int, strides: tuple[int, int], sizes: tuple[int, int],
                                              out: tuple[int, ...]) -> None:
    x = RNG.integers(-4, 4, (1, 6, 5, 3)).astype(np.float32)
    options = pool_options(scheme, strides[1], strides[0], sizes[1], sizes[0])
    found = run("MaxPoolingWithArgmax2D", [x], [out, out], options)
    top, left = (max((o - 1) * s + k - n, 0) // 2 for o, s, k, n in zip(out[1:3], strides, sizes, (6, 5), strict=True))
    for a, b in zip(found, pooled(x, out, strides, sizes, (top, left)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_was_pooled_goes_back_to_its_place() -> None:
    x = RNG.permutation(96).astype(np.float32).reshape(2, 4, 4, 3)
    options, small = pool_options(2, 2, 2, 2, 2), (2, 2, 2, 3)
    best, places = run("MaxPoolingWithArgmax2D", [x], [small, small], options)
    back, = run("MaxUnpooling2D", [best, places], [x.shape], options)
    blocks = x.reshape(2, 2, 2, 2, 2, 3)
    want = np.where(blocks == blocks.max((2, 4), keepdims=True), blocks, 0)
    np.testing.assert_array_equal(back, want.reshape(x.shape))
    with pytest.raises(RunError, match="outside"):
        run("MaxUnpooling2D", [best, places + 99], [x.shape], options)


def sampled(x: Array, m: Array, h: int, w: int, half: float) -> Array:
    """x at transformed places, one by one, in float64."""
    out = np.zeros((1, h, w, x.shape[3]))
    m = m.reshape(4, 4).astype(np.float64)
    for i, j in np.ndindex(h, w):
        column, row, *_ = m @ [j + half, i + half, 0, 1] - half
        if 0 <= column <= x.shape[2] - 1 and 0 <= row <= x.shape[1] - 1:
            a, b = int(row), int(column)
            for p, q in np.ndindex(2, 2):
                weight = (row - a if p else 1 - row + a) * (column - b if q else 1 - column + b)
                if weight:
                    out[0, i, j] += weight * x[0, a + p, b + q]
    return out


MATRIX = np.array([[0.83, -0.31, 0, 1.27], [0.23, 0.91, 0, -0.43], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)


@pytest.mark.parametrize(("op", "options", "half"), [
    ("TransformTensor", {"mode": "bilinear", "output_size": [5, 7]}, 0.0),
    ("TransformTensorBilinear", {"output_height": 5, "output_width": 7}, 0.5)])
def test_an_image_is_sampled_where_a_matrix_leads(op: str, options: dict[str, Any], half: float) -> None:
    x = RNG.uniform(-1, 1, (1, 6, 6, 2)).astype(np.float32)
    found, = run(op, [x, MATRIX[None]], [(1, 5, 7, 2)], options)
    np.testing.assert_allclose(found, sampled(x, MATRIX, 5, 7, half), atol=2e-6)
    assert (found == 0).any() and (found != 0).any()


@pytest.mark.parametrize(("shape", "dims", "options", "scale"), [
    ((1, 5, 3), 3, b"", 1.0), ((1, 5, 2), 2, b"", 1.0), ((1, 1, 1, 12), 3, {"dimensions": 3, "scale": 4.0}, 4.0)])
def test_landmarks_are_moved(shape: tuple[int, ...], dims: int, options: Any, scale: float) -> None:
    x = RNG.uniform(-1, 1, shape).astype(np.float32)
    found, = run("TransformLandmarks", [x, MATRIX[None]], [shape], options)
    points = x.reshape(-1, dims)
    want = points.copy()
    want[:, :2] = points[:, :2] @ MATRIX[:2, :2].T + MATRIX[:2, 3] * scale
    np.testing.assert_allclose(found.reshape(-1, dims), want, atol=1e-6)


#: Points 0 and 1 are the line, the box of them all is 4 wide and 2 high, its middle is (3, 2).
SQUARE = np.array([[1, 2, 0], [5, 2, 0], [3, 1, 0], [3, 3, 0]], np.float32)
ENDS = {"left_rotation_idx": 0, "right_rotation_idx": 1}


def test_a_box_of_points_becomes_a_transform() -> None:
    options = ENDS | {"subset_idxs": [0, 1, 2, 3], "target_rotation_radians": 0.0, "output_height": 10,
                      "output_width": 20, "scale_x": 1.0, "scale_y": 2.0}
    m, = run("Landmarks2TransformMatrix", [SQUARE[None]], [(1, 4, 4)], options)
    ends = m[0] @ np.array([[0, 0, 0, 1], [20, 10, 0, 1]], np.float32).T
    np.testing.assert_allclose(ends[:2].T, [[1, 0], [5, 4]], atol=1e-5)


def test_a_turned_box_is_turned_back() -> None:
    turned = SQUARE @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.float32)          # the line points up
    options = ENDS | {"subset_idxs": [0, 1, 2, 3], "target_rotation_radians": 0.0, "output_height": 10,
                      "output_width": 20, "scale_x": 1.0, "scale_y": 1.0}
    m, = run("Landmarks2TransformMatrix", [turned[None]], [(1, 4, 4)], options)
    ends = m[0] @ np.array([[0, 5, 0, 1], [20, 5, 0, 1]], np.float32).T
    np.testing.assert_allclose(ends[:2].T, turned[:2, :2], atol=1e-5)


def test_the_first_version_counts_in_pixels() -> None:
    options = ENDS | {"subset": [0, 1, 2, 3], "dimensions": 3, "landmarks_range": 8, "bbox_size_multiplier": 1.0,
                      "input_hw": [9, 9], "output_hw": [5, 5]}
    m, = run("Landmarks2TransformMatrix", [SQUARE.reshape(1, 1, 1, 12)], [(1, 4, 4)], options)
    ends = m[0] @ np.array([[0, 0, 0, 1], [4, 4, 0, 1]], np.float32).T
    np.testing.assert_allclose(ends[:2].T, [[1, 1], [5, 3]], atol=1e-5)


REFUSED: list[tuple[str, list[tuple[int, ...]], Any, type[Exception], str]] = [
    ("MaxUnpooling2D", [(1, 2, 2, 1)] * 2, b"\1", FormatError, "has 1 bytes of options, not 24"),
    ("TransformTensor", [(1, 4, 4, 1), (1, 4, 4)], {"output_size": [3]}, FormatError, "has 1 sizes"),
    ("Landmarks2TransformMatrix", [(1, 4, 3)], ENDS | {
        "subset_idxs": [0, 9], "target_rotation_radians": 0.0, "output_height": 4, "output_width": 4, "scale_x": 1.0,
        "scale_y": 1.0}, FormatError, "are points of x"),
    ("RoIToTransformMatrix", [(1, 4)], {}, Unsupported, "'RoIToTransformMatrix' is not known here")]


@pytest.mark.parametrize(("op", "shapes", "options", "error", "says"), REFUSED)
def test_what_makes_no_sense_is_refused(op: str, shapes: list[tuple[int, ...]], options: Any, error: type[Exception],
                                        says: str) -> None:
    with pytest.raises(error, match=says):
        run(op, [np.zeros(s, np.float32) for s in shapes], [(1, 4, 4)], options)
