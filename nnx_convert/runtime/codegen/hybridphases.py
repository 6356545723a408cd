"""Transposed convolutions of floats by int8 weights, bit by bit as NumPy's: each product becomes a float, is scaled by
its weights' scale, then by its image's, and is added to those before, in the order of the pixels and channels of x.

So nothing can be summed in integers. What a row of filters meets in a phase (see `grouped`) lies one after the other,
and the zeros around an image add nothing.
"""
from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ...frozen import frozen
from ...ops import hybrid as h
from ...ops.conv import scatter_pads
from ...types import F32
from ..bind import Bound
from ..fixedpoint import scales
from .cells import activated
from .dense import packed
from .grids import WIDE
from .grouped import MOST_PHASES, Phase, Several, phases, reach
from .hybrid import BLOCK, blocks, filters_of, gridded_of, one_tile, scratch_of
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import ITEM, Border, Place
from .tasks import Family, Group, Phases, Workshop, native
from .tiles import Spot, Tile, best

#: Pixels that fit beside so many vectors of channels, each of which has weights and their scale in registers, too.
FIT = {32: {1: 20, 2: 10, 3: 6, 4: 4}, 16: {1: 7, 2: 3}}


@frozen
class Micro:
    """A micro-kernel `(A, B, C, blocks, info)`: pixels `step` bytes apart at A, and `far` at C.

    `rows` rows, `pitch` bytes apart, of `run` neighbours each are multiplied. Of the last vector, `tail` lanes are
    stored (0: all).
    """

    pixels: int
    vectors: int
    step: int
    far: int
    rows: int
    pitch: int
    run: int
    biased: bool
    act: int
    tail: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("hybridphase", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"), ("ptr", "%C"),
                               ("ptr noalias readonly", "%blocks"), ("ptr noalias readonly", "%info")))
        kind, size = vector(m.machine.lanes), m.machine.lanes * ITEM
        scale = f.splat(kind, f.load("float", "%info"))
        own = [f.load(kind, "%blocks", j * BLOCK * m.machine.lanes + size) for j in range(self.vectors)]

        def row(_: str, now: list[str]) -> list[str]:
            after = f.loop(0, self.run, 1, [("ptr", now[0]), ("ptr", now[1]), *((kind, v) for v in now[2:])],
                           lambda _, now: self._step(f, now, own, scale))
            return [f.at(now[0], self.pitch), *after[1:]]
        none = [(kind, number(kind, 0))] * (self.pixels * self.vectors)
        sums = f.loop(0, self.rows, 1, [("ptr", "%A"), ("ptr", "%B"), *none], row)[2:]
        for i, j in product(range(self.pixels), range(self.vectors)):
            value, last = sums[i * self.vectors + j], j == self.vectors - 1
            if self.biased:
                value = f.let(f"fadd {kind} {value}, {f.load(kind, '%blocks', j * BLOCK * m.machine.lanes + 2 * size)}")
            f.store_first(self.tail if self.tail and last else m.machine.lanes, m.machine.lanes, "float",
                          activated(f, kind, self.act, value), "%C", i * self.far + j * size)
        f.finish()

    def _step(self, f: Function, now: list[str], own: list[str], scale: str) -> list[str]:
        """One element of every pixel by the weights of all channels."""
        x, w, sums = now[0], now[1], now[2:]
        kind, size = vector(f.machine.lanes), f.machine.lanes * ITEM
        weights = [f.load(kind, w, j * size) for j in range(self.vectors)]
        for i in range(self.pixels):
            given = f.splat(kind, f.load("float", x, i * self.step))
            for j, weight in enumerate(weights):
                value, at = f.let(f"fmul {kind} {given}, {weight}"), i * self.vectors + j
                value = f.let(f"fmul {kind} {f.let(f'fmul {kind} {value}, {own[j]}')}, {scale}")
                sums[at] = f.let(f"fadd {kind} {sums[at]}, {value}")
        return [f.at(x, ITEM), f.at(w, self.vectors * size), *sums]


@frozen
class HybridPhase:
    """The outputs of one phase: filters of so many rows and neighbours over images on grids, whose infos are there."""

    x: Place
    infos: Place
    out: Place
    rows: int
    cells: int
    weights: int
    blocks: int
    tile: Tile
    biased: bool
    act: int

    @property
    def run(self) -> int:
        """Neighbours of one row that a filter meets."""
        return self.cells * self.x.shape[3]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("hybridphases", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        self.tile.walk(f, self.out.shape, lambda spot: self._tile(f, spot))
        f.finish()

    def micro(self, pixels: int, vectors: int, tail: int) -> Micro:
        """The micro-kernel of a tile's size."""
        return Micro(pixels, vectors, self.x.strides[2], self.out.strides[2], self.rows, self.x.strides[1], self.run,
                     self.biased, self.act, tail)

    def _tile(self, f: Function, spot: Spot) -> None:
        one_tile(f, self, spot, (1, 1), ITEM * self.rows * self.run)


def _axes(b: Bound) -> tuple[list[Phase], list[Phase]]:
    """The phases of the rows, and those of the columns."""
    sizes = zip(b.args["x"].shape[1:3], b.outs[0].shape[1:3], b.args["w"].shape[1:3], (b.args["sh"], b.args["sw"]),
                strict=True)
    rows, columns = (phases(out, k, stride, scatter_pads(b.args["scheme"], size, out, k, stride)[0])
                     for size, out, k, stride in sizes)
    return rows, columns


def _takes(b: Bound, _: Machine) -> bool:
    x, w, bias = (b.args[n] for n in ("x", "w", "b"))
    if x.type != F32 or w.data is None or bias is not None and bias.data is None:
        return False
    if any(t.size == 0 for t in (x, w, *b.outs)):
        return False
    rows, columns = _axes(b)
    return len(rows) * len(columns) <= MOST_PHASES and all(p.taps for p in (*rows, *columns))


def _border(b: Bound) -> Border:
    return reach(_axes(b), b.args["x"].shape[1:3])


def _scratch(group: Group, _: Machine) -> int:
    return scratch_of(group.head.args["x"].shape, _border(group.head), ITEM)


def _make(w: Workshop, group: Group) -> Phases:
    b, lanes = group.head, w.machine.lanes
    x, out = b.args["x"].shape, w.place(b.outputs[0])
    gridded = gridded_of(w, b, x, _border(b), ITEM, WIDE)
    filters, units = filters_of(b), out.shape[3]
    bias = 0.0 if b.args["b"] is None else b.args["b"].data
    at = w.pack(blocks(np.zeros(units), scales(b.args["w"], units), bias, lanes))
    tasks = []
    for down, along in product(*_axes(b)):
        own = filters[:, down.taps][:, :, along.taps].astype(np.float32).reshape(units, -1).T
        to = down.among(along, out, (b.args["sh"], b.args["sw"]))
        tile = best(units, len(along.taps) * x[3], len(down.taps), to.shape[0] * to.shape[1], to.shape[2], lanes,
                    w.machine.registers, FIT[w.machine.registers])
        source = replace(gridded.out.shifted(-down.cell, -along.cell), shape=(*to.shape[:3], x[3]), border=Border())
        tasks.append(HybridPhase(source, gridded.infos, to, len(down.taps), len(along.taps),
                                 w.pack(*packed(own, tile.vectors, lanes)), at, tile, b.args["b"] is not None,
                                 b.args["act"]))
    return Phases((gridded, Several(tuple(tasks))))


NATIVE = (native(Family(_takes, _make, scratch=_scratch), h.HYBRID_TRANSPOSE_CONV_2D),)
