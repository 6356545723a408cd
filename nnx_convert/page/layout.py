"""Where the nodes of a graph stand: ranks, and an order in each, by a library for layered drawings."""
from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from ..errors import UsageError
from ..frozen import frozen

#: How far ranks and neighbours are apart in the library's drawing: only their order is used.
SPACING = 10
Edge = tuple[int, int]


@frozen
class Ranks:
    """A layered drawing: in each rank, from the inputs down, what stands side by side, from left to right.

    Nodes have the numbers below their count. Those from there on are bends, where an edge passes a rank; `bends` has
    those of each edge, in order.
    """

    ranks: tuple[tuple[int, ...], ...]
    bends: tuple[tuple[int, ...], ...]


def ranks(count: int, edges: Sequence[Edge]) -> Ranks:
    """The drawing of a graph without cycles. Raises `UsageError` where the library is not installed."""
    if find_spec("fast_sugiyama") is None:
        raise UsageError("the page's graph is laid out by fast-sugiyama, which is not installed",
                         hint="pip install 'nnx-convert[html]'")
    places, chains = _places(count, edges)
    rows = sorted({y for _, y in places.values()})
    row = {y: n for n, y in enumerate(rows)}
    found: list[list[tuple[float, int]]] = [[] for _ in rows]
    for node, (x, y) in places.items():
        found[row[y]].append((x, node))
    return Ranks(tuple(tuple(n for _, n in sorted(own)) for own in found),
                 tuple(chains.get(e, ()) for e in edges))


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
