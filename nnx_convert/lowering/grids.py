"""ONNX's quantisation in NNAPI's operations, where it is not taken into others (see `qdq`)."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Build, Node, Value
from ..ops import convert, elementwise as e, grids, host, host_math
from ..types import BYTES, F32, Array, Quant, Tensor
from .exact import bytes_like, codes, computed
from .expand import EXPAND
from .qdq import MAGIC, bounded, like
from .quantized import looked_up
from .rewrite import Result, Rewriter

#: Functions of elements, each result from the element in the same place; what else is in a chain is a number.
FUNCTIONS = {o.name for o in (
    e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.POW, e.PRELU, e.EQUAL, e.NOT_EQUAL, e.GREATER, e.GREATER_EQUAL,
    e.LESS, e.LESS_EQUAL, e.LOGICAL_AND, e.LOGICAL_OR, e.LOGICAL_NOT, e.SELECT, e.ABS, e.NEG, e.EXP, e.LOG, e.SIN,
    e.SQRT, e.RSQRT, e.FLOOR, e.RELU, e.RELU1, e.RELU6, e.LOGISTIC, e.TANH, e.ELU, e.HARD_SWISH, convert.CAST,
    host.LEAKY_RELU, host.SQUARE, host.CEIL, host.COS, host.ROUND, host.RELU_0_TO_1, host.SQUARED_DIFFERENCE,
    host.TO_BOOL, host.TO_MASK, host_math.SIGN, host_math.GELU)}
#: The longest chain that is looked at.
LONGEST = 64


@EXPAND.on(grids.RELABEL)
def relabel(g: Rewriter, node: Node) -> Result:
    """CAST counts bytes as plain integers, whatever grids they are on."""
    x, out = node.args["x"], node.outputs[0].tensor
    return x if x.tensor.quant == out.quant else g.legal(g(convert.CAST, x, to=out.type, out=out))


@EXPAND.on(grids.QUANTIZE_EVEN)
def looked(g: Rewriter, node: Node) -> Result:
    """A function of one byte is looked up: the table has ONNX's own rounding."""
    out, chain = node.outputs[0].tensor, list[Node]()
    source = root(g, node.args["x"], chain)
    if source is None:
        return None
    answers = tabulated(g, node, chain, source)
    if answers is None:
        return None
    return g.legal(looked_up(g, source, g.build.const(answers, out.type, out)))


def root(g: Rewriter, v: Value, chain: list[Node]) -> Value | None:
    """The only bytes that a float is computed from, element by element; `chain` gets what computes it, in order."""
    found, seen = set[Value](), set[Node]()

    def follow(v: Value) -> bool:
        made = g.producer(v)
        if v.tensor.data is not None or made is None:
            return v.tensor.data is not None and uniform(v.array)
        if made in seen:
            return True
        seen.add(made)
        if made.op is convert.DEQUANTIZE:
            found.add(made.args["x"])
        elif len(seen) > LONGEST or (made.op.twin_of or made.op).name not in FUNCTIONS or not all(
                map(follow, made.inputs)):
            return False
        chain.append(made)
        return True
    source = found.pop() if follow(v) and len(found) == 1 else None
    return source if source is not None and source.type in BYTES and isinstance(source.tensor.quant, Quant) else None


def uniform(data: Array) -> bool:
    """Whether all elements are one number."""
    return data.size > 0 and bool((data == data.reshape(-1)[0]).all())


def tabulated(g: Rewriter, node: Node, chain: list[Node], source: Value) -> Array | None:
    """What a chain gives for each of the 256 bytes, ascending; None where something of it has no kernel."""
    out = node.outputs[0].tensor

    def emit(build: Build) -> Value:
        became: dict[Any, Any] = {source: bytes_like(source, codes(source.type))}

        def now(v: Any) -> Any:
            if isinstance(v, Value) and v not in became and v.tensor.data is not None:
                return build.const(np.full(256, v.array.reshape(-1)[0]), v.type, v.tensor)
            return became.get(v, v)
        for n in chain:
            args = n.mapped(now).args
            became |= dict(zip(n.outputs, build.add(n.op, **args), strict=True))
        return build(grids.QUANTIZE_EVEN, became[node.args["x"]], to=out.type, out=Tensor(out.type, None, out.quant))
    return computed(g.evaluate, emit)


@EXPAND.on(grids.QUANTIZE_EVEN)
def quantized(g: Rewriter, node: Node) -> Result:
    """A division, bounded, rounded to even and back on the grid: QUANTIZE then has no half to round."""
    x, out = node.args["x"], node.outputs[0].tensor
    if x.type != F32 or not isinstance(out.quant, Quant):
        return None
    info, (scale, zero) = np.iinfo(out.type.dtype), (out.quant.scale, out.quant.zero)
    steps = bounded(g, g(e.DIV, x, like(g, x, scale), act=0), info.min - zero, info.max - zero)
    whole = g(e.SUB, g(e.ADD, steps, like(g, x, MAGIC), act=0), like(g, x, MAGIC), act=0)
    real = whole if scale == 1 else g(e.MUL, whole, like(g, x, scale), act=0)
    return g.legal(g(convert.QUANTIZE, real, to=out.type, out=out))
