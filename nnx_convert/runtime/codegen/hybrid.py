"""Floats by int8 weights, computed on grids that each run chooses: convolutions and products, bit by bit as NumPy's.

First the images (of a product, its rows) are brought to their grids, then they are multiplied in integers.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from ...frozen import frozen
from ...kinds import scheme_pads
from ...ops import hybrid as h
from ...types import F32, QPC, Array, Shape, Tensor
from ..bind import Bound
from ..fixedpoint import grid, scales
from ..hybrid import EXACT_F32, SPAN
from .cells import activated
from .dense import as_row, rows_of
from .depthwise import Depthwise, patch_of
from .depthwise import packed as by_channels
from .elements import Part
from .grids import INFO, SYMMETRIC, WIDE, Gridded
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .places import ITEM, Border, Place, room
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, native, remembered
from .tiles import Spot, Tile, best, fit_of_bytes
from .wholes import Walk, item, narrowed, of_bytes, packed, shortest, steps, tile_of, weighing

#: The bytes of a channel's parameters: the sum of its weights, their scale, and the bias.
BLOCK = 12


@frozen
class Micro:
    """A micro-kernel `(A, B, C, blocks, infos)`: the products of a walk as floats, pixels at offsets `c`.

    `infos` are the pixels' grids, so many bytes apart (0: all have one). `twice`: sums are scaled by the weights'
    scale, then by the grid's, else by the product of both. Of the last vector, `tail` lanes are stored (0: all).
    """

    walk: Walk
    c: tuple[int, ...]
    info: int
    twice: bool
    biased: bool
    act: int
    tail: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("hybrid", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"), ("ptr", "%C"),
                               ("ptr noalias readonly", "%blocks"), ("ptr noalias readonly", "%infos")))
        lanes, vectors, pixels = m.machine.lanes, self.walk.vectors, range(len(self.c))
        kind, size = vector(lanes, "i32"), BLOCK * lanes
        start = ["zeroinitializer"] * (vectors * len(self.c))
        if self.walk.quads:                      # what 0 is counts once for each of a channel's weights
            totals = [f.load(kind, "%blocks", j * size) for j in range(vectors)]
            less = self.walk.less(m.machine)
            zeros = [f.splat(kind, f.let(f"sub i32 {less}, {f.load('i32', '%infos', i * self.info + ITEM)}"))
                     for i in (pixels if self.info else pixels[:1])]
            start = [f.let(f"mul {kind} {zeros[i if self.info else 0]}, {total}") for i in pixels for total in totals]
        sums = self.walk.sums(f, "%A", "%B", start)
        for i in pixels:
            scale = f.splat(vector(lanes), f.load("float", "%infos", i * self.info))
            for j in range(vectors):
                count = self.tail if self.tail and j == vectors - 1 else lanes
                value = self._real(f, sums[i * vectors + j], scale, f.at("%blocks", j * size))
                f.store_first(count, lanes, "float", value, "%C", self.c[i] + j * lanes * ITEM)
        f.finish()

    def _real(self, f: Function, total: str, scale: str, block: str) -> str:
        """A vector of sums as floats, each step rounded as NumPy rounds it."""
        lanes = f.machine.lanes
        kind, size = vector(lanes), lanes * ITEM
        value, own = f.let(f"sitofp {vector(lanes, 'i32')} {total} to {kind}"), f.load(kind, block, size)
        if self.twice:
            value = f.let(f"fmul {kind} {f.let(f'fmul {kind} {value}, {own}')}, {scale}")
        else:
            value = f.let(f"fmul {kind} {value}, {f.let(f'fmul {kind} {scale}, {own}')}")
        if self.biased:
            value = f.let(f"fadd {kind} {value}, {f.load(kind, block, 2 * size)}")
        return activated(f, kind, self.act, value)


@frozen
class Hybrid:
    """A convolution over images on grids, or a product where the image is one row of pixels: see `dense.Dense`.

    `infos` are the grids, of each image or, of a product, of each pixel.
    """

    x: Place
    infos: Place
    out: Place
    taps: int
    runs: tuple[tuple[int, int], ...]
    row: int
    strides: tuple[int, int]
    weights: int
    blocks: int
    tile: Tile
    quads: bool
    narrow: bool
    short: int
    twice: bool
    biased: bool
    act: int

    def micro(self, pixels: int, vectors: int, tail: int) -> Micro:
        """The micro-kernel of a tile's size."""
        step, out = self.strides[1] * self.x.strides[2], self.out.strides[2]
        walk = Walk(tuple(i * step for i in range(pixels)), vectors, self.taps, self.row if self.taps > 1 else 0,
                    self.runs, self.quads, self.narrow, self.short)
        return Micro(walk, tuple(i * out for i in range(pixels)), self.infos.strides[2], self.twice, self.biased,
                     self.act, tail)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("hybridproduct", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        self.tile.walk(f, self.out.shape, lambda spot: self._tile(f, spot))
        f.finish()

    def _tile(self, f: Function, spot: Spot) -> None:
        steps = self.taps * sum(steps for _, steps in self.runs)
        one_tile(f, self, spot, self.strides, weighing(self.narrow) * steps)


class Walked(Protocol):
    """Products on grids that are done tile by tile: of what, by which micro-kernel."""

    @property
    def x(self) -> Place:
        """What is multiplied, on its grids."""

    @property
    def infos(self) -> Place:
        """These grids."""

    @property
    def out(self) -> Place:
        """The products."""

    @property
    def weights(self) -> int:
        """Where the panels of weights are, in bytes."""

    @property
    def blocks(self) -> int:
        """Where the channels' parameters are."""

    @property
    def tile(self) -> Tile:
        """How it is cut."""

    def micro(self, pixels: int, vectors: int, tail: int) -> Task:
        """The micro-kernel of a tile's size, which takes addresses: of x, weights, out, parameters and infos."""


def one_tile(f: Function, task: Walked, spot: Spot, strides: tuple[int, int], weighs: int) -> None:
    """Emit one tile of one panel of channels, each of which has so many bytes of weights."""
    wide = f.machine.lanes * task.tile.vectors
    pointers = (spot.at(f, task.x, strides, 0),
                f.at("%weights", f.add(task.weights, f.mul(spot.panel, wide * weighs))),
                spot.at(f, task.out, (1, 1), wide * ITEM),
                f.at("%weights", f.add(task.blocks, f.mul(spot.panel, wide * BLOCK))),
                spot.at(f, task.infos, (1, 1), 0))
    given = ", ".join(f"ptr {p}" for p in pointers)
    task.tile.fitted(f, task.out.shape[3], spot, lambda *size: f.do(
        f"call void @{task.micro(*size).emit(f.module)}({given})"))


# What is taken.
def _taken(b: Bound, _: Machine) -> bool:
    """Floats by constant weights; sums are integers of 32 bits."""
    x, w, bias = (b.args[n] for n in ("x", "w", "b"))
    if x.type != F32 or w.data is None or bias is not None and bias.data is None or b.args.get("groups", 1) != 1:
        return False
    return all(t.size > 0 for t in (x, w, *b.outs)) and SPAN * int(np.abs(filters_of(b)).sum((1, 2, 3)).max()) < 1 << 31


def filters_of(b: Bound) -> Array:
    """The weights less their zero point: [out, kh, kw, in]."""
    w: Tensor = b.args["w"]
    found = np.asarray(w.data).astype(np.int32) - grid(w)[1]
    return found.reshape(w.shape[0], 1, 1, -1) if w.rank == 2 else found


def _taken_depthwise(b: Bound, machine: Machine) -> bool:
    """With one filter a channel, which is summed exactly in floats."""
    w: Tensor = b.args["w"]
    if not _taken(b, machine) or w.shape[3] != b.args["x"].shape[3] or math.prod(w.shape[1:3]) > 64:
        return False
    return SPAN * int(np.abs(filters_of(b)).sum((0, 1, 2)).max()) < EXACT_F32


# The grids.
def _border(b: Bound) -> Border:
    """What a convolution reads around its images."""
    if "scheme" not in b.args:
        return Border()
    (_, height, width, _), (kh, kw) = b.args["x"].shape, b.args["w"].shape[1:3]
    top, bottom = scheme_pads(b.args["scheme"], height, kh, b.args["sh"], b.args["dh"])
    left, right = scheme_pads(b.args["scheme"], width, kw, b.args["sw"], b.args["dw"])
    return Border(top, left, bottom, right)


def _images(b: Bound) -> tuple[int, int, int, int]:
    """What has a grid of its own, as images: of a product its rows."""
    x: Tensor = b.args["x"]
    if "scheme" in b.args:
        n, height, width, depth = x.shape
        return n, height, width, depth
    depth = b.args["w"].shape[1]
    return x.size // depth, 1, 1, depth


def scratch_of(shape: Shape, border: Border, item: int) -> int:
    """The bytes of images on their grids, in elements of so many bytes, and of these grids."""
    size, _, _ = room(shape, item, border)
    return -(-size // INFO) * INFO + shape[0] * INFO


def _scratch(b: Bound, item: int) -> int:
    return scratch_of(_images(b), _border(b), item)


def gridded_of(w: Workshop, b: Bound, shape: Shape, border: Border, item: int, rule: str) -> Gridded:
    """The task that brings an operation's images to their grids, in its scratch."""
    scratch, x = w.place(SCRATCH), w.place(b.slots["x"])
    size, strides, first = room(shape, item, border)
    out = Place(scratch.base, scratch.offset + first, shape, strides, item, border)
    infos = Place(scratch.base, scratch.offset + -(-size // INFO) * INFO, (shape[0], 1, 1, 1), (INFO, 0, 0, 0), INFO)
    return Gridded(x.reshaped(shape), out, infos, rule)


# Products.
def blocks(totals: Array, scale: Array, bias: Array | float, lanes: int) -> Array:
    """The parameters of channels, those of a vector together, zeros behind: the sums of their weights, their scales,
    and what is added."""
    wide = np.zeros((3, -(-totals.size // lanes) * lanes), np.float32)
    wide[0, :totals.size] = totals.astype(np.int32).view(np.float32)
    wide[1, :totals.size] = scale
    wide[2, :totals.size] = bias
    return wide.reshape(3, -1, lanes).swapaxes(0, 1)


def _cells(b: Bound) -> int:
    """Neighbours of a row of filters that are one run of the depth."""
    return int(b.args["w"].shape[2]) if "scheme" in b.args and b.args["dw"] == 1 else 1


@remembered
def _bytes(b: Bound, machine: Machine) -> tuple[bool, int]:
    """Whether bytes are multiplied, and of how many steps in sums of 16 bits."""
    out, filters = b.outs[0], filters_of(b)
    pixels, run = out.size // out.shape[-1], _cells(b) * filters.shape[3]
    short = shortest(machine, pixels, filters.reshape(len(filters), -1).T, run)
    return bool(short) or of_bytes(machine, pixels, filters), short


def _make(w: Workshop, group: Group) -> Phases:
    b, lanes = group.head, w.machine.lanes
    filters = filters_of(b)
    (quad, short), (units, kh, kw, depth) = _bytes(b, w.machine), filters.shape
    narrow = narrowed(w.machine, quad, filters)
    gridded = gridded_of(w, b, _images(b), _border(b), item(quad), WIDE if b.args["asymmetric"] else SYMMETRIC)
    x, infos, border = gridded.out, gridded.infos, gridded.out.border
    x = x.shifted(border.top, border.left)
    strides, dilations = ((b.args["sh"], b.args["sw"]), (b.args["dh"], b.args["dw"])) if "scheme" in b.args else (
        (1, 1), (1, 1))
    cells = _cells(b)
    runs = tuple((i * dilations[1] * depth * item(quad), steps(cells * depth, quad)) for i in range(kw // cells))
    out = w.place(b.outputs[0])
    if "scheme" not in b.args:
        x, out = as_row(x), rows_of(out, units)
        infos = replace(infos, shape=(1, 1, infos.shape[0], 1), strides=(0, 0, INFO, 0))
    elif kh == kw == 1 and strides == (1, 1):
        x, out = _one_row(x), _one_row(out)
    bias = 0.0 if b.args["b"] is None else b.args["b"].data
    images, rows, width, _ = out.shape
    tile = tile_of(units, width, short, lanes) if quad and not w.machine.vnni else best(
        units, sum(n for _, n in runs), kh, images * rows, width, lanes, w.machine.registers,
        fit_of_bytes(w.machine, 4 if quad else 2))
    weights = packed(filters.reshape(units, -1).T, cells * depth, quad, tile.vectors, lanes, narrow)
    product = Hybrid(x, infos, out, kh, runs, dilations[0] * x.strides[1], strides, w.pack(weights),
                     w.pack(blocks(filters.sum((1, 2, 3)), scales(b.args["w"], units), bias, lanes)), tile,
                     quad, narrow, short, "scheme" in b.args and b.args["w"].type == QPC, b.args["b"] is not None,
                     b.args["act"])
    return Phases((gridded, product))


def _one_row(p: Place) -> Place:
    """The pixels of each image as one row."""
    n, height, width, depth = p.shape
    return Place(p.base, p.offset, (n, 1, height * width, depth), (p.strides[0], p.strides[0], *p.strides[2:]), p.item)


def _make_depthwise(w: Workshop, group: Group) -> Phases:
    """Steps from 0 as floats, whose products are exact in any order."""
    b, out = group.head, w.place(group.outputs[0])
    filters, gridded = filters_of(b), gridded_of(w, b, _images(b), _border(b), ITEM, WIDE)
    _, kh, kw, channels = filters.shape
    border, strides = gridded.out.border, (b.args["sh"], b.args["sw"])
    weights = by_channels(filters.reshape(kh * kw, channels), np.zeros(channels), w.machine.lanes)
    vectors = [scales(b.args["w"], channels), *([] if b.args["b"] is None else [b.args["b"].data])]
    extras = (gridded.infos, *(Place("%weights", w.pack(v), (1, 1, 1, channels), (0, 0, 0, ITEM), ITEM)
                               for v in vectors))
    act = b.args["act"]
    chain: tuple[Part, ...] = (Part("MUL", (1, 2)), Part("MUL", (0, -1), 0 if len(vectors) > 1 else act))
    chain += (Part("ADD", (-2, 3), act),) if len(vectors) > 1 else ()
    patch = patch_of((kh, kw), strides, out.shape[1], out.shape[2], w.machine)
    return Phases((gridded, Depthwise(
        gridded.out.shifted(border.top, border.left), out, (kh, kw), strides, (b.args["dh"], b.args["dw"]), patch,
        w.pack(weights), 0, chain, extras)))


PRODUCT = Family(_taken, _make, scratch=lambda g, m: _scratch(g.head, item(_bytes(g.head, m)[0])))


NATIVE = (
    native(PRODUCT, h.HYBRID_FULLY_CONNECTED, h.HYBRID_CONV_2D),
    native(Family(_taken_depthwise, _make_depthwise, scratch=lambda g, _: _scratch(g.head, ITEM)),
           h.HYBRID_DEPTHWISE_CONV_2D),
)
