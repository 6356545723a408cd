"""What a run needs of memory when: planned, not compiled."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..frozen import frozen
from .bind import Options, Program, Step
from .plan import lifetimes, plan

if TYPE_CHECKING:
    from .codegen.program import Unit


@frozen
class Stretch:
    """Bytes of the arena: from the step that writes them (-1: an input) to the last that reads them.

    `made_by` is that step's place in the source file, its name where it has none.
    """

    made_by: str
    first: int
    last: int
    offset: int
    bytes: int


@frozen
class Footprint:
    """An arena of so many bytes, the places of the steps in the source file, and what of it is needed when."""

    arena: int
    steps: tuple[str, ...]
    stretches: tuple[Stretch, ...]

    @property
    def live(self) -> tuple[int, ...]:
        """The bytes that are needed at each step."""
        places = sorted({at for s in self.stretches for at in (s.offset, s.offset + s.bytes)})
        number = {at: n for n, at in enumerate(places)}
        sizes = np.diff(places)                  # of the pieces between places, each needed by `there` stretches
        there = np.zeros(len(sizes), np.int64)
        changes: list[list[tuple[int, Stretch]]] = [[] for _ in self.steps]
        for s in self.stretches:
            first, end = max(s.first, 0), s.last + 1
            if first < min(end, len(changes)):
                changes[first].append((1, s))
            if first < end < len(changes):
                changes[end].append((-1, s))
        total, found = 0, list[int]()
        for row in changes:
            for sign, s in row:
                own = slice(number[s.offset], number[s.offset + s.bytes])
                before = int(sizes[own][there[own] > 0].sum())
                there[own] += sign
                total += int(sizes[own][there[own] > 0].sum()) - before
            found.append(total)
        return tuple(found)


def footprint(program: Program, options: Options) -> Footprint:
    """That of a program, natively or in NumPy, as it would be run."""
    return of_native(program, options) if any(s.elsewhere for s in program.steps) else of_numpy(program)


def of_numpy(program: Program) -> Footprint:
    """That of a program that NumPy runs."""
    layout, names = plan(program), tuple(s.origin or s.name for s in program.steps)
    found = [Stretch(names[first] if first >= 0 else "input", first, min(last, len(names)), b.offset, b.nbytes)
             for slot, (first, last) in lifetimes(program).items() if (b := layout.slots.get(slot)) is not None]
    found += [Stretch(names[n], n, n, b.offset, b.nbytes) for n, row in enumerate(layout.scratch) for b in row]
    return Footprint(layout.size, names, tuple(found))


def of_native(program: Program, options: Options) -> Footprint:
    """That of a program whose native parts are not compiled yet."""
    from .blas import cores
    from .codegen.effort import worth
    from .codegen.fusion import groups
    from .codegen.machine import host
    from .codegen.program import Planner
    machine = replace(host(), fast=options.fast)
    bound = (s.bound for s in program.steps if s.bound is not None and s.elsewhere)
    planner = Planner(program, machine, worth(options.threads or cores(), bound))
    layout = planner.layout(groups(program, machine))
    names = tuple(called(u) for u in layout.units)
    found = (Stretch(names[first] if first >= 0 else "input", first, last, offset, size)
             for first, last, offset, size in planner.stretches)
    return Footprint(layout.size, names, tuple(found))


def called(unit: Unit) -> str:
    """The place of the last operation of a unit, or its name."""
    if isinstance(unit, tuple):
        return "copy"
    return next(filter(None, reversed(list(_places(unit)))), "")


def _places(unit: Unit) -> Iterator[str]:
    if isinstance(unit, Step):
        yield unit.origin or unit.name
    elif not isinstance(unit, tuple):
        yield from (b.origin or b.op.name for b in unit.members)
