"""How a product is cut: pixels by vectors of output channels that one micro-kernel keeps in registers.

The costs are those of a measured model (cycles of one core): per step of the depth the larger of multiplications,
loads and latency, and something for the begin and the end of each tile.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from ...frozen import frozen
from ...types import Shape
from .ir import Function
from .machine import Machine
from .places import ITEM, Place

#: Pixels that fit beside so many vectors of channels, where there are 32 registers, and where there are 16.
FIT = {32: {1: 24, 2: 14, 3: 9, 4: 6}, 16: {1: 10, 2: 6, 3: 3}}
#: Accumulators up to which two steps of the depth fit into one turn, by registers; beyond, loads are hoisted and spill.
UNROLLED = {32: 26, 16: 6}
#: The same where no instruction reads an operand from memory: elements of pixels take registers, too.
UNROLLED_BY_LOADS = 20
#: The same for floats where 16 registers are of a machine whose products are fused: that takes none beside the sums.
FUSED = {1: 10, 2: 6, 3: 4}
#: The same for floats where no instruction of arithmetic reads an operand from memory.
FLOATS_BY_LOADS = {1: 24, 2: 13, 3: 8, 4: 6}
#: Pixels that fit where bytes are multiplied, so many at once, and no instruction of that reads an operand from memory.
BY_LOADS = {4: {1: 21, 2: 11, 3: 7, 4: 5}, 2: {1: 11, 2: 5, 3: 3, 4: 2}}
#: Bytes of the first and the second cache that a panel of weights may take.
NEAR, FAR = 32_000, 640_000


@frozen
class Spot:
    """Where a tile lies, in code: its image, row and first pixel, which part of the row it is, its panel, and its
    number among the panel's tiles."""

    image: str
    y: str
    x: str
    part: str
    panel: str
    tile: str

    def at(self, f: Function, p: Place, strides: tuple[int, int], panel: int) -> str:
        """The first pixel's address in an image read in such strides, of which a panel is so many bytes."""
        row, cell = f.mul(self.y, p.strides[1] * strides[0]), f.mul(self.x, p.strides[2] * strides[1])
        at = f.add(f.mul(self.image, p.strides[0]), f.add(row, cell))
        return f.at(p.base, f.add(p.offset, f.add(at, f.mul(self.panel, panel))))


@frozen
class Tile:
    """`pixels` of a row by `vectors` of channels; rows are cut into `parts`, the first `longer` of which have one
    pixel more than the others."""

    pixels: int
    vectors: int
    parts: int
    longer: int

    @property
    def most(self) -> int:
        """The pixels of the longest part."""
        return self.sizes[0][0]

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The sizes of parts that there are, each with how many."""
        found = ((self.pixels + 1, self.longer), (self.pixels, self.parts - self.longer))
        return tuple((size, n) for size, n in found if n)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first pixel of each part."""
        return tuple(part * self.pixels + min(part, self.longer) for part in range(self.parts))

    def first(self, f: Function, part: str) -> str:
        """The first pixel of a part."""
        return f.add(f.mul(part, self.pixels), f.least(part, self.longer) if self.longer else 0)

    def sized(self, f: Function, part: str, call: Callable[[int], None]) -> None:
        """`call` with the size of a part."""
        sizes = [size for size, _ in self.sizes]
        if len(sizes) == 1:
            call(sizes[0])
        else:
            f.when(f.let(f"icmp slt i64 {part}, {self.longer}"), lambda: call(sizes[0]), lambda: call(sizes[1]))

    def panels(self, channels: int, lanes: int) -> int:
        """How many panels channels are cut into."""
        return -(-channels // (lanes * self.vectors))

    def walk(self, f: Function, shape: Shape, body: Callable[[Spot], None]) -> None:
        """`body` for this thread's tiles of images. The larger of pixels and channels is the outer loop: what belongs
        to it is read once."""
        n, rows, _, channels = shape
        panels, tiles = self.panels(channels, f.machine.lanes), n * rows * self.parts
        by_pixels = pixels_first(shape)
        inner = panels if by_pixels else tiles
        first, last = f.share(tiles * panels)

        def step(i: str, _: list[str]) -> None:
            high, low = f.div(i, inner), f.rem(i, inner)
            body(self.spot(f, rows, *((high, low) if by_pixels else (low, high))))
        f.loop(first, last, 1, [], step)

    def spot(self, f: Function, rows: int, tile: str, panel: str) -> Spot:
        """Where the tile of a number lies among those of images of so many rows."""
        line, part = f.div(tile, self.parts), f.rem(tile, self.parts)
        image, y = f.div(line, rows), f.rem(line, rows)
        return Spot(image, y, self.first(f, part), part, panel, tile)

    def blocks(self, f: Function, shape: Shape, size: int, body: Callable[[str, str, str], None]) -> None:
        """`body(panel, first, last)` for this thread's tiles of images: blocks of `size` tiles, of which each panel is
        read for all before the next one."""
        n, rows, _, channels = shape
        panels, tiles = self.panels(channels, f.machine.lanes), n * rows * self.parts
        size = min(size, tiles)
        first, last = f.share(tiles * panels)

        def there(block: str) -> str:
            """The tiles of a block."""
            return str(size) if tiles % size == 0 else f.least(size, f.let(f"sub i64 {tiles}, {f.mul(block, size)}"))

        def number(i: str) -> str:
            """The stretch of tiles that share a panel in which one is."""
            block = f.div(i, size * panels)
            return f.add(f.mul(block, panels), f.let(f"udiv i64 {f.rem(i, size * panels)}, {there(block)}"))

        def stretch(s: str, _: list[str]) -> None:
            block, panel = f.div(s, panels), f.rem(s, panels)
            count = there(block)
            begin = f.add(f.mul(block, size * panels), f.mul(panel, count))
            low, high = (f.let(f"sub i64 {i}, {begin}") for i in (first, last))
            low = f.select(f.let(f"icmp sgt i64 {low}, 0"), "i64", low, "0")
            own = f.mul(block, size)
            body(panel, f.add(own, low), f.add(own, f.least(count, high)))

        def all_() -> None:
            f.loop(number(first), f.add(number(f.add(last, -1)), 1), 1, [], stretch)
        f.when(f.let(f"icmp slt i64 {first}, {last}"), all_)

    def fitted(self, f: Function, channels: int, spot: Spot, call: Callable[[int, int, int], None]) -> None:
        """`call(pixels, vectors, tail)` with a tile's size there; `tail` lanes of the last vector count (0: all)."""
        lanes, last = f.machine.lanes, self.panels(channels, f.machine.lanes) - 1
        rest, tail = -(-channels // lanes) - last * self.vectors, channels % lanes

        def sized(vectors: int, tail: int) -> None:
            self.sized(f, spot.part, lambda pixels: call(pixels, vectors, tail))
        if last == 0 or rest == self.vectors and not tail:
            sized(rest, tail)
        else:
            f.when(f.let(f"icmp eq i64 {spot.panel}, {last}"), lambda: sized(rest, tail),
                   lambda: sized(self.vectors, 0))


def pixels_first(shape: Shape) -> bool:
    """Whether pixels [n, rows, width, channels] are the outer loop, so that all panels are read for each tile."""
    n, rows, width, channels = shape
    return n * rows * width >= channels


def cut(width: int, most: int, vectors: int) -> Tile:
    """Rows of a width cut into parts of nearly equal size, at most `most`."""
    parts = -(-width // most)
    return Tile(width // parts, vectors, parts, width % parts)


@lru_cache(maxsize=4096)
def unrolled(machine: Machine) -> int:
    """Accumulators up to which two steps of the depth fit into one turn."""
    return UNROLLED[machine.registers] if machine.x86 else UNROLLED_BY_LOADS


def fit(machine: Machine) -> dict[int, int]:
    """Pixels that fit beside so many vectors of channels where floats are multiplied."""
    if not machine.x86:
        return FLOATS_BY_LOADS
    return FUSED if machine.registers == 16 and machine.fused else FIT[machine.registers]


def lasting(machine: Machine) -> int:
    """Registers for what is used more than once: half of them where no instruction reads an operand from memory."""
    return machine.registers // (1 if machine.x86 else 2)


def scarce(machine: Machine) -> bool:
    """Whether LLVM, which reads early and sums products first, runs out of registers where all operands meet."""
    return lasting(machine) <= 16


def fit_of_bytes(machine: Machine, together: int) -> dict[int, int]:
    """The same where so many bytes are multiplied at once; two are so as integers of 16 bits."""
    return FIT[machine.registers] if machine.x86 else BY_LOADS[together]


def best(channels: int, depth: int, taps: int, rows: int, width: int, lanes: int, registers: int,
         most: dict[int, int] | None = None) -> Tile:
    """The tile for `rows` of `width` pixels and so many output channels; `depth` is that of one of `taps` rows. `most`
    are the pixels beside so many vectors, where they are other than `FIT`."""
    return min(_candidates(channels, width, lanes, most or FIT[registers]),
               key=lambda t: (cost(t, channels, depth, taps, rows, width, lanes), -t.pixels))


def _candidates(channels: int, width: int, lanes: int, fitting: dict[int, int]) -> Iterator[Tile]:
    there = -(-channels // lanes)
    for vectors, most in fitting.items():
        if vectors <= there:
            for pixels in range(max(1, most // 2), most + 1):
                yield cut(width, pixels, vectors)


def cost(t: Tile, channels: int, depth: int, taps: int, rows: int, width: int, lanes: int) -> float:
    """The cycles of a tile's walk over `rows` of `width` pixels: see `best`."""
    full, rest = divmod(-(-channels // lanes), t.vectors)
    total, whole = 0.0, depth * taps
    for vectors, panels in ((t.vectors, full), (rest, 1)):
        if not vectors or not panels:
            continue
        size = whole * vectors * lanes * ITEM
        tiles = 0
        for pixels, count in t.sizes:
            step = max(pixels * vectors / 2, (pixels + vectors) / 2 * 1.03, 4.0)
            step *= 1.02 if pixels * vectors <= UNROLLED[32] else 1.04
            step += 0.3 * vectors if size > NEAR else 0
            tiles += count * rows
            total += panels * count * rows * (whole * step + 14 + 5 * taps + 1.7 * pixels * vectors)
        if rows * width < channels:
            total += panels * tiles * max(0, size - FAR) / 24
    return total
