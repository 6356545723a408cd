"""Constants: what can be computed now is, by the `evaluate` the caller hands in."""
from __future__ import annotations

from ..errors import NnxError
from ..graph import Evaluate, Node, Value
from ..ops.sparse import DENSIFY
from ..types import Tensor, known, product
from .rewrite import Refusal, Result, Rewriter, Rules

#: A fold may not make a constant larger than this, unless what it reads was as large.
LARGEST = 1 << 26


def folding(evaluate: Evaluate) -> Rules:
    """The pass that folds with this evaluator."""
    rules = Rules("fold")

    @rules.on("*")
    def fold(g: Rewriter, node: Node) -> Result:
        values = node.inputs
        # DENSIFY is there by choice, to keep weights small.
        computable = node.op.pure and values and not node.graphs
        if node.op is DENSIFY or not computable or any(v.tensor.data is None for v in values):
            return None
        dims = [v.tensor.dims for v in node.outputs]
        if not all(d is not None and all(map(known, d)) for d in dims):
            return None
        if sum(product(d or ()) for d in dims) > max(LARGEST, sum(v.tensor.size for v in values)):
            return Refusal("the result is too large to keep")
        try:
            found = evaluate(node, [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None)
                                    for a in node.operands])
        except NnxError as error:                # it fails in every run: where it stands, with its own words
            return Refusal(error.text)
        if found is None:
            return Refusal("there is no kernel to fold it with, or as much was folded as may be")
        return [Value(v.name, Tensor(v.type, v.tensor.dims, v.tensor.quant, data.reshape(v.shape)))
                for v, data in zip(node.outputs, found, strict=True)]

    return rules
