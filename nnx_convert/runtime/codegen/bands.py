"""Convolutions that follow each other, done band by band of output rows, each band by one thread.

A depthwise convolution between two of single cells (expand, depthwise, project), or before one: what lies between them
is larger than what comes in and goes out. Of it, each thread keeps the rows of one band, which stay in its cache; rows
that the next band reads as well are moved to the front. No thread waits for another inside.
"""
from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from ...frozen import frozen
from ...types import BYTES
from ..bind import Bound, Program, Slot, Step
from .bytes import Bytes
from .dense import Dense, pads
from .ir import SHARED, Function, Module
from .machine import Machine
from .moves import sides
from .places import Border, Place, dense_strides
from .pruned import Pruned
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, kind, slots_of
from .tiles import cut

#: Bytes of a band that a thread keeps: they share its second cache with weights.
KEPT = 256 << 10
#: Bytes between convolutions from which they are done in bands.
WORTH = 128 << 10


@frozen
class Window:
    """The rows of an image that a band of a convolution's output reads: `band` rows, of which there are `bands`."""

    band: int = 1
    bands: int = 1
    stride: int = 1
    span: int = 1
    top: int = 0
    height: int = 0

    @property
    def rows(self) -> int:
        """Rows read by one band."""
        return (self.band - 1) * self.stride + self.span

    @property
    def fresh(self) -> int:
        """Of these, the rows that the band before has not read."""
        return self.band * self.stride


@frozen(eq=False)
class Banded(Group):
    """Groups of operations that are done in bands: those of the convolutions in order, and the window of the middle.

    `other` is an image that what follows the last one reads row by row.
    """

    parts: tuple[Group, ...] = ()
    window: Window = Window()
    other: Slot | None = None

    @property
    def reshaped(self) -> bool:
        """It writes images as its last part gives them."""
        return False

    @property
    def family(self) -> Family:
        """Its own."""
        return BANDS


@frozen
class Bands:
    """The task. Its tasks read at %source, write at %target and add what is at %other.

    `expand` makes all fresh rows of `kept` and `line` one of them, where there is a first convolution; else `middle`
    reads `x` itself. It writes to `between`, from where `last` goes on. The two places are of one thread's scratch,
    of `scratch` bytes from the first one's offset on.
    """

    window: Window
    x: Place
    out: Place
    other: Place | None
    kept: Place | None
    between: Place
    scratch: int
    expand: Task | None
    line: Task | None
    middle: Task
    last: Task

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bands", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.window.bands)
        own = f.at("%arena", f.mul("%thread", self.scratch))
        between = f.at(own, self.between.offset)
        if self.kept:
            sides(f, self.kept, f.at(own, self.kept.offset), self.window.rows)

        def band(i: str, _: list[str]) -> None:
            y = f.mul(i, self.window.band)
            source = f.at("%arena", f.add(self.x.offset, f.mul(y, self.x.strides[1] * self.window.stride)))
            if self.kept:
                kept = f.at(own, self.kept.offset)
                self._expanded(f, i, first, kept)
                source = f.at(kept, self.window.top * self.kept.strides[1])
            call(f, self.middle, source, between)
            other = f.at("%arena", f.add(self.other.offset, f.mul(y, self.other.strides[1]))) if self.other else between
            call(f, self.last, between, f.at("%arena", f.add(self.out.offset, f.mul(y, self.out.strides[1]))), other)
        f.loop(first, last, 1, [], band)
        f.finish()

    def _expanded(self, f: Function, i: str, first: str, kept: str) -> None:
        """The rows that a band reads, at `kept`: those the one before has read moved there, the others made."""
        w, place = self.window, self.kept
        assert place is not None and self.expand is not None
        row, old = place.strides[1], w.rows - w.fresh
        top = f.add(f.mul(i, w.fresh), -w.top)             # the image's row that comes first
        begins = f.let(f"icmp eq i64 {i}, {first}")

        def follow() -> None:
            if old > 0:
                left = f.at(kept, -place.border.left * place.strides[2])
                f.copy(left, f.at(left, w.fresh * row), old * row)
            inside = f.let(f"icmp sle i64 {f.add(top, w.rows)}, {w.height}")
            f.when(inside, lambda: call(f, self.expand, self._line(f, f.add(top, old)), f.at(kept, old * row)),
                   lambda: self._lines(f, top, kept, old))
        f.when(begins, lambda: self._lines(f, top, kept, 0), follow)

    def _line(self, f: Function, y: str) -> str:
        """Where a row of the image is."""
        return f.at("%arena", f.add(self.x.offset, f.mul(y, self.x.strides[1])))

    def _lines(self, f: Function, top: str, kept: str, begin: int) -> None:
        """Rows from one on, one by one: those that the image has, the others filled."""
        place = self.kept
        assert place is not None

        def line(j: str, _: list[str]) -> None:
            y, to = f.add(top, j), f.at(kept, f.mul(j, place.strides[1]))
            there = f.let(f"icmp ult i64 {y}, {self.window.height}")     # unsigned: none is negative, too
            f.when(there, lambda: call(f, self.line, self._line(f, y), to),
                   lambda: f.fill(to, place.border.fill, place.shape[2] * place.strides[2]))
        f.loop(begin, self.window.rows, 1, [], line)


def call(f: Function, task: Task | None, source: str, target: str, other: str = "%arena") -> None:
    """Do a task alone, between these addresses."""
    assert task is not None
    f.do(f"call void @{task.emit(f.module)}(ptr %arena, ptr %weights, i64 0, i64 1, ptr {source}, ptr {target}, "
         f"ptr {other})")


def banded(order: Sequence[Group | Step], program: Program, machine: Machine) -> list[Group | Step]:
    """The units of a program in order, with groups of convolutions that are done in bands as one each."""
    reads = Counter([*program.outputs, *(s for step in program.steps for s in step.reads)])
    units: list[Group | Step] = []
    rest = deque(order)
    while rest:
        made = (joined(list(islice(rest, count)), count, reads, program, machine) for count in (3, 2))
        found = next(filter(None, made), None)
        units.append(found or rest[0])
        for _ in range(len(found.parts) if found else 1):
            rest.popleft()
    return units


def joined(units: Sequence[Group | Step], count: int, reads: Mapping[Slot, int], program: Program, machine: Machine
           ) -> Banded | None:
    """Groups that follow each other as one, where they are convolutions that are worth it; else None."""
    parts = [u for u in units if isinstance(u, Group) and not u.reshaped and len(u.outs) == 1]
    if len(parts) != count or not all(
            a.outputs[0] == b.head.slots.get("x") and reads[a.outputs[0]] == 1 for a, b in pairwise(parts)):
        return None
    *before, middle, last = parts
    if not (all(of_cells(p.head) for p in (*before, last)) and of_channels(middle.head)):
        return None
    if before and machine.amx and before[0].outs[0].type in BYTES:       # tiles of AMX are no rows
        return None
    if any(p.family.scratch(p, machine) for p in parts):                 # a band has the scratch for itself
        return None
    window, others = window_of(middle, before), rowwise(last, program)
    if window is None or len(others) > 1 or any(rowwise(p, program) for p in (*before, middle)):
        return None
    members = [b for p in parts for b in p.members]
    return Banded(members[0], tuple(members[1:]), tuple(parts), window, others[0] if others else None)


def of_cells(b: Bound) -> bool:
    """Whether it is a convolution of single cells of one image."""
    return (kind(b.op) == "CONV_2D" and not b.args.get("nchw") and b.args["x"].shape[0] == 1 and not any(pads(b.args))
            and b.args["w"].data is not None and b.args["w"].shape[1:3] == (1, 1) and b.args["sh"] == b.args["sw"] == 1)


def of_channels(b: Bound) -> bool:
    """Whether it is a convolution channel by channel, over several rows."""
    return (kind(b.op) == "DEPTHWISE_CONV_2D" and not b.args.get("nchw") and b.args["mult"] == 1 and
            b.args["x"].shape[3] > 1 and b.args["w"].data is not None and b.args["w"].shape[1] > 1)


def rowwise(group: Group, program: Program) -> list[Slot]:
    """What follows a convolution reads of images row by row, beside the convolution's own input."""
    inner = {s for b in group.members for s in b.outputs}
    slots = sorted({s for b in group.tail for s in slots_of(b)} - inner)
    return [s for s in slots if program.tensors[s].rank == 4 and program.tensors[s].shape[1] > 1]


def window_of(middle: Group, before: Sequence[Group]) -> Window | None:
    """How a depthwise convolution is cut into bands; None where that is not worth it."""
    b, (_, h, w, c), (_, rows, width, _) = middle.head, middle.head.args["x"].shape, middle.head.outs[0].shape
    top, left, _, right = pads(b.args)
    span, item = (b.args["w"].shape[1] - 1) * b.args.get("dh", 1) + 1, b.outs[0].type.dtype.itemsize
    if max(h * w, rows * width) * c * item < WORTH or span < b.args["sh"]:
        return None
    for band in range(rows // 2, 0, -1):
        found = Window(band, rows // band, b.args["sh"], span, top, h)
        kept = found.rows * (w + left + right + 1) * c * item if before else 0
        if rows % band == 0 and kept + band * width * c * item <= KEPT and found.fresh >= span - b.args["sh"]:
            return found
    return None


def _scratch(group: Group, _: Machine) -> int:
    assert isinstance(group, Banded)
    kept, between = _rooms(group)
    return (kept.strides[0] if kept else 0) + between.strides[0]


def _rooms(group: Banded) -> tuple[Place | None, Place]:
    """A thread's room for what is expanded, with its border, and for what the middle writes, one after the other.

    Offsets are those of the first elements.
    """
    *before, middle, _ = group.parts
    b, window = middle.head, group.window
    item, (_, _, width, c) = b.outs[0].type.dtype.itemsize, middle.outs[0].shape
    shape = (1, window.band, width, c)
    between = Place("%arena", 0, shape, (-(-math.prod(shape) * item // 64) * 64, *dense_strides(shape, item)[1:]), item)
    if not before:
        return None, between
    border = middle.family.border(b).get(b.slots["x"], Border())
    _, _, w, _ = b.args["x"].shape
    cell = c * item
    row = (w + border.left + border.right) * cell + (0 if border.left or border.right else 64)   # never without gaps
    size = -(-window.rows * row // 64) * 64
    kept = Place("%arena", border.left * cell, (1, window.fresh, w, c), (size, row, cell, item), item, border)
    return kept, replace(between, offset=size)


def _make(w: Workshop, group: Group) -> Task:
    assert isinstance(group, Banded)
    *before, middle, last = group.parts
    window, (kept, between), places = group.window, _rooms(group), w.places
    x, out = w.place(group.head.slots["x"]), w.place(group.outputs[0])
    other = None if group.other is None else w.place(group.other)
    inner, beside = middle.outputs[0], {} if other is None else {group.other: rows_at("%other", other, window.band)}
    made = [_alone(w, p, {p.head.slots["x"]: rows_at("%source", x, window.fresh), p.outputs[0]: at("%target", kept)})
            for p in before if kept]
    made.append(_alone(w, middle, {middle.head.slots["x"]: at("%source", kept or x), inner: at("%target", between)}))
    made.append(_alone(w, last, {inner: at("%source", between), **beside,
                                 last.outputs[0]: rows_at("%target", out, window.band)}))
    expand = made[0] if before else None
    room = places[SCRATCH]
    return Bands(window, x, out, other, kept and _moved(kept, room), _moved(between, room), room.strides[0], expand,
                 _single(expand), *made[-2:])


def _alone(w: Workshop, part: Group, places: Mapping[Slot | None, Place]) -> Task:
    """The task of one part, for a band of the images at these places."""
    there, w.places = w.places, {**w.places, **{s: p for s, p in places.items() if s is not None}}
    found = part.family.make(w, part)
    w.places = there
    assert not isinstance(found, Phases)                    # convolutions of cells and of channels have one task
    return found


def at(base: str, p: Place) -> Place:
    """A place whose first element is at a base of a band."""
    return replace(p, base=base, offset=0)


def rows_at(base: str, p: Place, rows: int) -> Place:
    """So many rows of an image, the first at a base of a band."""
    return replace(p, base=base, offset=0, shape=(1, rows, *p.shape[2:]))


def _moved(p: Place, room: Place) -> Place:
    return replace(p, offset=p.offset + room.offset)


def _single(task: Task | None) -> Task | None:
    """The task that makes one row of those that a task makes."""
    if task is None:
        return None
    assert isinstance(task, Dense | Bytes | Pruned)
    if isinstance(task, Dense) and task.folded:          # weights are packed for as many vectors
        task = replace(task, folded=False, tile=cut(task.out.shape[2], task.tile.most, task.tile.vectors))
    return replace(task, out=replace(task.out, shape=(1, 1, *task.out.shape[2:])))


def _borders(b: Bound) -> Mapping[Slot, Border]:
    return Group(b).family.border(b)


#: That of `Banded` groups.
BANDS = Family(lambda b, _: of_channels(b), _make, _borders, _scratch, strided=True)
