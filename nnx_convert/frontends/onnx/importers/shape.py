"""Sizes and axes: other shapes, orders and repetitions of the same elements, and constants by their sizes."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import cutting, elementwise as e, gather, host, host_arrays, image, indexing, reduce as r, shape as s
from ....ops.sparse import LARGEST
from ....symbols import quotient, same
from ....types import F32, F64, I32, I64, MOST_AXES, UNKNOWN, Shape, Tensor, Undecided, known, product
from .. import sparse
from ..constants import type_of
from ..importer import Op
from ..registry import Sparse, imports
from ..tensors import grid
from .axes import axes_of, axis_of, dropped, inserted, lengths, open_, ranked

#: The types that Range computes in, by ONNX's number of them.
STASHED = {1: F32, 11: F64}


@imports("Reshape", until=4)
def reshape_1(g: Op, x: Value, *, shape: tuple[int, ...] = (), consumed_inputs: tuple[int, ...] = ()) -> Value:
    return reshaped(g, x, shape)


@imports(since=5)
def Reshape(g: Op, x: Value, shape: Value, *, allowzero: int = 0) -> Value:
    """What is computed is read at run time: 0 copies a size of x, unless `allowzero`."""
    wanted = g.ints(shape)
    if wanted is not None or shape.shape == (0,):
        return reshaped(g, x, wanted or (), not allowzero, shape)
    count = shape.shape[0]
    return _computed(g, x, shape, (UNKNOWN,) * count if known(count) else None, not allowzero)


def reshaped(g: Op, x: Value, wanted: Sequence[int], copies: bool = True, shape: Value | None = None) -> Value:
    """x in a shape where -1 is what is left over and 0 (`copies`) the size that x has there."""
    own = g.shape(x)
    if copies and any(known(n) and n == 0 and i >= len(own) for i, n in enumerate(wanted)):
        raise FormatError(f"copies sizes that x does not have in the shape {list(wanted)}")
    sizes = [own[i] if copies and known(n) and n == 0 else n for i, n in enumerate(wanted)]
    left = [i for i, n in enumerate(sizes) if known(n) and n < 0]
    if len(left) > 1 or any(sizes[i] != -1 for i in left):
        raise FormatError(f"is a reshape to {list(wanted)}")
    for i in left:
        sizes[i] = rest(own, [n for j, n in enumerate(sizes) if j != i])
    others = [n for n in sizes if not known(n) and not any(same(n, m) for m in own)]
    if len(others) < 2 or shape is None:
        return g.reshape(x, tuple(sizes))
    return _computed(g, x, shape, tuple(sizes), copies and any(known(n) and n == 0 for n in wanted))


def rest(own: Shape, others: Sequence[int]) -> int:
    """The size left over beside others; raises `FormatError` where there is none."""
    total, known_ = product(own), product(tuple(others))
    if not (known(total) and known(known_)):
        found = None if known(known_) and not known_ else quotient(total, known_)
        return UNKNOWN if found is None else found
    if total % known_ if known_ else total:
        raise FormatError(f"is a reshape of {list(own)}, of which {list(others)} leave no whole size")
    return total // known_ if known_ else 0


def _computed(g: Op, x: Value, shape: Value, sizes: Shape | None, copies: bool) -> Value:
    """RESHAPE to sizes that a run computes, of which not even the number need be known."""
    where = g.index(shape)
    if copies:
        own = tuple(lengths(g, x) for _ in range(g.rank(x) > 0))
        filled = g(s.CONCATENATION, xs=(*own, g.const(np.zeros(MOST_AXES, np.int32))), axis=0)
        own_ = g(s.SLICE, filled, [0], lengths(g, where), out=where.tensor)
        where = g(e.SELECT, g(e.EQUAL, where, g.const(np.zeros(1, np.int32))), own_, where)
    return g(s.RESHAPE, x, where, out=Tensor(x.type, sizes, x.tensor.quant))


@imports()
def Flatten(g: Op, x: Value, *, axis: int = 1) -> Value:
    own = g.shape(x)
    if not -len(own) <= axis <= len(own):
        raise FormatError(f"has the axis {axis}, the rank is {len(own)}")
    at = axis % len(own) if axis < 0 else axis
    sizes = product(own[:at]), product(own[at:])
    if open_(sizes) < 2:
        return g.reshape(x, sizes)
    first = g(r.REDUCE_PROD, g(s.SLICE, lengths(g, x), [0], [at]), [0], keep=True)
    whole = g(s.CONCATENATION, xs=(first, g.const(np.array([-1], np.int32))), axis=0)
    return g(s.RESHAPE, x, whole, out=Tensor(x.type, sizes, x.tensor.quant))


@imports("Squeeze", until=12)
def squeeze_1(g: Op, x: Value, *, axes: tuple[int, ...] | None = None) -> Value:
    return squeezed(g, x, axes)


@imports(since=13)
def Squeeze(g: Op, x: Value, axes: Value | None = None) -> Value:
    if x.tensor.dims is None:
        return g(s.SQUEEZE, x, axes and g.index(axes))
    if axes is None:
        return squeezed(g, x, None)
    found = g.ints(axes)
    if found is not None and not open_(found):
        return squeezed(g, x, found)
    count = axes.shape[0] if g.rank(axes) else 1
    if not known(count):
        return g(s.SQUEEZE, x, g.index(axes))
    left = g.rank(x) - count
    if left < 0:
        raise FormatError(f"drops {count} axes of {g.rank(x)}")
    y = g(s.SQUEEZE, x, g.index(axes), out=Tensor(x.type, (UNKNOWN,) * left if left else (1,), x.tensor.quant))
    return y if left else g.scalar(y)


def squeezed(g: Op, x: Value, axes: Sequence[int] | None) -> Value:
    """x less axes of size 1, or less all of them; an open size is taken to be another, which a run makes sure of."""
    own = g.shape(x)
    if axes is None and not all(map(known, own)):
        rank = sum(not known(n) or n != 1 for n in own)
        return ranked(g, g(cutting.SQUEEZE_TO, x, rank=rank), rank)
    gone = tuple(i for i, n in enumerate(own) if n == 1) if axes is None else axes_of(axes, len(own))
    if wrong := [i for i in gone if known(own[i]) and own[i] != 1]:
        raise FormatError(f"drops axis {wrong[0]}, whose size is {own[wrong[0]]}")
    return dropped(g, x, gone) if own else x


@imports("Unsqueeze", until=12)
def unsqueeze_1(g: Op, x: Value, *, axes: tuple[int, ...]) -> Value:
    return inserted(g, x, axes_of(axes, g.rank(x) + len(axes)))


@imports(since=13)
def Unsqueeze(g: Op, x: Value, axes: Value) -> Value:
    found = g.ints(axes)
    if x.tensor.dims is None:
        return g(cutting.UNSQUEEZE, x, axes)
    if found is not None and not open_(found):
        return inserted(g, x, axes_of(found, g.rank(x) + len(found)))
    count = axes.shape[0] if g.rank(axes) else 1
    if not known(count):
        g.unsupported("puts in a number of axes that is computed")
    return g(cutting.UNSQUEEZE, x, axes) if g.rank(x) else g.reshape(x, (1,) * count)


@imports()
def Transpose(g: Op, x: Value, *, perm: tuple[int, ...] | None = None) -> Value:
    """Without an order, back to front."""
    rank = g.rank(x)
    order = tuple(reversed(range(rank))) if perm is None else axes_of(perm, rank)
    if len(order) != rank:
        raise FormatError(f"orders {len(order)} axes of {rank}")
    return x if order == tuple(range(rank)) else g(s.TRANSPOSE, x, list(order))


@imports("Concat", until=3)
def concat_1(g: Op, *xs: Value, axis: int = 1) -> Value:
    return joined(g, xs, axis)


@imports(since=4)
def Concat(g: Op, *xs: Value, axis: int) -> Value:
    return joined(g, xs, axis)


def joined(g: Op, xs: Sequence[Value], axis: int) -> Value:
    """The values one after the other along an axis."""
    if not xs or any(v is None for v in xs):
        raise FormatError("joins nothing")
    at = axis_of(axis, g.rank(xs[0]))
    if len(xs) == 1:
        return xs[0]
    return g(s.CONCATENATION, xs=tuple(xs), axis=at, out=Tensor(xs[0].type, None, xs[0].tensor.quant))


@imports()
def Expand(g: Op, x: Value, shape: Value) -> Value:
    """To what x and a shape broadcast to."""
    wanted = () if shape.shape == (0,) else g.ints(shape)
    if wanted == () or wanted is not None and len(wanted) <= g.rank(x) and all(known(n) and n == 1 for n in wanted):
        return x
    rank = shape.shape[0]
    if not known(rank):
        g.unsupported("is expanded to a rank that is computed")
    if g.rank(x) < rank:
        x = inserted(g, x, range(rank - g.rank(x)))
    if wanted is None:
        return g(host.BROADCAST_TO, x, g.index(shape))
    out = stretched(x, wanted)
    if all(map(same, x.shape, out.shape)):
        return x
    return g(host.BROADCAST_TO, x, g.index(shape) if open_(wanted) else list(wanted), out=out)


def stretched(x: Value, wanted: Sequence[int]) -> Tensor:
    """What is known of x broadcast to sizes, no more of them than it has axes."""
    first = len(x.shape) - len(wanted)
    sizes = tuple(_wider(m, n) for m, n in zip(x.shape[first:], wanted, strict=True))
    return Tensor(x.type, (*x.shape[:first], *sizes), x.tensor.quant)


def _wider(m: int, n: int) -> int:
    if known(m) and m == 1 or known(n) and n != 1:
        return n
    return m if known(m) or known(n) or same(m, n) else UNKNOWN


@imports("Tile", until=5)
def tile_1(g: Op, x: Value, tiles: Value, axis: Value) -> Value:
    """The one axis, a number of the type of x, is repeated."""
    ramp, ones = (g.const(v.astype(np.int32)) for v in (np.arange(g.rank(x)), np.ones(g.rank(x))))
    there = g(e.EQUAL, ramp, g.cast(axis, I32))
    return Tile(g, x, g(host.WHERE, there, g.cast(tiles, I32), ones))


@imports(since=6)
def Tile(g: Op, x: Value, repeats: Value) -> Value:
    if not g.rank(x):
        return x
    counts = g.ints(repeats)
    if counts is not None and all(known(n) and n == 1 for n in counts):
        return x
    if counts is None or open_(counts):
        sizes = (UNKNOWN,) * len(x.shape) if counts is None else tuple(
            m * n for m, n in zip(x.shape, counts, strict=True))
        return g(s.TILE, x, g.index(repeats), out=Tensor(x.type, sizes, x.tensor.quant))
    return g(s.TILE, x, list(counts))


@imports()
def Identity(g: Op, x: Value) -> Value:
    return x


@imports("Shape", until=14)
def shape_1(g: Op, x: Value) -> Value:
    return sizes_of(g, x, 0, None)


@imports("Shape", since=15)
def shape_15(g: Op, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    return sizes_of(g, x, start, end)


def sizes_of(g: Op, x: Value, start: int, end: int | None) -> Value:
    """The sizes from `start` to `end`, as in Python, of INT64."""
    if x.tensor.dims is None:
        if start or end is not None:
            g.unsupported("cuts the sizes of a tensor whose rank is computed")
        return g.cast(g(host_arrays.SHAPE, x, out=Tensor(I32, (UNKNOWN,))), I64)
    wanted = range(g.rank(x))[start:end]
    if not open_(g.shape(x)[start:end]):
        return g.const(np.array(g.shape(x)[start:end], np.int64))
    whole = g(host_arrays.SHAPE, x)
    return g.cast(whole if len(wanted) == g.rank(x) else g(s.SLICE, whole, [wanted.start], [len(wanted)]), I64)


@imports()
def Size(g: Op, x: Value) -> Value:
    total = UNKNOWN if x.tensor.dims is None else product(g.shape(x))
    if known(total):
        return g.const(np.array(total, np.int64))
    sizes = g(host_arrays.SHAPE, x, out=Tensor(I32, (UNKNOWN,)))
    return g.scalar(g(r.REDUCE_PROD, g.cast(sizes, I64), [0], keep=True))


@imports(folds=False)
def ConstantOfShape(g: Op, shape: Value, *, value: np.ndarray | None = None) -> Value:
    """float32 zeros where there is no value."""
    fill = np.zeros((), np.float32) if value is None else value.reshape(-1)[0] if value.size == 1 else None
    if fill is None:
        raise FormatError("its value is not one element")
    wanted = () if shape.shape == (0,) else g.ints(shape)
    if wanted is not None and not open_(wanted):
        if any(n < 0 for n in wanted):
            raise FormatError(f"has the shape {list(wanted)}")
        if product(tuple(wanted)) <= LARGEST:
            return g.const(np.broadcast_to(np.asarray(fill), tuple(wanted)))
    one = g.const(np.asarray(fill).reshape(1))
    return g(host.BROADCAST_TO, one, g.index(shape), out=None if wanted is None else Tensor(
        one.type, tuple(wanted), one.tensor.quant))


@imports()
def Constant(g: Op, *, value: np.ndarray | None = None, value_float: float | None = None, value_int: int | None = None,
             value_floats: tuple[float, ...] | None = None, value_ints: tuple[int, ...] | None = None,
             value_string: str | None = None, value_strings: tuple[str, ...] | None = None,
             sparse_value: Sparse | None = None) -> Value:
    """The one attribute that is there."""
    given = (value, value_float, value_int, value_floats, value_ints, value_string, value_strings, sparse_value)
    if sum(v is not None for v in given) != 1:
        raise FormatError("needs exactly one value")
    if sparse_value is not None:
        return sparse.sparse_constant(sparse_value.of, g.session.model.folder)
    if value is not None:
        return g.const(value)
    if value_float is not None or value_floats is not None:
        return g.const(np.array(value_float if value_floats is None else value_floats, np.float32))
    if value_int is not None or value_ints is not None:
        return g.const(np.array(value_int if value_ints is None else value_ints, np.int64))
    texts = np.array([t.encode() for t in value_strings or (value_string or "",)], object)
    return g.const(texts.reshape(()) if value_strings is None else texts)


@imports("Range", until=26)
def range_11(g: Op, start: Value, limit: Value, delta: Value) -> Value:
    return counted(g, start, limit, delta)


@imports(since=27)
def Range(g: Op, start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    """Floats of 16 bits are counted in those of `stash_type`."""
    if start.type.dtype.itemsize != 2 or start.type.dtype.kind in "iu":
        return counted(g, start, limit, delta)
    if stash_type not in STASHED:
        raise FormatError(f"has the stash_type {stash_type}")
    wide = [g.cast(v, STASHED[stash_type]) for v in (start, limit, delta)]
    return g.cast(counted(g, *wide), start.type)


def counted(g: Op, start: Value, limit: Value, delta: Value) -> Value:
    """start, start + delta, ... without limit."""
    if g.known(delta) is not None and not g.constant(delta, "delta").all():
        raise FormatError("counts in steps of 0")
    bounds = [g.ints(v) for v in (start, limit, delta)]
    size = UNKNOWN
    if all(b is not None and len(b) == 1 for b in bounds):
        first, last, step = (b[0] for b in bounds if b)
        try:
            size = max(-((first - last) // step), 0)
        except Undecided:
            size = last - first if known(step) and step == 1 else UNKNOWN
    return g(cutting.COUNT, start, limit, delta, out=Tensor(start.type, (size,), start.tensor.quant))


@imports()
def EyeLike(g: Op, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    kind = x.type if dtype is None else type_of(dtype)
    sizes = g.shape(x) * 2 if g.rank(x) == 1 else g.shape(x)
    if len(sizes) != 2:
        raise FormatError(f"is an identity matrix like rank {len(sizes)}")
    if not open_(sizes) and product(sizes) <= LARGEST:
        return g.const(np.eye(*sizes, k), kind)
    at = lengths(g, x)
    where = g(s.CONCATENATION, xs=(at, at), axis=0) if g.rank(x) == 1 else at
    return g(cutting.EYE, where, k=k, to=kind, out=Tensor(kind, sizes, grid(kind)))


@imports()
def Trilu(g: Op, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    at = g.const(np.zeros(1, np.int32)) if k is None else g.index(k)
    if g.rank(x) < 2:
        raise FormatError(f"takes a triangle of rank {g.rank(x)}")
    if g.rank(at) > 1 or known(at.shape[0]) and at.shape[0] != 1:
        raise FormatError("takes more than one diagonal")
    return g(indexing.TRILU, x, at, upper=bool(upper))


@imports()
def ReverseSequence(g: Op, x: Value, lengths_: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Value:
    batch, time = axes_of((batch_axis, time_axis), g.rank(x))
    size, given = x.shape[time], g.known(lengths_)
    if given is not None and given.size and (given.min() < 0 or known(size) and given.max() > size):
        raise FormatError(f"reverses {given.min()} to {given.max()} of {size} elements")
    return g(host_arrays.REVERSE_SEQUENCE, x, g.index(lengths_), axis=time, batch=batch)


#: The order of the channels that blocks take: rows and columns before the depth, or after it.
MODES = ("DCR", "CRD")


def square(g: Op, x: Value, block: int, mode: str) -> None:
    """Raises `FormatError` where there are no blocks of an image."""
    if mode not in MODES or g.rank(x) != 4 or block < 1:
        raise FormatError(f"takes blocks of {block} in the mode {mode!r} of rank {g.rank(x)}")


@imports()
def DepthToSpace(g: Op, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """NNAPI has the depth after rows and columns."""
    square(g, x, blocksize, mode)
    if mode == "CRD":
        x = mixed(g, x, lambda c: np.arange(c).reshape(-1, blocksize**2).T)
    return g(image.DEPTH_TO_SPACE, x, block=blocksize, nchw=True)


@imports()
def SpaceToDepth(g: Op, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    square(g, x, blocksize, mode)
    y = g(image.SPACE_TO_DEPTH, x, block=blocksize, nchw=True)
    return y if mode == "DCR" else mixed(g, y, lambda c: np.arange(c).reshape(blocksize**2, -1).T)


def mixed(g: Op, x: Value, order: Callable[[int], np.ndarray]) -> Value:
    """The channels in another order, a function of their number."""
    channels = x.shape[1]
    if not known(channels):
        g.unsupported("orders channels whose number is open")
    return g(gather.GATHER, x, axis=1, indices=order(channels).reshape(-1).tolist())
