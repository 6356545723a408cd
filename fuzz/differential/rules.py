"""Differences that are known: what an operator gives here and there, why, and where that is said.

`docs/reliability.md` lists them. A rule holds for one operator, run alone on the inputs that the reference runtime had.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw import Array
from .engines import Model


@dataclass(frozen=True)
class Single:
    """One operator run alone, as a model with its inputs, and what both gave for an output."""

    model: Model
    ours: Array
    theirs: Array

    @property
    def operator(self) -> str:
        """Its name."""
        return self.model.operators[-1]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Its options."""
        return self.model.attributes

    @property
    def inputs(self) -> list[Array]:
        """The inputs that are computed, in order."""
        return [self.model.given[n] for n in self.model.inputs]


@dataclass(frozen=True)
class Rule:
    """A known difference of some operators of a format: when it is one, why, and where it is said."""

    name: str
    form: str
    operators: tuple[str, ...]
    holds: Callable[[Single], bool]
    reason: str
    source: str

    def explains(self, single: Single) -> bool:
        """Whether a difference is this one."""
        return single.model.form == self.form and single.operator in self.operators and self.holds(single)


def step(single: Single) -> bool:
    """Whether codes are one step apart at most."""
    return single.ours.dtype.kind in "iu" and bool(
        (np.abs(single.ours.astype(np.int64) - single.theirs.astype(np.int64)) <= 1).all())


#: The rules, the first that holds is told.
RULES: tuple[Rule, ...] = ()


def explaining(single: Single) -> Rule | None:
    """The rule that explains a difference; None where there is none."""
    return next((r for r in RULES if r.explains(single)), None)
