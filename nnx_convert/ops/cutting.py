"""Cut, filled up, split, counted and reshaped by numbers that are computed."""
from __future__ import annotations

from contextlib import suppress

from ..kinds import AXIS, Int, Ints1, Natural, Parts, T, To, put
from ..schema import Rule, host
from ..types import UNKNOWN, Shape, Tensor, Undecided, known, maybe
from .host import ALL, TEXTS, AnyT, ToAny

#: What stands beside x: one value, x mirrored at its edge without it, the edge, x again.
CONSTANT, REFLECT, EDGE, WRAP = range(4)

AXES = Rule("axes are distinct axes of x", lambda x, axes: _distinct(axes.ints(), x.rank))


def _distinct(axes: Shape, rank_: int) -> bool:
    return all(-rank_ <= a < rank_ for a in axes) and len({a % rank_ for a in axes}) == len(axes)


def _along(x: Tensor, axes: Tensor, *columns: Tensor) -> dict[int, tuple[int, ...]]:
    """The numbers of each axis that axes list; raises `Undecided` where it is not known which these are."""
    rows = zip(*(c.ints() for c in columns), strict=True)
    return {a % x.rank: row for a, row in zip(axes.ints(), rows, strict=True)}


@host(60560, TEXTS, AXES, Rule("begin, end and strides have one number per axis", lambda begin, end, axes, strides:
                               begin.shape == end.shape == axes.shape == strides.shape),
      Rule("no stride is 0", lambda strides: 0 not in strides.ints()))
def CUT(x: T, begin: AnyT, end: AnyT, axes: AnyT, strides: AnyT) -> T:
    """x[begin:end:stride] along each of axes, as Python slices."""
    shape = (UNKNOWN,) * x.rank
    with suppress(Undecided):
        found = _along(x, axes, begin, end, strides)
        shape = tuple(maybe(taken, n, *found[i]) if i in found else n for i, n in enumerate(x.shape))
    return x.like(shape)


def taken(size: int, begin: int, end: int, stride: int) -> int:
    """How many elements a Python slice takes."""
    return len(range(*slice(begin, end, stride).indices(size)))


@host(60561, TEXTS, AXES, Rule("pads are two per axis", lambda pads, axes: pads.shape == (2 * axes.shape[0],)),
      Rule("value is one element", lambda value: value.shape == (1,)),
      Rule("mode is 0 constant, 1 reflect, 2 edge or 3 wrap", lambda mode: mode in range(4)))
def PAD_BY(x: T, pads: AnyT, value: T, axes: AnyT, mode: Int) -> T:
    """x cut where pads, [before..., after...] for axes, are negative, and filled up where they are positive."""
    shape = (UNKNOWN,) * x.rank
    with suppress(Undecided):
        amounts, count = pads.ints(), axes.shape[0]
        more = {a % x.rank: amounts[i] + amounts[i + count] for i, a in enumerate(axes.ints())}
        shape = tuple(n + more.get(i, 0) for i, n in enumerate(x.shape))
    return x.like(shape)


@host(60562, TEXTS, AXIS, outs=("part",))
def SPLIT_BY(x: T, sizes: AnyT, axis: Int) -> list[T]:
    """x cut along axis into parts of sizes."""
    return [x.like(put(x.shape, axis, n)) for n in sizes.ints()]


@host(60563, TEXTS, Rule("axes are distinct axes of the output", lambda x, axes: _distinct(
    axes.ints(), x.rank + axes.shape[0])))
def UNSQUEEZE(x: T, axes: AnyT) -> T:
    """x with axes of size 1 put in where the output has them."""
    rank_ = x.rank + axes.shape[0]
    shape = (UNKNOWN,) * int(rank_)
    with suppress(Undecided):
        new, rest = {a % rank_ for a in axes.ints()}, iter(x.shape)
        shape = tuple(1 if i in new else next(rest, UNKNOWN) for i in range(rank_))
    return x.like(shape)


@host(60567, TEXTS, Rule("x has as many axes of another size than 1 as rank says",
                         lambda x, rank: sum(n != 1 for n in x.shape) == rank))
def SQUEEZE_TO(x: T, rank: Natural) -> T:
    """x less its axes of size 1, which leaves rank axes."""
    return x.like(tuple(n for n in x.shape if not known(n) or n != 1) or (1,))


@host(60564, TEXTS, Rule("start, limit and delta are numbers", lambda start, limit, delta:
                         start.shape == limit.shape == delta.shape == (1,)))
def COUNT(start: T, limit: T, delta: T) -> T:
    """start + i * delta as far as limit, without it; nothing where that is the other way."""
    return start.like((UNKNOWN,))


@host(60565, ALL, Rule("shape is two sizes", lambda shape: shape.shape == (2,)))
def EYE(shape: Ints1, k: Int, to: ToAny) -> To:
    """Ones on the diagonal column - row = k, zeros elsewhere."""
    return Tensor(to, shape.ints())


@host(60566, TEXTS, AXIS, outs=("part",))
def CHUNK(x: T, axis: Int, count: Parts) -> list[T]:
    """x cut along axis into count parts of one size, the last of which may be smaller."""
    n, step = x.shape[axis], maybe(lambda: -(-x.shape[axis] // count))
    sizes = (maybe(lambda i: max(min(step, n - i * step), 0), i) for i in range(count))
    return [x.like(put(x.shape, axis, size)) for size in sizes]
