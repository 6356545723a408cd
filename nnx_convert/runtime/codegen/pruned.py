"""Convolutions of single cells by filters most of which is zeros: only what is not zero is multiplied.

Some pixels are turned in the first cache, so that a channel's are neighbours; then each output channel adds up those of
the channels it has weights for, all pixels in registers, and what it finds is turned back. Weights and where their
channels are lie one after the other, so code does not depend on them.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import Array, Shape
from ..bind import Bound
from .dense import as_row, pads, with_weights
from .elements import BOUNDS, Part, chained, follows, matched
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .micro import continued
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native, remembered
from .tiles import Tile, best, cost, cut, fit
from .turns import QUAD, across_rows, pieces, turned

#: Bytes of a weight with the bytes to its channel, and of what is told of an output channel.
PAIR, HEAD = 8, 12
#: Vectors of sums in registers, by how many of those there are.
SUMS = {32: 24, 16: 12}
#: Vectors of pixels at a time: more would not stay in the first cache.
MOST = 6
#: Where pixels that are turned begin.
ALIGN = 64
#: What is no faster than so much of the other cost is not worth it. Bytes of turned pixels at most.
WORTH, ROOM = 0.87, 256 << 10
#: Rounds of pixels below which outputs are cut in two, so that threads get as many.
FEW = 8


@frozen
class Sums:
    """A micro-kernel `(X, heads, pairs, Y)`: the sums of `channels` outputs for `vectors` of pixels.

    A channel's pixels are `pitch` bytes apart from another's, at X and at Y. Of each output in order there is told how
    many steps it has (32 bits), the bytes to its pixels at Y (32 bits), and its bias; of each step `turns` weights,
    each with the bytes to its channel at X (32 bits) before it.
    """

    channels: int
    vectors: int
    turns: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("sums", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias readonly", "%heads"),
                               ("ptr noalias readonly", "%pairs"), ("ptr noalias", "%Y")))
        f.loop(0, self.channels, 1, [("ptr", "%heads"), ("ptr", "%pairs")], lambda _, now: self._channel(f, *now))
        f.finish()

    def _channel(self, f: Function, head: str, pairs: str) -> list[str]:
        """One output channel."""
        kind, size = vector(f.machine.lanes), f.machine.lanes * ITEM
        steps, to = (f.let(f"zext i32 {f.load('i32', head, at)} to i64") for at in (0, 4))
        first = [f.splat(kind, f.load("float", head, 8))] * self.vectors
        begin = first + [number(kind, 0)] * (self.vectors * (self.turns - 1))

        def step(_: str, now: list[str]) -> list[str]:
            pairs, sums = now[0], now[1:]
            for turn in range(self.turns):
                x = f.at("%X", f.let(f"zext i32 {f.load('i32', pairs, turn * PAIR)} to i64"))
                w = f.splat(kind, f.load("float", pairs, turn * PAIR + 4))
                for j in range(self.vectors):
                    n = turn * self.vectors + j
                    sums[n] = f.fma(kind, f.load(kind, x, j * size), w, sums[n])
            return [f.at(pairs, PAIR * self.turns), *sums]
        pairs, *sums = f.loop(0, steps, 1, [("ptr", pairs), *((kind, value) for value in begin)], step)
        y = f.at("%Y", to)
        for j in range(self.vectors):
            value = sums[j]
            for turn in range(1, self.turns):
                value = f.let(f"fadd {kind} {value}, {sums[turn * self.vectors + j]}")
            f.store(kind, value, y, j * size)
        return [f.at(head, HEAD), pairs]


@frozen
class Back:
    """A function `(Y, C, E0, ...)`: sums of `pixels`, `pitch` bytes from channel to channel, clamped, continued, and
    stored as pixels `step` bytes apart; of all else that is read, the bytes from pixel to pixel and channel to channel.
    """

    channels: int
    pixels: int
    pitch: int
    step: int
    act: int
    chain: tuple[Part, ...]
    extras: tuple[tuple[int, int], ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("back", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
        f = Function(m, name, (("ptr noalias readonly", "%Y"), ("ptr", "%C"), *more))
        lanes, kind = m.machine.lanes, vector(m.machine.lanes)

        def some(first: str, width: int) -> None:
            y = f.at("%Y", f.mul(first, ITEM))
            out = f.at("%C", f.mul(first, self.step))
            others = [f.at(f"%E{n}", f.mul(first, step)) for n, (step, _) in enumerate(self.extras)]

            def block(channel: str, count: int) -> None:
                rows = f.at(y, f.mul(channel, self.pitch))
                found = across_rows(f, lambda i: f.at(rows, i * self.pitch), count, width)
                for n, value in enumerate(found):
                    there = [(f.at(p, f.add(f.mul(channel, each), n * step)), each)
                             for p, (step, each) in zip(others, self.extras, strict=True)]
                    last = continued(f, self.chain, f.clamp(kind, value, *BOUNDS[self.act]), there, count)
                    f.store_first(count, lanes, "float", last, f.at(out, f.mul(channel, ITEM)), n * self.step)
            pieces(f, self.channels, lanes, block)
        pieces(f, self.pixels, QUAD, some)
        f.finish()


@frozen
class Cut:
    """How pixels and outputs are cut: `lines` whole rows of an image at a time, or parts of a row as `tile` says, in
    vectors; `vectors` of pixels at most. Outputs are done in so many `slices`, one or two."""

    lines: int
    tile: Tile
    vectors: int
    turns: int
    slices: int

    @classmethod
    def of(cls, shape: Shape, machine: Machine) -> Cut:
        """That of results [n, rows, width, channels]."""
        n, rows, width, channels = shape
        lanes = machine.lanes
        tile = cut(-(-width // lanes), MOST, 1)
        groups = -(-rows // max(1, MOST * lanes // width))
        lines = -(-rows // groups)
        vectors = tile.most if tile.parts > 1 else -(-lines * width // lanes)
        rounds = n * -(-rows // lines) * tile.parts
        halves = rounds < FEW and rounds % 2 == 1 and channels % (2 * lanes) == 0
        return cls(lines, tile, vectors, 2 if 2 * vectors <= SUMS[machine.registers] else 1, 1 + halves)

    def cycles(self, shape: Shape, depth: int, weights: int) -> float:
        """About what a product takes by so many weights that are not zero: of each, two loads and those of pixels; of
        each output a loop's end; and pixels are turned twice."""
        n, rows, width, channels = shape
        rounds = n * -(-rows // self.lines) * self.tile.parts
        return rounds * (weights * (self.vectors / 2 + 1.3) + channels * (8 + self.vectors)
                         ) + n * rows * width * (0.2 * depth + 0.3 * channels)


@frozen
class Pruned:
    """The task. `heads` and `pairs` are offsets in the weights, of each slice of outputs."""

    x: Place
    out: Place
    cut: Cut
    heads: tuple[int, ...]
    pairs: tuple[int, ...]
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("pruned", self), lambda name: self._build(m, name))

    @property
    def places(self) -> tuple[Place, ...]:
        """What is read and written pixel by pixel."""
        return self.x, self.out, *self.extras

    @property
    def channels(self) -> int:
        """Outputs of a slice."""
        return self.out.shape[3] // self.cut.slices

    def _build(self, m: Module, name: str) -> None:
        """Slices are the innermost: pixels that are turned do for all of them."""
        f = Function(m, name, SHARED)
        (n, rows, _, _), depth, lines = self.out.shape, self.x.shape[3], min(self.cut.lines, self.out.shape[1])
        lanes, tile, slices, groups = m.machine.lanes, self.cut.tile, self.cut.slices, -(-rows // lines)
        pitch = self.cut.vectors * lanes * ITEM
        room = f.let(f"alloca [{(depth + self.channels) * pitch} x i8], align {ALIGN}")
        if tile.parts == 1:
            f.fill(room, 0, depth * pitch)                   # in lanes of no pixel nothing odd is to be
        first, last = f.share(n * groups * tile.parts * slices)

        def step(i: str, _: list[str]) -> None:
            round_, number = f.div(i, slices), f.rem(i, slices)
            group, part = f.div(round_, tile.parts), f.rem(round_, tile.parts)
            image, y, x = f.div(group, groups), f.mul(f.rem(group, groups), lines), f.mul(tile.first(f, part), lanes)
            at = [f.at(p.base, f.add(f.add(f.mul(image, p.strides[0]), f.mul(y, p.strides[1])),
                                     f.add(f.mul(x, p.strides[2]), p.offset))) for p in self.places]
            count = str(lines) if rows % lines == 0 else f.least(f.let(f"sub i64 {rows}, {y}"), lines)
            fresh = f.let(f"or i1 {f.let(f'icmp eq i64 {number}, 0')}, {f.let(f'icmp eq i64 {i}, {first}')}")

            def call(vectors: int, pixels: int) -> None:
                f.when(fresh, lambda: self._read(f, at[0], room, count, pixels, pitch))
                to = self._summed(f, room, f.at(room, depth * pitch), number, vectors)
                self._written(f, to, at[1:], number, count, pixels, pitch)
            self._sized(f, part, call)
        f.loop(first, last, 1, [], step)
        f.finish()

    def _sized(self, f: Function, part: str, call: Callable[[int, int], None]) -> None:
        """`call(vectors, pixels)`: vectors of sums, and pixels of each row, of a part of it."""
        (_, _, width, _), lanes, tile = self.out.shape, f.machine.lanes, self.cut.tile

        def whole(vectors: int) -> None:
            call(vectors, vectors * lanes)
        if tile.parts == 1:
            call(self.cut.vectors, width)
        elif width % lanes:
            vectors = tile.pixels + (tile.longer == tile.parts)
            f.when(f.let(f"icmp eq i64 {part}, {tile.parts - 1}"),
                   lambda: call(vectors, vectors * lanes - -width % lanes), lambda: tile.sized(f, part, whole))
        else:
            tile.sized(f, part, whole)

    def _read(self, f: Function, x: str, room: str, count: str, pixels: int, pitch: int) -> None:
        """So many rows of pixels turned."""
        turn = turned(f.module, pixels, self.x.shape[3], self.x.strides[2], pitch)
        f.loop(0, count, 1, [], lambda row, _: f.do(
            f"call void @{turn}(ptr {f.at(x, f.mul(row, self.x.strides[1]))}, "
            f"ptr {f.at(room, f.mul(row, pixels * ITEM))})"))

    def _summed(self, f: Function, room: str, to: str, number: str, vectors: int) -> str:
        """The sums of a slice."""
        heads, pairs = (f.at("%weights", f.select(f.let(f"icmp eq i64 {number}, 0"), "i64", str(a[0]), str(a[-1])))
                        for a in (self.heads, self.pairs))
        name = Sums(self.channels, vectors, self.cut.turns).emit(f.module)
        f.do(f"call void @{name}(ptr {room}, ptr {heads}, ptr {pairs}, ptr {to})")
        return to

    def _written(self, f: Function, sums: str, at: list[str], number: str, count: str, pixels: int, pitch: int) -> None:
        """A slice of so many rows of pixels turned back."""
        channel = f.mul(number, self.channels)
        back = Back(self.channels, pixels, pitch, self.out.strides[2], self.act, self.chain,
                    tuple((e.strides[2], e.strides[3]) for e in self.extras)).emit(f.module)
        begin = [f.at(a, f.mul(channel, p.strides[3])) for a, p in zip(at, self.places[1:], strict=True)]

        def row(y: str, _: list[str]) -> None:
            given = [f.at(sums, f.mul(y, pixels * ITEM)),
                     *(f.at(a, f.mul(y, p.strides[1])) for a, p in zip(begin, self.places[1:], strict=True))]
            f.do(f"call void @{back}({', '.join(f'ptr {p}' for p in given)})")
        f.loop(0, count, 1, [], row)


# What is worth it.
def faster(shape: Shape, depth: int, weights: int, machine: Machine) -> bool:
    """Whether results [n, rows, width, channels] are found faster by so many weights, those that are not zero."""
    n, rows, width, channels = shape
    found, pixels = Cut.of(shape, machine), n * rows * width
    if pixels < machine.lanes or (depth + channels) * found.vectors * machine.lanes * ITEM > ROOM:
        return False
    tile = best(channels, depth, 1, 1, pixels, machine.lanes, machine.registers, fit(machine))
    dense = cost(tile, channels, depth, 1, 1, pixels, machine.lanes)
    return found.cycles(shape, depth, weights) < WORTH * dense


@remembered
def _takes(b: Bound, machine: Machine) -> bool:
    if not with_weights(b, machine) or any(pads(b.args)) or not b.args["sh"] == b.args["sw"] == 1:
        return False
    w = b.args["w"]
    return w.shape[1:3] == (1, 1) and faster(b.outs[0].shape, w.shape[3], int(np.count_nonzero(w.data)), machine)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x, out = w.place(b.slots["x"]), w.place(group.outputs[0])
    chain, slots = chained(group.tail, b.outputs[0])
    extras = tuple(matched(w.place(s), out.shape) for s in slots)
    if all(p.even or not any(p.strides[:3]) for p in (x, out, *extras)):
        x, out, extras = as_row(x), as_row(out), tuple(map(as_row, extras))
    found = Cut.of(out.shape, w.machine)
    pitch, bias = found.vectors * w.machine.lanes * ITEM, b.args["b"].data
    matrices = np.split(b.args["w"].data.reshape(out.shape[3], -1), found.slices)
    told = [packed(part, own, pitch, found.turns) for part, own in zip(matrices, np.split(bias, found.slices),
                                                                       strict=True)]
    heads, pairs = (tuple(w.pack(arrays[n]) for arrays in told) for n in range(2))
    return Pruned(x, out, found, heads, pairs, b.args["act"], chain, extras)


def packed(w: Array, bias: Array, pitch: int, turns: int) -> tuple[Array, Array]:
    """What `Sums` is told of outputs, those with the fewest steps first, and of their steps. A weight more is a zero
    of a channel that an output has none for, if there is one; else the last is there in halves: no zero meets infinity.
    """
    there = w != 0
    steps = -(-there.sum(1) // turns)
    order = np.argsort(steps, kind="stable")
    heads = np.zeros(len(w), [("steps", "<i4"), ("to", "<i4"), ("bias", "<f4")])
    heads["steps"], heads["to"], heads["bias"] = steps[order], order * pitch, bias[order]
    columns = np.argsort(~there, axis=1, kind="stable")              # an output's own channels, then the others
    columns = np.concatenate([columns, np.repeat(columns[:, -1:], turns - 1, 1)], 1)
    ends = np.cumsum(steps[order]) * turns
    pairs = np.zeros(ends[-1], [("at", "<i4"), ("weight", "<f4")])
    for n, end in zip(order, ends, strict=True):
        own = columns[n, :steps[n] * turns]
        row = pairs[end - len(own):end]
        row["at"], row["weight"] = own * pitch, w[n, own]
        row["weight"][w.shape[1] - 1:] /= 1 + max(0, len(own) - w.shape[1])     # all are its own: the last in two
    return heads.view(np.uint8), pairs.view(np.uint8)


NATIVE = (native(Family(_takes, _make, strided=True, fuses=follows), conv.CONV_2D, first=True),)
