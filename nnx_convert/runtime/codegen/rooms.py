"""What tiles of pixels read of bytes, widened to 16 bits once for all channels: where bytes are multiplied two at once.

A block of tiles is brought into a room of its own, then multiplied by one panel of weights after the other; so the
innermost loop reads activations as products take them. Neighbours whose filters overlap share what they read.
"""
from __future__ import annotations


from ...frozen import frozen
from .integers import widened
from .ir import Function, Module, Operand, vector
from .wholes import STEP, Walk

#: Bytes of an element in a room.
ITEM = 2
#: Bytes of a block's room: little of a first cache, so that threads have equal shares; and where there are `HEAVY`
#: bytes of weights, more than a second cache keeps beside it, so that few blocks read them.
NEAR, FAR, HEAVY = 4 << 10, 96 << 10, 256 << 10
#: Elements of a pixel up to which its room lies on a thread's stack, whatever is there beside it.
DEEPEST = 1 << 18
#: Bytes beyond a room that may be written and read: those of a vector.
BEYOND = 64
#: Vectors of a run up to which its code has no loop.
UNROLLED = 8


@frozen
class Room:
    """How pixels lie in a room: their `taps` rows, `row` bytes apart in memory, each of `runs` of bytes (offset, how
    many). Pixels are `step` bytes apart in memory."""

    step: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    signed: bool

    @property
    def shared(self) -> bool:
        """Whether a row of the filter is one stretch of memory for all pixels; else each pixel has its own copy."""
        return len(self.runs) == 1 and self.step <= self.runs[0][1]

    @property
    def depth(self) -> int:
        """Elements that one pixel's copy has: of each run an even number."""
        return self.taps * sum(length + length % 2 for _, length in self.runs)

    def stretch(self, pixels: int) -> int:
        """Elements of the stretch of so many pixels, an even number."""
        length = (pixels - 1) * self.step + self.runs[0][1]
        return length + length % 2

    def size(self, pixels: int) -> int:
        """The bytes of so many pixels."""
        return ITEM * (self.taps * self.stretch(pixels) if self.shared else pixels * self.depth)

    def walk(self, pixels: int, vectors: int, narrow: bool) -> Walk:
        """How a micro-kernel goes through so many pixels in a room, and weights that may be `narrow`."""
        if self.shared:
            steps, row = (self.runs[0][1] + 1) // 2, ITEM * self.stretch(pixels)
            each, taps = ITEM * self.step, self.taps
        else:
            steps, row, each, taps = self.depth // 2, 0, ITEM * self.depth, 1
        return Walk(tuple(i * each for i in range(pixels)), vectors, taps, row if taps > 1 else 0, ((0, steps),), False,
                    narrow)

    def emit(self, m: Module, pixels: int) -> str:
        """The function `(A, R)` that brings so many pixels, the first one at A, into the room R."""
        return m.once(("room", self, pixels), lambda name: self._build(m, name, pixels))

    def _build(self, m: Module, name: str, pixels: int) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias", "%R")))

        def tap(_: str, now: list[str]) -> list[str]:
            a, r = now
            if self.shared:
                length = self.stretch(pixels)
                self._widened(f, f.at(a, self.runs[0][0]), r, length)
                return [f.at(a, self.row), f.at(r, ITEM * length)]
            length = self.runs[0][1]

            def run(at: Operand, now: list[str]) -> list[str]:
                self._widened(f, f.at(a, at), now[0], length)
                return [f.at(now[0], ITEM * (length + length % 2))]
            return [f.at(a, self.row), *f.over([at for at, _ in self.runs], [("ptr", r)], run)]

        def pixel(_: str, now: list[str]) -> list[str]:
            end = f.loop(0, self.taps, 1, [("ptr", now[0]), ("ptr", now[1])], tap)
            return [f.at(now[0], self.step), end[1]]
        f.loop(0, 1 if self.shared else pixels, 1, [("ptr", "%A"), ("ptr", "%R")], pixel)
        f.finish()

    def _widened(self, f: Function, a: str, r: str, length: int) -> None:
        """A stretch of bytes from a widened at r; up to a vector more is read and written."""
        lanes = 2 * f.machine.lanes

        def step(a: str, r: str, n: int) -> None:
            x = f.load(vector(lanes, "i8"), a, n * lanes, 1)
            f.store(vector(lanes, "i16"), widened(f, lanes, x, self.signed, "i16"), r, ITEM * n * lanes, ITEM)

        def turn(_: str, now: list[str]) -> list[str]:
            for n in range(UNROLLED):
                step(now[0], now[1], n)
            return [f.at(now[0], UNROLLED * lanes), f.at(now[1], ITEM * UNROLLED * lanes)]
        turns, rest = divmod(-(-length // lanes), UNROLLED)
        if turns:
            a, r = f.loop(0, turns, 1, [("ptr", a), ("ptr", r)], turn)
        for n in range(rest):
            step(a, r, n)


def fits(depth: int) -> int:
    """The pixels of so many elements each in a room as large as several may have; one is always there."""
    return max(1, FAR // (ITEM * depth))


def held(tiles: int, size: int, weights: int) -> int:
    """How many of so many tiles, each of a size, are in a room at a time, where there are so many bytes of weights."""
    return min(tiles, max(1, (NEAR if weights < HEAVY else FAR) // size))


@frozen
class Pairs:
    """A micro-kernel `(A, B, blocks, S)`: sums of a room's pixels at A by weights at B go to S, pixel after pixel.

    Sums begin with those of `blocks`, each vector's `start` bytes apart.
    """

    walk: Walk
    start: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("pairs", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"),
                               ("ptr noalias readonly", "%blocks"), ("ptr noalias", "%S")))
        kind, size = vector(m.machine.lanes, "i32"), STEP * m.machine.lanes
        start = [f.load(kind, "%blocks", j * self.start) for j in range(self.walk.vectors)] * len(self.walk.a)
        for n, total in enumerate(self.walk.sums(f, "%A", "%B", start)):
            f.store(kind, total, "%S", n * size, size)
        f.finish()
