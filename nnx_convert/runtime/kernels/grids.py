"""Quantisation as ONNX has it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import grids as g
from ...types import F4E2M1, I2, I4, NARROW_FLOATS, REALS, U2, U4, Array, Shape, Tensor, Type
from ..fixedpoint import f32, grid
from ..kernel import Run, Site, kernel

#: Beyond it every sum with a zero point saturates.
FAR = 2.0**31
BITS = {I4: (-8, 7), U4: (0, 15), I2: (-2, 1), U2: (0, 3)}


def bounds(type_: Type) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    if type_ in BITS:
        return BITS[type_]
    info = np.iinfo(type_.dtype)
    return int(info.min), int(info.max)


def spread(own: Array, of: Shape, axis: int, block: int) -> Array:
    """A scale or a zero point so that it broadcasts against a tensor of a shape."""
    if own.size == 1:
        return own.reshape(())
    axis %= len(of)
    if not block:
        return own.reshape([-1 if i == axis else 1 for i in range(len(of))])
    return np.repeat(own, block, axis)[(slice(None),) * axis + (slice(of[axis]),)]


@kernel(g.QUANTIZE_LINEAR)
def QUANTIZE_LINEAR(site: Site, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int, saturate: bool,
                    to: int) -> Run:
    """The quotient is of the type of x and the scale, float32 where they differ, float64 of integers."""
    shape, to_type = x.shape, site.out.type
    finish = narrowed(to_type, saturate) if to_type in REALS else whole(to_type)
    common: Any = scale.type.dtype if x.type == scale.type else np.float64 if x.type.dtype.kind in "iu" else f32

    def run(out: Array, x: Array, scale: Array, zero: Array | None) -> None:
        with np.errstate(all="ignore"):
            steps = x.astype(common) / spread(scale, shape, axis, block).astype(common)
            np.copyto(out, finish(steps, None if zero is None else spread(zero, shape, axis, block)), casting="unsafe")
    return run


def whole(to: Type) -> Callable[[Array, Array | None], Array]:
    """Steps as integers of a type, saturated; not a number is the least."""
    low, high = bounds(to)

    def finish(steps: Array, zero: Array | None) -> Array:
        found = np.rint(np.clip(steps.astype(np.float64), -FAR, FAR))
        if zero is not None:
            found = found + zero.astype(np.float64)
        return np.asarray(np.nan_to_num(np.clip(found, low, high), nan=low), np.int64)
    return finish


def narrowed(to: Type, saturate: bool) -> Callable[[Array, Array | None], Array]:
    """Steps as narrow floats; those of 4 bits always saturate."""
    import ml_dtypes
    most = float(ml_dtypes.finfo(to.dtype).max) if to in NARROW_FLOATS else np.inf    # type: ignore[no-untyped-call]

    def finish(steps: Array, zero: Array | None) -> Array:
        steps = steps.astype(f32)
        if to == F4E2M1 and zero is not None:
            steps = steps + zero.astype(f32)
        return np.asarray((np.clip(steps, -most, most) if saturate or to == F4E2M1 else steps).astype(to.dtype))
    return finish


@kernel(g.DEQUANTIZE_LINEAR)
def DEQUANTIZE_LINEAR(site: Site, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int, to: int) -> Run:
    """In float32: the difference, then the product; integers of 32 bits are subtracted as such."""
    shape = x.shape
    exact: Any = np.int64 if x.type.dtype.kind in "iu" else f32

    def run(out: Array, x: Array, scale: Array, zero: Array | None) -> None:
        steps = x.astype(exact)
        if zero is not None:
            steps = steps - spread(zero, shape, axis, block).astype(exact)
        np.copyto(out, steps.astype(f32) * spread(scale, shape, axis, block).astype(f32), casting="unsafe")
    return run


@kernel(g.QUANTIZE_EVEN)
def QUANTIZE_EVEN(site: Site, x: Tensor, to: int) -> Run:
    scale, zero = grid(site.out)
    finish, offset = whole(site.out.type), np.asarray(zero)

    def run(out: Array, x: Array) -> None:
        with np.errstate(all="ignore"):
            np.copyto(out, finish(x.astype(f32) / scale, offset), casting="unsafe")
    return run


@kernel(g.RELABEL, inplace=("x",))
def RELABEL(site: Site, x: Tensor) -> Run:
    return np.copyto


@kernel(g.MATMUL_INTEGER)
def MATMUL_INTEGER(site: Site, x: Tensor, y: Tensor, zx: Tensor | None, zy: Tensor | None) -> Run:
    """Sums in float64 are exact as long as 32 bits hold them; beyond they wrap."""
    site.product(x.shape[-2], x.shape[-1], y.shape[-1])

    def run(out: Array, x: Array, y: Array, zx: Array | None, zy: Array | None) -> None:
        sums = np.matmul(centred(x, zx), centred(y, zy))
        np.copyto(out, sums.astype(np.int64), casting="unsafe")
    return run


def centred(x: Array, zero: Array | None) -> Array:
    """Codes less a zero point, as float64."""
    return x.astype(np.float64) if zero is None else x - zero.astype(np.float64)


@kernel(g.CONV_INTEGER)
def CONV_INTEGER(site: Site, x: Tensor, w: Tensor, zx: Tensor | None, zw: Tensor | None, pads: Tensor, strides: Tensor,
                 dilations: Tensor, groups: int) -> Run:
    """Windows of any number of axes times the filters, group by group; a border is zero."""
    axes, ends = tuple(range(2, x.rank)), pads.ints()
    border = [(0, 0), (0, 0), *zip(ends[:len(axes)], ends[len(axes):], strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations.ints(), strict=True)]
    cut = (slice(None), slice(None), *(slice(None, None, s) for s in strides.ints()),
           *(slice(None, None, d) for d in dilations.ints()))
    depth, units = w.shape[1], w.shape[0] // groups

    def run(out: Array, x: Array, w: Array, zx: Array | None, zw: Array | None, *_: Array) -> None:
        image = np.pad(centred(x, zx), border)
        filters = centred(w, None if zw is None else zw.reshape(-1, *(1,) * (w.ndim - 1)))
        views = np.lib.stride_tricks.sliding_window_view(image, reach, axes)[cut]     # [n, c, places, kernel]
        kernel_axes = tuple(range(views.ndim - len(axes), views.ndim))
        for i in range(groups):
            own = views[:, i * depth:(i + 1) * depth]
            part = np.tensordot(own, filters[i * units:(i + 1) * units], ((1, *kernel_axes), (1, *axes)))
            out[:, i * units:(i + 1) * units] = np.moveaxis(part, -1, 1).astype(np.int64)
    return run


def in_bytes(x: Array) -> tuple[Array, np.float32]:
    """x in bytes less the zero point, and their scale, as DynamicQuantizeLinear chooses it: of what there is and 0."""
    least, most = min(f32(0), x.min(initial=0)), max(f32(0), x.max(initial=0))
    scale = f32(1) if most == least else f32((most - least) / f32(255))
    zero = np.rint(np.clip(f32(-least / scale), 0, 255))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(f32) - zero, scale


def product(x: Array, w: Array, scale: Array) -> Array:
    """x in bytes times whole numbers, as floats; the sums are exact in float64."""
    steps, own = in_bytes(x)
    return np.asarray((steps.astype(np.float64) @ w).astype(f32) * (own * scale), f32)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) in float32."""
    return np.asarray(f32(1) / (f32(1) + np.exp(-x)), f32)


@kernel(g.DYNAMIC_QUANTIZE_LSTM)
def DYNAMIC_QUANTIZE_LSTM(site: Site, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
                          h: Tensor | None, c: Tensor | None, peepholes: Tensor | None, ws: Tensor, wz: Tensor,
                          rs: Tensor, rz: Tensor, backward: bool, coupled: bool, clip: float) -> Run:
    """The first direction runs backward where that is set, a second one always does."""
    several, units, _ = r.shape
    limit = clip if clip > 0 else np.inf

    def run(y: Array, h_out: Array, c_out: Array, x: Array, w: Array, r: Array, b: Array | None,
            lengths: Array | None, h: Array | None, c: Array | None, p: Array | None, *grids: Array) -> None:
        counts = np.full(x.shape[1], len(x)) if lengths is None else lengths
        for d in range(several):
            ws, wz, rs, rz = (v.reshape(several, -1)[d] for v in grids)
            cell = _Cell(w[d] - wz.astype(np.float64), r[d] - rz.astype(np.float64), ws, rs,
                         None if b is None else b[d, :4 * units] + b[d, 4 * units:],
                         None if p is None else p[d].reshape(3, units), coupled, limit)
            state = [np.zeros((x.shape[1], units), f32) if v is None else v[d].copy() for v in (h, c)]
            y[:, d], h_out[d], c_out[d] = cell.over(x, counts, state[0], state[1], backward or d > 0)
    return run


@frozen
class _Cell:
    """One direction: weights as whole numbers with their scales."""

    w: Array
    r: Array
    ws: Array
    rs: Array
    b: Array | None
    p: Array | None
    coupled: bool
    limit: float

    def over(self, x: Array, counts: Array, h: Array, c: Array, backward: bool) -> tuple[Array, Array, Array]:
        """All outputs and the last states; a row that has ended gives zeros, and these count where h is quantised."""
        y, most = np.zeros((*x.shape[:2], h.shape[1]), f32), int(counts.max(initial=0))
        steps = product(x[:most].reshape(-1, x.shape[2]), self.w, self.ws).reshape(most, x.shape[1], -1)
        rows, last_h, last_c = np.arange(x.shape[1]), h.copy(), c.copy()
        for t in range(most):
            at, now = counts - 1 - t if backward else np.full_like(counts, t), t < counts
            h, c = self.step(steps[at, rows], h, c)
            h[~now] = 0
            y[at[now], rows[now]], last_h[now], last_c[now] = h[now], h[now], c[now]
        return y, last_h, last_c

    def step(self, given: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """The next states, of the products of x."""
        sums = given + product(h, self.r, self.rs)
        i, o, f, g = np.split(sums if self.b is None else sums + self.b, 4, axis=1)
        pi, po, pf = self.p if self.p is not None else (f32(0),) * 3
        i = sigmoid(self.cut(i + pi * c))
        f = f32(1) - i if self.coupled else sigmoid(self.cut(f + pf * c))
        c = f * c + i * np.tanh(self.cut(g))
        return sigmoid(self.cut(o + po * c)) * np.tanh(c), c

    def cut(self, x: Array) -> Array:
        return x if self.limit == np.inf else np.clip(x, -self.limit, self.limit)
