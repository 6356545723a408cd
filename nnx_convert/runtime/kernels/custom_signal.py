"""The audio front end of TFLite-Micro, bit for bit (github.com/tensorflow/tflite-micro, signal/src)."""
from __future__ import annotations

import numpy as np

from ...ops import custom_signal as s
from ...types import Array, Tensor, product
from ..kernel import NeedsValue, Run, Site, kernel
from ..kissfft import Transform

I64, U64, U32 = np.int64, np.uint64, np.uint32
#: Fractional bits of a signal-to-noise ratio, and of what PCAN makes of it (pcan_argc_fixed.h).
SNR_BITS, OUT_BITS = 12, 6
#: log2(1 + i / 128) - i / 128 in units of 2 ** -16, and a zero more (log.cc).
LOG_BITS, SEGMENT_BITS, LOG_OF_2 = 16, 7, 45426
LOGS = np.array([
    0, 224, 442, 654, 861, 1063, 1259, 1450, 1636, 1817, 1992, 2163, 2329, 2490, 2646, 2797, 2944, 3087, 3224, 3358,
    3487, 3611, 3732, 3848, 3960, 4068, 4172, 4272, 4368, 4460, 4549, 4633, 4714, 4791, 4864, 4934, 5001, 5063, 5123,
    5178, 5231, 5280, 5326, 5368, 5408, 5444, 5477, 5507, 5533, 5557, 5578, 5595, 5610, 5622, 5631, 5637, 5640, 5641,
    5638, 5633, 5626, 5615, 5602, 5586, 5568, 5547, 5524, 5498, 5470, 5439, 5406, 5370, 5332, 5291, 5249, 5203, 5156,
    5106, 5054, 5000, 4944, 4885, 4825, 4762, 4697, 4630, 4561, 4490, 4416, 4341, 4264, 4184, 4103, 4020, 3935, 3848,
    3759, 3668, 3575, 3481, 3384, 3286, 3186, 3084, 2981, 2875, 2768, 2659, 2549, 2437, 2323, 2207, 2090, 1971, 1851,
    1729, 1605, 1480, 1353, 1224, 1094, 963, 830, 695, 559, 421, 282, 142, 0, 0], I64)


@kernel(s.SIGNAL_WINDOW, inplace=("x",))
def SIGNAL_WINDOW(site: Site, x: Tensor, weights: Tensor, shift: int) -> Run:
    def run(out: Array, x: Array, weights: Array) -> None:
        np.copyto(out, (x.astype(np.int32) * weights >> shift).clip(-0x8000, 0x7FFF), casting="unsafe")
    return run


@kernel(s.SIGNAL_AUTO_SCALE)
def SIGNAL_AUTO_SCALE(site: Site, x: Tensor) -> Run:
    """TFLite-Micro loses its maximum at -32768 and may scale up then; here such a signal is not scaled."""
    def run(out: Array, bits: Array, x: Array) -> None:
        most = np.abs(x.astype(np.int32)).max(initial=0)
        bits[0] = max(15 - int(most).bit_length(), 0) if most else 0
        np.left_shift(x, bits[0], out=out, casting="unsafe")
    return run


def padded(x: Array, length: int) -> Array:
    """Rows with zeros behind them."""
    return np.concatenate((x, np.zeros((*x.shape[:-1], length - x.shape[-1]), x.dtype)), -1)


@kernel(s.SIGNAL_RFFT)
def SIGNAL_RFFT(site: Site, x: Tensor, length: int) -> Run:
    dtype = x.type.dtype
    fixed = Transform(length, dtype.itemsize * 8)

    def run(out: Array, x: Array) -> None:
        rows = padded(x, length)
        np.copyto(out, np.fft.rfft(rows).astype(np.complex64).view(np.float32) if dtype.kind == "f"
                  else fixed.forward(rows))
    return run


@kernel(s.SIGNAL_IRFFT)
def SIGNAL_IRFFT(site: Site, x: Tensor, length: int) -> Run:
    dtype = x.type.dtype
    fixed = Transform(length, dtype.itemsize * 8, inverse=True)

    def run(out: Array, x: Array) -> None:
        if dtype.kind == "f":
            pairs = np.ascontiguousarray(x).view(np.complex64)
            np.copyto(out, np.fft.irfft(pairs, length), casting="same_kind")
        else:
            np.copyto(out, fixed.backward(x))
    return run


@kernel(s.SIGNAL_ENERGY)
def SIGNAL_ENERGY(site: Site, x: Tensor, start: int, end: int) -> Run:
    def run(out: Array, x: Array) -> None:
        wide = x.astype(np.int64).reshape(*out.shape, 2)
        out.fill(0)
        np.copyto(out[..., start:end], (wide * wide).sum(-1)[..., start:end], casting="unsafe")
    return run


@kernel(s.SIGNAL_FILTER_BANK)
def SIGNAL_FILTER_BANK(site: Site, x: Tensor, weights: Tensor, unweights: Tensor, places: Tensor, starts: Tensor,
                       widths: Tensor, channels: int) -> Run:
    bank = banked(x.shape[0], channels, *(values(t) for t in (weights, unweights, places, starts, widths)))

    def run(out: Array, x: Array, *_: Array) -> None:
        np.matmul(bank, x.astype(U64), out=out)
    return run


def values(t: Tensor) -> Array:
    """The elements of a constant as INT64; raises `NeedsValue` where it is none."""
    if t.data is None:
        raise NeedsValue
    return t.data.astype(I64)


def banked(size: int, channels: int, weights: Array, unweights: Array, places: Array, starts: Array,
           widths: Array) -> Array:
    """The filters as rows of a matrix; what a channel's last rise leaves goes into the next one's fall."""
    bank = np.zeros((channels + 2, size), I64)
    for c, (place, start, width) in enumerate(zip(places, starts, widths, strict=True)):
        if min(place, start, width) < 0 or place + width > size or start + width > len(weights):
            raise ValueError(f"channel {c} lies outside its spectrum or its weights")
        bank[c, place:place + width] += weights[start:start + width]
        bank[c + 1, place:place + width] += unweights[start:start + width]
    return bank[1:channels + 1].astype(U64)


@kernel(s.SIGNAL_SQUARE_ROOT)
def SIGNAL_SQUARE_ROOT(site: Site, x: Tensor, bits: Tensor) -> Run:
    def run(out: Array, x: Array, bits: Array) -> None:
        np.copyto(out, nearest_root(x) >> U64(bits[0] & 63), casting="unsafe")
    return run


def nearest_root(x: Array) -> Array:
    """Square roots of UINT64 rounded to the nearest; those of 32 bits stay within 16 (square_root_32.cc)."""
    root = np.minimum(np.sqrt(x.astype(np.float64)).astype(U64), U64(0xFFFFFFFF))
    root -= root * root > x
    root += (root < 0xFFFFFFFF) & ((root + U64(1)) * (root + U64(1)) <= x)
    most = np.where(x >> U64(32) == 0, U64(0xFFFF), U64(0xFFFFFFFF))
    found: Array = root + ((x - root * root > root) & (root != most))
    return found


@kernel(s.SIGNAL_SPECTRAL_SUBTRACTION)
def SIGNAL_SPECTRAL_SUBTRACTION(site: Site, x: Tensor, noise: Tensor, smoothing: int, rest: int, odd_smoothing: int,
                                odd_rest: int, least: int, scale_bits: int, bits: int, clamp: bool) -> Run:
    odd = np.arange(x.shape[-1]) % 2 == 1
    gain, keep = (np.where(odd, a, b).astype(U32).astype(U64) for a, b in ((odd_smoothing, smoothing),
                                                                           (odd_rest, rest)))

    def run(out: Array, noise_out: Array, x: Array, noise: Array) -> None:
        scaled, wide = x << U32(scale_bits), x.astype(U64)
        now = (scaled.astype(U64) * gain + noise.astype(U64) * keep >> U64(bits)).astype(U32)
        below = np.minimum(now, scaled)
        np.copyto(noise_out, below if clamp else now)
        floor = (wide * U64(least & 0xFFFFFFFF) >> U64(bits)).astype(U32)
        np.maximum(scaled - below >> U32(scale_bits), floor, out=out)
    return run


@kernel(s.SIGNAL_PCAN)
def SIGNAL_PCAN(site: Site, x: Tensor, noise: Tensor, gains: Tensor, shift: int) -> Run:
    def run(out: Array, x: Array, noise: Array, gains: Array) -> None:
        gain = interpolated(noise.astype(I64), gains.astype(I64)).astype(U32)
        snr = (x.astype(U64) * gain >> U64(shift)).astype(U32)
        square = snr * snr >> U32(2 + 2 * SNR_BITS - OUT_BITS)
        np.copyto(out, np.where(snr < 2 << SNR_BITS, square, (snr >> U32(SNR_BITS - OUT_BITS)) - U32(1 << OUT_BITS)))
    return run


def interpolated(x: Array, table: Array) -> Array:
    """The quadratic spline that a table holds four numbers for each power of two of (pcan_argc_fixed.cc)."""
    power = bit_length(x)
    at = np.maximum(4 * power - 6, 0)
    part = np.where(power < 11, x << np.maximum(11 - power, 0), x >> np.maximum(power - 11, 0)) & 0x3FF
    curve = ((table[at + 2] * part >> 5) + (table[at + 1] << 5)) * part
    found = (curve + (1 << 14) >> 15) + table[at]
    return np.where(x <= 2, table[np.minimum(x, 2)], found).astype(np.int16)


def bit_length(x: Array) -> Array:
    """How many bits numbers below 2 ** 53 have."""
    return np.frexp(x.astype(np.float64))[1].astype(I64)


@kernel(s.SIGNAL_LOG)
def SIGNAL_LOG(site: Site, x: Tensor, scale: int, bits: int) -> Run:
    def run(out: Array, x: Array) -> None:
        scaled = (x << U32(bits)).astype(I64)
        found = logarithm(np.maximum(scaled, 1), scale)
        np.copyto(out, np.where(scaled > 1, np.minimum(found, 0x7FFF), 0), casting="unsafe")
    return run


def logarithm(x: Array, scale: int) -> Array:
    """ln(x) * scale in integers of 32 bits, by a table of log2 (log.cc)."""
    whole, half = bit_length(x) - 1, 1 << LOG_BITS - 1
    part = x - (1 << whole)
    part = np.where(whole < LOG_BITS, part << np.maximum(LOG_BITS - whole, 0), part >> np.maximum(whole - LOG_BITS, 0))
    at = part >> LOG_BITS - SEGMENT_BITS
    low, high = LOGS[at], LOGS[at + 1]
    inside = (high - low) * (part - (at << LOG_BITS - SEGMENT_BITS)) >> LOG_BITS
    natural = LOG_OF_2 * ((whole << LOG_BITS) + part + low + inside) + half >> LOG_BITS
    found: Array = (natural * scale & 0xFFFFFFFF) + half >> LOG_BITS
    return found


@kernel(s.SIGNAL_STACKER)
def SIGNAL_STACKER(site: Site, x: Tensor, queue: Tensor, filled: Tensor, left: int, step: int) -> Run:
    """`filled` counts the elements in the queue; -1 before the first frame."""
    size, channels = queue.shape[0], x.shape[0]

    def run(out: Array, valid: Array, queue_out: Array, filled_out: Array, x: Array, queue: Array,
            filled: Array) -> None:
        first = filled[0] < 0
        rows = np.concatenate((queue[:max(filled[0], 0)], np.tile(x, 1 + left if first else 1)))
        valid[0] = len(rows) >= size
        out.fill(0)
        if valid[0]:
            np.copyto(out, rows[:size])
            rows = rows[step * channels:]
        kept(rows[None], queue_out[None], filled_out)
    return run


@kernel(s.SIGNAL_FRAMER)
def SIGNAL_FRAMER(site: Site, x: Tensor, queue: Tensor, filled: Tensor, size: int, step: int) -> Run:
    rows, frames = product(x.shape[:-1]), x.shape[-1] // step

    def run(out: Array, valid: Array, queue_out: Array, filled_out: Array, x: Array, queue: Array,
            filled: Array) -> None:
        every = np.concatenate((queue.reshape(rows, -1)[:, :filled[0]], x.reshape(rows, -1)), 1)
        lost = max(-(-(size - filled[0]) // step) - 1, 0)           # steps that come before the first whole frame
        whole = max(frames - lost, 0)
        valid[0] = lost == 0
        out.fill(0)
        if whole:
            cut = np.lib.stride_tricks.sliding_window_view(every, size, 1)[:, ::step][:, :whole]
            np.copyto(out.reshape(rows, frames, size)[:, lost:], cut)
        kept(every[:, whole * step:], queue_out.reshape(rows, -1), filled_out)
    return run


def kept(rows: Array, queue: Array, filled: Array) -> None:
    """Write what stays in the queues, zeros behind it; raises `ValueError` where they are too short for it."""
    if rows.shape[1] > queue.shape[1]:
        raise ValueError(f"{rows.shape[1]} elements stay in a queue of {queue.shape[1]}")
    queue[:, :rows.shape[1]], queue[:, rows.shape[1]:] = rows, 0
    filled[0] = rows.shape[1]


@kernel(s.SIGNAL_OVERLAP_ADD)
def SIGNAL_OVERLAP_ADD(site: Site, x: Tensor, rest: Tensor, step: int) -> Run:
    dtype, (frames, size) = x.type.dtype, x.shape[-2:]
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind == "i" else (-np.inf, np.inf)
    wide = I64 if dtype.kind == "i" else dtype

    def run(out: Array, rest_out: Array, x: Array, rest: Array) -> None:
        steps, now = out.reshape(*x.shape[:-1], step), rest.astype(wide)
        for n in range(frames):                  # a sum saturates before the next frame is added
            now = (now + x[..., n, :]).clip(low, high)
            steps[..., n, :] = now[..., :step]
            now = np.concatenate((now[..., step:], np.zeros((*now.shape[:-1], min(step, size)), now.dtype)), -1)
        np.copyto(rest_out, now, casting="unsafe")
    return run
