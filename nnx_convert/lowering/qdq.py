"""Codes between floats: DEQUANTIZE, an operation and QUANTIZE_EVEN become the operation on codes.

Three facts do most of the work. Moving codes commutes with DEQUANTIZE, so that this sinks below what moves and meets
what quantises. QUANTIZE_EVEN never falls where its input rises, so that it rises above activations, which bound its
codes. What it gives, dequantised, quantised again on the same grid is itself.

ONNX's codes have no grid of their own: to be dequantised they are relabelled, and they are relabelled back once they
are quantised. The two of a pair vanish; at the rim the operand has the grid, and the user sees the codes.

Only graphs that have ONNX's quantisation in them are looked at: TFLite's QUANTIZE rounds otherwise.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import Build, Evaluate, Graph, Node, Value
from ..ops import (
    conv, convert, elementwise as e, folds, gather, grids, host, image, indexing, linear, reduce as r, shape)
from ..target import Target
from ..types import (
    BYTES, F16, F32, I2, I4, I16, I32, Q16A, QPC, U2, U4, Array, ChannelQuant, Quant, Tensor, known)
from .rewrite import Event, Pass, Result, Rewriter, Rules, prune

QDQ = Rules("qdq")
MADE = {o.name for o in (grids.QUANTIZE_LINEAR, grids.DEQUANTIZE_LINEAR, grids.QUANTIZE_EVEN, grids.RELABEL)}
#: Scales and zero points have no more elements.
SMALL = 1 << 12
#: The rule that makes one operation of a group.
GROUPS = "fuse"
#: So many reasons are spelt out.
MOST_REASONS = 3
#: The grid of codes that are plain integers.
PLAIN = Quant(1.0, 0)
BITS = {I4: (-8, 7), U4: (0, 15), I2: (-2, 1), U2: (0, 3)}
#: Adding and subtracting it rounds a float32 of less than 2 ** 22 to an integer, halves to even.
MAGIC = 1.5 * 2.0 ** 23
#: The codes there are of a type, and how many steps saturate whatever the zero point.
SPANS = {t: BITS.get(t) or (int(np.iinfo(t.dtype).min), int(np.iinfo(t.dtype).max))
         for t in (*BYTES, Q16A, I16, *BITS)}
FAR = {t: 2.0 * (high - low + 1) for t, (low, high) in SPANS.items()}
#: What moves elements, and is the same on codes.
MOVES = (
    shape.RESHAPE, shape.TRANSPOSE, shape.SQUEEZE, shape.EXPAND_DIMS, shape.SLICE, shape.STRIDED_SLICE, shape.SPLIT,
    shape.TILE, shape.MIRROR_PAD, shape.REVERSE, shape.CHANNEL_SHUFFLE, shape.PAD_V2, gather.GATHER, host.BROADCAST_TO,
    indexing.GATHER_ELEMENTS, indexing.GATHER_ND_BATCHED, host.GATHER_ND,
    image.DEPTH_TO_SPACE, image.SPACE_TO_DEPTH, image.RESIZE_NEAREST_NEIGHBOR)
#: What picks elements by their order, which a grid keeps.
ORDERS = (image.MAX_POOL_2D, r.REDUCE_MAX, r.REDUCE_MIN)
#: What gives whole numbers of whole numbers.
WHOLE = (e.ADD, e.SUB, e.MUL, e.MINIMUM, e.MAXIMUM, host.MATMUL, linear.LINEAR, conv.CONV_2D,
         conv.DEPTHWISE_CONV_2D, conv.GROUPED_CONV_2D, shape.RESHAPE, shape.TRANSPOSE, shape.EXPAND_DIMS,
         shape.SQUEEZE)


def fusing(evaluate: Evaluate) -> Pass:
    """The pass: codes as far as they go, then the rim on the grids that are left there."""
    rules = QDQ.using(evaluate)

    def fused(graph: Graph, target: Target, trace: list[Event]) -> Graph:
        if MADE.isdisjoint(n.op.name for n in graph.nodes):
            return graph
        since = len(trace)
        graph = prune(rules(once_each(graph), target, trace), target, trace)
        trace += summary(trace[since:])
        return prune(relabelled(graph), target, trace) if graph.rim.outputs else graph
    return fused


def once_each(graph: Graph) -> Graph:
    """Exporters quantise a value anew for each that reads it: what is the same is done once."""
    became, found, nodes = dict[Any, Any](), dict[Any, Node](), list[Node]()

    def now(v: Any) -> Any:
        return became.get(v, v)
    for node in (n.mapped(now) for n in graph.nodes):
        out = node.outputs[0]
        key = (node.op, tuple(map(spelt, node.operands)), out.type, out.tensor.quant) if node.op.name in MADE else node
        before = found.setdefault(key, node)
        if before is node:
            nodes.append(node)
        became |= {} if before is node else dict(zip(node.outputs, before.outputs, strict=True))
    return Build(graph.name, nodes=nodes).finish(graph.inputs, tuple(map(now, graph.outputs)), graph.rim)


def spelt(a: Any) -> Any:
    """An operand so that equal ones are equal: a small constant by its elements."""
    small = isinstance(a, Value) and a.tensor.data is not None and a.tensor.data.size <= SMALL
    return (a.tensor, a.tensor.data.tobytes()) if small else a


def summary(trace: list[Event]) -> list[Event]:
    """How many groups are on codes and why others are not, in a line each."""
    groups = [ev for ev in trace if ev.rule == GROUPS]
    done, kept = [ev for ev in groups if ev.did], [ev for ev in groups if not ev.did]
    found = []
    if done:
        why = f"{len(done)} groups are one operation on codes each, rounded as NNAPI does; --qdq floats rounds as ONNX"
        found.append(replace(done[0], why=why))
    if kept:
        reasons = list(dict.fromkeys(ev.why for ev in kept))
        more = f"; and {len(reasons) - MOST_REASONS} more reasons" if len(reasons) > MOST_REASONS else ""
        found.append(replace(kept[0], did=True, why="; ".join(reasons[:MOST_REASONS]) + more))
    return found


# One scale and one zero point: a grid.
def number(v: Value | None) -> float | None:
    """The one element of a constant; 0 of a zero point that is left out."""
    if v is None:
        return 0.0
    return float(v.tensor.data.item()) if v.tensor.data is not None and v.tensor.data.size == 1 else None


def grid_of(node: Node) -> Quant | None:
    """The grid that a scale and a zero point make, if they are known and one each."""
    scale, zero = number(node.args["scale"]), number(node.args["zero"])
    if scale is None or zero is None or not 0 < scale < np.inf:
        return None
    return Quant(float(np.float32(scale)), int(zero))


@QDQ.on(grids.QUANTIZE_LINEAR)
def onto_a_grid(g: Rewriter, node: Node) -> Result:
    x, out, grid = node.args["x"], node.outputs[0].tensor, grid_of(node)
    if grid is None or x.type != F32 or node.args["scale"].type != F32 or out.type not in BYTES:
        return None
    codes = g(grids.QUANTIZE_EVEN, x, to=out.type, out=Tensor(out.type, out.dims, grid))
    return g(grids.RELABEL, g.named(codes, node.outputs[0].name), out=out)


@QDQ.on(grids.DEQUANTIZE_LINEAR)
def off_a_grid(g: Rewriter, node: Node) -> Result:
    x, out, grid = node.args["x"], node.outputs[0].tensor, grid_of(node)
    if x.type not in BYTES or out.type not in (F32, F16):
        return None
    if grid is not None:
        y = g(convert.DEQUANTIZE, g(grids.RELABEL, x, out=Tensor(x.type, x.tensor.dims, grid)), to=F32)
        return y if out.type == F32 else g(convert.CAST, y, to=F16)
    weights = per_channel(node)
    return None if weights is None or out.type != F32 else g(convert.DEQUANTIZE, weights, to=F32, out=out)


def per_channel(node: Node) -> Value | None:
    """Constant codes whose scale runs along an axis and whose zero point is the middle, as NNAPI has them."""
    x, scale, zero, axis = (node.args[n] for n in ("x", "scale", "zero", "axis"))
    if x.tensor.data is None or scale.tensor.data is None or node.args["block"] or scale.type != F32:
        return None
    codes, scales, axis = signed(x.array, zero), scale.array.reshape(-1), axis % len(x.shape)
    if codes is None or not (np.isfinite(scales) & (scales > 0)).all():
        return None
    every = np.broadcast_to(scales, (x.shape[axis],)) if scales.size == 1 else scales
    return Value(x.name, Tensor(QPC, x.shape, ChannelQuant(tuple(map(float, every)), axis), codes))


def signed(codes: Array, zero: Value | None) -> Array | None:
    """Codes as int8 with the zero point 0, where they are that but for a shift by 128."""
    middle = 128 if codes.dtype == np.uint8 else 0
    if zero is None and middle or zero is not None and (zero.tensor.data is None or (zero.array != middle).any()):
        return None
    return codes.view(np.int8) if not middle else (codes ^ np.uint8(128)).view(np.int8)


# Scales along axes, or known only in a run, or codes that are no bytes: element by element.
@QDQ.on(grids.QUANTIZE_LINEAR)
def in_steps(g: Rewriter, node: Node) -> Result:
    """The codes as whole floats; QUANTIZE with a scale of 1 then has nothing to round."""
    out = node.outputs[0].tensor
    whole = counted(g, node) if out.type in BYTES else None
    return None if whole is None else g(convert.QUANTIZE, whole, to=out.type, out=out)


def counted(g: Rewriter, node: Node) -> Value | None:
    """The codes of QUANTIZE_LINEAR as floats, rounded by adding and subtracting; None where NNAPI cannot do that."""
    x, zero, type_ = node.args["x"], node.args["zero"], node.outputs[0].type
    scale = beside(g, node, "scale")
    if x.type not in (F32, F16) or type_ not in SPANS or scale is None or scale.type != x.type:
        return None
    (low, high), far = SPANS[type_], FAR[type_]
    steps = g(e.DIV, x, scale, act=0)
    steps = bounded(g, steps if x.type == F32 else g(convert.CAST, steps, to=F32), -far, far)
    whole = g(e.SUB, g(e.ADD, steps, like(g, x, MAGIC), act=0), like(g, x, MAGIC), act=0)
    if zero is not None and number(zero) != 0:
        offset = beside(g, node, "zero")
        if offset is None or not (offset.constant or offset.type in BYTES):
            return None
        whole = g(e.ADD, whole, real(g, offset), act=0)
    return bounded(g, whole, low, high)


@QDQ.on(grids.DEQUANTIZE_LINEAR)
def out_of_steps(g: Rewriter, node: Node) -> Result:
    """Codes that were floats just before are not made at all where NNAPI has no such type."""
    x, out, zero, scale = node.args["x"], node.outputs[0].tensor, node.args["zero"], beside(g, node, "scale")
    if x.constant or out.type != F32 or scale is None or scale.type != F32:
        return None
    offset = None if zero is None or number(zero) == 0 else beside(g, node, "zero")
    if zero is not None and number(zero) != 0 and offset is None:
        return None
    y = uncoded(g, x, offset)
    return None if y is None else y if number(scale) == 1 else g(e.MUL, y, scale, act=0)


def uncoded(g: Rewriter, x: Value, offset: Value | None) -> Value | None:
    """Codes less their zero point as floats."""
    before = g.producer(x)
    if x.type == I32:
        return g(convert.CAST, x if offset is None else g(e.SUB, x, offset, act=0), to=F32)
    if x.type in BYTES:
        codes: Value | None = real(g, x)
    else:
        codes = counted(g, before) if before is not None and before.op is grids.QUANTIZE_LINEAR else None
    if codes is None or offset is None or not (offset.constant or offset.type in BYTES):
        return codes if offset is None else None
    return g(e.SUB, codes, real(g, offset), act=0)


def beside(g: Rewriter, node: Node, name: str) -> Value | None:
    """A scale or a zero point so that it broadcasts against x; None where that takes repeating a computed one."""
    v, x, axis, block = node.args[name], node.args["x"], node.args["axis"], node.args["block"]
    rank = len(x.shape)
    if v.shape == (1,) * len(v.shape):
        dims: tuple[int, ...] = (1,) * rank
    elif not block:
        dims = tuple(v.shape[0] if i == axis % rank else 1 for i in range(rank))
    elif v.tensor.data is not None and known(x.shape[axis]):
        data = np.repeat(v.array, block, axis)[(slice(None),) * (axis % rank) + (slice(x.shape[axis]),)]
        return g.build.const(data, v.type, v.tensor)
    else:
        return None
    if v.tensor.data is not None:
        return g.build.const(v.array.reshape(dims), v.type, v.tensor)
    return v if v.shape == dims else g(shape.RESHAPE, v, dims)


def real(g: Rewriter, codes: Value) -> Value:
    """Plain codes as floats."""
    if codes.tensor.data is not None:
        return g.build.const(codes.array, F32)
    return g(convert.DEQUANTIZE, codes, to=F32)


def like(g: Rewriter, x: Value, number: float) -> Value:
    """A constant of one element, of the rank of x."""
    return g.build.const(np.full((1,) * len(x.shape), number, np.float32), F32)


def bounded(g: Rewriter, x: Value, low: float, high: float) -> Value:
    """At least one number and at most another."""
    return g(e.MINIMUM, g(e.MAXIMUM, x, like(g, x, low)), like(g, x, high))


# What cancels.
@QDQ.on(grids.RELABEL)
def once(g: Rewriter, node: Node) -> Result:
    """Of several grids the last one counts; constants take theirs."""
    x, out = node.args["x"], node.outputs[0].tensor
    if x.tensor.data is not None:
        return Value(x.name, replace(x.tensor, quant=out.quant))
    if x.tensor.quant == out.quant:
        return x                             # type: ignore[no-any-return]
    before = g.producer(x)
    if before is None or before.op is not grids.RELABEL:
        return None
    first: Value = before.args["x"]
    return first if first.tensor.quant == out.quant else g(grids.RELABEL, first, out=out)


@QDQ.on(convert.DEQUANTIZE)
def whole_again(g: Rewriter, node: Node) -> Result:
    """Plain integers made of whole numbers, which is all that importers quantise with a scale of 1."""
    before, out = g.producer(node.args["x"]), node.outputs[0]
    turned = before is not None and before.op is shape.RESHAPE
    before = g.producer(before.args["x"]) if before is not None and turned else before
    if before is None or before.op is not convert.QUANTIZE or node.args["x"].tensor.quant != PLAIN:
        return None
    x: Value = before.args["x"]
    if x.type != out.type:
        return None
    return g(shape.RESHAPE, x, out.shape, out=out.tensor) if turned else x


@QDQ.on(convert.CAST)
def whole_sums(g: Rewriter, node: Node) -> Result:
    """Floats that are whole numbers already, cast to integers and back."""
    before = g.producer(node.args["x"])
    if node.outputs[0].type != F32 or before is None or before.op is not convert.CAST:
        return None
    x: Value = before.args["x"]
    return x if x.type == F32 and node.args["x"].type == I32 and whole(g, x, 8) else None


def whole(g: Rewriter, v: Any, depth: int) -> bool:
    """Whether a float is a whole number for certain, far from the ends of INT32."""
    if not isinstance(v, Value) or v.type not in (F32, I32):
        return True
    if v.tensor.data is not None:
        return v.type == I32 or bool((np.abs(v.array) < 1 << 16).all() and (v.array == np.rint(v.array)).all())
    made = g.producer(v)
    if made is None or not depth:
        return False
    if made.op is convert.DEQUANTIZE:
        return bool(made.args["x"].tensor.scale == 1)
    if made.op is e.SUB and number(made.args["y"]) == MAGIC:
        return True
    return made.op in WHOLE and all(whole(g, a, depth - 1) for a in made.args.values())


# What sinks.
@QDQ.on(*MOVES, *ORDERS, shape.PAD, e.RELU)
def on_codes(g: Rewriter, node: Node) -> Result:
    """The same on codes, dequantised or, where they were to be plain integers, relabelled afterwards."""
    before = g.producer(node.args["x"])
    if before is None or before.op not in (convert.DEQUANTIZE, grids.RELABEL):
        return None
    x = before.args["x"]
    relabels = before.op is grids.RELABEL
    if not isinstance(x.tensor.quant, Quant) or x.type not in BYTES or relabels and (
            node.op is e.RELU or node.args["x"].tensor.quant != PLAIN):
        return None
    op, args = padded(node, x, relabels) if node.op in (shape.PAD, shape.PAD_V2) else (node.op, node.args)
    if args is None or op.code is not None and x.type not in op.types:
        return None
    known_outs = [Tensor(x.type, v.tensor.dims, x.tensor.quant) for v in node.outputs]
    made = g.add(op, outs=known_outs, **args | {"x": x})
    if relabels:
        return [g(grids.RELABEL, y, out=v.tensor) for y, v in zip(made, node.outputs, strict=True)]
    return [g(convert.DEQUANTIZE, y, to=F32, out=v.tensor) for y, v in zip(made, node.outputs, strict=True)]


@QDQ.on(r.ARGMAX, r.ARGMIN, folds.ARGMAX_LAST, folds.ARGMIN_LAST)
def found_in_codes(g: Rewriter, node: Node) -> Result:
    """Where the largest code is, the largest number is."""
    before = g.producer(node.args["x"])
    if before is None or before.op is not convert.DEQUANTIZE or before.args["x"].type not in BYTES:
        return None
    return g(node.op, out=node.outputs[0].tensor, **node.args | {"x": before.args["x"]})


def padded(node: Node, x: Value, relabels: bool) -> tuple[Any, dict[str, Any] | None]:
    """Padding with the code of the value; no arguments where there is none."""
    value, grid = node.args.get("value", 0), x.tensor.quant
    assert isinstance(grid, Quant)
    code = value if relabels else grid.zero if value == 0 else None
    args = None if code is None else {"paddings": node.args["paddings"], "value": int(code)}
    return shape.PAD_V2, args


@QDQ.on(shape.CONCATENATION)
def joined_codes(g: Rewriter, node: Node) -> Result:
    """Codes of one grid, relabelled, are relabelled once joined."""
    made, out = [g.producer(x) for x in node.args["xs"]], node.outputs[0].tensor
    if not all(n is not None and n.op is grids.RELABEL for n in made):
        return None
    xs = tuple(n.args["x"] for n in made if n is not None)
    if len({x.tensor.quant for x in xs}) > 1 or any(x.tensor.quant != out.quant for x in node.args["xs"]):
        return None
    y = g(shape.CONCATENATION, xs=xs, axis=node.args["axis"], out=Tensor(xs[0].type, out.dims, xs[0].tensor.quant))
    return g(grids.RELABEL, y, out=out)


@QDQ.on(*MOVES, shape.CONCATENATION, grids.QUANTIZE_LINEAR, grids.QUANTIZE_EVEN)
def constant_codes(g: Rewriter, node: Node) -> Result:
    """Codes that are known are computed here, so that what reads them finds them."""
    out = node.outputs[0]
    if len(node.outputs) > 1 or out.type not in (*BYTES, QPC) or not node.inputs or isinstance(
            out.tensor.quant, ChannelQuant) or any(v.tensor.data is None for v in node.inputs):
        return None
    found = g.evaluate(node, [a.tensor.data if isinstance(a, Value) else getattr(a, "value", None)
                              for a in node.operands])
    return None if found is None else Value(out.name, replace(out.tensor, dims=found[0].shape, data=found[0]))


# The rim.
def relabelled(graph: Graph) -> Graph:
    """Inputs and outputs with the grid of what reads or writes them, in place of a RELABEL."""
    became: dict[Any, Any] = {}
    for v in graph.inputs:
        readers = [n for n in graph.nodes if v in n.inputs]
        found = {n.outputs[0].tensor.quant for n in readers if n.op is grids.RELABEL}
        if len(found) == 1 and v not in graph.outputs and all(n.op is grids.RELABEL for n in readers):
            became[v] = Value(v.name, replace(v.tensor, quant=found.pop()))
            became |= {n.outputs[0]: became[v] for n in readers}

    def now(v: Any) -> Any:
        return became.get(v, v)
    nodes = [n.mapped(now) for n in graph.nodes if not any(v in became for v in n.outputs)]
    made = {n.outputs[0]: n.args["x"] for n in nodes if n.op is grids.RELABEL}
    outputs = tuple(made.get(now(v), now(v)) for v in graph.outputs)
    return Build(graph.name, nodes=nodes).finish(tuple(map(now, graph.inputs)), outputs, graph.rim)
