"""Gated recurrent units step by step, in operations of NNAPI: it has none for them."""
from __future__ import annotations

from ..graph import Node, Value, Values
from ..ops import conv, elementwise as e, rnn_nd, shape
from ..types import F16, F32, known
from .expand import EXPAND
from .recurrent import MOST_STEPS, constant
from .rewrite import Refusal, Result, Rewriter

#: The activations that NNAPI has operations for, by the codes of `rnn_nd.ACTIVATIONS`.
ACTIVATIONS = {0: e.RELU, 1: e.TANH, 2: e.LOGISTIC}


@EXPAND.on(rnn_nd.GRU_SEQUENCE)
def gated(g: Rewriter, node: Node) -> Result:
    """The products of all inputs at once, then the steps, each with those of the state before it."""
    a = node.args
    if g.target.here and constant(a["w"], a["r"], a["b"]):
        return None
    x, w, codes = a["x"], a["w"], a["acts"].tensor.ints()
    if a["lengths"] is not None or a["clip"] or x.type not in (F32, F16) or not set(codes) <= set(ACTIVATIONS):
        return Refusal("its sequences have lengths, or its activations are none of NNAPI's")
    if not known(x.shape[0]) or not 0 < x.shape[0] <= MOST_STEPS or not all(map(known, (*w.shape, x.shape[2]))):
        return Refusal(f"its steps are not 1 to {MOST_STEPS}, or a size is open")
    if a["h"] is None and not known(x.shape[1]):
        return Refusal("it begins with zeros for a batch of an open size")
    ways = [direction(g, node, d) for d in range(w.shape[0])]
    columns = zip(*ways, strict=True)
    made = [c[0] if len(c) == 1 else g(shape.CONCATENATION, xs=c, axis=axis) for c, axis in zip(
        columns, (1, 0), strict=True)]
    return g.legal(made)


def rows(g: Rewriter, v: Value, d: int, begin: int, size: int) -> Value:
    """Rows of the weights of one direction."""
    rest = v.shape[2:]
    cut = g(shape.SLICE, v, [d, begin, *[0] * len(rest)], [1, size, *rest])
    return g(shape.RESHAPE, cut, [size, *rest])


def direction(g: Rewriter, node: Node, d: int) -> Values:
    """The outputs [time, 1, batch, units] and the last state [1, batch, units] of one direction."""
    a = node.args
    x, units = a["x"], a["r"].shape[2]
    time, batch = x.shape[0], x.shape[1] if known(x.shape[1]) else -1
    none = g.build.full((3 * units,), 0, x.tensor)
    on_x, on_h = (none, none) if a["b"] is None else (rows(g, a["b"], d, at, 3 * units) for at in (0, 3 * units))
    sums = g(conv.FULLY_CONNECTED, x, rows(g, a["w"], d, 0, 3 * units), on_x, act=0)
    parts = split(g, g(shape.RESHAPE, sums, [time, batch, 3 * units]), 0, time)
    gates, candidate = (rows(g, a["r"], d, at, n) for at, n in ((0, 2 * units), (2 * units, units)))
    shifts = [g(shape.SLICE, on_h, [at], [n]) for at, n in ((0, 2 * units), (2 * units, units))]
    f, h = (ACTIVATIONS[code] for code in a["acts"].tensor.ints()[2 * d:2 * d + 2])
    held = g.build.full((batch, units), 0, x.tensor) if a["h"] is None else g(
        shape.RESHAPE, g(shape.SLICE, a["h"], [d, 0, 0], [1, batch, units]), [batch, units])
    outs, backward = list[Value](), a["backward"] or d == 1
    for part in parts[::-1] if backward else parts:
        flat = g(shape.RESHAPE, part, [batch, 3 * units])
        zr, n = cut(g, flat, (0, 2 * units), (2 * units, units))
        both = g(f, g(e.ADD, zr, g(conv.FULLY_CONNECTED, held, gates, shifts[0], act=0), act=0))
        z, r = cut(g, both, (0, units), (units, units))
        inner = g(e.MUL, r, g(conv.FULLY_CONNECTED, held, candidate, shifts[1], act=0), act=0) if a["linear"] else \
            g(conv.FULLY_CONNECTED, g(e.MUL, r, held, act=0), candidate, shifts[1], act=0)
        new = g(h, g(e.ADD, n, inner, act=0))
        held = g(e.ADD, new, g(e.MUL, z, g(e.SUB, held, new, act=0), act=0), act=0)
        outs.append(g(shape.RESHAPE, held, [1, 1, batch, units]))
    whole = g(shape.CONCATENATION, xs=tuple(outs[::-1] if backward else outs), axis=0) if time > 1 else outs[0]
    return whole, g(shape.RESHAPE, held, [1, batch, units])


def split(g: Rewriter, x: Value, axis: int, count: int) -> Values:
    """Equal parts."""
    return g.add(shape.SPLIT, x, axis=axis, count=count) if count > 1 else (x,)


def cut(g: Rewriter, x: Value, *columns: tuple[int, int]) -> list[Value]:
    """Columns of rows: where they begin, and how many they are."""
    return [g(shape.SLICE, x, [0, at], [-1, n]) for at, n in columns]
