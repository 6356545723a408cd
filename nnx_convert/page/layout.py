"""Where the nodes of a graph stand: ranks, and an order in each, by a library for layered drawings."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import accumulate

from ..errors import UsageError
from ..frozen import frozen

#: How far ranks and neighbours are apart in the library's drawing: only their order is used.
SPACING = 10
#: The most bends of a drawing: each edge has one in each rank that it passes, so that they may be as many as the square
#: of the nodes.
BENDS = 1 << 15
#: Where the squares of the numbers of edges between one rank and the next add up to more, nobody could follow them, and
#: the library takes seconds, and a time that grows faster than the graph.
TANGLED = 1 << 20
#: The most nodes of a drawing: the library goes down a graph by recursion, and ends the process where that is deep.
LARGEST = 1 << 12
Edge = tuple[int, int]


@frozen
class Ranks:
    """A layered drawing: in each rank, from the inputs down, what stands side by side, from left to right.

    Nodes have the numbers below their count. Those from there on are bends, where an edge passes a rank; `bends` has
    those of each edge, in order. The longest edges have none where all would have more than `BENDS`, and no edge has
    one in a graph that is `TANGLED`, or larger than the `LARGEST`, whose ranks are in the order of its nodes.
    """

    ranks: tuple[tuple[int, ...], ...]
    bends: tuple[tuple[int, ...], ...]


def ranks(count: int, edges: Sequence[Edge]) -> Ranks:
    """The drawing of a graph without cycles. Raises `UsageError` where the library is not installed."""
    if find_spec("fast_sugiyama") is None:
        raise UsageError("the page's graph is laid out by fast-sugiyama, which is not installed",
                         hint="pip install 'nnx-convert[html]'")
    rank = depths(count, edges)
    own = bent(rank, edges)
    if count > LARGEST or tangle(rank, own) > TANGLED:
        return Ranks(_ordered([(0.0, r, n) for n, r in enumerate(rank)]), ((),) * len(edges))
    places, chains = _places(count, own)
    return Ranks(_ordered([(x, y, n) for n, (x, y) in places.items()]), tuple(chains.get(e, ()) for e in edges))


def _ordered(places: Iterable[tuple[float, float, int]]) -> tuple[tuple[int, ...], ...]:
    """The ranks by y, and each by x; what stands in one place by its number."""
    found: dict[float, list[tuple[float, int]]] = {}
    for x, y, n in places:
        found.setdefault(y, []).append((x, n))
    return tuple(tuple(n for _, n in sorted(found[y])) for y in sorted(found))


def depths(count: int, edges: Iterable[Edge]) -> list[int]:
    """The rank of each node: one below the lowest of all that it hangs on. Edges lead to higher numbers."""
    found = [0] * count
    for a, b in sorted(edges):
        found[b] = max(found[b], found[a] + 1)
    return found


def bent(rank: Sequence[int], edges: Sequence[Edge]) -> list[Edge]:
    """The edges of which all bends together are within the limit: the longest are left out.

    Of those that lead to a node one comes from the rank above it and has no bend, so that its rank stays the same.
    """
    passed = [rank[b] - rank[a] - 1 for a, b in edges]
    shortest = sorted(range(len(edges)), key=passed.__getitem__)
    bends = accumulate(passed[e] for e in shortest)
    kept = {e for e, total in zip(shortest, bends, strict=True) if total <= BENDS}
    return [e for n, e in enumerate(edges) if n in kept]


def tangle(rank: Sequence[int], edges: Sequence[Edge]) -> int:
    """The squares of the numbers of edges between one rank and the next, added up."""
    changes = [0] * (max(rank, default=0) + 1)
    for a, b in edges:
        changes[rank[a]] += 1
        changes[rank[b]] -= 1
    return sum(n * n for n in accumulate(changes))


def _places(count: int, edges: Sequence[Edge]) -> tuple[dict[int, tuple[float, float]], dict[Edge, tuple[int, ...]]]:
    """x and y of nodes and bends, y growing downwards, and the bends of each edge that has some."""
    places: dict[int, tuple[float, float]] = {}
    chains: dict[Edge, tuple[int, ...]] = {}
    right, bends = 0.0, count
    for nodes, own in components(count, edges):
        number = dict(enumerate(nodes))          # the library gives bends the numbers from the nodes' count on
        spots, lines, width = _drawn(nodes, own)
        for n in spots:
            if n not in number:
                number[n], bends = bends, bends + 1
        top = max(y for _, y in spots.values())
        places |= {number[n]: (right + x, top - y) for n, (x, y) in spots.items()}
        chains |= _chains(count, [(number[a], number[b]) for a, b in lines])
        right += width + SPACING
    return places, chains


def _drawn(nodes: Sequence[int], edges: Sequence[Edge]) -> tuple[dict[int, tuple[float, float]], list[Edge], float]:
    """The library's drawing of a connected graph: x and y, the edges between nodes and bends, and the width."""
    if len(nodes) == 1:
        return {0: (0.0, 0.0)}, [], 0.0
    from fast_sugiyama import from_edges
    place = {n: k for k, n in enumerate(nodes)}
    own = list(dict.fromkeys((place[a], place[b]) for a, b in edges))
    (positions, width, _, lines), = from_edges(own, vertex_spacing=SPACING, check_layout=False)
    spots = {int(n): (float(x), float(y)) for n, (x, y) in positions}
    return spots, [(int(a), int(b)) for a, b in lines or own], width


def components(count: int, edges: Sequence[Edge]) -> list[tuple[list[int], list[Edge]]]:
    """The nodes that hang together, in the order of the first of each, and the edges between them."""
    leader = list(range(count))

    def first(n: int) -> int:
        while leader[n] != n:
            leader[n] = leader[leader[n]]
            n = leader[n]
        return n
    for a, b in edges:
        low, high = sorted((first(a), first(b)))
        leader[high] = low
    found: dict[int, tuple[list[int], list[Edge]]] = {}
    for n in range(count):
        found.setdefault(first(n), ([], []))[0].append(n)
    for e in edges:
        found[first(e[0])][1].append(e)
    return list(found.values())


def _chains(count: int, drawn: Sequence[Edge]) -> dict[Edge, tuple[int, ...]]:
    """The bends between the ends of each edge: from a node on, through numbers that are none."""
    then = {a: b for a, b in drawn if a >= count}
    found: dict[Edge, tuple[int, ...]] = {}
    for a, b in drawn:
        if a < count <= b:
            way = [b]
            while way[-1] >= count:
                way.append(then[way[-1]])
            found[a, way[-1]] = tuple(way[:-1])
    return found
