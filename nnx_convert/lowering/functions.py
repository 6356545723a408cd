"""Functions that ONNX has and NNAPI has not, by operations that give them to the last digits of FLOAT32."""
from __future__ import annotations

import math

from ..graph import Node, Value
from ..ops import convert, elementwise as e, functions as f, host, host_math, norm, shape
from ..types import F16, F32, I32, Tensor, product
from .expand import BY_ZERO, EXPAND, floats, like, shaped, zero_divisor
from .legalize import LEGALIZE
from .rewrite import Refusal, Result, Rewriter

#: erf(x) = tanh(x * q(x ** 2)) and Gauss's integral = logistic(x * p(x ** 2)), least error over all x by Remez's
#: exchange: 6e-8 and, of x times it, 7e-8; the rounding of FLOAT32 adds 1e-7. Both grow beyond x = 5 without bound, so
#: that what is saturated stays it.
ERF_TERMS = (1.128379705456564, 0.10276548162641015, -0.00018438424733190767, -0.0006257188920947147,
             8.971222677184144e-05, -5.985608373568181e-06, 1.589536475673825e-07)
GAUSS_TERMS = (1.5957684324669161, 0.0726685662300137, -6.625937623043932e-05, -0.00011048050035409117,
               7.938243907068827e-06, -2.6689435432333386e-07, 3.6112670238224306e-09)


def odd(g: Rewriter, x: Value, terms: tuple[float, ...]) -> Value:
    """x times a polynomial in x ** 2, by Horner's rule."""
    square, *rest = g(e.MUL, x, x, act=0), *reversed(terms)
    found = g(e.ADD, g(e.MUL, square, like(g, x, rest[0]), act=0), like(g, x, rest[1]), act=0)
    for term in rest[2:]:
        found = g(e.ADD, g(e.MUL, found, square, act=0), like(g, x, term), act=0)
    return g(e.MUL, x, found, act=0)


@EXPAND.on(f.ERF)
def erf(g: Rewriter, node: Node) -> Result:
    """Within 1.5e-7."""
    return g(e.TANH, odd(g, node.args["x"], ERF_TERMS)) if floats(node) else None


@EXPAND.on(host_math.GELU)
def gelu(g: Rewriter, node: Node) -> Result:
    """By TANH as its formula says; the exact one within 1e-7 and two units in the last place."""
    x = node.args["x"]
    if not floats(node):
        return None
    if not node.args["approximate"]:
        return g(e.MUL, x, g(e.LOGISTIC, odd(g, x, GAUSS_TERMS)), act=0)
    half, one, cubic, root = (like(g, x, v) for v in (0.5, 1.0, 0.044715, math.sqrt(2 / math.pi)))
    cube = g(e.MUL, g(e.MUL, g(e.MUL, cubic, x, act=0), x, act=0), x, act=0)
    bent = g(e.TANH, g(e.MUL, root, g(e.ADD, x, cube, act=0), act=0))
    return g.legal(g(e.MUL, g(e.MUL, half, x, act=0), g(e.ADD, one, bent, act=0), act=0))


@EXPAND.on(f.ERF, host_math.GELU, f.SOFTPLUS, f.MISH, f.SINH, f.COSH, host.COS, host.ROUND)
def halves(g: Rewriter, node: Node) -> Result:
    """Of FLOAT16 in FLOAT32, rounded once, as the kernels have it."""
    if node.args["x"].type != F16:
        return None
    wide = g(node.op, **node.args | {"x": g(convert.CAST, node.args["x"], to=F32)})
    return g.legal(g(convert.CAST, wide, to=F16))


@EXPAND.on(f.SOFTPLUS)
def softplus(g: Rewriter, node: Node) -> Result:
    """max(x, 0) + log(1 + exp(-|x|)): within 6e-8 and a unit in the last place."""
    x = node.args["x"]
    if not floats(node):
        return None
    small = g(e.EXP, g(e.NEG, g(e.ABS, x)))
    return g.legal(g(e.ADD, g(e.RELU, x), g(e.LOG, g(e.ADD, small, like(g, x, 1.0), act=0)), act=0))


@EXPAND.on(f.MISH)
def mish(g: Rewriter, node: Node) -> Result:
    """The kernel's own steps."""
    x = node.args["x"]
    if not floats(node):
        return None
    small, two = g(e.EXP, g(e.MINIMUM, x, like(g, x, 20.0))), like(g, x, 2.0)
    n = g(e.MUL, small, g(e.ADD, small, two, act=0), act=0)
    return g.legal(g(e.MUL, x, g(e.DIV, n, g(e.ADD, n, two, act=0), act=0), act=0))


@LEGALIZE.on(e.ELU)
def elu(g: Rewriter, node: Node) -> Result:
    """Below level 30 max(x, 0) + alpha * (exp(min(x, 0)) - 1), the smaller as -max(-x, 0): within 6e-8 * alpha."""
    x, alpha = node.args["x"], node.args["alpha"]
    if not g.fault(node) or not floats(node):
        return None
    below = g(e.NEG, g(e.RELU, g(e.NEG, x)))
    bent = g(e.MUL, g(e.ADD, g(e.EXP, below), like(g, x, -1.0), act=0), like(g, x, alpha), act=0)
    return g(e.ADD, g(e.RELU, x), bent, act=0)


@LEGALIZE.on(norm.SOFTMAX)
def softmax_of_rows(g: Rewriter, node: Node) -> Result:
    """Below level 29 along the last axis of two: what is before it as one, another axis turned to its place."""
    x, beta, out = node.args["x"], node.args["beta"], node.outputs[0].tensor
    rank = len(x.shape)
    if not g.fault(node):
        return None
    axis = node.args["axis"] % rank
    order = [*(i for i in range(rank) if i != axis), axis]
    turned = x if axis == rank - 1 else g(shape.TRANSPOSE, x, order)
    rows = shaped(g, turned, (product(turned.shape[:-1]), turned.shape[-1]))
    found = shaped(g, g(norm.SOFTMAX, rows, beta=beta, out=Tensor(out.type, None, out.quant)), turned.shape)
    return g.legal(found if turned is x else g(shape.TRANSPOSE, found, [order.index(i) for i in range(rank)]))


@EXPAND.on(f.TRUNC_MOD)
def trunc_mod(g: Rewriter, node: Node) -> Result:
    """x - y * (x / y toward zero); exact on integers, on floats it rounds where the host's fmod does not."""
    x, y = node.args["x"], node.args["y"]
    if x.type != I32:
        return Refusal("x - y * (x / y) rounds")
    if zero_divisor(y):
        return BY_ZERO
    return g(e.SUB, x, g(e.MUL, g(host.TRUNC_DIV, x, y), y, act=0), act=0)


@EXPAND.on(f.BITWISE_NOT)
def bitwise_not(g: Rewriter, node: Node) -> Result:
    """-1 - x."""
    x = node.args["x"]
    return g.legal(g(e.SUB, like(g, x, -1), x, act=0)) if x.type == I32 else None


@EXPAND.on(f.SINH)
def sinh(g: Rewriter, node: Node) -> Result:
    """tanh(x / 2) times (1 + cosh(x)), which loses nothing about 0 as exp(x) - exp(-x) does."""
    x = node.args["x"]
    if not floats(node):
        return None
    bent = g(e.TANH, g(e.MUL, x, like(g, x, 0.5), act=0))
    return g(e.MUL, bent, g(e.ADD, even(g, x), like(g, x, 1.0), act=0), act=0)


@EXPAND.on(f.COSH)
def cosh(g: Rewriter, node: Node) -> Result:
    return even(g, node.args["x"]) if floats(node) else None


def even(g: Rewriter, x: Value) -> Value:
    """exp(x) / 2 + exp(-x) / 2: infinite where exp(x) is, from 88.72 on, and not from 89.41 as cosh(x) itself."""
    half = like(g, x, 0.5)
    return g(e.ADD, g(e.MUL, g(e.EXP, x), half, act=0), g(e.MUL, g(e.EXP, g(e.NEG, x)), half, act=0), act=0)


