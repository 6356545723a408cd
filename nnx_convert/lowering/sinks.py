"""Before a layout is chosen: reshapes that merge axes sink below what can treat one axis as several.

A reshape that splits axes moves nothing in many orders, one that merges them in few. So a merge becomes a split, and
a merge further down: below elementwise operations, reductions, transposes and products with constants.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import Node, Value
from ..ops import conv, ex, gather, host, image, shape
from ..ops.linear import LINEAR
from ..symbols import same
from ..types import I32, ChannelQuant, Shape, Tensor, known, product
from .axes import Perm, alike, factors, ranked, sizes_of
from .elements import elementwise
from .layout_rules import FOLDS, numbers, permutation, slots
from .linear import reshaped
from .rewrite import Refusal, Result, Rewriter, Rules

SINKS = Rules("sinks")
TIDY = Rules("tidy")
#: The axes most operations take.
MOST = 4
#: What a pixel shuffle does to its six axes, and where two of these are the block's sizes.
SHUFFLES = {(0, 1, 4, 2, 5, 3): (2, 3), (0, 3, 4, 1, 5, 2): (1, 2)}


# ---- reshapes of reshapes

@TIDY.on(shape.RESHAPE)
@SINKS.on(shape.RESHAPE)
def collapsed(g: Rewriter, node: Node) -> Result:
    """A reshape of a reshape is one, and one that changes nothing is none."""
    x: Value = node.args["x"]
    out = node.outputs[0]
    if not ranked(x) or not ranked(out) or not isinstance(node.args["shape"], Value):
        return None
    if alike(x.shape, out.shape):
        return x
    before = g.producer(x)
    if before is None or before.op is not node.op or isinstance(out.tensor.quant, ChannelQuant):
        return None
    return g(node.op, before.args["x"], node.args["shape"], out=out.tensor)


@TIDY.on(shape.TRANSPOSE)
@SINKS.on(shape.TRANSPOSE)
def idle(g: Rewriter, node: Node) -> Result:
    """A transpose that moves nothing."""
    perm = permutation(node)
    x: Value = node.args["x"]
    return x if perm is not None and perm == tuple(range(len(perm))) else None


@SINKS.on(shape.EXPAND_DIMS, shape.SQUEEZE)
def as_reshape(g: Rewriter, node: Node) -> Result:
    """Where RESHAPE is to be had, which goes together with others."""
    x, out = node.args["x"], node.outputs[0]
    if shape.RESHAPE.types.get(x.type, g.target.level + 1) > g.target.level or not ranked(x) or not ranked(out):
        return None
    return reshaped(g, x, out.shape)


# ---- what exporters spell out with more than four axes

@SINKS.on(shape.RESHAPE)
def pixel_shuffle(g: Rewriter, node: Node) -> Result:
    """A reshape to six axes, a transpose, a reshape to four: DEPTH_TO_SPACE."""
    found = between(g, node)
    if found is None or len(found[0].shape) != 4 or len(node.outputs[0].shape) != 4:
        return None
    x, six, perm = found
    if perm not in SHUFFLES or len(six) != 6:
        return None
    (n, c, h, w), (row, column) = x.shape, SHUFFLES[perm]
    block = six[row]
    if not known(c) or not known(block) or not same(six[column], block) or not alike(six[4:], (h, w)) or not alike(
            node.outputs[0].shape, (n, c // (block * block), h * block, w * block)):
        return None
    if row == 2:                                 # channels count (c, row, column); NNAPI's count (row, column, c)
        order = np.arange(c).reshape(-1, block * block).T.ravel()
        x = g(gather.GATHER, x, axis=1, indices=g.build.const(order, I32))
    return g(image.DEPTH_TO_SPACE, x, block=block, nchw=True)


@SINKS.on(shape.RESHAPE)
def channel_shuffle(g: Rewriter, node: Node) -> Result:
    """An axis seen as two, the two exchanged, and seen as one again."""
    found = between(g, node)
    if found is None or not alike(found[0].shape, node.outputs[0].shape):
        return None
    x, split, perm = found
    axis = next((i for i, a in enumerate(perm) if a != i), len(perm))
    rank = len(x.shape)
    if axis >= rank or perm != (*range(axis), axis + 1, axis, *range(axis + 2, rank + 1)) \
            or not alike((*split[:axis], *split[axis + 2:]), (*x.shape[:axis], *x.shape[axis + 1:])) \
            or not known(split[axis]):
        return None
    n, groups = x.shape[axis], split[axis]
    if g.target.level >= shape.CHANNEL_SHUFFLE.types.get(x.type, g.target.level + 1):
        return g(shape.CHANNEL_SHUFFLE, x, groups=groups, axis=axis)
    if not known(n) or not g.target.ex or x.type not in ex.GATHER_EX.types:
        return Refusal("there is neither CHANNEL_SHUFFLE nor GATHER")
    return g(gather.GATHER, x, axis=axis, indices=g.build.const(np.arange(n).reshape(groups, -1).T.ravel(), I32))


def between(g: Rewriter, node: Node) -> tuple[Value, Shape, Perm] | None:
    """Of a reshape of a transpose of a reshape: what goes in, the shape that is transposed, and how."""
    turn = g.producer(node.args["x"])
    before = turn and turn.op is shape.TRANSPOSE and g.producer(turn.args["x"])
    perm = permutation(turn) if turn and before else None
    if not before or before.op is not shape.RESHAPE or perm is None or not all(
            map(ranked, (before.args["x"], *before.outputs, *node.outputs))):
        return None
    return before.args["x"], before.outputs[0].shape, perm


@SINKS.on(gather.GATHER)
def channels_of_filters(g: Rewriter, node: Node) -> Result:
    """Picked output channels are picked filters."""
    made, at = g.producer(node.args["x"]), numbers(node, "indices")
    if made is None or made.op is not conv.CONV_2D or at is None or len(node.args["indices"].shape) != 1 or not g.sole(
            node.args["x"]) or node.args["axis"] != (1 if made.args["nchw"] is True else 3):
        return None
    w, b = made.args["w"], made.args["b"]
    if w.tensor.data is None or b.tensor.data is None or isinstance(w.tensor.quant, ChannelQuant):
        return None
    return g(conv.CONV_2D, out=node.outputs[0].tensor, **made.args | {
        n: g.build.const(v.array[list(at)], v.type, v.tensor) for n, v in (("w", w), ("b", b))})


# ---- products with constants

@SINKS.on(conv.BATCH_MATMUL, host.MATMUL)
def by_constant(g: Rewriter, node: Node) -> Result:
    """A product with one constant matrix."""
    x, y = node.args["x"], node.args["y"]
    if node.args["adj_x"] or y.tensor.data is None or product(y.shape[:-2]) != 1 or x.tensor.dims is None \
            or x.type != y.type or y.tensor.quant or len(x.shape) < len(y.shape) \
            or x.type not in conv.FULLY_CONNECTED.types:
        return None
    w = y.array.reshape(y.shape[-2:])
    w = w if node.args["adj_y"] else np.ascontiguousarray(w.T)
    zeros = g.build.full(w.shape[:1], 0, y.tensor)
    return g(LINEAR, x, g.build.const(w, y.type, None, y.name), zeros, out=node.outputs[0].tensor)


@SINKS.on(conv.FULLY_CONNECTED)
def of_rows(g: Rewriter, node: Node) -> Result:
    """A product that flattens nothing, or one whose rows are all the rest."""
    x, w = node.args["x"], node.args["w"]
    if x.tensor.dims is None or len(x.shape) != 2 or not same(x.shape[1], w.shape[1]):
        return None
    return g(LINEAR, **node.args, out=node.outputs[0].tensor)


@SINKS.on(shape.RESHAPE)
def new_axes(g: Rewriter, node: Node) -> Result:
    """A reshape that cuts what a product with constants makes: the product makes the axes, in any order."""
    out, chain = node.outputs[0], list[Node]()
    made = g.producer(node.args["x"])
    while made is not None and made.op is not LINEAR and elementwise(made.op) and len(made.inputs) == 1 and g.sole(
            made.outputs[0]):
        chain.append(made)
        made = g.producer(made.inputs[0])
    if made is None or made.op is not LINEAR or not g.sole(made.outputs[0]) or not ranked(out):
        return None
    w, b, before = made.args["w"], made.args["b"], made.outputs[0].shape
    lead = len(before) - len(b.shape)
    units = out.shape[lead:]
    if len(units) <= len(b.shape) or len(out.shape) > MOST or len(b.shape) > 1 or w.tensor.data is None \
            or b.tensor.data is None or isinstance(w.tensor.quant, ChannelQuant) \
            or not alike(out.shape[:lead], before[:lead]) or not all(map(known, units)) \
            or sum(not known(n) for n in before[:lead]) > 1:
        return None
    args = made.args | {"w": reshaped(g, w, (*units, *w.shape[1:])), "b": reshaped(g, b, units)}
    y = g(LINEAR, **args, out=Tensor(made.outputs[0].type, None, made.outputs[0].tensor.quant))
    for n in reversed(chain):
        (name,) = (name for (name, _), v in slots(n) if v is n.inputs[0])
        y = g(n.op, **n.args | {name: y}, out=Tensor(n.outputs[0].type, None, n.outputs[0].tensor.quant))
    return y


# ---- merges sink

@SINKS.on("*")
def pointwise(g: Rewriter, node: Node) -> Result:
    """On unmerged axes."""
    if not elementwise(node.op) or not all(map(ranked, (*node.inputs, *node.outputs))) or any(
            isinstance(v.tensor.quant, ChannelQuant) for v in (*node.inputs, *node.outputs)):
        return None
    out = node.outputs[0]
    view = next((found for v in node.inputs if not v.constant and len(v.shape) == len(out.shape)
                 and (found := refined(g, v))), None)
    if view is None or node.op is host.WHERE and len(node.args["cond"].shape) != len(out.shape):
        return None
    fine: dict[str, Any] = {}
    for (name, _), v in slots(node):
        made = finer(g, v, len(out.shape), *view)
        if made is None:
            return None
        fine[name] = made
    y = g(node.op, **node.args | fine, out=Tensor(out.type, None, out.tensor.quant))
    return reshaped(g, y, out.shape)


def finer(g: Rewriter, v: Value, rank: int, cut: Shape, parts: Sequence[int]) -> Value | None:
    """An operand over the finer axes, each of its own being of size 1 or as long as those it meets."""
    if v.constant and len(v.shape) == 1 and same(v.shape[0], 1):
        return v
    sizes, at = list[int](), 0
    for n, k in zip((1,) * (rank - len(v.shape)) + v.shape, parts, strict=True):
        piece = cut[at:at + k]
        if not same(n, 1) and not same(n, product(piece)):
            return None
        sizes += [1] * k if same(n, 1) else piece
        at += k
    return reshaped(g, v, tuple(sizes))


@SINKS.on(*FOLDS)
def reduction(g: Rewriter, node: Node) -> Result:
    """Over the parts of a merged axis: this is what group normalisation is."""
    axes, out = numbers(node, "axes"), node.outputs[0]
    view = refined(g, node.args["x"]) if axes is not None and ranked(out) else None
    if view is None or axes is None:
        return None
    cut, parts = view
    gone = [j for a in sorted({a % len(parts) for a in axes}) for j in spread(parts, a)]
    y = g(node.op, out=Tensor(out.type, None, out.tensor.quant),
          **node.args | {"x": reshaped(g, node.args["x"], cut), "axes": g.build.const(gone, I32)})
    return reshaped(g, y, out.shape)


def spread(parts: Sequence[int], axis: int) -> range:
    """Where the parts of an axis stand."""
    start = sum(parts[:axis])
    return range(start, start + parts[axis])


@SINKS.on(shape.TRANSPOSE)
def transpose(g: Rewriter, node: Node) -> Result:
    perm, out = permutation(node), node.outputs[0]
    view = refined(g, node.args["x"]) if perm is not None and ranked(out) else None
    if view is None or perm is None:
        return None
    cut, parts = view
    fine = [j for a in perm for j in spread(parts, a)]
    y = g(node.op, reshaped(g, node.args["x"], cut), fine, out=Tensor(out.type, None, out.tensor.quant))
    return reshaped(g, y, out.shape)


@SINKS.on(LINEAR)
def product_of_parts(g: Rewriter, node: Node) -> Result:
    """What is summed over stays in parts, and so do the rows: the weights can follow any order."""
    w, b, out = node.args["w"], node.args["b"], node.outputs[0]
    view = refined(g, node.args["x"]) if node.args["flat"] == 1 and w.tensor.data is not None else None
    if view is None or not ranked(out):
        return None
    cut, parts = view
    flat = parts[-1]
    wide = reshaped(g, w, (*b.shape, *cut[len(cut) - flat:])) if all(map(known, cut[len(cut) - flat:])) else w
    y = g(LINEAR, out=Tensor(out.type, None, out.tensor.quant),
          **node.args | {"x": reshaped(g, node.args["x"], cut), "w": wide, "flat": flat})
    return reshaped(g, y, out.shape)


#: Finer axes: their sizes, and how many make each axis.
View = tuple[Shape, list[int]]


def refined(g: Rewriter, v: Value) -> View | None:
    """What a reshape that merges axes, or drops some of size 1, has made them of; None for other values."""
    made = g.producer(v)
    if made is None or made.op is not shape.RESHAPE or not ranked(v) or not ranked(made.args["x"]):
        return None
    view = kept(made.args["x"].shape, v.shape) or merged(made.args["x"].shape, v.shape)
    return view if view and sum(not known(n) for n in view[0]) <= 1 else None


def kept(x: Shape, v: Shape) -> View | None:
    """Where all but axes of size 1 stay as they are: those of x, each that goes beside one that stays."""
    if len(x) <= len(v) or len(x) > MOST:
        return None
    parts, left = list[int](), list(x)
    for n in v:
        count = 1
        while left and same(left[0], 1) and not same(n, 1):
            left.pop(0)
            count += 1
        if not left or not same(left.pop(0), n):
            return None
        parts.append(count)
    if not all(same(n, 1) for n in left):
        return None
    return x, [*parts[:-1], parts[-1] + len(left)]


def merged(x: Shape, v: Shape) -> View | None:
    """Where axes become one."""
    cut = factors(x, v) if len(x) >= 3 else None
    if cut is None:
        return None
    of_x, of_v = cut
    pieces = [[[f] for f in fs] for fs in of_v]
    if counted(pieces) > MOST:                   # neighbours in space never part where channels are last
        source = {f: i for i, fs in enumerate(of_x) for f in fs}
        pieces = [runs(fs, lambda f, e: min(source[f], source[e]) < 2 or len(of_x[source[f]]) > 1) for fs in of_v]
    if all(len(p) <= 1 for p in pieces) or counted(pieces) > MOST:
        return None
    size = sizes_of(x, of_x, v, of_v)
    sizes = tuple(n for ps in pieces for n in ([product(tuple(size[f] for f in p)) for p in ps] or [1]))
    return sizes, [max(1, len(p)) for p in pieces]


def counted(pieces: Sequence[Sequence[object]]) -> int:
    """How many axes pieces make."""
    return sum(max(1, len(p)) for p in pieces)


def runs(fs: Sequence[int], cut: Callable[[int, int], bool]) -> list[list[int]]:
    """Runs of factors, cut between two where they are to part."""
    found = list[list[int]]()
    for f in fs:
        if found and not cut(f, found[-1][-1]):
            found[-1].append(f)
        else:
            found.append([f])
    return found
