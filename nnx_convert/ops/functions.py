"""Functions of elements and of matrices that ONNX has and NNAPI has not."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..kinds import BROADCASTS, Ints1, T, broadcast
from ..schema import Rule, composite, host
from ..signature import Kind
from ..types import Shape, Tensor, Type, known
from .elementwise import both
from .host import ALL

#: A flag of a host operation, which no feature level limits.
Flag = Annotated[bool, Kind({Type.BOOL: 27})]
SQUARE_MATRICES = Rule("the last two axes of x are equal", lambda x: x.rank >= 2 and x.shape[-1] == x.shape[-2])


def letters(equation: Tensor) -> tuple[list[str], str]:
    """The terms of an EINSUM and its result, as texts; "." is the ellipsis. Raises `ValueError`."""
    left, arrow, after = "".join(map(chr, equation.ints())).partition(">")
    if not arrow:
        raise ValueError("the equation has no arrow")
    return left.split(","), after


def operand(term: str, shape: Shape) -> Shape:
    """The shape of an operand as its term has it: a scalar is [1] in a graph."""
    return () if shape == (1,) and term in ("", ".") else shape


def summed(equation: Tensor, xs: Sequence[Tensor]) -> Shape:
    """The shape an EINSUM gives; raises `ValueError` where operands and equation do not fit each other."""
    terms, after = letters(equation)
    sizes, dots = dict[str, int](), tuple[int, ...]()
    for term, x in zip(terms, xs, strict=True):
        shape = operand(term, x.shape)
        spare = len(shape) - (len(term) - term.count("."))
        if spare < 0 or spare and "." not in term:
            raise ValueError(f"{term!r} is not a tensor of rank {len(shape)}")
        at = term.find(".")
        if at >= 0:
            dots = broadcast(dots, shape[at:at + spare])
        sizes |= {c: sizes[c] if c in sizes and known(n) and n == 1 else n for c, n in zip(
            term.replace(".", ""), shape[:max(at, 0)] + shape[at + spare if at >= 0 else 0:], strict=True)}
    return tuple(n for c in after for n in (dots if c == "." else (sizes[c],)))


# Composites.
@composite(ALL)
def ERF(x: T) -> T:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t ** 2) from 0 to x."""
    return x


@composite(ALL)
def SOFTPLUS(x: T) -> T:
    """log(1 + exp(x))."""
    return x


@composite(ALL)
def MISH(x: T) -> T:
    """x * tanh(log(1 + exp(x)))."""
    return x


@composite(ALL, BROADCASTS)
def TRUNC_MOD(x: T, y: T) -> T:
    """The remainder of x / y rounded toward zero, with the sign of x."""
    return both(x, y)


# Host operations.
@host(60630, ALL)
def ASIN(x: T) -> T:
    """The angle in [-pi / 2, pi / 2] whose sine is x."""
    return x


@host(60631, ALL)
def ACOS(x: T) -> T:
    """The angle in [0, pi] whose cosine is x."""
    return x


@host(60632, ALL)
def ATAN(x: T) -> T:
    """The angle in (-pi / 2, pi / 2) whose tangent is x."""
    return x


@host(60633, ALL)
def ASINH(x: T) -> T:
    """The number whose hyperbolic sine is x."""
    return x


@host(60634, ALL)
def ACOSH(x: T) -> T:
    """The number, not negative, whose hyperbolic cosine is x."""
    return x


@host(60635, ALL)
def ATANH(x: T) -> T:
    """The number whose hyperbolic tangent is x."""
    return x


@host(60636, ALL)
def SINH(x: T) -> T:
    """(exp(x) - exp(-x)) / 2."""
    return x


@host(60637, ALL)
def COSH(x: T) -> T:
    """(exp(x) + exp(-x)) / 2."""
    return x


@host(60638, ALL)
def TAN(x: T) -> T:
    """tan(x), x in radians."""
    return x


@host(60639, ALL, BROADCASTS)
def BITWISE_AND(x: T, y: T) -> T:
    """x & y, bit by bit."""
    return both(x, y)


@host(60640, ALL, BROADCASTS)
def BITWISE_OR(x: T, y: T) -> T:
    """x | y, bit by bit."""
    return both(x, y)


@host(60641, ALL)
def BITWISE_NOT(x: T) -> T:
    """Every bit of x turned over."""
    return x.free(x.shape)


@host(60642, ALL, BROADCASTS)
def SHIFT(x: T, y: T, left: Flag) -> T:
    """x << y if left, else x >> y; by the width or more, nothing but the sign is left."""
    return both(x, y)


@host(60643, ALL, SQUARE_MATRICES)
def DETERMINANT(x: T) -> T:
    """The determinant of each matrix of the last two axes."""
    return x.free(x.shape[:-2] or (1,))


@host(60644, ALL)
def EINSUM(*xs: T, equation: Ints1) -> T:
    """Products summed as an equation says, as "ij,jk>ik", given in the codes of its characters; "." is an ellipsis."""
    return xs[0].free(summed(equation, xs) or (1,))


@host(60645, ALL, BROADCASTS)
def INTEGER_POWER(x: T, y: T) -> T:
    """x ** y of integers, rounded toward zero; 0 to a negative power is 0."""
    return both(x, y)


@host(60646, ALL, SQUARE_MATRICES)
def MATRIX_INVERSE(x: T) -> T:
    """The inverse of each matrix of the last two axes."""
    return x
