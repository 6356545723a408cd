"""Factors and terms per channel go into the product before them, and padding with zeros into the convolution after.

A product of two floats is rounded once, whatever it is computed in; biases are computed in float64. What takes
factors has channels first here: this pass is one of those before the layout.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..frozen import frozen
from ..graph import Node, Value
from ..ops import conv, elementwise as e, shape
from ..ops.linear import LINEAR
from ..schema import OpDef
from ..types import Array, F16, F32
from .rewrite import Result, Rewriter, Rules

AFFINE = Rules("affine")
#: Operations whose weights take a factor: the axis of their outputs among those of w.
CONVOLUTIONS = {conv.CONV_2D.name: 0, conv.GROUPED_CONV_2D.name: 0, conv.TRANSPOSE_CONV_2D.name: 0,
                conv.DEPTHWISE_CONV_2D.name: 3}
#: What leaves a constant one, its elements in another order.
MOVES = (shape.TRANSPOSE, shape.RESHAPE)
#: The code of a padding scheme that adds nothing.
VALID = 2


@frozen
class Weighted:
    """A product whose weights are known; `axis` is that of its channels, `through` a reshape behind it."""

    node: Node
    w: Array
    b: Array
    axis: int
    through: Node | None = None


def array(g: Rewriter, v: Any) -> Array | None:
    """The elements of a constant, also of one that is moved about; None of anything else."""
    if not isinstance(v, Value):
        return None
    if v.tensor.data is not None:
        return v.tensor.data
    made = g.producer(v)
    if made is None or made.op not in MOVES or any(a.tensor.data is None for a in made.inputs[1:]):
        return None
    x = array(g, made.inputs[0])
    if x is None:
        return None
    dims = made.outputs[0].tensor.dims
    return x.transpose(made.args["perm"].array.tolist()) if made.op is shape.TRANSPOSE else x.reshape(dims or (1,))


def product(g: Rewriter, v: Value) -> Weighted | None:
    """The product that a value is and nothing else reads, if it takes factors."""
    node, through = g.producer(v), None
    if node is not None and node.op is shape.RESHAPE and g.sole(v):
        inner = node.args["x"]
        if len(inner.shape) != 4 or inner.shape[2] != 1 or len(v.shape) != 3:
            return None
        node, through, v = g.producer(inner), node, inner
    if node is None or not g.sole(v) or v.type not in (F32, F16) or node.args.get("act"):
        return None
    if node.op.name not in CONVOLUTIONS and node.op is not LINEAR or not node.args.get("nchw", node.op is LINEAR):
        return None
    w, b = array(g, node.args["w"]), array(g, node.args["b"])
    if w is None or b is None or w.dtype != v.type.dtype or b.ndim != 1:
        return None
    return Weighted(node, w, b, 1 if node.op.name in CONVOLUTIONS else len(v.shape) - 1, through)


def along(g: Rewriter, v: Value, found: Weighted, rank: int) -> Array | None:
    """The numbers of a constant per channel; None where they differ in other ways."""
    data = array(g, v)
    if data is None or data.ndim != rank:
        return None
    axis = found.axis if rank == len(found.node.outputs[0].shape) else 1
    if any(n != 1 for i, n in enumerate(data.shape) if i != axis) or data.shape[axis] not in (1, len(found.b)):
        return None
    return np.broadcast_to(data.reshape(-1).astype(np.float64), found.b.shape)


def rebuilt(g: Rewriter, found: Weighted, w: Array, b: Array, act: int) -> Value:
    """The product with other weights and an activation."""
    args, kind = dict(found.node.args), found.node.outputs[0].tensor
    args |= {"b": g.build.const(b.astype(found.b.dtype), kind.type), "act": act}
    if w is not found.w:
        args["w"] = g.build.const(np.ascontiguousarray(w), kind.type)
    made = g(found.node.op, out=kind, **args)
    if found.through is None:
        return made
    return g(shape.RESHAPE, made, found.through.args["shape"], out=found.through.outputs[0].tensor)


def folded(g: Rewriter, node: Node, change: Callable[[Array, Array], Array], scales: bool, swapped: bool) -> Result:
    """The product before a node with what that does in its weights: `change(weights or bias, numbers)`.

    `scales`: the weights change as the bias does. `swapped`: the product may be either operand.
    """
    for x, k in (("x", "y"), ("y", "x"))[:1 + swapped]:
        v = node.args[x]
        if len(node.outputs[0].shape) != len(v.shape):
            continue
        found = product(g, v)
        numbers = None if found is None else along(g, node.args[k], found, len(v.shape))
        if found is None or numbers is None:
            continue
        at, w = CONVOLUTIONS.get(found.node.op.name, 0), found.w
        with np.errstate(all="ignore"):
            if scales:
                w = change(w, numbers.astype(w.dtype).reshape([-1 if i == at else 1 for i in range(w.ndim)]))
            return rebuilt(g, found, w, change(found.b.astype(np.float64), numbers), node.args["act"])
    return None


@AFFINE.on(e.MUL)
def factor(g: Rewriter, node: Node) -> Result:
    """A factor per channel."""
    return folded(g, node, np.multiply, True, True)


@AFFINE.on(e.DIV)
def divisor(g: Rewriter, node: Node) -> Result:
    """A divisor per channel, none of them zero."""
    y = array(g, node.args["y"])
    return None if y is None or not y.all() else folded(g, node, np.divide, True, False)


@AFFINE.on(e.ADD)
def term(g: Rewriter, node: Node) -> Result:
    """A term per channel."""
    return folded(g, node, np.add, False, True)


@AFFINE.on(e.SUB)
def less(g: Rewriter, node: Node) -> Result:
    """A term per channel taken off."""
    return folded(g, node, np.subtract, False, False)


def zeros(node: Node | None) -> Value | None:
    """What says how many zeros a node puts around its input; None where it puts other things there."""
    if node is None or node.op not in (shape.PAD, shape.PAD_V2) or node.op is shape.PAD_V2 and node.args["value"] != 0:
        return None
    found: Value = node.args["paddings"]
    return found if found.tensor.data is not None and found.shape == (4, 2) else None


def padded(op: OpDef) -> None:
    """Register the rule of a convolution that padding goes into."""
    @AFFINE.on(op)
    def padding(g: Rewriter, node: Node) -> Result:
        """Zeros around the image are the convolution's own padding."""
        before = g.producer(node.args["x"])
        amounts = zeros(before)
        plain = node.args["x"].type in (F32, F16) or before is not None and before.op is shape.PAD
        if before is None or amounts is None or not plain or node.args.get("scheme", VALID) != VALID:
            return None
        rows = amounts.array.tolist()
        first = 2 if node.args.get("nchw") else 1
        image = rows[first:first + 2]
        if any(map(any, rows[:first] + rows[first + 2:])) or min(map(min, rows)) < 0:
            return None
        (pt, pb), (pl, pr) = image
        more = {"pl": pl, "pr": pr, "pt": pt, "pb": pb}
        args = {n: v for n, v in node.args.items() if n != "scheme"} | {"x": before.args["x"]}
        args |= {n: args.get(n, 0) + v for n, v in more.items()}
        return g(node.op, out=node.outputs[0].tensor, **args)


for op_ in (conv.CONV_2D, conv.GROUPED_CONV_2D, conv.DEPTHWISE_CONV_2D):
    padded(op_)
