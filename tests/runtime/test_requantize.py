"""Requantisation of accumulators against the formula, one integer at a time."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scalars import clamp, scale32

from nnx_convert.runtime.cuts import CHUNK
from nnx_convert.runtime.fixedpoint import multipliers
from nnx_convert.runtime.requantize import Requantizer

DTYPES = ("int8", "uint8", "int16", "uint16")


def expected(acc: np.ndarray, m: np.ndarray, s: np.ndarray, zero: int, low: int, high: int) -> np.ndarray:
    rows = [[clamp(scale32(int(x), int(k), int(e)) + zero, low, high) for x, k, e in zip(row, m, s, strict=True)]
            for row in acc]
    return np.array(rows)


# scale exponents, |acc|, the way it has to go
RANGES = [((-8, -7), 2**20, "_floats"), ((-13, 0), 2**28, "_floats"), ((-30, -20), 2**28, "_integers"),
          ((-30, -20), 2**20, "_floats"), ((1, 2), 2**18, "_floats"), ((1, 5), 2**30, "_plainly")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("exponents", "bound", "way"), RANGES)
def test_every_way_is_exact(exponents: tuple[int, int], bound: int, way: str, dtype: str) -> None:
    rng = np.random.default_rng(bound + exponents[0])
    info = np.iinfo(dtype)
    channels = 37
    m, s = multipliers(2.0 ** rng.uniform(*exponents, channels))
    if way == "_floats" and dtype.endswith("16") and exponents[0] == -13:
        way = "_integers"                                   # what 16 bits do not clamp is too large for float64
    unit = 2.0 ** (31 - s) / m
    ties = np.round((rng.integers(-130, 130, (40, channels)) + 0.5) * unit) + rng.integers(-1, 2, (40, channels))
    any_ = rng.integers(-bound, bound + 1, (40, channels))
    acc = np.concatenate([np.clip(ties, -bound, bound).astype(np.int64), any_, np.sign(any_) * bound])
    zero = int(rng.integers(info.min, info.max))
    made = Requantizer(m, s, zero, info.min, info.max, bound)
    out = np.empty(acc.shape, dtype)
    made.apply(acc, out)
    assert made._way.__name__ == way
    np.testing.assert_array_equal(out, expected(acc, m, s, zero, info.min, info.max))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("scale", [2.0**-4, 2.0**-3, 3 * 2.0**-9])
def test_all_small_accumulators(scale: float, dtype: str) -> None:
    """Powers of two make every tie; one multiplier for all channels, a range of the activation."""
    acc = np.arange(-5000, 5000).reshape(-1, 5)
    m, s = multipliers([scale])
    out = np.empty(acc.shape, np.int8)
    Requantizer(m, s, -3, -3, 90, 5000 + 70, np.full(5, 70)).apply(acc.astype(dtype), out)
    np.testing.assert_array_equal(out, expected(acc + 70, m.repeat(5), s.repeat(5), -3, -3, 90))


@pytest.mark.parametrize("channels", [1, 3, 1000, 1025, CHUNK + 1])
def test_rows_are_cut_anywhere(channels: int) -> None:
    rows = 3 * CHUNK // channels + 2
    acc = np.random.default_rng(channels).integers(-9000, 9000, (rows, channels))
    m, s = multipliers(np.linspace(0.001, 0.02, channels).tolist())
    made = Requantizer(m, s, 0, -128, 127, 9000)
    whole, single = np.empty((2, *acc.shape), np.int8)
    made.apply(acc, whole, np.empty(*made.scratch(acc.size)))
    for x, out in zip(acc, single, strict=True):
        made.apply(x, out)
    np.testing.assert_array_equal(whole, single)


@given(st.floats(2.0**-31, 2.0), st.integers(0, 2**29), st.integers(-128, 127),
       st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(-2**29, 2**29))
@settings(max_examples=400)
def test_any_multiplier(real: float, bound: int, zero: int, parts: list[float], bias: int) -> None:
    acc = np.array([[int(p * bound)] for p in parts])
    m, s = multipliers([real])
    out = np.empty(acc.shape, np.int8)
    Requantizer(m, s, zero, -128, 127, bound + abs(bias), np.array([bias])).apply(acc, out)
    np.testing.assert_array_equal(out, expected(acc + bias, m, s, zero, -128, 127))


def test_a_bound_per_channel() -> None:
    """A channel whose multiplier is next to nothing does not slow the others down when it is known to be small."""
    m, s = multipliers([0.01, 2.0**-29])
    wide, narrow = (Requantizer(m, s, 0, -128, 127, b) for b in (1 << 28, np.array([1 << 28, 5])))
    assert (wide._way.__name__, narrow._way.__name__) == ("_integers", "_floats")
