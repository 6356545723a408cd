"""Arrays in pieces."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_convert.runtime.cuts import cuts, period, repeats


@given(st.integers(0, 5000), st.integers(1, 700), st.integers(1, 900))
def test_cuts_cover_in_order_and_line_up(count: int, width: int, step: int) -> None:
    found = list(cuts(count, width, step))
    assert [i for part, _ in found for i in range(count)[part]] == list(range(count))
    for part, use in found:
        rows = part.stop - part.start
        assert part.start % width == 0 and rows % use.stop == 0 and use.stop in (width, rows)
        assert rows <= max(step, width)


@pytest.mark.parametrize(("shape", "full", "found"), [
    ((3,), (2, 3), 3), ((1, 3), (2, 3), 3), ((2, 3), (2, 3), 6), ((1,), (2, 3), 1), ((), (2, 3), 1),
    ((2, 1), (2, 3), None), ((5, 1, 3), (5, 2, 3), None), ((1, 2, 3), (5, 2, 3), 6), ((1, 1), (1, 1), 1)])
def test_period(shape: tuple[int, ...], full: tuple[int, ...], found: int | None) -> None:
    assert period(shape, full) == found


def test_repeats_make_rows_worth_a_loop() -> None:
    assert [repeats(n) for n in (0, 1, 16, 1024, 5000)] == [1024, 1024, 64, 1, 1]
