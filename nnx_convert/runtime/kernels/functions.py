"""Functions of elements and of matrices that ONNX has and NNAPI has not."""
from __future__ import annotations

from functools import partial

import numpy as np

from ...errors import RunError
from ...ops import functions as f
from ...schema import OpDef
from ...types import Array, Tensor
from ..kernel import Run, Site, kernel
from ..special import erf
from .elements import called, in_pieces, unary, widened
from .elementwise import tabulated, ufunc
from .host import divided


@kernel(f.ERF, inplace=("x",))
def ERF(site: Site, x: Tensor) -> Run:
    """Rounded from float64."""
    def step(out: Array, x: Array) -> None:
        np.copyto(out, erf(x), casting="unsafe")
    return unary(site, x, step, exact=partial(tabulated, function=called(step)))


@kernel(f.SOFTPLUS)
def SOFTPLUS(site: Site, x: Tensor) -> Run:
    """max(x, 0) + log1p(exp(-|x|))."""
    def step(out: Array, x: Array, t: Array) -> None:
        np.log1p(np.exp(np.negative(np.abs(x, out=t), out=t), out=t), out=t)
        np.add(np.maximum(x, 0), t, out=out)
    return unary(site, x, step, temps=1, passes=5)


@kernel(f.MISH)
def MISH(site: Site, x: Tensor) -> Run:
    """x * n / (n + 2) where n = e * (e + 2), e = exp(x): beyond 20 the quotient is 1."""
    def step(out: Array, x: Array, t: Array) -> None:
        np.exp(np.minimum(x, 20, out=t), out=t)
        np.multiply(t, t + x.dtype.type(2), out=t)
        np.multiply(x, np.divide(t, t + x.dtype.type(2), out=t), out=out)
    return unary(site, x, step, temps=1, passes=5)


@kernel(f.TRUNC_MOD)
def TRUNC_MOD(site: Site, x: Tensor, y: Tensor) -> Run:
    """The exact remainder."""
    def step(out: Array, x: Array, y: Array) -> None:
        np.fmod(x, y, out=out)
    return divided(site, x, y, step)


FUNCTIONS = {f.ASIN: np.arcsin, f.ACOS: np.arccos, f.ATAN: np.arctan, f.ASINH: np.arcsinh, f.ACOSH: np.arccosh,
             f.ATANH: np.arctanh, f.SINH: np.sinh, f.COSH: np.cosh, f.TAN: np.tan}


def _function(op: OpDef, function: np.ufunc) -> None:
    @kernel(op, inplace=("x",))
    def prepare(site: Site, x: Tensor) -> Run:
        return unary(site, x, ufunc(function), passes=1)


for _op, _ufunc in FUNCTIONS.items():
    _function(_op, _ufunc)


@kernel(f.BITWISE_AND, inplace=("x", "y"))
def BITWISE_AND(site: Site, x: Tensor, y: Tensor) -> Run:
    return in_pieces(site, (x, y), ufunc(np.bitwise_and), passes=1)


@kernel(f.BITWISE_OR, inplace=("x", "y"))
def BITWISE_OR(site: Site, x: Tensor, y: Tensor) -> Run:
    return in_pieces(site, (x, y), ufunc(np.bitwise_or), passes=1)


@kernel(f.BITWISE_NOT, inplace=("x",))
def BITWISE_NOT(site: Site, x: Tensor) -> Run:
    return in_pieces(site, (x,), ufunc(np.bitwise_not), passes=1)


@kernel(f.SHIFT)
def SHIFT(site: Site, x: Tensor, y: Tensor, left: bool) -> Run:
    """NumPy's own shifts by the width or more give 0, to the right of what is negative -1."""
    return in_pieces(site, (x, y), ufunc(np.left_shift if left else np.right_shift), passes=1)


@kernel(f.DETERMINANT)
def DETERMINANT(site: Site, x: Tensor) -> Run:
    def step(out: Array, x: Array) -> None:
        np.copyto(out, np.linalg.det(x).reshape(out.shape), casting="unsafe")
    return widened(step) if x.type.dtype == np.float16 else step


@kernel(f.MATRIX_INVERSE)
def MATRIX_INVERSE(site: Site, x: Tensor) -> Run:
    """Raises `RunError` where a matrix has none."""
    def step(out: Array, x: Array) -> None:
        try:
            np.copyto(out, np.linalg.inv(x), casting="unsafe")
        except np.linalg.LinAlgError as error:
            raise RunError("a matrix has no inverse") from error
    return widened(step) if x.type.dtype == np.float16 else step


@kernel(f.EINSUM)
def EINSUM(site: Site, xs: tuple[Tensor, ...], equation: Tensor) -> Run:
    """Sums of float16 are made in float32."""
    terms, after = f.letters(equation)
    spelt = f"{','.join(terms)}->{after}".replace(".", "...")
    wide = np.float32 if xs[0].type.dtype == np.float16 else xs[0].type.dtype
    shapes = [f.operand(term, t.shape) for term, t in zip(terms, xs, strict=True)]

    def run(out: Array, xs: tuple[Array, ...], equation: Array) -> None:
        given = [v.astype(wide, copy=False).reshape(s) for v, s in zip(xs, shapes, strict=True)]
        np.copyto(out, np.einsum(spelt, *given, optimize=True).reshape(out.shape), casting="unsafe")
    return run


@kernel(f.INTEGER_POWER)
def INTEGER_POWER(site: Site, x: Tensor, y: Tensor) -> Run:
    """By squaring, wrapping around; to a negative power only 1 and -1 are not 0."""
    def step(out: Array, x: Array, y: Array) -> None:
        odd = np.where(np.abs(x) == 1, np.where(y % 2 == 0, np.abs(x), x), 0)
        np.copyto(out, np.where(y < 0, odd, np.power(x, np.maximum(y, 0))), casting="unsafe")
    return in_pieces(site, (x, y), step)
