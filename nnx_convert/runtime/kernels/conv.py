"""Convolutions and matrix products, as matrix products over gathered windows or sums over taps."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...errors import RunError
from ...ops import conv
from ...types import F32, Array, ChannelQuant, Tensor
from ..fixedpoint import f32, grid, multipliers, scale32, scale64, scales
from ..kernel import Run, Site, kernel
from ..products import BOUNDS, Products, constant, products
from ..windows import CHUNK, Taps, Window, accumulate, put_padded, windows_of

#: Makes a kernel's run for images in NHWC order: (image shape) -> run.
Images = Callable[[tuple[int, int, int, int]], Run]


def nhwc(site: Site, x: Tensor, nchw: bool, make: Images) -> Run:
    """The run of an image operation; channels-first images go through copies in its own order."""
    if not nchw:
        n, h, w, c = x.shape
        return make((n, h, w, c))
    n, c, h, w = x.shape
    inner = make((n, h, w, c))
    out_n, out_c, out_h, out_w = site.out.shape
    site.scratch((n, h, w, c), x.type.dtype)
    site.scratch((out_n, out_h, out_w, out_c), site.out.type.dtype)

    def run(out: Array, x: Array, *rest: Array) -> None:
        *others, image, result = rest
        np.copyto(image, x.transpose(0, 2, 3, 1))
        inner(result, image, *others)
        np.copyto(out, result.transpose(0, 3, 1, 2))
    return run


@kernel(conv.CONV_2D)
def CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int, sh: int,
            act: int, nchw: bool, dw: int, dh: int) -> Run:
    kh, kw = w.shape[1:3]
    rule = products(site, x, w, constant(w).reshape(w.shape[0], -1).T, b, act)

    def make(image: tuple[int, int, int, int]) -> Run:
        window = Window(image, (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr))
        return pointwise(site, window, rule) if window.pointwise else gathered(site, x, window, rule)
    return nhwc(site, x, nchw, make)


def pointwise(site: Site, window: Window, rule: Products) -> Run:
    """The image itself is the matrix; a band of pixels at a time."""
    depth, units = rule.weights.shape
    pixels = prod(window.image[:3])
    step = max(1, min(pixels, CHUNK // max(depth, units)))
    held = not rule.direct or rule.dtype != f32
    if held:
        site.scratch((step, depth), rule.dtype)
    rule.ask(site, step * units)
    site.product(step, depth, units)

    def run(out: Array, x: Array, _w: Array, _b: Array, *scratch: Array) -> None:
        rows, flat = x.reshape(pixels, depth), out.reshape(pixels, units)
        own, work = rule.given(scratch)
        for at in range(0, pixels, step):
            part, to = rows[at:at + step], flat[at:at + step]
            if held:
                np.copyto(scratch[0][:len(part)], part, casting="unsafe")
                part = scratch[0][:len(part)]
            sums = to if own is None else own[:to.size].reshape(to.shape)
            np.matmul(part, rule.weights, out=sums)
            rule.finish(sums, to, work)
    return run


def gathered(site: Site, x: Tensor, window: Window, rule: Products, groups: int = 1) -> Run:
    """Windows copied into rows, a band of output rows at a time, then one matrix product a group."""
    (n, _, _, c), (rows, columns), units = window.image, window.out, rule.weights.shape[1]
    band = window.band_rows(max(window.depth, units))
    copied = any(window.pads) or x.type.dtype != rule.dtype
    site.scratch((band * columns, *window.size, c), rule.dtype)
    if copied:
        site.scratch(window.padded, rule.dtype)
    rule.ask(site, band * columns * units)
    site.product(band * columns, window.depth, units // groups)
    parts = np.split(rule.weights, groups, axis=1) if groups > 1 else [rule.weights]

    def run(out: Array, x: Array, _w: Array, _b: Array, held: Array, *rest: Array) -> None:
        flat = out.reshape(n, rows * columns, units)
        own, work = rule.given(rest)
        for image in range(n):
            if copied:
                put_padded(rest[0], x[image], window.pads[0], window.pads[2], rule.fill)
            views = windows_of(rest[0] if copied else x[image], window)
            for at in range(0, rows, band):
                count = min(band, rows - at) * columns
                np.copyto(held[:count].reshape(-1, columns, *window.size, c), views[at:at + band])
                to = flat[image, at * columns:at * columns + count]
                sums = to if own is None else own[:to.size].reshape(to.shape)
                grouped(held[:count], parts, sums)
                rule.finish(sums, to, work)
    return run


def grouped(held: Array, parts: list[Array], sums: Array) -> None:
    """Windows [p, kh, kw, c] times weights, each group's channels with the group's weights."""
    if len(parts) == 1:
        np.matmul(held.reshape(len(held), -1), parts[0], out=sums)
        return
    inner, units = held.shape[3] // len(parts), parts[0].shape[1]
    for i, part in enumerate(parts):
        own = held[..., i * inner:(i + 1) * inner].reshape(len(held), -1)
        sums[:, i * units:(i + 1) * units] = own @ part


@kernel(conv.GROUPED_CONV_2D)
def GROUPED_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int,
                    sh: int, groups: int, act: int, nchw: bool) -> Run:
    kh, kw = w.shape[1:3]
    rule = products(site, x, w, constant(w).reshape(w.shape[0], -1).T, b, act)

    def make(image: tuple[int, int, int, int]) -> Run:
        return gathered(site, x, Window(image, (kh, kw), (sh, sw), (1, 1), (pt, pb, pl, pr)), rule, groups)
    return nhwc(site, x, nchw, make)


@kernel(conv.DEPTHWISE_CONV_2D)
def DEPTHWISE_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor, pl: int, pr: int, pt: int, pb: int, sw: int,
                      sh: int, mult: int, act: int, nchw: bool, dw: int, dh: int) -> Run:
    kh, kw, channels = w.shape[1:]
    rule = products(site, x, w, constant(w).reshape(kh * kw, channels), b, act,
                    exact="wide" if x.type.dtype.itemsize == 2 and x.type.dtype.kind == "i" else "")

    def make(image: tuple[int, int, int, int]) -> Run:
        window = Window(image, (kh, kw), (sh, sw), (dh, dw), (pt, pb, pl, pr))
        return tapped(site, window, rule, channels, mult)
    return nhwc(site, x, nchw, make)


def tapped(site: Site, window: Window, rule: Products, channels: int, mult: int) -> Run:
    """A sum over the filter's taps, each a product of two long runs."""
    taps, (rows, columns), n = Taps.of(window, channels), window.out, window.image[0]
    weights = taps.weights(rule.weights)
    band = window.band_rows(channels)
    tiled = (columns // taps.tile, taps.tile * channels)
    site.scratch(taps.shape, rule.dtype)
    site.scratch((band, *tiled), rule.dtype)
    rule.ask(site, band * columns * channels)

    def run(out: Array, x: Array, _w: Array, _b: Array, dealt: Array, product: Array, *rest: Array) -> None:
        own, work = rule.given(rest)
        for image in range(n):
            taps.deal(dealt, np.repeat(x[image], mult, axis=2) if mult > 1 else x[image], rule.fill)
            for at in range(0, rows, band):
                count = min(band, rows - at)
                to = out[image, at:at + count]
                sums = to if own is None else own[:to.size].reshape(to.shape)
                accumulate(sums.reshape(count, *tiled), taps.views(dealt, at, count), weights, product[:count])
                rule.finish(sums, to, work)
    return run


@kernel(conv.TRANSPOSE_CONV_2D)
def TRANSPOSE_CONV_2D(site: Site, x: Tensor, w: Tensor, b: Tensor | None, pl: int, pr: int, pt: int, pb: int, sw: int,
                      sh: int, act: int, nchw: bool) -> Run:
    """Each pixel's products with the whole filter, added where the filter lies on the output."""
    units, kh, kw, depth = w.shape
    laid = constant(w).transpose(3, 1, 2, 0)
    rule = products(site, x, w, laid.reshape(-1, units), b, act, centred=True)
    spread = np.ascontiguousarray(rule.weights).reshape(depth, kh * kw * units)
    heads, tails = (pt, pl), (pb, pr)

    def make(image: tuple[int, int, int, int]) -> Run:
        return scattered(site, image, (kh, kw, units), (sh, sw), heads, tails, rule, spread)
    return nhwc(site, x, nchw, make)


def scattered(site: Site, image: tuple[int, int, int, int], size: tuple[int, int, int], strides: tuple[int, int],
              heads: tuple[int, int], tails: tuple[int, int], rule: Products, matrix: Array) -> Run:
    """Transposed convolution: one matrix product an image, then a strided addition for each tap.

    What lies beyond the output is nowhere held: strides and padding are a file's, and no size of memory follows from
    them.
    """
    (n, h, w, c), (kh, kw, units), (sh, sw) = image, size, strides
    full = ((h - 1) * sh + kh, (w - 1) * sw + kw)
    rows, columns = (f - a - b for f, a, b in zip(full, heads, tails, strict=True))
    site.scratch((h * w, c), rule.dtype)
    site.scratch((h * w, kh, kw, units), rule.dtype)
    site.scratch((rows, columns, units), rule.dtype)
    rule.ask(site, rows * columns * units)
    site.product(h * w, c, kh * kw * units)
    down = [reached(y, heads[0], sh, h, rows) for y in range(kh)]
    across = [reached(z, heads[1], sw, w, columns) for z in range(kw)]
    met = [(to_y, to_z, of_y, of_z, y, z) for y, (to_y, of_y) in enumerate(down) for z, (to_z, of_z) in
           enumerate(across) if of_y.start < of_y.stop and of_z.start < of_z.stop]

    def run(out: Array, x: Array, _w: Array, _b: Array | None, held: Array, taps: Array, sums: Array,
            *rest: Array) -> None:
        own, work = rule.given(rest)
        parts = taps.reshape(h, w, kh, kw, units)
        for i in range(n):
            np.subtract(x[i].reshape(h * w, c), rule.fill, out=held, casting="unsafe")
            np.matmul(held, matrix, out=taps.reshape(h * w, kh * kw * units))
            sums.fill(0)
            for to_y, to_z, of_y, of_z, y, z in met:
                sums[to_y, to_z] += parts[of_y, of_z, y, z]
            part = out[i] if own is None else own.reshape(rows, columns, units)
            np.copyto(part, sums)
            rule.finish(part, out[i], work)
    return run


def reached(tap: int, head: int, stride: int, count: int, size: int) -> tuple[slice, slice]:
    """Where along an axis of `size` elements a tap adds, and which of `count` positions add there.

    Position i puts the tap on element i * stride + tap - head, which may lie before the first or behind the last one.
    """
    first, last = max(0, -((tap - head) // stride)), min(count, (size - 1 + head - tap) // stride + 1)
    at = first * stride + tap - head
    return slice(at, at + max(0, last - first - 1) * stride + 1, stride), slice(first, last)


@kernel(conv.FULLY_CONNECTED)
def FULLY_CONNECTED(site: Site, x: Tensor, w: Tensor, b: Tensor, act: int) -> Run:
    units, depth = w.shape
    if w.data is None and x.type == F32:
        return _by_any(site, (-1, depth), b, act)
    rule = products(site, x, w, constant(w).T, b, act, exact="wide" if w.type.dtype.itemsize == 2 else "float64")
    rows = site.out.shape[0]
    held = rule.dtype != x.type.dtype
    if held:
        site.scratch((rows, depth), rule.dtype)
    rule.ask(site, rows * units)
    site.product(rows, depth, units)

    def run(out: Array, x: Array, _w: Array, _b: Array, *scratch: Array) -> None:
        matrix = x.reshape(rows, depth)
        own, work = rule.given(scratch)
        if held:
            np.copyto(scratch[0], matrix, casting="unsafe")
            matrix = scratch[0]
        sums = out if own is None else own.reshape(out.shape)
        np.matmul(matrix, rule.weights, out=sums)
        rule.finish(sums, out, work)
    return run


def _by_any(site: Site, rows: tuple[int, int], b: Tensor, act: int) -> Run:
    """x @ w.T + b of floats, where a run computes w."""
    known, (low, high) = b.data, BOUNDS[act]
    site.product(site.out.shape[0], rows[1], site.out.shape[1])

    def run(out: Array, x: Array, w: Array, b: Array) -> None:
        np.matmul(x.reshape(rows), w.T, out=out)
        if known is None or known.any():
            np.add(out, b, out=out)
        if act:
            np.clip(out, low, high, out=out)
    return run


@kernel(conv.BATCH_MATMUL)
def BATCH_MATMUL(site: Site, x: Tensor, y: Tensor, adj_x: bool, adj_y: bool) -> Run:
    """float; int8 and int16 (`MultiplyByQuantizedMultiplier`), y with scales per column, too; plain integers wrap."""
    def matrices(x: Array, y: Array) -> tuple[Array, Array]:
        return x.swapaxes(-1, -2) if adj_x else x, y.swapaxes(-1, -2) if adj_y else y
    site.product(x.shape[-2], x.shape[-1], site.out.shape[-1])
    if x.type.dtype.kind in "iu":
        return integer_matmul(site, x, y, matrices, columns=y.rank - 2 if adj_y else y.rank - 1)

    def run(out: Array, x: Array, y: Array) -> None:
        a, b = matrices(x, y)
        if x.dtype == y.dtype == out.dtype != np.float16:
            np.matmul(a, b, out=out)
        else:
            np.copyto(out, np.matmul(a.astype(f32), b.astype(f32)), casting="unsafe")
    return run


def integer_matmul(site: Site, x: Tensor, y: Tensor, matrices: Callable[[Array, Array], tuple[Array, Array]],
                   columns: int) -> Run:
    """Integer products summed exactly in float64; requantised where the output is on a grid.

    LiteRT takes several scales of y for none and gives the output's zero point throughout. Here those of its columns,
    the axis `columns`, count as they do in a convolution. Raises `RunError` on scales along another axis.
    """
    (sx, zx), (sy, zy), (so, zo) = grid(x), grid(y), grid(site.out)
    if not so:
        def plain(out: Array, x: Array, y: Array) -> None:
            np.copyto(out, np.matmul(*(m.astype(np.int64) for m in matrices(x, y))), casting="unsafe")
        return plain
    if isinstance(y.quant, ChannelQuant) and y.quant.axis != columns:
        raise RunError(f"a matrix with scales along axis {y.quant.axis}, which is not that of its columns")
    several = isinstance(y.quant, ChannelQuant)
    m, s = multipliers(float(sx) * scales(y, site.out.shape[-1]).astype(np.float64) / float(so) if several
                       else [float(f32(sx * sy)) / float(so)])
    scale = scale32 if x.type.dtype.itemsize == 1 else scale64
    info = np.iinfo(site.out.type.dtype)

    def run(out: Array, x: Array, y: Array) -> None:
        a, b = matrices(x.astype(np.float64) - zx, y.astype(np.float64) - zy)
        total = scale(np.matmul(a, b).astype(np.int64), m, s) + zo
        np.copyto(out, np.clip(total, info.min, info.max), casting="unsafe")
    return run
