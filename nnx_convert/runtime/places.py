"""Images read at places between their cells: which cells count and how much, and what stands for those outside."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ..types import Array

#: Along an axis: the cells that count for each place, and how much each.
Along = list[tuple[Array, Array]]
#: Farther than any cell of an image; what is no number is there, too.
FAR = float(1 << 30)


def whole(x: Array) -> Array:
    """Real cells as integers, rounded down; those far away, and what is no number, at places far outside."""
    return np.clip(np.where(np.isnan(x), -FAR, np.floor(x)), -FAR, FAR).astype(np.int64)


def nearest(at: Array) -> Along:
    """The nearest cell, that of the even number of two."""
    return [(whole(np.rint(at)), np.ones((), at.dtype))]


def corners(at: Array) -> Along:
    """The cells on either side, by distance."""
    low = whole(at)
    share = at - low
    return [(low, 1 - share), (low + 1, share)]


def cubic(at: Array, a: float = -0.75) -> Along:
    """Four cells, by cubic convolution (Keys)."""
    low = whole(at)
    return [(low + i, keys(at - low - i, a)) for i in range(-1, 3)]


def keys(x: Array, a: float) -> Array:
    """The kernel of cubic convolution at distances x."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, np.zeros((), x.dtype)))


def reflected(x: Array, low: float, high: float) -> Array:
    """Places mirrored at the ends of a range until they are inside."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    distance = np.where(x < low, low - x, np.where(x > high, x - high, 0))
    count = np.trunc(distance / x.dtype.type(span))
    rest = distance - count * x.dtype.type(span)
    back, even = x < low, count % 2 == 0
    inner = np.where(back == even, low + rest, high - rest)
    return np.where((x < low) | (x > high), inner, x)


def ends(size: int, align: bool) -> tuple[float, float]:
    """Where an axis begins and ends: at the middles of its outer cells, or at their edges."""
    return (0.0, size - 1.0) if align else (-0.5, size - 0.5)


def placed(outside: str, size: int, align: bool) -> Callable[[Array], tuple[Array, Array | None]]:
    """Cells, some of them outside an axis, as cells inside, and which of them count (None: all)."""
    if outside == "zeros":
        return lambda i: (np.clip(i, 0, size - 1), (i >= 0) & (i < size))
    if outside == "border":
        return lambda i: (np.clip(i, 0, size - 1), None)
    low, high = ends(size, align)
    return lambda i: (np.clip(np.trunc(reflected(i.astype(np.float64), low, high)), 0, size - 1).astype(np.int64), None)


def weighted(x: Array, along: Sequence[Along], outside: str, align: bool) -> Array:
    """x [n, c, *sizes] at places [n, *out] along each axis: [n, c, *out]."""
    sizes, out = x.shape[2:], np.shape(along[0][0][0])[1:]
    places = [placed(outside, size, align) for size in sizes]
    steps = np.cumprod([1, *sizes[:0:-1]])[::-1].tolist()
    inside = [[(i * step, there, w) for (i, there), w in ((place(i), w) for i, w in axis)]
              for place, axis, step in zip(places, along, steps, strict=True)]
    total = np.zeros((len(x), x.shape[1], *out), x.dtype)
    for chosen in product(*inside):
        where = sum(i for i, _, _ in chosen)
        there = [t for _, t, _ in chosen if t is not None]
        share = [w for _, _, w in chosen if w.ndim]
        for n, image in enumerate(x.reshape(*x.shape[:2], -1)):
            part = np.take(image, np.asarray(where)[n], axis=1)
            if share:
                part *= np.multiply.reduce([w[n] for w in share]).astype(x.dtype, copy=False)
            inner = np.logical_and.reduce([t[n] for t in there]) if there else np.True_
            if not inner.all():                   # last, since a place that is no number has shares that are none
                part[:, ~inner] = 0
            total[n] += part
    return total
