"""Sizes that are open are computed once: exporters spell the same chain out at every reshape."""
from __future__ import annotations

from typing import Any

from ..graph import Graph, Node, Value
from ..ops.host_arrays import SHAPE
from ..target import Target
from ..types import I32, I64, UNKNOWN, known
from .rewrite import Event

#: Chains of sizes have few elements.
LONGEST = 16


def shared(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph with one SHAPE for all values of the same named sizes, and what is computed alike of them once.

    The same object where no two values have the same named sizes.
    """
    sizes = [key for n in graph.nodes if n.op is SHAPE and (key := named_sizes(n))]
    if len(set(sizes)) == len(sizes):
        return graph
    became, first, nodes = dict[Value, Value](), dict[Any, Node](), list[Node]()
    for old in graph.nodes:
        n = old.mapped(lambda v: became.get(v, v))
        key = named_sizes(n) if n.op is SHAPE else computed(n)
        if key is None or key not in first:
            nodes.append(n)
            first.setdefault(key, n)
        else:
            became.update(zip(n.outputs, first[key].outputs, strict=True))
    return Graph(graph.name, graph.inputs, tuple(became.get(v, v) for v in graph.outputs), tuple(nodes),
                 graph.rim).verify()


def named_sizes(n: Node) -> str | None:
    """What a SHAPE gives, where it follows from named sizes."""
    dims = n.args["x"].tensor.dims
    if dims is None or all(map(known, dims)) or any(size is UNKNOWN for size in dims):
        return None
    return f"SHAPE {dims}"


def computed(n: Node) -> Any:
    """What says that two operations on short lists of integers give the same; None for others."""
    if not n.op.pure or n.graphs or not n.inputs or not all(map(short, (*n.inputs, *n.outputs))):
        return None
    return n.op.name, n.form.name, *(
        (a.type, a.shape, a.array.tobytes()) if isinstance(a, Value) and a.constant else
        a if isinstance(a, Value) else str(a) for a in n.operands)


def short(v: Value) -> bool:
    """Whether it is a short list of integers."""
    dims = v.tensor.dims
    return v.type in (I32, I64) and v.sparse is None and dims is not None and len(dims) <= 1 and all(
        known(size) and size <= LONGEST for size in dims)
