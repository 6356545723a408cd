"""Products of bytes that are on grids of their own, or of integers of 16 bits, by bytes: sums as integers of 32 bits.

One step of the depth is 32 bits of each activation, in every lane, times 32 bits of each lane's weights: four
products where the machine multiplies bytes (activations without a sign by signed weights), else two of 16 bits.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...types import Array
from .integers import flipped, pairs, quads
from .ir import Function, vector, width
from .machine import Machine
from .tiles import unrolled
from .turns import pieces

#: The bytes of a step: of an activation, and of one lane's weights.
STEP = 4


@dataclass(frozen=True)
class Walk:
    """How a micro-kernel goes through the depth: for pixels at these offsets, `taps` rows, `row` bytes apart, each of
    `runs` of neighbours (offset in bytes, steps). Of weights, a step's vectors are together."""

    a: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    quads: bool

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
        kind, size = vector(f.machine.lanes, "i32"), STEP * f.machine.lanes * self.vectors
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
        whole, add = vector(lanes, "i32"), quads if self.quads else pairs
        kind = vector(4 * lanes, "i8") if self.quads else vector(2 * lanes, "i16")
        panel = [f.load(kind, b, (step * self.vectors + j) * lanes * STEP) for j in range(self.vectors)]
        for i, offset in enumerate(self.a):
            x = f.splat(whole, f.load("i32", a, offset + step * STEP, 1))
            x = f.let(f"bitcast {whole} {x} to {kind}")
            for j, w in enumerate(panel):
                n = i * self.vectors + j
                found[n] = add(f, lanes, found[n], x, w)
        return found


def of_bytes(machine: Machine, *weights: Array) -> bool:
    """Whether bytes are multiplied: where the machine does that, and these weights are such."""
    return machine.vnni and all(w.min() >= -128 and w.max() <= 127 for w in weights)


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


def packed(w: Array, run: int, quad: bool, vectors: int, lanes: int) -> Array:
    """Weights [depth, channels] as bytes for a walk whose runs are of `run` elements each, zeros behind each run."""
    together, kind = (4, np.int8) if quad else (2, np.int16)
    steps, channels = -(-run // together), w.shape[1]
    wide = np.zeros((len(w) // run, steps * together, -(-channels // lanes) * lanes), kind)
    wide[:, :run, :channels] = w.reshape(-1, run, channels)
    words = wide.reshape(-1, together, wide.shape[2]).swapaxes(1, 2)
    step = vectors * lanes
    return np.concatenate([words[:, at:at + step].reshape(-1) for at in range(0, words.shape[1], step)])
