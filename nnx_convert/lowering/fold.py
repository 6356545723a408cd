"""Constants: what can be computed now is, by the `evaluate` the caller hands in."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..graph import Node, Value
from ..ops.sparse import DENSIFY
from ..schema import OpError
from ..types import I32, Q8, Tensor, known, product
from .rewrite import Refusal, Result, Rewriter, Rules

#: (node, constant operands by position) -> arrays, or None where there is no kernel.
Evaluate = Callable[[Node, Sequence[np.ndarray | float | None]], Sequence[np.ndarray] | None]
#: A fold may not make a constant larger than this, unless what it reads was as large.
LARGEST = 1 << 26


def folding(evaluate: Evaluate) -> Rules:
    """The pass that folds with this evaluator."""
    rules = Rules("fold")

    @rules.on("*")
    def fold(g: Rewriter, node: Node) -> Result:
        values = node.inputs
        if node.op is DENSIFY:                       # kept by choice: it is what keeps the weights small
            return None
        if not values or node.graphs or not all(v.tensor.data is not None for v in values):
            return None
        dims = [v.tensor.dims for v in node.outputs]
        if not all(d is not None and all(map(known, d)) for d in dims):
            return None
        if sum(product(d or ()) for d in dims) > max(LARGEST, sum(v.tensor.size for v in values)):
            return Refusal("the result is too large to keep")
        found = evaluate(node, [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None)
                                for a in node.operands])
        if found is None:
            return Refusal("there is no kernel to fold it with")
        return [Value(v.name, Tensor(v.type, v.tensor.dims, v.tensor.quant, data.reshape(v.shape)))
                for v, data in zip(node.outputs, found, strict=True)]

    return rules


def densifying(evaluate: Evaluate) -> Rules:
    """The pass that gives each sparse constant a DENSIFY, or folds it where that cannot say it."""
    rules = Rules("densify")

    @rules.on("*")
    def spread(g: Rewriter, node: Node) -> Result:
        if not any(v.sparse for v in node.inputs):
            return None
        dense = {v: _spread(g, v, evaluate) for v in node.inputs if v.sparse}
        new = node.mapped(lambda v: dense.get(v, v))
        g.build.nodes.append(new)
        return new.outputs

    return rules


def _spread(g: Rewriter, v: Value, evaluate: Evaluate) -> Value:
    s = v.sparse
    assert s is not None
    zero = getattr(v.tensor.quant, "zero", 0)
    stored = Value(f"{v.name}.stored", Tensor(v.type, (s.data.size,), v.tensor.quant, s.data))
    ints = [g.build.const(x, I32) for x in (s.order, s.formats, s.sizes)]
    pairs = tuple(None if p is None else g.build.const(p, I32) for p in s.pairs)
    y = g(DENSIFY, stored, ints[0], g.build.const(s.blocks, I32) if s.blocks else None, ints[1], ints[2], pairs=pairs,
          out=Tensor(v.type, v.tensor.dims, v.tensor.quant))
    node = g.build.nodes[-1]
    shifted = v.type == Q8 and zero == 128                # was zero before bytes became unsigned
    if not g.fault(node) and (zero == 0 or shifted):
        return y
    g.build.nodes.pop()
    found = evaluate(node, [a.tensor.data if isinstance(a, Value) else None for a in node.operands])
    if found is None:
        raise OpError("DENSIFY", "cannot be kept for this target, and there is no kernel to fold it with")
    return Value(v.name, Tensor(v.type, v.tensor.dims, v.tensor.quant, found[0].reshape(v.shape)))


