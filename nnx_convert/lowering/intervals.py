"""What integers a value can hold: an interval for every value of an integer type, from constants, sizes and types on.

An entry of INTERVALS is `(node, of) -> interval`: what all outputs of the node lie in, computed without overflow;
`of(name)` is what an argument lies in. An operation without an entry may give all that its type holds.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..graph import Graph, Node, Value
from ..ops import (
    casts, convert, cutting, elementwise as e, ex, folds, functions, gather, host, host_arrays as h, host_math, image,
    indexing, reduce as r, shape)
from ..schema import OpDef
from ..symbols import at_least
from ..types import B8, BYTES, I16, I32, I64, Q16A, Shape, Type, Undecided, known

Interval = tuple[int, int]
Of = Callable[[str], Interval]
#: An operand has fewer than 2 ** 32 bytes, so as many numbers of 32 bits, or sizes of an axis.
MOST_NUMBERS = 1 << 30
#: The types whose elements are integers, quantised ones by what is stored.
INTEGERS = (I64, I32, I16, B8, Q16A, *BYTES)
INTERVALS: dict[str, Callable[[Node, Of], Interval]] = {}


def all_of(type: Type) -> Interval:
    """What a type holds."""
    if type == B8:
        return 0, 1
    limits = np.iinfo(type.dtype)
    return int(limits.min), int(limits.max)


def hull(intervals: Iterable[Interval]) -> Interval:
    """The least interval around some; 0 of none."""
    lows, highs = zip(*intervals, strict=True) if (intervals := list(intervals)) else ((0,), (0,))
    return min(lows), max(highs)


def within(inner: Interval, outer: Interval) -> bool:
    """Whether an interval lies in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def original(op: OpDef) -> OpDef:
    """The operation that a twin is another version of."""
    *_, found = op.versions
    return found


def intervals(graph: Graph, given: Mapping[Value, Interval]) -> dict[Value, Interval]:
    """The interval of every input, constant and result of an integer type; `given` for inputs where more is known."""
    found = {v: all_of(v.type) for v in graph.inputs if v.type in INTEGERS} | dict(given)
    for v in (v for n in graph.nodes for v in (*n.inputs, *graph.outputs) if v.constant and v not in found):
        if v.type in INTEGERS:
            found[v] = _held(v)
    for n in graph.nodes:
        wanted = [v for v in n.outputs if v.type in INTEGERS]
        if wanted:
            made = result(n, found)
            found.update((v, made if within(made, all_of(v.type)) else all_of(v.type)) for v in wanted)
    return found


def result(node: Node, found: Mapping[Value, Interval]) -> Interval:
    """What a node's outputs lie in when nothing overflows; what a type holds where that is not known."""
    def of(name: str) -> Interval:
        arg = node.args[name]
        items = arg if isinstance(arg, tuple) else (arg,)
        return hull(found[v] if isinstance(v, Value) else (int(v), int(v)) for v in items if v is not None)
    rule = INTERVALS.get(original(node.op).name)
    try:
        return all_of(I64) if rule is None else rule(node, of)
    except (KeyError, ValueError, TypeError, Undecided):         # an argument that is no integer, an open rank
        return all_of(I64)


def _held(v: Value) -> Interval:
    data = v.tensor.data
    if data is None or v.type not in (I64, I32):
        return all_of(v.type)
    return (int(data.min()), int(data.max())) if data.size else (0, 0)


def _on(*ops: OpDef) -> Callable[[Callable[[Node, Of], Interval]], Callable[[Node, Of], Interval]]:
    def register(rule: Callable[[Node, Of], Interval]) -> Callable[[Node, Of], Interval]:
        INTERVALS.update((op.name, rule) for op in ops)
        return rule
    return register


def _moved(*names: str, zero: bool = False) -> Callable[[Node, Of], Interval]:
    """The elements of some arguments, and zeros where these are put in."""
    return lambda node, of: hull([*map(of, names), *[(0, 0)] * zero])


_on(shape.RESHAPE, shape.TRANSPOSE, shape.SQUEEZE, shape.EXPAND_DIMS, shape.SPLIT, shape.SLICE, shape.STRIDED_SLICE,
    shape.MIRROR_PAD, shape.TILE, shape.REVERSE, shape.CHANNEL_SHUFFLE, gather.GATHER, host.GATHER_BATCHED,
    host.GATHER_ND, indexing.GATHER_ELEMENTS, indexing.GATHER_ND_BATCHED, indexing.COMPRESS, host.BROADCAST_TO,
    h.REVERSE_SEQUENCE, ex.UNPACK_EX, cutting.CUT, cutting.SPLIT_BY, cutting.UNSQUEEZE,
    cutting.CHUNK, image.DEPTH_TO_SPACE, image.SPACE_TO_DEPTH)(_moved("x"))
_on(convert.CAST, casts.CONVERT)(_moved("x"))
_on(gather.EMBEDDING_LOOKUP, indexing.ONE_HOT)(_moved("values"))
_on(shape.CONCATENATION, shape.PACK, ex.PACK_EX)(_moved("xs"))
_on(e.SELECT, host.WHERE)(_moved("x", "y"))
_on(shape.PAD, h.MATRIX_DIAG, indexing.TRILU)(_moved("x", zero=True))
_on(shape.FILL)(_moved("value"))
_on(shape.PAD_V2, cutting.PAD_BY)(_moved("x", "value"))
_on(h.DYNAMIC_UPDATE_SLICE, indexing.WRITE_ROWS)(_moved("x", "update"))
_on(h.RANGE, cutting.COUNT)(_moved("start", "limit"))


@_on(r.TOPK_V2, host.TOPK_FIRST, h.TOPK)
def _largest(node: Node, of: Of) -> Interval:
    """Values and their places."""
    return hull([of("x"), (0, _size(node.args["x"].shape[-1:]))])


@_on(r.ARGMAX, r.ARGMIN, folds.ARGMAX_LAST, folds.ARGMIN_LAST)
def _place(node: Node, of: Of) -> Interval:
    return 0, max(_size((node.args["x"].shape[node.args["axis"]],)) - 1, 0)


@_on(h.SHAPE)
def _sizes(node: Node, of: Of) -> Interval:
    return hull((at_least(n) or 0, _size((n,))) for n in node.args["x"].shape)


@_on(host.NON_ZERO)
def _places(node: Node, of: Of) -> Interval:
    return 0, max(map(_size, ((n,) for n in node.args["x"].shape)), default=0)


def _size(sizes: Shape) -> int:
    """The most elements that axes of these sizes may have."""
    count = 1
    for n in sizes:
        count *= n if known(n) else MOST_NUMBERS
    return count


@_on(e.ADD)
def _sum(node: Node, of: Of) -> Interval:
    return _fused(node, _added(of("x"), of("y")))


@_on(e.SUB)
def _difference(node: Node, of: Of) -> Interval:
    low, high = of("y")
    return _fused(node, _added(of("x"), (-high, -low)))


@_on(e.MUL)
def _product(node: Node, of: Of) -> Interval:
    return _fused(node, _multiplied(of("x"), of("y")))


def _fused(node: Node, found: Interval) -> Interval:
    """With the activation that comes after it."""
    return found if node.args["act"] == 0 else hull([found, (0, 0)])


def _added(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _multiplied(a: Interval, b: Interval) -> Interval:
    corners = [m * n for m in a for n in b]
    return min(corners), max(corners)


@_on(e.MAXIMUM)
def _maximum(node: Node, of: Of) -> Interval:
    (a, b), (c, d) = of("x"), of("y")
    return max(a, c), max(b, d)


@_on(e.MINIMUM)
def _minimum(node: Node, of: Of) -> Interval:
    (a, b), (c, d) = of("x"), of("y")
    return min(a, c), min(b, d)


@_on(e.NEG)
def _negated(node: Node, of: Of) -> Interval:
    low, high = of("x")
    return -high, -low


@_on(e.ABS)
def _absolute(node: Node, of: Of) -> Interval:
    low, high = of("x")
    return max(low, -high, 0), max(-low, high)


@_on(host_math.SIGN)
def _sign(node: Node, of: Of) -> Interval:
    return -1, 1


@_on(host_math.BITWISE_XOR, functions.BITWISE_AND, functions.BITWISE_OR, functions.BITWISE_NOT)
def _bits(node: Node, of: Of) -> Interval:
    """As many bits as the operands have."""
    inner = hull(of(n) for n in ("x", "y") if n in node.args)
    return next((held for t in (I16, I32) if within(inner, held := all_of(t))), all_of(I64))


@_on(e.RELU)
def _relu(node: Node, of: Of) -> Interval:
    low, high = of("x")
    return max(low, 0), max(high, 0)


@_on(host.SQUARE)
def _square(node: Node, of: Of) -> Interval:
    most = max(map(abs, of("x")))
    return 0, most * most


@_on(host.SQUARED_DIFFERENCE)
def _squared_difference(node: Node, of: Of) -> Interval:
    low, high = of("y")
    most = max(map(abs, _added(of("x"), (-high, -low))))
    return 0, most * most


@_on(e.DIV, host.FLOOR_DIV, host.TRUNC_DIV)
def _quotient(node: Node, of: Of) -> Interval:
    """No further from 0 than x is, and one more where that is rounded down."""
    _nonzero(of("y"))
    most = max(map(abs, of("x")))
    low, high = of("x")
    positive = of("y")[0] > 0
    return (low, max(high, 0)) if positive and low <= 0 else (0, high) if positive else (-most, most)


@_on(host.FLOOR_MOD)
def _modulus(node: Node, of: Of) -> Interval:
    """From 0 to the divisor, of its sign."""
    low, high = _nonzero(of("y"))
    return (0, high - 1) if low > 0 else (low + 1, 0)


@_on(functions.TRUNC_MOD)
def _rest(node: Node, of: Of) -> Interval:
    """From 0 to the divisor, of the sign of x."""
    most = max(map(abs, _nonzero(of("y")))) - 1
    low, high = of("x")
    return max(min(low, 0), -most), min(max(high, 0), most)


def _nonzero(divisor: Interval) -> Interval:
    """An interval without 0; raises `ValueError` on one that has it, since nothing is said of a division by it."""
    if divisor[0] <= 0 <= divisor[1]:
        raise ValueError
    return divisor


@_on(r.REDUCE_MAX, r.REDUCE_MIN)
def _extreme(node: Node, of: Of) -> Interval:
    """One of the elements; of none, an end of the type."""
    sizes, axes = node.args["x"].shape, node.args["axes"].tensor
    if any((at_least(sizes[a]) or 0) < 1 for a in (range(len(sizes)) if axes.data is None else axes.ints())):
        raise ValueError
    return of("x")


@_on(r.REDUCE_SUM, host_math.CUMSUM, folds.CUMULATE)
def _total(node: Node, of: Of) -> Interval:
    """At most all elements, each the most it can be; so is every sum on the way."""
    if node.args.get("product"):
        raise ValueError
    low, high = of("x")
    count = min(_size(node.args["x"].shape), MOST_NUMBERS)
    return min(low * count, 0), max(high * count, 0)
