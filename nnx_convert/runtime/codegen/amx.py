"""Convolutions of bytes and products by constant matrices with AMX, whose registers are tiles of 16 rows of 64 bytes.

A block is two tiles of pixels by up to four vectors of channels, two at a time. Pixels are read where they lie, a row
of a tile each. Sums are stored to the stack, and `epilogue` makes results of them, as it does without tiles.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...types import Array
from .epilogue import Epilogue
from .ir import SHARED, Function, Module, Operand, vector
from .places import Place
from .requantise import Range, block
from .sums import Addition
from .tasks import ALIGN

#: The rows of a tile and their bytes; the vectors of channels and the tiles of pixels that are multiplied at once.
ROWS, WIDTH, WIDE, HIGH = 16, 64, 2, 2
#: The bytes of the depth that one element of a tile of weights holds, and the elements in its rows.
DEEP, LANES = 4, 16
#: Tiles of sums come first, then those of pixels, then those of weights.
PIXELS, WEIGHTS = 4, 6
#: Fewer pixels in a tile are not worth it.
FEW = 7


@frozen
class Depth:
    """How the depth is cut: `taps` rows, `row` bytes apart, of `runs` (offsets), each of `steps` by `size` bytes."""

    taps: int
    row: int
    runs: tuple[int, ...]
    steps: int
    size: int

    @classmethod
    def of(cls, taps: int, row: int, runs: tuple[tuple[int, int], ...]) -> Depth:
        """Runs of one length as few and even steps."""
        length = runs[0][1]
        least = -(-length // WIDTH)
        even = (n for n in range(least, 2 * least + 1) if length % (n * DEEP) == 0)
        steps = next(even, least)
        size = -(-length // (steps * DEEP)) * DEEP
        return cls(taps, row if taps > 1 else 0, tuple(offset for offset, _ in runs), steps, size)

    def whole(self, length: int) -> bool:
        """Whether one tile of weights can be that of every step of runs so long."""
        return self.steps == 1 or self.steps * self.size == length

    @property
    def tiles(self) -> int:
        """The tiles of one pixel's depth."""
        return self.taps * len(self.runs) * self.steps


@frozen
class Tiles:
    """A function `(A0, A1, B, blocks, S, ones, pixel)`: the sums of two tiles of pixels, `pixel` bytes apart.

    Sums begin with those of `blocks`, each vector's `start` bytes apart. With `shared`, the pixels' bytes are
    multiplied by the tile at `ones`, too: one more vector.
    """

    depth: Depth
    vectors: int
    height: int
    start: int
    signed: bool
    shared: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("tiles", self), lambda name: self._build(m, name))

    @property
    def each(self) -> int:
        """The bytes of one pixel's sums."""
        return 4 * LANES * (self.vectors + self.shared)

    def _build(self, m: Module, name: str) -> None:
        pointers = ("%A0", "%A1", "%B", "%blocks", "%S", "%ones")
        f = Function(m, name, (*(("ptr", p) for p in pointers), ("i64", "%pixel")))
        declared(m)
        b = "%B"
        if self.depth.tiles == 1:
            self._pixels(f, ["%A0", "%A1"])
        for first in range(0, self.vectors, WIDE):
            count = min(WIDE, self.vectors - first)
            for n in range(HIGH * count):
                load(f, n, f.at("%blocks", (first + n % count) * self.start), 0)
            b = self._summed(f, b, count)
            self._store(f, first, count)
        if self.shared:
            for n in range(HIGH):
                f.do(f"call void @llvm.x86.tilezero(i8 {n})")
            load(f, WEIGHTS, "%ones", WIDTH)
            self._summed(f, "", 1)
            self._store(f, self.vectors, 1)
        f.finish()

    def _store(self, f: Function, first: int, count: int) -> None:
        for n in range(HIGH * count):
            to = f.at("%S", n // count * self.height * self.each + 4 * LANES * (first + n % count))
            f.do(f"call void @llvm.x86.tilestored64(i8 {n}, ptr {to}, i64 {self.each})")

    def _summed(self, f: Function, b: str, count: int) -> str:
        """The products of so many vectors of channels, from b on; with none, of the tile that is there."""
        depth = self.depth

        def tap(_: str, now: list[str]) -> list[str]:
            pixels = now[:HIGH]

            def run(offset: Operand, at: list[str]) -> list[str]:
                carried = [("ptr", p) for p in (*(f.at(a, offset) for a in pixels), *at)]
                return [f.loop(0, depth.steps, 1, carried, lambda _, p: self._step(f, p, count, bool(b)))[HIGH]]
            return [*(f.at(a, depth.row) for a in pixels), *f.over(depth.runs, [("ptr", now[HIGH])], run)]
        return f.loop(0, depth.taps, 1, [("ptr", "%A0"), ("ptr", "%A1"), ("ptr", b or "%ones")], tap)[HIGH]

    def _step(self, f: Function, now: list[str], count: int, read: bool) -> list[str]:
        size = self.depth.size
        for j in range(count if read else 0):
            load(f, WEIGHTS + j, f.at(now[HIGH], j * size * LANES), WIDTH)
        if self.depth.tiles > 1:
            self._pixels(f, now)
        for i in range(HIGH):
            for j in range(count):
                f.do(f"call void @llvm.x86.tdpb{'s' if self.signed else 'u'}sd(i8 {i * count + j}, i8 {PIXELS + i}, "
                     f"i8 {WEIGHTS + j})")
        return [*(f.at(a, size) for a in now[:HIGH]), f.at(now[HIGH], count * size * LANES) if read else now[HIGH]]

    def _pixels(self, f: Function, at: list[str]) -> None:
        """The tiles of pixels."""
        for i in range(HIGH):
            load(f, PIXELS + i, at[i], "%pixel")


def load(f: Function, tile: int, pointer: str, stride: int | str) -> None:
    """A tile from memory, its rows so far apart."""
    f.do(f"call void @llvm.x86.tileloadd64(i8 {tile}, ptr {pointer}, i64 {stride})")


def declared(m: Module) -> None:
    """What tiles are done with."""
    for name, args in (("ldtilecfg", "ptr"), ("tilerelease", ""), ("tilezero", "i8 immarg"),
                       ("tileloadd64", "i8 immarg, ptr, i64"), ("tilestored64", "i8 immarg, ptr, i64"),
                       *((f"tdpb{s}sd", "i8 immarg, i8 immarg, i8 immarg") for s in "su")):
        m.declare(f"declare void @llvm.x86.{name}({args})")


@frozen
class Tiled:
    """A convolution, or a product where the image is one row of pixels: see `bytes.Bytes`.

    Rows of `x` are cut into tiles of `height` pixels; the last one begins earlier where they do not divide. `config`,
    `weights`, `blocks` and `ones` are offsets in the weights. If `flat`, all of the image that is read is one row.
    """

    x: Place
    out: Place
    depth: Depth
    strides: tuple[int, int]
    height: int
    flat: bool
    vectors: int
    config: int
    weights: int
    blocks: int
    ones: int | None
    signed: bool
    formula: str
    range: Range
    added: Addition | None = None
    extras: tuple[Place, ...] = ()

    @property
    def row(self) -> int:
        """The pixels that tiles are cut from."""
        return math.prod(self.out.shape[:3]) if self.flat else self.out.shape[2]

    @property
    def tiles(self) -> int:
        """How many tiles of pixels there are."""
        return -(-self.row // self.height) * (1 if self.flat else math.prod(self.out.shape[:2]))

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("tiled", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        declared(m)
        each = self.vectors + (self.ones is not None)
        room = f.let(f"alloca [{HIGH * self.height * each} x {vector(LANES, 'i32')}], align {ALIGN}")
        blocks, panels = -(-self.tiles // HIGH), -(-self.out.shape[3] // (LANES * self.vectors))
        by_pixels = math.prod(self.out.shape[:3]) >= self.out.shape[3]
        inner = panels if by_pixels else blocks
        f.do(f"call void @llvm.x86.ldtilecfg(ptr {f.at('%weights', self.config)})")

        def step(i: str, _: list[str]) -> None:
            high, low = f.div(i, inner), f.rem(i, inner)
            self._block(f, *((high, low) if by_pixels else (low, high)), room)
        f.loop(*f.share(blocks * panels), 1, [], step)
        f.do("call void @llvm.x86.tilerelease()")
        f.finish()

    def _block(self, f: Function, number: str, panel: str, room: str) -> None:
        """One block of pixels and one panel of channels."""
        first = f.least(f.mul(number, HIGH), self.tiles - HIGH)
        spots = [self._spot(f, first), self._spot(f, f.add(first, 1))]
        wide = LANES * self.vectors
        b = f.at("%weights", f.add(self.weights, f.mul(panel, wide * self.depth.tiles * self.depth.size)))
        blocks = f.at("%weights", f.add(self.blocks, f.mul(panel, wide * block(self.formula))))
        written = [[f.at(p, f.mul(panel, wide)) for p in spot[1:-1]] for spot in spots]

        def sized(vectors: int, tail: int) -> None:
            tiles = Tiles(self.depth, vectors, self.height, block(self.formula) * LANES, self.signed,
                          self.ones is not None)
            ones = f.at("%weights", self.ones) if self.ones is not None else b
            f.do(f"call void @{tiles.emit(f.module)}(ptr {spots[0][0]}, ptr {spots[1][0]}, ptr {b}, ptr {blocks}, "
                 f"ptr {room}, ptr {ones}, i64 {self.x.strides[2] * self.strides[1]})")
            name = self._epilogue(vectors, tail).emit(f.module)
            for n, spot in enumerate(spots):
                s = f.at(room, n * self.height * tiles.each)
                f.do(f"call void @{name}(ptr {s}, ptr {written[n][0]}, ptr {blocks}, i64 {self.height}, "
                     f"ptr {written[n][-1]}, i64 {spot[-1]})")
        self._fitted(f, panel, sized)

    def _fitted(self, f: Function, panel: str, sized: Callable[[int, int], None]) -> None:
        """`sized` with the vectors of a panel, and the lanes of its last one."""
        last, tail = -(-self.out.shape[3] // (LANES * self.vectors)) - 1, self.out.shape[3] % LANES
        rest = -(-self.out.shape[3] // LANES) - last * self.vectors
        if last == 0 or rest == self.vectors and not tail:
            sized(rest, tail)
        else:
            f.when(f.let(f"icmp eq i64 {panel}, {last}"), lambda: sized(rest, tail), lambda: sized(self.vectors, 0))

    def _epilogue(self, vectors: int, tail: int) -> Epilogue:
        """What becomes of a tile's sums."""
        out, width = self.out, self.out.shape[2]
        gaps = tuple(p.strides[1] - width * p.strides[2] for p in (out, *(self.extras or (out,))))
        turning = self.flat and not all(p.even for p in (out, *self.extras))
        shared, size = self.ones is not None, 4 * LANES
        return Epilogue(vectors, tail, self.formula, self.range, size * (vectors + shared), out.strides[2], self.added,
                        self.extras[0].strides[2] if self.extras else 0, size * vectors if shared else 0,
                        *((width, gaps) if turning else ()))

    def _spot(self, f: Function, tile: str) -> list[str]:
        """Where a tile begins: in `x`, in `out`, in the extras, and in its row of results."""
        parts, (_, rows, width, _) = -(-self.row // self.height), self.out.shape
        line, part = f.div(tile, parts), f.rem(tile, parts)
        at = f.least(f.mul(part, self.height), self.row - self.height)
        if self.flat:
            read = f.at(self.x.base, f.add(self.x.offset, f.mul(at, self.x.strides[2])))
            line, at = f.div(at, width), f.rem(at, width)
        image, y = f.div(line, rows), f.rem(line, rows)
        if not self.flat:
            read = _cell(f, self.x, image, f.mul(y, self.strides[0]), f.mul(at, self.strides[1]))
        return [read, *(_cell(f, p, image, y, at) for p in (self.out, *self.extras)), at]


def _cell(f: Function, p: Place, image: str, y: str, x: str) -> str:
    """The address of a pixel."""
    row = f.add(f.mul(image, p.strides[0]), f.mul(y, p.strides[1]))
    return f.at(p.base, f.add(p.offset, f.add(row, f.mul(x, p.strides[2]))))


def height_of(row: int, rows: int) -> int:
    """The pixels of a tile, for so many rows of `row` pixels; 0 where tiles are not worth it."""
    height = -(-row // -(-row // ROWS))
    if rows == 1:                                # as few tiles, all but the last of them full
        height = ROWS if row >= HIGH * ROWS else -(-row // HIGH)
    return height if height >= FEW and -(-row // height) * rows >= HIGH else 0


def config(height: int, size: int) -> Array:
    """What tiles are, for `ldtilecfg`: of sums and pixels, of so many pixels; pixels and weights, so deep."""
    found = np.zeros(ALIGN, np.uint8)
    found[0] = 1
    widths, heights = found[16:48].view(np.uint16), found[48:]
    widths[:8], heights[:8] = 4 * LANES, height
    widths[PIXELS:WEIGHTS], heights[WEIGHTS:8] = size, size // DEEP
    return found


def repeated(weight: int, depth: Depth, length: int) -> Array:
    """A tile of one weight, for every step of runs so long."""
    deep = np.arange(depth.size).reshape(-1, 1, DEEP) < length
    return np.broadcast_to(np.where(deep, weight, 0), (depth.size // DEEP, LANES, DEEP)).astype(np.int8)


def packed(w: Array, depth: Depth, vectors: int) -> Array:
    """Weights [taps, depth, channels], whole vectors of channels, as tiles in the order in which they are read."""
    taps, _, channels = w.shape
    runs = len(depth.runs)
    deep = np.zeros((taps, runs, depth.steps * depth.size, channels), np.int8)
    deep[:, :, :w.shape[1] // runs] = w.reshape(taps, runs, -1, channels)
    tiles = deep.reshape(depth.tiles, depth.size // DEEP, DEEP, channels // LANES, LANES).transpose(3, 0, 1, 4, 2)
    parts, there = [], channels // LANES
    for panel in range(0, there, vectors):
        for at in range(panel, min(panel + vectors, there), WIDE):
            parts.append(tiles[at:min(at + WIDE, panel + vectors, there)].swapaxes(0, 1).reshape(-1))
    return np.concatenate(parts).view(np.uint8)
