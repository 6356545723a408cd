"""Attention: softmax of scores, which are products of rows, by another matrix; scores stay in the first cache.

A group's head multiplies x by y; scores are scaled and masked by what follows it, then softmax, then a product by v.
"""
from __future__ import annotations

import math

import numpy as np

from ...frozen import frozen
from ...types import Shape
from ..bind import Bound
from .elements import Part, by_rows, chainable, chained, matched, start, tensors_of
from .folds import exponentials, floats
from .ir import SHARED, Function, Module
from .machine import Machine
from .micro import Micro
from .panels import operand, pack_all
from .places import ITEM, Place
from .tasks import SCRATCH, Group, Task, Workshop, kind, slots_of
from .tiles import FIT, Tile, cut
from .turns import pieces

#: Vectors of a panel: with as many rows as a tile of them has, every matrix is read from registers or near ones.
WIDE = 2
#: Operations on scores at most, and the products that may stand around them.
MOST = 6
PRODUCTS = ("BATCH_MATMUL", "MATMUL")


@frozen
class Rooms:
    """Where, behind those of y, a thread's panels of v, its scores and their sums are, in bytes; a row is a `pitch`."""

    v: int
    scores: int
    sums: int
    pitch: int
    size: int


def rooms(rows: int, depth: int, keys: int, columns: int, lanes: int) -> Rooms:
    """For so many rows of scores together."""
    pitch, wide = (-(-n // lanes) * lanes * ITEM for n in (keys, columns))
    v = depth * pitch
    scores = v + keys * wide
    sums = scores + rows * pitch
    return Rooms(v, scores, sums, pitch, sums + rows * ITEM)


@frozen
class Attention:
    """x [..., rows, depth], y [..., depth, keys], v [..., keys, columns]; `zeros` is where some are in the weights."""

    x: Place
    y: Place
    v: Place
    out: Place
    room: Place
    zeros: int
    tile: Tile
    beta: float
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("attention", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        parts = self.tile.parts
        first, last = f.share(math.prod(self.out.shape[:-2]) * parts)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        of = self._rooms(m.machine.lanes)

        def item(i: str, _: list[str]) -> None:
            batch, part = f.div(i, parts), f.rem(i, parts)
            begun = f.let(f"icmp eq i64 {i}, {first}")
            f.when(f.let(f"or i1 {begun}, {f.let(f'icmp eq i64 {part}, 0')}"), lambda: self._pack(f, batch, room, of))
            row = self.tile.first(f, part)
            self.tile.sized(f, part, lambda rows: self._block(f, batch, row, room, rows))
        f.loop(first, last, 1, [], item)
        f.finish()

    def _rooms(self, lanes: int) -> Rooms:
        return rooms(self.tile.most, self.x.shape[-1], self.y.shape[-1], self.v.shape[-1], lanes)

    def _matrix(self, f: Function, p: Place, batch: str) -> str:
        """Where a matrix of a number begins."""
        return start(f, p, p.strides[:-2], batch, self.out.shape[:-2])

    def _pack(self, f: Function, batch: str, room: str, of: Rooms) -> None:
        wide = WIDE * f.machine.lanes
        pack_all(f, self.y, self._matrix(f, self.y, batch), room, wide)
        pack_all(f, self.v, self._matrix(f, self.v, batch), f.at(room, of.v), wide)

    def _block(self, f: Function, batch: str, row: str, room: str, rows: int) -> None:
        """So many rows: their scores, what softmax makes of them, and the sums of v's rows in these shares."""
        of = self._rooms(f.machine.lanes)
        scores, sums, wide = f.at(room, of.scores), f.at(room, of.sums), WIDE * f.machine.lanes
        x, out, *extras = (f.at(self._matrix(f, p, batch), f.mul(row, p.strides[-2]))
                           for p in (self.x, self.out, *self.extras))

        def score(first: str, count: int) -> None:
            more = [f.at(e, f.mul(first, p.strides[-1])) for e, p in zip(extras, self.extras, strict=True)]
            micro = self._micro(f, (self.x.strides[-2], of.pitch), rows, count, self.x.shape[-1], self.chain,
                                tuple((p.strides[-2], p.strides[-1]) for p in self.extras))
            self._call(f, micro, x, f.at(room, f.mul(first, self.x.shape[-1] * ITEM)),
                       f.at(scores, f.mul(first, ITEM)), more)

        def weigh(first: str, count: int) -> None:
            keys = self.y.shape[-1]
            micro = self._micro(f, (of.pitch, self.out.strides[-2]), rows, count, keys, (Part("MUL", (0, 1)),),
                                ((ITEM, 0),))
            self._call(f, micro, scores, f.at(room, f.add(f.mul(first, keys * ITEM), of.v)),
                       f.at(out, f.mul(first, ITEM)), [sums])
        pieces(f, self.y.shape[-1], wide, score)
        softmax = self._softmax(f.module)
        f.loop(0, rows, 1, [], lambda i, _: f.do(
            f"call void @{softmax}(ptr {f.at(scores, f.mul(i, of.pitch))}, ptr {f.at(sums, f.mul(i, ITEM))})"))
        pieces(f, self.v.shape[-1], wide, weigh)

    def _softmax(self, m: Module) -> str:
        """The function `(row, share)`: exponentials in place of scores, and one divided by their sum."""
        size = self.y.shape[-1]

        def build(name: str) -> None:
            f = Function(m, name, (("ptr", "%X"), ("ptr", "%share")))
            f.store("float", exponentials(f, "%X", "%X", size, self.beta), "%share")
            f.finish()
        return m.once(("exponentials", size, self.beta), build)

    @staticmethod
    def _micro(f: Function, steps: tuple[int, int], rows: int, count: int, depth: int, chain: tuple[Part, ...],
               extras: tuple[tuple[int, int], ...]) -> Micro:
        """The micro-kernel of some rows, `steps` apart in what is read and written, and so many columns."""
        lanes = f.machine.lanes
        a, c, *more = (tuple(i * step for i in range(rows)) for step in (*steps, *(row for row, _ in extras)))
        return Micro(a, c, -(-count // lanes), 1, 0, ((0, depth),), count % lanes, 0, chain,
                     tuple((offsets, column) for offsets, (_, column) in zip(more, extras, strict=True)))

    def _call(self, f: Function, micro: Micro, a: str, b: str, c: str, extras: list[str]) -> None:
        given = ", ".join(f"ptr {p}" for p in (a, b, c, f.at("%weights", self.zeros), *extras))
        f.do(f"call void @{micro.emit(f.module)}({given})")


# Which operations are attention.
def turns(group: Group) -> list[str]:
    """The kinds of what follows a head."""
    return [kind(b.op) for b in group.tail]


def shape_of(group: Group) -> Shape:
    """The shape in which what is repeated along scores lies: that of what reads it, else the head's own."""
    found = [b.outs[0].shape for b in scored(group) if not by_rows(group, b)]
    return found[0] if found else group.head.outs[0].shape


def scored(group: Group) -> tuple[Bound, ...]:
    """What is done to a head's products before a softmax, or at all."""
    names = turns(group)
    return group.tail[:names.index("SOFTMAX")] if "SOFTMAX" in names else group.tail


def joins(group: Group, b: Bound, machine: Machine) -> bool:
    """Whether a product of two matrices takes in what follows: masks of scores, a softmax, a product by a matrix."""
    names, (rows, keys) = turns(group), group.head.outs[0].shape[-2:]
    if names and names[-1] in ("SOFTMAX", *PRODUCTS):
        first = names[-1] == "SOFTMAX" and kind(b.op) in PRODUCTS and floats(b)
        return first and b.slots["x"] in group.outputs and b.slots["y"] not in group.outputs and not b.args["adj_x"]
    shape = b.outs[0].shape
    if shape[-2:] != (rows, keys) or math.prod(shape) != math.prod(group.head.outs[0].shape):
        return False
    if kind(b.op) == "SOFTMAX":
        return floats(b) and b.args["axis"] % len(shape) == len(shape) - 1 and not group.head.args["adj_x"]
    if not chainable(b, machine) or len(group.tail) >= MOST:
        return False
    return by_rows(group, b) or _repeats(group, b)


def _repeats(group: Group, b: Bound) -> bool:
    """Whether an operation repeats arrays along axes in which the products' operands can be seen."""
    inner, shape = {s for m in group.members for s in m.outputs}, b.outs[0].shape
    others = [t for t, s in zip(tensors_of(b), slots_of(b), strict=True) if s not in inner]
    same = all(by_rows(group, m) or m.outs[0].shape == shape for m in group.tail)
    count, leads = math.prod(shape[:-2]), [group.head.args[n].shape[:-2] for n in ("x", "y")]
    return same and all(len(t.shape) <= len(shape) for t in others) and all(math.prod(n) == count for n in leads)


def whole(group: Group) -> bool:
    """Whether a group is done as it is: a softmax belongs to two products."""
    return "SOFTMAX" not in turns(group) or turns(group)[-1] in PRODUCTS


def _tile(rows: int, machine: Machine) -> Tile:
    return cut(rows, FIT[machine.registers][WIDE], WIDE)


def room_of(group: Group, machine: Machine) -> int:
    """The bytes of a thread."""
    rows, keys = group.head.outs[0].shape[-2:]
    depth, columns = group.head.args["x"].shape[-1], group.outs[0].shape[-1]
    return rooms(_tile(rows, machine).most, depth, keys, columns, machine.lanes).size


def made(w: Workshop, group: Group) -> Task:
    """The task."""
    b, last, before = group.head, group.tail[-1], scored(group)
    shape = shape_of(group)
    x, y = (operand(w.place(b.slots[n]), shape[:-2], bool(b.args[f"adj_{n}"])) for n in ("x", "y"))
    v = operand(w.place(last.slots["y"]), shape[:-2], bool(last.args["adj_y"]))
    out = operand(w.place(last.outputs[0]), shape[:-2])
    chain, slots = chained(before, b.outputs[0])
    zeros = w.pack(np.zeros(WIDE * w.machine.lanes, np.float32))
    return Attention(x, y, v, out, w.place(SCRATCH), zeros, _tile(shape[-2], w.machine),
                     float(group.tail[len(before)].args["beta"]), chain,
                     tuple(matched(w.place(s), shape) for s in slots))
