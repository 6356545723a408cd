"""The audio front end natively: every number is that of NumPy's kernels."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both, draw

from nnx_convert import OperandCode

INT32, INT16, UINT32, UINT64 = (OperandCode[f"TENSOR_{n}"] for n in ("INT32", "INT16", "UINT32", "UINT64"))


def words(rng: np.random.Generator, shape: tuple[int, ...], bits: int) -> np.ndarray:
    """Numbers without a sign of every length, the smallest and the largest among them."""
    some = rng.integers(0, 1 << bits, shape, np.uint64, endpoint=bits < 64) if bits < 64 else rng.integers(
        0, (1 << 64) - 1, shape, np.uint64, endpoint=True)
    some >>= rng.integers(0, bits, shape).astype(np.uint64)
    ends = np.array([0, 1, 2, 3, (1 << bits) - 1, (1 << bits - 1) - 1, 1 << bits - 1], np.uint64)
    return np.where(rng.random(shape) < 0.2, rng.choice(ends, shape), some)


def samples(rng: np.random.Generator) -> Net:
    """A window, a scale, and the energy of pairs."""
    rows, columns = int(rng.integers(1, 4)), 2 * int(rng.integers(1, 40))
    shape, loud = (rows, columns), int(rng.integers(1, 16))
    x, net = rng.integers(-1 << loud, 1 << loud, shape), Net()
    x[rng.random(shape) < 0.1] = -0x8000 if loud == 15 else 0
    a = net.input(x.clip(-0x8000, 0x7FFF), INT16)
    weights = net.input(rng.integers(-0x8000, 0x8000, columns), INT16)
    first, last = sorted(draw(rng, 0, columns // 2 + 1, 2))
    outs = [net.op("SIGNAL_WINDOW", a, weights, net.scalar(int(rng.integers(0, 20))), shape=shape, kind=INT16),
            net.op("SIGNAL_ENERGY", a, net.scalar(first), net.scalar(last), shape=(rows, columns // 2), kind=UINT32)]
    net.model = net.finish(*outs, *net.ops("SIGNAL_AUTO_SCALE", a, outs=[(shape, INT16), ((1,), INT32)]))
    return net


def bank(rng: np.random.Generator) -> Net:
    """A spectrum's filters, empty ones among them."""
    size, channels, net = int(rng.integers(1, 60)), int(rng.integers(1, 9)), Net()
    widths = rng.integers(0, size + 1, channels + 1) * (rng.random(channels + 1) < 0.8)
    places = [int(rng.integers(0, size - n + 1)) for n in widths]
    starts = np.cumsum([0, *widths[:-1]])
    weights, others = (rng.integers(-0x8000, 0x8000, int(widths.sum()) + 1) for _ in range(2))
    tables = [net.const(np.asarray(v), INT16) for v in (weights, others, places, starts, widths)]
    y = net.op("SIGNAL_FILTER_BANK", net.input(words(rng, (size,), 32), UINT32), *tables, net.scalar(channels),
               shape=(channels,), kind=UINT64)
    net.model = net.finish(y)
    return net


def channels(rng: np.random.Generator) -> Net:
    """Roots, noise, gains and logarithms of numbers of any size."""
    shape, net = tuple(draw(rng, 1, 30, int(rng.integers(1, 3)))), Net()
    x, noise, wide = (net.input(words(rng, shape, n), k) for n, k in ((32, UINT32), (32, UINT32), (64, UINT64)))
    root = net.op("SIGNAL_SQUARE_ROOT", wide, net.input(rng.integers(0, 30, 1), INT32), shape=shape, kind=UINT32)
    numbers = [*draw(rng, 0, 1 << 14, 5), *draw(rng, 0, 24, 2)]
    less = net.ops("SIGNAL_SPECTRAL_SUBTRACTION", x, noise, *map(net.scalar, numbers), net.scalar(bool(
        rng.integers(0, 2))), outs=[(shape, UINT32), (shape, UINT32)])
    gains = net.input(rng.integers(-0x8000, 0x8000, 125), INT16)
    gained = net.op("SIGNAL_PCAN", x, noise, gains, net.scalar(int(rng.integers(0, 30))), shape=shape, kind=UINT32)
    log = net.op("SIGNAL_LOG", x, net.scalar(int(rng.integers(1, 4000))), net.scalar(int(rng.integers(0, 8))),
                 shape=shape, kind=INT16)
    net.model = net.finish(root, *less, gained, log)
    return net


MAKES = {"samples": samples, "bank": bank, "channels": channels}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_signals_are_those_of_numpy(make: type[Net], machine: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(40):
        net = make(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
