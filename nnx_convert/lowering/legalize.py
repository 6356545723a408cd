"""Operations the target has for those it has not, and NNAPI-EX where both exist."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Node, Value
from ..ops import conv, convert, elementwise as e, ex, gather, host, image, reduce as r, shape
from ..schema import OPS
from ..symbols import same
from ..types import B8, F32, I32, Q8, QPC, Tensor, known
from .fuse import ACTIVATIONS, TAKERS
from .rewrite import Refusal, Result, Rewriter, Rules

PREFER_EX = Rules("prefer EX")
LEGALIZE = Rules("legalize")
MASKS = Rules("masks")

TWINS = {o.twin_of.name: o for o in OPS.values() if o.twin_of}
COMPARE = {"EQUAL": (ex.EQUAL_EX, False), "NOT_EQUAL": (ex.NOT_EQUAL_EX, False), "LESS": (ex.LESS_EX, False),
           "GREATER": (ex.LESS_EX, True), "GREATER_EQUAL": (ex.GREATER_EQUAL_EX, False),
           "LESS_EQUAL": (ex.GREATER_EQUAL_EX, True)}       # with the operands swapped?
LOGIC = {"LOGICAL_AND": ex.LOGICAL_AND_EX, "LOGICAL_OR": ex.LOGICAL_OR_EX, "LOGICAL_NOT": ex.LOGICAL_NOT_EX}
REDUCE = {"REDUCE_MAX": ex.REDUCE_MAX_EX, "REDUCE_MIN": ex.REDUCE_MIN_EX, "REDUCE_SUM": ex.REDUCE_SUM_EX}
#: Operations that move elements and do not look at them.
MOVERS = (shape.RESHAPE, shape.TRANSPOSE, shape.EXPAND_DIMS, shape.SQUEEZE, shape.SLICE, shape.STRIDED_SLICE,
          shape.TILE, shape.CONCATENATION, gather.GATHER)


@PREFER_EX.on(*TWINS)
def ex_twin(g: Rewriter, node: Node) -> Result:
    """The same operands under the EX code."""
    return g.legal(g.again(node, TWINS[node.op.name]))


@PREFER_EX.on(*COMPARE)
def ex_compare(g: Rewriter, node: Node) -> Result:
    """EX compares give masks, and there are four of them."""
    op, swapped = COMPARE[node.op.name]
    x, y = (node.args[n] for n in ("xy", "yx")[swapped])
    if op is ex.NOT_EQUAL_EX and x.tensor.quant == ex.MASK and y.tensor.data is not None and not y.tensor.data.any():
        return None                              # a mask as truth values, which is how it stands in NNAPI
    return g.legal(g(host.TO_BOOL, g(op, x, y))) if x.type != B8 else None


@PREFER_EX.on(*LOGIC)
def ex_logic(g: Rewriter, node: Node) -> Result:
    masks: dict[str, Any] = {name: g(host.TO_MASK, v) for name, v in node.args.items()}
    return g.legal(g(host.TO_BOOL, g(LOGIC[node.op.name], **masks)))


@PREFER_EX.on(r.REDUCE_ANY, r.REDUCE_ALL)
def ex_any(g: Rewriter, node: Node) -> Result:
    """The largest, or the smallest, of a mask."""
    op = ex.REDUCE_MAX_EX if node.op is r.REDUCE_ANY else ex.REDUCE_MIN_EX
    m = g(op, g(host.TO_MASK, node.args["x"]), node.args["axes"], out=Tensor(Q8, None, ex.MASK))
    return g.legal(g(host.TO_BOOL, reshaped(g, m, node) if node.args["keep"] else m))


@PREFER_EX.on(*REDUCE)
def ex_reduce(g: Rewriter, node: Node) -> Result:
    """EX reductions drop their axes; a RESHAPE puts them back."""
    y = g(REDUCE[node.op.name], node.args["x"], node.args["axes"])
    return g.legal(reshaped(g, y, node) if node.args["keep"] else y)


def reshaped(g: Rewriter, v: Value, node: Node) -> Value:
    """A value in the shape of the node's first output."""
    return g(shape.RESHAPE, v, node.outputs[0].shape)


@PREFER_EX.on(gather.GATHER)
def ex_gather(g: Rewriter, node: Node) -> Result:
    return g.legal(g(ex.GATHER_EX, **node.args))


@PREFER_EX.on(convert.CAST)
def ex_cast(g: Rewriter, node: Node) -> Result:
    x, to = node.args["x"], node.args["to"]
    if x.type == B8 != to:
        return g.legal(g(ex.CAST_EX, g(host.TO_MASK, x), to=to))
    if to == B8 != x.type:
        return g.legal(g(host.TO_BOOL, g(ex.NOT_EQUAL_EX, x, g.build.full((1,), 0, x.tensor))))
    return g.legal(g(ex.CAST_EX, x, to=to, out=node.outputs[0].tensor))


@PREFER_EX.on(conv.TRANSPOSE_CONV_2D)
def ex_transpose_conv(g: Rewriter, node: Node) -> Result:
    """EX has neither bias nor activation: only where there is none, and the form gives the size."""
    a = node.args
    if "scheme" not in a:
        return Refusal("EX takes no explicit padding")
    if a["act"] or a["nchw"] or a["b"].tensor.data is None or a["b"].tensor.data.any():
        return Refusal("EX takes neither bias nor activation")
    return g.legal(g(ex.TRANSPOSE_CONV_EX, out=node.outputs[0].tensor,
                     **{n: a[n] for n in ("shape", "w", "x", "scheme", "sw", "sh")}))


# The other way: what a target without EX, or of a low level, has instead.
@LEGALIZE.on(ex.PACK_EX)
def pack(g: Rewriter, node: Node) -> Result:
    """PACK from level 6; a new axis in each and CONCATENATION below."""
    xs, axis = node.args["xs"], node.args["axis"]
    if not g.fault(node):
        return None
    at = axis % (len(xs[0].shape) + 1)
    whole = (*xs[0].shape[:at], 1, *xs[0].shape[at:])
    return g.legal(g(shape.CONCATENATION, xs=tuple(g(shape.RESHAPE, x, whole) for x in xs), axis=at,
                     out=node.outputs[0].tensor))


@LEGALIZE.on(ex.UNPACK_EX)
def unpack(g: Rewriter, node: Node) -> Result:
    if not g.fault(node):
        return None
    parts = g.add(shape.SPLIT, node.args["x"], axis=node.args["axis"], count=node.args["count"])
    return g.legal([g(shape.RESHAPE, p, v.shape) for p, v in zip(parts, node.outputs, strict=True)])


@LEGALIZE.on(ex.ONE_HOT_EX)
def one_hot(g: Rewriter, node: Node) -> Result:
    """EQUAL with a ramp, then SELECT."""
    if not g.fault(node):
        return None
    indices, depth, out = node.args["indices"], node.args["depth"], node.outputs[0]
    at = node.args["axis"] % (len(indices.shape) + 1)
    ramp = g.build.const(g.build.ramp(depth).array.reshape((depth,) + (1,) * (len(indices.shape) - at)), I32)
    hit = g(e.EQUAL, g(shape.EXPAND_DIMS, indices, axis=at), ramp)
    on, off = (g.build.full(out.shape, node.args[n], out.tensor) for n in ("on", "off"))
    return g.legal(g(e.SELECT, hit, on, off))


@LEGALIZE.on(r.MEAN)
def mean_as_pool(g: Rewriter, node: Node) -> Result:
    """Over height and width, an AVERAGE_POOL_2D of the whole image (27)."""
    x, axes = node.args["x"], node.args["axes"]
    if not g.fault(node) or x.type != F32 or len(x.shape) != 4 or {a % 4 for a in axes.tensor.ints()} != {1, 2} \
            or not all(map(known, x.shape[1:3])):
        return None
    y = g(image.AVERAGE_POOL_2D, x, scheme=2, sw=1, sh=1, kw=x.shape[2], kh=x.shape[1], act=0)
    return g.legal(y if node.args["keep"] else reshaped(g, y, node))


@LEGALIZE.on(*TAKERS)
def activation_after(g: Rewriter, node: Node) -> Result:
    """A device may take an operation and an activation, but not both in one; on one grid that is the same."""
    act = ACTIVATIONS.get(node.args["act"])
    if act is None or g.target.limits is None or not g.fault(node):
        return None
    made = g(node.op, out=node.outputs[0].tensor, **node.args | {"act": 0})
    return g.legal(g(act, made, out=node.outputs[0].tensor))


@LEGALIZE.on(shape.EXPAND_DIMS, shape.SQUEEZE)
def as_reshape(g: Rewriter, node: Node) -> Result:
    return g.legal(reshaped(g, node.args["x"], node)) if g.fault(node) else None


@LEGALIZE.on(shape.RESHAPE)
def reshape_ints(g: Rewriter, node: Node) -> Result:
    """INT32 has no RESHAPE below level 6.

    Picking the elements of a row by index gives them any shape, EXPAND_DIMS adds axes of size 1, and an EX
    reduction over such axes drops them.
    """
    x, out = node.args["x"], node.outputs[0]
    if not g.fault(node) or x.type != I32 or x.tensor.dims is None or out.tensor.dims is None:
        return None
    if len(x.shape) == 1 and all(map(known, (*x.shape, *out.shape))):
        return g.legal(picked(g, x, g.build.const(g.build.ramp(x.shape[0]).array.reshape(out.shape), I32)))
    own, core = ([n for n in v.shape if not same(n, 1)] for v in (x, out))
    if len(own) != len(core) or not all(map(same, own, core)):
        return Refusal("INT32 takes RESHAPE from level 6, and this is not one row")
    if ones := [i for i, n in enumerate(x.shape) if same(n, 1)]:
        x = g(ex.REDUCE_MAX_EX, x, ones[:len(ones) - (not core)])
    for i in (i for i, n in enumerate(out.shape) if same(n, 1) and len(x.shape) < len(out.shape)):
        x = g(shape.EXPAND_DIMS, x, axis=i)
    return g.legal(x)


def picked(g: Rewriter, x: Value, indices: Value) -> Value:
    """The elements of x at indices along its first axis."""
    return g(ex.GATHER_EX, x, indices, axis=0) if g.target.ex and x.type in ex.GATHER_EX.types else \
        g(gather.GATHER, x, axis=0, indices=indices)


@LEGALIZE.on(convert.CAST)
def cast_bool(g: Rewriter, node: Node) -> Result:
    """CAST takes truth values onto themselves only."""
    x, out = node.args["x"], node.outputs[0]
    if not g.fault(node) or x.type == out.type:
        return None
    if out.type == B8:
        return g.legal(g(e.NOT_EQUAL, x, g.build.full((1,), 0, x.tensor)))
    if x.type != B8:
        return None
    one, zero = (g.build.full(x.shape, v, out.tensor) for v in (1, 0))
    return g.legal(g(e.SELECT, x, one, zero, out=out.tensor))


@LEGALIZE.on(image.RESIZE_NEAREST_NEIGHBOR)
def nearest_as_gather(g: Rewriter, node: Node) -> Result:
    """`align` and `half` come with level 30: the rows, then the columns, picked by index."""
    a, x = node.args, node.args["x"]
    if not g.fault(node) or "oh" not in a or not all(map(known, (*x.shape, a["oh"], a["ow"]))):
        return None
    for axis, size in ((1 + a["nchw"], a["oh"]), (2 + a["nchw"], a["ow"])):
        at = nearest(x.shape[axis], size, a["align"], a["half"])
        x = g(gather.GATHER, x, axis=axis, indices=g.build.const(at, I32))
    return g.legal(x)


def nearest(size: int, out: int, align: bool, half: bool) -> np.ndarray[Any, Any]:
    """The source index of each output index, in LiteRT's float32 arithmetic."""
    scale = np.float32(size - 1) / np.float32(out - 1) if align and out > 1 else np.float32(size) / np.float32(out)
    at = (np.arange(out, dtype=np.float32) + np.float32(0.5 if half else 0.0)) * scale
    whole = np.floor(at + np.float32(0.5)) if align else np.floor(at)
    found: np.ndarray[Any, Any] = np.clip(whole.astype(np.int32), 0, size - 1)
    return found


@LEGALIZE.on(shape.STRIDED_SLICE)
def strided_as_slice(g: Rewriter, node: Node) -> Result:
    """A stride of 1 everywhere and no axis dropped: SLICE, which takes INT32."""
    a = node.args
    if not g.fault(node) or a["shrink_mask"] or set(a["strides"].tensor.ints()) != {1}:
        return None
    ends = zip(a["x"].shape, a["begin"].tensor.ints(), strict=True)
    begin = tuple(0 if a["begin_mask"] >> i & 1 else range(n)[b:].start for i, (n, b) in enumerate(ends))
    return g.legal(g(shape.SLICE, a["x"], begin, node.outputs[0].shape))


@LEGALIZE.on(shape.SLICE)
def slice_as_strided(g: Rewriter, node: Node) -> Result:
    """SLICE comes with level 29, STRIDED_SLICE with 28."""
    x, sizes = node.args["x"], node.outputs[0].tensor.dims
    if not g.fault(node) or x.type == I32 or not sizes or not all(map(known, sizes)):
        return None
    begin = node.args["begin"].tensor.ints()
    end = tuple(b + n for b, n in zip(begin, sizes, strict=True))
    return g.legal(g(shape.STRIDED_SLICE, x, begin, end, (1,) * len(end), begin_mask=0, end_mask=0, shrink_mask=0,
                     out=node.outputs[0].tensor))


@LEGALIZE.on(e.HARD_SWISH)
def hard_swish(g: Rewriter, node: Node) -> Result:
    """x * relu6(x + 3) / 6 below level 30."""
    x = node.args["x"]
    if not g.fault(node) or x.type != F32:
        return None
    three, sixth = (g.build.const([v], F32) for v in (3.0, 1 / 6))
    gate = g(e.ADD, x, three, act=3)
    return g.legal(g(e.MUL, g(e.MUL, x, gate, act=0), sixth, act=0))


@LEGALIZE.on(e.PRELU)
def prelu(g: Rewriter, node: Node) -> Result:
    """relu(x) + -alpha * relu(-x), all of it of level 27."""
    x, y = node.args["x"], node.args["y"]
    if not g.fault(node) or x.type != F32:
        return None
    below = g(e.RELU, negated(g, x))
    return g.legal(g(e.ADD, g(e.RELU, x), g(e.MUL, negated(g, y), below, act=0), act=0))


@LEGALIZE.on(e.SUB)
def sub_as_add(g: Rewriter, node: Node) -> Result:
    """x + -y, which is the same float."""
    if not g.fault(node) or node.args["x"].type != F32:
        return None
    return g.legal(g(e.ADD, node.args["x"], negated(g, node.args["y"]), act=node.args["act"]))


def negated(g: Rewriter, x: Value) -> Value:
    """-x as x * -1, which level 27 has."""
    if x.tensor.data is not None:
        return g.build.const(-x.tensor.data, F32)
    return g(e.MUL, x, g.build.const([-1.0], F32), act=0)


@LEGALIZE.on(shape.PAD)
def pad_as_concatenation(g: Rewriter, node: Node) -> Result:
    """Zeros joined on, axis by axis; below 28 there is no PAD, below 29 none for a zero point but 0."""
    x, amounts = node.args["x"], node.args["paddings"].tensor.ints()
    if not g.fault(node) or not all(map(known, (*x.shape, *amounts))):
        return None
    for axis, (head, tail) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        zero = getattr(x.tensor.quant, "zero", 0)
        before, after = (g.build.full((*x.shape[:axis], n, *x.shape[axis + 1:]), zero, x.tensor) for n in (head, tail))
        xs = tuple(v for v in (before, x, after) if v.shape[axis])
        x = g(shape.CONCATENATION, xs=xs, axis=axis, out=Tensor(x.type, None, x.tensor.quant)) \
            if len(xs) > 1 else xs[0] if xs else x
    return g.legal(x)


@LEGALIZE.on(conv.FULLY_CONNECTED)
def dense_per_channel(g: Rewriter, node: Node) -> Result:
    """Scales per channel are for convolutions: a 1x1 one over rows as images, which rounds twice."""
    x, w, b, act = (node.args[n] for n in ("x", "w", "b", "act"))
    if w.type != QPC or w.tensor.data is None or len(x.shape) != 2 or g.target.here:
        return None
    g.why = "as a convolution, which rounds twice: a step off now and then"
    rows = g(shape.RESHAPE, x, (x.shape[0], 1, 1, x.shape[1]))
    axis0 = Tensor(w.type, (1,), type(w.tensor.quant)(w.tensor.quant.scales, 0))
    filt = g.build.const(w.tensor.data.reshape(w.shape[0], 1, 1, w.shape[1]), w.type, axis0, w.name)
    y = g(conv.CONV_2D, rows, filt, b, scheme=2, sw=1, sh=1, act=act, nchw=False, out=Tensor(
        x.type, None, node.outputs[0].tensor.quant))
    return g.legal(reshaped(g, y, node))


@LEGALIZE.on(*MOVERS)
def move_mask(g: Rewriter, node: Node) -> Result:
    """What moves elements takes no BOOL8: they travel as bytes."""
    if not g.fault(node) or node.outputs[0].type != B8:
        return None
    bytes_ = node.mapped(lambda v: g(host.TO_MASK, v) if isinstance(v, Value) and v.type == B8 else v)
    moved = g(node.op, out=Tensor(Q8, node.outputs[0].tensor.dims, ex.MASK), **bytes_.args)
    return g.legal(g(host.TO_BOOL, moved))


# Truth values between BOOL8 and the QUANT8 masks of NNAPI-EX.
@PREFER_EX.on(host.TO_MASK)
@MASKS.on(host.TO_MASK)
def mask_of_bool(g: Rewriter, node: Node) -> Result:
    made_by = g.producer(node.args["x"])
    if made_by is not None and made_by.op is host.TO_BOOL:
        return made_by.inputs[0]
    if g.rules is not MASKS:
        return None
    x = node.args["x"]
    one, zero = (g.build.full(x.shape, v, node.outputs[0].tensor) for v in (1, 0))
    return g.legal(g(e.SELECT, x, one, zero))


@MASKS.on(host.TO_BOOL)
def bool_of_mask(g: Rewriter, node: Node) -> Result:
    x = node.args["x"]
    return g.legal(g(e.NOT_EQUAL, x, g.build.full((1,), 0, x.tensor)))
