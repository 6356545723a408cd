"""Small constants computed while importing, so that importers find the values of sizes, axes and scales."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import NnxError
from ...graph import Node, Value
from ...types import Tensor, known, product
from .symbolic import LONGEST

if TYPE_CHECKING:
    from .importer import Op


def folded(g: Op, since: int, results: list[Any]) -> list[Any]:
    """The results, those that follow from small constants as constants; nodes that gave them are dropped."""
    nodes = g.scope.build.nodes[since:]
    if not nodes or not all(_computable(n, {v for m in nodes for v in m.outputs}) for n in nodes):
        return results
    became: dict[Any, Any] = {}
    for original in nodes:
        node = original.mapped(lambda v: became.get(v, v))
        values = [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None) for a in node.operands]
        try:
            found = g.session.evaluate(node, values)
        except NnxError:                         # it fails in every run: there, with its own words
            return results
        if found is None:
            return results
        for v, data in zip(node.outputs, found, strict=True):
            constant = Value(v.name, Tensor(v.type, data.shape, v.tensor.quant, data))
            became[v] = g.session.moved(v, constant)
    del g.scope.build.nodes[since:]
    return [became.get(v, v) if isinstance(v, Value) else v for v in results]


def _computable(node: Node, made: set[Value]) -> bool:
    if not node.op.pure or node.graphs or not node.inputs:
        return False
    if any(v.tensor.data is None and v not in made for v in node.inputs):
        return False
    sizes = [v.tensor.dims for v in (*node.inputs, *node.outputs)]
    return all(d is not None and all(map(known, d)) and product(d) <= LONGEST for d in sizes)
