"""Functions of bytes that NNAPI has on floats only: through floats where that is exact, else by a table."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..graph import Build, Node, Value
from ..ops import convert, elementwise as e, ex, gather, host
from ..types import BYTES, Array, F32, I32, Q8, Q8S, Quant, Tensor
from .exact import bytes_like, codes, computed
from .legalize import LEGALIZE
from .rewrite import Refusal, Result, Rewriter

#: Functions of one byte: all their answers are known beforehand.
ONE_BYTE = (e.EXP, e.LOG, e.SIN, e.SQRT, e.RSQRT, e.ABS, e.NEG, e.ELU, e.HARD_SWISH, host.REQUANTIZE, host.SQUARE,
            host.CEIL, host.COS, host.ROUND, host.RELU_0_TO_1, host.LEAKY_RELU,
            *map(host.host_twin, (e.RELU, e.RELU1, e.RELU6, e.LOGISTIC, e.TANH, e.HARD_SWISH)))
#: Functions of two: there are 65536 pairs.
TWO_BYTES = (e.POW, e.DIV, host.SQUARED_DIFFERENCE)


@LEGALIZE.on(*ONE_BYTE)
def of_a_byte(g: Rewriter, node: Node) -> Result:
    """A way that gives the same answer for each of the 256 bytes; else the answer is looked up."""
    x, out = node.args["x"], node.outputs[0]
    if not (node.op.host or g.fault(node)) or x.type not in BYTES or out.type not in BYTES:
        return None
    trial = bytes_like(x, codes(x.type))
    answers = computed(g.evaluate, partial(as_it_is, node=on(node, x=trial)))
    if answers is None:
        return Refusal("there is no kernel to compute the table with")
    off = 0
    for way in ways(g, node):
        off = differing(answers, computed(g.evaluate, partial(way, node=on(node, x=trial))))
        if not off and isinstance(made := g.attempt(partial(way, node=node)), Value):
            return made
    g.why = f"looked up: on floats {off} of 256 bytes come out otherwise" if off else "looked up, being of bytes"
    return g.legal(looked_up(g, x, g.build.const(answers, out.type, out.tensor)))


@LEGALIZE.on(*TWO_BYTES)
def of_two_bytes(g: Rewriter, node: Node) -> Result:
    """On floats if that gives the same answer for each pair of bytes."""
    x, y, out = node.args["x"], node.args["y"], node.outputs[0]
    if not g.fault(node) or not {x.type, y.type, out.type} <= {*BYTES}:
        return None
    pairs = on(node, x=bytes_like(x, codes(x.type)[:, None]), y=bytes_like(y, codes(y.type)[None]))
    answers, found = (computed(g.evaluate, partial(way, node=pairs)) for way in (as_it_is, on_floats))
    if answers is None:
        return Refusal("there is no kernel to compare with")
    if off := differing(answers, found):
        return Refusal(f"on floats {off} of 65536 pairs of bytes come out otherwise")
    return g.attempt(partial(on_floats, node=node))


def differing(answers: Array, found: Array | None) -> int:
    """How many answers are not those found."""
    return answers.size if found is None else int((answers != found).sum())


def ways(g: Rewriter, node: Node) -> Iterator[Callable[..., Value]]:
    """Ways to compute a function of one byte; they are called with a build and a `node`."""
    if node.op is host.LEAKY_RELU and node.args["alpha"]:
        yield partial(as_prelu, ex_too=g.target.ex)
    yield on_floats


def on_floats(g: Build, node: Node) -> Value:
    """The operation between DEQUANTIZE and QUANTIZE; one that only changes the grid is these two."""
    out = node.outputs[0]
    real: dict[str, Any] = {n: g(convert.DEQUANTIZE, v, to=F32) if isinstance(v, Value) and v.type in BYTES else v
                            for n, v in node.args.items()}
    y = real["x"] if node.op is host.REQUANTIZE else g(node.op.plain, **real)
    return g(convert.QUANTIZE, y, to=out.type, out=out.tensor)


def as_prelu(g: Build, node: Node, ex_too: bool) -> Value:
    """LEAKY_RELU as PRELU, alpha being a byte one step above its zero point, or below."""
    x, alpha = node.args["x"], node.args["alpha"]
    grid = Quant(abs(alpha), 128 if x.type == Q8 else 0)
    slope = g.const([grid.zero + (1 if alpha > 0 else -1)], x.type, Tensor(x.type, (1,), grid))
    return g(ex.PRELU_EX if ex_too and x.type == Q8 else e.PRELU, x, slope, out=node.outputs[0].tensor)


def looked_up(g: Rewriter, x: Value, table: Value) -> Value:
    """The elements of a table at the bytes of x, which are counted from 0."""
    if x.type == Q8S:
        quant = x.tensor.quant
        moved = Quant(quant.scale, quant.zero + 128) if isinstance(quant, Quant) else None
        x = g(convert.QUANTIZE, g(convert.DEQUANTIZE, x, to=F32), to=Q8, out=Tensor(Q8, x.tensor.dims, moved))
    if g.target.ex and table.type == Q8:
        return g(ex.GATHER_EX, table, g(ex.CAST_EX, x, to=I32), axis=0)
    return g(gather.GATHER, table, axis=0, indices=g(convert.CAST, x, to=I32))


def on(node: Node, **args: Value) -> Node:
    """The operation on other tensors, its outputs of the shape that these broadcast to."""
    shape = np.broadcast_shapes(*(v.shape for v in args.values()))
    return replace(node, args=node.args | args, outputs=tuple(
        Value(v.name, Tensor(v.type, shape, v.tensor.quant)) for v in node.outputs))


def as_it_is(g: Build, node: Node) -> Value:
    """The operation itself."""
    g.nodes.append(node)
    return node.outputs[0]
