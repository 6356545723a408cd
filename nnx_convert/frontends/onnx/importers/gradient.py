"""How a value changes with others that it is computed of, through what works element by element."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Node, Value
from ....types import F32, F64, known
from ..importer import Op
from ..registry import TRAINING, imports
from .elementwise import add, div, mul, number, sub, times

#: What the gradient of a node's result y is for each of its inputs, or its first, by the name of the operation.
Rule = Callable[..., Sequence[Value]]
RULES: dict[str, Rule] = {
    "ADD": lambda g, d, y, a, b: (d, d),
    "SUB": lambda g, d, y, a, b: (d, times(g, d, -1)),
    "MUL": lambda g, d, y, a, b: (mul(g, d, b), mul(g, d, a)),
    "DIV": lambda g, d, y, a, b: (div(g, d, b), times(g, div(g, mul(g, d, y), b), -1)),
    "NEG": lambda g, d, y, a: (times(g, d, -1),),
    "EXP": lambda g, d, y, a: (mul(g, d, y),),
    "LOG": lambda g, d, y, a: (div(g, d, a),),
    "SQRT": lambda g, d, y, a: (div(g, d, times(g, y, 2)),),
    "SQUARE": lambda g, d, y, a: (mul(g, d, times(g, a, 2)),),
    "TANH": lambda g, d, y, a: (mul(g, d, sub(g, number(g, y, 1), mul(g, y, y))),),
    "LOGISTIC": lambda g, d, y, a: (mul(g, d, mul(g, y, sub(g, number(g, y, 1), y))),),
    "RESHAPE": lambda g, d, y, a, *sizes: (g.reshape(d, g.shape(a)),)}


@imports(domain=TRAINING)
def Gradient(g: Op, *inputs: Value, xs: tuple[str, ...], y: str, zs: tuple[str, ...] = ()) -> list[Value]:
    """The sum over y's elements of their derivatives by each element of xs, at the values that these have here."""
    named, result = [g.scope.find(n) for n in (*xs, *zs)], g.scope.find(y)
    if len(inputs) != len(named) or not isinstance(result, Value):
        raise FormatError(f"has {len(inputs)} inputs for {len(named)} names, or {y!r:.40} is no tensor")
    if any(x.type not in (F32, F64) for x in (*inputs, result)):
        raise FormatError("differentiates what is neither float nor double")
    if any(a is not b for a, b in zip(inputs, named, strict=True)):
        g.unsupported("differentiates at other values than those that the graph computes")
    wanted = inputs[:len(xs)]
    moving, way = set(wanted), list[Node]()
    for node in g.scope.build.nodes:
        if not moving.isdisjoint(node.inputs) and moving.isdisjoint(node.outputs):
            moving.update(node.outputs)
            way.append(node)
    found = {result: like(g, result, 1)} if result in moving else dict[Value, Value]()
    for node in reversed(way):
        if any(v in found for v in node.outputs):
            passed(g, node, found, moving)
    return [found[x] if x in found else like(g, x, 0) for x in wanted]


def passed(g: Op, node: Node, found: dict[Value, Value], moving: set[Value]) -> None:
    """Add to the gradients of a node's inputs what that of its result gives; raises `Unsupported`."""
    if node.op.name not in RULES:
        g.unsupported(f"differentiates {node.at.op or node.op.name}", "differentiate while training, not in the file")
    (y,) = node.outputs
    for x, d in zip(node.inputs, RULES[node.op.name](g, found[y], y, *node.inputs), strict=False):
        if x in moving:
            own = onto(g, d, x)
            found[x] = add(g, found[x], own) if x in found else own


def onto(g: Op, d: Value, x: Value) -> Value:
    """A gradient in the shape of a value that was broadcast: the sum of its copies'."""
    shape, wide = g.shape(x), g.shape(d)
    padded = (1,) * (len(wide) - len(shape)) + shape
    axes = [i for i, (n, m) in enumerate(zip(padded, wide, strict=True)) if known(n) and n == 1 and not (
        known(m) and m == 1)]
    if axes:
        d = g.call("ReduceSum", d, g.const(np.array(axes, np.int64)), version=13)[0]
    return g.reshape(d, shape)


def like(g: Op, x: Value, value: float) -> Value:
    """One number in the shape of a value."""
    if all(map(known, x.shape)):
        return g.const(np.full(g.shape(x), value, x.type.dtype), x.type)
    filled: Value = g.call("Expand", number(g, x, value), g.call("Shape", x, version=13)[0], version=13)[0]
    return filled
