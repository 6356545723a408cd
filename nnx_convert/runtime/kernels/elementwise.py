"""Element by element: arithmetic, comparison, logic, activation."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...ops import elementwise as e
from ...schema import OpDef
from ...types import Array, Tensor
from ..fixedpoint import f32, grid, limits
from ..kernel import Run, Site, kernel
from . import quantized as q
from .elements import Step, binary, called, compared, unary
from .tables import Real, by_real, exactly, interpolated, on_grid, sigmoid16

#: Bounds of the fused activations, by NNAPI's codes.
BOUNDS: dict[int, tuple[int | None, int | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}


def clamp(out: Array, act: int) -> None:
    """Apply a fused activation in place; not a number stays that."""
    low, high = BOUNDS[act]
    if low is not None:
        np.maximum(out, low, out=out)
    if high is not None:
        np.minimum(out, high, out=out)


def arithmetic(site: Site, x: Tensor, y: Tensor, act: int, step: Step, exact: Callable[..., q.Two] | None = None,
               passes: int = 1) -> Run:
    """A function of two tensors with a fused activation."""
    def activated(out: Array, x: Array, y: Array) -> None:
        step(out, x, y)
        clamp(out, act)
    return binary(site, x, y, activated if act else step, passes=passes + (act > 0),
                  exact=partial(exact, act=act) if exact else None)


def ufunc(function: np.ufunc) -> Step:
    """A NumPy function as a step."""
    def step(out: Array, *given: Array) -> None:
        function(*given, out=out)
    return step


def quotient(out: Array, x: Array, y: Array) -> None:
    """x / y; of integers rounded down, and 0 where y is 0: NNAPI leaves that open, its reference gives 0."""
    function = np.divide if out.dtype.kind in "fc" else np.floor_divide
    function(x, y, out=out)


@kernel(e.ADD, inplace=("x", "y"))
def ADD(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, ufunc(np.add), q.add)


@kernel(e.SUB, inplace=("x", "y"))
def SUB(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, ufunc(np.subtract), q.sub)


@kernel(e.MUL, inplace=("x", "y"))
def MUL(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, ufunc(np.multiply), q.mul)


@kernel(e.DIV, inplace=("x", "y"))
def DIV(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
    return arithmetic(site, x, y, act, quotient, q.div)


@kernel(e.POW)
def POW(site: Site, x: Tensor, y: Tensor) -> Run:
    return binary(site, x, y, ufunc(np.power))


def extreme(site: Site, x: Tensor, y: Tensor, function: np.ufunc) -> Run:
    """The larger or smaller of two; quantised ones are compared raw where their grids are the output's."""
    def exact(x: Tensor, y: Tensor, out: Tensor) -> q.Two:
        left, right = q.moved(x, out), q.moved(y, out)
        return lambda a, b: np.asarray(function(left(a), right(b)))
    return binary(site, x, y, ufunc(function), exact=exact)


@kernel(e.MAXIMUM, inplace=("x", "y"))
def MAXIMUM(site: Site, x: Tensor, y: Tensor) -> Run:
    return extreme(site, x, y, np.maximum)


@kernel(e.MINIMUM, inplace=("x", "y"))
def MINIMUM(site: Site, x: Tensor, y: Tensor) -> Run:
    return extreme(site, x, y, np.minimum)


def sloped(y: Tensor | float) -> tuple[Step, int, int]:
    """x where x >= 0, else y * x, as a step, its scratch arrays and its passes, the cheapest that y allows."""
    known = y if isinstance(y, float) else y.data
    if known is not None and np.all((0 < known) & (known <= 1)):
        return partial(_steeper, np.maximum), 1, 2
    if known is not None and np.all((known >= 1) & np.isfinite(known)):
        return partial(_steeper, np.minimum), 1, 2
    return _below, 1, 3


def _steeper(pick: np.ufunc, out: Array, x: Array, y: Array, t: Array) -> None:
    np.multiply(x, y, out=t)
    pick(x, t, out=out)


def _below(out: Array, x: Array, y: Array, t: Array) -> None:
    """Of what is not below 0, y does not count, whatever it is."""
    below = x < 0
    np.multiply(x, y, out=t)
    np.copyto(out, x)
    np.copyto(out, t, where=below)


@kernel(e.PRELU, inplace=("x",))
def PRELU(site: Site, x: Tensor, y: Tensor) -> Run:
    step, temps, passes = sloped(y)
    return binary(site, x, y, step, exact=q.prelu, temps=temps, passes=passes)


COMPARISONS = {e.EQUAL: np.equal, e.NOT_EQUAL: np.not_equal, e.GREATER: np.greater,
               e.GREATER_EQUAL: np.greater_equal, e.LESS: np.less, e.LESS_EQUAL: np.less_equal}


def comparison(site: Site, x: Tensor, y: Tensor, function: np.ufunc) -> Run:
    """A comparison of real values; TFLite's int16 orderings compare raw ones."""
    raw = x.type.dtype.itemsize > 1 and function not in (np.equal, np.not_equal)
    exact = None if raw or not (on_grid(x) and on_grid(y)) else (q.comparable(x), q.comparable(y))
    return compared(site, x, y, function, exact)


def _comparison(op: OpDef, function: np.ufunc) -> None:
    @kernel(op)
    def prepare(site: Site, x: Tensor, y: Tensor) -> Run:
        return comparison(site, x, y, function)


for _op, _function in COMPARISONS.items():
    _comparison(_op, _function)


@kernel(e.LOGICAL_AND, inplace=("x", "y"))
def LOGICAL_AND(site: Site, x: Tensor, y: Tensor) -> Run:
    return binary(site, x, y, ufunc(np.logical_and))


@kernel(e.LOGICAL_OR, inplace=("x", "y"))
def LOGICAL_OR(site: Site, x: Tensor, y: Tensor) -> Run:
    return binary(site, x, y, ufunc(np.logical_or))


@kernel(e.LOGICAL_NOT, inplace=("x",))
def LOGICAL_NOT(site: Site, x: Tensor) -> Run:
    """Any number but zero is true."""
    return lambda out, x: np.logical_not(x, out=out)


def chosen(site: Site, cond: Tensor, x: Tensor, y: Tensor) -> Run:
    """x where cond, else y, all broadcast; quantised ones on the output's grid."""
    left, right = ((q.moved(t, site.out) if on_grid(t) and on_grid(site.out) else np.asarray) for t in (x, y))

    def run(out: Array, cond: Array, x: Array, y: Array) -> None:
        np.copyto(out, np.where(cond, left(x), right(y)), casting="unsafe")
    return run


@kernel(e.SELECT)
def SELECT(site: Site, cond: Tensor, x: Tensor, y: Tensor) -> Run:
    return chosen(site, cond, x, y)


@kernel(e.ABS, inplace=("x",))
def ABS(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.absolute), exact=q.absolute, passes=1, ints=True)


@kernel(e.NEG, inplace=("x",))
def NEG(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.negative), passes=1, ints=True)


@kernel(e.FLOOR, inplace=("x",))
def FLOOR(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.floor), passes=1)


@kernel(e.SIN, inplace=("x",))
def SIN(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.sin), passes=1)


def tabulated(x: Tensor, out: Tensor, function: Real) -> q.One:
    """TFLite's table of a real function: of 256 values, or 513 points for int16."""
    short = x.type.dtype == out.type.dtype == np.int16
    return lambda _: interpolated(x, out, function) if short else by_real(x, out, function)


@kernel(e.EXP, inplace=("x",))
def EXP(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.exp), exact=partial(tabulated, function=exactly(np.exp)), passes=1)


def _log(x: Tensor, out: Tensor) -> q.One:
    """The logarithm of what is not positive is the least value."""
    scale, zero = grid(out)
    least = f32(f32(limits(out)[0] - zero) * scale)
    return tabulated(x, out, lambda v: np.where(v > 0, exactly(np.log)(np.where(v > 0, v, 1)), least))


@kernel(e.LOG, inplace=("x",))
def LOG(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.log), exact=_log, passes=1)


@kernel(e.SQRT, inplace=("x",))
def SQRT(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.sqrt), exact=q.square_root, passes=1)


def _rsqrt(out: Array, x: Array) -> None:
    np.sqrt(x, out=out)
    np.reciprocal(out, out=out)


def _rsqrt_raw(x: Tensor, out: Tensor) -> q.One:
    if x.type.dtype.itemsize == 1:
        return q.rsqrt(x, out)
    most = f32(f32(32767) * grid(out)[0])
    return tabulated(x, out, lambda v: np.where(v > 0, f32(1) / np.sqrt(np.where(v > 0, v, 1)), most))


@kernel(e.RSQRT, inplace=("x",))
def RSQRT(site: Site, x: Tensor) -> Run:
    return unary(site, x, _rsqrt, exact=_rsqrt_raw)


def limited(site: Site, x: Tensor, least: float, most: float | None) -> Run:
    """min(max(x, least), most)."""
    def step(out: Array, x: Array) -> None:
        np.maximum(x, x.dtype.type(least), out=out)
        if most is not None:
            np.minimum(out, x.dtype.type(most), out=out)
    passes = 1 if most is None else 2
    return unary(site, x, step, exact=partial(q.relu, least=least, most=most), passes=passes, ints=True)


@kernel(e.RELU, inplace=("x",))
def RELU(site: Site, x: Tensor) -> Run:
    return limited(site, x, 0, None)


@kernel(e.RELU1, inplace=("x",))
def RELU1(site: Site, x: Tensor) -> Run:
    return limited(site, x, -1, 1)


@kernel(e.RELU6, inplace=("x",))
def RELU6(site: Site, x: Tensor) -> Run:
    return limited(site, x, 0, 6)


def _logistic(out: Array, x: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def _logistic32(x: Array) -> Array:
    """As TFLite tabulates it: every step rounded to float32."""
    return np.asarray(f32(1) / (f32(1) + exactly(lambda v: np.exp(-v))(x)), f32)


def _sigmoidal(x: Tensor, out: Tensor, function: Real, tanh: bool) -> q.One:
    """TFLite's int16 kernels have a table of their own, for the one output grid they take."""
    if x.type.dtype == out.type.dtype == np.int16 and (out.scale, grid(out)[1]) == (2.0**-15, 0):
        return lambda _: sigmoid16(x, tanh)
    return lambda _: by_real(x, out, function)


@kernel(e.LOGISTIC, inplace=("x",))
def LOGISTIC(site: Site, x: Tensor) -> Run:
    return unary(site, x, _logistic, exact=partial(_sigmoidal, function=_logistic32, tanh=False), passes=4)


@kernel(e.TANH, inplace=("x",))
def TANH(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.tanh), exact=partial(_sigmoidal, function=exactly(np.tanh), tanh=True), passes=1)


@kernel(e.ELU, inplace=("x",))
def ELU(site: Site, x: Tensor, alpha: float) -> Run:
    def step(out: Array, x: Array, t: Array) -> None:
        np.minimum(x, 0, out=t)
        np.expm1(t, out=t)
        np.multiply(t, x.dtype.type(alpha), out=t)
        np.maximum(x, 0, out=out)
        np.add(out, t, out=out)
    return unary(site, x, step, temps=1, passes=5)


def _hard_swish(out: Array, x: Array, t: Array) -> None:
    np.add(x, 3, out=t)
    np.clip(t, 0, 6, out=t)
    np.multiply(t, x, out=t)
    np.divide(t, 6, out=out)


def _hard_swish_raw(x: Tensor, out: Tensor) -> q.One:
    # TFLite's integers take no output grid finer than their own of 7 more bits.
    if x.type.dtype.itemsize == 1 and f32(f32(1 / 128) * grid(x)[0]) < grid(out)[0]:
        return q.hard_swish(x, out)
    return lambda _: by_real(x, out, exactly(called(_hard_swish, 1)))


@kernel(e.HARD_SWISH, inplace=("x",))
def HARD_SWISH(site: Site, x: Tensor) -> Run:
    return unary(site, x, _hard_swish, exact=_hard_swish_raw, temps=1, passes=4)
