"""Convolutions of 3 x 3 with a quarter of the products: tiles of an image and filters as their values at points.

A band of tiles at a time is brought to its points, multiplied by the micro-kernel of products, point by point, and
brought back, with what follows the convolution done in registers. What a thread holds of a band stays in its cache.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import F32, Shape
from ..bind import Bound, Slot
from .cooktoom import Form, entering, form, leaving
from .dense import packed, padded, pads, taken
from .elements import BOUNDS, Part, chained, follows, matched
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .micro import Micro, by_vectors, continued, fetching, revisited
from .places import ITEM, Border, Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .tiles import Tile, best, cost, fit

#: Bytes between the values at two points, beside the values: so that they do not all fall into one set of a cache.
GAP = 64
#: Bytes that the points of a band may take: where the weights stay in a cache beside it, and where every band reads
#: them from memory again.
BAND, LONG_BAND = 500_000, 2_500_000
#: Channels from which the rounding of more than two outputs would be near what a result may be off.
MANY = 256
#: Taps of the filters.
TAPS = 3
#: Cycles for a vector of channels of a tile to its points and back, by outputs.
MOVED = {2: (26, 18), 4: (85, 72)}
#: Bytes of weights that stay in a cache beside the rest, and the cycles that a byte of the others takes.
KEPT, STREAMED = 1_000_000, 1 / 6
#: What tiles may cost of what it costs to do without, as these are estimates.
WORTH = 0.85


def halves(size: int, registers: int) -> list[tuple[int, ...]]:
    """Outputs that are found together: those that add pairs of points and those that subtract them, where vectors of
    two lines fit into registers."""
    return [tuple(range(k, size, 2)) for k in (0, 1) if k < size] if registers > 16 else [(k,) for k in range(size)]


@frozen
class Enter:
    """A tile of an image to its points: `(X, V)`. `x` are the bytes from row to row and cell to cell, `point` those
    from point to point."""

    outputs: int
    x: tuple[int, int]
    channels: int
    point: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("enter", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr", "%X"), ("ptr", "%V")))
        by_vectors(f, self.channels, ("%X", "%V"), (ITEM, ITEM),
                   lambda at, _: self._vector(f, at[0], at[1]))
        f.finish()

    def _vector(self, f: Function, x: str, to: str) -> None:
        """A vector of channels; no product reads what it has beyond the last one."""
        how, kind = form(self.outputs), vector(f.machine.lanes)
        together = how.halves if f.machine.registers > 16 else tuple((p,) for p in range(how.size))
        for points in together:
            lines: list[list[str]] = []
            for column in range(how.size):
                cells = once(lambda row, column=column: f.load(  # type: ignore[misc]
                    kind, x, row * self.x[0] + column * self.x[1]))
                lines.append(entering(f, kind, how, points, cells))
            for point, line in zip(points, zip(*lines, strict=True), strict=True):
                for across in how.halves:
                    values = entering(f, kind, how, across, line.__getitem__)
                    for other, value in zip(across, values, strict=True):
                        f.store(kind, value, to, (point * how.size + other) * self.point)


@frozen
class Leave:
    """The values of a tile at its points to `rows` by `columns` outputs: `(M, bias, C, E ...)`.

    `out` are the bytes from row to row and from cell to cell, `extras` those and the ones from channel to channel of
    what the chain reads beside the outputs.
    """

    outputs: int
    rows: int
    columns: int
    out: tuple[int, int]
    channels: int
    point: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[tuple[int, int, int], ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("leave", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
        f = Function(m, name, (("ptr noalias readonly", "%M"), ("ptr noalias readonly", "%bias"), ("ptr", "%C"), *more))
        pointers = ("%M", "%bias", "%C", *(e for _, e in more))
        steps = (ITEM, ITEM, ITEM, *(channel for _, _, channel in self.extras))
        by_vectors(f, self.channels, pointers, steps, lambda at, count: self._vector(f, at, count))
        f.finish()

    def _vector(self, f: Function, at: Sequence[str], count: int) -> None:
        """So many channels."""
        found, long = self._values(f, at[0], at[1]), any(part.long for part in self.chain)
        for y, x, value in found:
            pointers = [f.at(p, y * row + x * cell) for p, (row, cell, *_) in zip(
                at[2:], (self.out, *self.extras), strict=True)]
            there = list(zip(pointers[1:], (channel for _, _, channel in self.extras), strict=True))
            now = value if long else continued(f, self.chain, value, there, count)
            f.store_first(count, f.machine.lanes, "float", now, pointers[0])
        if long:
            revisited(f, self.chain, (self.rows, self.columns), at[2:], ((*self.out, ITEM), *self.extras), count)

    def _values(self, f: Function, m: str, bias: str) -> Iterator[tuple[int, int, str]]:
        """Row, column and value of each output."""
        how, kind, first = form(self.outputs), vector(f.machine.lanes), f.load(vector(f.machine.lanes), bias)
        for rows in halves(self.rows, f.machine.registers):
            lines: list[list[str]] = []
            for column in range(how.size):
                cells = once(lambda row, column=column: f.load(  # type: ignore[misc]
                    kind, m, (row * how.size + column) * self.point))
                lines.append(leaving(f, kind, how, rows, cells))
            for y, line in zip(rows, zip(*lines, strict=True), strict=True):
                for x, value in enumerate(leaving(f, kind, how, range(self.columns), line.__getitem__)):
                    yield y, x, f.clamp(kind, f.let(f"fadd {kind} {value}, {first}"), *BOUNDS[self.act])


def once(make: Callable[[int], str]) -> Callable[[int], str]:
    """A function that makes each value once."""
    made: dict[int, str] = {}

    def of(n: int) -> str:
        if n not in made:
            made[n] = make(n)
        return made[n]
    return of


@frozen
class Winograd:
    """The convolution. `x` begins at the first tap of the first output; `weights` are by points, then as a product's.

    `band` parts of the tiles are done together; `zeros` is where as many zeros as a panel has channels are.
    """

    x: Place
    out: Place
    room: Place
    outputs: int
    tile: Tile
    band: int
    weights: int
    bias: int
    zeros: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()

    @property
    def how(self) -> Form:
        """Its matrices."""
        return form(self.outputs)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("winograd", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        ins, outs = sizes(self.x.shape[3], self.out.shape[3], self.outputs, m.machine.lanes)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        most = self.band * self.tile.most
        to = f.at(room, most * ins * self.how.size ** 2)
        first, last = f.share(self.tile.parts)

        def band(low: str, _: list[str]) -> None:
            high = f.least(f.add(low, self.band), last)
            begin, end = self.tile.first(f, low), self.tile.first(f, high)
            self._entered(f, begin, end, room, ins)
            self._products(f, (low, high), room, to)
            self._left(f, begin, end, to, outs)
        f.loop(first, last, self.band, [], band)
        f.finish()

    def _spot(self, f: Function, tile: str) -> tuple[str, str, str]:
        """Image, row of tiles and column of a tile."""
        down, along = counts(self.out.shape, self.outputs)
        line = f.div(tile, along)
        return f.div(line, down), f.rem(line, down), f.rem(tile, along)

    def _at(self, f: Function, p: Place, spot: tuple[str, str, str]) -> str:
        """Where a tile begins in an image."""
        moved = [f.mul(n, step) for n, step in zip(spot, (p.strides[0], *(self.outputs * s for s in p.strides[1:3])),
                                                   strict=True)]
        return f.at(p.base, f.add(p.offset, f.add(moved[0], f.add(moved[1], moved[2]))))

    def _entered(self, f: Function, begin: str, end: str, room: str, point: int) -> None:
        """Tiles to their points."""
        name = Enter(self.outputs, (self.x.strides[1], self.x.strides[2]), self.x.shape[3], point).emit(f.module)

        def tile(n: str, now: list[str]) -> list[str]:
            f.do(f"call void @{name}(ptr {self._at(f, self.x, self._spot(f, n))}, ptr {now[0]})")
            return [f.at(now[0], point * self.how.size ** 2)]
        f.loop(begin, end, 1, [("ptr", room)], tile)

    def _products(self, f: Function, parts: tuple[str, str], room: str, to: str) -> None:
        """The products of each point: panel by panel of channels, part by part of the tiles."""
        lanes, (depth, channels) = f.machine.lanes, (self.x.shape[3], self.out.shape[3])
        ins, outs = sizes(depth, channels, self.outputs, lanes)
        count, wide = self.how.size ** 2, lanes * self.tile.vectors * ITEM
        panels, rest = self.tile.panels(channels, lanes), (-(-channels // lanes) - 1) % self.tile.vectors + 1
        begin = self.tile.first(f, parts[0])

        def panel(here: list[str], vectors: int) -> list[str]:
            def part(n: str, _: list[str]) -> None:
                row = f.let(f"sub i64 {self.tile.first(f, n)}, {begin}")
                given = ", ".join(f"ptr {p}" for p in (
                    f.at(here[0], f.mul(row, ins * count)), here[1], f.at(here[2], f.mul(row, outs * count)),
                    f.at("%weights", self.zeros)))

                def call(pixels: int) -> None:
                    micro, more = fetching(f, self._micro(pixels, vectors, ins * count, outs * count), n, self.band)
                    f.do(f"call void @{micro.emit(f.module)}({given}{more})")
                self.tile.sized(f, n, call)
            f.loop(*parts, 1, [], part)
            return [here[0], f.at(here[1], lanes * vectors * ITEM * depth), f.at(here[2], wide)]

        def point(_: str, now: list[str]) -> list[str]:
            here = now
            if panels > 1:
                here = f.loop(0, panels - 1, 1, [("ptr", p) for p in now],
                              lambda _, at: panel(at, self.tile.vectors))
            weights = panel(here, rest)[1]
            return [f.at(now[0], ins), weights, f.at(now[2], outs)]
        f.loop(0, count, 1, [("ptr", room), ("ptr", f.at("%weights", self.weights)), ("ptr", to)], point)

    def _micro(self, pixels: int, vectors: int, ins: int, outs: int) -> Micro:
        """The product of so many tiles at a point."""
        return Micro(tuple(n * ins for n in range(pixels)), tuple(n * outs for n in range(pixels)), vectors, 1, 0,
                     ((0, self.x.shape[3]),), 0, 0)

    def _left(self, f: Function, begin: str, end: str, source: str, point: int) -> None:
        """Tiles from their points to the image; the last ones of rows and columns may be smaller."""
        down, along = counts(self.out.shape, self.outputs)

        def tile(n: str, now: list[str]) -> list[str]:
            spot = self._spot(f, n)
            pointers = (now[0], f.at("%weights", self.bias), *(self._at(f, p, spot) for p in (self.out, *self.extras)))
            given = ", ".join(f"ptr {p}" for p in pointers)

            def call(rows: int, columns: int) -> None:
                f.do(f"call void @{self._leave(rows, columns, point).emit(f.module)}({given})")
            cut(f, spot[1], down, self.out.shape[1], self.outputs, lambda rows: cut(
                f, spot[2], along, self.out.shape[2], self.outputs, lambda columns: call(rows, columns)))
            return [f.at(now[0], point * self.how.size ** 2)]
        f.loop(begin, end, 1, [("ptr", source)], tile)

    def _leave(self, rows: int, columns: int, point: int) -> Leave:
        """What leaves a tile with so many outputs in the image."""
        return Leave(self.outputs, rows, columns, (self.out.strides[1], self.out.strides[2]), self.out.shape[3], point,
                     self.act, self.chain, tuple((e.strides[1], e.strides[2], e.strides[3]) for e in self.extras))


def cut(f: Function, n: str, count: int, size: int, outputs: int, call: Callable[[int], None]) -> None:
    """`call` with how many outputs of tile n of an axis are in an image of a size."""
    if size % outputs == 0:
        call(outputs)
    elif count == 1:
        call(size % outputs)
    else:
        f.when(f.let(f"icmp eq i64 {n}, {count - 1}"), lambda: call(size % outputs), lambda: call(outputs))


def counts(shape: Shape, outputs: int) -> tuple[int, int]:
    """Tiles down and along an image."""
    return -(-shape[1] // outputs), -(-shape[2] // outputs)


def sizes(depth: int, channels: int, outputs: int, lanes: int) -> tuple[int, int]:
    """The bytes from point to point of a tile, before and after the products."""
    ins, outs = (-(-n // lanes) * lanes * ITEM + GAP for n in (depth, channels))
    return ins, outs


# Which convolutions, and how.
def outputs_of(b: Bound) -> int:
    """The outputs of a tile along an axis; 0 where a convolution is better done directly. The same on all machines."""
    args = b.args
    n, h, w, channels = b.outs[0].shape
    _, kh, kw, depth = args["w"].shape
    cells = kh, kw, args["sh"], args["sw"], args.get("dh", 1), args.get("dw", 1)
    if b.outs[0].type != F32 or cells != (TAPS, TAPS, 1, 1, 1, 1):
        return 0
    return costs_least(n, h, w, depth, channels)


@lru_cache(maxsize=4096)
def costs_least(n: int, h: int, w: int, depth: int, channels: int) -> int:
    """The outputs of a tile along an axis by which results [n, h, w, channels] cost least; 0: without tiles."""
    lanes, registers = 16, 32
    direct = best(channels, TAPS * depth, TAPS, n * h, w, lanes, registers)
    costs = {0: cost(direct, channels, TAPS * depth, TAPS, n * h, w, lanes)}
    for outputs in MOVED if depth <= MANY else (2,):
        tiles = n * -(-h // outputs) * -(-w // outputs)
        points = form(outputs).size ** 2
        tile = best(channels, depth, 1, 1, tiles, lanes, registers)
        weights = points * depth * channels * ITEM
        moved = sum(cycles * -(-size // lanes) for cycles, size in zip(MOVED[outputs], (depth, channels), strict=True))
        costs[outputs] = points * cost(tile, channels, depth, 1, 1, tiles, lanes) + tiles * moved + max(
            0, weights - KEPT) * STREAMED
    found = min(costs, key=costs.__getitem__)
    return found if costs[found] < WORTH * costs[0] else 0


def tile_of(shape: Shape, depth: int, outputs: int, machine: Machine) -> Tile:
    """How the tiles of an image are cut for the products."""
    down, along = counts(shape, outputs)
    return best(shape[3], depth, 1, 1, shape[0] * down * along, machine.lanes, machine.registers,
                fit(machine))


def band_of(tile: Tile, depth: int, channels: int, outputs: int, machine: Machine) -> int:
    """How many parts of the tiles are done together."""
    points = form(outputs).size ** 2
    each = sum(sizes(depth, channels, outputs, machine.lanes)) * points
    most = BAND if points * depth * channels * ITEM <= KEPT else LONG_BAND
    return max(1, min(tile.parts, most // (each * tile.most)))


def _takes(b: Bound, machine: Machine) -> bool:
    return taken(b, machine, "w", "b") and outputs_of(b) > 0


def _border(b: Bound) -> Mapping[Slot, Border]:
    """The border of the convolution, and what its last tiles reach beyond."""
    outputs = outputs_of(b)
    if not outputs:
        return {}
    top, left, bottom, right = pads(b.args)
    down, along = (-size % outputs for size in b.outs[0].shape[1:3])
    there = Border(top, left, bottom + down, right + along)
    return {b.slots["x"]: there} if there else {}


def _room(group: Group, machine: Machine) -> int:
    """The points of a band, before and after the products."""
    b = group.head
    outputs, shape, depth = outputs_of(b), b.outs[0].shape, b.args["x"].shape[3]
    tile = tile_of(shape, depth, outputs, machine)
    each = sum(sizes(depth, shape[3], outputs, machine.lanes)) * form(outputs).size ** 2
    return band_of(tile, depth, shape[3], outputs, machine) * tile.most * each


def _make(w: Workshop, group: Group) -> Task:
    b, lanes = group.head, w.machine.lanes
    outputs, shape, depth = outputs_of(b), b.outs[0].shape, b.args["x"].shape[3]
    top, left, _, _ = pads(b.args)
    chain, slots = chained(group.tail, b.outputs[0])
    tile = tile_of(shape, depth, outputs, w.machine)
    band = band_of(tile, depth, shape[3], outputs, w.machine)
    matrices = [part for m in form(outputs).weights(b.args["w"].data) for part in packed(m, tile.vectors, lanes)]
    return Winograd(w.place(b.slots["x"]).shifted(top, left), matched(w.place(group.outputs[0]), shape),
                    w.place(SCRATCH), outputs, tile, band, w.pack(*matrices), w.pack(padded(b.args["b"].data, lanes)),
                    w.pack(np.zeros(tile.vectors * lanes, np.float32)), b.args["act"], chain,
                    tuple(matched(w.place(s), shape) for s in slots))


NATIVE = (native(Family(_takes, _make, _border, _room, strided=True, fuses=follows), conv.CONV_2D, first=True),)
