"""Powers of floats and angles of points natively: within units of the exact ones, and what C's functions say where
there is no number."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from natively import MACHINES, Array, Net, both

from nnx_convert import OperandCode

#: Results that FLOAT32 holds with all its digits.
SMALLEST, LARGEST = 2.0 ** -126, float(np.finfo(np.float32).max)
ODD = (0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-30, 1e38, -1e38,
       2.0 ** 24, -2.0 ** 24 - 2, 2.0 ** 24 - 1, 1 - 2.0 ** 24, 2.0 ** 23 + 1, 1 - 2.0 ** -24, 1 + 2.0 ** -23)


def powers(rng: np.random.Generator) -> Net:
    """Of both types, of as many numbers as leave any tail, one of them or a row to the power of all."""
    net, shape = Net(), (int(rng.integers(1, 5)), int(rng.integers(1, 80)))
    x, y = rng.uniform(0.1, 4, shape), rng.uniform(-3, 3, [(1, 1), (1, shape[1]), shape][int(rng.integers(0, 3))])
    outs = [net.op("POW", *given, shape=shape, kind=kind) for kind in (
        OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16)
        for given in ([net.input(v, kind) for v in (x, y)], [net.input(v, kind) for v in (np.exp(y / 3), x)])]
    outs.append(net.op("ATAN2", net.input(y), net.input(x), shape=shape))
    net.model = net.finish(*outs)
    return net


MAKES = {"powers": powers}


def made(name: str, x: Array, y: Array, machine: str) -> tuple[Array, Array]:
    """A function of two natively, and by NumPy."""
    net = Net()
    (want,), (got,), native = both(net.finish(net.op(name, net.input(x), net.input(y), shape=x.shape)), net.given,
                                   MACHINES[machine], 1)
    assert native == 1
    return got, want


@pytest.mark.parametrize("machine", MACHINES)
def test_powers_are_off_by_one_unit_at_most(machine: str) -> None:
    """Results of all sizes, and numbers next to 1 to powers far from it."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.exp2(rng.uniform(-149, 127, 20000)), rng.uniform(0.99, 1.01, 20000), rng.random(20000) * 9])
    power = np.concatenate([rng.uniform(-126, 127, 40000) / np.log2(x[:40000]), rng.uniform(-9, 9, 20000)])
    x, y = x.astype(np.float32), power.astype(np.float32)
    exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    held = (exact >= SMALLEST) & (exact < LARGEST)
    unit = np.spacing(exact[held].astype(np.float32)).astype(np.longdouble)
    off = np.abs(made("POW", x, y, machine)[0][held] - exact[held]) / unit
    assert held.mean() > 0.9 and off.max() <= 1, (x[held][off.argmax()], y[held][off.argmax()])


@pytest.mark.parametrize("machine", MACHINES)
def test_odd_numbers_to_odd_powers(machine: str) -> None:
    """NaN, infinities, zeros of both signs, denormal results: with the sign they have in NumPy."""
    x, y = np.array([*product(ODD, ODD)], np.float32).T
    got, want = made("POW", x, y, machine)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))
    np.testing.assert_allclose(got, want, rtol=1.2e-7, atol=1.5e-45)


@pytest.mark.parametrize("machine", MACHINES)
def test_angles_are_off_by_three_units_at_most(machine: str) -> None:
    """Of points everywhere, and of such as are none or on an axis: with the sign they have in NumPy."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.standard_normal(20000), np.exp2(rng.uniform(-60, 60, 20000))]).astype(np.float32)
    x = (rng.permutation(y) * rng.choice([-1, 1], y.size)).astype(np.float32)
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    off = np.abs(made("ATAN2", y, x, machine)[0] - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert off.max() <= 3
    got, want = made("ATAN2", *np.array([*product(ODD, ODD)], np.float32).T, machine)
    np.testing.assert_allclose(got, want, rtol=5e-7, atol=1.5e-45)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("machine", MACHINES)
def test_any_shape_and_type(machine: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(4):
        net = powers(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            # Three units, as the tests against exact results say: what NumPy's own angles are off by depends on the
            # machine's vectors.
            np.testing.assert_allclose(g, w, rtol=3 * 2.0 ** -23 if g.dtype == np.float32 else 1e-3)
