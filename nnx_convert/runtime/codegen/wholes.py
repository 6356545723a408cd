"""Products of bytes that are on grids of their own, or of integers of 16 bits, by bytes: sums as integers of 32 bits.

One step of the depth is 32 bits of each activation, in every lane, times as many of each lane's weights: four
products where bytes are multiplied (activations without a sign by signed weights), else two of 16 bits. One
instruction multiplies bytes, or, with AVX2, several. Where weights are so small that sums of 16 bits hold the products
of a step or some (`tame`), these are less work than products of 16 bits. Otherwise they are more, which is worth it for
a single pixel: as all weights are read for it alone, half the bytes are half the time. Of more pixels only the weights
are bytes then, which are widened as they are read.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...frozen import frozen
from ...types import Array
from .integers import PAIRS, flipped, pairs, quads
from .ir import Function, mangled, number, vector, width
from .machine import Machine
from .tiles import Tile, cut, unrolled
from .turns import pieces

#: The bytes of a step: of an activation, and of one lane's weights.
STEP = 4
#: Steps whose products may be summed in 16 bits.
SHORT = (1, 2, 4)


@frozen
class Walk:
    """How a micro-kernel goes through the depth: for pixels at these offsets, `taps` rows, `row` bytes apart, each of
    `runs` of neighbours (offset in bytes, steps). Of weights, a step's vectors are together; they are bytes where
    `quads`, and where `narrow`: see `of_bytes` and `narrowed`. Of `short` steps products are summed in 16 bits first
    (0: of none, as the machine need not, or cannot)."""

    a: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    quads: bool
    narrow: bool = False
    short: int = 0

    def less(self, machine: Machine) -> int:
        """What all activations that are bytes count less than they are."""
        return 0 if machine.vnni or self.short else 128

    def sums(self, f: Function, a: str, b: str, start: Sequence[str]) -> list[str]:
        """The sums of each pixel's vectors, from those they start with."""
        kind = vector(f.machine.lanes, "i32")

        def tap(_: str, now: list[str]) -> list[str]:
            x, steps = now[0], self.runs[0][1]
            found = f.over([at for at, _ in self.runs], [("ptr", now[1]), *((kind, s) for s in now[2:])],
                           lambda at, now: self._run(f, f.at(x, at), now[0], now[1:], steps))
            return [f.at(x, self.row), *found]
        if self.taps == 1:
            return tap("0", [a, b, *start])[2:]
        return f.loop(0, self.taps, 1, [("ptr", a), ("ptr", b), *((kind, s) for s in start)], tap)[2:]

    def _run(self, f: Function, a: str, b: str, sums: list[str], steps: int) -> list[str]:
        """The products of one run: the next weights, and the sums."""
        if self.short:
            return self._short_run(f, a, b, sums, steps)
        kind, size = vector(f.machine.lanes, "i32"), weighing(self.narrow) * f.machine.lanes * self.vectors
        # Products of 16 bits are two vectors of sums on aarch64: those of two steps would not fit.
        fits = twice(f.machine, self.a, sums) and (self.quads or f.machine.x86)
        turns = 2 if fits and steps % 2 == 0 else 1

        def turn(_: str, now: list[str]) -> list[str]:
            x, w, sums = now[0], now[1], now[2:]
            for u in range(turns):
                sums = self._step(f, x, w, sums, u)
            return [f.at(x, STEP * turns), f.at(w, size * turns), *sums]
        return f.loop(0, steps, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], turn)[1:]

    def _step(self, f: Function, a: str, b: str, sums: list[str], step: int) -> list[str]:
        lanes, found = f.machine.lanes, list(sums)
        whole, add = vector(lanes, "i32"), (quads if f.machine.vnni else signed_quads) if self.quads else pairs
        kind = vector(4 * lanes, "i8") if self.quads else vector(2 * lanes, "i16")
        own, size = vector(2 * lanes, "i8") if self.narrow else kind, lanes * weighing(self.narrow)
        panel = [f.load(own, b, (step * self.vectors + j) * size, 1) for j in range(self.vectors)]
        if self.narrow:
            panel = [f.let(f"sext {own} {w} to {kind}") for w in panel]
        for i, offset in enumerate(self.a):
            x = f.splat(whole, f.load("i32", a, offset + step * STEP, 1))
            x = f.let(f"bitcast {whole} {x} to {kind}")
            for j, w in enumerate(panel):
                n = i * self.vectors + j
                found[n] = add(f, lanes, found[n], x, w)
        return found

    def _short_run(self, f: Function, a: str, b: str, sums: list[str], steps: int) -> list[str]:
        """The same, by `short` steps at once, then the rest."""
        kind, size = vector(f.machine.lanes, "i32"), STEP * f.machine.lanes * self.vectors
        rest, found = steps % self.short, [a, b, *sums]

        def turn(now: list[str], count: int) -> list[str]:
            found = self._short(f, now[0], now[1], now[2:], count)
            return [f.at(now[0], STEP * count), f.at(now[1], size * count), *found]
        if steps > rest:
            begin = [("ptr", a), ("ptr", b), *((kind, s) for s in sums)]
            found = f.loop(0, steps // self.short, 1, begin, lambda _, now: turn(now, self.short))
        return (turn(found, rest) if rest else found)[1:]

    def _short(self, f: Function, a: str, b: str, sums: list[str], count: int) -> list[str]:
        lanes, found = f.machine.lanes, list(sums)
        whole, kind, half = vector(lanes, "i32"), vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
        size = STEP * lanes
        panel = [[f.load(kind, b, (n * self.vectors + j) * size, 1) for n in range(count)] for j in range(self.vectors)]
        for i, offset in enumerate(self.a):
            given = [f.splat(whole, f.load("i32", a, offset + n * STEP, 1)) for n in range(count)]
            given = [f.let(f"bitcast {whole} {x} to {kind}") for x in given]
            for j, weights in enumerate(panel):
                first, *more = (twos(f, lanes, x, w) for x, w in zip(given, weights, strict=True))
                for two in more:
                    first = f.let(f"add {half} {first}, {two}")
                n = i * self.vectors + j
                found[n] = widely(f, lanes, found[n], first)
        return found


def twice(machine: Machine, pixels: Sequence[int], sums: Sequence[str]) -> bool:
    """Whether two steps of the depth fit into one turn, for pixels at these offsets and their sums. Where pixels are so
    near to each other that what is read for one in a step is read for another in the next, it is kept for that, and
    weights of both steps are."""
    near = any(STEP % (b - a) == 0 for a, b in pairwise(pixels))
    more = len(pixels) + 2 * len(sums) // len(pixels) if near else 0
    return len(sums) <= unrolled(machine) and len(sums) + more <= machine.registers


def signed_quads(f: Function, lanes: int, total: str, x: str, w: str) -> str:
    """As `quads`, but of x less 128, for no weight that is -128. The sign goes to the weights, so that sums of
    neighbours' products of x's size by them fit into 16 bits: 2 * 128 * 127."""
    four = vector(4 * lanes, "i8")
    x = flipped(f, four, x)
    size = f.call(four, f"llvm.abs.{mangled(four)}", (four, x), ("i1", "false"))
    return widely(f, lanes, total, twos(f, lanes, size, f.call(four, "llvm.x86.avx2.psign.b", (four, w), (four, x))))


def twos(f: Function, lanes: int, x: str, w: str) -> str:
    """Neighbours' products of bytes, x's without a sign, summed in 16 bits."""
    four, half = vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
    return f.call(half, "llvm.x86.avx2.pmadd.ub.sw", (four, x), (four, w))


def widely(f: Function, lanes: int, total: str, two: str) -> str:
    """total + neighbours of 16 bits, in each of so many lanes."""
    kind, half = vector(lanes, "i32"), vector(2 * lanes, "i16")
    return f.let(f"add {kind} {total}, {f.call(kind, PAIRS[lanes], (half, two), (half, number(half, 1)))}")


def of_bytes(machine: Machine, pixels: int, *weights: Array) -> bool:
    """Whether bytes are multiplied: these weights are such, and the machine does that, for so many pixels at least."""
    if machine.vnni:
        return all(w.min() >= -128 and w.max() <= 127 for w in weights)
    return pixels == 1 and shortens(machine) and all(w.min() >= -127 and w.max() <= 127 for w in weights)


def tame(w: Array, run: int, short: int) -> Array:
    """Which channels of weights [depth, channels], in runs of `run`, are so small that the products of so many steps
    fit into sums of 16 bits: of two bytes in each step, together at most 128 and at least -128."""
    size = STEP * short
    wide = np.zeros((len(w) // run, -(-run // size) * size, w.shape[1]), np.int16)
    wide[:, :run] = w.reshape(-1, run, w.shape[1])
    parts = wide.reshape(-1, short, 2, 2, w.shape[1])
    most, least = (bound(parts, 0).sum((1, 3)) for bound in (np.maximum, np.minimum))
    return np.asarray(((most <= 128) & (least >= -128)).all((0, 1)))


def shortest(machine: Machine, pixels: int, w: Array, run: int) -> int:
    """The most steps for which all channels are tame, 0 for none. Where several pixels meet the weights, these are in
    registers, which hold those of two steps."""
    if not shortens(machine) or w.min() < -128 or w.max() > 127:
        return 0
    more = (n for n in SHORT if n > 2 and pixels > 1 or not tame(w, run, n).all())
    return next(more, 2 * SHORT[-1]) // 2


def tile_of(channels: int, width: int, short: int, lanes: int) -> Tile:
    """The tile where several instructions multiply bytes, for rows of a width."""
    there = -(-channels // lanes)
    if width == 1:
        return Tile(1, -(-there // -(-there // 4)), 1, 0)
    vectors = min(there, 2)
    return cut(width, 6 if vectors == 1 else 5 if short == 1 else 3, vectors)


def narrowed(machine: Machine, quad: bool, weights: Array) -> bool:
    """Whether weights are bytes that are widened as they are read."""
    return shortens(machine) and not quad and weights.min() >= -128 and weights.max() <= 127


def shortens(machine: Machine) -> bool:
    """Whether weights of bytes are worth more instructions."""
    return machine.avx2 and not machine.avx512


def weighing(narrow: bool) -> int:
    """The bytes of one lane's weights in a step."""
    return STEP // 2 if narrow else STEP


def item(quad: bool) -> int:
    """The bytes of an element of the depth."""
    return 1 if quad else 2


def steps(depth: int, quad: bool) -> int:
    """The steps of so many elements."""
    return -(-depth * item(quad) // STEP)


def pitch(depth: int, quad: bool, lanes: int) -> int:
    """The bytes of so many elements in whole vectors."""
    return -(-depth // lanes) * lanes * item(quad)


def read(f: Function, source: str, at: str, count: int, element: str) -> str:
    """The first of a vector of narrower integers with signs, from so many elements behind an address."""
    lanes = f.machine.lanes
    value = f.load_first(count, lanes, element, source, f.mul(at, width(element) // 8))
    return f.let(f"sext {vector(lanes, element)} {value} to {vector(lanes, 'i32')}")


def kept(f: Function, quad: bool, value: str, to: str, at: str) -> None:
    """A vector of signed bytes, as integers of 32 bits, as walks read them: so many elements behind an address."""
    lanes, element = f.machine.lanes, f"i{8 * item(quad)}"
    cut = f.let(f"trunc {vector(lanes, 'i32')} {value} to {vector(lanes, element)}")
    cut = flipped(f, vector(lanes, element), cut) if quad else cut
    f.store(vector(lanes, element), cut, to, f.mul(at, item(quad)), item(quad))


def each(f: Function, count: int, piece: Callable[[str, int], None]) -> None:
    """`piece(first, how many)` for vectors of so many elements."""
    pieces(f, count, f.machine.lanes, piece)


def packed(w: Array, run: int, quad: bool, vectors: int, lanes: int, narrow: bool = False) -> Array:
    """Weights [depth, channels] as bytes for a walk whose runs are of `run` elements each, zeros behind each run."""
    together, kind = 4 if quad else 2, np.int8 if quad or narrow else np.int16
    steps, channels = -(-run // together), w.shape[1]
    wide = np.zeros((len(w) // run, steps * together, -(-channels // lanes) * lanes), kind)
    wide[:, :run, :channels] = w.reshape(-1, run, channels)
    words = wide.reshape(-1, together, wide.shape[2]).swapaxes(1, 2)
    step = vectors * lanes
    return np.concatenate([words[:, at:at + step].reshape(-1) for at in range(0, words.shape[1], step)])
