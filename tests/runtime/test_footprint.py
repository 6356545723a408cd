"""What of an arena is needed when: as counted byte by byte, and in a time that grows with what there is."""
from __future__ import annotations

import time

from hypothesis import given, settings, strategies as st

from nnx_convert.runtime.footprint import Footprint, Stretch

STRETCH = st.builds(Stretch, st.just("op"), st.integers(-1, 9), st.integers(-1, 12), st.integers(0, 30),
                    st.integers(0, 12))


@settings(max_examples=200)
@given(st.lists(STRETCH, max_size=12))
def test_bytes_that_are_needed_at_each_step(stretches: list[Stretch]) -> None:
    found = Footprint(64, ("op",) * 10, tuple(stretches)).live
    assert found == tuple(
        len({b for s in stretches if s.first <= n <= s.last for b in range(s.offset, s.offset + s.bytes)})
        for n in range(10))


def test_many_that_are_needed_long() -> None:
    count = 20000
    stretches = tuple(Stretch("op", n, count, 64 * n, 64) for n in range(count))
    before = time.process_time()
    assert Footprint(64 * count, ("op",) * count, stretches).live == tuple(range(64, 64 * count + 1, 64))
    assert time.process_time() - before < 4
