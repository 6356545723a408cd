"""erfc against the standard library's, one number at a time."""
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_convert.runtime.special import erfc


@given(st.floats(-40, 26))
def test_erfc_is_the_standard_library_s(x: float) -> None:
    assert float(erfc(np.array([x]))[0]) == pytest.approx(math.erfc(x), rel=2e-13)


@pytest.mark.parametrize(("x", "want"), [(np.inf, 0.0), (-np.inf, 2.0), (0.0, 1.0), (1e300, 0.0), (40.0, 0.0)])
def test_erfc_at_the_ends(x: float, want: float) -> None:
    assert float(erfc(np.array(x))) == pytest.approx(want, rel=1e-13)


def test_erfc_of_what_is_no_number_is_none() -> None:
    assert np.isnan(erfc(np.array([np.nan], np.float32)))
