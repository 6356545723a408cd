"""64-bit integers as INT32 where that changes nothing: what holds only numbers of 32 bits needs no more.

NNAPI has no INT64. An operation is computed in INT32 where all its integers lie in INT32 by the intervals of
`intervals`; a cast stands where one that is meets one that is not. An input enters as INT32 where everything that
reads it would cut it to 32 bits or compare it with such numbers at once: the rim refuses others. At the outputs the
rim widens.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from ..frozen import frozen
from ..graph import Build, Graph, Node, Value
from ..ops import casts, control, convert, elementwise as e, ex, folds, host, host_arrays as h, reduce as r, shape
from ..schema import OpError
from ..signature import Param
from ..target import Target
from ..types import I32, I64, LIST, Port, Rim, Tensor
from .intervals import INTERVALS, Interval, all_of, intervals, original, within
from .rewrite import Event

#: What looks at integers and gives none of their type: with those of operations in INTERVALS, all that is narrowed.
LOOKS = {o.name for o in (
    e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL, e.LESS, e.LESS_EQUAL, ex.EQUAL_EX, ex.NOT_EQUAL_EX,
    ex.GREATER_EQUAL_EX, ex.LESS_EX, r.ARGMAX, r.ARGMIN, folds.ARGMAX_LAST, folds.ARGMIN_LAST, h.SHAPE, shape.RANK,
    convert.CAST, casts.CONVERT)}
#: Operations whose result says nothing of their integers.
MADE = {host.NON_ZERO.name}
#: What takes and gives the values of graphs.
CALLS = {control.IF.name, control.WHILE.name}
INT32 = all_of(I32)


def narrow64(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph with INT32 for INT64 where that is proven the same, or everywhere (`Target.int64`)."""
    if not any(v.type == I64 for n in graph.nodes for v in (*n.inputs, *n.outputs)):
        return graph
    free = target.int64 == "narrow"
    entering = narrowing_inputs(graph, free)
    made = _Narrowed(Build(graph.name), ranges_of(graph, entering, free), trace, free)
    made.wide.update((v, v) for v in graph.inputs if v.type == I64 and v not in entering)
    for v in entering:
        first = next((n for n in graph.nodes if v in n.inputs), None)
        made.enter(v, first)
    inputs = tuple(made.slim.get(v, v) for v in graph.inputs)
    for n in graph.nodes:
        made.node(n)
    ports = graph.rim.outputs if graph.rim != Rim() else ()
    outputs = tuple(made.leave(v, ports[i] if i < len(ports) else None) for i, v in enumerate(graph.outputs))
    return made.build.finish(inputs, outputs, graph.rim)


def ranges_of(graph: Graph, entering: Sequence[Value], free: bool) -> dict[Value, Interval]:
    """The intervals of a graph's values; `free`: those of 64 bits are taken to be of 32."""
    found = intervals(graph, dict.fromkeys(entering, INT32))
    return {v: _clipped(r, v) for v, r in found.items()} if free else found


def _clipped(interval: Interval, v: Value) -> Interval:
    """An interval where every number is taken to be one of 32 bits; constants are known to be or not."""
    return interval if v.constant or v.type != I64 else (max(interval[0], INT32[0]), min(interval[1], INT32[1]))


def narrowing_inputs(graph: Graph, free: bool) -> list[Value]:
    """The inputs that enter as INT32."""
    chosen = {v for v, p in zip(graph.inputs, graph.rim.inputs, strict=False)
              if v.type == I64 and p.dtype == "int64" and not p.state and not v.tensor.omittable}
    while chosen and not free:
        ranges = intervals(graph, dict.fromkeys(chosen, INT32))
        lost = unabsorbed(graph, ranges)
        if chosen.isdisjoint(lost):
            break
        chosen -= lost
    return [v for v in graph.inputs if v in chosen]


def unabsorbed(graph: Graph, ranges: dict[Value, Interval]) -> set[Value]:
    """The values that are not read, or by something to which it makes a difference how many bits they have."""
    lost = {*graph.outputs} | {v for v in graph.inputs if v not in graph.uses}
    for n in reversed(graph.nodes):
        tied = tied_values(n)
        out = [v for v in n.outputs if v.type == I64]
        absorbs = narrows(n, ranges) and lost.isdisjoint(out)
        lost.update(v for v in n.inputs if v.type == I64 and not (absorbs and v in tied))
    return lost


def narrows(node: Node, ranges: dict[Value, Interval]) -> bool:
    """Whether a node gives the same in INT32."""
    return either_way(node) and too_wide(node, ranges) is None


def either_way(node: Node) -> bool:
    """Whether an operation is the same on both types, as long as their numbers fit."""
    name = original(node.op).name
    return name in LOOKS or name in INTERVALS and name not in MADE


def too_wide(node: Node, ranges: dict[Value, Interval]) -> Value | None:
    """What INT32 may not hold of a node's arguments and results."""
    values = (v for v in (*tied_values(node), *node.outputs) if v.type == I64)
    return next((v for v in values if not within(ranges[v], INT32)), None)


def tied_values(node: Node) -> list[Value]:
    """The INT64 arguments whose type goes with that of the others, as not all of a host operation's do."""
    return [v for p, v in _arguments(node) if v.type == I64 and not _free(node, p)]


def _arguments(node: Node) -> Iterator[tuple[Param, Value]]:
    for p in node.form.params:
        if not p.kind.output:
            arg = p.value(node.args)
            yield from ((p, v) for v in (arg if isinstance(arg, tuple) else (arg,)) if isinstance(v, Value))


def _free(node: Node, p: Param) -> bool:
    """Whether an operand may have either type, whatever the others have; what lists and graphs take keeps its own."""
    if node.graphs or any(v.type == LIST for v in (*node.inputs, *node.outputs)):
        return False
    return node.op.host and node.op.twin_of is None and not p.kind.is_key and {I32, I64} <= set(p.kind.levels)


@frozen
class _Narrowed:
    """The graph in the making: for values of the old one, what is there in INT32 (`slim`) and in INT64 (`wide`)."""

    build: Build
    ranges: dict[Value, Interval]
    trace: list[Event]
    free: bool
    slim: dict[Value, Value] = field(default_factory=dict)
    wide: dict[Value, Value] = field(default_factory=dict)
    graphs: dict[Graph, Graph] = field(default_factory=dict)         # those called, with INT32 at their borders

    def enter(self, v: Value, reader: Node | None) -> None:
        """An input as INT32, which the trace says where it is first read."""
        self.slim[v] = narrowed(v)
        if reader is not None:
            self.trace.append(Event("narrow64", reader.at, reader.op.name, True,
                                    f"input {v.name!r} has to hold numbers of 32 bits"))

    def leave(self, v: Value, port: Port | None) -> Value:
        """An output: as it is at the rim of a model, where the user sees INT64 all the same."""
        seen = port is not None and port.dtype == "int64" and not port.state
        return self.slim[v] if seen and v in self.slim and self.wide.get(v) is not v else self.now(v)

    def node(self, old: Node) -> None:
        """Take over a node, in INT32 where that is the same."""
        self.build.at = old.at
        if not any(v.type == I64 for v in (*old.inputs, *old.outputs)):
            self.build.nodes.append(old.mapped(self.now))
            return
        if self.free and original(old.op).name in CALLS:
            self.take(old)
        elif not narrows(old, self.ranges):
            self.stay(old)
        elif old.op is convert.CAST:
            self.cast(old)
        else:
            self.take(old)

    def stay(self, old: Node) -> None:
        """The node as it is; what takes either type takes what is there."""
        free = {v for p, v in _arguments(old) if v in self.slim and v.type == I64 and _free(old, p)}
        free -= set(tied_values(old))
        if either_way(old) and (wide := too_wide(old, self.ranges)) is not None:
            low, high = self.ranges[wide]
            self.trace.append(Event("narrow64", old.at, old.op.name, False,
                                    f"INT32 does not hold {wide.name}, {low} to {high}; int64='narrow' risks it"))
        self.build.nodes.append(old.mapped(lambda v: self.slim[v] if v in free else self.now(v)))
        self.wide.update((v, v) for v in old.outputs if v.type == I64)

    def take(self, old: Node) -> None:
        """The node in INT32, but for what may have either type and does not fit."""
        tied = set(tied_values(old))
        wide = {v for v in old.inputs if v.type == I64 and v not in tied and not within(self.ranges[v], INT32)}
        new = old.mapped(lambda v: self.now(v) if v in wide else self.small(v))
        args = {n: I32 if a is I64 else a for n, a in new.args.items()}
        self.slim.update((v, narrowed(v)) for v in old.outputs if v.type == I64)
        self.build.nodes.append(bare(replace(new, args=args, outputs=tuple(self.slim.get(v, v) for v in old.outputs))))
        self.trace.append(Event("narrow64", old.at, old.op.name, True))

    def cast(self, old: Node) -> None:
        """A cast from or to INT64; none at all between the two types of integers."""
        x, out = old.args["x"], old.outputs[0]
        if {x.type, out.type} <= {I32, I64}:
            was = self.small(x)
            if out.type == I64:
                self.slim[out] = was
            else:
                self.wide[out] = was                 # of another name and as many bits
        else:
            self.take(old)

    def now(self, v: Any) -> Any:
        """What stands for a value, in the type it had."""
        if not isinstance(v, Value) or v.type == I64 and v.constant:
            return v
        if v not in self.wide and v in self.slim:
            self.wide[v] = self.across(self.slim[v], v, v.tensor)
        return self.wide.get(v, v)

    def small(self, v: Any) -> Any:
        """What stands for a value, INT32 where it was INT64."""
        if isinstance(v, Graph):
            return self.called(v)
        if not isinstance(v, Value) or v.type != I64:
            return self.now(v)
        if v not in self.slim:
            self.slim[v] = narrowed(v) if v.constant else self.across(self.now(v), v, narrowed(v).tensor)
        return self.slim[v]

    def called(self, graph: Graph) -> Graph:
        """A graph that takes and gives INT32."""
        if graph not in self.graphs:
            entering = [v for v in graph.inputs if v.type == I64]
            made = _Narrowed(Build(graph.name), ranges_of(graph, entering, True), self.trace, True, graphs=self.graphs)
            made.slim.update((v, narrowed(v)) for v in entering)
            inputs = tuple(map(made.small, graph.inputs))
            for n in graph.nodes:
                made.node(n)
            self.graphs[graph] = made.build.finish(inputs, tuple(map(made.small, graph.outputs)), graph.rim)
        return self.graphs[graph]

    def across(self, found: Value, v: Value, to: Tensor) -> Value:
        """A value in the other of the two types."""
        since = len(self.build.nodes)
        made = self.build(convert.CAST, found, to=to.type, out=to)
        return self.build.rename(since, {made: (f"{v.name}.{'int32' if to.type == I32 else 'int64'}", to)})[made]


def bare(node: Node) -> Node:
    """The operation that the host's is a version of, where that takes what the node has by now."""
    op = node.op.twin_of
    if op is None or not node.op.host:
        return node
    found = replace(node, op=op, form=op.forms[node.op.forms.index(node.form)])
    return node if isinstance(found.verdict, OpError) else found


def narrowed(v: Value) -> Value:
    """The same value in INT32."""
    data = v.tensor.data
    return Value(v.name, replace(v.tensor, type=I32, data=None if data is None else data.astype(np.int32)))
