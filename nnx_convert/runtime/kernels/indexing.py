"""Elements at computed places: gathered, scattered, written over, told apart."""
from __future__ import annotations

from math import prod

import numpy as np

from ...ops import indexing as i
from ...types import Array, Shape, Tensor
from ..kernel import Compute, Run, Site, ints, kernel, sized
from .gather import within

I64 = np.int64
#: How an element that is written joins the one that is there.
FOLDS = {i.ADD: np.add, i.MULTIPLY: np.multiply, i.LEAST: np.minimum, i.MOST: np.maximum}


def counted(indices: Array, size: int) -> Array:
    """Indices, negative ones counted from the end; raises `RunError` where one is outside."""
    within(indices, size, -size)
    return np.where(indices < 0, indices.astype(I64) + size, indices.astype(I64))


def along(shape: Shape, axis: int, indices: Array) -> tuple[Array, ...]:
    """An index that picks from each row of an array along axis; indices have the shape of what is picked."""
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


@kernel(i.GATHER_ELEMENTS)
def GATHER_ELEMENTS(site: Site, x: Tensor, indices: Tensor, axis: int) -> Run:
    at, size, shape = axis % x.rank, x.shape[axis], indices.shape

    def run(out: Array, x: Array, indices: Array) -> None:
        within(indices, size)
        np.copyto(out, x[along(shape, at, indices)])
    return run


@kernel(i.GATHER_ND_BATCHED)
def GATHER_ND_BATCHED(site: Site, x: Tensor, indices: Tensor, batch: int) -> Run:
    shape, heads = x.shape, [*np.ogrid[tuple(slice(n) for n in indices.shape[:-1])]][:batch]

    def run(out: Array, x: Array, indices: Array) -> None:
        parts = np.moveaxis(indices, -1, 0)
        for part, size in zip(parts, shape[batch:], strict=False):
            within(part, size)
        np.copyto(out, x[(*heads, *parts)].reshape(out.shape))
    return run


@kernel(i.TRILU)
def TRILU(site: Site, x: Tensor, k: Tensor, upper: bool) -> Run:
    rows, columns = np.ogrid[:x.shape[-2], :x.shape[-1]]

    def run(out: Array, x: Array, k: Array) -> None:
        np.copyto(out, x)
        out[..., columns - rows < k.item() if upper else columns - rows > k.item()] = 0
    return run


def folded(out: Array, at: tuple[Array, ...], updates: Array, fold: int) -> None:
    """Write updates at places of out; of several for one place, all are folded in, or the last one stays."""
    if fold == i.REPLACE:
        out[at] = updates
    else:
        FOLDS[fold].at(out, at, updates)


@kernel(i.SCATTER_ELEMENTS)
def SCATTER_ELEMENTS(site: Site, x: Tensor, indices: Tensor, updates: Tensor, axis: int, fold: int) -> Run:
    at, size, shape = axis % x.rank, x.shape[axis], indices.shape

    def run(out: Array, x: Array, indices: Array, updates: Array) -> None:
        np.copyto(out, x)
        folded(out, along(shape, at, counted(indices, size)), updates, fold)
    return run


@kernel(i.SCATTER_TUPLES)
def SCATTER_TUPLES(site: Site, x: Tensor, indices: Tensor, updates: Tensor, fold: int) -> Run:
    sizes, wanted = x.shape, indices.shape[:-1] + x.shape[indices.shape[-1]:]

    def run(out: Array, x: Array, indices: Array, updates: Array) -> None:
        np.copyto(out, x)
        at = tuple(counted(part, n) for part, n in zip(np.moveaxis(indices, -1, 0), sizes, strict=False))
        folded(out, at, updates.reshape(wanted), fold)
    return run


@kernel(i.WRITE_ROWS)
def WRITE_ROWS(site: Site, x: Tensor, update: Tensor, start: Tensor, axis: int, circular: bool) -> Run:
    size, steps = x.shape[axis], np.arange(update.shape[axis])
    batch = np.arange(x.shape[0])[:, None]

    def run(out: Array, x: Array, update: Array, start: Array) -> None:
        rows = start.astype(I64)[:, None] + steps
        if circular:
            rows %= max(size, 1)
        within(rows, size)
        np.copyto(out, x)
        np.moveaxis(out, axis, 1)[batch, rows] = np.moveaxis(update, axis, 1)
    return run


@sized(i.COMPRESS)
def COMPRESS(site: Site, x: Tensor, keep: Tensor, axis: int) -> Compute:
    return lambda x, keep: [np.compress(keep, x, axis)]


@sized(i.UNIQUE_ALONG)
def UNIQUE_ALONG(site: Site, x: Tensor, axis: int, ordered: bool) -> Compute:
    width = prod(x.shape[:axis % x.rank]) * prod(x.shape[axis % x.rank + 1:])

    def run(x: Array) -> list[Array]:
        rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], width) if width else np.zeros((x.shape[axis], 1))
        if rows.dtype == object and rows.shape[1] != 1:
            # NumPy sorts no rows of objects: their ranks stand for them.
            rows = np.unique(rows, return_inverse=True)[1].reshape(rows.shape)
        _, first, which, counts = np.unique(rows if rows.shape[1] != 1 else rows[:, 0], True, True, True,
                                            axis=0 if rows.shape[1] != 1 else None)
        which = which.reshape(-1)
        if not ordered:
            order = np.argsort(first)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            first, which, counts = first[order], place[which], counts[order]
        return [np.take(x, first, axis), *(v.astype(I64) for v in (first, which, counts))]
    return run


@kernel(i.ONE_HOT)
def ONE_HOT(site: Site, indices: Tensor, depth: Tensor, values: Tensor, axis: int) -> Run:
    """What is no integer is cut off to one."""
    (count,) = ints(depth)
    at = axis % (indices.rank + 1)
    ramp = np.arange(count).reshape(-1, *(1,) * (indices.rank - at))

    def run(out: Array, indices: Array, depth: Array, values: Array) -> None:
        found = np.expand_dims(indices.astype(I64), at)
        hits = np.where(found < 0, found + count, found) == ramp
        np.take(values, hits.astype(np.intp), out=out, mode="clip")
    return run
