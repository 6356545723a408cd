"""Normalisation along an axis."""
from __future__ import annotations

from collections.abc import Callable
from math import floor, prod

import numpy as np

from ...ops import norm as n
from ...types import Array, Tensor
from ..fixedmath import F32, inv_sqrt, leading_zeros, log_ge1, reciprocal
from ..fixedpoint import f32, grid, high_mul, limits, multiplier, scale32, shift_right, wrap32
from ..kernel import Run, Site, kernel
from .elements import widened
from .tables import between, on_grid, raw, reals, sampled

I64 = np.int64
#: Columns up to which a row's sum or maximum is taken column by column: NumPy's own loop per row costs more.
FEW = 16
#: Elements of quantised rows handled at a time.
BLOCK = 1 << 16
#: TFLite's int16 softmax works on these grids: exp on [-10, 0], 1 / (1 + x) on [0, 1].
EXP_STEP, ONE_STEP = 10 / 65535, 1 / 65535


def along_rows(function: np.ufunc, x: Array, out: Array) -> None:
    """Reduce the last axis of x into out, where it has size 1."""
    if 0 < x.shape[-1] <= FEW < x.size:
        np.copyto(out, x[..., :1])
        for i in range(1, x.shape[-1]):
            function(out, x[..., i:i + 1], out=out)
    else:
        function.reduce(x, axis=-1, out=out, keepdims=True)


def _float_softmax(beta: float, axis: int, log: bool) -> Callable[..., None]:
    """`step(out, x, t)`, t being x's shape with the axis at 1."""
    def step(out: Array, x: Array, t: Array) -> None:
        to, rows, t = (np.moveaxis(a, axis, -1) for a in (out, x, t))
        along_rows(np.maximum, rows, t)
        np.subtract(rows, t, out=to)
        if beta != 1:
            np.multiply(to, to.dtype.type(beta), out=to)
        if log:
            np.sum(np.exp(to), axis=-1, out=t, keepdims=True)
            np.subtract(to, np.log(t, out=t), out=to)
            return
        np.exp(to, out=to)
        along_rows(np.add, to, t)
        np.divide(to, t, out=to)
    return step


def normalised(site: Site, x: Tensor, beta: float, axis: int, log: bool, exact: Callable[..., Array] | None) -> Run:
    """SOFTMAX or LOG_SOFTMAX; `exact` maps quantised rows [n, c] to raw outputs."""
    step = _float_softmax(beta, axis, log)
    small = tuple(1 if i == axis % x.rank else k for i, k in enumerate(x.shape))
    if not x.size:
        return lambda out, x: None
    if on_grid(x) and on_grid(site.out):
        target = site.out

        def by_real(rows: Array) -> Array:
            real = reals(x, rows)
            made, t = np.empty_like(real), np.empty((len(rows), 1), f32)
            _float_softmax(beta, -1, log)(made, real, t)
            return raw(target, made)
        return by_rows(axis, exact or by_real)
    if x.type.dtype == np.float16:
        return widened(lambda out, x: step(out, x, np.empty(small, x.dtype)))
    site.scratch(small, x.type.dtype)
    return step


def by_rows(axis: int, exact: Callable[[Array], Array]) -> Run:
    """The run of a function of rows [n, c] along an axis, a block of rows at a time."""
    def run(out: Array, x: Array) -> None:
        ends = np.moveaxis(x, axis, -1)
        rows = ends.reshape(-1, ends.shape[-1])
        count = max(1, BLOCK // max(rows.shape[1], 1))
        last = ends.shape[-1] == x.shape[-1] and axis % x.ndim == x.ndim - 1
        made = out.reshape(rows.shape) if last else np.empty(rows.shape, out.dtype)
        for at in range(0, len(rows), count):
            np.copyto(made[at:at + count], exact(rows[at:at + count]), casting="unsafe")
        if not last:
            np.copyto(np.moveaxis(out, axis, -1), made.reshape(ends.shape))
    return run


def _scaled(beta: float, scale: f32) -> tuple[int, int, int]:
    """beta * scale with five integer bits as a multiplier, and the least difference that counts."""
    m, left = multiplier(min(float(f32(beta)) * float(scale) * 2.0**26, 2.0**31 - 1))
    return m, left, -floor(31 * 2.0**26 / 2.0**left)


def exponentials(x: Tensor, beta: float) -> tuple[Array, Array]:
    """Of the differences -255..0 of bytes: which of them count, and their exponentials without integer bits."""
    m, left, least = _scaled(beta, grid(x)[0])
    d = np.arange(-255, 1)
    counts = d >= least
    return counts, np.where(counts, F32.exp(high_mul(wrap32(np.where(counts, d, 0) << left), m), 5), 0)


def softmax8(x: Tensor, out: Tensor, beta: float) -> Callable[[Array], Array]:
    """TFLite's SOFTMAX of bytes (`reference_ops::Softmax`): the exponential is a table of the 256 differences."""
    counts, exps = exponentials(x, beta)
    shares = shift_right(exps, 12)
    (low, high), bits = limits(out), 8 * out.type.dtype.itemsize

    def run(rows: Array) -> Array:
        at = rows.astype(I64)
        at += 255 - at.max(axis=1, keepdims=True)
        r, extra = reciprocal(wrap32(shares[at].sum(axis=1, keepdims=True)), 12)
        share = shift_right(high_mul(r, exps[at]), extra + 31 - bits)
        return np.where(counts[at], np.clip(share + low, low, high), low)
    return run


def curves16() -> tuple[Array, Array]:
    """The 513 points of the exponential and of the reciprocal of TFLite's SOFTMAX of int16."""
    def table(step: float, zero: int, function: Callable[[Array], Array]) -> Array:
        return sampled(_short(step, zero), _short(2 * ONE_STEP, 0), function, np.float64)
    return table(EXP_STEP, 32767, np.exp), table(ONE_STEP, -32768, lambda v: 1 / (1 + v))


def steps16(x: Tensor, beta: float) -> tuple[int, int]:
    """The multiplier from steps of x to those of the exponential's grid."""
    return multiplier(float(f32(grid(x)[0] * f32(beta))) / EXP_STEP)


def softmax16(x: Tensor, beta: float) -> Callable[[Array], Array]:
    """TFLite's SOFTMAX of int16: exponential and reciprocal are tables of 513 points."""
    (exps, inverse), (m, s) = curves16(), steps16(x, beta)

    def run(rows: Array) -> Array:
        d = rows.astype(I64)
        d -= d.max(axis=1, keepdims=True)
        share = between(exps, np.clip(scale32(d, m, s) + 32767, -32768, 32767))
        total = share.sum(axis=1, keepdims=True)
        zeros = leading_zeros(total)
        scaled = ((total << (zeros - 1)) + (1 << 13)) >> 14
        r = between(inverse, np.clip(scaled - 98304, -32768, 32767))
        right = 31 - zeros
        return np.asarray(np.clip((share * r + (I64(1) << (right - 1))) >> right, 0, 32767))
    return run


def _short(scale: float, zero: int) -> Tensor:
    """An int16 tensor on a grid."""
    from ...types import I16, Quant
    return Tensor(I16, (), Quant(scale, zero))


@kernel(n.SOFTMAX, inplace=("x",))
def SOFTMAX(site: Site, x: Tensor, beta: float, axis: int) -> Run:
    out, exact = site.out, None
    if on_grid(x) and on_grid(out):
        bits = 8 * out.type.dtype.itemsize
        if x.type.dtype.itemsize == 1 and (out.scale, grid(out)[1]) == (2.0**-bits, limits(out)[0]):
            exact = softmax8(x, out, beta)
        elif x.type.dtype == out.type.dtype == np.int16 and (out.scale, grid(out)[1]) == (2.0**-15, 0):
            exact = softmax16(x, beta)
    return normalised(site, x, beta, axis, log=False, exact=exact)


def log_softmax8(x: Tensor, out: Tensor) -> Callable[[Array], Array]:
    """TFLite's LOG_SOFTMAX of bytes, whose output has 16 steps a unit and ends at zero."""
    m, left, least = _scaled(1.0, grid(x)[0])
    back = multiplier(2.0 ** (31 - left) / m)
    d = np.arange(-255, 1)
    scaled = scale32(d, m, left)
    shares = np.where(d >= least, shift_right(F32.exp(np.where(d >= least, scaled, 0), 5), 12), 0)
    low, high = limits(out)

    def run(rows: Array) -> Array:
        at = rows.astype(I64)
        at += 255 - at.max(axis=1, keepdims=True)
        log = log_ge1(wrap32(shares[at].sum(axis=1, keepdims=True)), 12, 5)
        limit = np.maximum(least - 1, scale32(wrap32(log - (1 << 31)), *back))
        found = np.clip(shift_right(scaled[at] - log, 22) + high, low, high)
        return np.where(at - 255 > limit, found, low)
    return run


@kernel(n.LOG_SOFTMAX, inplace=("x",))
def LOG_SOFTMAX(site: Site, x: Tensor, beta: float, axis: int) -> Run:
    out = site.out
    fixed = x.type.dtype.itemsize == 1 and out.scale == 1 / 16 and grid(out)[1] == limits(out)[1] and beta == 1
    exact = log_softmax8(x, out) if on_grid(x) and on_grid(out) and fixed else None
    return normalised(site, x, beta, axis, log=True, exact=exact)


@kernel(n.L2_NORMALIZATION)
def L2_NORMALIZATION(site: Site, x: Tensor, axis: int) -> Run:
    """A vector shorter than 1e-6 is divided by that."""
    if on_grid(x):
        return by_rows(axis, _l2_raw(x, site.out))
    if x.type.dtype == np.float16:
        return widened(_l2(axis))
    return _l2(axis)


def _l2(axis: int) -> Run:
    def run(out: Array, x: Array) -> None:
        length = np.sqrt(np.add.reduce(np.square(x), axis=axis, keepdims=True))
        np.divide(x, np.maximum(length, x.dtype.type(1e-6)), out=out)
    return run


def _l2_raw(x: Tensor, out: Tensor) -> Callable[[Array], Array]:
    """TFLite's two kernels: int8 rounds once more than uint8."""
    zero, (low, high) = grid(x)[1], limits(out)

    def run(rows: Array) -> Array:
        v = rows.astype(I64) - zero
        m, s = inv_sqrt((v * v).sum(axis=1, keepdims=True))
        found = scale32(v, m, s + 7) if low else shift_right(high_mul(128 * v, m), -s) + 128
        return np.clip(found, low, high)
    return run


@kernel(n.LOCAL_RESPONSE_NORMALIZATION)
def LOCAL_RESPONSE_NORMALIZATION(site: Site, x: Tensor, radius: int, bias: float, alpha: float, beta: float,
                                 axis: int) -> Run:
    def step(out: Array, x: Array) -> None:
        squares = np.moveaxis(np.square(x), axis, -1)
        size = squares.shape[-1]
        total = squares.copy()
        for d in range(1, min(radius, size - 1) + 1):
            total[..., d:] += squares[..., :-d]
            total[..., :-d] += squares[..., d:]
        kind = x.dtype.type
        factor = np.power(kind(bias) + kind(alpha) * total, kind(-beta))
        np.multiply(np.moveaxis(x, axis, -1), factor, out=np.moveaxis(out, axis, -1))
    return widened(step) if x.type.dtype == np.float16 else step


@kernel(n.INSTANCE_NORMALIZATION)
def INSTANCE_NORMALIZATION(site: Site, x: Tensor, gamma: float, beta: float, eps: float, nchw: bool) -> Run:
    over = (2, 3) if nchw else (1, 2)
    count = prod(x.shape[a] for a in over)

    def step(out: Array, x: Array) -> None:
        kind = x.dtype.type
        np.subtract(x, np.add.reduce(x, axis=over, keepdims=True) / kind(count), out=out)
        variance = np.add.reduce(np.square(out), axis=over, keepdims=True) / kind(count)
        np.multiply(out, kind(gamma) / np.sqrt(variance + kind(eps)), out=out)
        np.add(out, kind(beta), out=out)
    return widened(step) if x.type.dtype == np.float16 else step
