"""Rearranging: reshape, transpose, join, split, cut, pad, repeat. Values are copied, never requantised,
but for CONCATENATION, which brings each input to the output's quantisation."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...ops import shape as s
from ...schema import OpError
from ...types import Array, Q8, Q8S, Quant, Shape, Tensor
from ..fixedpoint import away, f32, grid
from ..kernel import Run, Site, ints, kernel

#: Where neighbours part, this many of the output's last axis are written at a time: the rows they come from stay in
#: the cache. Five to ten times as fast on images that become channels first.
BAND = 128
Cut = tuple[Any, ...]


def nothing(*arrays: Array) -> None:
    """The run of a view: its bytes are there already."""


def same_bytes(site: Site, x: Tensor) -> Run:
    """The run of a view; raises `OpError` where the output, as it is declared, holds not as many bytes."""
    if x.type.dtype != site.out.type.dtype:
        raise OpError("RESHAPE", f"{x.type.name} is not {site.out.type.name}")
    if prod(x.shape) != prod(site.out.shape):
        raise OpError("RESHAPE", f"{list(x.shape)} does not fit {list(site.out.shape)}")
    return nothing


@kernel(s.RESHAPE, view="x")
def RESHAPE(site: Site, x: Tensor, shape: Tensor) -> Run:
    return same_bytes(site, x)


@kernel(s.SQUEEZE, view="x")
def SQUEEZE(site: Site, x: Tensor, dims: Tensor | None) -> Run:
    return same_bytes(site, x)


@kernel(s.EXPAND_DIMS, view="x")
def EXPAND_DIMS(site: Site, x: Tensor, axis: int) -> Run:
    return same_bytes(site, x)


@kernel(s.TRANSPOSE)
def TRANSPOSE(site: Site, x: Tensor, perm: Tensor | None) -> Run:
    shape, order = merged(x.shape, (1, 0) if perm is None else ints(perm))
    target = tuple(shape[a] for a in order)
    last = target[-1]
    step = BAND if order[-1] != len(order) - 1 and site.out.size > BAND**2 else max(last, 1)

    def run(out: Array, x: Array, *perm: Array) -> None:
        to, source = out.reshape(target), x.reshape(shape).transpose(order)
        for i in range(0, last, step):
            np.copyto(to[..., i:i + step], source[..., i:i + step])
    return run


def merged(shape: Shape, perm: Sequence[int]) -> tuple[Shape, tuple[int, ...]]:
    """Shape and permutation with the axes that stay side by side made one, and those of size 1 left out."""
    runs: list[list[int]] = []
    wide = [a for a in range(len(shape)) if shape[a] != 1] or [0]
    for axis in (wide.index(a) for a in perm if a in wide):
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    heads = sorted(r[0] for r in runs)
    sizes = {r[0]: prod(shape[wide[a]] for a in r) for r in runs}
    return tuple(sizes[h] for h in heads), tuple(heads.index(r[0]) for r in runs)


@kernel(s.CONCATENATION)
def CONCATENATION(site: Site, xs: tuple[Tensor, ...], axis: int) -> Run:
    tables = [regrid(x, site.out) for x in xs]
    if all(t is None for t in tables):
        return partial(joined, axis)
    ends = np.cumsum([x.shape[axis] for x in xs])
    parts = [along(axis, slice(end - x.shape[axis], end)) for x, end in zip(xs, ends, strict=True)]
    site.scratch((max(prod(x.shape) for x in xs),), np.uint8)

    def run(out: Array, xs: tuple[Array, ...], moved: Array) -> None:
        for x, part, table in zip(xs, parts, tables, strict=True):
            if table is None:
                np.copyto(out[part], x)
            else:
                here = moved[:x.size].reshape(x.shape)
                np.take(table, x.view(np.uint8), out=here, mode="clip")
                np.copyto(out[part], here.view(out.dtype))
    return run


def joined(axis: int, out: Array, xs: tuple[Array, ...]) -> None:
    """The arrays one after the other along axis."""
    np.concatenate(xs, axis, out=out)


def regrid(x: Tensor, out: Tensor) -> Array | None:
    """The output's byte for each byte of x, where their grids differ. [256] uint8

    LiteRT's uint8 arithmetic in float32: f32(f32(q * k) + b), k = f32(s_x * f32(1 / s_out)), b = f32(-z_x * k),
    rounded half away from zero; AOSP takes int8 through it as q + 128.
    """
    if x.quant == out.quant or x.type not in (Q8, Q8S) or not isinstance(x.quant, Quant):
        return None
    (scale, zero), (out_scale, out_zero) = grid(x), grid(out)
    shift = 128 if x.type == Q8S else 0
    k = f32(scale * f32(f32(1) / out_scale))
    b = f32(-f32(zero + shift) * k)
    real = np.arange(256, dtype=np.float32) * k + b
    table: Array = np.clip(away(real) + f32(out_zero + shift), 0, 255).astype(np.uint8)
    # The byte of int8 q is that of uint8 q + 128 with its top bit turned.
    return np.asarray(table[np.arange(256) ^ 0x80] ^ np.uint8(0x80)) if shift else table


def along(axis: int, cut: slice | int) -> Cut:
    """The index that cuts one axis, not counted from the end."""
    return (*(slice(None),) * axis, cut)


@kernel(s.PACK)
def PACK(site: Site, axis: int, xs: tuple[Tensor, ...]) -> Run:
    def run(out: Array, xs: tuple[Array, ...]) -> None:
        np.stack(xs, axis, out=out)
    return run


@kernel(s.SPLIT)
def SPLIT(site: Site, x: Tensor, axis: int, count: int) -> Run:
    at = axis % x.rank
    size = x.shape[at] // count
    parts = [along(at, slice(i * size, (i + 1) * size)) for i in range(count)]

    def run(*arrays: Array) -> None:
        *outs, x = arrays
        for out, part in zip(outs, parts, strict=True):
            np.copyto(out, x[part])
    return run


@kernel(s.SLICE)
def SLICE(site: Site, x: Tensor, begin: Tensor, size: Tensor) -> Run:
    cut = tuple(slice(b, n if c == -1 else b + c) for n, b, c in zip(x.shape, ints(begin), ints(size), strict=True))
    return lambda out, x, begin, size: np.copyto(out, x[cut])


@kernel(s.STRIDED_SLICE)
def STRIDED_SLICE(site: Site, x: Tensor, begin: Tensor, end: Tensor, strides: Tensor, begin_mask: int, end_mask: int,
                  shrink_mask: int) -> Run:
    bounds = zip(x.shape, ints(begin), ints(end), ints(strides), strict=True)
    cut = tuple(_strided(n, None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, step,
                         bool(shrink_mask >> i & 1)) for i, (n, b, e, step) in enumerate(bounds))

    def run(out: Array, x: Array, *bounds: Array) -> None:
        np.copyto(out, x[cut])
    return run


def _strided(n: int, begin: int | None, end: int | None, step: int, shrink: bool) -> slice | int:
    """One axis' cut: the element it shrinks to, or a slice."""
    cut = slice(begin, end, step)
    return range(*cut.indices(n))[0] if shrink else cut


def zero_of(x: Tensor) -> int:
    """What stands for zero in a tensor."""
    return x.quant.zero if isinstance(x.quant, Quant) else 0


@kernel(s.PAD)
def PAD(site: Site, x: Tensor, paddings: Tensor) -> Run:
    return PAD_V2(site, x, paddings, zero_of(x))


@kernel(s.PAD_V2)
def PAD_V2(site: Site, x: Tensor, paddings: Tensor, value: float) -> Run:
    inner = centre(x, ints(paddings))

    def run(out: Array, x: Array, paddings: Array) -> None:
        out.fill(value)
        np.copyto(out[inner], x)
    return run


def centre(x: Tensor, amounts: Sequence[int]) -> tuple[slice, ...]:
    """Where x stands in its padded self."""
    return tuple(slice(head, head + n) for n, head in zip(x.shape, amounts[0::2], strict=True))


@kernel(s.MIRROR_PAD)
def MIRROR_PAD(site: Site, x: Tensor, paddings: Tensor, mode: int) -> Run:
    amounts = ints(paddings)
    inner = centre(x, amounts)
    edge = 1 if mode == 0 else 0
    strips: list[tuple[Cut, Cut]] = []
    for axis, (n, head, tail) in enumerate(zip(x.shape, amounts[0::2], amounts[1::2], strict=True)):
        # Axes before this one are whole by now, those after it still lack their own strips.
        rest = inner[axis + 1:]
        strips += [(along(axis, to) + rest, along(axis, source) + rest)
                   for to, source in _mirrored(n, head, tail, edge)]

    def run(out: Array, x: Array, paddings: Array) -> None:
        np.copyto(out[inner], x)
        for to, source in strips:
            np.copyto(out[to], out[source])
    return run


def _mirrored(n: int, head: int, tail: int, edge: int) -> list[tuple[slice, slice]]:
    """Of one axis of the output: each strip beside the centre, and what it mirrors, back to front."""
    end = head + n
    before = head + edge, head + edge + head
    after = end - edge - tail, end - edge
    return [(slice(0, head), _back(*before)), (slice(end, end + tail), _back(*after))]


def _back(start: int, stop: int) -> slice:
    """[start, stop) back to front."""
    return slice(stop - 1, start - 1 if start > 0 else None, -1) if stop > start else slice(0, 0)


@kernel(s.TILE)
def TILE(site: Site, x: Tensor, multiples: Tensor) -> Run:
    times = ints(multiples)
    apart = tuple(v for pair in zip(times, x.shape, strict=True) for v in pair)
    once = tuple(v for n in x.shape for v in (1, n))

    def run(out: Array, x: Array, multiples: Array) -> None:
        np.copyto(out.reshape(apart), x.reshape(once))
    return run


@kernel(s.REVERSE)
def REVERSE(site: Site, x: Tensor, axis: Tensor) -> Run:
    back = along(ints(axis)[0], slice(None, None, -1))
    return lambda out, x, axis: np.copyto(out, x[back])


@kernel(s.CHANNEL_SHUFFLE)
def CHANNEL_SHUFFLE(site: Site, x: Tensor, groups: int, axis: int) -> Run:
    at = axis % x.rank
    before, n, after = prod(x.shape[:at]), x.shape[at], prod(x.shape[at + 1:])

    def run(out: Array, x: Array) -> None:
        np.copyto(out.reshape(before, n // groups, groups, after),
                  x.reshape(before, groups, n // groups, after).swapaxes(1, 2))
    return run


@kernel(s.FILL)
def FILL(site: Site, dims: Tensor, value: float, to: int) -> Run:
    return lambda out, dims: out.fill(value)


@kernel(s.RANK, hollow=True)
def RANK(site: Site, x: Tensor) -> Run:
    return lambda out, x: out.fill(x.ndim)
