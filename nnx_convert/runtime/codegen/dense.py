"""Convolutions of floats and products by constant matrices, as one micro-kernel.

A tile of pixels by vectors of output channels stays in registers; the activation is read where it lies, one element
at a time for all lanes, and weights are packed by panels of channels, so that both are walked in order.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...ops import conv
from ...types import F32, Array, Tensor
from ..bind import Bound
from .elements import BOUNDS, Part, chained, follows, matched
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .places import Border, Place
from .tasks import Family, Group, Task, Workshop, native
from .tiles import UNROLLED, Spot, Tile, best

ITEM = 4


@dataclass(frozen=True)
class Micro:
    """A micro-kernel: `(A, B, C, bias)`. Offsets are in bytes, of each pixel: `a` in the activation, `c` in the result.

    The depth is `taps` rows, `row` bytes apart, each of `runs` of neighbouring elements (offset, length). Of the last
    vector, `tail` lanes are stored (0: all). Before that, the `chain` is done to the sums (input 0) and to `extras`,
    of which the bytes from pixel to pixel and from channel to channel are told.
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
    extras: tuple[tuple[int, int], ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("micro", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
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
            pointers = [f.at(f"%E{n}", i * pixel) for n, (pixel, _) in enumerate(self.extras)]
            for j in range(self.vectors):
                value = self._followed(f, sums[i * self.vectors + j], pointers, j)
                self._store(f, value, f.at("%C", offset), j)

    def _stored_first(self, f: Function, sums: list[str]) -> None:
        """The same where the chain is long: a loop over pixels, as its code for each would be many times the rest."""
        for n, value in enumerate(sums):
            i, j = divmod(n, self.vectors)
            self._store(f, value, f.at("%C", self.c[i]), j)
        step = self.c[1] - self.c[0] if len(self.c) > 1 else 0
        steps = (step, *(pixel for pixel, _ in self.extras))

        def pixel(_: str, now: list[str]) -> list[str]:
            size = f.machine.lanes * ITEM
            for j in range(self.vectors):
                value = f.load_first(self._count(f, j), f.machine.lanes, "float", now[0], j * size)
                self._store(f, self._followed(f, value, now[1:], j), now[0], j)
            return [f.at(p, by) for p, by in zip(now, steps, strict=True)]
        f.loop(0, len(self.c), 1, [("ptr", "%C"), *(("ptr", f"%E{n}") for n in range(len(self.extras)))], pixel)

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
        turns = self._turns(length, len(sums), f.machine.registers)

        def body(_: str, carried: list[str]) -> list[str]:
            a, b, now = carried[0], carried[1], carried[2:]
            for u in range(turns):
                now = self._step(f, a, b, now, u)
            return [f.at(a, ITEM * turns), f.at(b, size * turns), *now]
        found = f.loop(0, length, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], body)
        return found[1], found[2:]

    @staticmethod
    def _turns(length: int, sums: int, registers: int) -> int:
        """How many steps of the depth one turn of the loop makes."""
        if sums > UNROLLED[registers]:
            return 1
        return 2 if length % 2 == 0 else 3 if length % 3 == 0 and length <= 9 else 1

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


@dataclass(frozen=True)
class Dense:
    """A convolution, or a product where the image is one row of pixels.

    `x` begins at the first tap of the first output; `weights` and `bias` are offsets in the weights.
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

    @property
    def depth(self) -> int:
        """Elements under the filter."""
        return self.taps * sum(length for _, length in self.runs)

    def micro(self, pixels: int, vectors: int, tail: int) -> Micro:
        """The micro-kernel of a tile's size."""
        step, out = self.strides[1] * self.x.strides[2], self.out.strides[2]
        return Micro(tuple(i * step for i in range(pixels)), tuple(i * out for i in range(pixels)), vectors, self.taps,
                     self.row if self.taps > 1 else 0, self.runs, tail, self.act, self.chain,
                     tuple((e.strides[2], e.strides[3]) for e in self.extras))

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("dense", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        self.tile.walk(f, self.out.shape, lambda spot: self._tile(f, spot))
        f.finish()

    def _tile(self, f: Function, spot: Spot) -> None:
        """One tile of one panel of channels."""
        size, panel = f.machine.lanes * ITEM * self.tile.vectors, spot.panel
        pointers = (spot.at(f, self.x, self.strides, 0),
                    f.at("%weights", f.add(self.weights, f.mul(panel, size * self.depth))),
                    spot.at(f, self.out, (1, 1), size),
                    f.at("%weights", f.add(self.bias, f.mul(panel, size))),
                    *(spot.at(f, e, (1, 1), size if e.strides[3] else 0) for e in self.extras))
        given = ", ".join(f"ptr {p}" for p in pointers)
        self.tile.fitted(f, self.out.shape[3], spot, lambda *of: f.do(
            f"call void @{self.micro(*of).emit(f.module)}({given})"))


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
    n, rows, width, _ = out.shape
    tile = best(channels, kw * depth, kh, n * rows, width, lanes, w.machine.registers)
    matrix = filters.reshape(channels, -1).T
    return Dense(x, out, kh, runs, dilations[0] * x.strides[1], strides,
                 w.pack(*packed(matrix, tile.vectors, lanes)), w.pack(padded(args["b"].data, lanes)), tile, args["act"],
                 chain, extras)


as_image, followed = matched, follows


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
def _takes(b: Bound, machine: Machine) -> bool:
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


native(Family(_takes, _make, border_of, strided=True, fuses=follows), conv.CONV_2D)
native(Family(_takes, _make_product, fuses=follows), conv.FULLY_CONNECTED)
