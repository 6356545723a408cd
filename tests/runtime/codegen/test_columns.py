"""Normalisations along any axis, natively, against NumPy over random shapes."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both


def along(rng: np.random.Generator) -> Net:
    """All of them along one axis; one column of nothing, and one beyond what an exponential holds."""
    shape = tuple(int(rng.choice([1, 2, 3, 5, 8, 13, 16, 19, 33])) for _ in range(rng.integers(1, 4)))
    axis, x, net = int(rng.integers(-len(shape), len(shape))), rng.standard_normal(shape) * 4, Net()
    x[..., 0] = 0
    x[..., -1] *= 100
    a = net.input(x)
    outs = [net.op(n, a, net.scalar(float(rng.choice([1, 0.5]))), net.scalar(axis), shape=shape)
            for n in ("SOFTMAX", "LOG_SOFTMAX")]
    net.model = net.finish(*outs, net.op("L2_NORMALIZATION", a, net.scalar(axis), shape=shape))
    return net


MAKES = {"along": along}


@pytest.mark.parametrize("machine", MACHINES)
def test_normalisations_are_near_those_of_numpy(machine: str) -> None:
    rng = np.random.default_rng(4)
    for n in range(40):
        net = along(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 3
        assert apart(got, want) <= NEAR, net.given[0].shape


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_no_number_spreads_along_its_axis(machine: str) -> None:
    x, net = np.arange(24, dtype=np.float32).reshape(2, 4, 3), Net()
    x[0, 1, 2], x[1, 2, 0] = np.nan, -np.inf
    a = net.input(x)
    outs = [net.op(n, a, net.scalar(1.0), net.scalar(1), shape=x.shape) for n in ("SOFTMAX", "LOG_SOFTMAX")]
    model = net.finish(*outs, net.op("L2_NORMALIZATION", a, net.scalar(1), shape=x.shape))
    want, got, native = both(model, net.given, MACHINES[machine], 1)
    assert native == 3
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)
