"""ONNX's own backend suite: every case passes but those that are pinned with a reason."""
from __future__ import annotations

import pytest
from onnx_suite import cases, failure, pinned

#: More cases than this have to pass, whatever is pinned.
LEAST = 1990
REASONS = pinned()
#: A reason that chance may refute.
DRAWN = "a random draw"


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.xfail(
    strict=not REASONS[n].startswith(DRAWN), reason=REASONS[n])) if n in REASONS else n for n in cases()])
def test_a_case_of_the_suite_passes(name: str) -> None:
    error = failure(cases()[name])
    if error is not None:
        raise error


def test_what_is_pinned_is_little_and_there() -> None:
    assert set(REASONS) <= set(cases())
    assert len(cases()) - len(REASONS) >= LEAST
    assert all(len(why) > 20 for why in REASONS.values())
