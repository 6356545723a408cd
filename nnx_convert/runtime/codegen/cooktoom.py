"""Short convolutions with fewer products: the matrices of Cook and Toom, and code that multiplies vectors by them.

m outputs of a filter of r taps are values of polynomials at m + r - 2 points and at infinity: y = A (G w * B x), with
a product for each point. S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast
Algorithms for Convolutional Neural Networks, 2015.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from ...frozen import frozen
from ...types import Array
from .ir import Function, number

Row = tuple[float, ...]
#: The points of so many outputs. They decide how far rounding is amplified; powers of two would take additions alone
#: and lose twice as much. All coefficients that code uses are FLOAT32.
POINTS = {2: (0, 1, -1), 4: (0, Fraction(3, 4), Fraction(-3, 4), Fraction(3, 2), Fraction(-3, 2))}


@frozen
class Form:
    """How `outputs` neighbours are found by a filter of `taps`: from `size` neighbours, by as many products."""

    outputs: int
    taps: int
    x: tuple[Row, ...]      # B, [size, size]
    w: tuple[Row, ...]      # G, [size, taps]
    y: tuple[Row, ...]      # A, [outputs, size]

    @property
    def size(self) -> int:
        """Inputs along an axis, and products."""
        return self.outputs + self.taps - 1

    @property
    def halves(self) -> tuple[tuple[int, ...], ...]:
        """The points alone or in pairs of a number and its negative, by their numbers."""
        return (0,), *((i, i + 1) for i in range(1, self.size - 1, 2)), (self.size - 1,)

    def weights(self, filters: Array) -> Array:
        """Filters [out, taps, taps, in] as matrices [size * size, in, out], rounded once."""
        g = np.array(self.w)
        out, _, _, depth = filters.shape
        both = np.kron(g, g)
        flat = filters.reshape(out, self.taps ** 2, depth).transpose(1, 2, 0).astype(np.float64)
        return (both @ flat.reshape(self.taps ** 2, -1)).astype(np.float32).reshape(-1, depth, out)


@cache
def form(outputs: int, taps: int = 3) -> Form:
    """The form of so many outputs."""
    points = [Fraction(p) for p in POINTS[outputs]]
    size = outputs + taps - 1
    x, w = [], []
    for n, p in enumerate(points):
        others = points[:n] + points[n + 1:]
        x.append(_with_roots(others, size))
        scale = _product(p - q for q in others)
        w.append([p ** k / scale for k in range(taps)])
    x.append(_with_roots(points, size))
    w.append([Fraction(int(k == taps - 1)) for k in range(taps)])
    y = [[*(p ** k for p in points), Fraction(int(k == outputs - 1))] for k in range(outputs)]
    return Form(outputs, taps, *(tuple(tuple(map(float, row)) for row in rows) for rows in (x, w, y)))


def _product(values: Iterator[Fraction]) -> Fraction:
    found = Fraction(1)
    for value in values:
        found *= value
    return found


def _with_roots(roots: Sequence[Fraction], size: int) -> list[Fraction]:
    """The coefficients of the polynomial with these roots, the constant first, zeros up to a size."""
    found = [Fraction(1)]
    for root in roots:
        found = [up - root * same for up, same in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found + [Fraction(0)] * (size - len(found))


# Code.
def summed(f: Function, type: str, terms: Sequence[tuple[float, str]]) -> str:
    """The sum of vectors, each times a number; at least one is not zero."""
    there = sorted(((c, v) for c, v in terms if c), key=lambda term: term[0] != 1)
    (first, total), *rest = there
    if first != 1:
        total = f.let(f"fmul {type} {total}, {number(type, first)}")
    for c, v in rest:
        if abs(c) == 1:
            total = f.let(f"{'fadd' if c > 0 else 'fsub'} {type} {total}, {v}")
        else:
            total = f.fma(type, v, number(type, c), total)
    return total


def entering(f: Function, type: str, how: Form, points: tuple[int, ...], values: Callable[[int], str]) -> list[str]:
    """What inputs are worth at a point, or at a pair of points: their even and their odd terms are summed once."""
    rows = [how.x[p] for p in points]
    if len(rows) == 1:
        return [summed(f, type, [(c, values(n)) for n, c in enumerate(rows[0]) if c])]
    last = max(n for n, (a, b) in enumerate(zip(*rows, strict=True)) if a != b)
    scale = rows[0][last]
    even = summed(f, type, [(a, values(n)) for n, (a, b) in enumerate(zip(*rows, strict=True)) if a and a == b])
    odd = summed(f, type, [(a / scale, values(n)) for n, (a, b) in enumerate(zip(*rows, strict=True)) if a != b])
    return [summed(f, type, [(1, even), (sign * scale, odd)]) for sign in (1, -1)]


def leaving(f: Function, type: str, how: Form, outputs: Sequence[int], values: Callable[[int], str]) -> list[str]:
    """Outputs from what their polynomial is worth at the points: pairs of points are added or subtracted once."""
    made: dict[tuple[int, bool], str] = {}

    def term(points: tuple[int, ...], row: Row) -> tuple[float, str] | None:
        even = row[points[0]] == row[points[-1]]
        if not row[points[0]]:
            return None
        if len(points) == 1:
            return row[points[0]], values(points[0])
        if (points[0], even) not in made:
            made[points[0], even] = f.let(
                f"{'fadd' if even else 'fsub'} {type} {values(points[0])}, {values(points[1])}")
        return row[points[0]], made[points[0], even]
    return [summed(f, type, [t for t in (term(p, how.y[k]) for p in how.halves) if t]) for k in outputs]
