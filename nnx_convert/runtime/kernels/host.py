"""What NNAPI has no operation for: composites that are left whole, and the host's own operations."""
from __future__ import annotations

from functools import partial

import numpy as np

from ...errors import RunError
from ...kinds import scheme_pads
from ...ops import host as h
from ...types import Array, Quant, Tensor
from ..kernel import Compute, Run, Site, kernel, sized
from . import quantized as q
from .conv import BATCH_MATMUL
from .elements import Step, binary, in_pieces, unary, widened
from .elementwise import chosen, clamp, limited, sloped, ufunc
from .gather import within
from .reduce import best
from .tables import looked_up, patterns

I64 = np.int64


@kernel(h.LEAKY_RELU, inplace=("x",))
def LEAKY_RELU(site: Site, x: Tensor, alpha: float) -> Run:
    inner, temps, passes = sloped(float(alpha))

    def step(out: Array, x: Array, t: Array) -> None:
        inner(out, x, x.dtype.type(alpha), t)
    return unary(site, x, step, exact=partial(q.leaky_relu, alpha=alpha), temps=temps, passes=passes)


@kernel(h.SQUARE, inplace=("x",))
def SQUARE(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.square), passes=1, ints=True)


@kernel(h.CEIL, inplace=("x",))
def CEIL(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.ceil), passes=1)


@kernel(h.COS, inplace=("x",))
def COS(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.cos), passes=1)


@kernel(h.ROUND, inplace=("x",))
def ROUND(site: Site, x: Tensor) -> Run:
    return unary(site, x, ufunc(np.rint), passes=1)


@kernel(h.RELU_0_TO_1, inplace=("x",))
def RELU_0_TO_1(site: Site, x: Tensor) -> Run:
    return limited(site, x, 0, 1)


@kernel(h.SQUARED_DIFFERENCE, inplace=("x", "y"))
def SQUARED_DIFFERENCE(site: Site, x: Tensor, y: Tensor) -> Run:
    def step(out: Array, x: Array, y: Array) -> None:
        np.subtract(x, y, out=out)
        np.square(out, out=out)
    return binary(site, x, y, step, exact=q.squared_difference, passes=2)


def divided(site: Site, x: Tensor, y: Tensor, step: Step, passes: int = 1) -> Run:
    """The run of a division; raises `RunError` where an integer is divided by zero, as TFLite does."""
    run = binary(site, x, y, step, passes=passes)
    if y.type.dtype.kind not in "iu":
        return run
    zero = y.quant.zero if isinstance(y.quant, Quant) else 0

    def checked(out: Array, x: Array, y: Array, *scratch: Array) -> None:
        if (y == zero).any():
            raise RunError("division by zero")
        run(out, x, y, *scratch)
    return checked


@kernel(h.FLOOR_DIV, inplace=("x", "y"))
def FLOOR_DIV(site: Site, x: Tensor, y: Tensor) -> Run:
    """Floats are divided in float64, as TFLite does, where no quotient is rounded up to an integer."""
    def step(out: Array, x: Array, y: Array) -> None:
        if out.dtype.kind == "f":
            np.copyto(out, np.floor(np.divide(x, y, dtype=np.float64)), casting="unsafe")
        else:
            np.floor_divide(x, y, out=out)
    return divided(site, x, y, step, passes=2)


@kernel(h.FLOOR_MOD, inplace=("x", "y"))
def FLOOR_MOD(site: Site, x: Tensor, y: Tensor) -> Run:
    """The exact remainder, with the sign of y."""
    def step(out: Array, x: Array, y: Array) -> None:
        np.remainder(x, y, out=out)
    return divided(site, x, y, step)


@kernel(h.TRUNC_DIV)
def TRUNC_DIV(site: Site, x: Tensor, y: Tensor) -> Run:
    def step(out: Array, x: Array, y: Array) -> None:
        if out.dtype.kind == "f":
            np.divide(x, y, out=out)
            return
        down = np.floor_divide(x, y)
        np.add(down, (down < 0) & (down * y != x), out=out, casting="unsafe")
    return divided(site, x, y, step)


@kernel(h.BROADCAST_TO)
def BROADCAST_TO(site: Site, x: Tensor, shape: Tensor) -> Run:
    return lambda out, x, shape: np.copyto(out, x)


@kernel(h.WHERE)
def WHERE(site: Site, cond: Tensor, x: Tensor, y: Tensor) -> Run:
    """A condition of rank 1 as long as the first axis, and not the last, chooses rows."""
    inner, full = chosen(site, cond, x, y), site.out.shape
    rows = cond.rank == 1 < len(full) and cond.shape == full[:1] != full[-1:]
    shape = (*cond.shape, *(1,) * (len(full) - 1)) if rows else cond.shape
    return lambda out, cond, x, y: inner(out, cond.reshape(shape), x, y)


@kernel(h.MATMUL)
def MATMUL(site: Site, x: Tensor, y: Tensor, adj_x: bool, adj_y: bool) -> Run:
    return BATCH_MATMUL(site, x, y, adj_x, adj_y)


@kernel(h.GATHER_BATCHED)
def GATHER_BATCHED(site: Site, x: Tensor, indices: Tensor, axis: int, batch: int) -> Run:
    full, size = x.shape, x.shape[axis]
    count = int(np.prod(full[:batch], dtype=I64)), int(np.prod(full[batch:axis], dtype=I64))
    rest = full[axis + 1:]

    def run(out: Array, x: Array, indices: Array) -> None:
        within(indices, size)
        rows = indices.reshape(count[0], 1, -1)
        picked = x.reshape(*count, size, *rest)[
            np.arange(count[0]).reshape(-1, 1, 1), np.arange(count[1]).reshape(1, -1, 1), rows]
        np.copyto(out, picked.reshape(out.shape))
    return run


def tuples(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Index tuples along the last axis as one array per axis; raises `RunError` where one is outside."""
    parts = tuple(np.moveaxis(indices, -1, 0))
    for part, size in zip(parts, shape, strict=False):
        within(part, size)
    return parts


@kernel(h.GATHER_ND)
def GATHER_ND(site: Site, x: Tensor, indices: Tensor) -> Run:
    shape = x.shape

    def run(out: Array, x: Array, indices: Array) -> None:
        np.copyto(out, x[tuples(indices, shape)].reshape(out.shape))
    return run


@kernel(h.SCATTER_ND)
def SCATTER_ND(site: Site, indices: Tensor, updates: Tensor, shape: Tensor) -> Run:
    """Updates of one place are added up."""
    full = site.out.shape

    def run(out: Array, indices: Array, updates: Array, shape: Array) -> None:
        out.fill(0)
        np.add.at(out, tuples(indices, full), updates)
    return run


@kernel(h.TO_BOOL)
def TO_BOOL(site: Site, x: Tensor) -> Run:
    return lambda out, x: np.not_equal(x, 0, out=out)


@kernel(h.TO_MASK, inplace=("x",))
def TO_MASK(site: Site, x: Tensor) -> Run:
    """Any number but zero is true."""
    return lambda out, x: np.not_equal(x, 0, out=out, casting="unsafe")


@kernel(h.CONV_3D)
def CONV_3D(site: Site, x: Tensor, w: Tensor, b: Tensor | None, scheme: int, sd: int, sh: int, sw: int, act: int,
            dd: int, dh: int, dw: int) -> Run:
    """Float only; one matrix product over all windows."""
    strides, apart, size = (sd, sh, sw), (dd, dh, dw), x.shape[1:4]
    pads = [scheme_pads(scheme, *of) for of in zip(size, w.shape[:3], strides, apart, strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[:3], apart, strict=True)]
    counts = site.out.shape[1:4]
    filled = (x.shape[0], *(n + sum(p) for n, p in zip(size, pads, strict=True)), x.shape[4])
    inner = tuple(slice(p[0], p[0] + n) for n, p in zip(size, pads, strict=True))
    cut = (slice(None), *(slice(0, (c - 1) * s + 1, s) for c, s in zip(counts, strides, strict=True)), slice(None),
           *(slice(None, None, d) for d in apart))

    def step(out: Array, x: Array, w: Array, b: Array | None) -> None:
        padded = np.zeros(filled, x.dtype)
        padded[(slice(None), *inner)] = x
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2, 3))[cut]
        rows = np.moveaxis(windows, 4, -1).reshape(-1, w[..., 0].size)
        np.copyto(out, (rows @ w.reshape(rows.shape[1], -1)).reshape(out.shape))
        if b is not None:
            np.add(out, b, out=out)
        clamp(out, act)
    return _float3(step) if x.type.dtype == np.float16 else step


def _float3(step: Step) -> Run:
    """A step whose last argument may be left out, on float16."""
    def run(out: Array, x: Array, w: Array, b: Array | None) -> None:
        given = (x, w) if b is None else (x, w, b)
        widened(lambda out, x, w, b=None: step(out, x, w, b))(out, *given)
    return run


@sized(h.NON_ZERO)
def NON_ZERO(site: Site, x: Tensor) -> Compute:
    return lambda x: [np.argwhere(x).astype(site.out.type.dtype)]


@kernel(h.RFFT)
def RFFT(site: Site, x: Tensor, length: Tensor) -> Run:
    """Cut or filled with zeros to `length` first."""
    rows, columns = length.ints()

    def run(out: Array, x: Array, length: Array) -> None:
        np.copyto(out, np.fft.rfft2(x, (rows, columns)), casting="unsafe")
    return run


@kernel(h.COMPLEX_ABS)
def COMPLEX_ABS(site: Site, x: Tensor) -> Run:
    return lambda out, x: np.absolute(x, out=out)


@kernel(h.ATAN2, inplace=("x", "y"))
def ATAN2(site: Site, x: Tensor, y: Tensor) -> Run:
    return binary(site, x, y, ufunc(np.arctan2), ints=False)


@sized(h.SEGMENT_SUM)
def SEGMENT_SUM(site: Site, x: Tensor, ids: Tensor) -> Compute:
    """As many rows as the last id says; raises `RunError` where ids descend or are negative."""
    def run(x: Array, ids: Array) -> list[Array]:
        if ids.size and (ids[0] < 0 or (np.diff(ids) < 0).any()):
            raise RunError("segment ids are not ascending")
        made = np.zeros((int(ids[-1]) + 1 if ids.size else 0, *x.shape[1:]), x.dtype)
        np.add.at(made, ids, x)
        return [made]
    return run


@kernel(h.TOPK_FIRST)
def TOPK_FIRST(site: Site, x: Tensor, k: int) -> Run:
    return best(site, x, k, first=True)


@kernel(h.REQUANTIZE)
def REQUANTIZE(site: Site, x: Tensor, to: int) -> Run:
    """Integers on another grid: one multiplier, rounded twice."""
    exact = q.rescale(x, site.out)
    if x.type.dtype.itemsize <= 2:
        return looked_up(np.asarray(exact(patterns(x)), site.out.type.dtype))

    def step(out: Array, x: Array) -> None:
        np.copyto(out, exact(x), casting="unsafe")
    return in_pieces(site, (x,), step)
