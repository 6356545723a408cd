"""What a run needs of memory when: planned, not compiled."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

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
        there: list[list[Stretch]] = [[] for _ in self.steps]
        for s in self.stretches:
            for n in range(max(s.first, 0), min(s.last + 1, len(there))):
                there[n].append(s)
        return tuple(map(covered, there))


def covered(stretches: Sequence[Stretch]) -> int:
    """The bytes under stretches, some of which may share them."""
    end = total = 0
    for offset, stop in sorted((s.offset, s.offset + s.bytes) for s in stretches):
        total += max(0, stop - max(offset, end))
        end = max(end, stop)
    return total


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
