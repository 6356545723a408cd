"""How a model grows in either format: the values there are, and steps that are undone where they do not fit."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np

from .draw import Draw, Shape, Unfit

#: Floats beyond this are brought back before anything else is done with them.
TAME = 1e3
#: Steps that are tried before none is taken.
TRIES = 20


class Ranged(ABC):
    """A tensor of a model, with the range of the numbers it may hold."""

    shape: Shape
    low: float
    high: float

    @property
    @abstractmethod
    def kind(self) -> str:
        """A letter that stands for types which steps take alike."""

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def bound(self) -> float:
        """The largest magnitude it may hold."""
        return max(abs(self.low), abs(self.high))


V = TypeVar("V", bound=Ranged)


@dataclass(frozen=True)
class Kind:
    """A step: what a value must be for it, how often it is taken, and from which version on where a format has them."""

    take: Callable[[Any, Any], None]
    kinds: str
    ranks: range
    weight: int
    since: int = 0


class Growth(ABC, Generic[V]):
    """A graph that grows step by step."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.values: list[V] = []

    @abstractmethod
    def kinds(self) -> Sequence[Kind]:
        """The steps there are, each as often as its weight says."""

    @abstractmethod
    def mark(self) -> Callable[[], None]:
        """What takes back all that is added from now on, but for the values."""

    def pick(self, fits: Callable[[V], bool]) -> V | None:
        """One of the values that fit, late ones more often."""
        fitting = [v for v in self.values if fits(v)]
        if not fitting:
            return None
        return fitting[-1] if self.draw.chance(0.5) else self.draw.one(fitting)

    def need(self, fits: Callable[[V], bool]) -> V:
        """The same; `Unfit` where there is none."""
        found = self.pick(fits)
        if found is None:
            raise Unfit
        return found

    def forget(self, *values: V) -> None:
        """Take no further steps from values: their sizes follow from other values, or they are weights."""
        self.values = [v for v in self.values if v not in values]

    def grow(self, steps: int) -> None:
        """Take so many steps, each one that fits what is there."""
        for _ in range(steps):
            any(self._try() for _ in range(TRIES))

    def _try(self) -> bool:
        """Take one step; what it has left behind is gone where it does not fit."""
        kind = self.draw.one(self.kinds())
        x = self.pick(lambda v: v.kind in kind.kinds and v.rank in kind.ranks)
        if x is None:
            return False
        undo, values = self.mark(), list(self.values)
        try:
            kind.take(self, x)
        except Unfit:
            undo()
            self.values = values
            return False
        return True


def ordered(steps: Sequence[Kind], package: str, families: Sequence[str]) -> list[Kind]:
    """The steps of a format's modules in the order that seeds mean, whichever of them is imported first."""
    for family in families:
        import_module(f"{package}.{family}")
    return sorted(steps, key=lambda k: families.index(k.take.__module__.rpartition(".")[2]))


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of both together; None where there is none."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None
