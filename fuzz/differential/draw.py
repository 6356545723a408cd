"""What a seed decides: numbers, shapes and choices, in the order they are asked for."""
from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
T = TypeVar("T")
#: No tensor has more elements than this.
LARGEST = 2500
#: Sizes of axes, small ones more often: 1 is broadcast, the others end within, at and after a vector's width.
SIZES = (1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33)
#: Ranks of tensors, by how often they are wanted.
RANKS = (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 6)
#: Floats that are put among drawn ones: zeros, the bounds of activations, halves.
EDGES = (0.0, -0.0, 1.0, -1.0, 6.0, 0.5, -0.5, 1.5, 2.5, 3.0, -3.0)


class Unfit(Exception):
    """A step that cannot be taken with what there is."""


class Draw:
    """Choices and numbers from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def one(self, choices: Sequence[T]) -> T:
        """One of several."""
        return self._random.choice(choices)

    def chance(self, part: float) -> bool:
        """True in this part of all cases."""
        return self._random.random() < part

    def between(self, least: int, most: int) -> int:
        """An integer, both ends included; `Unfit` where there is none."""
        if most < least:
            raise Unfit
        return self._random.randint(least, most)

    def real(self, least: float, most: float) -> float:
        """A number as single precision has it."""
        return float(np.float32(self._random.uniform(least, most)))

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """So many different ones, in any order."""
        return self._random.sample(choices, self.between(least, min(most, len(choices))))

    def order(self, n: int) -> list[int]:
        """0 to n - 1 in any order."""
        return self._random.sample(range(n), n)

    def shape(self, rank: int | None = None) -> Shape:
        """A shape of at most a fifth of the largest tensor; sometimes with one long axis and none beside it."""
        rank = self.one(RANKS) if rank is None else rank
        if rank and self.chance(0.04):
            at = self.between(0, rank - 1)
            return tuple(self.between(100, 900) if i == at else 1 for i in range(rank))
        found = [self.one(SIZES) for _ in range(rank)]
        while math.prod(found) > LARGEST // 5:
            at = max(range(rank), key=found.__getitem__)
            found[at] = max(1, found[at] // 2)
        return tuple(found)

    def factors(self, n: int, rank: int) -> Shape:
        """A shape of n elements with so many axes."""
        found, p = [1] * rank, 2
        while n > 1:
            while n % p == 0:
                found[self.between(0, rank - 1)] *= p
                n //= p
            p += 1
        return tuple(found)

    def broadcast(self, shape: Shape) -> Shape:
        """A shape that broadcasts against another: fewer axes, some of them 1."""
        if self.chance(0.4):
            return shape
        kept = shape[self.between(0, len(shape)):]
        return tuple(1 if self.chance(0.3) else n for n in kept)

    def axis(self, rank: int) -> int:
        """An axis, counted from either end; `Unfit` of a scalar."""
        return self.between(0, rank - 1) - (rank if self.chance(0.4) else 0)

    def floats(self, shape: Shape, low: float = -3.0, high: float = 3.0) -> Array:
        """Single-precision numbers in a range, a few of them where functions have corners."""
        found = np.asarray(self.numbers.uniform(low, high, shape), np.float32).reshape(-1)
        if found.size and self.chance(0.5):
            edges = [e for e in EDGES if low <= e <= high]
            for at in self.numbers.integers(0, found.size, min(3, len(edges))):
                found[at] = self.one(edges)
        return found.reshape(shape)

    def integers(self, shape: Shape, low: int, high: int, dtype: str) -> Array:
        """Integers in a range, both ends included."""
        return np.asarray(self.numbers.integers(low, high, shape, endpoint=True)).astype(dtype)
