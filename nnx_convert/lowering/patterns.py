"""What exporters spell out is one operation again: activations, inverse roots, factors of a softmax.

A product is read as a number times its factors, a sum as a number plus the rest, however these are nested and in
whatever order, so that one rule knows all spellings. What stands inside must be read by nothing else.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph import Graph, Node, Value
from ..ops import elementwise as e, functions as f, host, host_math, norm, reduce as r, shape
from ..ops.linear import LINEAR
from ..target import Target
from ..types import F16, F32, known
from .affine import array
from .axes import alike
from .rewrite import Event, Result, Rewriter, Rules, prune

PATTERNS = Rules("patterns")
#: How far a constant in a file may be from the number it stands for: what its type and short decimals lose.
NEAR = {F32: 1e-6, F16: 1e-3}
#: How many factors a product is taken apart into.
MOST_FACTORS = 8
#: Operations whose result is as many times larger as their first operand is.
CARRIERS = (shape.RESHAPE, shape.TRANSPOSE, shape.EXPAND_DIMS, shape.SQUEEZE, host.MATMUL)
#: A product as a number and other factors, a sum as a number and the rest.
Product = tuple[float, tuple[Value, ...]]


def patterns(graph: Graph, target: Target, trace: list[Event]) -> Graph:
    """The pass, and what it replaces is gone; a TFLite file says what it means with operators of its own."""
    if graph.rim.source is not None and graph.rim.source.format == "TFLite":
        return graph
    return prune(PATTERNS(graph, target, trace), target, trace)


def number(v: Value) -> float | None:
    """The one element of a constant."""
    data = v.tensor.data
    return float(data.item()) if data is not None and data.size == 1 else None


def near(x: Value, value: float, wanted: float) -> bool:
    """Whether a constant beside x stands for a number."""
    return abs(value - wanted) <= NEAR.get(x.type, 0.0) * abs(wanted)


def floats(x: Value) -> bool:
    """Whether the rules may compute otherwise with it, within its rounding."""
    return x.type in (F32, F16)


def inner(g: Rewriter, v: Value) -> Node | None:
    """The node that writes a value which nothing else reads, without a fused activation."""
    node = g.producer(v)
    return node if node is not None and g.sole(v) and node.args.get("act", 0) == 0 else None


def factors(g: Rewriter, node: Node) -> Product:
    """A product, a square, a negation or a division by a number taken apart."""
    value, found, todo = 1.0, list[Value](), list(parts(node) or ())
    while todo:
        v, power = todo.pop(0)
        c = number(v)
        if c is not None and (power == 1 or c):
            value *= c ** power
            continue
        made = inner(g, v)
        more = parts(made) if made is not None and power == 1 and len(found) + len(todo) < MOST_FACTORS else None
        if more is None:
            found.append(v)
        else:
            todo += more
    return value, tuple(found)


def parts(node: Node | None) -> list[tuple[Value, int]] | None:
    """The factors a node multiplies, each to a power of 1 or, of numbers, -1; None where it is no product."""
    if node is None or node.args.get("act", 0):
        return None
    a = node.args
    if node.op is e.MUL:
        return [(a["x"], 1), (a["y"], 1)]
    if node.op is e.DIV and number(a["y"]):
        return [(a["x"], 1), (a["y"], -1)]
    if node.op is host.SQUARE:
        return [(a["x"], 1)] * 2
    if node.op is e.POW and number(a["y"]) in (2.0, 3.0):
        return [(a["x"], 1)] * int(number(a["y"]) or 0)
    return None


def product(g: Rewriter, v: Value) -> Product:
    """A value as a product, if it is none of itself alone; it may be read elsewhere, too, if it is a square."""
    node = inner(g, v)
    return (1.0, (v,)) if parts(node) is None or node is None else factors(g, node)


def plus(g: Rewriter, v: Value, wanted: float) -> Value | None:
    """What a number is added to."""
    node = inner(g, v)
    if node is None or node.op is not e.ADD:
        return None
    sides: tuple[Value, Value] = (node.args["x"], node.args["y"])
    for one, rest in (sides, sides[::-1]):
        c = number(one)
        if c is not None and near(v, c, wanted):
            return rest
    return None


def of(g: Rewriter, v: Value | None, *ops: object) -> Node | None:
    """The node that writes a value if it is one of these operations, and nothing else reads it."""
    node = inner(g, v) if v is not None else None
    return node if node is not None and node.op in ops else None


@PATTERNS.on(e.MUL, e.DIV)
def activation(g: Rewriter, node: Node) -> Result:
    """x / 2 * (1 + erf(x / sqrt(2))) and its like, x * tanh(softplus(x)), x * (x + 3 within 0 to 6) / 6."""
    out = node.outputs[0]
    if not floats(out) or parts(node) is None:
        return None
    value, found = factors(g, node)
    for i, v in enumerate(found):
        rest = [*found[:i], *found[i + 1:]]
        if len(rest) != 1 or not alike(rest[0].shape, out.shape):
            continue
        for rule in (gelu, hard_swish, mish):
            made = rule(g, rest[0], value, v)
            if made is not None:
                return made
    return None


def gelu(g: Rewriter, x: Value, value: float, v: Value) -> Value | None:
    """x * value * v is GELU(x)."""
    bent = of(g, plus(g, v, 1.0), f.ERF, e.TANH) if near(x, value, 0.5) else None
    if bent is None:
        return None
    if bent.op is f.ERF:
        scale, inside = product(g, bent.args["x"])
        return g(host_math.GELU, x, approximate=False) if inside == (x,) and near(x, scale, math.sqrt(0.5)) else None
    return g(host_math.GELU, x, approximate=True) if cubic(g, x, *product(g, bent.args["x"])) else None


def cubic(g: Rewriter, x: Value, scale: float, inside: Sequence[Value]) -> bool:
    """Whether a product is sqrt(2 / pi) * (x + 0.044715 * x ** 3), or x put before the bracket."""
    if not near(x, scale, math.sqrt(2 / math.pi)):
        return False
    if len(inside) == 2 and x in inside:
        rest = inside[1] if inside[0] is x else inside[0]
        tail = plus(g, rest, 1.0)
        return tail is not None and is_power(g, tail, x, 2)
    node = inner(g, inside[0]) if len(inside) == 1 else None
    if node is None or node.op is not e.ADD:
        return False
    a, b = node.args["x"], node.args["y"]
    return a is x and is_power(g, b, x, 3) or b is x and is_power(g, a, x, 3)


def is_power(g: Rewriter, v: Value, x: Value, power: int) -> bool:
    """Whether a value is 0.044715 * x ** power."""
    value, found = product(g, v)
    return near(x, value, 0.044715) and found == (x,) * power


def hard_swish(g: Rewriter, x: Value, value: float, v: Value) -> Value | None:
    """x * value * v is HARD_SWISH(x): v is x + 3 within 0 to 6, or x / 6 + 1 / 2 within 0 to 1."""
    node = of(g, v, e.RELU6, host.RELU_0_TO_1)
    if node is None:
        return None
    if node.op is e.RELU6:
        there = plus(g, node.args["x"], 3.0)
        return g(e.HARD_SWISH, x) if there is x and near(x, value, 1 / 6) else None
    there = plus(g, node.args["x"], 0.5)
    if there is None or not near(x, value, 1.0):
        return None
    scale, inside = product(g, there)
    return g(e.HARD_SWISH, x) if inside == (x,) and near(x, scale, 1 / 6) else None


def mish(g: Rewriter, x: Value, value: float, v: Value) -> Value | None:
    """x * value * v is MISH(x)."""
    bent = of(g, v, e.TANH)
    soft = of(g, bent.args["x"], f.SOFTPLUS) if bent is not None else None
    return g(f.MISH, x) if value == 1 and soft is not None and soft.args["x"] is x else None


@PATTERNS.on(e.MUL, e.DIV)
def factor_of_a_layer(g: Rewriter, node: Node) -> Result:
    """A number times what a layer gives, reshaped, turned and multiplied since, as in attention: the layer's factor."""
    if not floats(node.outputs[0]) or parts(node) is None:
        return None
    value, found = factors(g, node)
    if len(found) != 1 or not math.isfinite(value) or not value or not alike(found[0].shape, node.outputs[0].shape):
        return None
    way = way_to_layer(g, found[0])
    if not way:
        return None
    x = way[-1].args["x"]
    made = g(e.MUL, x, g.build.full((1,) * len(x.shape), value, x.tensor), act=0)
    for step in reversed(way):
        made = g(step.op, out=step.outputs[0].tensor, **step.args | {"x": made})
    return made


def way_to_layer(g: Rewriter, v: Value) -> list[Node]:
    """The nodes between a value and the layer that it comes from, last first; none where it comes from elsewhere."""
    found = list[Node]()
    node = inner(g, v)
    while node is not None and node.op in CARRIERS:
        found.append(node)
        node = inner(g, node.args["x"])
    if node is not None and node.op is e.ADD:            # the layer's bias, which is not its own yet
        sides = node.args["x"], node.args["y"]
        node = next((inner(g, a) for a, b in (sides, sides[::-1]) if b.constant), None)
    weighted = node is not None and node.op is LINEAR and array(g, node.args["w"]) is not None
    return found if weighted else []


@PATTERNS.on(e.LOG)
def softplus(g: Rewriter, node: Node) -> Result:
    """log(1 + exp(x)), which overflows where SOFTPLUS does not."""
    raised, out = of(g, plus(g, node.args["x"], 1.0), e.EXP), node.outputs[0]
    if raised is None or not floats(out) or not alike(raised.args["x"].shape, out.shape):
        return None
    return g(f.SOFTPLUS, raised.args["x"])


@PATTERNS.on(e.DIV)
def inverse_root(g: Rewriter, node: Node) -> Result:
    """x / sqrt(v) where v is smaller than x, as in norms: RSQRT(v), and x times that."""
    x, y = node.args["x"], node.args["y"]
    root = of(g, y, e.SQRT)
    if root is None or node.args["act"] or not floats(x) or x.type != y.type:
        return None
    inside = root.args["x"]
    if number(x) == 1.0:
        return g(e.RSQRT, inside) if alike(inside.shape, node.outputs[0].shape) else None
    if not (known(inside.shape[-1]) and inside.shape[-1] == 1):
        return None
    g.why = said(g, x, inside)
    return g(e.MUL, x, g(e.RSQRT, inside), act=0)


def said(g: Rewriter, x: Value, inside: Value) -> str:
    """What a division by the root of a mean of squares is, where it is such."""
    sums = [a for v in (inside,) if (n := g.producer(v)) and n.op is e.ADD for a in (n.args["x"], n.args["y"])]
    means = [n for a in sums if (n := g.producer(a)) and n.op is r.MEAN]
    squares = [n for m in means if (n := g.producer(m.args["x"])) and n.op in (e.MUL, host.SQUARE)]
    if not any(n.args["x"] is x and n.args.get("y", x) is x for n in squares):
        return ""
    before = g.producer(x)
    return "a layer norm" if before is not None and before.op is e.SUB else "a root mean square norm"


@PATTERNS.on(norm.SOFTMAX)
def scaled_softmax(g: Rewriter, node: Node) -> Result:
    """A positive factor of all scores is SOFTMAX's beta."""
    made = inner(g, node.args["x"])
    if made is None or parts(made) is None or not floats(node.args["x"]):
        return None
    value, found = factors(g, made)
    if len(found) != 1 or value <= 0 or not math.isfinite(value) or not alike(
            found[0].shape, node.outputs[0].shape):
        return None
    return g(norm.SOFTMAX, found[0], beta=node.args["beta"] * value, axis=node.args["axis"])
