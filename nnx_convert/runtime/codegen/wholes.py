"""Products of bytes that are on grids of their own, or of integers of 16 bits, by bytes: sums as integers of 32 bits.

One step of the depth is 32 bits of each activation, in every lane, times as many of each lane's weights: four
products where bytes are multiplied, else two of 16 bits. Bytes are multiplied by one instruction (activations without
a sign by signed weights); or, with AVX2, by four, which is worth it for a single pixel: as all weights are read for it
alone, half the bytes are half the time. Of more pixels only the weights are bytes there, which are widened as they are
read.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...types import Array
from .integers import PAIRS, flipped, pairs, quads
from .ir import Function, number, vector, width
from .machine import Machine
from .tiles import unrolled
from .turns import pieces

#: The bytes of a step: of an activation, and of one lane's weights.
STEP = 4


@dataclass(frozen=True)
class Walk:
    """How a micro-kernel goes through the depth: for pixels at these offsets, `taps` rows, `row` bytes apart, each of
    `runs` of neighbours (offset in bytes, steps). Of weights, a step's vectors are together; they are bytes where
    `quads`, and where `narrow`: see `of_bytes` and `narrowed`."""

    a: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    quads: bool
    narrow: bool = False

    def sums(self, f: Function, a: str, b: str, start: Sequence[str]) -> list[str]:
        """The sums of each pixel's vectors, from those they start with."""
        kind = vector(f.machine.lanes, "i32")

        def tap(_: str, now: list[str]) -> list[str]:
            x, w, sums = now[0], now[1], now[2:]
            for offset, steps in self.runs:
                w, sums = self._run(f, f.at(x, offset), w, sums, steps)
            return [f.at(x, self.row), w, *sums]
        if self.taps == 1:
            return tap("0", [a, b, *start])[2:]
        return f.loop(0, self.taps, 1, [("ptr", a), ("ptr", b), *((kind, s) for s in start)], tap)[2:]

    def _run(self, f: Function, a: str, b: str, sums: list[str], steps: int) -> tuple[str, list[str]]:
        """The products of one run; the next weights, and the sums."""
        kind, size = vector(f.machine.lanes, "i32"), weighing(self.narrow) * f.machine.lanes * self.vectors
        turns = 2 if len(sums) <= unrolled(f.machine) and steps % 2 == 0 else 1

        def turn(_: str, now: list[str]) -> list[str]:
            x, w, sums = now[0], now[1], now[2:]
            for u in range(turns):
                sums = self._step(f, x, w, sums, u)
            return [f.at(x, STEP * turns), f.at(w, size * turns), *sums]
        found = f.loop(0, steps, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], turn)
        return found[1], found[2:]

    def _step(self, f: Function, a: str, b: str, sums: list[str], step: int) -> list[str]:
        lanes, found = f.machine.lanes, list(sums)
        whole, add = vector(lanes, "i32"), (quads if above(f.machine) else signed_quads) if self.quads else pairs
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


def signed_quads(f: Function, lanes: int, total: str, x: str, w: str) -> str:
    """total + the products of four signed bytes each in each lane; no weight is -128. The sign goes to the weights, so
    that neighbours' sums of x's size by them fit into 16 bits: 2 * 128 * 127."""
    kind, four, half = vector(lanes, "i32"), vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
    f.module.declare(f"declare {four} @llvm.abs.v{4 * lanes}i8({four}, i1)")
    size = f.let(f"call {four} @llvm.abs.v{4 * lanes}i8({four} {x}, i1 false)")
    turned = f.call(four, "llvm.x86.avx2.psign.b", (four, w), (four, x))
    two = f.call(half, "llvm.x86.avx2.pmadd.ub.sw", (four, size), (four, turned))
    return f.let(f"add {kind} {total}, {f.call(kind, PAIRS[lanes], (half, two), (half, number(half, 1)))}")


def above(machine: Machine) -> int:
    """How far bytes that are multiplied lie above the integers that they are."""
    return 128 if machine.vnni else 0


def of_bytes(machine: Machine, pixels: int, *weights: Array) -> bool:
    """Whether bytes are multiplied: these weights are such, and the machine does that, for so many pixels at least."""
    if machine.vnni:
        return all(w.min() >= -128 and w.max() <= 127 for w in weights)
    return pixels == 1 and shortens(machine) and all(w.min() >= -127 and w.max() <= 127 for w in weights)


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
    cut = flipped(f, vector(lanes, element), cut) if quad and above(f.machine) else cut
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
