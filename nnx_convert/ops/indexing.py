"""Elements at computed places: gathered, scattered, written over, told apart."""
from __future__ import annotations

from typing import Annotated

from ..kinds import AXIS, Bool, Bools, Int, Ints, Ints1, Natural, T, put, rank
from ..schema import Rule, composite, host
from ..types import I64, UNKNOWN, Tensor
from .host import ALL, TEXTS, AnyT
from .shape import inserted

#: What an element that is written becomes together with the one that is there.
REPLACE, ADD, MULTIPLY, LEAST, MOST = range(5)

FOLD = Rule("fold is 0 replace, 1 add, 2 multiply, 3 least or 4 most", lambda fold: fold in range(5))
RANKS = Rule("x and indices have one rank", lambda x, indices: x.rank == indices.rank)
FITS = Rule("indices are within x but along axis", lambda x, indices, axis: all(
    m <= n for i, (m, n) in enumerate(zip(indices.shape, x.shape, strict=True)) if i != axis % x.rank))


# Composites.
@composite(ALL, AXIS, RANKS, FITS)
def GATHER_ELEMENTS(x: T, indices: Ints, axis: Int) -> T:
    """x[i, ..., indices[i, ..., k], ..., k], the index standing in the place of axis."""
    return x.like(indices.shape)


@composite(ALL, Rule("x and indices share their first batch axes",
                     lambda x, indices, batch: x.shape[:batch] == indices.shape[:batch]))
def GATHER_ND_BATCHED(x: T, indices: Ints, batch: Natural) -> T:
    """GATHER_ND for each index of the first `batch` axes, which x and indices share."""
    return x.like((indices.shape[:-1] + x.shape[batch + indices.shape[-1]:]) or (1,))


@composite(ALL, Rule("k is one number", lambda k: k.size == 1))
def TRILU(x: Annotated[T, rank(2, 8)], k: Ints1, upper: Bool) -> T:
    """x on and above (upper) or on and below the diagonal column - row = k, zero elsewhere."""
    return x


# Host operations.
@host(60550, TEXTS, AXIS, RANKS, FITS, FOLD,
      Rule("indices and updates have one shape", lambda indices, updates: indices.shape == updates.shape))
def SCATTER_ELEMENTS(x: T, indices: AnyT, updates: T, axis: Int, fold: Int) -> T:
    """x, updates folded in where GATHER_ELEMENTS would pick; a negative index counts from the end."""
    return x


@host(60551, TEXTS, FOLD, Rule("updates have the shape of the elements picked", lambda x, indices, updates:
                               updates.shape == (indices.shape[:-1] + x.shape[indices.shape[-1]:] or (1,))))
def SCATTER_TUPLES(x: T, indices: AnyT, updates: T, fold: Int) -> T:
    """x folded with updates at the tuples along the last axis of indices; negative ones count from the end."""
    return x


@host(60552, ALL, Rule("axis is an axis of x, not the first", lambda x, axis: 0 < axis % x.rank and
                     -x.rank <= axis < x.rank), Rule("update is x, but shorter along axis", lambda x, update, axis: put(
          x.shape, axis, 0) == put(update.shape, axis, 0) and update.shape[axis] <= x.shape[axis]),
      Rule("start has one number per index of the first axis", lambda x, start: start.shape == (x.shape[0],)))
def WRITE_ROWS(x: T, update: T, start: AnyT, axis: Int, circular: Bool) -> T:
    """x, update[i] written over x[i] from start[i] on along axis, and round the end if circular."""
    return x


@host(60553, TEXTS, AXIS, Rule("keep is no longer than the axis", lambda x, keep, axis:
                               keep.shape[0] <= x.shape[axis]))
def COMPRESS(x: T, keep: Annotated[Bools, rank(1)], axis: Int) -> T:
    """x at the indices along axis for which keep is set."""
    return x.like(put(x.shape, axis, UNKNOWN))


@host(60554, TEXTS, AXIS, outs=("values", "first", "which", "counts"))
def UNIQUE_ALONG(x: T, axis: Int, ordered: Bool) -> tuple[T, AnyT, AnyT, AnyT]:
    """The distinct slices of x along axis, in order or as they come; where each is first, which each is, how often."""
    return (x.like(put(x.shape, axis, UNKNOWN)), Tensor(I64, (UNKNOWN,)), Tensor(I64, (x.shape[axis],)),
            Tensor(I64, (UNKNOWN,)))


@host(60555, TEXTS, Rule("values are two, off and on", lambda values: values.shape == (2,)),
      Rule("axis is in [-rank - 1, rank] of indices", lambda indices, axis: -indices.rank - 1 <= axis <= indices.rank))
def ONE_HOT(indices: AnyT, depth: AnyT, values: T, axis: Int) -> T:
    """values[1] where the new axis counts to the index, else values[0]; a negative index counts from the end."""
    return values.like(inserted(indices.shape, axis, depth.ints()[0]))
