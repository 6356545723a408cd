"""The audio front end of TFLite-Micro (its folder `signal`): integers from samples to features.

What these operators keep from call to call is an input and an output here, beside the samples.
"""
from __future__ import annotations

from typing import Annotated

from ..kinds import Bool, Bools, Int, Ints, Ints1, Natural, Positive, T, rank
from ..schema import Rule, host
from ..signature import Kind
from ..types import B8, F32, I16, I32, U32, U64, Q16S, Tensor, known
from .host import AnyT

INT16 = {I16: 27, Q16S: 27}
SAMPLES = {**INT16, I32: 27, F32: 27}
Words = Annotated[Tensor, Kind({U32: 27})]
Doubles = Annotated[Tensor, Kind({U64: 27})]
#: The table that PCAN interpolates in has this many elements.
GAINS = 125

POWER = Rule("length is a power of two from 4 on", lambda length: length >= 4 and length & (length - 1) == 0)


@host(60301, INT16, Rule("x is rows of the length of weights", lambda x, weights: x.shape[-1] == weights.shape[0]))
def SIGNAL_WINDOW(x: T, weights: Annotated[AnyT, rank(1)], shift: Natural) -> T:
    """x * weights / 2 ** shift, rounded down, saturated."""
    return x.like(x.shape)


@host(60302, INT16, outs=("out", "bits"))
def SIGNAL_AUTO_SCALE(x: T) -> tuple[T, Ints]:
    """x * 2 ** bits, bits being the largest with which nothing overflows."""
    return x.like(x.shape), Tensor(I32, (1,))


@host(60303, SAMPLES, POWER, Rule("x has length elements in a row at most", lambda x, length: x.shape[-1] <= length))
def SIGNAL_RFFT(x: T, length: Positive) -> T:
    """The Fourier transform of each row, zeros behind it, as pairs; in integers divided by length."""
    return x.free((*x.shape[:-1], length + 2))


@host(60304, SAMPLES, POWER, Rule("x has length + 2 elements in a row", lambda x, length: x.shape[-1] == length + 2))
def SIGNAL_IRFFT(x: T, length: Positive) -> T:
    """The rows that a Fourier transform is of; in integers divided by length once more."""
    return x.free((*x.shape[:-1], length))


@host(60305, INT16, Rule("start and end are within x", lambda x, start, end: 0 <= start <= end <= x.shape[-1] // 2))
def SIGNAL_ENERGY(x: T, start: Int, end: Int) -> Words:
    """The squared magnitudes of the pairs from start to end, 0 elsewhere."""
    return Tensor(U32, (*x.shape[:-1], x.shape[-1] // 2))


@host(60306, {U32: 27}, Rule("starts and widths are one more than channels", lambda places, starts, widths, channels:
                             places.shape == starts.shape == widths.shape == (channels + 1,)))
def SIGNAL_FILTER_BANK(x: T, weights: AnyT, unweights: AnyT, places: AnyT, starts: AnyT, widths: AnyT,
                       channels: Positive) -> Doubles:
    """Per channel c: widths[c + 1] elements of x from places[c + 1] by weights, and those of c by unweights."""
    return Tensor(U64, (channels,))


@host(60307, {U64: 27})
def SIGNAL_SQUARE_ROOT(x: T, bits: Ints1) -> Words:
    """The roots, rounded to the nearest, divided by 2 ** bits and rounded down."""
    return Tensor(U32, x.shape)


@host(60308, {U32: 27}, Rule("noise has the shape of x", lambda x, noise: x.shape == noise.shape),
      outs=("out", "noise_out"))
def SIGNAL_SPECTRAL_SUBTRACTION(x: T, noise: Words, smoothing: Int, rest: Int, odd_smoothing: Int, odd_rest: Int,
                                least: Int, scale_bits: Natural, bits: Natural, clamp: Bool) -> tuple[T, Words]:
    """x less the noise, which follows x slowly; at least x * least / 2 ** bits."""
    return x.like(x.shape), Tensor(U32, x.shape)


@host(60309, {U32: 27}, Rule(f"gains has {GAINS} elements", lambda gains: gains.shape == (GAINS,)))
def SIGNAL_PCAN(x: T, noise: Words, gains: AnyT, shift: Natural) -> T:
    """x by the gain that belongs to the noise, then squashed: y * y / 4 below 2, else y - 1."""
    return x.like(x.shape)


@host(60310, {U32: 27})
def SIGNAL_LOG(x: T, scale: Int, bits: Natural) -> AnyT:
    """The natural logarithm of x * 2 ** bits, times scale; 0 of 0 and 1."""
    return Tensor(I16, x.shape)


@host(60311, SAMPLES, Rule("queue holds whole frames of x", lambda x, queue: queue.shape[0] % x.shape[0] == 0),
      outs=("out", "valid", "queue_out", "filled_out"))
def SIGNAL_STACKER(x: Annotated[T, rank(1)], queue: AnyT, filled: Ints1, left: Natural,
                   step: Positive) -> tuple[T, Bools, AnyT, Ints]:
    """The queue with x behind it (at first left + 1 times) when it is full: step frames leave it then."""
    return x.like(queue.shape), Tensor(B8, (1,)), queue.like(queue.shape), Tensor(I32, (1,))


@host(60312, SAMPLES, Rule("x is steps", lambda x, step: x.shape[-1] % step == 0),
      outs=("out", "valid", "queue_out", "filled_out"))
def SIGNAL_FRAMER(x: T, queue: AnyT, filled: Ints1, size: Positive,
                  step: Positive) -> tuple[T, Bools, AnyT, Ints]:
    """Frames of a size, each a step after the one before, from the queue with x behind it; zeros while it fills."""
    frames = x.shape[-1] // step
    return x.like((*x.shape[:-1], frames, size)), Tensor(B8, (1,)), queue.like(queue.shape), Tensor(I32, (1,))


@host(60313, SAMPLES, Rule("rest has a frame for each row of frames", lambda x, rest:
                           rest.shape == (*x.shape[:-2], x.shape[-1])),
      Rule("step is within a frame", lambda x, step: not known(step) or step <= x.shape[-1]), outs=("out", "rest_out"))
def SIGNAL_OVERLAP_ADD(x: Annotated[T, rank(2, 8)], rest: AnyT, step: Positive) -> tuple[T, AnyT]:
    """Frames, each a step after the one before, added where they overlap; integers saturate."""
    return x.like((*x.shape[:-2], x.shape[-2] * step)), rest.like(rest.shape)
