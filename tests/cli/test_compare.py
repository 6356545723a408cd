"""Outputs beside what was expected."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nnx_convert import UsageError
from nnx_convert.cli.compare import compared, difference
from nnx_convert.verify.metrics import Tolerance

NAN, INF = float("nan"), float("inf")
DEFAULT = Tolerance(None, None)
#: got, expected, tolerance, how many differ, the largest difference, the first.
CASES: dict[str, tuple[Any, Any, Tolerance, int, float, tuple[int, ...] | None]] = {
    "equal": ([1.0, NAN, INF], [1.0, NAN, INF], DEFAULT, 0, 0.0, None),
    "close": ([1.0], [1.00005], DEFAULT, 0, 5e-5, None),
    "relative": ([10000.0], [10000.5], DEFAULT, 0, 0.5, None),
    "far": ([[1.0, 2.0], [3.0, 4.5]], [[1.0, 2.0], [3.0, 4.0]], DEFAULT, 1, 0.5, (1, 1)),
    "nan": ([NAN, 1.0], [1.0, NAN], DEFAULT, 2, NAN, (0,)),
    "infinite": ([INF], [-INF], Tolerance(1.0, 1.0), 1, INF, (0,)),
    "atol alone": ([1.5], [1.0], Tolerance(0.5, None), 0, 0.5, None),
    "rtol alone": ([1.0], [0.0], Tolerance(None, 0.5), 1, 1.0, (0,)),
    "integers are exact": ([1, 2], [1, 3], DEFAULT, 1, 1.0, (1,)),
    "one step": ([1, 2], [1, 3], Tolerance(1.0, None), 0, 1.0, None),
    "truth": ([True, False], [True, True], DEFAULT, 1, 1.0, (1,)),
    "complex": ([1 + 1j], [1 - 1j], DEFAULT, 1, 2.0, (0,)),
    "scalar": (2.0, 3.0, DEFAULT, 1, 1.0, ()),
    "nothing": (np.zeros((0, 3)), np.zeros((0, 3)), DEFAULT, 0, 0.0, None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference(case: str) -> None:
    got, want, tolerance, differing, largest, first = CASES[case]
    found = difference("y", "y", np.asarray(got), np.asarray(want), tolerance)
    assert (found.differing, found.first) == (differing, first)
    assert found.largest == pytest.approx(largest, rel=1e-3, nan_ok=True)
    assert (f"{differing} of {np.size(got)} differ" in found.sentence()) == bool(differing)


@pytest.mark.parametrize("want", [np.zeros(3), np.zeros((2, 1)), np.array(["a", "b"])])
def test_what_cannot_be_compared_differs(want: Any) -> None:
    found = difference("y", "y", np.zeros(2), want, DEFAULT)
    assert found.differing and found.problem


KEYS = [({"y": 1}, "y"), ({"out0": 1}, "out0"), ({"out0": 1, "ref_out0": 1}, "ref_out0"), ({"out_0": 1}, "out_0"),
        ({"their_out0": 1, "their_out1": 1}, "their_out0")]


@pytest.mark.parametrize(("golden", "key"), KEYS)
def test_the_name_or_the_place_finds_it(golden: dict[str, int], key: str) -> None:
    found, = compared({"y": np.ones(1)}, {k: np.ones(1) for k in golden}, DEFAULT, "f.npz")
    assert (found.key, found.differing) == (key, 0)


def test_an_output_that_is_not_there_is_said_and_none_at_all_refused() -> None:
    outputs = {"y": np.ones(1), "z": np.ones(1)}
    _, z = compared(outputs, {"y": np.ones(1)}, DEFAULT, "f.npz")
    assert z.problem == "is not in f.npz"
    with pytest.raises(UsageError, match=r"f\.npz: has no output of the model"):
        compared(outputs, {"x": np.ones(1)}, DEFAULT, "f.npz")


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(0, 10), st.floats(0, 1))
def test_the_tolerance_is_numpys(values: list[float], atol: float, rtol: float) -> None:
    got, want = np.array(values), np.array(values[::-1])
    found = difference("y", "y", got, want, Tolerance(atol, rtol))
    assert found.differing == np.count_nonzero(~np.isclose(got, want, atol=atol, rtol=rtol))
