"""Quantised operations that NNAPI has on floats only: through floats where that is exact, else by a table."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import Build, Node, Value
from ..ops import convert, elementwise as e, ex, gather, host, norm, reduce as r
from ..types import F32, I32, Q8, Q8S, Quant, Rim, Tensor
from .fold import folding
from .legalize import LEGALIZE
from .rewrite import Refusal, Result, Rewriter

BYTES = (Q8, Q8S)
#: Functions of one byte: all their answers are known beforehand.
ONE_BYTE = (e.EXP, e.LOG, e.SIN, e.SQRT, e.RSQRT, e.ABS, e.NEG, e.ELU, e.HARD_SWISH, host.REQUANTIZE, host.SQUARE,
            host.CEIL, host.COS, host.ROUND, host.RELU_0_TO_1, host.LEAKY_RELU)
#: Functions of several, computed on floats: within one step of the quantised kernel.
SEVERAL = (e.POW, e.DIV, r.REDUCE_SUM, r.REDUCE_PROD, norm.LOG_SOFTMAX)
Emit = Callable[[Build, Value], Value]


@LEGALIZE.on(*SEVERAL)
def through_float(g: Rewriter, node: Node) -> Result:
    """Dequantise, compute, quantise."""
    if not g.fault(node) or node.outputs[0].type not in BYTES:
        return None
    g.why = "computed on floats, within one step"
    return g.legal(_on_floats(g.build, node))


@LEGALIZE.on(*ONE_BYTE)
def of_a_byte(g: Rewriter, node: Node) -> Result:
    """On floats if that gives the same answer for each of the 256 bytes, else by looking the answer up."""
    x, out = node.args["x"], node.outputs[0]
    if not g.fault(node) or x.type not in BYTES or out.type not in BYTES:
        return None
    answers = _answers(g, x, lambda b, v: _same(b, node, v))
    on_floats = _answers(g, x, lambda b, v: _on_floats(b, _on(node, v)))
    if answers is None:
        return Refusal("there is no kernel to compute the table with")
    if on_floats is not None and np.array_equal(answers, on_floats):
        return g.legal(_on_floats(g.build, node))
    return g.legal(_looked_up(g, x, g.build.const(answers, out.type, out.tensor)))


def _looked_up(g: Rewriter, x: Value, table: Value) -> Value:
    """The elements of a table at the bytes of x, which are counted from 0."""
    if x.type == Q8S:
        quant = x.tensor.quant
        moved = Quant(quant.scale, quant.zero + 128) if isinstance(quant, Quant) else None
        x = g(convert.QUANTIZE, g(convert.DEQUANTIZE, x, to=F32), to=Q8, out=Tensor(Q8, x.tensor.dims, moved))
    if g.target.ex and table.type == Q8:
        return g(ex.GATHER_EX, table, g(ex.CAST_EX, x, to=I32), axis=0)
    return g(gather.GATHER, table, axis=0, indices=g(convert.CAST, x, to=I32))


def _on_floats(g: Build, node: Node) -> Value:
    """The operation between DEQUANTIZE and QUANTIZE; one that only changes the grid is these two."""
    out = node.outputs[0]
    real: dict[str, Any] = {n: g(convert.DEQUANTIZE, v, to=F32) if isinstance(v, Value) and v.type in BYTES else v
                            for n, v in node.args.items()}
    y = real["x"] if node.op is host.REQUANTIZE else g(node.op, **real)
    return g(convert.QUANTIZE, y, to=out.type, out=out.tensor)


def _answers(g: Rewriter, x: Value, emit: Emit) -> np.ndarray[Any, Any] | None:
    """What something emitted gives for each byte of x, from the byte 0 (of signed ones: -128) on."""
    assert g.rules.evaluate is not None
    low = np.iinfo(x.type.dtype).min
    codes = np.arange(low, low + 256).astype(x.type.dtype)
    build = Build()
    y = emit(build, Value("codes", Tensor(x.type, (256,), x.tensor.quant, codes)))
    folded = folding(g.rules.evaluate)(build.finish((), (y,), Rim()), g.target, [])
    return folded.outputs[0].tensor.data


def _on(node: Node, x: Value) -> Node:
    """The operation on another x, its output of that shape."""
    return replace(node, args=node.args | {"x": x}, outputs=tuple(
        Value(v.name, Tensor(v.type, x.shape, v.tensor.quant)) for v in node.outputs))


def _same(g: Build, node: Node, x: Value) -> Value:
    new = _on(node, x)
    g.nodes.append(new)
    return new.outputs[0]
