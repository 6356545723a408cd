"""The choice of an order of axes for every value, so that few bytes are moved.

Candidates spread from the source's order through the rules until nothing is new. A choice costs, for every value,
its bytes and a call for each order that is wanted and not the one stored; constants cost nothing, and inputs and
outputs of the graph are in the source's order. The search improves three starts by moves: one node's plan is
changed, the change runs along the edges it broke, and as much of it is kept as pays.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..frozen import frozen
from ..graph import Graph, Node, Value
from ..ops.shape import TRANSPOSE
from ..target import Target
from ..types import known
from .axes import Perm, ident
from .layout_rules import Plan, Slot, asks, leading, memory, plans, pulled, slots

#: Orders considered for a value, and plans for a node.
MOST = 16
#: Nodes that one move may carry along.
REACH = 32
#: Graphs of no more nodes are searched everywhere.
FEW = 400
#: What a transpose costs beside its bytes: about as many as are moved in the time that it takes to start one.
CALL = 1 << 15
#: The same where NNAPI has no TRANSPOSE for the elements, INT32 above all: on a device, the host is a long way off.
HOSTED = 1 << 20
#: What an open size is taken for.
NOMINAL = 16


@frozen(eq=False)
class Way:
    """A plan, with its orders as they are in memory: of each value that is no constant."""

    plan: Plan
    ins: tuple[Perm, ...]                # in the order of the node's edges
    outs: tuple[Perm, ...]


#: A value, the node that reads it and the number of that edge there; of no node, it is an output of the graph.
Edge = tuple[Value, Node | None, int]


@dataclass(eq=False)
class Search:
    """A graph as the search sees it, and what is chosen."""

    ways: dict[Node, list[Way]]
    edges: dict[Node, tuple[tuple[Slot, Value], ...]]       # what each node reads that is no constant
    places: dict[Value, tuple[Node, int]]                   # where each value is made
    readers: dict[Value, list[Edge]]
    weight: dict[Value, int]
    natural: dict[Value, Perm]                              # the source's order in memory
    near: dict[Node, tuple[Value, ...]]
    choice: dict[Node, Way] = field(default_factory=dict)

    # What a choice costs.
    def stored(self, v: Value) -> Perm:
        """The order of a value in memory."""
        place = self.places.get(v)
        return self.natural[v] if place is None else self.choice[place[0]].outs[place[1]]

    def wanted(self, v: Value, edge: Edge) -> Perm:
        """The order a reader wants."""
        return self.natural[v] if edge[1] is None else self.choice[edge[1]].ins[edge[2]]

    def cost(self, v: Value) -> int:
        """What a value costs: readers of one order share a transpose."""
        wanted = {self.wanted(v, edge) for edge in self.readers[v]}
        return self.weight[v] * len(wanted - {self.stored(v)})

    def around(self, n: Node) -> int:
        """What all the values at a node cost."""
        return sum(map(self.cost, self.near[n]))

    def total(self) -> int:
        """What the choice costs."""
        return sum(map(self.cost, self.weight))

    def agrees(self, edge: Edge) -> bool:
        """Whether a value comes as its reader wants it."""
        return self.wanted(edge[0], edge) == self.stored(edge[0])

    def edges_at(self, n: Node) -> list[Edge]:
        """Every edge at a node."""
        own: list[Edge] = [(v, n, i) for i, (_, v) in enumerate(self.edges[n])]
        return own + [edge for v in n.outputs for edge in self.readers[v]]

    # Starts.
    def source(self) -> dict[Node, Way]:
        """Every node as in the source."""
        return {n: found[0] for n, found in self.ways.items()}

    def forward(self) -> dict[Node, Way]:
        """Each node takes what its inputs offer."""
        self.choice = {}
        for n, found in self.ways.items():
            offered = [self.stored(v) for _, v in self.edges[n]]
            self.choice[n] = min(found, key=partial(self.turned, n, offered))
        return self.choice

    def turned(self, n: Node, offered: Sequence[Perm], way: Way) -> int:
        """What it costs to turn what a node is offered."""
        return sum(self.weight[v] for (_, v), order, want in zip(self.edges[n], offered, way.ins, strict=True)
                   if order != want)

    def backward(self) -> dict[Node, Way]:
        """Each node gives what its readers ask for."""
        self.choice = self.source()
        for n in reversed(self.ways):
            self.choice[n] = self.cheapest(n, self.ways[n], n.outputs)
        return self.choice

    def cheapest(self, n: Node, ways: Sequence[Way], near: Iterable[Value]) -> Way:
        """The way that leaves the least cost on some values."""
        if len(ways) == 1:
            return ways[0]
        was, near = self.choice[n], tuple(near)

        def local(way: Way) -> int:
            self.choice[n] = way
            return sum(map(self.cost, near))
        best = min(ways, key=local)
        self.choice[n] = was
        return best

    # Moves.
    def descend(self, everywhere: bool = False) -> None:
        """Improve until nothing helps: first by mending what is broken, then by trying all ways of nodes beside that.

        `everywhere`: then all ways of all nodes, which seldom helps and takes the longest.
        """
        several = [n for n, found in self.ways.items() if len(found) > 1]
        better = True
        while better:
            better = any([self.improve(n, False) for n in (*several, *reversed(several))]) or any(
                [self.improve(n, True, everywhere) for n in several])

    def improve(self, n: Node, wide: bool, everywhere: bool = False) -> bool:
        """Where an edge at a node is broken, try the ways that would mend it, `wide`: all ways. Whether one paid."""
        broken = [edge for edge in self.edges_at(n) if not self.agrees(edge)]
        return bool(broken or everywhere) and any(
            self.move(n, way) for way in self.ways[n] if way is not self.choice[n] and (
                wide or any(self.mends(n, way, edge) for edge in broken)))

    def mends(self, n: Node, way: Way, edge: Edge) -> bool:
        """Whether a node's other way would make both ends of an edge agree."""
        v, reader, i = edge
        if reader is n:
            return way.ins[i] == self.stored(v)
        return way.outs[self.places[v][1]] == self.wanted(v, edge)

    def move(self, start: Node, way: Way) -> bool:
        """Change a node, let the change spread along the edges it broke, keep the best prefix if it pays."""
        undo = list[tuple[Node, Way]]()
        gain = best = length = 0
        front, moved = [(start, way)], set[Node]()
        for n, new in front:
            if n in moved or len(undo) >= REACH:
                continue
            moved.add(n)
            before = self.around(n)
            agreed = [edge for edge in self.edges_at(n) if self.agrees(edge)]
            undo.append((n, self.choice[n]))
            self.choice[n] = new
            gain += before - self.around(n)
            if gain > best:
                best, length = gain, len(undo)
            front += [other for edge in agreed if not self.agrees(edge) and (other := self.follow(n, edge))]
        for n, old in reversed(undo[length:]):
            self.choice[n] = old
        return best > 0

    def follow(self, n: Node, edge: Edge) -> tuple[Node, Way] | None:
        """The neighbour across a broken edge, and its way that mends it."""
        v, reader, i = edge
        if reader is n:
            maker, at = self.places.get(v, (None, 0))
            ways = [w for w in self.ways[maker] if w.outs[at] == self.choice[n].ins[i]] if maker else []
        else:
            maker = reader
            ways = [w for w in self.ways[maker] if w.ins[i] == self.stored(v)] if maker else []
        return (maker, self.cheapest(maker, ways, self.near[maker])) if maker and ways else None


def chosen(graph: Graph, target: Target) -> tuple[dict[Node, Plan], int]:
    """The plan of each node, those that together leave the least to move, as far as the search finds them; its cost."""
    search = prepared(graph, target)
    best, least = dict[Node, Way](), -1
    for start in (search.forward, search.source, search.backward):
        search.choice = start()
        search.descend(everywhere=len(search.ways) <= FEW)
        if least < 0 or search.total() < least:
            best, least = search.choice, search.total()
    return {n: way.plan for n, way in best.items()}, least


def prepared(graph: Graph, target: Target) -> Search:
    """The graph with the candidates of its nodes."""
    edges = {n: tuple((s, v) for s, v in slots(n) if v.tensor.data is None) for n in graph.nodes}
    places = {v: (n, i) for n in graph.nodes for i, v in enumerate(n.outputs)}
    readers: dict[Value, list[Edge]] = {v: [] for v in (*graph.inputs, *places)}
    for n, own in edges.items():
        for i, (_, v) in enumerate(own):
            readers.setdefault(v, []).append((v, n, i))
    for v in graph.outputs:
        readers.setdefault(v, []).append((v, None, 0))
    natural = {v: memory(v, ident(len(v.tensor.dims or ()))) for v in readers}
    return Search(candidates(graph, target, edges, readers), edges, places, readers,
                  {v: weight(v) for v in readers}, natural,
                  {n: tuple(dict.fromkeys([*(v for _, v in edges[n]), *n.outputs])) for n in graph.nodes})


def weight(v: Value) -> int:
    """What it costs to turn a value: its bytes, and a call."""
    size = v.type.dtype.itemsize
    for n in v.tensor.dims or ():
        size *= n if known(n) else NOMINAL
    return size + (CALL if v.type in TRANSPOSE.types else HOSTED)


def candidates(graph: Graph, target: Target, edges: dict[Node, tuple[tuple[Slot, Value], ...]],
               readers: dict[Value, list[Edge]]) -> dict[Node, list[Way]]:
    """The ways of each node, the source's first, spread over the graph until nothing is new."""
    spread = _Spread(target, edges, {v: n for n in graph.nodes for v in n.outputs}, readers)
    todo = dict.fromkeys(graph.nodes)
    while todo:
        n = next(iter(todo))
        del todo[n]
        todo |= dict.fromkeys(spread.node(n))
    return {n: list(spread.ways[n].values()) for n in graph.nodes}


@dataclass(eq=False)
class _Spread:
    """Orders seen so far, by value and by what they are in memory; ways by the same."""

    target: Target
    edges: dict[Node, tuple[tuple[Slot, Value], ...]]
    makers: dict[Value, Node]
    readers: dict[Value, list[Edge]]
    seen: dict[Value, dict[Perm, Perm]] = field(default_factory=dict)
    ways: dict[Node, dict[tuple[Perm, ...], Way]] = field(default_factory=dict)
    cache: dict[tuple[Value, Perm], Perm] = field(default_factory=dict)
    done: set[tuple[Node, Perm, int]] = field(default_factory=set)

    def node(self, n: Node) -> list[Node]:
        """Add the ways that the orders seen at a node give it; the neighbours that have something new to see."""
        near = list[Node]()
        if not self.ways.setdefault(n, {}):
            near += self.add(n, next(iter(self.asked(n, ident(leading(n))))))
        for p in self.orders(n):
            asked = n, p, len(self.seen.get(n.outputs[0], {})) if asks(n) else 0
            if asked not in self.done:
                self.done.add(asked)
                near += [m for plan in self.asked(n, p) for m in self.add(n, plan)]
        return near

    def asked(self, n: Node, p: Perm) -> Iterable[Plan]:
        return plans(n, p, [*self.seen.get(n.outputs[0], {}).values()], self.target)

    def orders(self, n: Node) -> list[Perm]:
        """Orders to ask a node's rule about: those of what it reads, and those its outputs are wanted in."""
        rank = leading(n)
        found = dict.fromkeys([ident(rank)])
        for _, v in self.edges[n]:
            found |= dict.fromkeys(q for q in self.seen.get(v, {}).values() if len(q) == rank)
        for v in n.outputs:
            found |= dict.fromkeys(p for q in self.seen.get(v, {}).values() if (p := pulled(n, q)))
        return list(found)

    def add(self, n: Node, plan: Plan) -> list[Node]:
        """Take a way that is new in memory; the nodes that see a new order by it."""
        ins = tuple(self.memory(v, plan.ins.get(s)) for s, v in self.edges[n])
        outs = tuple(self.memory(v, q) for v, q in zip(n.outputs, plan.outs, strict=True))
        found = self.ways[n]
        if (*ins, *outs) in found or len(found) >= 2 * MOST:
            return []
        found[*ins, *outs] = Way(plan, ins, outs)
        ends = [(v, plan.ins[s]) for s, v in self.edges[n] if s in plan.ins]
        return [m for v, q in (*ends, *zip(n.outputs, plan.outs, strict=True)) for m in self.see(v, q)]

    def see(self, v: Value, q: Perm) -> list[Node]:
        """An order of a value, and who is to know of it."""
        had, order = self.seen.setdefault(v, {}), self.memory(v, q)
        if order in had or len(had) >= MOST:
            return []
        had[order] = q
        around = [n for _, n, _ in self.readers.get(v, ()) if n is not None]
        return around + ([self.makers[v]] if v in self.makers else [])

    def memory(self, v: Value, q: Perm | None) -> Perm:
        """`memory`, once for each; of no order, that of the source's."""
        q = ident(len(v.tensor.dims or ())) if q is None else q
        if (v, q) not in self.cache:
            self.cache[v, q] = memory(v, q)
        return self.cache[v, q]

