"""Transforms of signals: DFT, frames, mel weights."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...ops import signal as s
from ...types import Array, Tensor
from ..kernel import Compute, Site, sized
from ..memory import affordable
from .gather import axis_of


@sized(s.DFT)
def DFT(site: Site, x: Tensor, length: Tensor | None, axis: Tensor, inverse: bool, onesided: bool) -> Compute:
    """In the width of the elements; a transform of a length below 1 is a failed run, as is one of the
    last axis, which has the parts of a number."""
    def run(x: Array, length: Array | None, axis: Array) -> Sequence[Array]:
        at = axis_of(axis, x.ndim, x.ndim - 1)
        n = int(length.item()) if length is not None else 2 * (x.shape[at] - 1) if inverse and onesided else x.shape[at]
        if n < 1:
            raise RunError(f"a transform has the length {n}")
        affordable(x.size // max(x.shape[at], 1) * n * 16, "a transform")
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        numbers = wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]
        return [transformed(numbers, n, at, inverse, onesided).astype(x.dtype)]
    return run


def transformed(x: Array, n: int, axis: int, inverse: bool, onesided: bool) -> Array:
    """The transform, its numbers along a last axis."""
    if inverse and onesided:
        return np.fft.irfft(x, n, axis)[..., None]
    found = (np.fft.ifft if inverse else np.fft.fft)(x, n, axis)
    if onesided:
        found = np.take(found, np.arange(n // 2 + 1), axis)
    return np.stack([found.real, found.imag], axis=-1)


@sized(s.FRAMES)
def FRAMES(site: Site, x: Tensor, step: Tensor, size: Tensor) -> Compute:
    def run(x: Array, step: Array, size: Array) -> Sequence[Array]:
        by, k = int(step.item()), int(size.item())
        if by < 1 or not 1 <= k <= x.shape[1]:
            raise RunError(f"frames of {k} rows, {by} apart, in {x.shape[1]} rows")
        affordable(x.size * -(-k // by) * x.itemsize, "the frames")
        windows = np.lib.stride_tricks.sliding_window_view(x, k, axis=1)[:, ::by]
        return [np.ascontiguousarray(np.moveaxis(windows, -1, 2))]
    return run


@sized(s.MEL_WEIGHTS)
def MEL_WEIGHTS(site: Site, bins: Tensor, length: Tensor, rate: Tensor, low: Tensor, high: Tensor) -> Compute:
    """As ONNX's reference: an edge is the largest bin not above its frequency, and each triangle's sides are exact
    at the edges."""
    def run(bins: Array, length: Array, rate: Array, low: Array, high: Array) -> Sequence[Array]:
        columns, n, hertz = (int(v.item()) for v in (bins, length, rate))
        if columns < 1 or n < 1 or hertz < 1:
            raise RunError(f"{columns} bins of a transform of {n} at {hertz} hertz")
        affordable((n // 2 + 1) * columns * 8, "the weights")
        edges = mel_edges(columns, float(low.item()), float(high.item())) * (n + 1) // hertz
        at = np.arange(n // 2 + 1)[:, None]
        left, centre, right = edges[:-2], edges[1:-1], edges[2:]
        rising = np.divide(at - left, centre - left, out=np.ones((len(at), columns)), where=centre > left)
        falling = np.divide(right - at, right - centre, out=np.zeros((len(at), columns)), where=right > centre)
        up = np.where((at >= left) & (at <= centre), rising, 0)
        found = np.where((at >= centre) & (at < right) & (right > centre), falling, up)
        return [found.astype(np.float32)]
    return run


def mel_edges(bins: int, low: float, high: float) -> Array:
    """The frequencies in hertz that bound so many triangles, evenly spaced in mel from `low` on."""
    first, last = (2595 * np.log10(1 + f / 700) for f in (low, high))
    mel = np.arange(bins + 2) * ((last - first) / (bins + 2)) + first
    return np.asarray(700 * (10 ** (mel / 2595) - 1))
