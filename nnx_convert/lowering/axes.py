"""Orders of axes: permutations, and what a reshape does to them.

An order `p` of a value says where its axes stand in memory: the i-th stored axis is its axis p[i]. Orders that
differ in where axes of size 1 stand are the same bytes.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..graph import Value
from ..schema import OpError
from ..symbols import quotient, same
from ..types import Shape, known, product

Perm = tuple[int, ...]
#: Of each axis the factors its size is cut into, by number.
Cut = list[list[int]]


def ident(rank: int) -> Perm:
    """The order as it is."""
    return tuple(range(rank))


def inverse(p: Perm) -> Perm:
    """The permutation that undoes another."""
    found = [0] * len(p)
    for i, a in enumerate(p):
        found[a] = i
    return tuple(found)


def compose(t: Perm, q: Perm) -> Perm:
    """First t, then q."""
    return tuple(t[a] for a in q)


def turn(now: Perm, want: Perm) -> Perm:
    """What TRANSPOSE does to something stored in one order to store it in another."""
    at = inverse(now)
    return tuple(at[a] for a in want)


def stored(shape: Shape, p: Perm) -> Shape:
    """The sizes in memory."""
    return tuple(shape[a] for a in p)


def dropped(p: Perm, axes: Sequence[int]) -> Perm:
    """The order of what is left without some axes."""
    left = [a for a in range(len(p)) if a not in axes]
    return tuple(left.index(a) for a in p if a not in axes)


def as_written(shape: Shape) -> Shape:
    """Sizes as RESHAPE takes them, an open one as -1: what is left over. No more than one may be open."""
    return tuple(n if known(n) else -1 for n in shape)


def alike(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same whatever the open sizes are."""
    return len(a) == len(b) and all(map(same, a, b))


def in_memory(shape: Shape, p: Perm) -> Perm:
    """What an order means in memory: axes of size 1 may stand anywhere."""
    return tuple(a for a in p if not same(shape[a], 1))


def carried(a: Shape, b: Shape, p: Perm) -> Perm | None:
    """The order of b in which a reshape of a, stored as p, moves nothing; None if there is none.

    The factors both shapes share, in the order a stores them, must give every axis of b in one piece; the order in
    which those pieces come is the answer. Axes of size 1 go where they stood.
    """
    cut = factors(a, b)
    if cut is None:
        return None
    of_a, of_b = cut
    row = [f for axis in p for f in of_a[axis]]
    owner = {fs[0]: axis for axis, fs in enumerate(of_b) if fs}
    order = list[int]()
    while row:
        axis = owner.get(row[0], -1)
        if axis < 0 or row[:len(of_b[axis])] != of_b[axis]:
            return None
        order.append(axis)
        row = row[len(of_b[axis]):]
    for axis in range(len(b)):
        if not of_b[axis]:
            order.insert(axis, axis)
    return tuple(order)


def factors(a: Shape, b: Shape) -> tuple[Cut, Cut] | None:
    """Both shapes cut into common factors, numbered from the first axis on; None where they share no such cut.

    An axis of size 1 has no factors; a size that is not known divides only what it is a factor of.
    """
    of_a: Cut = [[] for _ in a]
    of_b: Cut = [[] for _ in b]
    left = [(i, n) for i, n in enumerate(a) if not same(n, 1)][::-1]
    right = [(i, n) for i, n in enumerate(b) if not same(n, 1)][::-1]
    count = 0
    while left and right:
        (i, m), (j, n) = left.pop(), right.pop()
        up, down = _times(m, n), _times(n, m)
        if up is None and down is None:
            return None
        of_a[i].append(count)
        of_b[j].append(count)
        count += 1
        if down is None and up is not None:
            left.append((i, up))
        elif up is None and down is not None:
            right.append((j, down))
    return None if left or right else (of_a, of_b)


def _times(a: int, b: int) -> int | None:
    """How often b goes into a; None where that is no whole number of times."""
    return None if same(b, 0) else quotient(a, b)


def sizes_of(a: Shape, of_a: Cut, b: Shape, of_b: Cut) -> dict[int, int]:
    """The size of each factor; raises `OpError` where it does not follow."""
    size = dict[int, int]()
    todo = [(n, fs) for n, fs in (*zip(a, of_a, strict=True), *zip(b, of_b, strict=True)) if fs]
    while todo:
        later = list[tuple[int, list[int]]]()
        for n, fs in todo:
            missing = [f for f in fs if f not in size]
            rest = quotient(n, product(tuple(size[f] for f in fs if f in size))) if len(missing) == 1 else None
            if rest is not None:
                size[missing[0]] = rest
            elif missing:
                later.append((n, fs))
        if len(later) == len(todo):
            raise OpError("RESHAPE", "the sizes of its factors do not follow from its shapes")
        todo = later
    return size


def ranked(v: Value) -> bool:
    """Whether the number of its axes is known."""
    return v.tensor.dims is not None
