"""Products of float activations and int8 weights; see `runtime.hybrid` for the arithmetic."""
from __future__ import annotations

import numpy as np

from ...kinds import scheme_pads
from ...ops import hybrid as h
from ...ops.conv import scatter_pads
from ...types import Array, F32, F64, QPC, Tensor
from ..cells import ACTIVATIONS
from ..fixedpoint import f32, grid, scales
from ..hybrid import Matrix, centred, exactly, of_rows, quantized
from ..kernel import Run, Site, kernel
from ..products import BOUNDS, Products, constant
from ..windows import Window
from .conv import gathered, pointwise, tapped


@kernel(h.HYBRID_FULLY_CONNECTED)
def HYBRID_FULLY_CONNECTED(site: Site, x: Tensor, w: Tensor, b: Tensor | None, asymmetric: bool, act: int) -> Run:
    matrix = of_rows([centred(w)], [w], asymmetric)
    depth = w.shape[1]

    def run(out: Array, x: Array, _w: Array, b: Array | None) -> None:
        found = matrix.times(x.reshape(-1, depth))
        if b is not None:
            found += b
        ACTIVATIONS[act](found)
        np.copyto(out, found)
    return run


@kernel(h.HYBRID_MATMUL)
def HYBRID_MATMUL(site: Site, x: Tensor, y: Tensor, adj_x: bool, adj_y: bool, asymmetric: bool) -> Run:
    """One scale for all of y; several are those of its columns."""
    cols, batch = site.out.shape[-1], site.out.shape[:-2]
    scale, zero = scales(y, cols), grid(y)[1]

    def run(out: Array, x: Array, y: Array) -> None:
        a, b = x.swapaxes(-1, -2) if adj_x else x, y.swapaxes(-1, -2) if adj_y else y
        a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
        for i in np.ndindex(*batch):
            out[i] = Matrix(b[i].astype(np.int16) - zero, scale, asymmetric).times(a[i])
    return run


def copied(sums: Array, out: Array, _work: Array | None) -> None:
    """The end of a product whose sums are wanted as they are."""
    if sums is not out:
        np.copyto(out, sums, casting="unsafe")


def summing(weights: Array) -> Products:
    """The exact sums of products of int8 images with weights [k, n], as float32."""
    exact = exactly(weights)
    return Products(exact, 0.0, copied, exact.dtype == f32)


def over_images(site: Site, x: Tensor, rule: Products, wide: bool, scale: Array, act: int, inner: Run,
                twice: bool = False) -> Run:
    """The run of a convolution by `inner`, which takes images in the rule's type. `twice`: two factors, not one."""
    site.scratch(x.shape, rule.dtype)
    (low, high), n = BOUNDS[act], x.shape[0]

    def run(out: Array, x: Array, w: Array, b: Array | None, *scratch: Array) -> None:
        *others, held = scratch
        found = quantized(x.reshape(n, -1), wide)
        np.copyto(held, found.ints.reshape(held.shape))
        inner(out, held, w, b, *others)
        factors = found.scale.reshape(-1, 1, 1, 1)
        out *= scale if twice else factors * scale
        if twice:
            out *= factors
        if b is not None:
            out += b
        if low is not None or high is not None:
            np.clip(out, low, high, out=out)
    return run


def window_of(x: Tensor, w: Tensor, scheme: int, strides: tuple[int, int], dilations: tuple[int, int]) -> Window:
    """The window of a padding scheme; strides and dilations are h, w."""
    n, height, width, c = x.shape
    (kh, kw), (sh, sw), (dh, dw) = w.shape[1:3], strides, dilations
    pads = (*scheme_pads(scheme, height, kh, sh, dh), *scheme_pads(scheme, width, kw, sw, dw))
    return Window((n, height, width, c), (kh, kw), strides, dilations, pads)


def in_type(x: Tensor, rule: Products) -> Tensor:
    """The images as `over_images` hands them over."""
    return Tensor(F32 if rule.dtype == f32 else F64, x.shape)


@kernel(h.HYBRID_CONV_2D)
def HYBRID_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor | None, scheme: int, sw: int, sh: int, dw: int, dh: int,
                   groups: int, asymmetric: bool, act: int) -> Run:
    units = w.shape[0]
    rule = summing(centred(w).reshape(units, -1).T)
    window = window_of(x, w, scheme, (sh, sw), (dh, dw))
    inner = pointwise(site, window, rule) if window.pointwise and groups == 1 \
        else gathered(site, in_type(x, rule), window, rule, groups)
    return over_images(site, x, rule, asymmetric, scales(w, units), act, inner, twice=w.type == QPC)


@kernel(h.HYBRID_DEPTHWISE_CONV_2D)
def HYBRID_DEPTHWISE_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor | None, scheme: int, sw: int, sh: int, dw: int,
                             dh: int, act: int) -> Run:
    units = w.shape[3]
    rule = summing(centred(w).reshape(-1, units))
    inner = tapped(site, window_of(x, w, scheme, (sh, sw), (dh, dw)), rule, units, units // x.shape[3])
    return over_images(site, x, rule, True, scales(w, units), act, inner)


@kernel(h.HYBRID_TRANSPOSE_CONV_2D)
def HYBRID_TRANSPOSE_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor | None, shape: Tensor, scheme: int, sw: int,
                             sh: int, act: int) -> Run:
    """For each pixel of the output, products are added in the order of the pixels and channels of x they are of."""
    (n, height, width, depth), (units, kh, kw, _), (_, rows, columns, _) = x.shape, w.shape, site.out.shape
    top, _ = scatter_pads(scheme, height, rows, kh, sh)
    left, _ = scatter_pads(scheme, width, columns, kw, sw)
    weights, scale, (low, high) = centred(w).astype(f32), scales(w, units), BOUNDS[act]
    full = max((height - 1) * sh + kh, rows + top), max((width - 1) * sw + kw, columns + left)
    site.scratch((*full, units))
    taps = [(y, z, c) for y in range(kh)[::-1] for z in range(kw)[::-1] for c in range(depth)]

    def run(out: Array, x: Array, _w: Array, b: Array | None, _shape: Array, sums: Array) -> None:
        found = quantized(x.reshape(n, -1), True)
        for i, image in enumerate(found.ints.reshape(x.shape)):
            sums.fill(0)
            for y, z, c in taps:
                products = image[:, :, c, None] * weights[:, y, z, c] * scale * found.scale[i]
                sums[y:y + (height - 1) * sh + 1:sh, z:z + (width - 1) * sw + 1:sw] += products
            np.copyto(out[i], sums[top:top + rows, left:left + columns])
        if b is not None:
            out += b
        if low is not None or high is not None:
            np.clip(out, low, high, out=out)
    return run


@kernel(h.HYBRID_SVDF)
def HYBRID_SVDF(site: Site, x: Tensor, wf: Tensor, wt: Tensor, b: Tensor | None, state: Tensor, rank: int, act: int,
                asymmetric: bool) -> Run:
    """What is added up over time is added in order. The state that goes on has its last place free, as SVDF's."""
    filters, memory = wt.shape
    matrix = of_rows([centred(wf)], [wf], asymmetric)
    over_time = constant(wt) if wt.type == F32 else centred(wt).astype(f32) * grid(wt)[0]

    def run(state_out: Array, out: Array, x: Array, _wf: Array, _wt: Array, b: Array | None, state: Array) -> None:
        held = state.reshape(-1, filters, memory).copy()
        held[:, :, -1] = matrix.times(x)
        dots = in_order(held * over_time)
        sums = in_order(dots.reshape(len(x), -1, rank))
        if b is not None:
            sums += b
        ACTIVATIONS[act](sums)
        np.copyto(out, sums)
        held[:, :, :-1] = held[:, :, 1:]
        held[:, :, -1] = 0
        np.copyto(state_out, held.reshape(state_out.shape))
    return run


def in_order(x: Array) -> Array:
    """Sums along the last axis, one addition after the other."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for i in range(x.shape[-1]):
        total += x[..., i]
    return total
