"""Convolutions of floats and products by constant matrices, as one micro-kernel.

A tile of pixels by vectors of output channels stays in registers; the activation is read where it lies, one element
at a time for all lanes, and weights are packed by panels of channels, so that both are walked in order.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...ops import conv
from ...types import F32, Array, Shape, Tensor
from ..bind import Bound
from .elements import BOUNDS, Part, chained, follows, matched
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .places import ITEM, Border, Place
from .tasks import Family, Group, Task, Workshop, native
from .tiles import Spot, Tile, best, cost, pixels_first, unrolled

#: Bytes that a cache keeps together.
LINE = 64
#: Bytes of a panel from which the next one is fetched while it is read.
FETCHED = 16_384
#: Parts of an image up to which each may have a micro-kernel of its own, by registers, as tiles are smaller where there
#: are few; and what their cost may be of the others'.
FOLDS, WORTH = {32: 6, 16: 10}, 0.98


@dataclass(frozen=True)
class Micro:
    """A micro-kernel: `(A, B, C, bias)`. Offsets are in bytes, of each pixel: `a` in the activation, `c` in the result.

    The depth is `taps` rows, `row` bytes apart, each of `runs` of neighbouring elements (offset, length). Of the last
    vector, `tail` lanes are stored (0: all). Before that, the `chain` is done to the sums (input 0) and to `extras`,
    of which the offsets of pixels and the bytes from channel to channel are told. With `fetched` lines of weights a
    turn of the innermost loop, it is told how many bytes ahead those are which it brings near for who comes later.
    """

    a: tuple[int, ...]
    c: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    tail: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[tuple[tuple[int, ...], int], ...] = ()
    fetched: int = 0

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("micro", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
        more += (("i64", "%ahead"),) if self.fetched else ()
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"),
                               ("ptr", "%C"), ("ptr noalias readonly", "%bias"), *more))
        kind, size = vector(m.machine.lanes), m.machine.lanes * ITEM
        start = [f.load(kind, "%bias", j * size) for j in range(self.vectors)] * len(self.a)

        def tap(_: str, carried: list[str]) -> list[str]:
            a, b, sums = carried[0], carried[1], carried[2:]
            for offset, length in self.runs:
                b, sums = self._run(f, f.at(a, offset), b, sums, length)
            return [f.at(a, self.row), b, *sums]
        carried = [("ptr", "%A"), ("ptr", "%B"), *((kind, s) for s in start)]
        sums = f.loop(0, self.taps, 1, carried, tap)[2:] if self.taps > 1 else tap("0", ["%A", "%B", *start])[2:]
        sums = [f.clamp(kind, value, *BOUNDS[self.act]) for value in sums]
        if len(sums) > 1 and any(part.long for part in self.chain):
            self._stored_first(f, sums)
        else:
            self._stored(f, sums)
        f.finish()

    def _stored(self, f: Function, sums: list[str]) -> None:
        """What the chain makes of all sums, stored."""
        for i, offset in enumerate(self.c):
            pointers = [f.at(f"%E{n}", pixels[i]) for n, (pixels, _) in enumerate(self.extras)]
            for j in range(self.vectors):
                value = self._followed(f, sums[i * self.vectors + j], pointers, j)
                self._store(f, value, f.at("%C", offset), j)

    def _stored_first(self, f: Function, sums: list[str]) -> None:
        """The same where the chain is long: a loop over pixels, as its code for each would be many times the rest."""
        for n, value in enumerate(sums):
            i, j = divmod(n, self.vectors)
            self._store(f, value, f.at("%C", self.c[i]), j)
        places = tuple(zip(self.c, *(pixels for pixels, _ in self.extras), strict=True))
        for first, count in stretches(places):
            following = places[first + 1] if count > 1 else places[first]
            steps = [b - a for a, b in zip(places[first], following, strict=True)]
            bases = [f.at(p, at) for p, at in zip(("%C", *(f"%E{n}" for n in range(len(self.extras)))), places[first],
                                                  strict=True)]
            f.loop(0, count, 1, [("ptr", p) for p in bases],
                   lambda _, now, steps=steps: self._again(f, now, steps))  # type: ignore[misc]

    def _again(self, f: Function, now: list[str], steps: Sequence[int]) -> list[str]:
        """The chain done to a pixel that is stored, vector by vector; where the next one is."""
        apart, lanes = [channel for _, channel in self.extras], f.machine.lanes

        def again(at: list[str], count: int) -> None:
            value = f.load_first(count, lanes, "float", at[0])
            there = list(zip(at[1:], apart, strict=True))
            f.store_first(count, lanes, "float", continued(f, self.chain, value, there, count), at[0])
        channels = (self.vectors - 1) * lanes + self._count(f, self.vectors - 1)
        by_vectors(f, channels, now, (ITEM, *apart), again)
        return [f.at(p, by) for p, by in zip(now, steps, strict=True)]

    def _count(self, f: Function, j: int) -> int:
        """The lanes of a vector of channels that are stored."""
        return self.tail if self.tail and j == self.vectors - 1 else f.machine.lanes

    def _store(self, f: Function, value: str, pointer: str, j: int) -> None:
        """A vector of a pixel's channels."""
        lanes = f.machine.lanes
        f.store_first(self._count(f, j), lanes, "float", value, pointer, j * lanes * ITEM)

    def _followed(self, f: Function, value: str, extras: Sequence[str], j: int) -> str:
        """What the chain makes of a vector of channels of a pixel, at which `extras` point."""
        size = j * f.machine.lanes
        there = [(f.at(p, size * channel), channel) for p, (_, channel) in zip(extras, self.extras, strict=True)]
        return continued(f, self.chain, value, there, self._count(f, j))

    def _run(self, f: Function, a: str, b: str, sums: list[str], length: int) -> tuple[str, list[str]]:
        """The products of one run of neighbours; the panel's next place, and the sums."""
        kind, size = vector(f.machine.lanes), f.machine.lanes * ITEM * self.vectors
        turns = 1 if self._shared else turns_of(length, len(sums), f.machine)

        def body(_: str, carried: list[str]) -> list[str]:
            a, b, now = carried[0], carried[1], carried[2:]
            for u in range(turns):
                now = self._step(f, a, b, now, u)
            for line in range(self.fetched):
                fetch(f, f.at(f.at(b, "%ahead"), line * LINE))
            return [f.at(a, ITEM * turns), f.at(b, size * turns), *now]
        found = f.loop(0, length, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], body)
        return found[1], found[2:]

    @property
    def _shared(self) -> bool:
        """Whether pixels are so near to each other that an element is read for one in a step and for the next in
        another: one turn of several steps would keep all of them."""
        return any(b - a == ITEM for a, b in pairwise(self.a))

    def _step(self, f: Function, a: str, b: str, sums: list[str], step: int) -> list[str]:
        """One element of the depth for all pixels and channels."""
        lanes, found = f.machine.lanes, list(sums)
        kind = vector(lanes)
        panel = [f.load(kind, b, (step * self.vectors + j) * lanes * ITEM) for j in range(self.vectors)]
        for i, offset in enumerate(self.a):
            x = f.splat(kind, f.load("float", a, offset + step * ITEM))
            for j in range(self.vectors):
                n = i * self.vectors + j
                found[n] = f.fma(kind, x, panel[j], found[n])
        return found


def fetch(f: Function, pointer: str) -> None:
    """Bring the line of memory at an address, where there need be none, into the second cache, to be read."""
    f.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    f.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 2, i32 1)")


def stretches(places: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Places cut into stretches in which each is as far from the one before: the first of each, and how many."""
    found, first = list[tuple[int, int]](), 0
    steps = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(places)]
    for n in range(1, len(places) + 1):
        if n == len(places) or n - first > 1 and steps[n - 1] != steps[first]:
            found.append((first, n - first))
            first = n
    return found


def turns_of(length: int, sums: int, machine: Machine) -> int:
    """How many steps of the depth one turn of a micro-kernel's loop makes."""
    if sums > unrolled(machine):
        return 1
    return 2 if length % 2 == 0 else 3 if length % 3 == 0 and length <= 9 else 1


@dataclass(frozen=True)
class Dense:
    """A convolution, or a product where the image is one row of pixels.

    `x` begins at the first tap of the first output; `weights` and `bias` are offsets in the weights. A `folded` one has
    few pixels, so that tiles go on from row to row: each part of an image has a micro-kernel of its own.
    """

    x: Place
    out: Place
    taps: int
    runs: tuple[tuple[int, int], ...]
    row: int
    strides: tuple[int, int]
    weights: int
    bias: int
    tile: Tile
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()
    folded: bool = False

    @property
    def depth(self) -> int:
        """Elements under the filter."""
        return self.taps * sum(length for _, length in self.runs)

    @property
    def shape(self) -> Shape:
        """The result as tiles see it."""
        n, rows, width, channels = self.out.shape
        return (n, 1, rows * width, channels) if self.folded else self.out.shape

    def micro(self, pixels: int, vectors: int, tail: int, first: int = 0) -> Micro:
        """The micro-kernel of a tile's size, whose first pixel is of that number in an image that is folded."""
        width = self.out.shape[2] if self.folded else first + pixels
        spots = [divmod(n, width) for n in range(first, first + pixels)]

        def offsets(p: Place, strides: tuple[int, int] = (1, 1)) -> tuple[int, ...]:
            return tuple(y * p.strides[1] * strides[0] + x * p.strides[2] * strides[1] for y, x in spots)
        return Micro(offsets(self.x, self.strides), offsets(self.out), vectors, self.taps,
                     self.row if self.taps > 1 else 0, self.runs, tail, self.act, self.chain,
                     tuple((offsets(e), e.strides[3]) for e in self.extras))

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("dense", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        self.tile.walk(f, self.shape, lambda spot: self._tile(f, spot))
        f.finish()

    def _tile(self, f: Function, spot: Spot) -> None:
        """One tile of one panel of channels."""
        size, panel = f.machine.lanes * ITEM * self.tile.vectors, spot.panel
        at = replace(spot, x="0") if self.folded else spot
        pointers = (at.at(f, self.x, self.strides, 0),
                    f.at("%weights", f.add(self.weights, f.mul(panel, size * self.depth))),
                    at.at(f, self.out, (1, 1), size),
                    f.at("%weights", f.add(self.bias, f.mul(panel, size))),
                    *(at.at(f, e, (1, 1), size if e.strides[3] else 0) for e in self.extras))
        given = ", ".join(f"ptr {p}" for p in pointers)
        n, rows, _, channels = self.shape
        tiles = 0 if pixels_first(self.shape) else n * rows * self.tile.parts

        def call(pixels: int, vectors: int, tail: int) -> None:
            def of(first: int) -> None:
                micro, more = fetching(f, self.micro(pixels, vectors, tail, first), spot.tile, tiles)
                f.do(f"call void @{micro.emit(f.module)}({given}{more})")
            if not self.folded:
                of(0)
                return
            for part, first in enumerate(self.tile.starts):
                if pixels == self.tile.sizes[part >= self.tile.longer > 0][0]:
                    f.when(f.let(f"icmp eq i64 {spot.part}, {part}"), lambda first=first: of(first))  # type: ignore[misc]
        self.tile.fitted(f, channels, spot, call)


def fetching(f: Function, micro: Micro, tile: str, tiles: int) -> tuple[Micro, str]:
    """The micro-kernel, and its last argument, with which each of a panel's tiles brings a part of the next panel near.

    It stays as it is where a panel is soon there, and where there are no tiles, so that panels come again.
    """
    size = f.machine.lanes * ITEM * micro.vectors
    panel = micro.taps * sum(length for _, length in micro.runs) * size
    if panel < FETCHED or not tiles:
        return micro, ""
    lines = max(1, turns_of(micro.runs[0][1], len(micro.a) * micro.vectors, f.machine) * size // LINE)
    each = -(-lines // tiles)
    first = f.mul(f.rem(tile, lines // each), each * LINE)
    return replace(micro, fetched=each), f", i64 {f.add(first, panel)}"


def by_vectors(f: Function, channels: int, pointers: Sequence[str], steps: Sequence[int],
               body: Callable[[list[str], int], None]) -> None:
    """`body(pointers, channels)` for whole vectors of channels, of which pointers have such steps, and the rest."""
    lanes = f.machine.lanes
    full, tail = divmod(channels, lanes)
    at = list(pointers)

    def whole(_: str, now: list[str]) -> list[str]:
        body(now, lanes)
        return [f.at(p, lanes * step) for p, step in zip(now, steps, strict=True)]
    if full:
        at = f.loop(0, full, 1, [("ptr", p) for p in at], whole)
    if tail:
        body(at, tail)


def continued(f: Function, chain: Sequence[Part], value: str, extras: Sequence[tuple[str, int]], count: int) -> str:
    """What a chain makes of a vector of `count` channels. Of all else that it reads, where that is and the bytes from
    channel to channel."""
    lanes = f.machine.lanes
    kind, inputs, made = vector(lanes), [value], [value]
    for pointer, channel in extras:
        inputs.append(f.load_first(count, lanes, "float", pointer) if channel else
                      f.splat(kind, f.load("float", pointer)))
    for part in chain:
        made.append(part.emit(f, kind, inputs, made[1:]))
    return made[-1]


def revisited(f: Function, chain: Sequence[Part], size: tuple[int, int], pointers: Sequence[str],
              strides: Sequence[tuple[int, int, int]], count: int) -> None:
    """A long chain done to a vector of channels of rows by columns of pixels that are stored, as its code for each
    would be many times the rest. Of the pixels and of all else that it reads: where that is, and its strides."""
    def row(_: str, at: list[str]) -> list[str]:
        def cell(_: str, here: list[str]) -> list[str]:
            value = f.load_first(count, f.machine.lanes, "float", here[0])
            there = list(zip(here[1:], (channel for _, _, channel in strides[1:]), strict=True))
            f.store_first(count, f.machine.lanes, "float", continued(f, chain, value, there, count), here[0])
            return [f.at(p, step) for p, (_, step, _) in zip(here, strides, strict=True)]
        f.loop(0, size[1], 1, [("ptr", p) for p in at], cell)
        return [f.at(p, step) for p, (step, _, _) in zip(at, strides, strict=True)]
    f.loop(0, size[0], 1, [("ptr", p) for p in pointers], row)


def packed(w: Array, vectors: int, lanes: int) -> tuple[Array, Array]:
    """Weights [depth, channels] by panels of `vectors` times `lanes` channels: a view of the whole panels
    [panel, depth, channel], and the last one, narrower, with zeros behind."""
    (depth, channels), step = w.shape, vectors * lanes
    whole, wide = channels // step, -(-channels // lanes) * lanes
    inner = whole * step
    last = np.zeros((depth, wide - inner), np.float32)
    last[:, :channels - inner] = w[:, inner:]
    return w[:, :inner].reshape(depth, whole, step).transpose(1, 0, 2), last


def padded(values: Array, lanes: int) -> Array:
    """A bias with zeros up to a whole vector."""
    found = np.zeros(-(-values.size // lanes) * lanes, np.float32)
    found[:values.size] = values
    return found


def taken(b: Bound, machine: Machine, *constants: str) -> bool:
    """Whether an operation is of FLOAT32, not empty, and its weights are constants."""
    tensors = [v for v in b.args.values() if isinstance(v, Tensor)]
    return all(t.type == F32 and t.size > 0 for t in (*tensors, *b.outs)) and not b.args.get("nchw") and all(
        b.args[name].data is not None for name in constants)


def runs_of(kw: int, dilation: int, depth: int, x: Place) -> tuple[tuple[int, int], ...]:
    """A filter's row of `kw` cells of an image, of which it reads `depth` elements each."""
    cell = x.strides[2]
    if kw == 1 or dilation == 1 and cell == depth * x.item:
        return ((0, kw * depth),)
    return tuple((i * dilation * cell, depth) for i in range(kw))


def made(w: Workshop, group: Group, x: Place, out: Place, strides: tuple[int, int],
         dilations: tuple[int, int], filters: Array) -> Dense:
    """The task of filters [out, kh, kw, in] over an image, and of what follows in the group."""
    lanes, args = w.machine.lanes, group.head.args
    chain, slots = chained(group.tail, group.head.outputs[0])
    extras = tuple(matched(w.place(s), out.shape) for s in slots)
    if out.shape[1] > out.shape[2] == 1:
        x, out, extras = on_side(x), on_side(out), tuple(map(on_side, extras))
        strides, dilations, filters = strides[::-1], dilations[::-1], filters.transpose(0, 2, 1, 3)
    channels, kh, kw, depth = filters.shape
    runs = runs_of(kw, dilations[1], depth, x)
    if kh == kw == 1 and strides == (1, 1) and all(p.even or not any(p.strides[:3]) for p in (x, out, *extras)):
        x, out, extras = as_row(x), as_row(out), tuple(map(as_row, extras))
    tile, folded = tile_of(out.shape, kw * depth, kh, w.machine)
    matrix = filters.reshape(channels, -1).T
    return Dense(x, out, kh, runs, dilations[0] * x.strides[1], strides,
                 w.pack(*packed(matrix, tile.vectors, lanes)), w.pack(padded(args["b"].data, lanes)), tile, args["act"],
                 chain, extras, folded)


def tile_of(shape: Shape, depth: int, taps: int, machine: Machine) -> tuple[Tile, bool]:
    """The tile for results [n, rows, width, channels], and whether it goes on from row to row: where panels are read
    again for each row, and there are few."""
    n, rows, width, channels = shape
    lanes, registers = machine.lanes, machine.registers
    found = best(channels, depth, taps, n * rows, width, lanes, registers)
    folded = best(channels, depth, taps, n, rows * width, lanes, registers)
    if rows == 1 or taps == 1 or folded.parts > FOLDS[registers]:
        return found, False
    costs = (cost(t, channels, depth, taps, *of, lanes) for t, of in ((found, (n * rows, width)),
                                                                      (folded, (n, rows * width))))
    return (folded, True) if WORTH * next(costs) > next(costs) else (found, False)


def on_side(p: Place) -> Place:
    """An image with its rows as columns."""
    (n, h, w, c), (image, row, cell, item) = p.shape, p.strides
    return replace(p, shape=(n, w, h, c), strides=(image, cell, row, item), border=Border())


def as_row(p: Place) -> Place:
    """All pixels as one row of one image."""
    n, h, w, c = p.shape
    cell = p.strides[2]
    return replace(p, shape=(1, 1, n * h * w, c), strides=(n * h * w * cell, n * h * w * cell, cell, p.strides[3]),
                   border=Border())


# Convolutions.
def with_weights(b: Bound, machine: Machine) -> bool:
    """Whether it is of floats, by constant weights and a constant bias."""
    return taken(b, machine, "w", "b")


def pads(args: Any) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    return args["pt"], args["pl"], args["pb"], args["pr"]


def border_of(b: Bound) -> dict[int, Border]:
    """The border that a convolution wants around its image, of zeros."""
    top, left, bottom, right = pads(b.args)
    return {b.slots["x"]: Border(top, left, bottom, right)} if any(pads(b.args)) else {}


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    top, left, _, _ = pads(b.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(group.outputs[0])
    return made(w, group, x, out, (b.args["sh"], b.args["sw"]), (b.args.get("dh", 1), b.args.get("dw", 1)),
                b.args["w"].data)


# Products.
def rows_of(p: Place, depth: int) -> Place:
    """A dense array as one image whose pixels are its rows of `depth` elements."""
    count, cell = p.size // depth, depth * p.item
    return replace(p, shape=(1, 1, count, depth), strides=(count * cell, count * cell, cell, p.item), border=Border())


def _make_product(w: Workshop, group: Group) -> Task:
    b = group.head
    matrix: Sequence[Any] = b.args["w"].data
    units, depth = np.shape(matrix)
    x, out = rows_of(w.place(b.slots["x"]), depth), rows_of(w.place(group.outputs[0]), units)
    return made(w, group, x, out, (1, 1), (1, 1), np.asarray(matrix).reshape(units, 1, 1, depth))


native(Family(with_weights, _make, border_of, strided=True, fuses=follows), conv.CONV_2D)
native(Family(with_weights, _make_product, fuses=follows), conv.FULLY_CONNECTED)
