"""Functions that NumPy has not."""
from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from ..types import Array

#: Coefficients of the series below; more do not improve it.
TERMS = 28
#: Beyond it `math.erfc` loses digits to underflow, and the asymptotic series has them all.
FAR = 20.0
#: Below it 1 - erfc(x) loses digits, and the power series of erf(x) / x has them all.
NEAR = 0.5
POWERS = [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(14)]


def erfc(x: Array) -> Array:
    """1 - erf(x) in float64, with a relative error below 1e-13 for every x where it does not underflow.

    erfc(z) = t * exp(-z ** 2 + p(t)) for z >= 0, t = 2 / (2 + z), where p is smooth on [0, 1]; erfc(-z) = 2 - erfc(z).
    """
    z = np.abs(np.asarray(x, np.float64))
    t = 2 / (2 + z)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        above = t * np.exp(-z * z + chebyshev.chebval(2 * t - 1, _series()))
    above = np.where(np.isinf(z), 0.0, above)
    return np.asarray(np.where(x < 0, 2 - above, above))


def erf(x: Array) -> Array:
    """The error function in float64, with a relative error below 1e-13: about 0 by its power series."""
    z = np.asarray(x, np.float64)
    small = np.clip(z, -NEAR, NEAR)
    near = small * np.polynomial.polynomial.polyval(small * small, POWERS)
    return np.asarray(np.where(np.abs(z) < NEAR, near, 1 - erfc(z)))


@cache
def _series() -> Array:
    """The coefficients of p, from its values at Chebyshev's points."""
    at = np.cos(np.pi * (np.arange(4 * TERMS) + 0.5) / (4 * TERMS))
    return np.asarray(chebyshev.chebfit(at, [smooth(2 / t - 2, t) for t in (at + 1) / 2], TERMS - 1))


def smooth(z: float, t: float) -> float:
    """log(erfc(z) / t) + z ** 2."""
    if z < FAR:
        return math.log(math.erfc(z) / t) + z * z
    tail = sum((-1) ** n * math.prod(range(1, 2 * n, 2)) / (2 * z * z) ** n for n in range(8))
    return math.log(tail / (z * math.sqrt(math.pi) * t))


def probit(x: Array) -> Array:
    """sqrt(2) * erfinv(2 * x - 1) by Winitzki's closed form, off by up to 2e-3, as ONNX's runtimes have it."""
    v = 2 * np.asarray(x, np.float64) - 1
    a, log = 0.147, np.log((1 - v) * (1 + v))
    half = 2 / (np.pi * a) + 0.5 * log
    return np.asarray(np.sqrt(2) * np.sign(v) * np.sqrt(np.sqrt(half * half - log / a) - half))
