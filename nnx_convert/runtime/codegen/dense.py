"""Convolutions of floats and products by constant matrices: tiles of the micro-kernel of products."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import F32, Array, Shape, Tensor
from ..bind import Bound
from .elements import Part, chained, follows, matched
from .ir import SHARED, Function, Module
from .machine import Machine
from .micro import Micro, fetching
from .places import ITEM, Border, Place
from .tasks import Family, Group, Task, Workshop, native
from .tiles import Spot, Tile, best, cost, fit, pixels_first

#: Parts of an image up to which each may have a micro-kernel of its own, by registers, as tiles are smaller where there
#: are few; and what their cost may be of the others'.
FOLDS, WORTH = {32: 6, 16: 10}, 0.98
#: Where there are few registers, caches are small, too: bytes of weights that are read again for every tile, of a part
#: of an image that stays in the second cache, of a panel that is read again for every tile, and of a piece of another.
READ, STAYING, WHOLE, CUT = 640_000, 400_000, 32_768, 16_384


@frozen
class Piece:
    """A piece of the depth, in code: its number, whether it is the first one, and here whether it is the last."""

    number: str
    first: str
    last: bool


@frozen
class Dense:
    """A convolution, or a product where the image is one row of pixels.

    `x` begins at the first tap of the first output; `weights` and `bias` are offsets in the weights. A `folded` one has
    few pixels, so that tiles go on from row to row: each part of an image has a micro-kernel of its own. With a
    `block` of tiles, each panel is read for all of them before the next one; where there are `pieces` of a row of taps,
    each is done for all tiles, too, before the next one. With `coming`, each tile fetches what the next one reads.
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
    block: int = 0
    pieces: int = 0
    coming: bool = False

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
                     tuple((offsets(e), e.strides[3]) for e in self.extras), coming=self.coming and pixels > 1)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("dense", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        if self.block:
            self.tile.blocks(f, self.shape, self.block, lambda *found: self._stretch(f, *found))
        else:
            self.tile.walk(f, self.shape, lambda spot: self._tile(f, spot))
        f.finish()

    def _stretch(self, f: Function, panel: str, first: str, last: str) -> None:
        """Neighbouring tiles of one panel, piece of the depth by piece."""
        rows, count = self.shape[1], self.taps * self.pieces

        def tiles(piece: Piece | None) -> None:
            f.loop(first, last, 1, [], lambda tile, _: self._tile(f, self.tile.spot(f, rows, tile, panel), piece))
        if count > 1:
            f.loop(0, count - 1, 1, [], lambda number, _: tiles(
                Piece(number, f.let(f"icmp eq i64 {number}, 0"), False)))
            tiles(Piece(str(count - 1), "false", True))
        else:
            tiles(None)

    def _tile(self, f: Function, spot: Spot, piece: Piece | None = None) -> None:
        """One tile of one panel of channels, or a piece of its depth."""
        size, panel = f.machine.lanes * ITEM * self.tile.vectors, spot.panel
        at = replace(spot, x="0") if self.folded else spot
        weights = f.at("%weights", f.add(self.weights, f.mul(panel, size * self.depth)))
        pointers = [at.at(f, self.x, self.strides, 0), at.at(f, self.out, (1, 1), size),
                    f.at("%weights", f.add(self.bias, f.mul(panel, size))),
                    *(at.at(f, e, (1, 1), size if e.strides[3] else 0) for e in self.extras)]
        if piece:
            pointers[0] = f.at(pointers[0], self._begins(f, piece))
            pointers[2] = f.select(piece.first, "ptr", pointers[2], pointers[1])

        def call(pixels: int, vectors: int, tail: int) -> None:
            def of(first: int) -> None:
                self._call(f, self.micro(pixels, vectors, tail, first), spot.tile, piece,
                           [pointers[0], weights, *pointers[1:]])
            if not self.folded:
                of(0)
                return
            for part, first in enumerate(self.tile.starts):
                if pixels == self.tile.sizes[part >= self.tile.longer > 0][0]:
                    f.when(f.let(f"icmp eq i64 {spot.part}, {part}"), lambda first=first: of(first))  # type: ignore[misc]
        self.tile.fitted(f, self.shape[3], spot, call)

    def _begins(self, f: Function, piece: Piece) -> str:
        """How far into the image a piece of the depth begins."""
        tap, part = f.div(piece.number, self.pieces), f.rem(piece.number, self.pieces)
        return f.add(f.mul(tap, self.row), f.mul(part, self.runs[0][1] // self.pieces * ITEM))

    def _call(self, f: Function, micro: Micro, tile: str, piece: Piece | None, pointers: Sequence[str]) -> None:
        """Call a micro-kernel of the whole depth, or what it is for a piece."""
        n, rows, _, _ = self.shape
        tiles = self.block or (0 if pixels_first(self.shape) else n * rows * self.tile.parts)
        x, weights, *others = pointers
        again = ""
        if piece:
            runs = tuple((at, length // self.pieces) for at, length in self.runs)
            micro = replace(micro, taps=1, row=0, runs=runs, resumed=True)
            if not piece.last:
                micro, others = replace(micro, act=0, chain=(), extras=()), others[:2]
            weights = f.at(weights, f.mul(piece.number, micro.panel(f.machine.lanes)))
            again = ", i64 " + f.select(piece.first, "i64", "0", "1")
        micro, ahead = fetching(f, micro, tile, tiles)
        given = ", ".join(f"ptr {p}" for p in (x, weights, *others))
        f.do(f"call void @{micro.emit(f.module)}({given}{again}{ahead})")


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
    found = Dense(x, out, kh, runs, dilations[0] * x.strides[1], strides,
                  w.pack(*packed(matrix, tile.vectors, lanes)), w.pack(padded(args["b"].data, lanes)), tile,
                  args["act"], chain, extras, folded)
    return near(found, lanes) if w.machine.registers == 16 else found


def near(d: Dense, lanes: int) -> Dense:
    """The same where caches are small: in blocks, panels in pieces, pixels fetched before they are read."""
    (n, rows, _, channels), first = d.shape, pixels_first(d.shape)
    tiles, panel, length = n * rows * d.tile.parts, d.depth * d.tile.vectors * lanes * ITEM, d.runs[0][1]
    single = len(d.runs) == 1
    coming = first and single and not d.folded and d.x.strides[2] * d.strides[1] <= 2 * length * ITEM
    if tiles < 2 or first and d.depth * channels * ITEM <= READ:
        return replace(d, coming=coming)
    block = -(-tiles // min(tiles, -(-d.x.size * ITEM // STAYING)))
    least = -(-panel // d.taps // CUT)
    pieces = next((p for p in range(least, 2 * least) if length % p == 0), 1) if single else 1
    # Each part of a folded image has code of its own, which pieces double: much, where there are taps.
    if panel <= WHOLE or d.taps * pieces == 1 or d.folded and d.taps > 1:
        return replace(d, block=block if first or block < tiles else 0, coming=coming)
    return replace(d, block=block, pieces=pieces)


def tile_of(shape: Shape, depth: int, taps: int, machine: Machine) -> tuple[Tile, bool]:
    """The tile for results [n, rows, width, channels], and whether it goes on from row to row: where panels are read
    again for each row, and there are few. (Single cells that lie in a row are one already.)"""
    n, rows, width, channels = shape
    lanes, registers = machine.lanes, machine.registers
    found = best(channels, depth, taps, n * rows, width, lanes, registers, fit(machine))
    if rows == 1:
        return found, False
    folded = best(channels, depth, taps, n, rows * width, lanes, registers, fit(machine))
    if folded.parts > FOLDS[registers]:
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


NATIVE = (
    native(Family(with_weights, _make, border_of, strided=True, fuses=follows), conv.CONV_2D),
    native(Family(with_weights, _make_product, fuses=follows), conv.FULLY_CONNECTED),
)
