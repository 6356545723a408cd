"""How far arrays are from what they should be, in all its units."""
from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nnx_convert.types import Quant
from nnx_convert.verify.metrics import OPERATION, Gauge, Measure, Tolerance, dequantised, quantised

NAN, INF = float("nan"), float("inf")
DEFAULT = Tolerance()


def measured(got: Any, want: Any, tolerance: Tolerance = DEFAULT, grid: Quant | None = None) -> Measure:
    gauge = Gauge(tolerance, grid)
    gauge.add(np.asarray(got), np.asarray(want))
    return gauge.measure()


def test_floats_are_measured_in_every_unit() -> None:
    m = measured([1.0, 2.0, 3.5, 4.0], [1.0, 2.0, 3.0, 4.0])
    assert (m.count, m.differing, m.beyond, m.share, m.largest, m.mean) == (4, 1, 1, 0.25, 0.5, 0.125)
    assert m.snr == pytest.approx(10 * math.log10(30 / 0.25))
    assert (m.first, m.got, m.expected, m.steps, m.good) == ((2,), "3.5", "3.0", None, False)


def test_codes_are_measured_in_steps_and_in_real_values() -> None:
    m = measured(np.array([10, 20], np.int8), np.array([10, 17], np.int8), grid=Quant(0.5, 7))
    assert (m.steps, m.largest, m.mean, m.beyond) == (3.0, 1.5, 0.75, 1)
    assert m.snr == pytest.approx(10 * math.log10((1.5 ** 2 + 5.0 ** 2) / 1.5 ** 2))


def test_floats_on_a_grid_are_measured_in_its_steps() -> None:
    m = measured([0.5, 1.0], [0.5, 0.75], Tolerance(steps=1), Quant(0.25))
    assert (m.steps, m.good) == (1.0, True)
    assert not measured([0.5, 1.0], [0.5, 0.5], Tolerance(steps=1), Quant(0.25)).good


@pytest.mark.parametrize(("got", "want", "tolerance", "good"), [
    ([1.00005], [1.0], DEFAULT, True), ([1.001], [1.0], DEFAULT, False),
    ([1.001], [1.0], Tolerance(0.01), True), ([100.5], [100.0], Tolerance(rtol=0.01), True),
    ([NAN, INF], [NAN, INF], DEFAULT, True), ([NAN], [1.0], Tolerance(9.0), False),
    ([INF], [-INF], Tolerance(9.0, 9.0), False), ([1, 2], [1, 3], DEFAULT, False),
    ([1, 2], [1, 3], Tolerance(steps=1), False), ([True], [False], DEFAULT, False),
    ([1 + 1j], [1 - 1j], DEFAULT, False), ([], [], DEFAULT, True), ([2**53 + 1], [2**53], DEFAULT, False),
    ([2**53 + 1], [2**53], Tolerance(atol=1.0), True)])
def test_what_is_taken_for_equal(got: Any, want: Any, tolerance: Tolerance, good: bool) -> None:
    assert measured(got, want, tolerance).good is good


def test_cancelling_sums_are_judged_by_the_whole_and_outliers_are_not() -> None:
    rng = np.random.default_rng(0)
    want = rng.standard_normal(10000) * 1000
    noisy = want + rng.standard_normal(want.size) * 2e-3
    assert not measured(noisy, want).good
    assert measured(noisy, want, Tolerance(whole=OPERATION)).good
    assert not measured(noisy, want, Tolerance(atol=0.0, whole=OPERATION)).good
    spoilt = want.copy()
    spoilt[17] += 0.6
    assert measured(spoilt, want).snr > OPERATION  # type: ignore[operator]
    assert not measured(spoilt, want, Tolerance(whole=OPERATION)).good


def test_runs_add_up() -> None:
    gauge = Gauge(Tolerance())
    for got in ([1.0, 1.0], [1.0, 3.0], [2.0, 1.0]):
        gauge.add(np.array(got), np.ones(2))
    m = gauge.measure()
    assert (m.count, m.beyond, m.largest, m.mean, m.first) == (6, 2, 2.0, 0.5, (1,))


@pytest.mark.parametrize(("got", "want", "says"), [
    (np.zeros(2), np.zeros(3), "shape [2], expected [3]"),
    (np.zeros(2, "V2"), np.zeros(2), "type |V2, expected float64")])
def test_what_cannot_be_compared_is_no_equal(got: Any, want: Any, says: str) -> None:
    m = measured(got, want)
    assert says in m.problem and not m.good


def test_texts_and_narrow_floats() -> None:
    texts = np.array([b"a", b"bc"], object)
    assert measured(texts, np.array([b"a", b"bc"])).good
    assert measured(np.array(["a"], object), np.array(["a"])).good
    assert measured(texts, np.array([b"a", b"x"])).beyond == 1
    narrow = np.array([1.5, 2.0]).astype(ml_dtypes.bfloat16)
    assert measured(narrow, narrow.view("V2")).differing == 0


def test_codes_and_real_numbers() -> None:
    grid = Quant(0.5, 3)
    real = dequantised(np.array([-128, 3, 4], np.int8), grid)
    assert real.tolist() == [-65.5, 0.0, 0.5]
    assert quantised(np.array([-1000.0, 0.1, 0.5, 1000.0]), grid, np.dtype(np.int8)).tolist() == [-128, 3, 4, 127]
