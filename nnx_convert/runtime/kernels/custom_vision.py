"""LiteRT's detections and audio features, MediaPipe's pools and landmarks (mediapipe/util/tflite/operations)."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...kinds import scheme_pads
from ...ops import custom_vision as v
from ...types import Array, Tensor
from ..kernel import Run, Site, ints, kernel
from . import detect
from .elementwise import clamp

f32 = np.float32
#: The least energy of a mel band whose logarithm is taken, and the mel scale (mfcc.cc, mfcc_mel_filterbank.cc).
FLOOR, MEL, CORNER = 1e-12, 1127.0, 700.0

DETECTIONS = kernel(v.DETECTIONS)(detect.DETECTION_POSTPROCESSING)


@kernel(v.MAX_POOL_ARGMAX)
def MAX_POOL_ARGMAX(site: Site, x: Tensor, scheme: int, sw: int, sh: int, kw: int, kh: int, act: int) -> Run:
    pads = scheme_pads(scheme, x.shape[1], kh, sh), scheme_pads(scheme, x.shape[2], kw, sw)

    def run(out: Array, places: Array, x: Array) -> None:
        wide = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=-np.inf)
        views = np.lib.stride_tricks.sliding_window_view(wide, (kh, kw), (1, 2))[:, ::sh, ::sw]
        rows = views.reshape(*out.shape, kh * kw)
        best = rows.argmax(-1)
        np.copyto(out, np.take_along_axis(rows, best[..., None], -1)[..., 0])
        clamp(out, act)
        np.add(best, f32(0.1), out=places, dtype=f32, casting="unsafe")
    return run


@kernel(v.MAX_UNPOOL)
def MAX_UNPOOL(site: Site, x: Tensor, places: Tensor, sw: int, sh: int, kw: int, kh: int) -> Run:
    _, h, w, _ = x.shape
    heads = (max((h - 1) * sh + kh - h * kh, 0) // 2, max((w - 1) * sw + kw - w * kw, 0) // 2)
    images, rows, columns, channels = np.ix_(*(np.arange(m) for m in x.shape))

    def run(out: Array, x: Array, places: Array) -> None:
        at = places.astype(np.int32)
        row, column = rows * sh - heads[0] + at // kw, columns * sw - heads[1] + at % kw
        if at.size and (min(row.min(), column.min()) < 0 or row.max() >= h * kh or column.max() >= w * kw):
            raise ValueError("a place lies outside of its window")
        out.fill(0)
        out[images, row, column, channels] = x
    return run


def rows_of(matrix: Array) -> tuple[Array, Array]:
    """The first two rows of a transform."""
    flat = matrix.reshape(-1)
    return flat[:4].copy(), flat[4:8].copy()


@kernel(v.TRANSFORM_TENSOR)
def TRANSFORM_TENSOR(site: Site, x: Tensor, matrix: Tensor, h: int, w: int, centers: bool) -> Run:
    """`centers`: places are the centres of cells, not their corners."""
    grid = np.arange(w, dtype=f32)[None], np.arange(h, dtype=f32)[:, None]
    high, wide = x.shape[1:3]

    def run(out: Array, x: Array, matrix: Array) -> None:
        across, down = rows_of(matrix)
        for row in (across, down) if centers else ():
            row[3] += row[0] * f32(0.5) + row[1] * f32(0.5) - f32(0.5)
        column, line = (row[0] * grid[0] + row[1] * grid[1] + row[3] for row in (across, down))
        inside = (column >= 0) & (column <= wide - 1) & (line >= 0) & (line <= high - 1)
        left, top = (np.floor(np.where(inside, a, 0)).astype(np.int64) for a in (column, line))
        image = np.pad(x[0], ((0, 1), (0, 1), (0, 0)))
        right, lower = (np.where(inside, a - b, 0).astype(f32)[..., None] for a, b in ((column, left), (line, top)))
        above = (1 - right) * image[top, left] + right * image[top, left + 1]
        below = (1 - right) * image[top + 1, left] + right * image[top + 1, left + 1]
        np.copyto(out[0], np.where(inside[..., None], lower * below + (1 - lower) * above, 0), casting="same_kind")
    return run


@kernel(v.TRANSFORM_LANDMARKS)
def TRANSFORM_LANDMARKS(site: Site, x: Tensor, matrix: Tensor, dims: int, scale: float) -> Run:
    def run(out: Array, x: Array, matrix: Array) -> None:
        points, moved = x.reshape(-1, dims), out.reshape(-1, dims)
        moved[:, 2:] = points[:, 2:]
        for i, row in enumerate(rows_of(matrix)):
            moved[:, i] = row[0] * points[:, 0] + row[1] * points[:, 1] + row[3] * f32(scale)
    return run


@kernel(v.LANDMARKS_MATRIX)
def LANDMARKS_MATRIX(site: Site, x: Tensor, subset: Tensor, left: int, right: int, span: float, grow: float,
                     in_h: int, in_w: int, out_h: int, out_w: int) -> Run:
    chosen = list(ints(subset))
    relative = scaled(2 / np.array([out_w - 1.0, out_h - 1.0]), (-1.0, -1.0))
    half = np.array([in_w - 1.0, in_h - 1.0]) / 2
    absolute = scaled(half, half)

    def run(out: Array, x: Array, subset: Array) -> None:
        points = x.reshape(-1, 3)[:, :2].astype(np.float64)
        line = points[right] - points[left]
        angle = -np.arctan(line[1] / line[0])
        middle, size = boxed(points[chosen], angle)
        m = absolute @ rotated(-angle, middle / span * 2 - 1) @ scaled(size * grow / span, (0.0, 0.0)) @ relative
        out[0] = [[m[0, 0], m[0, 1], 0, m[0, 2]], [m[1, 0], m[1, 1], 0, m[1, 2]], [m[2, 0], m[2, 1], m[2, 2], 0],
                  [0, 0, 0, 1]]
    return run


@kernel(v.LANDMARKS_MATRIX_2)
def LANDMARKS_MATRIX_2(site: Site, x: Tensor, subset: Tensor, left: int, right: int, turn: float, out_h: int,
                       out_w: int, scale_x: float, scale_y: float) -> Run:
    chosen, size_out = list(ints(subset)), np.array([out_w, out_h], np.float64)

    def run(out: Array, x: Array, subset: Array) -> None:
        points = x.reshape(-1, 3)[:, :2].astype(np.float64)
        line = points[right] - points[left]
        angle = turn - np.arctan2(line[1], line[0])
        middle, size = boxed(points[chosen], angle)
        factors = np.array([scale_x, scale_y]) * size / size_out
        m = rotated(-angle, middle) @ scaled(factors, (0.0, 0.0)) @ scaled(np.ones(2), -size_out / 2)
        out[0] = [[m[0, 0], m[0, 1], 0, m[0, 2]], [m[1, 0], m[1, 1], 0, m[1, 2]], [0, 0, 1, 0], [0, 0, 0, 1]]
    return run


def boxed(points: Array, angle: float) -> tuple[Array, Array]:
    """The middle and the size of the box of points, its sides turned by an angle."""
    turn = rotated(angle, (0.0, 0.0))[:2, :2]
    there = points @ turn.T
    low, high = there.min(0), there.max(0)
    return turn.T @ ((low + high) / 2), high - low


def rotated(angle: float, shift: Sequence[float] | Array) -> Array:
    """A rotation and a shift in the plane."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, shift[0]], [s, c, shift[1]], [0, 0, 1]])


def scaled(factors: Array, shift: Sequence[float] | Array) -> Array:
    """A scaling and a shift in the plane."""
    return np.array([[factors[0], 0, shift[0]], [0, factors[1], shift[1]], [0, 0, 1]])


@kernel(v.AUDIO_SPECTROGRAM)
def AUDIO_SPECTROGRAM(site: Site, x: Tensor, size: int, stride: int, squared: bool) -> Run:
    """In float64, as LiteRT's (internal/spectrogram.cc)."""
    hann, length = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size), 1 << (size - 1).bit_length()

    def run(out: Array, x: Array) -> None:
        rows = np.lib.stride_tricks.sliding_window_view(x.T.astype(np.float64), size, 1)[:, ::stride]
        found = np.fft.rfft(rows * hann, length)
        power = (found.real ** 2 + found.imag ** 2).astype(f32)
        np.copyto(out, power if squared else np.sqrt(power))
    return run


@kernel(v.MFCC)
def MFCC(site: Site, x: Tensor, rate: Tensor, high: float, low: float, channels: int, count: int) -> Run:
    bank = mel_bank(x.shape[2], ints(rate)[0], channels, low, high)
    waves = np.sqrt(2 / channels) * np.cos(np.pi / channels * np.outer(np.arange(count), np.arange(channels) + 0.5))

    def run(out: Array, x: Array, rate: Array) -> None:
        energy = np.sqrt(x.astype(np.float64)) @ bank
        np.copyto(out, np.log(np.maximum(energy, FLOOR)) @ waves.T, casting="same_kind")
    return run


def mel_bank(bins: int, rate: int, channels: int, low: float, high: float) -> Array:
    """The weight of each bin in each mel band: triangles that reach from centre to centre."""
    width = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / width), int(high / width)
    ends = MEL * np.log1p(np.array([low, high]) / CORNER)
    centres = ends[0] + (ends[1] - ends[0]) / (channels + 1) * np.arange(channels + 2)
    bins_used = np.arange(first, min(last, bins - 1) + 1)
    mels = MEL * np.log1p(bins_used * width / CORNER)
    band = np.searchsorted(centres[1:-1], mels, side="left")            # of the centre at or above it
    fall = (centres[band + 1] - mels) / (centres[band + 1] - centres[band])
    bank = np.zeros((bins, channels + 2))
    bank[bins_used, band] += fall
    bank[bins_used, band + 1] += 1 - fall
    return bank[:, 1:channels + 1]
