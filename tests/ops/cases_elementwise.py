"""Cases of arithmetic, comparison, logic and activation."""
from __future__ import annotations

import numpy as np
from row_case import FLOATS, Case, X, c

from nnx_convert.types import F32, I32, Q8, Quant

#: Shapes that broadcast: as they are, either way round, both ways at once, empty.
PAIRS = [((2, 3), (2, 3)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4)), ((2, 1, 4), (3, 1)), ((1,), (3, 2)), ((0, 3), (3,)),
         ((1, 2, 3, 4), (1, 1, 1, 4))]
ARITHMETIC = ("ADD", "MUL", "SUB")
TWO = ("MAXIMUM", "MINIMUM", "PRELU", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
       "LOGICAL_AND", "LOGICAL_OR", "EQUAL_EX", "NOT_EQUAL_EX", "GREATER_EQUAL_EX", "LESS_EX", "SQUARED_DIFFERENCE_EX",
       "PRELU_EX")
ONE = ("LOGICAL_NOT", "ABS", "NEG", "EXP", "SIN", "FLOOR", "RELU", "RELU1", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH",
       "ABS_EX", "NEG_EX", "EXP_EX")
POSITIVE = ("LOG", "SQRT", "RSQRT", "SQRT_EX", "RSQRT_EX")
MASK = Quant(1.0, 0)
#: The ends of floats, beside numbers that are none.
FAR = [np.inf, -np.inf, np.nan, 0.0, -0.0, 65504.0, -65504.0, 1e-7]
#: The ends of integers.
ENDS = [2 ** 31 - 1, -2 ** 31, 0, -1, 1, 2 ** 24 + 1]


def mask(shape: tuple[int, ...], span: tuple[float, float] = (0, 3)) -> X:
    """Truth values as bytes."""
    return X(shape, span=span, grid=MASK)


CASES: list[Case] = [
    *(c(op, x=x, y=y, act=0) for op in ARITHMETIC for x, y in PAIRS),
    *(c(op, only=FLOATS, x=(2, 5), y=(5,), act=act) for op in (*ARITHMETIC, "DIV") for act in (1, 2, 3)),
    *(c(op, only=(Q8,), x=(2, 5), y=(5,), act=act) for op in ARITHMETIC for act in (1, 2, 3)),
    *(c("DIV", only=FLOATS, x=x, y=y, act=0) for x, y in PAIRS),
    c("DIV", only=(I32,), x=X(values=[7, -7, 7, -7, 0, -1]), y=X(values=[2, 2, -2, -2, 5, 5]), act=0),
    c("DIV", only=(I32,), x=X(values=[[7], [-9]]), y=X(values=[2, -4, 9]), act=0),
    *(c(op, x=x, y=y) for op in TWO for x, y in PAIRS),
    *(c(op, only=(F32,), x=X(values=FAR), y=X(values=FAR[::-1])) for op in TWO
      if "LOGICAL" not in op and "PRELU" not in op),
    *(c(op, only=(F32,), x=X(values=FAR), y=X(values=[0.5, 2, 3, 0.25, 1, -1, -2, 4])) for op in ("PRELU", "PRELU_EX")),
    *(c(op, only=(I32,), x=X(values=ENDS), y=X(values=[ENDS[0], ENDS[0], 0, 1, -1, 2 ** 24])) for op in TWO
      if "LOGICAL" not in op and "PRELU" not in op and "SQUARED" not in op),
    *(c("POW", x=X((2, 6), span=(0.2, 3)), y=y) for y in [(2, 6), (6,), (1,)]),
    c("POW", x=(0, 3), y=(3,)), c("POW", x=X(values=[2, -2, -2, 0, 0, 0.5, 1]), y=X(values=[-1, 2, 3, 0, 2, 2, 100])),
    *(c(op, x=shape) for op in ONE for shape in [(13,), (2, 3, 4), (1, 2, 3, 5), (0, 4)]),
    *(c(op, only=(F32,), x=X(values=FAR)) for op in (*ONE, *POSITIVE) if "LOGICAL" not in op),
    *(c(op, only=(I32,), x=X(values=ENDS[2:])) for op in ("ABS", "NEG", "ABS_EX", "NEG_EX")),
    *(c(op, only=FLOATS if op == "RSQRT" else (), x=X(shape, span=(0.01, 9))) for op in POSITIVE
      for shape in [(13,), (2, 3, 4), (0, 4)]),
    *(c("RSQRT", x=X(shape, span=(0.3, 20))) for shape in [(40,), (2, 3, 4)]),
    *(c("ELU", x=shape, alpha=alpha) for shape in [(12,), (2, 3, 4, 1), (0, 2)] for alpha in (1.0, 0.25, 0.0)),
    *(c("SELECT", cond=shape, x=shape, y=shape) for shape in [(7,), (2, 3, 4), (0, 3), (1, 2, 1, 2, 3)]),
    *(c(op, x=mask(x), y=mask(y)) for op in ("LOGICAL_AND_EX", "LOGICAL_OR_EX") for x, y in PAIRS),
    *(c("LOGICAL_NOT_EX", x=mask(shape)) for shape in [(9,), (2, 3), (1, 2, 3, 4), (0, 2)]),
]
