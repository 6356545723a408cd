"""Repeated blocks: what is in a row several times, the shorter of two that say the same."""
from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from nnx_convert.page.blocks import LONGEST, blocks

#: Operations by a letter each, and where blocks begin and end.
FOUND = {"": [], "abc": [], "aaaa": [], "abab": [(0, 2), (2, 4)], "xababy": [(1, 3), (3, 5)],
         "abcabcabc": [(0, 3), (3, 6), (6, 9)], "aabaab": [(0, 3), (3, 6)],
         "abababab": [(0, 2), (2, 4), (4, 6), (6, 8)],
         "abcdab": [], "ababcdcd": [(0, 2), (2, 4), (4, 6), (6, 8)]}


@pytest.mark.parametrize("names", FOUND)
def test_blocks(names: str) -> None:
    assert [(b.first, b.end) for b in blocks(list(names))] == FOUND[names]


@given(st.lists(st.sampled_from("abc"), max_size=200))
def test_blocks_are_alike_and_apart(names: list[str]) -> None:
    end = 0
    for b in blocks(names):
        assert b.first >= end and 2 <= b.end - b.first <= LONGEST and b.of > 1 and 0 <= b.number < b.of
        assert tuple(names[b.first:b.end]) == b.names
        end = b.end


def test_two_halves_are_no_blocks() -> None:
    half = list("abcdefghijklmnop")
    assert not blocks(half * 2) and len(blocks(half * 3)) == 3
