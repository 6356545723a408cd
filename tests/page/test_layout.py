"""Ranks: every node once, below all that it hangs on; edges bend in each rank that they pass."""
from __future__ import annotations

import random
import time

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


@settings(max_examples=150)
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


def read_by_all(count: int) -> list[tuple[int, int]]:
    """A chain whose first node is read by all of it."""
    return [(n - 1, n) for n in range(1, count)] + [(0, n) for n in range(2, count)]


def tangled(count: int) -> list[tuple[int, int]]:
    """Each node reads three of those before it, drawn at random."""
    rng = random.Random(count)
    return sorted({(rng.randrange(n), n) for n in range(1, count) for _ in range(3)})


@pytest.mark.parametrize("edges", [read_by_all(4000), tangled(4000), [(n, n + 1) for n in range(39999)]],
                         ids=["long edges", "tangled", "a chain"])
def test_large_graphs_are_laid_out_in_little_time(edges: list[tuple[int, int]]) -> None:
    count = 1 + max(b for _, b in edges)
    before = time.process_time()
    found = ranks(count, edges)
    assert time.process_time() - before < 10
    rank = {n: r for r, row in enumerate(found.ranks) for n in row}
    assert sum(map(len, found.bends)) <= layout.BENDS and sorted(n for n in rank if n < count) == list(range(count))
    assert all(rank[a] < rank[b] for a, b in edges)


def test_parts_that_do_not_hang_together() -> None:
    assert components(5, [(0, 3), (1, 2)]) == [([0, 3], [(0, 3)]), ([1, 2], [(1, 2)]), ([4], [])]


def test_without_the_library_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"nnx-convert\[html\]"):
        ranks(2, [(0, 1)])
