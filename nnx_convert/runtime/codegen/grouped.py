"""Convolutions in groups of channels, and transposed ones, by the micro-kernels of dense ones."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import Array
from ..bind import Bound
from .dense import Dense, border_of, made, packed, padded, pads, taken, with_weights
from .elements import chained, follows, matched
from .ir import ALONE, SHARED, Function, Module
from .machine import Machine
from .places import ITEM, Border, Place
from .tasks import Family, Group, Task, Workshop, native
from .tiles import best, fit

#: Phases of a transposed convolution at most, each of which is a call of its own.
MOST_PHASES = 1024


@frozen
class Grouped:
    """As many convolutions as there are groups, beside each other: `one` is the first.

    `weights` and `bias` are the bytes from a group's to the next one's.
    """

    one: Dense
    groups: int
    weights: int
    bias: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("grouped", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, rows, _, channels = self.one.out.shape
        panels = self.one.tile.panels(channels, m.machine.lanes)
        tiles = n * rows * self.one.tile.parts
        first, last = f.share(self.groups * panels * tiles)

        def item(i: str, _: list[str]) -> None:
            which, tile = f.div(i, tiles), f.rem(i, tiles)
            group, panel = f.div(which, panels), f.rem(which, panels)
            for number in range(panels):
                here = f.let(f"icmp eq i64 {panel}, {number}")
                f.when(here, lambda number=number: self._tile(f, group, number, tile))  # type: ignore[misc]
        f.loop(first, last, 1, [], item)
        f.finish()

    def _tile(self, f: Function, group: str, panel: int, tile: str) -> None:
        """One tile of a panel of a group."""
        one, t = self.one, self.one.tile
        _, rows, _, channels = one.out.shape
        line, part = f.div(tile, t.parts), f.rem(tile, t.parts)
        image, y = f.div(line, rows), f.rem(line, rows)
        x = t.first(f, part)
        wide = f.machine.lanes * t.vectors

        def at(p: Place, step: tuple[int, int], cells: int, more: int) -> str:
            inner = f.add(f.mul(image, p.strides[0]), f.add(f.mul(y, p.strides[1] * step[0]),
                                                            f.mul(x, p.strides[2] * step[1])))
            return f.at(p.base, f.add(f.add(inner, f.mul(group, cells * p.strides[3])), p.offset + more * p.strides[3]))
        weights = f.at("%weights", f.add(f.mul(group, self.weights), one.weights + panel * wide * ITEM * one.depth))
        bias = f.at("%weights", f.add(f.mul(group, self.bias), one.bias + panel * wide * ITEM))
        extras = (at(e, (1, 1), channels, panel * wide) for e in one.extras)
        pointers = (at(one.x, one.strides, one.runs[0][1], 0), weights,
                    at(one.out, (1, 1), channels, panel * wide), bias, *extras)
        given = ", ".join(f"ptr {p}" for p in pointers)
        count = min(wide, channels - panel * wide)

        def call(pixels: int) -> None:
            micro = one.micro(pixels, -(-count // f.machine.lanes), count % f.machine.lanes)
            f.do(f"call void @{micro.emit(f.module)}({given})")
        t.sized(f, part, call)


def in_groups(w: Workshop, group: Group, filters: Array, groups: int, dilations: tuple[int, int]) -> Task:
    """The task of filters [out, kh, kw, in of a group], and of what follows in the group of operations."""
    b, lanes = group.head, w.machine.lanes
    top, left, _, _ = pads(b.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(group.outputs[0])
    units, kh, kw, depth = filters.shape
    each = units // groups
    chain, slots = chained(group.tail, b.outputs[0])
    extras = tuple(replace(matched(w.place(s), out.shape), shape=(*out.shape[:3], each)) for s in slots)
    out = replace(out, shape=(*out.shape[:3], each), border=Border())
    n, rows, width, _ = out.shape
    tile = best(each, kw * depth, kh, n * rows, width, lanes, w.machine.registers, fit(w.machine))
    parts = [np.concatenate([p.reshape(-1) for p in packed(f.reshape(each, -1).T, tile.vectors, lanes)])
             for f in np.split(filters, groups)]
    biases = [padded(p, lanes) for p in np.split(b.args["b"].data, groups)]
    runs = tuple((i * dilations[1] * x.strides[2], depth) for i in range(kw))
    one = Dense(x, out, kh, runs, dilations[0] * x.strides[1], (b.args["sh"], b.args["sw"]), w.pack(np.stack(parts)),
                w.pack(np.stack(biases)), tile, b.args["act"], chain, extras)
    return Grouped(one, groups, parts[0].nbytes, biases[0].nbytes)


def _make(w: Workshop, group: Group) -> Task:
    return in_groups(w, group, group.head.args["w"].data, group.head.args["groups"], (1, 1))


# Transposed convolutions.
@frozen
class Several:
    """Tasks that do not meet, one after the other."""

    tasks: tuple[Task, ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            for task in self.tasks:
                f.do(f"call void @{task.emit(m)}({ALONE})")
            f.finish()
        return m.once(("several", self), build)


@frozen
class Phase:
    """What one of `stride` outputs, beginning with the `first`, reads along an axis.

    Taps of the filter, in the order of the cells that they meet, the first cell of output 0, and how many outputs.
    """

    first: int
    taps: tuple[int, ...]
    cell: int
    count: int

    def among(self, along: Phase, out: Place, strides: tuple[int, int]) -> Place:
        """The outputs of this phase of the rows and that one of the columns among all."""
        n, rows, columns, channels = out.strides
        return replace(out, offset=out.offset + self.first * rows + along.first * columns, border=Border(),
                       shape=(out.shape[0], self.count, along.count, out.shape[3]),
                       strides=(n, rows * strides[0], columns * strides[1], channels))


def phases(out: int, k: int, stride: int, before: int) -> list[Phase]:
    """The phases of an axis of `out` outputs: input i meets tap t at output i * stride + t - before."""
    found = []
    for first in range(min(stride, out)):
        start = (first + before) % stride
        taps = tuple(range(start, k, stride))[::-1]
        cell = (first + before - start) // stride - (len(taps) - 1)
        found.append(Phase(first, taps, cell, -(-(out - first) // stride)))
    return found


def axes_of(b: Bound) -> tuple[list[Phase], list[Phase]]:
    """The phases of a transposed convolution's rows, and those of its columns."""
    (_, h, wide, _), (_, kh, kw, _) = b.outs[0].shape, b.args["w"].shape
    return phases(h, kh, b.args["sh"], b.args["pt"]), phases(wide, kw, b.args["sw"], b.args["pl"])


def in_phases(b: Bound, most: int) -> bool:
    """Whether there are so many phases at most, and every output has a tap; without one it would be the bias alone."""
    _, h, wide, _ = b.outs[0].shape
    few = min(b.args["sh"], h) * min(b.args["sw"], wide) <= most
    return few and all(p.taps for axis in axes_of(b) for p in axis)


def _takes_transposed(b: Bound, machine: Machine) -> bool:
    bias = b.args["b"]
    return taken(b, machine, "w") and bias is not None and bias.data is not None and in_phases(b, MOST_PHASES)


def reach_of(b: Bound, fill: int = 0) -> dict[int, Border]:
    """What the phases read outside of the image, on either side; it is of such bytes."""
    found = reach(axes_of(b), b.args["x"].shape[1:3], fill)
    return {b.slots["x"]: found} if found else {}


def reach(axes: Sequence[Sequence[Phase]], sizes: Sequence[int], fill: int = 0) -> Border:
    """The same of the phases of rows and columns, over images of so many."""
    sides: list[int] = []
    for axis, size in zip(axes, sizes, strict=True):
        ends = [p.cell + len(p.taps) - 1 + p.count - 1 - (size - 1) for p in axis]
        sides += [max(0, *(-p.cell for p in axis)), max(0, *ends)]
    top, bottom, left, right = sides
    return Border(top, left, bottom, right, fill)


def met_by(b: Bound, x: Place, out: Place) -> Iterator[tuple[Place, Place, Array]]:
    """For each phase of a transposed convolution what it reads, what it writes, and its part of the filters."""
    for down, along in product(*axes_of(b)):
        to = down.among(along, out, (b.args["sh"], b.args["sw"]))
        source = replace(x.shifted(-down.cell, -along.cell), shape=(*to.shape[:3], x.shape[3]), border=Border())
        yield source, to, np.ascontiguousarray(b.args["w"].data[:, down.taps][:, :, along.taps])


def _make_transposed(w: Workshop, group: Group) -> Task:
    parts = met_by(group.head, w.place(group.head.slots["x"]), w.place(group.outputs[0]))
    return Several(tuple(made(w, group, source, to, (1, 1), (1, 1), own) for source, to, own in parts))


NATIVE = (
    native(Family(with_weights, _make, border_of, strided=True, fuses=follows), conv.GROUPED_CONV_2D),
    native(Family(_takes_transposed, _make_transposed, reach_of, strided=True), conv.TRANSPOSE_CONV_2D),
)
