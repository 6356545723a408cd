"""Whole-array fixed point against one integer at a time."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scalars
from hypothesis import given
from hypothesis import strategies as st

from nnx_convert.runtime import fixedpoint as fp
from nnx_convert.types import F32, Q8, Q8S, QPC, ChannelQuant, Quant, Tensor

INT32 = st.integers(-2**31, 2**31 - 1)
EDGES = [-2**31, -2**31 + 1, -3, -2, -1, 0, 1, 2, 3, 2**30, 2**31 - 1]


@given(st.lists(INT32, min_size=1), INT32)
def test_high_mul(xs: list[int], b: int) -> None:
    assert fp.high_mul([*xs, *EDGES], b).tolist() == [scalars.high_mul(x, b) for x in [*xs, *EDGES]]


def test_high_mul_saturates() -> None:
    assert fp.high_mul(-2**31, -2**31) == 2**31 - 1
    assert fp.high_mul(-2**15, -2**15, 16) == 2**15 - 1


@given(st.lists(INT32, min_size=1), st.integers(0, 31))
def test_shift_right(xs: list[int], n: int) -> None:
    assert fp.shift_right([*xs, *EDGES], n).tolist() == [scalars.shift_right(x, n) for x in [*xs, *EDGES]]


@given(st.lists(INT32, min_size=1), st.integers(2**30, 2**31 - 1), st.integers(-31, 12))
def test_scale32(xs: list[int], m: int, s: int) -> None:
    assert fp.scale32([*xs, *EDGES], m, s).tolist() == [scalars.scale32(x, m, s) for x in [*xs, *EDGES]]


@given(st.lists(st.integers(-2**46, 2**46), min_size=1), st.integers(2**30, 2**31 - 1), st.integers(-31, 12))
def test_scale64(xs: list[int], m: int, s: int) -> None:
    assert fp.scale64(xs, m, s).tolist() == [scalars.scale64(x, m, s) for x in xs]


@given(st.floats(2.0**-40, 2.0**20))
def test_multiplier(real: float) -> None:
    assert fp.multiplier(real) == scalars.multiplier(real)


@pytest.mark.parametrize(("real", "pair"), [
    (0.0, (0, 0)), (1.0, (2**30, 1)), (0.5, (2**30, 0)), (2.0**-32, (2**30, -31)), (2.0**-33, (0, 0)),
    (math.nextafter(1.0, 0.0), (2**30, 1)), (-0.25, (-2**30, -1))])
def test_multiplier_at_the_edges(real: float, pair: tuple[int, int]) -> None:
    assert fp.multiplier(real) == pair


@given(st.lists(st.integers(-2**40, 2**40), min_size=1))
def test_wrapping(xs: list[int]) -> None:
    assert fp.wrap32(xs).tolist() == [scalars.wrap(x) for x in xs]
    assert fp.wrap16(xs).tolist() == [scalars.wrap(x, 16) for x in xs]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_away(kind: Any) -> None:
    """The largest value below one half is not a half."""
    below = np.nextafter(kind(0.5), kind(0))
    given_ = np.array([0.5, -0.5, 1.5, 2.5, -2.5, below, -below, 2.0**24, 0.0], kind)
    assert fp.away(given_).tolist() == [1, -1, 2, 3, -3, 0, 0, 2.0**24, 0]


def test_to_int32() -> None:
    given_ = np.array([1.9, -1.9, 2147483648.0, -2147483648.0, np.inf, np.nan])
    assert fp.to_int32(given_).tolist() == [1, -1, -2**31, -2**31, -2**31, -2**31]


# activation, scale, zero point, type, bounds
RANGES = [(0, 0.1, 3, Q8S, (-128, 127)), (1, 0.1, 3, Q8S, (3, 127)), (2, 0.1, 3, Q8S, (-7, 13)),
          (3, 0.1, 3, Q8S, (3, 63)), (3, 0.01, 0, Q8, (0, 255)), (1, 0.1, -128, Q8S, (-128, 127)),
          (2, 0.4, 0, Q8S, (-3, 3))]


@pytest.mark.parametrize(("act", "scale", "zero", "kind", "bounds"), RANGES)
def test_activation_range(act: int, scale: float, zero: int, kind: Any, bounds: tuple[int, int]) -> None:
    assert fp.activation_range(act, Tensor(kind, (1,), Quant(scale, zero))) == bounds


def test_grids() -> None:
    per_channel = Tensor(QPC, (2,), ChannelQuant((0.5, 0.25), 0))
    assert fp.grid(per_channel) == (0, 0)
    found = fp.scales(per_channel, 2), fp.scales(Tensor(Q8, (1,), Quant(0.5, 9)), 3)
    assert [f.tolist() for f in found] == [[0.5, 0.25], [0.5] * 3] and {f.dtype for f in found} == {np.dtype("f4")}
    assert fp.grid(Tensor(F32, (1,))) == (0, 0)
