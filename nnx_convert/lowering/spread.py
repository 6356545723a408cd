"""What is repeated only for an operation that repeats its operands itself need not be repeated."""
from __future__ import annotations

from ..graph import Node, Value
from ..kinds import broadcast
from ..ops import elementwise as e, functions, host, shape
from ..types import Shape, Tensor, known
from .axes import alike, as_written
from .rewrite import Result, Rewriter, Rules

SPREAD = Rules("spread")


@SPREAD.on(e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.POW, e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL,
           e.LESS, e.LESS_EQUAL, e.LOGICAL_AND, e.LOGICAL_OR, host.SQUARED_DIFFERENCE, host.FLOOR_DIV, host.FLOOR_MOD,
           host.TRUNC_DIV, functions.TRUNC_MOD)
def not_repeated(g: Rewriter, node: Node) -> Result:
    """The operand before it was repeated, if the result keeps its shape."""
    args, out = dict(node.args), node.outputs[0]
    if out.tensor.dims is None:
        return None
    for name, other in (("x", "y"), ("y", "x")):
        made = g.producer(args[name])
        if made is None or made.op is not host.BROADCAST_TO:
            continue
        bare, beside = made.args["x"], args[other]
        if alike(broadcast(bare.shape, beside.shape), out.shape) and (
                seen := ranked(g, bare, len(args[name].shape))) is not None:
            args[name] = seen
    if all(args[n] is node.args[n] for n in ("x", "y")):
        return None
    return g.add(node.op, outs=[v.tensor for v in node.outputs], **args)


def ranked(g: Rewriter, x: Value, rank: int) -> Value | None:
    """A value with axes of size 1 in front, up to a rank; None where its sizes do not let themselves be written."""
    count = rank - len(x.shape)
    if not count:
        return x
    if sum(not known(n) for n in x.shape) > 1:
        return None
    full: Shape = (*(1,) * count, *x.shape)
    return g(shape.RESHAPE, x, as_written(full), out=Tensor(x.type, full, x.tensor.quant))
