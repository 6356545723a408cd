"""Sparse constants: one DENSIFY for each, or its dense twin."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Unsupported
from ..graph import Evaluate, At, Build, Graph, Node, Sparse, Value
from ..ops.sparse import DENSIFY
from ..schema import OpError
from ..target import Target
from ..types import I32, ChannelQuant, Quant, Tensor
from .rewrite import Event, Pass


def densifying(evaluate: Evaluate) -> Pass:
    """The pass that puts a DENSIFY before the first reader of each sparse constant, or folds the constant.

    It folds where the target asks for it, has no DENSIFY, or no row for the type; and where an element that is
    not stored is no zero (DENSIFY fills in the zero point, a TFLite file means the byte 0), or where nothing at
    all is stored. Raises `Unsupported` where there is no kernel to fold with.
    """
    def densify(graph: Graph, target: Target, trace: list[Event]) -> Graph:
        spread = _Spread(target, trace, evaluate, Build(graph.name))
        for node in graph.nodes:
            spread.build.at = node.at
            new = node.mapped(lambda v: v if isinstance(v, Graph) else spread.now(v))
            spread.build.nodes.append(new)
        return spread.build.finish(graph.inputs, tuple(map(spread.now, graph.outputs)), graph.rim)
    return densify


@dataclass
class _Spread:
    """Sparse values -> what stands for them in the new graph, each made once."""

    target: Target
    trace: list[Event]
    evaluate: Evaluate
    build: Build
    dense: dict[Value, Value] = field(default_factory=dict)

    def now(self, v: Value) -> Value:
        """What stands for a value."""
        if v.sparse is None:
            return v
        if v not in self.dense:
            self.dense[v] = self.spread(v, v.sparse)
        return self.dense[v]

    def spread(self, v: Value, sparse: Sparse) -> Value:
        """The output of a DENSIFY, or a dense constant."""
        node = _densify(v, sparse, v.tensor.quant, self.build.at)
        why = self.fault(node, v, sparse)
        self.trace.append(Event("densify", self.build.at, DENSIFY.name, True, why and f"{v.name} is made dense: {why}"))
        if not why:
            self.build.nodes.append(node)
            return node.outputs[0]
        quant = v.tensor.quant
        raw = Quant(quant.scale, sparse.implicit) if isinstance(quant, Quant) else quant
        node = _densify(v, sparse, raw, self.build.at)
        found = self.evaluate(node, [a.tensor.data if isinstance(a, Value) else None for a in node.operands])
        if found is None:
            raise Unsupported("a sparse constant has no DENSIFY, and there is no kernel to make it dense with", v.name)
        return Value(v.name, Tensor(v.type, v.tensor.dims, quant, found[0].reshape(v.shape)))

    def fault(self, node: Node, v: Value, sparse: Sparse) -> str:
        """Why DENSIFY cannot say it; empty where it can."""
        if self.target.sparse == "fold":
            return "as asked"
        if sparse.implicit != _zero(v.tensor.quant):
            return f"what is not stored is {sparse.implicit}, not the zero point"
        if not sparse.data.size:
            return "nothing of it is stored, and no operand has no elements"
        if isinstance(node.verdict, OpError):
            return node.verdict.text
        return self.target.fault(node.op, node.verdict)


def _zero(quant: Quant | ChannelQuant | None) -> int:
    return quant.zero if isinstance(quant, Quant) else 0


def _densify(v: Value, s: Sparse, quant: Quant | ChannelQuant | None, at: At) -> Node:
    """The DENSIFY that gives the value, its grid being `quant`."""
    build = Build(at=at)
    stored = Value(f"{v.name}.stored", Tensor(v.type, (s.data.size,), quant, s.data))
    order, formats, sizes = (build.const(x, I32) for x in (s.order, s.formats, s.sizes))
    blocks = build.const(s.blocks, I32) if s.blocks else None
    pairs = tuple(None if p is None else build.const(p, I32) for p in s.pairs)
    args = {"x": stored, "order": order, "block_map": blocks, "formats": formats, "dims": sizes, "pairs": pairs}
    return Node(DENSIFY, DENSIFY.forms[0], args, (Value(v.name, Tensor(v.type, v.tensor.dims, quant)),), at)
