"""Picking, writing and telling apart elements by index."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import (
    convert, cutting, elementwise as e, ex, folds, gather, host, host_arrays, indexing, reduce as r, shape as s)
from ....types import F32, I32, I64, Shape, Tensor, known
from ..importer import Op
from ..registry import imports
from .axes import axis_of, dropped, extent, lengths, put, ranked

INT32 = np.iinfo(np.int32)
#: Operations whose second output, or only one, are indices; and those that move elements, INT64 to INT32 as well.
RANKINGS = {host.TOPK_FIRST.name, host_arrays.TOPK.name}
SEARCHES = RANKINGS | {o.name for o in (
    r.ARGMAX, r.ARGMIN, folds.ARGMAX_LAST, folds.ARGMIN_LAST, host.NON_ZERO, host_arrays.SHAPE)}
MOVES = {o.name for o in (convert.CAST, s.RESHAPE, s.TRANSPOSE, s.EXPAND_DIMS, s.SQUEEZE, s.SLICE, s.STRIDED_SLICE,
                          s.TILE, host.BROADCAST_TO, gather.GATHER)} | {host.host_twin(convert.CAST).name}
#: ONNX's names of what a written element becomes.
REDUCTIONS = {"none": indexing.REPLACE, "add": indexing.ADD, "mul": indexing.MULTIPLY, "min": indexing.LEAST,
              "max": indexing.MOST}


def index(g: Op, x: Value, size: int | None = None) -> Value:
    """Indices as INT32, beyond that the nearest one; with `size` given, negative ones count from the end.

    Raises `FormatError` where a constant one is not below `size`.
    """
    data = x.tensor.data
    if data is not None:
        found = data.clip(INT32.min, INT32.max).astype(np.int32)
        if size is not None and known(size):
            found = counted(found, size)
        elif size is not None and (found < 0).any():
            return _wrapped(g, g.const(found), size)
        return g.const(found.reshape(g.shape(x)))
    found_ = x if x.type == I32 else g.cast(x, I32)
    return found_ if size is None else _wrapped(g, found_, size)


def counted(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices, negative ones counted from the end; raises `FormatError` where one is not below `size`."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        wrong = indices[(indices < -size) | (indices >= size)].flat[0]
        raise FormatError(f"index {wrong} is not in [{-size}, {size})")
    return np.where(indices < 0, indices + size, indices)


def natural(g: Op, x: Value) -> bool:
    """Whether indices are what a search found, moved about at most: none of them is negative."""
    for node in reversed(g.scope.build.nodes):
        if x not in node.outputs:
            continue
        if node.op.name in SEARCHES:
            return node.op.name not in RANKINGS or x is node.outputs[1]
        if node.op is cutting.COUNT:
            return all(v.constant and v.array.item() >= 0 for v in (node.args["start"], node.args["delta"]))
        if node.op.name not in MOVES or not isinstance(node.args["x"], Value):
            return False
        x = node.args["x"]
    return x.tensor.data is not None and x.type in (I32, I64) and bool((x.array >= 0).all())


def _wrapped(g: Op, x: Value, size: int) -> Value:
    """Computed indices, or ones along an open size: of those below 0 the size is added."""
    if natural(g, x):
        return x
    if not known(size):
        g.unsupported("counts from the end of an axis whose size is open", "give the input sizes")
    zero, whole = (g.const(np.array([n], np.int32)) for n in (0, size))
    return g(e.SELECT, g(e.LESS, x, zero), g(e.ADD, x, whole, act=0), x)


@imports()
def Gather(g: Op, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """A scalar index drops the axis."""
    at, data = axis_of(axis, g.rank(x)), indices.tensor.data
    if not known(x.shape[at]) and data is not None and data.shape == (1,) and data.item() < 0:
        y = counted_back(g, x, at, data.item())
    else:
        y = g(gather.GATHER, x, axis=at, indices=sized_index(g, x, indices, at))
    return y if g.rank(indices) else dropped(g, y, [at])


def counted_back(g: Op, x: Value, axis: int, at: int) -> Value:
    """The element at a negative index along an axis whose size is open: a slice counts from its end."""
    along = [i == axis for i in range(len(x.shape))]
    return g(s.STRIDED_SLICE, x, [at * a for a in along], [(at + 1) * a for a in along], [1] * len(along),
             begin_mask=0, end_mask=sum(1 << i for i, a in enumerate(along) if not a or at == -1), shrink_mask=0,
             out=Tensor(x.type, put(x.shape, {axis: 1}), x.tensor.quant))


def sized_index(g: Op, x: Value, indices: Value, axis: int) -> Value:
    """Indices along an axis of x, whose size may be open."""
    size = x.shape[axis]
    if known(size) or indices.tensor.data is not None and (indices.tensor.data >= 0).all():
        return index(g, indices, size)
    return _from_end(g, index(g, indices), extent(g, x, axis))


def _from_end(g: Op, x: Value, size: Value) -> Value:
    """Computed indices; `size`, [1], is added to those below 0."""
    if natural(g, x):
        return x
    zero = g.const(np.zeros(1, np.int32))
    x = x if x.tensor.data is None else g(host.BROADCAST_TO, x, list(x.shape))
    return g(host.WHERE, g(e.LESS, x, zero), g(e.ADD, x, size, act=0), x)


@imports()
def GatherElements(g: Op, x: Value, indices: Value, *, axis: int = 0) -> Value:
    at = axis_of(axis, g.rank(x))
    return g(indexing.GATHER_ELEMENTS, x, sized_index(g, x, indices, at), axis=at)


@imports()
def GatherND(g: Op, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    """Each number of a tuple counts along an axis of its own."""
    depth = indices.shape[-1]
    if not known(depth):
        g.unsupported("takes index tuples of an open length")
    if not 0 <= batch_dims < min(g.rank(indices), g.rank(x)) or not 1 <= depth <= g.rank(x) - batch_dims:
        raise FormatError(f"takes tuples of {depth} from rank {g.rank(x)} after {batch_dims} batch axes")
    at = tuples(g, x, indices, batch_dims)
    y = g(indexing.GATHER_ND_BATCHED, x, at, batch=batch_dims) if batch_dims else g(host.GATHER_ND, x, at)
    return ranked(g, y, len(indices.shape) - 1 + len(x.shape) - batch_dims - depth)


def tuples(g: Op, x: Value, indices: Value, first: int) -> Value:
    """Index tuples as INT32, negative numbers counted from the end of their axes, the first of which is `first`."""
    sizes: Shape = x.shape[first:first + indices.shape[-1]]
    if indices.tensor.data is not None and all(map(known, sizes)):
        found = index(g, indices).array
        columns = [counted(found[..., i], n) for i, n in enumerate(sizes)]
        return g.const(np.stack(columns, -1))
    at = index(g, indices)
    if at.tensor.data is not None and (at.array >= 0).all():
        return at
    if all(map(known, sizes)):
        limits = g.const(np.array(sizes, np.int32))
    else:
        limits = g(gather.GATHER, lengths(g, x), axis=0, indices=list(range(first, first + len(sizes))))
    return _from_end(g, at, limits)


@imports(until=15)
def ScatterElements(g: Op, x: Value, indices: Value, updates: Value, *, axis: int = 0) -> Value:
    return scattered(g, x, indices, updates, axis, "none")


@imports("ScatterElements", since=16)
def scatter_elements(g: Op, x: Value, indices: Value, updates: Value, *, axis: int = 0,
                     reduction: str = "none") -> Value:
    return scattered(g, x, indices, updates, axis, reduction)


@imports()
def Scatter(g: Op, x: Value, indices: Value, updates: Value, *, axis: int = 0) -> Value:
    return scattered(g, x, indices, updates, axis, "none")


def folding(reduction: str) -> int:
    """The table's number of a reduction; raises `FormatError` where it is none."""
    if reduction not in REDUCTIONS:
        raise FormatError(f"has the reduction {reduction!r}")
    return REDUCTIONS[reduction]


def scattered(g: Op, x: Value, indices: Value, updates: Value, axis: int, reduction: str) -> Value:
    """x with updates at the elements that GATHER_ELEMENTS would pick."""
    return g(indexing.SCATTER_ELEMENTS, x, indices, updates, axis=axis_of(axis, g.rank(x)), fold=folding(reduction))


@imports(until=15)
def ScatterND(g: Op, x: Value, indices: Value, updates: Value) -> Value:
    return written(g, x, indices, updates, indexing.REPLACE)


@imports("ScatterND", since=16)
def scatter_nd(g: Op, x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    return written(g, x, indices, updates, folding(reduction))


def written(g: Op, x: Value, indices: Value, updates: Value, fold: int) -> Value:
    """x with updates at index tuples."""
    depth = indices.shape[-1]
    if known(depth) and not 1 <= depth <= g.rank(x):
        raise FormatError(f"takes tuples of {depth} in rank {g.rank(x)}")
    return g(indexing.SCATTER_TUPLES, x, indices, updates, fold=fold)


@imports()
def TensorScatter(g: Op, x: Value, update: Value, start: Value | None = None, *, axis: int = -2,
                  mode: str = "linear") -> Value:
    if mode not in ("linear", "circular"):
        raise FormatError(f"has the mode {mode!r}")
    if start is None:
        one = g.const(np.zeros(1, np.int32))
        start = g(host.BROADCAST_TO, one, extent(g, x, 0), out=Tensor(I32, x.shape[:1]))
    return g(indexing.WRITE_ROWS, x, update, start, axis=axis_of(axis, g.rank(x)), circular=mode == "circular")


@imports()
def Where(g: Op, cond: Value, x: Value, y: Value) -> Value:
    return g.elementwise(host.WHERE, cond, x, y, out=Tensor(x.type, None, x.tensor.quant) if x.tensor.quant else None)


@imports()
def Compress(g: Op, x: Value, condition: Value, *, axis: int | None = None) -> Value:
    """Without an axis, of the elements one after the other."""
    x, at = (flat(g, x), 0) if axis is None else (x, axis_of(axis, g.rank(x)))
    keep = g.known(condition)
    if keep is None:
        return g(indexing.COMPRESS, x, condition, axis=at)
    chosen = np.flatnonzero(keep)
    if known(x.shape[at]) and len(keep) > x.shape[at]:
        raise FormatError(f"has {len(keep)} conditions for {x.shape[at]} elements")
    return g(gather.GATHER, x, axis=at, indices=chosen.astype(np.int32))


def flat(g: Op, x: Value) -> Value:
    """The elements one after the other."""
    size = x.tensor.size
    return g.reshape(x, (size,)) if len(x.shape) != 1 else x


@imports()
def OneHot(g: Op, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """NNAPI-EX's operation where depth and values are known, whole numbers of other types by way of INT32."""
    rank, count, pair = g.rank(indices), g.known(depth), g.known(values)
    at = axis_of(axis, rank + 1)
    via = None if pair is None or pair.size != 2 else values.type if values.type in (F32, I32) else \
        I32 if pair.dtype.kind in "iufb" and (pair.astype(np.int32) == pair).all() else None
    if pair is None or count is None or via is None or indices.type not in (I32, I64) \
            or not 0 < (size := int(count.reshape(-1)[0])) <= INT32.max:
        y = g(indexing.ONE_HOT, indices, depth, values, axis=at)
    else:
        off, on = pair.astype(via.dtype).reshape(-1).tolist()
        y = g(ex.ONE_HOT_EX, _counting(g, indices, size), depth=size, on=on, off=off, axis=at, to=via)
        y = g.cast(y, values.type)
    return y if rank else g.reshape(y, y.shape[:1])


def _counting(g: Op, x: Value, size: int) -> Value:
    """Classes as INT32, negative ones counted from the end; what is outside stays so."""
    if x.tensor.data is not None:
        found = index(g, x).array
        return g.const(np.where(found < 0, found + size, found))
    return _wrapped(g, index(g, x), size)


@imports()
def NonZero(g: Op, x: Value) -> Value:
    """Of a scalar, tuples of no numbers."""
    found = g(s.TRANSPOSE, g(host.NON_ZERO, x), [1, 0])
    return found if g.rank(x) else g(s.SLICE, found, [0, 0], [0, -1])


@imports()
def Unique(g: Op, x: Value, *, axis: int | None = None, sorted: int = 1) -> Sequence[Value]:
    """Without an axis, of the elements one after the other."""
    x, at = (flat(g, x), 0) if axis is None else (x, axis_of(axis, g.rank(x)))
    return g.add(indexing.UNIQUE_ALONG, x, axis=at, ordered=bool(sorted))
