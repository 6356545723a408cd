"""Native functions of floats against the same in higher precision, in units in the last place."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert.runtime.codegen.mathematics import TANH_MOST

Array = np.ndarray[Any, Any]
SMALLEST = 2.0 ** -126


def exactly(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.array([function(float(v)) for v in x])


@dataclass(frozen=True)
class Case:
    """An operation, what it should give, where it is tried, how many units it may be off there, and special values."""

    name: str
    want: Callable[[Array], Array]
    low: float
    high: float
    units: float
    special: dict[float, float]


def logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(v: float) -> float:
    return v / 2 * math.erfc(-v / math.sqrt(2))


INF, NAN = math.inf, math.nan
CASES = [
    Case("EXP", np.exp, -87.3, 88.7, 2, {INF: INF, -INF: 0, NAN: NAN, 89: INF, -104: 0, 0: 1}),
    Case("LOGISTIC", logistic, -87, 88, 3, {INF: 1, -INF: 0, NAN: NAN, 0: 0.5}),
    Case("TANH", np.tanh, -10, 10, 6, {INF: 1, -INF: -1, NAN: NAN, 0: 0}),
    Case("host.ERF", exactly(math.erf), -5, 5, 3, {INF: 1, -INF: -1, NAN: NAN, 0: 0}),
    Case("LOG", np.log, SMALLEST, 3e38, 1, {INF: INF, -1: NAN, NAN: NAN, 0: -INF, 1: 0, 1e-40: math.log(1e-40)}),
    *(Case(n, want, -2.0 ** 20, 2.0 ** 20, units, {INF: NAN, -INF: NAN, NAN: NAN, 0: want(0.0), **{
        v: want(float(np.float32(v))) for v in (1.5e6, -7e9, 3.14159e20, -3e38)}}) for n, want, units in (
            ("SIN", np.sin, 2), ("host.COS", np.cos, 2), ("host.TAN", np.tan, 4))),
    Case("ASIN", np.arcsin, -1, 1, 3, {1: math.pi / 2, -1: -math.pi / 2, 2: NAN, -INF: NAN, NAN: NAN, 0: 0}),
    Case("ACOS", np.arccos, -1, 1, 3, {1: 0, -1: math.pi, 2: NAN, INF: NAN, NAN: NAN, 0: math.pi / 2}),
    Case("ATAN", np.arctan, -1e6, 1e6, 3, {INF: math.pi / 2, -INF: -math.pi / 2, NAN: NAN, 0: 0, 3e38: math.pi / 2}),
    Case("SINH", np.sinh, -89, 89, 1, {INF: INF, -INF: -INF, NAN: NAN, 0: 0, 90: INF, -90: -INF}),
    Case("COSH", np.cosh, -89, 89, 1, {INF: INF, -INF: INF, NAN: NAN, 0: 1, -90: INF}),
    Case("ASINH", np.arcsinh, -3e38, 3e38, 1, {INF: INF, -INF: -INF, NAN: NAN, 0: 0}),
    Case("ACOSH", np.arccosh, 1, 3e38, 1, {INF: INF, -INF: NAN, NAN: NAN, 1: 0, 0.99: NAN}),
    Case("ATANH", np.arctanh, -0.9999999, 0.9999999, 1, {1: INF, -1: -INF, 1.5: NAN, -INF: NAN, NAN: NAN, 0: 0}),
    Case("host.GELU", exactly(gelu), -6, 6, 60, {INF: INF, NAN: NAN, 0: 0, 50: 50, -50: 0}),
]


def values(case: Case) -> Array:
    """Evenly and by powers of two from the low bound to the high one, of both signs where there are both."""
    rng = np.random.default_rng(0)
    powers = np.exp2(rng.uniform(-60, math.log2(case.high), 20000))
    signs = rng.choice([-1, 1], powers.size) if case.low < 0 else 1
    found = np.concatenate([rng.uniform(case.low, case.high, 20000), signs * powers]).astype(np.float32)
    return found[(found >= np.float32(case.low)) & (found <= np.float32(case.high))]


def computed(case: Case, x: Array, machine: str) -> Array:
    net = Net()
    more = [net.scalar(False)] if case.name == "host.GELU" else []
    y = net.op(case.name, net.input(x), *more, shape=x.shape)
    _, (got,), native = both(net.finish(y), net.given, MACHINES[machine], 1)
    assert native == 1
    return got


def every(rng: np.random.Generator) -> Net:
    """All functions, and those of angles, of as many numbers as leave any tail."""
    net, shape = Net(), (int(rng.integers(1, 80)),)
    x = net.input(rng.uniform(0.1, 4, shape))
    names = (*(c.name for c in CASES), "host.ROUND", "host.SIGN", "host.SQUARE")
    net.model = net.finish(*(net.op(n, x, *([net.scalar(False)] if n == "host.GELU" else []), shape=shape)
                             for n in names))
    return net


MAKES = {"functions": every}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_functions_are_off_by_a_few_units(case: Case, machine: str) -> None:
    x = values(case)
    want = case.want(x.astype(np.float64))
    unit = np.spacing(np.maximum(np.abs(want), SMALLEST).astype(np.float32)).astype(np.float64)
    off = np.abs(computed(case, x, machine).astype(np.float64) - want) / unit
    assert off.max() <= case.units, float(x[off.argmax()])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_special_values(case: Case, machine: str) -> None:
    x = np.array([*case.special] * 7, np.float32)
    want = np.array([*case.special.values()] * 7, np.float32)
    np.testing.assert_allclose(computed(case, x, machine), want, rtol=1e-6, atol=2e-38)


@pytest.mark.parametrize("machine", MACHINES)
def test_far_out_tanh_is_1_and_no_less(machine: str) -> None:
    x = np.array([TANH_MOST, 8.5, 9, 10, 100, 3e38, np.inf], np.float32)
    case = next(c for c in CASES if c.name == "TANH")
    assert (computed(case, np.concatenate([x, -x]), machine) == np.repeat([1, -1], len(x))).all()
