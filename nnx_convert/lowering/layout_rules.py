"""Per operation: which orders of axes it takes and gives, and how its arguments read in them.

A rule answers: if the leading tensor came in the order p, how would the node run? Rules are total: an order that
cannot be run snaps to one that can, and an operation without a rule keeps the source's order, which is always right.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from ..frozen import frozen
from ..graph import Node, Value
from ..kinds import FL6
from ..schema import OPS, OpDef
from ..target import Target
from ..types import F32, known
from .axes import Perm, alike, carried, compose, dropped, ident, in_memory, inverse, ranked
from .elements import elementwise

NHWC: Perm = (0, 2, 3, 1)
#: An argument and the place in it; -1 is the argument itself.
Slot = tuple[str, int]
X: Slot = ("x", -1)


@frozen
class Picked:
    """The elements, or rows, of an argument in another order."""

    order: Perm


@frozen(eq=False)
class Plan:
    """One way to run a node: orders by slot and of the outputs, and the arguments that change.

    What is not among `ins` keeps the source's order. `named`: nothing runs, the output is x with its axes renamed.
    `picked`: the elements of the output are picked in this order after it.
    """

    ins: Mapping[Slot, Perm]
    outs: tuple[Perm, ...]
    args: Mapping[str, Any] = field(default_factory=dict)
    named: bool = False
    picked: Perm = ()


#: (node, order asked for, orders its first output is wanted in) -> ways to run it; None where it keeps the source's.
Rule = Callable[[Node, Perm, Sequence[Perm]], "Iterable[Plan] | Plan | None"]


def slots(node: Node) -> Iterator[tuple[Slot, Value]]:
    """The values a node reads, by the place they stand in."""
    for name, arg in node.args.items():
        if isinstance(arg, Value):
            yield (name, -1), arg
        elif isinstance(arg, tuple):
            yield from (((name, i), v) for i, v in enumerate(arg) if isinstance(v, Value))


def source_order(node: Node) -> Plan:
    """The way of the source: always right."""
    return Plan({}, tuple(ident(len(v.tensor.dims or ())) for v in node.outputs))


def plans(node: Node, p: Perm, wanted: Sequence[Perm], target: Target) -> Iterable[Plan]:
    """The ways to run a node whose leading tensor comes as p."""
    rule = rule_of(node.op, target)
    if rule is None or not all(map(ranked, (*node.inputs, *node.outputs))):
        return [source_order(node)]
    found = rule(node, p, wanted)
    return [source_order(node)] if found is None else [found] if isinstance(found, Plan) else found


def leading(node: Node) -> int:
    """The number of axes of the tensor a rule is asked about."""
    if elementwise(node.op):
        return len(node.outputs[0].tensor.dims or ())
    x = next((v for (name, _), v in slots(node) if name in LEADERS), None)
    return len((x or node.outputs[0]).tensor.dims or ())


#: Arguments that lead.
LEADERS = ("x", "xs", "indices", "heatmap", "scores")


def axis_of(node: Node, rank: int) -> int:
    """The axis an operation works along; the last where it says none."""
    axis = node.args.get("axis")
    return (axis if axis is not None else -1) % max(rank, 1)


def axis_at(node: Node, p: Perm, axis: int) -> int:
    """Where an axis stands; -1 where that is the last and what the argument says when it is left out."""
    at = p.index(axis)
    default = next(q.default for q in node.form.params if q.name == "axis")
    return -1 if at == len(p) - 1 and default == -1 else at


def numbers(node: Node, name: str) -> tuple[int, ...] | None:
    """The elements of a constant index argument."""
    v = node.args.get(name)
    return v.tensor.ints() if isinstance(v, Value) and v.tensor.data is not None else None


# ---- one order for all

def pointwise(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """Any order, the same for all; constants of fewer axes follow, single numbers need not."""
    ins = dict[Slot, Perm]()
    for slot, v in slots(node):
        if len(v.shape) == len(p):
            ins[slot] = p
        elif all(known(n) and n == 1 for n in v.shape):
            continue
        elif v.tensor.data is not None and len(v.shape) < len(p) and node.op.name != "WHERE":
            ins[slot] = p
        else:
            return None
    return Plan(ins, (p,)) if ins else None


def along(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """Any order, the same for all tensors; the axis is renamed."""
    tensors = {s: v for s, v in slots(node) if len(v.shape) == len(p)}
    if any(len(v.shape) != len(p) for v in node.outputs):
        return None
    return Plan(dict.fromkeys(tensors, p), (p,) * len(node.outputs),
                {"axis": axis_at(node, p, axis_of(node, len(p)))})


def along_the_last(node: Node, p: Perm, wanted: Sequence[Perm]) -> Plan | None:
    """The same where only the last axis in memory can be worked along."""
    axis = axis_of(node, len(p))
    return along(node, (*(a for a in p if a != axis), axis), wanted)


def searched(node: Node, p: Perm, _: Sequence[Perm]) -> Plan:
    """The last axis stays the last."""
    last = len(p) - 1
    p = (*(a for a in p if a != last), last)
    return Plan({X: p}, (p,) * len(node.outputs))


def listed(name: str) -> Rule:
    """Any order; an argument lists axes, to which others have numbers in the same order."""
    def rule(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
        axes = numbers(node, name)
        return None if axes is None or len(node.outputs[0].shape) != len(p) else Plan(
            {X: p}, (p,), {name: [p.index(a % len(p)) for a in axes]})
    return rule


def measured(node: Node, p: Perm, _: Sequence[Perm]) -> Plan:
    """The sizes of something stored in any order."""
    return Plan({X: p}, ((0,),), picked=() if p == ident(len(p)) else inverse(p))


def each(*names: str) -> Rule:
    """Arguments with an element, or a row, for each axis."""
    def rule(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
        if len(node.outputs[0].shape) != len(p) or any(
                not isinstance(node.args[n], Value) or not alike(node.args[n].shape[:1], (len(p),)) for n in names):
            return None
        return Plan({X: p}, (p,), {n: Picked(p) for n in names})
    return rule


def strided(node: Node, p: Perm, _: Sequence[Perm]) -> Plan:
    """Masks have a bit for each axis; shrunk ones are gone."""
    gone = [a for a in range(len(p)) if node.args["shrink_mask"] >> a & 1]
    masks = {n: sum((node.args[n] >> a & 1) << i for i, a in enumerate(p))
             for n in ("begin_mask", "end_mask", "shrink_mask")}
    return Plan({X: p}, (dropped(p, gone) or (0,),), masks | {n: Picked(p) for n in ("begin", "end", "strides")})


# ---- axes that go or come

def folded(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """A reduction over axes, which stay with size 1 or go."""
    axes = numbers(node, "axes")
    if axes is None:
        return None
    gone = {a % len(p) for a in axes}
    out = p if node.args.get("keep", 0) else dropped(p, sorted(gone)) or (0,)
    return Plan({X: p}, (out,), {"axes": sorted(p.index(a) for a in gone)})


def one_dropped(node: Node, p: Perm, _: Sequence[Perm]) -> Plan:
    """An axis that goes: the place of the largest along it, or its parts."""
    axis = axis_of(node, len(p))
    return Plan({X: p}, (dropped(p, [axis]) or (0,),) * len(node.outputs), {"axis": p.index(axis)})


def squeezed(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """Axes of size 1 that go; where it says none, all do."""
    dims = numbers(node, "dims")
    if dims is None:
        return None
    gone = {d % len(p) for d in dims}
    return Plan({X: p}, (dropped(p, sorted(gone)) or (0,),), {"dims": sorted(p.index(a) for a in gone)})


def inserted(node: Node, p: Perm, wanted: Sequence[Perm]) -> Iterator[Plan]:
    """A new axis, which stands before the one it precedes in the source, or where it is wanted."""
    axis = axis_of(node, len(p) + 1)
    rest = [a + (a >= axis) for a in p]
    at = rest.index(axis + 1) if axis < len(p) else len(p)
    places = dict.fromkeys([at, *(q.index(axis) for q in wanted if [a for a in q if a != axis] == rest)])
    for at in places:
        yield Plan({s: p for s, _ in slots(node)}, ((*rest[:at], axis, *rest[at:]),), {"axis": at})


def gathered(node: Node, p: Perm, _: Sequence[Perm]) -> Iterator[Plan]:
    """The index axes take the place of the gathered one, in their own order or turned: small beside the rows."""
    axis, k = axis_of(node, len(p)), len(node.args["indices"].shape)
    for order in (ident(k), ident(k)[::-1])[:max(1, min(k, 2))]:
        out = [j for a in p for j in ([axis + t for t in order] if a == axis else [a + (k - 1) * (a > axis)])]
        yield Plan({X: p, ("indices", -1): order}, (tuple(out),), {"axis": p.index(axis)})


# ---- images, products, sequences

def image(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """Channels last, the filter as it is: its order is the operation's own."""
    if node.args.get("nchw") is not True:
        return None
    pictures = [q.name for q in node.op.plain.params if q.kind.is_key and any(m.rank == 4 for m in q.limits)]
    ins = {(name, -1): NHWC for name in pictures if isinstance(node.args.get(name), Value)}
    if not ins:
        return None
    return Plan(ins, tuple(NHWC if len(v.shape) == 4 else ident(len(v.shape)) for v in node.outputs), {"nchw": False})


def linear(node: Node, p: Perm, wanted: Sequence[Perm]) -> Iterator[Plan]:
    """Rows in any order; the axes summed over in any that stays a tail, the new ones in any: the weights follow."""
    rank, units = len(p), len(node.args["b"].shape)
    lead = rank - node.args["flat"]
    rows = tuple(a for a in p if a < lead)
    apart = len(node.args["w"].shape) == units + node.args["flat"]
    tail = tuple(a for a in p if a >= lead) if apart else ident(rank)[lead:]
    orders = dict.fromkeys([ident(units), *(tuple(a - lead for a in q if a >= lead) for q in wanted)])
    for order in orders:
        within = (a - lead + units for a in tail) if apart else range(units, len(node.args["w"].shape))
        yield Plan({X: (*rows, *tail), ("w", -1): (*order, *within), ("b", -1): order},
                   ((*rows, *(lead + a for a in order)),))


def matmul(node: Node, p: Perm, _: Sequence[Perm]) -> Iterator[Plan]:
    """The axes of the batch in any order, ahead of the matrices; a turned matrix is a flag."""
    turned = p.index(len(p) - 1) < p.index(len(p) - 2)
    yield from (multiplied(node, p, turned, flip) for flip in (False, True))


def matmul_by_rows(node: Node, p: Perm, _: Sequence[Perm]) -> Iterator[Plan]:
    """The same where each matrix becomes a FULLY_CONNECTED, which takes x as it is and y turned."""
    if node.args["x"].type != F32 or not all(known(n) for v in node.inputs for n in v.shape):
        yield from matmul(node, p, _)
    else:
        yield multiplied(node, p, node.args["adj_x"], not node.args["adj_y"])


def multiplied(node: Node, p: Perm, turned: bool, flip: bool) -> Plan:
    """A product in a batch ordered as p, the matrices of x `turned`, those of y by `flip`."""
    x, y, out = (len(v.shape) for v in (node.args["x"], node.args["y"], node.outputs[0]))
    batch = tuple(a for a in p if a < x - 2) if x == y == out else ident(max(x, y, out) - 2)

    def matrix(rank: int, flipped: bool) -> Perm:
        own = batch if x == y == out else ident(rank - 2)
        return (*own, rank - 1, rank - 2) if flipped else (*own, rank - 2, rank - 1)
    return Plan({X: matrix(x, turned), ("y", -1): matrix(y, flip)}, (matrix(out, False),),
                {"adj_x": node.args["adj_x"] != turned, "adj_y": node.args["adj_y"] != flip})


def sequence(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """Steps first or batches first is a flag."""
    if p not in ((0, 1, 2), (1, 0, 2)):
        return None
    rest = tuple(ident(len(v.shape)) for v in node.outputs[1:])
    major = node.args["time_major"]
    flag = type(major)(not major) if p == (1, 0, 2) else major
    return Plan({X: p}, (p, *rest), {"time_major": flag})


# ---- what moves nothing

def transposed(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """The same bytes under other names."""
    perm = permutation(node)
    return None if perm is None else Plan({X: p}, (compose(inverse(perm), p),), named=True)


def permutation(node: Node) -> Perm | None:
    """What a TRANSPOSE does, where it is known."""
    return (1, 0) if node.args["perm"] is None else numbers(node, "perm")


def reshaped(node: Node, p: Perm, _: Sequence[Perm]) -> Plan | None:
    """In the order in which it moves nothing, if there is one."""
    shape = node.args["shape"]
    if not isinstance(shape, Value):
        return None
    out = carried(node.args["x"].shape, node.outputs[0].shape, p)
    return None if out is None else Plan({X: p}, (out,), {"shape": Picked(out)})


ALONG = ("CONCATENATION", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION", "SPLIT",
         "SPLIT_EX", "SPLIT_BY", "CHUNK", "CHANNEL_SHUFFLE", "CUMSUM", "GATHER_ELEMENTS", "SCATTER_ELEMENTS")
FOLDS = ("MEAN", "REDUCE_SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX_EX",
         "REDUCE_MIN_EX", "REDUCE_SUM_EX")
RULES: dict[str, Rule] = {
    **dict.fromkeys(ALONG, along),
    **dict.fromkeys(FOLDS, folded),
    **dict.fromkeys(("PAD", "PAD_V2", "MIRROR_PAD"), each("paddings")),
    "SLICE": each("begin", "size"), "TILE": each("multiples"), "BROADCAST_TO": each("shape"),
    "STRIDED_SLICE": strided, "REVERSE": listed("axis"), "CUMULATE": listed("axis"), "SHAPE": measured,
    **dict.fromkeys(("CUT", "PAD_BY", "INTERPOLATE"), listed("axes")),
    **dict.fromkeys(("TOPK_V2", "TOPK_FIRST", "TOPK_V2_EX", "TOPK"), searched),
    **dict.fromkeys(("ARGMAX", "ARGMIN", "ARGMAX_LAST", "ARGMIN_LAST", "ARGMAX_EX", "UNPACK_EX"), one_dropped),
    **dict.fromkeys(("EXPAND_DIMS", "PACK", "PACK_EX", "ONE_HOT_EX"), inserted),
    "SQUEEZE": squeezed, "GATHER": gathered, "GATHER_EX": gathered,
    "LINEAR": linear, "MATMUL": matmul, "BATCH_MATMUL": matmul,
    **dict.fromkeys(("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "SEQUENCE_RNN", "HYBRID_LSTM"),
                    sequence),
    "TRANSPOSE": transposed, "RESHAPE": reshaped,
}
#: Those that say their axis from level 29 on; before it is the last.
LATE_AXIS = ("SOFTMAX", "L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION")


def rule_of(op: OpDef, target: Target) -> Rule | None:
    """The rule of an operation, that of its own where it is the host's twin."""
    if not op.host and op.name in LATE_AXIS and target.level < 29:
        return along_the_last
    return matmul_by_rows if op.name == "MATMUL" and target.level < FL6 else _rule(op.plain.name)


@cache
def _rule(name: str) -> Rule | None:
    if name in RULES:
        return RULES[name]
    op = OPS.get(name)
    if op is None:
        return None
    return pointwise if elementwise(op) else image if "nchw" in op.forms[0].names else None


#: By rule, the order to ask the leading tensor for; where there is none, it is that of the output.
PULLS: dict[Rule, Callable[[Node, Perm], Perm | None]] = {
    transposed: lambda node, q: (perm := permutation(node)) and compose(perm, q),
    reshaped: lambda node, q: carried(node.outputs[0].shape, node.args["x"].shape, q),
    measured: lambda node, q: None,
    linear: lambda node, q: rows_first(leading(node) - node.args["flat"], leading(node), q),
    inserted: lambda node, q: dropped(q, [axis_of(node, leading(node) + 1)]),
}


def rows_first(lead: int, rank: int, q: Perm) -> Perm:
    """The rows as an order has them, then what is summed over."""
    return (*(a for a in q if a < lead), *range(lead, rank))


def pulled(node: Node, q: Perm) -> Perm | None:
    """The order to ask the leading tensor for so that the output comes as q; q itself for most."""
    rule = _rule(node.op.plain.name)
    if rule in PULLS:
        return PULLS[rule](node, q)
    return q if len(q) == leading(node) else None


def asks(node: Node) -> bool:
    """Whether what its rule says depends on the orders its output is wanted in."""
    return _rule(node.op.plain.name) in (linear, inserted)


def memory(v: Value, p: Perm) -> Perm:
    """What an order of a value means in memory."""
    return in_memory(v.shape, p) if ranked(v) and len(p) == len(v.shape) else p
