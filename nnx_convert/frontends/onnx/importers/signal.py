"""Transforms of signals. The windows have function bodies."""
from __future__ import annotations

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, signal as s
from ....types import I64, known
from ..constants import type_of
from ..importer import Op
from ..registry import imports


def transform(g: Op, x: Value, length: Value | None, axis: Value | int, inverse: int, onesided: int) -> Value:
    """A DFT along an axis that is not the last, which holds the numbers."""
    if known(x.shape[-1]) and x.shape[-1] not in (1, 2):
        raise FormatError(f"transforms the shape {list(x.shape)}, whose last axis holds the numbers")
    at = g.const([axis], I64) if isinstance(axis, int) else axis
    return g(s.DFT, x, length, at, inverse=bool(inverse), onesided=bool(onesided))


@imports("DFT", until=19)
def dft_by_attribute(g: Op, x: Value, dft_length: Value | None = None, *, axis: int = 1, inverse: int = 0,
                     onesided: int = 0) -> Value:
    return transform(g, x, dft_length, axis, inverse, onesided)


@imports(since=20)
def DFT(g: Op, x: Value, dft_length: Value | None = None, axis: Value | None = None, *, inverse: int = 0,
        onesided: int = 0) -> Value:
    return transform(g, x, dft_length, -2 if axis is None else axis, inverse, onesided)


@imports()
def STFT(g: Op, signal: Value, frame_step: Value, window: Value | None = None, frame_length: Value | None = None, *,
         onesided: int = 1) -> Value:
    """Frames times the window, each transformed; the window gives their length where nothing else does."""
    if g.rank(signal) == 2:
        signal = g.reshape(signal, (*g.shape(signal), 1))
    size = frame_length
    if size is None:
        if window is None:
            raise FormatError("has neither a window nor a frame_length")
        if not known(window.shape[0]):
            g.unsupported("has a window of an open size and no frame_length", "give the input sizes")
        size = g.const([window.shape[0]], I64)
    frames = g(s.FRAMES, signal, frame_step, size)
    if window is not None:
        frames = g(e.MUL, frames, g.reshape(window, (1, 1, window.shape[0], 1)), act=0)
    return transform(g, frames, None, 2, 0, onesided)


@imports()
def MelWeightMatrix(g: Op, num_mel_bins: Value, dft_length: Value, sample_rate: Value, lower_edge_hertz: Value,
                    upper_edge_hertz: Value, *, output_datatype: int = 1) -> Value:
    found = g(s.MEL_WEIGHTS, num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    return g.cast(found, type_of(output_datatype))
