"""Cut, filled up, split, counted and reshaped by numbers that are computed."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ...errors import RunError
from ...ops import cutting as c
from ...types import Array, Tensor
from ..kernel import Compute, Run, Site, ints, kernel, sized
from .host_arrays import bearable
from .shape import along, same_bytes

#: What NumPy calls the ways to fill up.
MODES = {c.REFLECT: "reflect", c.EDGE: "edge", c.WRAP: "wrap"}


@kernel(c.CUT)
def CUT(site: Site, x: Tensor, begin: Tensor, end: Tensor, axes: Tensor, strides: Tensor) -> Run:
    cut = [slice(None)] * x.rank
    for axis, *bounds in zip(ints(axes), ints(begin), ints(end), ints(strides), strict=True):
        cut[axis] = slice(*bounds)
    return lambda out, x, *_: np.copyto(out, x[tuple(cut)])


@kernel(c.PAD_BY)
def PAD_BY(site: Site, x: Tensor, pads: Tensor, value: Tensor, axes: Tensor, mode: int) -> Run:
    """What is cut off is gone before x is mirrored or repeated."""
    amounts, places = ints(pads), ints(axes)
    sides = [(0, 0)] * x.rank
    for i, axis in enumerate(places):
        sides[axis] = amounts[i], amounts[i + len(places)]
    kept = tuple(slice(max(-a, 0), max(n - max(-b, 0), 0)) for n, (a, b) in zip(x.shape, sides, strict=True))
    more = [(max(a, 0), max(b, 0)) for a, b in sides]
    inner = tuple(slice(a, n - b) for n, (a, b) in zip(site.out.shape, more, strict=True))

    def run(out: Array, x: Array, pads: Array, value: Array, axes: Array) -> None:
        if mode != c.CONSTANT:
            np.copyto(out, np.pad(x[kept], more, MODES[mode]))  # type: ignore[call-overload]
            return
        out.fill(value.item())
        np.copyto(out[inner], x[kept])
    return run


def parts(sizes: Sequence[int], axis: int) -> list[tuple[slice | int, ...]]:
    """The index of each part along an axis."""
    return [along(axis, slice(a, b)) for a, b in pairwise(accumulate(sizes, initial=0))]


def split(cuts: Sequence[tuple[slice | int, ...]], outs: Sequence[Array], x: Array) -> None:
    """Copy each part to its place."""
    for out, cut in zip(outs, cuts, strict=True):
        np.copyto(out, x[cut])


@kernel(c.SPLIT_BY)
def SPLIT_BY(site: Site, x: Tensor, sizes: Tensor, axis: int) -> Run:
    wanted = ints(sizes)
    if min(wanted, default=0) < 0 or sum(wanted) != x.shape[axis]:
        raise RunError(f"splits {x.shape[axis]} into {list(wanted)}")
    cuts = parts(wanted, axis % x.rank)
    return lambda *arrays: split(cuts, arrays[:-2], arrays[-2])


@kernel(c.CHUNK)
def CHUNK(site: Site, x: Tensor, axis: int, count: int) -> Run:
    cuts = parts([t.shape[axis] for t in site.outs], axis % x.rank)
    return lambda *arrays: split(cuts, arrays[:-1], arrays[-1])


@kernel(c.UNSQUEEZE, view="x")
def UNSQUEEZE(site: Site, x: Tensor, axes: Tensor) -> Run:
    return same_bytes(site, x)


@kernel(c.SQUEEZE_TO, view="x")
def SQUEEZE_TO(site: Site, x: Tensor, rank: int) -> Run:
    return same_bytes(site, x)


@sized(c.COUNT)
def COUNT(site: Site, start: Tensor, limit: Tensor, delta: Tensor) -> Compute:
    def run(start: Array, limit: Array, delta: Array) -> list[Array]:
        first, last, step = (v.item() for v in (start, limit, delta))
        if not step:
            raise RunError(f"counts from {first} to {last} by 0")
        exact = start.dtype.kind in "iu"
        count = -((first - last) // step) if exact else math.ceil((last - first) / step)
        ramp = np.arange(bearable(max(count, 0)))
        return [(start + ramp.astype(start.dtype) * delta).astype(start.dtype)]
    return run


@kernel(c.EYE)
def EYE(site: Site, shape: Tensor, k: int, to: int) -> Run:
    rows, columns = site.out.shape
    return lambda out, shape: np.copyto(out, np.eye(rows, columns, k), casting="unsafe")
