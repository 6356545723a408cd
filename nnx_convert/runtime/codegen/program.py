"""A program as segments of native code, with NumPy steps between them where there is no native kernel."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...types import Tensor
from ..bind import Program, Slot, Step
from ..blas import cores
from ..forks import beside
from ..memory import ALIGN, affordable_arena
from ..plan import _Block, _place
from . import pages
from .directed import ordinary
from .fusion import groups
from .ir import ALONE, Function, Module
from .machine import Machine
from .moves import Carry, Copy, FillBorders
from .objects import made
from .parts import Storage
from .plans import recalling
from .places import SLACK, Border, Place, dense_strides, room
from .pool import RUN, barrier
from .ready import Layout, Ready, Segment
from .stamps import STAMP, Stamp
from .tasks import SCRATCH, Group, Phases, Task, Workshop, slots_of

#: Bytes of weights that are brought to their places by another thread, while LLVM works.
LARGE = 1 << 20
#: Tasks that one function does at most.
TOGETHER = 256

#: What one thing in the order of a run does: operations natively, one in NumPy, or a copy that a reader wants.
Unit = Group | Step | tuple[Slot, Slot]


@dataclass
class Planner:
    """From groups to places."""

    program: Program
    machine: Machine
    threads: int
    profiled: bool = False
    borders: dict[Slot, Border] = field(default_factory=dict)
    storage: Storage = field(init=False)
    copies: dict[Group, dict[Slot, Slot]] = field(default_factory=dict)     # for a reader, by what is copied
    originals: dict[Slot, Slot] = field(default_factory=dict)               # by the copy
    # Of all that has bytes of its own: the first unit that needs it and the last, where it begins, its size.
    stretches: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = Storage(self.program)

    def layout(self, order: Sequence[Group | Step]) -> Layout:
        """The places of a program's slots."""
        self.storage.find(order)
        self._borders(order)
        units = self._units(order)
        blocks, scratch = self._blocks(units)
        apart = list({id(b): b for b in (*blocks.values(), *scratch.values())}.values())
        size = _place(apart) if pages.MEMORY.shared else _in_a_row(apart)
        self.stretches = [(b.first, min(b.last, len(units)), b.offset, b.size) for b in apart]
        places = {slot: self._at(slot, b.offset) for slot, b in blocks.items()}
        rooms = {n: Place("%arena", b.offset, (self.threads, b.size // self.threads), (b.size // self.threads, 1), 1)
                 for n, b in scratch.items()}
        stamps = STAMP * (len(units) + 1) if self.profiled else 0
        rest = -(-stamps // ALIGN) * ALIGN + ALIGN
        end = pages.MEMORY.begin(size + SLACK, rest)
        arrays = (*((b.offset, b.size) for b in apart), (end, rest))
        return Layout(units, places, rooms, end + rest, end if self.profiled else None, arrays)

    def root(self, slot: Slot) -> Slot:
        """The slot whose storage a slot shares."""
        return self.storage.root(slot)

    def _borders(self, order: Sequence[Group | Step]) -> None:
        """The borders that producers leave room for: where everyone who touches the image can do with them."""
        stiff = {self.root(s) for s in (*self.program.outputs, *self.storage.dense)}
        for unit in order:
            family = unit.family if isinstance(unit, Group) else None
            if family is None or not family.strided:
                touched = (*unit.reads, *(unit.outputs if isinstance(unit, Group) else unit.outs))
                stiff.update(self.root(s) for s in touched)
            elif isinstance(unit, Group) and unit.reshaped:
                stiff.update(self.root(s) for b in unit.tail for s in (*slots_of(b), *b.outputs))
        for unit in order:
            if isinstance(unit, Group):
                for slot, border in unit.family.border(unit.head).items():
                    root = self.root(slot)
                    joined = self.borders.get(root, Border()).joined(border)
                    if root not in stiff and slot not in self.program.constants and joined is not None:
                        self.borders[root] = joined

    def _units(self, order: Sequence[Group | Step]) -> list[Unit]:
        """The units with the copies that readers want who get no border."""
        units: list[Unit] = []
        for unit in order:
            if isinstance(unit, Group):
                for slot, border in unit.family.border(unit.head).items():
                    if border and not covers(self.borders.get(self.root(slot), Border()), border):
                        made = SCRATCH - 1 - len(self.originals)
                        self.copies.setdefault(unit, {})[slot] = made
                        self.originals[made], self.borders[made] = slot, border
                        units.append((slot, made))
            units.append(unit)
        return units

    def _blocks(self, units: Sequence[Unit]) -> tuple[dict[Slot, _Block], dict[int, _Block]]:
        last: dict[Slot, int] = {}
        for n, unit in enumerate(units):
            last.update(dict.fromkeys((self.root(s) for s in self._reads(unit)), n))
        lasting = (*self.program.outputs, *(before for before, _ in self.program.states), *(
            i for i in self.program.inputs if i is not None and self.program.inner))
        last.update(dict.fromkeys((self.root(s) for s in lasting), len(units)))
        blocks: dict[Slot, _Block] = {}
        scratch: dict[int, _Block] = {}
        for i in self.program.inputs:
            if i is not None and i not in self.program.constants:
                blocks[i] = _Block(self._bytes(i), -1, last.get(i, -1))
        for n, unit in enumerate(units):
            for slot in _writes(unit):
                root = self.root(slot)
                if root not in blocks and root not in self.program.constants:
                    blocks[root] = _Block(self._bytes(root), n, last.get(root, n))
                if root in blocks:
                    blocks[slot] = blocks[root]
            size = unit.family.scratch(unit, self.machine) if isinstance(unit, Group) else 0
            if size:
                scratch[n] = _Block(-(-size // 64) * 64 * self.threads, n, n)
        return blocks, scratch

    def _reads(self, unit: Unit) -> tuple[Slot, ...]:
        if isinstance(unit, tuple):
            return unit[:1]
        return (*unit.reads, *(self.copies.get(unit, {}).values() if isinstance(unit, Group) else ()))

    def tensor(self, slot: Slot) -> Tensor:
        """What is at a slot; a copy is what it copies."""
        return self.program.tensors[self.originals.get(slot, slot)]

    def _bytes(self, slot: Slot) -> int:
        t = self.tensor(slot)
        return room(t.shape, t.type.dtype.itemsize, self.borders.get(slot, Border()))[0]

    def _at(self, slot: Slot, offset: int) -> Place:
        """The place of a slot whose bytes, or those that it shares, begin at an offset."""
        if slot in self.storage.parts:
            part = self.storage.parts[slot]
            return part.place(self._at(part.whole, offset), self.tensor(slot).shape)
        if slot in self.storage.views:
            return self._at(self.storage.views[slot], offset).reshaped(self.tensor(slot).shape)
        t, border = self.tensor(slot), self.borders.get(slot, Border())
        _, strides, first = room(t.shape, t.type.dtype.itemsize, border)
        return Place("%arena", offset + first, t.shape, strides, t.type.dtype.itemsize, border)


    def carried(self, places: Mapping[Slot, Place]) -> tuple[tuple[Place, Place], ...] | None:
        """Where each state is after a run, and where the next run reads it, unless that is the same place.

        None where they cannot simply be copied: a run's result is an old state, a state becomes an old one.
        """
        own, pairs = {before for before, _ in self.program.states}, []
        left = set(self.program.outputs) - {after for _, after in self.program.states}
        if any(self.root(s) in own for s in left):
            return None
        for before, after in self.program.states:
            if before not in places or after not in places:
                return None
            to, source = places[before], places[after]
            if to.shape != source.shape or to.item != source.item:
                return None
            if (to.offset, to.strides) != (source.offset, source.strides):
                if self.root(after) in own:
                    return None
                pairs.append((source, to))
        return tuple((_line(source), _line(to)) if _dense(source) and _dense(to) else (source, to)
                     for source, to in pairs)


def _in_a_row(blocks: Sequence[_Block]) -> int:
    """Give each block bytes of its own; the arena's size."""
    end = 0
    for block in blocks:
        block.offset = pages.MEMORY.begin(end, block.size)
        end = block.offset + block.size
    return end


def _dense(p: Place) -> bool:
    return p.strides == dense_strides(p.shape, p.item)


def _line(p: Place) -> Place:
    return p.reshaped((1, p.size))


def covers(have: Border, want: Border) -> bool:
    """Whether a border is at least as wide, and of the same bytes."""
    return have.fill == want.fill and all(a >= b for a, b in zip(have.sides, want.sides, strict=True))


def _writes(unit: Unit) -> tuple[Slot, ...]:
    return unit.outputs if isinstance(unit, Group) else unit[1:] if isinstance(unit, tuple) else unit.outs


#: One thing of a run: tasks of native code, one after the other, or a NumPy step.
Stretch = list[Task] | Step


def stretches(layout: Layout, planner: Planner, shop: Workshop) -> list[Stretch]:
    """The units as tasks, neighbours together."""
    found: list[Stretch] = []
    tasks: list[Task] | None = None
    given = {layout.places[i] for i in planner.program.inputs if i in layout.places}
    filled = set(planner.program.inputs)
    images = tuple(p for p in sorted(given, key=lambda p: p.offset) if p.border)
    for n, unit in enumerate(layout.units):
        if isinstance(unit, Step):
            if unit.view is None:
                found.append(unit)
                tasks = None
            continue
        if tasks is None:
            tasks = [*layout.stamp(n)]
            found.append(tasks)
        if images:
            tasks.append(FillBorders(images, waited=True))
            images = ()
        begun = [shop.place(s) for s in dict.fromkeys(map(planner.root, _writes(unit))) if s not in filled]
        tasks += [FillBorders((place,), waited=False) for place in begun if place.border]
        filled.update(map(planner.root, _writes(unit)))
        if isinstance(unit, tuple):
            tasks += [Copy(shop.place(unit[0]), shop.place(unit[1])), *layout.stamp(n + 1)]
            continue
        own = {s: layout.places[made] for s, made in planner.copies.get(unit, {}).items()}
        scratch = {SCRATCH: layout.scratch[n]} if n in layout.scratch else {}
        result = {s: layout.places[s].reshaped(unit.head.outs[0].shape) for s in unit.outputs if unit.reshaped}
        shop.places = {**layout.places, **own, **scratch, **result}
        work = unit.family.make(shop, unit)
        tasks += (*(work.tasks if isinstance(work, Phases) else (work,)), *layout.stamp(n + 1))
        shop.places = layout.places
    if pairs := planner.carried(layout.places):
        if tasks is None:
            tasks = []
            found.append(tasks)
        tasks.append(Carry(pairs, layout.fault))
    return found


def segment(m: Module, name: str, tasks: Sequence[Task]) -> None:
    """Write the function that does tasks one after the other, its threads waiting for each other between them; very
    many by functions of some each, since LLVM's time for one grows with the square of its calls."""
    f = Function(m, name, RUN, exported=True)

    def all_() -> None:
        if len(tasks) <= TOGETHER:
            done(f, tasks, range(len(tasks)))
            return
        waits = 0
        for at in range(0, len(tasks), TOGETHER):
            own = range(at, min(at + TOGETHER, len(tasks)))
            part = Function(m, f"{name}_part{at // TOGETHER}", RUN)
            done(part, tasks, own)
            part.finish()
            base = f.add("%base", f.mul("%threads", waits))
            f.do(f"call void @{part.name}(ptr %arena, ptr %weights, i64 %thread, i64 %threads, ptr %sync, i64 {base})")
            waits += sum(waits_after(tasks, n) for n in own)
    ordinary(f, all_)
    f.finish()


def done(f: Function, tasks: Sequence[Task], own: Iterable[int]) -> None:
    """Emit the calls of some tasks, and that threads wait behind them."""
    wait, waits = barrier(f.module), 0
    for n in own:
        f.do(f"call void @{tasks[n].emit(f.module)}({ALONE})")
        if waits_after(tasks, n):
            waits += 1
            f.do(f"call void @{wait}(ptr %sync, i64 {f.add('%base', f.mul('%threads', waits))}, i64 %threads)")


def waits_after(tasks: Sequence[Task], n: int) -> bool:
    """Whether threads wait for each other after a task; after the last one, the caller waits for all."""
    task = tasks[n]
    return n + 1 < len(tasks) and not isinstance(task, Stamp) and (not isinstance(task, FillBorders) or task.waited)


def segments(found: Sequence[Stretch], machine: Machine) -> list[str]:
    """The modules in which each stretch of tasks is a function, `segment` and its number."""
    m = Module(machine)
    for n, part in enumerate(found):
        if isinstance(part, list):
            segment(m, f"segment{n}", part)
    return m.texts(cores())


def outlined(program: Program) -> list[str]:
    """What tells a program from others, most of the time."""
    return [f"{step.name} {t.shape} {t.quant}" for step in program.steps if step.bound for t in step.bound.outs]


def told(found: Sequence[Stretch]) -> list[str]:
    """All that makes the code of these stretches, as texts."""
    return [f"{n} {type(task).__module__} {task!r}" for n, part in enumerate(found) if isinstance(part, list)
            for task in part]


class NativeProgram(Ready):
    """A program whose native parts are compiled now: what `runner.Compiled` is for NumPy alone.

    A `profiled` one keeps, in its arena, when each unit began and ended: see `stamps`.
    """

    def __init__(self, program: Program, machine: Machine, threads: int, *, profiled: bool = False) -> None:
        order = groups(program, machine)
        planner = Planner(program, machine, threads, profiled)
        layout = planner.layout(order)
        affordable_arena(layout.size, program.constants.values())
        shop = Workshop(machine, layout.places, program.constants, layout.fault)
        with recalling(outlined(program)):
            found = stretches(layout, planner, shop)
        blob = partial(shop.blob, SLACK)
        waits = {n: sum(waits_after(part, i) for i in range(len(part)))
                 for n, part in enumerate(found) if isinstance(part, list)}
        weights = beside(blob) if shop.used >= LARGE else blob
        images = made(told(found), machine, lambda: segments(found, machine)) if waits else ()
        parts = [part if isinstance(part, Step) else Segment(f"segment{n}", waits[n]) for n, part in enumerate(found)]
        if planner.carried(layout.places) is None:
            program = replace(program, states=())
        super().__init__(program, layout, threads, weights(), tuple(shop.checks), parts, images, machine)
