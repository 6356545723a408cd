"""The audio front end of TFLite-Micro. What an operator keeps becomes a state, named like its output."""
from __future__ import annotations

import numpy as np

from ....errors import FormatError
from ....graph import Value, Values
from ....ops import custom_signal as s, shape
from ....ops.host import host_twin
from ....types import Shape
from .. import records
from ..flexible import Options
from ..importer import Op
from ..registry import imports
from ..tensors import DTYPES, TYPES

CODES = {dtype: code for code, dtype in DTYPES.items() if TYPES.get(dtype.upper()) == code}
#: No state of an operator is larger.
LARGEST = 1 << 24


def kept(g: Op, what: str, sizes: Shape, dtype: np.dtype[np.generic], initial: int = 0) -> Value:
    """What the operator keeps from run to run."""
    if min(sizes) < 0 or np.prod(sizes, dtype=float) > LARGEST:
        raise FormatError(f"its {what} would be {list(sizes)}")
    tensor = records.Tensor("", CODES[dtype.name], tuple(sizes), (), 0, True, None, None)
    start = np.full(sizes, initial, dtype) if initial else None
    return g.scope.state(f"{g.tensors[0].name}/{what}", tensor, start)


def rows(x: Value) -> Shape:
    """The sizes before the last."""
    return x.shape[:-1]


@imports("CUSTOM SignalWindow")
def window(g: Op, x: Value, weights: Value) -> Value:
    return g(s.SIGNAL_WINDOW, x, weights, shift=Options(g.custom).whole("shift"))


@imports("CUSTOM SignalFftAutoScale")
def auto_scale(g: Op, x: Value) -> Values:
    return g.add(s.SIGNAL_AUTO_SCALE, x)


@imports("CUSTOM SignalRfft")
def rfft(g: Op, x: Value) -> Value:
    return g(s.SIGNAL_RFFT, x, length=Options(g.custom).whole("fft_length"))


@imports("CUSTOM SignalIrfft")
def irfft(g: Op, x: Value) -> Value:
    return g(s.SIGNAL_IRFFT, x, length=Options(g.custom).whole("fft_length"))


@imports("CUSTOM SignalEnergy")
def energy(g: Op, x: Value) -> Value:
    o = Options(g.custom)
    return g(s.SIGNAL_ENERGY, x, start=o.whole("start_index"), end=o.whole("end_index"))


@imports("CUSTOM SignalFilterBank")
def filter_bank(g: Op, x: Value, weights: Value, unweights: Value, places: Value, starts: Value,
                widths: Value) -> Value:
    return g(s.SIGNAL_FILTER_BANK, x, weights, unweights, places, starts, widths,
             channels=Options(g.custom).whole("num_channels"))


@imports("CUSTOM SignalFilterBankSquareRoot")
def square_root(g: Op, x: Value, bits: Value) -> Value:
    return g(s.SIGNAL_SQUARE_ROOT, x, bits)


@imports("CUSTOM SignalFilterBankSpectralSubtraction")
def spectral_subtraction(g: Op, x: Value) -> Values:
    o, noise = Options(g.custom), kept(g, "noise", x.shape, np.dtype(np.uint32))
    out, now = g.add(s.SIGNAL_SPECTRAL_SUBTRACTION, x, noise, smoothing=o.whole("smoothing"),
                     rest=o.whole("one_minus_smoothing"), odd_smoothing=o.whole("alternate_smoothing"),
                     odd_rest=o.whole("alternate_one_minus_smoothing"), least=o.whole("min_signal_remaining"),
                     scale_bits=o.whole("smoothing_bits"), bits=o.whole("spectral_subtraction_bits"),
                     clamp=o.flag("clamping"))
    g.update(noise, now)
    return out, now


@imports("CUSTOM SignalPCAN")
def pcan(g: Op, x: Value, noise: Value, gains: Value) -> Value:
    return g(s.SIGNAL_PCAN, x, noise, gains, shift=Options(g.custom).whole("snr_shift"))


@imports("CUSTOM SignalFilterBankLog")
def log(g: Op, x: Value) -> Value:
    o = Options(g.custom)
    return g(s.SIGNAL_LOG, x, scale=o.whole("output_scale"), bits=o.whole("input_correction_bits"))


@imports("CUSTOM SignalStacker")
def stacker(g: Op, x: Value) -> Values:
    o = Options(g.custom)
    left, right = o.whole("stacker_left_context"), o.whole("stacker_right_context")
    queue = kept(g, "queue", (x.shape[0] * (left + right + 1),), x.type.dtype)
    filled = kept(g, "filled", (1,), np.dtype(np.int32), -1)
    out, valid, *now = g.add(s.SIGNAL_STACKER, x, queue, filled, left=left, step=o.whole("stacker_step"))
    g.update(queue, now[0])
    g.update(filled, now[1])
    return out, valid


@imports("CUSTOM SignalFramer")
def framer(g: Op, x: Value) -> Values:
    o = Options(g.custom)
    size, step = o.whole("frame_size"), o.whole("frame_step")
    if not 0 < step <= size:
        raise FormatError(f"a frame of {size} every {step}")
    queue = kept(g, "queue", (*rows(x), -(-size // step) * step), x.type.dtype)
    filled = kept(g, "filled", (1,), np.dtype(np.int32), size - step if o.flag("prefill") else 0)
    out, valid, *now = g.add(s.SIGNAL_FRAMER, x, queue, filled, size=size, step=step)
    g.update(queue, now[0])
    g.update(filled, now[1])
    return out, valid


@imports("CUSTOM SignalDelay")
def delay(g: Op, x: Value) -> Value:
    """The samples behind those that are kept: the last of both are kept next."""
    length = Options(g.custom).whole("delay_length")
    if length <= 0:
        return x
    late = kept(g, "late", (*rows(x), length), x.type.dtype)
    both = g(host_twin(shape.CONCATENATION), xs=(late, x), axis=len(x.shape) - 1)
    g.update(late, g(host_twin(shape.SLICE), both, (*[0] * len(rows(x)), x.shape[-1]), late.shape))
    return g(host_twin(shape.SLICE), both, [0] * len(x.shape), x.shape)


@imports("CUSTOM SignalOverlapAdd")
def overlap_add(g: Op, x: Value) -> Value:
    rest = kept(g, "rest", (*x.shape[:-2], x.shape[-1]), x.type.dtype)
    out, now = g.add(s.SIGNAL_OVERLAP_ADD, x, rest, step=Options(g.custom).whole("frame_step"))
    g.update(rest, now)
    return out
