"""Arrays that lie in others: what is joined is written where it belongs, what is cut is read where it is.

A part without gaps does for everyone. One of some channels does for those who go by the strides of an image.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ...frozen import frozen
from ...types import Shape
from ..bind import Program, Slot, Step
from .copies import plain
from .places import Border, Place, dense_strides, packed
from .tasks import Group, flat, kind, slots_of

Unit = Group | Step


@frozen
class Part:
    """Where a slot is in another one: from this element on, without gaps, or as some of its `channels`."""

    whole: Slot
    at: int
    channels: bool

    def place(self, whole: Place, shape: Shape) -> Place:
        """The place, by that of the whole; the channels of an image have its border."""
        offset = whole.offset + self.at * whole.item
        if self.channels:
            return replace(whole, offset=offset, shape=shape)
        return replace(whole, offset=offset, shape=shape, strides=dense_strides(shape, whole.item), border=Border())


@dataclass
class Storage:
    """Whose bytes slots share.

    `views` are the same bytes in another shape, `parts` some of them; `roots` are the slots that have bytes of their
    own, by those that have none; `dense` are those that may have no border because of all that.
    """

    program: Program
    views: dict[Slot, Slot] = field(default_factory=dict)
    parts: dict[Slot, Part] = field(default_factory=dict)
    roots: dict[Slot, Slot] = field(default_factory=dict)
    dense: set[Slot] = field(default_factory=set)
    _readers: dict[Slot, list[Unit]] = field(default_factory=dict)
    _writers: dict[Slot, Unit] = field(default_factory=dict)
    _over_others: set[Slot] = field(default_factory=set)

    def root(self, slot: Slot) -> Slot:
        """The slot whose storage a slot shares."""
        return self.roots.get(slot, slot)

    def find(self, order: Sequence[Unit]) -> None:
        """Views first; then the parts of what is joined and cut, in order."""
        for unit in order:
            for slot in unit.reads:
                self._readers.setdefault(slot, []).append(unit)
            self._writers |= dict.fromkeys(unit.outputs if isinstance(unit, Group) else unit.outs, unit)
            if isinstance(unit, Step) and unit.view is not None and unit.view not in self.program.constants:
                self.views[unit.outs[0]] = unit.view
                self._share(unit.outs[0], unit.view)
                self.dense |= {unit.outs[0], unit.view}
        for unit in order:
            name = kind(unit.head.op) if isinstance(unit, Group) and len(unit.members) == 1 else ""
            if isinstance(unit, Group) and name in OVER:
                self._over(unit)
            if isinstance(unit, Group) and name in (*JOINED, *CUT) and not unit.reshaped and plain(unit.head):
                (self._join if name in JOINED else self._cut)(unit)

    def _share(self, slot: Slot, whole: Slot) -> None:
        old, new = self.root(slot), self.root(whole)
        self.roots |= {s: new for s, root in self.roots.items() if root == old} | {old: new}

    def _add(self, slot: Slot, part: Part) -> None:
        self.parts[slot] = part
        self._share(slot, part.whole)
        if not part.channels:
            self.dense |= {slot, part.whole}

    # Written over.
    def _over(self, unit: Group) -> None:
        """What is x but for a part takes the place of x, where nobody else reads that."""
        x, out = unit.head.slots["x"], unit.outputs[0]
        alone = self._readers.get(x) == [unit] and flat(tuple(unit.head.slots.values())).count(x) == 1
        given = x in self.program.inputs and not (self.program.inner and out in self.program.outputs)
        shared = x in self.roots.keys() - self._over_others or x in self.roots.values()
        if not alone or given or shared or x in self.program.constants or x in self.program.outputs:
            return
        self._over_others.add(out)
        self.views[out] = x
        self._share(out, x)
        self.dense |= {out, x}

    # Joined.
    def _join(self, unit: Group) -> None:
        whole, given = unit.outputs[0], flat(unit.head.slots["xs"])
        shape, axis = unit.outs[0].shape, unit.head.args["axis"] % len(unit.outs[0].shape)
        tensors = [self.program.tensors[s] for s in given]
        outer = math.prod(shape[:axis]) == 1
        channels = not outer and axis == 3 and all(len(t.shape) == len(shape) == 4 for t in tensors)
        ends = accumulate((t.shape[axis] if channels else t.size for t in tensors), initial=0)
        for slot, at in zip(given, ends, strict=False):
            base = self._base(slot)
            if given.count(slot) > 1 or self._held(base):
                continue
            if outer and self._borderless(base) and self._borderless(whole) and self.root(base) == base:
                self._add(base, Part(whole, at, channels=False))
            elif channels and base == slot and self._goes_by_strides((self._writers[slot], *self._readers[slot]), slot):
                self._add(slot, Part(whole, at, channels=True))

    def _base(self, slot: Slot) -> Slot:
        """What a slot is a view of."""
        while slot in self.views:
            slot = self.views[slot]
        return slot

    def _held(self, slot: Slot) -> bool:
        """Whether a slot's bytes have a place already, which is not to be chosen."""
        return slot in self.parts or slot in self.program.inputs or slot in self.program.constants or (
            slot not in self._writers)

    def _borderless(self, slot: Slot) -> bool:
        """Whether nobody who reads an array wants a border around it."""
        readers = (u for u in self._readers.get(slot, []) if isinstance(u, Group))
        return not any(slot in u.family.border(u.head) for u in readers)

    def _goes_by_strides(self, units: Iterable[Unit], slot: Slot) -> bool:
        """Whether all can read, or write, an image whose cells are farther apart than they are long."""
        return slot not in self.program.outputs and slot not in self.dense and all(
            isinstance(u, Group) and not u.reshaped and u.family.strided and self._as_images(u, slot)
            for u in units)

    def _as_images(self, unit: Group, slot: Slot) -> bool:
        """Whether what follows a group's head reads it, if at all, in the shape of the head's result."""
        shape = unit.head.outs[0].shape
        return all(len(shape) == 4 and self.program.tensors[slot].shape == shape
                   for b in unit.members[1:] if slot in slots_of(b))

    # Cut.
    def _cut(self, unit: Group) -> None:
        begins = CUT[kind(unit.head.op)]
        x, whole = unit.head.args["x"], unit.head.slots["x"]
        if whole in self.program.constants or whole in self.parts and self.parts[whole].channels:
            return
        for slot, begin in zip(unit.outputs, begins(unit), strict=True):
            if slot in self.parts or len(begin) != len(x.shape):
                continue
            shape, strides = self.program.tensors[slot].shape, dense_strides(x.shape, 1)
            at = sum(b * s for b, s in zip(begin, strides, strict=True))
            if packed(shape, strides, 1):
                if self._borderless(slot) and self._borderless(whole):
                    self._add(slot, Part(whole, at, channels=False))
            elif len(shape) == 4 and shape[:3] == x.shape[:3] and self._goes_by_strides(
                    self._readers.get(slot, []), slot):
                self._add(slot, Part(whole, begin[3], channels=True))


def _cuts_of_split(unit: Group) -> list[Shape]:
    """Where the parts of a split begin."""
    shape = unit.head.args["x"].shape
    axis = unit.head.args["axis"] % len(shape)
    ends = accumulate((t.shape[axis] for t in unit.outs), initial=0)
    return [tuple(at if a == axis else 0 for a in range(len(shape))) for at, _ in zip(ends, unit.outs, strict=False)]


#: Operations whose result is x, a part of which is written over.
OVER = ("DYNAMIC_UPDATE_SLICE", "WRITE_ROWS", "SCATTER_ELEMENTS", "SCATTER_TUPLES")
#: Operations that join arrays as they are, and those that cut one, with where the cuts begin.
JOINED = ("CONCATENATION", "PACK", "PACK_EX")
CUT: Mapping[str, Callable[[Group], list[Shape]]] = {
    "SPLIT": _cuts_of_split, "SPLIT_BY": _cuts_of_split, "CHUNK": _cuts_of_split,
    "SLICE": lambda unit: [tuple(unit.head.args["begin"].ints())]}
