"""Normalisation along an axis."""
from __future__ import annotations

from typing import Annotated

from ..kinds import (
    AXIS, FILLED, FLOAT, MATH, QUANT, T4, Bool, Fx, Int, LateAxis, Natural, PositiveFx, T, T1to4, fixed,
    rank)
from ..schema import op
from ..signature import Must
from ..types import Q8, Q8S
from .elementwise import LOGISTIC_QUANT, TANH_QUANT

FOUR_FIRST = rank(4, until=29)
TWO_OR_FOUR = Must("has rank 2 or 4", lambda t: t.rank in (2, 4), until=29)


@op(FLOAT | {Q8: 29, Q8S: 30}, AXIS)
def L2_NORMALIZATION(x: Annotated[T1to4, FOUR_FIRST], axis: LateAxis = -1) -> T:
    """x / sqrt(sum of x ** 2 along axis); a quantised output has scale 1/128 around zero."""
    return fixed(x, x.shape, TANH_QUANT)


@op(FLOAT, AXIS)
def LOCAL_RESPONSE_NORMALIZATION(x: Annotated[T1to4, FOUR_FIRST], radius: Natural, bias: Fx, alpha: Fx, beta: Fx,
                                 axis: LateAxis = -1) -> T:
    """x * (bias + alpha * sum of x ** 2 within radius along axis) ** -beta."""
    return x


@op(MATH)
def INSTANCE_NORMALIZATION(x: T4, gamma: Fx, beta: Fx, eps: Fx, nchw: Bool) -> T:
    """(x - mean) * gamma / sqrt(variance + eps) + beta, per image and channel."""
    return x


@op(QUANT, AXIS)
def SOFTMAX(x: Annotated[T1to4, TWO_OR_FOUR, FILLED],
            beta: PositiveFx, axis: LateAxis = -1) -> T:
    """exp(beta * (x - max)) / its sum, along axis; a quantised output has scale 1/256 from zero."""
    return fixed(x, x.shape, LOGISTIC_QUANT)


@op(MATH, AXIS)
def LOG_SOFTMAX(x: T, beta: PositiveFx, axis: Int) -> T:
    """beta * (x - max) - log(sum of exp(beta * (x - max))), along axis."""
    return x
