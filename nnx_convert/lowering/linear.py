"""LINEAR as FULLY_CONNECTED, which flattens its rows by itself."""
from __future__ import annotations

from ..graph import Node, Value
from ..ops import conv, shape
from ..ops.linear import LINEAR
from ..types import ChannelQuant, Shape, Tensor, known, product
from .axes import alike
from .expand import EXPAND
from .narrow import NARROW, narrowed, shaped, wide
from .rewrite import Refusal, Result, Rewriter

#: The ranks of rows that FULLY_CONNECTED takes.
RANKS = range(2, 5)


@EXPAND.on(LINEAR)
def dense(g: Rewriter, node: Node) -> Result:
    """The axes of the weights as two, the rows as they are where FULLY_CONNECTED takes them."""
    x, w, b, out = node.args["x"], node.args["w"], node.args["b"], node.outputs[0]
    if x.type not in conv.FULLY_CONNECTED.types:
        return Refusal(f"FULLY_CONNECTED takes no {x.type.name}")
    lead = x.shape[:len(x.shape) - node.args["flat"]]
    units, depth = product(b.shape), product(w.shape[len(b.shape):])
    if not known(units) or not known(depth) or not depth:
        return Refusal("the weights have an open size, or none")
    if len(lead) > 1 and sum(not known(n) for n in lead) > 1:
        return pointwise(g, node, units, depth)
    if sum(not known(n) for n in lead) > 1:
        return as_image(g, node)
    per_channel = isinstance(w.tensor.quant, ChannelQuant)       # which is a convolution later, of rank 2
    rows = x if len(x.shape) in RANKS and lead and not per_channel else reshaped(g, x, (open_product(lead), depth))
    y = g(conv.FULLY_CONNECTED, rows, reshaped(g, w, (units, depth)), reshaped(g, b, (units,)), act=node.args["act"],
          out=Tensor(out.type, None, out.tensor.quant))
    return y if len(lead) == len(b.shape) == 1 else reshaped(g, y, out.shape)


def pointwise(g: Rewriter, node: Node, units: int, depth: int) -> Result:
    """A convolution of images one pixel wide: its axes stay apart where RESHAPE could not put two open ones back."""
    x, w, b, out = node.args["x"], node.args["w"], node.args["b"], node.outputs[0]
    if len(x.shape) not in (3, 4) or node.args["flat"] != 1 or len(b.shape) != 1:
        return Refusal("more than one size is open")
    image = x if len(x.shape) == 4 else g(shape.EXPAND_DIMS, x, axis=2)
    y = g(conv.CONV_2D, image, reshaped(g, w, (units, 1, 1, depth)), b, scheme=2, sw=1, sh=1, act=node.args["act"],
          out=Tensor(out.type, None, out.tensor.quant))
    return g.legal(y if len(x.shape) == 4 else g(shape.SQUEEZE, y, (2,)))


def as_image(g: Rewriter, node: Node) -> Result:
    """A convolution whose window is what is summed over: no shape has to be said, so that many sizes may be open."""
    x, w, b, out, flat = (*(node.args[n] for n in ("x", "w", "b")), node.outputs[0], node.args["flat"])
    lead = len(x.shape) - flat
    if (lead, flat) not in ((2, 1), (2, 2), (3, 1)) or len(b.shape) != 1 or not all(map(known, x.shape[lead:])):
        return Refusal("several open sizes around more axes than an image has")
    image = g(shape.EXPAND_DIMS, x, axis=2) if len(x.shape) == 3 else x
    window = (b.shape[0], 1, x.shape[2] if flat == 2 else 1, x.shape[-1])
    y = g(conv.CONV_2D, image, reshaped(g, w, window), b, scheme=2, sw=1, sh=1, act=node.args["act"], nchw=False,
          out=Tensor(out.type, None, out.tensor.quant))
    return g.legal(y if lead == 3 else g(shape.SQUEEZE, y, [2], out=out.tensor))


@NARROW.on(LINEAR)
def rows_of_few_axes(g: Rewriter, node: Node) -> Result:
    """All rows on one axis, all that is summed over on another."""
    x, w, b = (node.args[n] for n in ("x", "w", "b"))
    if not wide(x, node.outputs[0]):
        return None
    lead, depth = product(x.shape[:len(x.shape) - node.args["flat"]]), product(w.shape[len(b.shape):])
    return narrowed(g, node, {"x": [(lead, depth)]}, w=reshaped(g, w, (product(b.shape), depth)),
                    b=reshaped(g, b, (product(b.shape),)), flat=1)


def open_product(sizes: Shape) -> int:
    """The product of sizes; -1, RESHAPE's word for what is left over, where one is open."""
    return product(sizes) if all(map(known, sizes)) else -1


def reshaped(g: Rewriter, v: Value, dims: Shape) -> Value:
    """A value in another shape, a constant as one; raises `OpError` where more than one of its sizes is open."""
    if v.tensor.data is not None and not alike(v.shape, dims) and all(map(known, dims)):
        return g.build.const(v.array.reshape(dims), v.type, v.tensor, v.name)
    return shaped(g, v, dims)
