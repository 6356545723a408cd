"""Products of matrices that a run computes, both: panels of the second one are packed by who multiplies by them."""
from __future__ import annotations

import math

import numpy as np

from ...frozen import frozen
from ...ops import conv, host
from ...types import F32
from ..bind import Bound
from . import attention
from .elements import Part, chained, matched, start
from .folds import floats
from .ir import SHARED, Function, Module
from .machine import Machine
from .micro import Micro
from .panels import operand, pack
from .places import ITEM, Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .tiles import Tile, best, fit
from .turns import turned

#: Parts that a product has at least, where its rows are enough: threads share them.
PARTS = 4


@frozen
class Product:
    """x [..., rows, depth] by y [..., depth, columns]; strides of 0 repeat leading axes.

    One of an operand's last two strides is an element's size: an operand that is turned has the other order.
    `zeros` is where as many zeros as a panel has columns are in the weights; `pieces` cut the rows' tiles.
    """

    x: Place
    y: Place
    out: Place
    room: Place
    zeros: int
    tile: Tile
    pieces: int
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("product", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        panels = self.tile.panels(self.out.shape[-1], m.machine.lanes)
        each = panels * self.pieces
        first, last = f.share(math.prod(self.out.shape[:-2]) * each)

        def item(i: str, _: list[str]) -> None:
            batch, rest = f.div(i, each), f.rem(i, each)
            panel, piece = f.div(rest, self.pieces), f.rem(rest, self.pieces)
            if panels == 1:
                self._panel(f, batch, panel, piece, panels - 1)
            else:
                f.when(f.let(f"icmp eq i64 {panel}, {panels - 1}"),
                       lambda: self._panel(f, batch, panel, piece, panels - 1),
                       lambda: self._panel(f, batch, panel, piece, 0))
        f.loop(first, last, 1, [], item)
        f.finish()

    def _matrix(self, f: Function, p: Place, batch: str) -> str:
        """Where a matrix of a number begins."""
        return start(f, p, p.strides[:-2], batch, self.out.shape[:-2])

    def _panel(self, f: Function, batch: str, panel: str, piece: str, number: int) -> None:
        """A piece of the rows by one panel, which is the last one or one of the first by its `number`."""
        lanes, columns = f.machine.lanes, self.out.shape[-1]
        wide = lanes * self.tile.vectors
        count = min(wide, columns - number * wide)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        pack(f, self.y, f.at(self._matrix(f, self.y, batch), f.mul(panel, wide * self.y.strides[-1])), room, count)
        x, step = self._rows(f, batch, room)
        places = (self.out, *self.extras)
        bases = [f.at(self._matrix(f, p, batch), f.mul(panel, wide * p.strides[-1])) for p in places]
        low, high = (f.div(f.mul(f.add(piece, more), self.tile.parts), self.pieces) for more in (0, 1))

        def part(i: str, _: list[str]) -> None:
            row = self.tile.first(f, i)
            at = [f.at(b, f.mul(row, p.strides[-2])) for b, p in zip(bases, places, strict=True)]
            given = ", ".join(f"ptr {p}" for p in (f.at(x, f.mul(row, step)), room, at[0],
                                                   f.at("%weights", self.zeros), *at[1:]))

            def call(pixels: int) -> None:
                f.do(f"call void @{self._micro(f, pixels, count, step).emit(f.module)}({given})")
            self.tile.sized(f, i, call)
        f.loop(low, high, 1, [], part)

    def _micro(self, f: Function, pixels: int, count: int, step: int) -> Micro:
        vectors = -(-count // f.machine.lanes)
        return Micro(tuple(i * step for i in range(pixels)), tuple(i * self.out.strides[-2] for i in range(pixels)),
                     vectors, 1, 0, ((0, self.x.shape[-1]),), count % f.machine.lanes, 0, self.chain,
                     tuple((tuple(i * e.strides[-2] for i in range(pixels)), e.strides[-1]) for e in self.extras))

    def _rows(self, f: Function, batch: str, room: str) -> tuple[str, int]:
        """Where x's rows are, and the bytes from one to the next; behind the panel where they had to be turned."""
        rows, depth = self.x.shape[-2:]
        x = self._matrix(f, self.x, batch)
        if self.x.strides[-1] == ITEM:
            return x, self.x.strides[-2]
        to = f.at(room, depth * f.machine.lanes * self.tile.vectors * ITEM)
        f.do(f"call void @{turned(f.module, depth, rows, self.x.strides[-1], depth * ITEM)}(ptr {x}, ptr {to})")
        return to, depth * ITEM


def _tile(b: Bound, machine: Machine) -> Tile:
    rows, columns = b.outs[0].shape[-2:]
    depth = b.args["x"].shape[-2 if b.args["adj_x"] else -1]
    return best(columns, depth, 1, 1, rows, machine.lanes, machine.registers, fit(machine))


def _room(group: Group, machine: Machine) -> int:
    """A panel, and x where that is turned."""
    if "SOFTMAX" in attention.turns(group):
        return attention.room_of(group, machine)
    b = group.head
    depth: int = b.args["x"].shape[-2 if b.args["adj_x"] else -1]
    own = b.outs[0].shape[-2] * depth if b.args["adj_x"] else 0
    return (depth * machine.lanes * _tile(b, machine).vectors + own) * ITEM


def _takes(b: Bound, _: Machine) -> bool:
    return floats(b)


def _make(w: Workshop, group: Group) -> Task:
    if "SOFTMAX" in attention.turns(group):
        return attention.made(w, group)
    b, lanes, shape = group.head, w.machine.lanes, attention.shape_of(group)
    lead, tile = shape[:-2], _tile(group.head, w.machine)
    x, y = (operand(w.place(b.slots[n]), lead, bool(b.args[f"adj_{n}"])) for n in ("x", "y"))
    chain, slots = chained(group.tail, b.outputs[0])
    panels = math.prod(lead) * tile.panels(shape[-1], lanes)
    return Product(x, y, operand(w.place(group.outputs[0]), lead), w.place(SCRATCH),
                   w.pack(np.zeros(tile.vectors * lanes, np.float32)), tile,
                   max(1, min(tile.parts, -(-PARTS // panels))), chain,
                   tuple(matched(w.place(s), shape) for s in slots))


# Rows by a matrix that a run computes.
def _by_any(b: Bound, _: Machine) -> bool:
    tensors = [b.args[n] for n in ("x", "w", "b")]
    return b.args["w"].data is None and all(t.type == F32 and t.size > 0 for t in (*tensors, *b.outs))


def _tile_of_rows(b: Bound, machine: Machine) -> Tile:
    (rows, columns), depth = b.outs[0].shape, b.args["w"].shape[1]
    return best(columns, depth, 1, 1, rows, machine.lanes, machine.registers, fit(machine))


def _room_of_rows(group: Group, machine: Machine) -> int:
    """A panel."""
    depth: int = group.head.args["w"].shape[1]
    return depth * machine.lanes * _tile_of_rows(group.head, machine).vectors * ITEM


def _make_rows(w: Workshop, group: Group) -> Task:
    b, out, lanes = group.head, w.place(group.outputs[0]), w.machine.lanes
    tile, depth = _tile_of_rows(b, w.machine), b.args["w"].shape[1]
    panels = tile.panels(out.shape[1], lanes)
    return Product(w.place(b.slots["x"]).reshaped((out.shape[0], depth)), operand(w.place(b.slots["w"]), (), turn=True),
                   out, w.place(SCRATCH), w.pack(np.zeros(tile.vectors * lanes, np.float32)), tile,
                   max(1, min(tile.parts, -(-PARTS // panels))), (Part("ADD", (0, 1), b.args["act"]),),
                   (matched(w.place(b.slots["b"]), out.shape),))


NATIVE = (
    native(Family(_takes, _make, scratch=_room, fuses=attention.joins, whole=attention.whole), conv.BATCH_MATMUL,
           host.MATMUL),
    native(Family(_by_any, _make_rows, scratch=_room_of_rows), conv.FULLY_CONNECTED, otherwise=True),
)
