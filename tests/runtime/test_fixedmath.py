"""Fixed-point functions against the real ones, and against values of gemmlowp's own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_convert.runtime import fixedmath as fm
from nnx_convert.runtime.fixedmath import F16, F32, Fixed

# width, integer bits, largest error in units of the last place of 16 bits
WIDTHS = [(F32, 0, 0.01), (F32, 5, 0.01), (F32, 6, 0.01), (F16, 0, 12), (F16, 3, 20), (F16, 4, 40)]


def spread(f: Fixed, positive: bool = True) -> np.ndarray[Any, Any]:
    """Raw values over the whole range, the ends and zero among them."""
    top = f.most
    half = np.unique(np.concatenate([np.linspace(0, top, 4001).astype(np.int64), np.arange(40), top - np.arange(40)]))
    return np.concatenate([-half, half]) if positive else -half


@pytest.mark.parametrize(("f", "k", "error"), WIDTHS)
def test_exp(f: Fixed, k: int, error: float) -> None:
    a = spread(f, positive=False)
    want = np.exp(a * 2.0 ** (k + 1 - f.width))
    assert np.abs(f.exp(a, k) / (f.most + 1) - want).max() * 2**15 <= error


@pytest.mark.parametrize(("f", "k", "error"), WIDTHS)
def test_logistic_and_tanh(f: Fixed, k: int, error: float) -> None:
    a = spread(f)
    real = a * 2.0 ** (k + 1 - f.width)
    assert np.abs(f.logistic(a, k) / (f.most + 1) - 1 / (1 + np.exp(-real))).max() * 2**15 <= error
    assert np.abs(f.tanh(a, k) / (f.most + 1) - np.tanh(real)).max() * 2**15 <= error


# Of LiteRT 2.3.0's own arithmetic (gemmlowp), which the models of LSTMs and softmaxes prove bit for bit.
EXACT = [(F32.exp, (-1, 5), 2147483124), (F32.exp, (-(1 << 26), 5), 790015308), (F32.exp, (-(1 << 30), 5), 242),
         (F32.exp, (-123456789, 5), 341177383), (F16.logistic, (4096, 3), 23952), (F16.logistic, (-4096, 3), 8815),
         (F16.logistic, (-32768, 3), 11), (F16.tanh, (4096, 3), 24964), (F16.tanh, (-1000, 3), -7840),
         (F16.tanh, (1000, 0), 1000), (fm.log_ge1, (700000, 12, 5), 19397090)]


@pytest.mark.parametrize(("function", "args", "golden"), EXACT)
def test_last_bits(function: Any, args: tuple[int, int], golden: int) -> None:
    assert int(function(*args)) == golden


def test_saturating_shift() -> None:
    assert F32.shift([1, 2**29, 2**30, -2**30, -2**30 - 1], 1).tolist() == [2, 2**30, 2**31 - 1, -2**31, -2**31]
    assert F32.shift([3, -3, 5], -1).tolist() == [2, -2, 3]


@given(st.lists(st.integers(1, 2**31 - 1), min_size=1))
def test_reciprocal(xs: list[int]) -> None:
    m, right = fm.reciprocal(xs, 12)
    assert np.abs(m * 2.0**-31 * 2.0**-right * (np.array(xs) * 2.0**-19) - 1).max() < 1e-6


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1))
def test_inv_sqrt(xs: list[int]) -> None:
    m, s = fm.inv_sqrt(xs)
    want = np.array(xs).clip(1) ** -0.5
    assert np.abs(m * 2.0 ** (s - 31.0) / want - 1).max() < 3e-6


@given(st.lists(st.integers(1 << 19, 2**31 - 1), min_size=1))
def test_log(xs: list[int]) -> None:
    assert np.abs(fm.log_ge1(xs, 12, 5) * 2.0**-26 - np.log(np.array(xs) * 2.0**-19)).max() < 2e-6


# value, multiplier, shift
ROOTS = [(0, 2**31 - 1, 0), (1, 2**31 - 1, 0), (128, 379624593, -1), (2**31 - 1, 189812531, -12)]


@pytest.mark.parametrize(("x", "m", "s"), ROOTS)
def test_inv_sqrt_to_the_last_bit(x: int, m: int, s: int) -> None:
    assert tuple(map(int, fm.inv_sqrt(x))) == (m, s)


@pytest.mark.parametrize("x", [0, 1, 2, 3, 2**30 - 1, 2**30, 2**31 - 1])
def test_leading_zeros(x: int) -> None:
    assert fm.leading_zeros(x) == 32 - x.bit_length()
