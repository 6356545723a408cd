"""Ranks: every node once, below all that it hangs on; edges bend in each rank that they pass."""
from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert.errors import UsageError
from nnx_convert.page import layout
from nnx_convert.page.layout import components, ranks


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Nodes in an order that edges follow."""
    count = draw(st.integers(0, 30))
    edges = draw(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60))
    return count, list(dict.fromkeys((a, b) for a, b in edges if a < b < count))


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_all_stand_in_ranks(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    found = ranks(count, edges)
    rank = {n: r for r, row in enumerate(found.ranks) for n in row}
    assert sorted(n for n in rank if n < count) == list(range(count))
    assert sum(map(len, found.ranks)) == len(rank)
    for (a, b), bends in zip(edges, found.bends, strict=True):
        assert all(n >= count for n in bends)
        way = [rank[n] for n in (a, *bends, b)]
        assert way == list(range(rank[a], rank[b] + 1))


def test_parts_that_do_not_hang_together() -> None:
    assert components(5, [(0, 3), (1, 2)]) == [([0, 3], [(0, 3)]), ([1, 2], [(1, 2)]), ([4], [])]


def test_without_the_library_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"nnx-convert\[html\]"):
        ranks(2, [(0, 1)])
