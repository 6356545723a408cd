"""Convolutions, forward and transposed. Images stay channels first; filters are laid out as NNAPI wants them."""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import conv, conv_nd, shape
from ....types import F16, F32, Shape, known
from ..importer import Op
from ..registry import imports
from .sliding import Sliding, as_before, as_plane, sized, sliding

#: Groups up to which each has a convolution of its own, where NNAPI has none in groups.
MOST_GROUPS = 16
#: Elements of a filter that zeros may make of one.
LARGEST_FILTER = 1 << 20


def filters(g: Op, x: Value, w: Value, kernel_shape: Shape | None) -> Shape:
    """The sizes of a kernel; raises `FormatError` where the file says others."""
    if g.rank(w) != g.rank(x) or g.rank(x) < 3:
        raise FormatError(f"filters of rank {g.rank(w)} for a tensor of rank {g.rank(x)}")
    kernel = w.shape[2:]
    if kernel_shape and len(kernel_shape) == len(kernel) and not all(map(known, kernel)):
        return kernel_shape
    if kernel_shape and tuple(kernel_shape) != kernel:
        raise FormatError(f"kernel_shape is {list(kernel_shape)}, its filters have {list(kernel)}")
    return kernel


def divided(w: Value, group: int, what: str) -> None:
    """Raise `FormatError` where the first axis of filters cannot be cut into groups."""
    if group < 1 or known(w.shape[0]) and (w.shape[0] % group or group > max(w.shape[0], 1)):
        raise FormatError(f"{w.shape[0]} {what} in {group} groups")


def bias(g: Op, x: Value, b: Value | None, units: int) -> Value:
    """The bias, or zeros."""
    return g.const(np.zeros(units, x.type.dtype), x.type) if b is None else b


def flat(g: Op, w: Value) -> Value:
    """Filters over a row as filters of height 1."""
    return g.reshape(w, (*w.shape[:2], 1, w.shape[2])) if g.rank(w) == 3 else w


def native(x: Value, s: Sliding, w: Value) -> bool:
    """Whether NNAPI has a convolution for these types and axes."""
    return x.type in (F32, F16) and len(s.kernel) <= 2 and min(s.pads) >= 0 and known(w.shape[0])


@imports(arithmetic=True)
def Conv(g: Op, x: Value, w: Value, b: Value | None = None, *, auto_pad: str = "NOTSET",
         dilations: tuple[int, ...] | None = None, group: int = 1, kernel_shape: tuple[int, ...] | None = None,
         pads: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Value:
    s = sliding(g, x, filters(g, x, w, kernel_shape), strides, dilations, pads, auto_pad)
    divided(w, group, "filters")
    if group == 1 and len(s.kernel) == 3 and flattens(x, s, w):
        return deep(g, x, w, bias(g, x, b, w.shape[0]), s)
    if not native(x, s, w) or s.dilations.count(1) < len(s.kernel) and 1 < group > MOST_GROUPS and w.shape[1] != 1:
        return g(conv_nd.CONV_ND, x, w, b, groups=group, **s.nd)
    return as_before(g, plane(g, as_plane(g, x), flat(g, w), bias(g, x, b, w.shape[0]), s.plane, group), x)


def flattens(x: Value, s: Sliding, w: Value) -> bool:
    """Whether a volume can be looked at as images: of the sizes only the batch may be open."""
    sizes = all(map(known, (*x.shape[1:], *w.shape)))
    return x.type in (F32, F16) and sizes and min(s.pads) >= 0 and min(s.out(x.shape[2:])) > 0


def deep(g: Op, x: Value, w: Value, b: Value, s: Sliding) -> Value:
    """The convolution of a volume as one of images: the layers that a filter reads at a time are its channels."""
    (n, c, _, *sizes), (units, _, depth, *kernel) = x.shape, w.shape
    layers, *out = s.out(x.shape[2:])
    flat = g.reshape(x, (n, c, x.shape[2], prod(sizes)))
    if s.heads[0] or s.tails[0]:
        flat = g(shape.PAD, flat, [[0, 0], [0, 0], [s.heads[0], s.tails[0]], [0, 0]])
    starts = [k * s.dilations[0] for k in range(depth)]
    parts = [g(shape.STRIDED_SLICE, flat, [0, 0, at, 0], [0, 0, at + (layers - 1) * s.strides[0] + 1, 0],
               [1, 1, s.strides[0], 1], begin_mask=11, end_mask=11, shrink_mask=0) for at in starts]
    joined = g(shape.CONCATENATION, xs=tuple(parts), axis=1) if depth > 1 else parts[0]
    images = g.reshape(g(shape.TRANSPOSE, joined, [0, 2, 1, 3]), (n * layers, depth * c, *sizes))
    rows = g(shape.TRANSPOSE, g.reshape(w, (units, c, depth, prod(kernel))), [0, 2, 1, 3])
    made = plane(g, images, g.reshape(rows, (units, depth * c, *kernel)), b, s.part(slice(1, 3)), 1)
    back = g(shape.TRANSPOSE, g.reshape(made, (n, layers, units, prod(out))), [0, 2, 1, 3])
    return g.reshape(back, (n, units, layers, *out))


def plane(g: Op, x: Value, w: Value, b: Value, s: Sliding, group: int) -> Value:
    """The convolution of an image [n, c, h, w] with filters [out, in / group, kh, kw]."""
    named: dict[str, Any] = {"b": b, "act": 0, "nchw": True, **s.amounts, **s.steps}
    gaps: dict[str, Any] = {"dw": s.dilations[1], "dh": s.dilations[0]}
    if group > 1 and w.shape[1] == 1:
        laid = g(shape.TRANSPOSE, w, [1, 2, 3, 0])
        return g(conv.DEPTHWISE_CONV_2D, x, laid, mult=w.shape[0] // group, **named, **gaps)
    laid = g(shape.TRANSPOSE, w, [0, 2, 3, 1])
    if group == 1:
        return g(conv.CONV_2D, x, laid, **named, **gaps)
    if s.dilations == (1, 1):
        return g(conv.GROUPED_CONV_2D, x, laid, groups=group, **named)
    parts = zip(*(g.add(shape.SPLIT, v, axis=axis, count=group) for v, axis in ((x, 1), (laid, 0), (b, 0))),
                strict=True)
    made = [g(conv.CONV_2D, part, filters_, **named | {"b": own}, **gaps) for part, filters_, own in parts]
    return g(shape.CONCATENATION, xs=tuple(made), axis=1)


@imports(arithmetic=True)
def ConvTranspose(g: Op, x: Value, w: Value, b: Value | None = None, *, auto_pad: str = "NOTSET",
                  dilations: tuple[int, ...] | None = None, group: int = 1,
                  kernel_shape: tuple[int, ...] | None = None, output_padding: tuple[int, ...] | None = None,
                  output_shape: tuple[int, ...] | None = None, pads: tuple[int, ...] | None = None,
                  strides: tuple[int, ...] | None = None) -> Value:
    kernel = filters(g, x, w, kernel_shape)
    s = sliding(g, x, kernel, strides, dilations, pads, "NOTSET" if auto_pad == "NOTSET" else "VALID")
    more = sized("output_padding", output_padding, len(kernel), 0)
    s = spread(g, x, s, more, output_shape, auto_pad, bool(pads))
    divided(w, group, "channels")
    laid = denser(g, w, s, group) if native(x, s.ended((0,) * len(kernel)), w) and known(w.shape[1]) else None
    if laid is None:
        return g(conv_nd.TRANSPOSE_CONV_ND, x, w, b, groups=group, **s.nd)
    units = w.shape[1] * group
    return as_before(g, scattered(g, as_plane(g, x), flat(g, laid), bias(g, x, b, units), s.plane), x)


def spread(g: Op, x: Value, s: Sliding, more: Shape, output_shape: Shape | None, auto_pad: str,
           padded: bool) -> Sliding:
    """What is cut off a scattered output, less what is added after it."""
    if output_shape is None and not auto_pad.startswith("SAME"):
        return s.ended(tuple(tail - m for tail, m in zip(s.tails, more, strict=True)))
    axes, sizes = len(s.kernel), x.shape[2:]
    if output_shape is not None:
        wanted = sized("output_shape", output_shape[-axes:], axes, 0)
        reach = [(n - 1) * k + r for n, k, r in zip(sizes, s.strides, s.reach, strict=True)]
        if not all(map(known, reach)):
            g.unsupported("has an output_shape, and open sizes", "give the input sizes")
        total = [r - w for r, w in zip(reach, wanted, strict=True)]
    else:
        total = [r - k for r, k in zip(s.reach, s.strides, strict=True)]
    if padded and output_shape is not None:
        return s.ended(tuple(t - head for t, head in zip(total, s.heads, strict=True)))
    cut = [max(t + m, 0) for t, m in zip(total, more, strict=True)]
    heads = tuple(c // 2 if auto_pad == "SAME_UPPER" else c - c // 2 for c in cut)
    return replace(s, heads=heads, tails=tuple(t - head for t, head in zip(total, heads, strict=True)))


def denser(g: Op, w: Value, s: Sliding, group: int) -> Value | None:
    """Filters [in, out, *kernel] that do without groups and gaps, by zeros; None where that makes them too large."""
    if group == 1 and max(s.dilations) == 1:
        return w
    data = g.known(w)
    depth, units = w.shape[0], w.shape[1] * group
    if data is None or depth * units * prod(s.reach) > LARGEST_FILTER:
        return None
    found = np.zeros((depth, units, *s.reach), data.dtype)
    cells = tuple(slice(None, None, d) for d in s.dilations)
    for i in range(group):
        rows, columns = (slice(i * n // group, (i + 1) * n // group) for n in (depth, units))
        found[(rows, columns, *cells)] = data[rows]
    return g.const(found, w.type)


def scattered(g: Op, x: Value, w: Value, b: Value, s: Sliding) -> Value:
    """The transposed convolution of an image with filters [in, out, kh, kw]."""
    laid = g(shape.TRANSPOSE, w, [1, 2, 3, 0])
    return g(conv.TRANSPOSE_CONV_2D, x, laid, b, act=0, nchw=True, **s.amounts, **s.steps)


@imports(arithmetic=True)
def DeformConv(g: Op, x: Value, w: Value, offset: Value, b: Value | None = None, mask: Value | None = None, *,
               dilations: tuple[int, ...] | None = None, group: int = 1, kernel_shape: tuple[int, ...] | None = None,
               offset_group: int = 1, pads: tuple[int, ...] | None = None,
               strides: tuple[int, ...] | None = None) -> Value:
    s = sliding(g, x, filters(g, x, w, kernel_shape), strides, dilations, pads, "NOTSET")
    return g(conv_nd.DEFORM_CONV, x, w, offset, b, mask, groups=group, offset_groups=offset_group, **s.nd)


@imports()
def Col2Im(g: Op, x: Value, image_shape: Value, block_shape: Value, *, dilations: tuple[int, ...] | None = None,
           pads: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Value:
    axes, sizes, kernel = block_shape.shape[0], g.ints(image_shape), g.ints(block_shape)
    if not known(axes):
        g.unsupported("has an open number of axes")
    amounts = sized("pads", pads, 2 * axes, 0)
    s = Sliding(kernel or (1,) * axes, sized("strides", strides, axes, 1), sized("dilations", dilations, axes, 1),
                amounts[:axes], amounts[axes:])
    if sizes is None or kernel is None or not all(map(known, (*sizes, *kernel))):
        return g(conv_nd.COL2IM, x, g.index(image_shape), g.index(block_shape), **s.nd)
    if axes == 2 and s.dilations == (1, 1) and x.type in (F32, F16) and all(map(known, x.shape)):
        return columns(g, x, sizes, s)
    return g(conv_nd.COL2IM, x, list(sizes), list(kernel), **s.nd)


def columns(g: Op, x: Value, sizes: Shape, s: Sliding) -> Value:
    """Columns added up on an image by a transposed convolution, whose filters put each in its cell."""
    cells, positions = prod(s.kernel), s.out(sizes)
    count, channels = x.shape[0], x.shape[1] // cells
    if x.shape[1] % cells or x.shape[2] != prod(positions) or min(positions) < 1:
        raise FormatError(f"columns of shape {list(x.shape)} for an image of {list(sizes)}")
    tails = tuple((p - 1) * k + r - head - n for p, k, r, head, n in zip(
        positions, s.strides, s.reach, s.heads, sizes, strict=True))
    one_hot = g.const(np.eye(cells, dtype=x.type.dtype).reshape(cells, 1, *s.kernel), x.type)
    image = g.reshape(x, (count * channels, cells, *positions))
    y = scattered(g, image, one_hot, bias(g, x, None, 1), s.ended(tails))
    return g.reshape(y, (count, channels, *sizes))
