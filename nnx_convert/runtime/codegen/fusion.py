"""Which operations one function does: a head, and what follows it and is read by nothing else."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from ...types import rebuilt
from ..bind import Bound, Program, Slot, Step
from .bands import banded
from .elements import chainable
from .machine import Machine
from .tasks import Group


def groups(program: Program, machine: Machine) -> list[Group | Step]:
    """The steps, those done natively as groups; one of several stands where its last member stood.

    Heads that take in other heads choose first. Then those that are more than operations of elements, the later ones
    before the earlier: what two of them could take is done by the one whose result is there last, and a sum of
    products is no function of its own.
    """
    plan = Plan(program, machine)
    heads = [n for n, step in enumerate(program.steps) if step.bound is not None and step.elsewhere]
    light = {n for n in heads if chainable(plan.bound(n), machine)}
    heavy = [n for n in heads if n not in light]
    for n in heavy:
        if n not in plan.taken:
            plan.take(n, lambda steps: len(steps.intersection(heavy)) > 1)
    for n in (*reversed(heavy), *sorted(light)):
        if n not in plan.taken:
            plan.take(n)
    return banded([plan.found.get(n, step) for n, step in enumerate(program.steps)
                   if n in plan.found or n not in plan.taken], program, machine)


@dataclass
class Plan:
    """The groups so far, each by its last step's number, and the numbers of all steps that are in one."""

    program: Program
    machine: Machine
    found: dict[int, Group] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    readers: dict[Slot, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.readers = {}
        for n, step in enumerate(self.program.steps):
            for slot in set(step.reads):
                self.readers.setdefault(slot, []).append(n)

    def bound(self, n: int) -> Bound:
        """What a native step does."""
        found = self.program.steps[n].bound
        if found is None:
            raise TypeError(self.program.steps[n].name)
        return found

    def take(self, n: int, wanted: Callable[[set[int]], bool] = bool) -> None:
        """Make the longest group that a step heads, where its steps are what is wanted."""
        group, last, steps = self._longest(n)
        if wanted(steps):
            self.found[last] = group
            self.taken |= steps

    def _longest(self, n: int) -> tuple[Group, int, set[int]]:
        """The group, its last step's number, and its steps' numbers, those of views between its members among them."""
        group = Group(self.bound(n))
        best, steps = (group, n, {n}), {n}
        if len(group.outs) != 1:
            return best
        inside, ahead = {group.outputs[0]: group.outputs[0]}, list[int]()
        kept = frozenset(self.program.outputs)
        self._await(ahead, group.outputs[0], steps)
        while ahead:
            n = heappop(ahead)
            step = self.program.steps[n]
            steps.add(n)
            if step.view is not None and step.view in inside:
                inside[step.outs[0]] = inside[step.view]
                made = step.outs[0]
            else:
                longer = self._with(group, n, inside)
                if longer is None:
                    return best
                group, made = longer, longer.outputs[0]
                if not ahead and kept.isdisjoint(inside) and group.family.whole(group):
                    best = group, n, set(steps)
                inside[made] = made
            self._await(ahead, made, steps)
        return best

    def _await(self, ahead: list[int], slot: Slot, steps: Iterable[int]) -> None:
        """Add those who read a slot to those who have to be looked at."""
        for n in self.readers.get(slot, ()):
            if n not in ahead and n not in steps:
                heappush(ahead, n)

    def _with(self, group: Group, n: int, inside: Mapping[Slot, Slot]) -> Group | None:
        """The group with one more step; None where it does not take that in."""
        step = self.program.steps[n]
        if n in self.taken or step.bound is None or not step.elsewhere or len(step.outs) != 1:
            return None
        b = renamed(step.bound, inside)
        return Group(group.head, (*group.tail, b)) if group.family.fuses(group, b, self.machine) else None


def renamed(b: Bound, names: Mapping[Slot, Slot]) -> Bound:
    """An operation that reads other slots in place of some."""
    def changed(value: Any) -> Any:
        return rebuilt(value, map(changed, value)) if isinstance(value, tuple) else names.get(value, value)
    return replace(b, slots={n: changed(v) for n, v in b.slots.items()})
