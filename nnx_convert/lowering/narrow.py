"""Tensors of more axes than NNAPI's operations take: neighbours that an operation treats alike are seen as one.

NNAPI's RESHAPE reads four axes at most and writes any number. So a value of more axes is there for others to read,
and what computes with it reads the value of few axes it was made from. Where there is none, the host computes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..frozen import frozen
from ..graph import Build, Graph, Node, Value
from ..ops import ex, gather, host, host_math, norm, reduce as r, shape
from ..schema import OpDef, OpError
from ..symbols import same
from ..target import Target
from ..types import B8, I32, UNKNOWN, ChannelQuant, Shape, Tensor, known, product
from .axes import alike, as_written
from .elements import elementwise
from .fuse import REDUCTIONS
from .legalize import LEGALIZE, PREFER_EX
from .rewrite import Event, Refusal, Result, Rewriter, Rules

NARROW = Rules("narrow")
#: The axes that RESHAPE and most others take.
MOST = 4
DIFFER = "its operands have open sizes that may differ"
#: Axes of size 1 that stand for nothing go with any neighbour.
FREE = None
#: Those that give the same over some axes and then over the others.
STEPWISE = (r.REDUCE_MAX, r.REDUCE_MIN, r.REDUCE_ALL, r.REDUCE_ANY)
#: What is done to each axis by itself: a row of numbers for every axis.
Rows = list[tuple[int, ...]]


def narrow(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The graph with its operations on tensors of few axes, if it has others."""
    found = any(len(v.tensor.dims or ()) > MOST for n in graph.nodes for v in (*n.inputs, *n.outputs))
    return NARROW(graph, target, trace) if found else graph


def both(*ops: OpDef) -> list[str]:
    """The names of operations and of their twins on the host, which lowering may still bring to NNAPI."""
    return [n for op in ops for n in (op.name, f"host.{op.name}")]


def wide(*values: Value) -> bool:
    """Whether a value has too many axes, and all have elements and sizes that are known or have names."""
    dims = [v.tensor.dims for v in values]
    return all(d is not None and all(n is not UNKNOWN and (not known(n) or n > 0) for n in d) for d in dims) and any(
        len(d or ()) > MOST for d in dims)


def grouped(kinds: Iterable[object]) -> list[range]:
    """Runs of neighbouring axes of one kind."""
    found, last = list[range](), FREE
    for i, kind in enumerate(kinds):
        if found and (kind is FREE or last is FREE or kind == last):
            found[-1] = range(found[-1].start, i + 1)
        else:
            found.append(range(i, i + 1))
            last = FREE
        last = kind if last is FREE else last
    return found


def merged(sizes: Shape, groups: list[range]) -> Shape:
    """A shape with each group of axes as one."""
    return tuple(product(tuple(sizes[i] for i in group)) for group in groups)


def around(v: Value, axis: int) -> Shape:
    """The elements before an axis, along it and after it."""
    axis %= len(v.shape)
    return product(v.shape[:axis]), v.shape[axis], product(v.shape[axis + 1:])


def source(g: Rewriter, v: Value) -> Value | None:
    """A value of few axes with the same elements in the same order."""
    while len(v.shape) > MOST:
        made = g.producer(v)
        if made is None or made.op is not shape.RESHAPE:
            return None
        v = made.args["x"]
    return v


def view(g: Rewriter, v: Value, dims: Shape) -> Value | None:
    """A value in a shape of few axes, if it is to be had."""
    if v.tensor.data is not None and not isinstance(v.tensor.quant, ChannelQuant):
        return v if alike(v.shape, dims) else g.build.const(v.array.reshape(dims), v.type, v.tensor, v.name)
    found = source(g, v)
    return found and shaped(g, found, dims)


def shaped(g: Rewriter, v: Value, dims: Shape) -> Value:
    """A value in another shape; raises `OpError` where more than one of its sizes is open."""
    if alike(v.shape, dims):
        return v
    if sum(not known(n) for n in dims) > 1:
        raise OpError("RESHAPE", f"the shape {list(dims)} has more than one open size")
    return g(shape.RESHAPE, v, as_written(dims), out=Tensor(v.type, dims, v.tensor.quant))


def refused(g: Rewriter, node: Node, why: str) -> Refusal | None:
    """The reason, if the operation is one that the target does not take as it is."""
    return Refusal(why) if node.op.code is None or node.op.host or g.fault(node) else None


def mended(n: Node) -> bool:
    """Whether a later pass has a way for an operation that the target does not take."""
    if n.op is shape.RESHAPE:
        x = n.args["x"]
        return x.type == B8 or x.type == I32 and len(x.shape) == 1
    return n.op.name in PREFER_EX.by_op or n.op.name in LEGALIZE.by_op


def narrowed(g: Rewriter, node: Node, dims: Mapping[str, Sequence[Shape]], **changed: Any) -> Result:
    """The operation on tensors of few axes, its outputs in their own shapes again.

    `dims`: the shapes of the tensors of an argument; `changed`: other arguments.
    """
    args = dict(node.args) | changed
    for name, wanted in dims.items():
        many = isinstance(args[name], tuple)
        values: tuple[Value, ...] = args[name] if many else (args[name],)
        seen = [view(g, v, d) for v, d in zip(values, wanted, strict=True)]
        for v, found in zip(values, seen, strict=True):
            if found is None:
                return refused(g, node, f"{v.name} has {len(v.shape)} axes, RESHAPE takes {MOST}")
        args[name] = tuple(seen) if many else seen[0]
    outs = [Tensor(v.type, None, v.tensor.quant) for v in node.outputs]
    made = g.add(node.op, outs=outs, **args)
    results = [shaped(g, y, v.shape) for y, v in zip(made, node.outputs, strict=True)]
    fault = next((f for n in g.build.nodes[g.since:] if n.op.code is not None and not mended(n) and (f := g.fault(n))),
                 "")
    return refused(g, node, fault) if fault else results


def too_many(g: Rewriter, node: Node, groups: list[range]) -> Refusal | None:
    """The reason why merging does not help."""
    return refused(g, node, f"{len(groups)} runs of axes are treated differently, NNAPI takes {MOST} axes")


@NARROW.on("*")
def elements(g: Rewriter, node: Node) -> Result:
    """Axes along which the same operands are repeated are one."""
    if not by_elements(node.op):
        return None
    values = {n: v for n, v in node.args.items() if isinstance(v, Value)}
    out = node.outputs[0]
    if not wide(out, *values.values()) or node.op is host.WHERE and len(values["cond"].shape) == 1:
        return None
    full = {n: (1,) * (len(out.shape) - len(v.shape)) + v.shape for n, v in values.items()}
    kinds = [FREE if same(n, 1) else tuple(same(s[i], 1) for s in full.values()) for i, n in enumerate(out.shape)]
    groups = grouped(kinds)
    if len(groups) > MOST:
        return repeated(g, node, values) if ready(g, *values.values()) else too_many(g, node, groups)
    if not settled(out.shape, *full.values()):
        return refused(g, node, DIFFER)
    if all(alike(v.shape, out.shape) for v in values.values()):
        found = next((s for v in values.values() if not v.constant and (s := source(g, v))), None)
        dims = found.shape if found else (product(out.shape),)
        return narrowed(g, node, {n: [dims] for n in values})
    return narrowed(g, node, {n: [without_ones(merged(s, groups))] for n, s in full.items()})


def by_elements(op: OpDef) -> bool:
    """Whether an operation treats every element alike, and has a code of NNAPI's or is expanded to what has."""
    if op in (host_math.FAKE_QUANT, host.WHERE):
        return True
    plain = op.plain
    return elementwise(plain) and not plain.host and not plain.ex and plain is not host.WHERE


def settled(out: Shape, *shapes: Shape) -> bool:
    """Whether it is known along which axes operands are repeated."""
    return all(same(m, 1) or same(m, n) for sizes in shapes for m, n in zip(sizes, out, strict=True))


def ready(g: Rewriter, *values: Value) -> bool:
    """Whether all values are to be had with few axes."""
    return all(v.tensor.data is not None or source(g, v) for v in values)


def repeated(g: Rewriter, node: Node, values: dict[str, Value]) -> Result:
    """The operation on operands of one shape: what is not broadcast needs no axes."""
    out = node.outputs[0]
    if any(not alike(v.shape, out.shape) and g.target.level < shape.TILE.types.get(v.type, g.target.level + 1)
           for v in values.values()):
        return refused(g, node, "its operands broadcast along too many axes, and there is no TILE to repeat them")
    full = {n: v if alike(v.shape, out.shape) else g(host.BROADCAST_TO, v, out.shape) for n, v in values.items()}
    return g(node.op, out=Tensor(out.type, None, out.tensor.quant), **dict(node.args) | full)


def without_ones(dims: Shape) -> Shape:
    """A shape less its leading axes of size 1, which broadcasting puts back."""
    first = next((i for i, n in enumerate(dims) if not same(n, 1)), len(dims) - 1)
    return dims[first:]


@NARROW.on(shape.RESHAPE, shape.EXPAND_DIMS, shape.SQUEEZE)
def another_shape(g: Rewriter, node: Node) -> Result:
    """Of the value that has few axes; RESHAPE of such a one is what the others start from."""
    x, out = node.args["x"], node.outputs[0]
    if not wide(x, out) or node.op is shape.RESHAPE and len(x.shape) <= MOST:
        return None
    found = source(g, x)
    if found is None:
        return refused(g, node, f"{x.name} has {len(x.shape)} axes, RESHAPE takes {MOST}")
    made = shaped(g, found, out.shape)
    fault = next((f for n in g.build.nodes[g.since:] if not mended(n) and (f := g.fault(n))), "")
    return refused(g, node, fault) if fault else made


@NARROW.on(*both(*REDUCTIONS), ex.REDUCE_MAX_EX, ex.REDUCE_MIN_EX, ex.REDUCE_SUM_EX)
def reductions(g: Rewriter, node: Node) -> Result:
    """Neighbours that are both reduced, or both kept, are one."""
    x, axes = node.args["x"], node.args["axes"].tensor
    if not wide(x) or axes.data is None:
        return None
    gone = {a % len(x.shape) for a in axes.ints()}
    groups = grouped(i in gone if not same(n, 1) or i in gone else FREE for i, n in enumerate(x.shape))
    if len(groups) > MOST and node.op in STEPWISE and ready(g, x):
        first = next([a for a in group if a in gone] for group in groups if gone.intersection(group))
        part = g(node.op, x, g.build.const(first, I32), keep=True)
        return g(node.op, part, g.build.const(sorted(gone.difference(first)), I32), keep=node.args["keep"])
    if len(groups) > MOST:
        return too_many(g, node, groups)
    keep = {"keep": type(node.args["keep"])(0)} if "keep" in node.args else {}
    return narrowed(g, node, {"x": [merged(x.shape, groups)]},
                    axes=g.build.const([j for j, group in enumerate(groups) if gone.intersection(group)], I32), **keep)


@NARROW.on(*both(norm.SOFTMAX, norm.LOG_SOFTMAX, norm.L2_NORMALIZATION))
def along_an_axis(g: Rewriter, node: Node) -> Result:
    x = node.args["x"]
    if not wide(x):
        return None
    head, n, tail = around(x, node.args.get("axis", -1))
    return narrowed(g, node, {"x": [(head, n)]}, axis=-1) if same(tail, 1) else \
        narrowed(g, node, {"x": [(head, n, tail)]}, axis=1)


@NARROW.on(shape.SPLIT, ex.SPLIT_EX)
def split(g: Rewriter, node: Node) -> Result:
    x = node.args["x"]
    return narrowed(g, node, {"x": [around(x, node.args["axis"])]}, axis=1) if wide(x) else None


@NARROW.on(*both(shape.CONCATENATION))
def concatenation(g: Rewriter, node: Node) -> Result:
    xs, axis = node.args["xs"], node.args["axis"]
    return narrowed(g, node, {"xs": [around(x, axis) for x in xs]}, axis=1) if wide(*xs) else None


@NARROW.on(ex.PACK_EX)
def pack(g: Rewriter, node: Node) -> Result:
    """The new axis has a neighbour before it and one after it."""
    xs, out = node.args["xs"], node.outputs[0]
    if not wide(out):
        return None
    head, _, tail = around(out, node.args["axis"])
    return narrowed(g, node, {"xs": [(head, tail)] * len(xs)}, axis=1)


@NARROW.on(ex.UNPACK_EX)
def unpack(g: Rewriter, node: Node) -> Result:
    x = node.args["x"]
    return narrowed(g, node, {"x": [around(x, node.args["axis"])]}, axis=1) if wide(x) else None


@NARROW.on(gather.GATHER, ex.GATHER_EX)
def picked(g: Rewriter, node: Node) -> Result:
    x, indices = node.args["x"], node.args["indices"]
    if not wide(x, node.outputs[0]) or not wide(x) and len(indices.shape) > 1:
        return None
    flat = (product(indices.shape),)
    return narrowed(g, node, {"x": [around(x, node.args["axis"])], "indices": [flat]}, axis=1)


@NARROW.on(shape.TRANSPOSE)
def transpose(g: Rewriter, node: Node) -> Result:
    """Neighbours that stay neighbours are one. Are there still too many, one of them moves at a time."""
    x, perm = node.args["x"], node.args["perm"]
    if not wide(x) or perm is None or perm.tensor.data is None:
        return None
    sizes, order = joined(x.shape, perm.tensor.ints())
    if len(order) <= MOST:
        return narrowed(g, node, {"x": [sizes]}, perm=g.build.const(order, I32))
    y = view(g, x, (product(x.shape),))
    if y is None:
        return refused(g, node, f"{x.name} has {len(x.shape)} axes, RESHAPE takes {MOST}")
    while len(order) > MOST:
        at = next(i for i, a in enumerate(order) if a != i)
        blocks = product(sizes[:at]), product(sizes[at:order[at]]), sizes[order[at]], product(sizes[order[at] + 1:])
        y = g(shape.TRANSPOSE, shaped(g, y, blocks), [0, 2, 1, 3])
        now = [*range(at), order[at], *(a for a in range(at, len(order)) if a != order[at])]
        sizes, order = joined(tuple(sizes[a] for a in now), tuple(now.index(a) for a in order))
    return g.legal(shaped(g, g(shape.TRANSPOSE, shaped(g, y, sizes), list(order)), node.outputs[0].shape))


def joined(sizes: Shape, perm: Sequence[int]) -> tuple[Shape, tuple[int, ...]]:
    """A transposition of as few axes as say the same."""
    order = [a for a in perm if not same(sizes[a], 1)] or [0]
    runs = list[list[int]]()
    for a in order:
        if runs and all(same(sizes[b], 1) for b in range(runs[-1][-1] + 1, a)) and a > runs[-1][-1]:
            runs[-1].append(a)
        else:
            runs.append([a])
    inner = sorted(runs)
    return tuple(product(tuple(sizes[a] for a in run)) for run in inner), tuple(inner.index(run) for run in runs)


@NARROW.on(host.MATMUL)
def matmul(g: Rewriter, node: Node) -> Result:
    """The axes before the matrices, as far as they broadcast alike."""
    x, y, out = node.args["x"], node.args["y"], node.outputs[0]
    if not wide(x, y, out):
        return None
    count = len(out.shape) - 2
    xs, ys = ((1,) * (len(out.shape) - len(v.shape)) + v.shape[:-2] for v in (x, y))
    if not settled(out.shape[:count], xs, ys):
        return refused(g, node, DIFFER)
    groups = grouped(FREE if same(n, 1) else (same(xs[i], 1), same(ys[i], 1)) for i, n in enumerate(out.shape[:count]))
    if len(groups) > MOST - 2:
        return too_many(g, node, groups)
    return narrowed(g, node, {"x": [(*merged(xs, groups), *x.shape[-2:])],
                              "y": [(*merged(ys, groups), *y.shape[-2:])]})


@frozen
class Axiswise:
    """An operation that is a row of numbers for each axis."""

    rows: Callable[[Node], Rows]
    idle: Callable[[int], tuple[int, ...]]       # that of an axis of this size which stays as it is
    args: Callable[[Rows], dict[str, Any]]


def pads(node: Node) -> Rows:
    """Before and after."""
    amounts = node.args["paddings"].tensor.ints()
    return list(zip(amounts[::2], amounts[1::2], strict=True))


def slices(node: Node) -> Rows:
    """Where each begins, and its size."""
    begin, size = (node.args[n].tensor.ints() for n in ("begin", "size"))
    return [(b, n - b if s < 0 else s) for n, b, s in zip(node.args["x"].shape, begin, size, strict=True)]


def strides(node: Node) -> Rows:
    """Begin, end and stride, as a range has them; an open size is the end of an axis that stays as it is."""
    a = node.args
    begin, end, step = (a[n].tensor.ints() for n in ("begin", "end", "strides"))
    cuts = [slice(None if a["begin_mask"] >> i & 1 else b, None if a["end_mask"] >> i & 1 else f, s)
            for i, (b, f, s) in enumerate(zip(begin, end, step, strict=True))]
    return [(0, n, 1) if not known(n) and cut in shape.WHOLE else cut.indices(n)
            for cut, n in zip(cuts, a["x"].shape, strict=True)]


def strided(rows: Rows) -> dict[str, Any]:
    """Rows as arguments of STRIDED_SLICE; a range that goes down to the first element, or is all, has an open end."""
    begin, end, step = zip(*rows, strict=True)
    return {"begin": begin, "end": tuple(n if known(n) else 0 for n in end), "strides": step, "begin_mask": 0,
            "shrink_mask": 0, "end_mask": sum(1 << i for i, n in enumerate(end) if not known(n) or n < 0)}


PADS = Axiswise(pads, lambda n: (0, 0), lambda rows: {"paddings": [list(row) for row in rows]})
AXISWISE: dict[str, Axiswise] = {
    **dict.fromkeys((shape.PAD.name, shape.PAD_V2.name, shape.MIRROR_PAD.name), PADS),
    shape.TILE.name: Axiswise(lambda node: [(m,) for m in node.args["multiples"].tensor.ints()], lambda n: (1,),
                              lambda rows: {"multiples": [m for m, in rows]}),
    shape.SLICE.name: Axiswise(slices, lambda n: (0, n), lambda rows: {
        "begin": [b for b, _ in rows], "size": [n if known(n) else -1 for _, n in rows]}),
    shape.STRIDED_SLICE.name: Axiswise(strides, lambda n: (0, n, 1), strided),
}


@NARROW.on(*AXISWISE)
def axis_by_axis(g: Rewriter, node: Node) -> Result:
    """Axes that stay as they are go together; of too many others, half are dealt with first."""
    x, kind = node.args["x"], AXISWISE[node.op.name]
    if not wide(x) or not wide(node.outputs[0], x) or any(
            v.tensor.data is None for n, v in node.args.items() if isinstance(v, Value) and n != "x"):
        return None
    rows = kind.rows(node)
    busy = [row != kind.idle(n) for row, n in zip(rows, x.shape, strict=True)]
    groups = grouped(i if b else FREE if same(n, 1) else -1 for i, (b, n) in enumerate(zip(busy, x.shape, strict=True)))
    if len(groups) <= MOST:
        sizes = merged(x.shape, groups)
        fewer = [next((rows[i] for i in group if busy[i]), kind.idle(n))
                 for group, n in zip(groups, sizes, strict=True)]
        return narrowed(g, node, {"x": [sizes]}, **lifted(g, kind.args(fewer)))
    if source(g, x) is None:
        return refused(g, node, f"{x.name} has {len(x.shape)} axes, RESHAPE takes {MOST}")
    first = [i for i, b in enumerate(busy) if b][:sum(busy) // 2]
    now = [row if i in first else kind.idle(n) for i, (row, n) in enumerate(zip(rows, x.shape, strict=True))]
    like = Tensor(x.type, None, x.tensor.quant)
    y = g(node.op, out=like, **dict(node.args) | lifted(g, kind.args(now)))
    rest = [kind.idle(n) if i in first else row for i, (row, n) in enumerate(zip(rows, y.shape, strict=True))]
    y = g(node.op, out=like, **dict(node.args) | {"x": y} | lifted(g, kind.args(rest)))
    return shaped(g, y, node.outputs[0].shape)


def lifted(g: Rewriter, args: dict[str, Any]) -> dict[str, Any]:
    """Lists as constants."""
    return {n: g.build.const(a, I32) if isinstance(a, list | tuple) else a for n, a in args.items()}


@NARROW.on(host.BROADCAST_TO)
def broadcast(g: Rewriter, node: Node) -> Result:
    """Axes that are all repeated, or all not, are one."""
    x, out = node.args["x"], node.outputs[0]
    if not wide(out, x):
        return None
    full = (1,) * (len(out.shape) - len(x.shape)) + x.shape
    if not settled(out.shape, full):
        return refused(g, node, DIFFER)
    groups = grouped(FREE if same(n, 1) else same(m, n) for m, n in zip(full, out.shape, strict=True))
    if len(groups) > MOST:
        return too_many(g, node, groups)
    return narrowed(g, node, {"x": [merged(full, groups)]}, shape=g.build.const(merged(out.shape, groups), I32))


def inputs_of_few_axes(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """Inputs of too many axes enter with fewer, where that spares the host something; the ports stay as they are.

    Not for subgraphs, whose callers know their inputs.
    """
    build, became = Build(graph.name), dict[Value, Value]()
    ports = graph.rim.inputs
    for v, port in zip(graph.inputs, ports, strict=False):
        fixed = wide(v) and all(map(known, v.shape))          # the rim brings arrays to sizes that are known
        if port.state or not fixed or not any(spared(n, target) for n in graph.nodes if v in n.inputs):
            continue
        dims = (product(v.shape),) if v.type == I32 else (product(v.shape[:-3]), *v.shape[-3:])
        entry = Value(v.name, replace(v.tensor, dims=dims))
        became[v] = build(shape.RESHAPE, entry, v.shape, out=v.tensor)
        made = build.nodes[-1]
        if target.fault(made.op, made.verdict) and not mended(made):
            build.nodes.pop()
            del became[v]
    if not became:
        return graph
    entries = {v: n.args["x"] for v, n in zip(became, build.nodes, strict=True)}
    build.nodes += [n.mapped(lambda v: became.get(v, v)) for n in graph.nodes]
    return build.finish(tuple(entries.get(v, v) for v in graph.inputs),
                        tuple(became.get(v, v) for v in graph.outputs), graph.rim)


def spared(node: Node, target: Target) -> bool:
    """Whether a node is one that this pass may bring to the target."""
    mine = node.op.name in NARROW.by_op or by_elements(node.op)
    return mine and (node.op.code is None or node.op.host or bool(target.fault(node.op, node.verdict)))
