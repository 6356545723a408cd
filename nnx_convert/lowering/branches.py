"""Branches that are done both, of which one is taken: small ones, which cost less than to decide on this machine.

Exporters write `a and b` of a program as a branch: b where a holds, else a.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Node, Value
from ..ops import control, convert, elementwise as e, host
from ..types import product
from .compose import fixed
from .fuse import VIEWS
from .rewrite import Result, Rewriter, Rules

BRANCHES = Rules("branches")
#: Operations of a branch, and elements of each result of theirs, at most.
MOST_NODES, MOST_ELEMENTS = 8, 4096
#: Operations that take any numbers, and a shape for which they are known to be right.
SAFE = (e.ADD, e.SUB, e.MUL, e.MAXIMUM, e.MINIMUM, e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL, e.LESS,
        e.LESS_EQUAL, e.LOGICAL_AND, e.LOGICAL_OR, e.LOGICAL_NOT, e.ABS, e.NEG, e.RELU, convert.CAST, *VIEWS)


@BRANCHES.on(control.IF)
def both(g: Rewriter, node: Node) -> Result:
    """Both branches, and of each result the one that the condition says."""
    graphs: list[Graph] = [node.args["then"], node.args["orelse"]]
    if not all(small(graph, node.outputs) for graph in graphs):
        return None
    found = (within(g, graph, node.args["args"]) for graph in graphs)
    return [g(host.WHERE, node.args["cond"], x, y, out=v.tensor)
            for x, y, v in zip(*found, node.outputs, strict=True)]


def small(graph: Graph, outputs: Sequence[Value]) -> bool:
    """Whether a branch is a few safe operations on few numbers, whose results have the sizes of the branch's."""
    values = [*graph.outputs, *(v for n in graph.nodes for v in n.outputs)]
    return len(graph.nodes) <= MOST_NODES and all(n.op in SAFE for n in graph.nodes) and fixed(*values) and all(
        v.sparse is None and product(v.shape) <= MOST_ELEMENTS for v in values) and all(
        a.tensor.dims == b.tensor.dims and a.tensor.quant == b.tensor.quant
        for a, b in zip(graph.outputs, outputs, strict=True))


def within(g: Rewriter, graph: Graph, args: Sequence[Value]) -> list[Value]:
    """What a graph gives, its operations emitted here."""
    became = dict(zip(graph.inputs, args, strict=True))

    def now(v: Any) -> Any:
        return became.get(v, v)
    for n in graph.nodes:
        made = g.add(n.op, outs=[v.tensor for v in n.outputs], **n.mapped(now).args)
        became.update(zip(n.outputs, made, strict=True))
    return [now(v) for v in graph.outputs]
