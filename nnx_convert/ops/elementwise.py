"""Element by element: arithmetic, comparison, logic, activation."""
from __future__ import annotations

from ..kinds import (
    BROADCASTS, FL7, FLOAT, FROM29, FROM29I, INT_ACT, MATH, QUANT, Act, Bools, Fx, T, T1to4, T1to4z,
    broadcast, fixed)
from ..schema import Rule, op
from ..types import B8, F16, F32, I32, Q8, Q8S, Quant, Tensor

LOGISTIC_QUANT = {Q8: Quant(1 / 256, 0), Q8S: Quant(1 / 256, -128)}
TANH_QUANT = {Q8: Quant(1 / 128, 128), Q8S: Quant(1 / 128, 0)}
COMPARABLE = FROM29I | {B8: 29}
MUL_SCALE = Rule("the output scale exceeds x.scale * y.scale",
                 lambda x, y, out: not x.scale or out.scale > x.scale * y.scale, limit=True)


def both(x: Tensor, y: Tensor) -> Tensor:
    """An output of the broadcast shape, of a quantisation of its own."""
    return x.free(broadcast(x.shape, y.shape))


def truth(x: Tensor, y: Tensor) -> Tensor:
    """Truth values of the broadcast shape."""
    return Tensor(B8, broadcast(x.shape, y.shape))


@op(QUANT | {I32: 30}, BROADCASTS, INT_ACT)
def ADD(x: T1to4z, y: T1to4z, act: Act) -> T:
    """act(x + y)."""
    return both(x, y)


@op(QUANT | {I32: 30}, BROADCASTS, INT_ACT, MUL_SCALE)
def MUL(x: T1to4z, y: T1to4z, act: Act) -> T:
    """act(x * y)."""
    return both(x, y)


@op({F32: 28, F16: 29, Q8: 29, Q8S: 30, I32: 30}, BROADCASTS, INT_ACT)
def SUB(x: T1to4z, y: T1to4z, act: Act) -> T:
    """act(x - y)."""
    return both(x, y)


@op({F32: 28, F16: 29, I32: 30}, BROADCASTS, INT_ACT)
def DIV(x: T1to4z, y: T1to4z, act: Act) -> T:
    """act(x / y); on integers the quotient is rounded down, and x / 0 is unspecified."""
    return both(x, y)


@op(FROM29I, BROADCASTS)
def MAXIMUM(x: T, y: T) -> T:
    """max(x, y), of real values: quantised inputs are brought to the output's quantisation first."""
    return both(x, y)


@op(FROM29I, BROADCASTS)
def MINIMUM(x: T, y: T) -> T:
    """min(x, y), of real values: quantised inputs are brought to the output's quantisation first."""
    return both(x, y)


@op(MATH, BROADCASTS)
def POW(x: T, y: T) -> T:
    """x ** y."""
    return both(x, y)


@op(FROM29, BROADCASTS)
def PRELU(x: T, y: T) -> T:
    """x where x >= 0, else y * x."""
    return both(x, y)


@op(COMPARABLE, BROADCASTS)
def EQUAL(x: T, y: T) -> Bools:
    """x == y, of real values."""
    return truth(x, y)


@op(COMPARABLE, BROADCASTS)
def NOT_EQUAL(x: T, y: T) -> Bools:
    """x != y, of real values."""
    return truth(x, y)


@op(COMPARABLE, BROADCASTS)
def GREATER(x: T, y: T) -> Bools:
    """x > y, of real values."""
    return truth(x, y)


@op(COMPARABLE, BROADCASTS)
def GREATER_EQUAL(x: T, y: T) -> Bools:
    """x >= y, of real values."""
    return truth(x, y)


@op(COMPARABLE, BROADCASTS)
def LESS(x: T, y: T) -> Bools:
    """x < y, of real values."""
    return truth(x, y)


@op(COMPARABLE, BROADCASTS)
def LESS_EQUAL(x: T, y: T) -> Bools:
    """x <= y, of real values."""
    return truth(x, y)


@op({B8: 29}, BROADCASTS)
def LOGICAL_AND(x: T, y: T) -> Bools:
    """x and y."""
    return truth(x, y)


@op({B8: 29}, BROADCASTS)
def LOGICAL_OR(x: T, y: T) -> Bools:
    """x or y."""
    return truth(x, y)


@op({B8: 29})
def LOGICAL_NOT(x: T) -> Bools:
    """not x."""
    return truth(x, x)


@op(FROM29I, Rule("cond, x and y have one shape", lambda cond, x, y: cond.shape == x.shape == y.shape))
def SELECT(cond: Bools, x: T, y: T) -> T:
    """x where cond, else y."""
    return x.free(x.shape)


@op(MATH | {I32: 30})
def ABS(x: T) -> T:
    """|x|."""
    return x


@op(MATH | {I32: 29})
def NEG(x: T) -> T:
    """-x."""
    return x


@op(MATH)
def EXP(x: T) -> T:
    """e ** x."""
    return x


@op(MATH)
def LOG(x: T) -> T:
    """The natural logarithm of x."""
    return x


@op(MATH)
def SIN(x: T) -> T:
    """sin(x), x in radians."""
    return x


@op(MATH)
def SQRT(x: T) -> T:
    """The square root of x."""
    return x


@op(MATH | {Q8: FL7, Q8S: FL7})
def RSQRT(x: T) -> T:
    """1 / sqrt(x)."""
    return x.free(x.shape)


@op(FLOAT)
def FLOOR(x: T1to4) -> T:
    """The largest integer not above x."""
    return x


@op(QUANT)
def RELU(x: T1to4z) -> T:
    """max(x, 0)."""
    return x


@op(QUANT)
def RELU1(x: T1to4z) -> T:
    """min(max(x, -1), 1)."""
    return x


@op(QUANT)
def RELU6(x: T1to4z) -> T:
    """min(max(x, 0), 6)."""
    return x


@op(QUANT)
def LOGISTIC(x: T1to4z) -> T:
    """1 / (1 + exp(-x)); a quantised output has scale 1/256 and starts at zero."""
    return fixed(x, x.shape, LOGISTIC_QUANT)


@op(FLOAT | {Q8: 29, Q8S: 30})
def TANH(x: T1to4z) -> T:
    """tanh(x); a quantised output has scale 1/128 around zero."""
    return fixed(x, x.shape, TANH_QUANT)


@op({F32: 30, F16: 30})
def ELU(x: T, alpha: Fx) -> T:
    """max(0, x) + min(0, alpha * (exp(x) - 1))."""
    return x


@op({F32: 30, F16: 30, Q8: 30, Q8S: 30})
def HARD_SWISH(x: T) -> T:
    """x * min(max(x + 3, 0), 6) / 6."""
    return x.free(x.shape)
