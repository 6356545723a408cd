"""Elements at computed places, as the operations that give the exact answer."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import Node, Value
from ..ops import elementwise as e, folds, gather, host, indexing, reduce as r, shape
from ..symbols import same
from ..types import B8, I32, Shape, Tensor, known, product
from .axes import as_written
from .compose import OPEN, fixed, masked
from .expand import EXPAND
from .rewrite import Refusal, Result, Rewriter


def strides(dims: Shape) -> list[int]:
    """How far apart neighbours along each axis are."""
    return [product(dims[i + 1:]) for i in range(len(dims))]


@EXPAND.on(indexing.GATHER_ELEMENTS)
def gather_elements(g: Rewriter, node: Node) -> Result:
    """A GATHER in x flattened: each index times the stride of its axis, and where its row begins."""
    x, at, axis = node.args["x"], node.args["indices"], node.args["axis"] % len(node.args["x"].shape)
    if not fixed(x, at):
        return OPEN
    if len(x.shape) == 1:
        return g(gather.GATHER, x, axis=0, indices=at)
    steps, grid = strides(x.shape), np.indices(at.shape)
    base = sum(grid[i] * n for i, n in enumerate(steps) if i != axis)
    if at.tensor.data is not None:
        flat = g.build.const(at.tensor.data * steps[axis] + base, I32)
    else:
        scaled = g(e.MUL, at, g.build.const([steps[axis]], I32), act=0) if steps[axis] > 1 else at
        moved = g.attempt(lambda b: b(e.ADD, scaled, b.const(base, I32), act=0))
        if isinstance(moved, Refusal):
            return moved
        flat = moved
    return g(gather.GATHER, g(shape.RESHAPE, x, (product(x.shape),)), axis=0, indices=flat)


@EXPAND.on(indexing.GATHER_ND_BATCHED)
def gather_nd_batched(g: Rewriter, node: Node) -> Result:
    """The batches one after the other along the first axis, and the tuples moved to theirs."""
    x, at, batch = (node.args[n] for n in ("x", "indices", "batch"))
    depth = at.shape[-1]
    if not batch:
        return g(host.GATHER_ND, x, at)
    if not fixed(x, at) or not depth:
        return OPEN
    rows, size = product(x.shape[:batch]), x.shape[batch]
    first = (np.arange(rows) * size).reshape(*x.shape[:batch], *(1,) * (len(at.shape) - batch))
    base = np.concatenate((first, np.zeros((*first.shape[:-1], depth - 1), np.int64)), -1)
    moved = g.build.const(at.tensor.data + base, I32) if at.tensor.data is not None else \
        g(e.ADD, at, g.build.const(base, I32), act=0)
    return g(host.GATHER_ND, g(shape.RESHAPE, x, (rows * size, *x.shape[batch + 1:])), moved,
             out=Tensor(x.type, node.outputs[0].tensor.dims, x.tensor.quant))


@EXPAND.on(indexing.TRILU)
def trilu(g: Rewriter, node: Node) -> Result:
    x, k = node.args["x"], node.args["k"].tensor.data
    if k is None or not all(map(known, x.shape)):
        return Refusal("the diagonal or a size is computed")
    columns_less_rows = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    mask = columns_less_rows >= k.item() if node.args["upper"] else columns_less_rows <= k.item()
    return masked(g, mask, x, g.build.const([0], x.type, x.tensor), node.outputs[0].tensor)


@EXPAND.on(host.BROADCAST_TO)
def repeated(g: Rewriter, node: Node) -> Result:
    """To sizes that a run computes: as often as they say along axes of size 1, else once."""
    x, wanted, out = node.args["x"], node.args["shape"], node.outputs[0].tensor
    if wanted.tensor.data is not None or out.dims is None or x.type not in shape.TILE.types \
            or not same(wanted.shape[0], len(out.dims)):
        return None
    full = (1,) * (len(out.dims) - len(x.shape)) + x.shape
    ones = [known(n) and n == 1 for n in full]
    if not all(one or same(m, n) for one, m, n in zip(ones, full, out.dims, strict=True)):
        return Refusal("it is not known which axes are repeated")
    if len(full) > len(x.shape):
        if sum(not known(n) for n in full) > 1:
            return OPEN
        x = g(shape.RESHAPE, x, as_written(full), out=Tensor(x.type, full, x.tensor.quant))
    once = g.build.const(np.ones(len(full)), I32)
    counts = wanted if all(ones) else g(e.SELECT, g.build.const(ones, B8), wanted, once)
    return g.legal(g(shape.TILE, x, counts, out=out))


LAST = {folds.ARGMAX_LAST.name: r.ARGMAX, folds.ARGMIN_LAST.name: r.ARGMIN}


@EXPAND.on(*LAST)
def search_last(g: Rewriter, node: Node) -> Result:
    """NNAPI finds the first of equals: search back to front and count from the end."""
    x, axis = node.args["x"], node.args["axis"] % len(node.args["x"].shape)
    if not known(x.shape[axis]):
        return Refusal("the searched axis has an open size")
    backwards = g.build.const(g.build.ramp(x.shape[axis]).array[::-1], I32)
    found = g(LAST[node.op.name], g(gather.GATHER, x, axis=axis, indices=backwards), axis=axis)
    return g(gather.GATHER, backwards, axis=0, indices=found)


@EXPAND.on(indexing.SCATTER_TUPLES)
def assigned_slice(g: Rewriter, node: Node) -> Result:
    """Tuples that count through a box: what is around it and the updates, joined. Exporters write slices so."""
    x, at, updates = (node.args[n] for n in ("x", "indices", "updates"))
    if node.args["fold"] != indexing.REPLACE or at.tensor.data is None or not fixed(x, at, updates):
        return None
    found = box(at.array, x.shape)
    if found is None:
        return Refusal("the tuples do not count through a box")
    starts, sizes = found
    sizes = (*sizes, *x.shape[len(sizes):])
    inner = updates if updates.shape == sizes else g(shape.RESHAPE, updates, sizes)
    return g.legal(surrounded(g, x, inner, (*starts, *(0,) * (len(sizes) - len(starts)))))


def box(at: np.ndarray, dims: Shape) -> tuple[Shape, Shape] | None:
    """Where the box starts that tuples count through, and its sizes; None where they do not."""
    rows = np.where(at < 0, at.astype(np.int64) + dims[:at.shape[-1]], at.astype(np.int64)).reshape(-1, at.shape[-1])
    if not rows.size:
        return None
    starts, sizes = rows[0], rows[-1] - rows[0] + 1
    if (sizes < 1).any() or (starts < 0).any() or (starts + sizes > dims[:len(sizes)]).any() \
            or sizes.prod() != len(rows):
        return None
    counted = np.indices(sizes).reshape(len(sizes), -1).T + starts
    return (tuple(starts.tolist()), tuple(sizes.tolist())) if np.array_equal(counted, rows) else None


def surrounded(g: Rewriter, x: Value, inner: Value, starts: Sequence[int]) -> Value:
    """x with another box in it, axis by axis."""
    axis = next((i for i, (m, n) in enumerate(zip(inner.shape, x.shape, strict=True)) if m != n), None)
    if axis is None:
        return inner
    first, end = starts[axis], starts[axis] + inner.shape[axis]
    middle = surrounded(g, cut(g, x, axis, first, end), inner, [0 if i == axis else s for i, s in enumerate(starts)])
    before = (cut(g, x, axis, 0, first),) if first else ()
    after = (cut(g, x, axis, end, x.shape[axis]),) if end < x.shape[axis] else ()
    return g(shape.CONCATENATION, xs=(*before, middle, *after), axis=axis, out=Tensor(x.type, None, x.tensor.quant))


def cut(g: Rewriter, x: Value, axis: int, first: int, end: int) -> Value:
    """The part of x from first to end along an axis."""
    return g(shape.SLICE, x, [first if i == axis else 0 for i in range(len(x.shape))],
             [end - first if i == axis else n for i, n in enumerate(x.shape)])
