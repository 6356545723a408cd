"""Fourier transforms natively: floats near NumPy's, integers those of the fixed-point transform to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw

from nnx_convert import OperandCode

COMPLEX, INT32 = OperandCode.TENSOR_COMPLEX64, OperandCode.TENSOR_INT32
INTEGERS = (OperandCode.TENSOR_INT16, INT32, OperandCode.TENSOR_QUANT16_SYMM)
#: Lengths of floats: odd ones, and products of all small primes.
LENGTHS = (1, 2, 3, 4, 6, 7, 8, 10, 15, 16, 21, 24, 25, 28, 32, 49, 60, 64, 75, 80, 96, 112, 128, 210, 256, 320, 384,
           512, 1000, 1024, 2048, 4096)


def floats(rng: np.random.Generator) -> Net:
    """Rows cut to a length or with zeros behind them, and their magnitudes."""
    n, rows = int(rng.choice(LENGTHS)), int(rng.integers(1, 5))
    given = max(1, n + int(rng.integers(-9, 9)))
    net, deep = Net(), int(rng.integers(1, 3))
    x = net.input(rng.standard_normal((rows, deep, given)))
    y = net.op("RFFT", x, net.const([1, n], INT32), shape=(rows, 1, n // 2 + 1), kind=COMPLEX)
    net.model = net.finish(y, net.op("COMPLEX_ABS", y, shape=(rows, 1, n // 2 + 1)))
    return net


def fixed(rng: np.random.Generator, kind: OperandCode | None = None) -> Net:
    """The same in integers of either width, the loudest among them."""
    n, rows = 4 << int(rng.integers(0, 10)), int(rng.integers(1, 4))
    kind = kind or INTEGERS[int(rng.integers(0, 3))]
    most = np.iinfo(kind.dtype).max >> int(rng.integers(0, 9))
    x, net = rng.integers(-most - 1, most, (rows, draw(rng, 1, n + 1, 1)[0]), endpoint=True), Net()
    x[rng.random(x.shape) < 0.2] = -most - 1
    grid = (0.5, 0) if kind.name.startswith("TENSOR_QUANT") else (0, 0)
    y = net.op("SIGNAL_RFFT", net.input(x, kind, grid), net.scalar(n), shape=(rows, n + 2), kind=kind, grid=grid)
    net.model = net.finish(y)
    return net


MAKES = {"floats": floats, "fixed": fixed}


@pytest.mark.parametrize("machine", MACHINES)
def test_transforms_of_floats_are_near_those_of_numpy(machine: str) -> None:
    rng = np.random.default_rng(2)
    for n in range(60):
        net = floats(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 2
        assert apart(got, want) <= NEAR, net.given[0].shape


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda k: k.name)
def test_transforms_of_integers_are_equal(kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(3)
    for n in range(30):
        net = fixed(rng, kind)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_magnitudes_of_the_largest_and_the_smallest(machine: str) -> None:
    some = np.array([0, 1, -3, 1e-38, 3e-30, 1e30, -3e38, np.inf, -np.inf, np.nan], np.float32)
    x, net = np.zeros((10, 10), np.complex64), Net()
    x.real, x.imag = some[:, None], some
    model = net.finish(net.op("COMPLEX_ABS", net.input(x, COMPLEX), shape=x.shape))
    want, got, native = both(model, net.given, MACHINES[machine], 1)
    assert native == 1
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)


@pytest.mark.parametrize("length", [11, 2 * 13, 64 * 17])
def test_lengths_with_a_large_prime_are_left_to_numpy(length: int) -> None:
    net = Net()
    x = net.input(np.ones((2, 1, length)))
    y = net.op("RFFT", x, net.const([1, length], INT32), shape=(2, 1, length // 2 + 1), kind=COMPLEX)
    assert both(net.finish(y), net.given, MACHINES["host"], 1)[2] == 0
