"""What becomes of sums of products of bytes: scaled, added to something else, packed, stored, pixel after pixel.

On x86, packing four vectors of 32 bits into one of bytes works on stretches of 16 bytes, which leaves the vectors'
elements in turn. So the channels of a panel are dealt to its vectors beforehand, as `order` says, and come out in line.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...frozen import frozen
from ...types import Array
from .integers import STRETCH, clipped, flipped, halved, quartered, shuffled, widened, woven
from .ir import Function, Module, number, vector
from .machine import Machine
from .requantise import (
    CROWDED, PARAMETERS, SIZES, Range, Scaling, block, blocks, by_formula, kept, narrowed, parameters)
from .sums import Addition
from .tiles import lasting

#: Elements of 32 bits in a stretch.
QUARTER = STRETCH // 4
#: Registers that a pixel takes beside its parameters: where it is only scaled to floats and back, and otherwise.
PLAIN, OTHERWISE = 10, 20
#: What every epilogue is handed: see `Epilogue`.
ENDING = (("ptr noalias readonly", "%S"), ("ptr", "%C"), ("ptr noalias readonly", "%blocks"), ("i64", "%count"),
          ("ptr", "%E"), ("i64", "%x"))


def order(vectors: int, lanes: int, x86: bool = True) -> Array:
    """The channels that so many vectors hold, element after element."""
    if not x86:
        return np.arange(vectors * lanes)
    return np.arange(vectors * lanes).reshape(-1, vectors, QUARTER).swapaxes(0, 1).reshape(-1)


def order_of(channels: int, vectors: int, lanes: int, x86: bool) -> Array:
    """The same for channels in panels of so many vectors, up to whole vectors; the last panel may have fewer."""
    there = -(-channels // lanes)
    return np.concatenate([at * lanes + order(min(vectors, there - at), lanes, x86)
                           for at in range(0, there, vectors)])


def dealt(values: Array, where: Array) -> Array:
    """Values [..., channels] in an order of channels, with zeros for those beyond the last one."""
    wide = np.zeros((*values.shape[:-1], where.size), values.dtype)
    wide[..., :values.shape[-1]] = values
    return wide[..., where]


def blocks_of(start: Array, found: Scaling, where: Array, lanes: int) -> Array:
    """`requantise.blocks` in an order of channels."""
    return blocks(dealt(start, where), Scaling(found.formula, tuple(dealt(p, where) for p in found.parameters)), lanes)


def stored(f: Function, lanes: int, steps: Sequence[str], out: Range, count: int, to: str) -> None:
    """Up to four vectors of steps of a grid as bytes, of which `count` are stored: channels dealt by `order`."""
    if len(steps) == 1 or not f.machine.x86:
        for j, y in enumerate(steps):
            f.store_first(min(count - j * lanes, lanes), lanes, "i8", narrowed(f, lanes, y, out), to, j * lanes)
        return
    found = [from_zero(f, lanes, a, b, out.zero)
             for a, b in zip(steps[::2], (*steps[1::2], steps[-1])[:-(-len(steps) // 2)], strict=True)]
    value = clipped(f, vector(4 * lanes, "i8"), quartered(f, lanes, found[0], found[-1], out.signed), out.low,
                    out.high, out.signed)
    size = len(steps) * QUARTER
    which = [s * STRETCH + n for s in range(lanes // QUARTER) for n in range(size)]
    store_bytes(f, count, shuffled(f, vector(4 * lanes, "i8"), value, value, which), len(which), to)


def from_zero(f: Function, lanes: int, a: str, b: str, zero: int) -> str:
    """Two vectors of steps of a grid as one of 16 bits, `halved`, their zero point added, saturated."""
    half, y = vector(2 * lanes, "i16"), halved(f, lanes, a, b)
    return f.call(half, f"llvm.sadd.sat.v{2 * lanes}i16", (half, y), (half, number(half, zero))) if zero else y


def store_bytes(f: Function, count: int, value: str, lanes: int, to: str) -> None:
    """The first `count` of so many bytes: at once, or in pieces where the machine has no masks."""
    kind, at = vector(lanes, "i8"), 0
    if count == lanes and lanes & (lanes - 1) == 0:
        f.store(kind, value, to, 0, 1)
        return
    for size in (64, 32, 16, 8, 4, 2, 1):
        if count - at >= size:
            part = shuffled(f, kind, value, value, list(range(at, at + size)))
            f.store(vector(size, "i8") if size > 1 else "<1 x i8>", part, to, at, 1)
            at += size


def loaded(f: Function, lanes: int, vectors: int, pointer: str, r: Range) -> list[str]:
    """Bytes of a grid as vectors of its steps, dealt by `order`. Up to a vector of bytes is read."""
    zero, whole = r.zero + (128 if r.signed else 0), vector(lanes, "i32")
    if vectors == 1 or not f.machine.x86:
        parts = (f.load(vector(lanes, "i8"), pointer, j * lanes, 1) for j in range(vectors))
        return [_steps(f, lanes, widened(f, lanes, part, r.signed), r.zero) for part in parts]
    size, four = min(vectors, 4) * QUARTER, vector(4 * lanes, "i8")
    given = vector(2 * lanes if vectors == 2 else 4 * lanes, "i8")
    x = f.load(given, pointer, 0, 1)
    x = flipped(f, given, x) if r.signed else x
    if vectors == 2:
        half = vector(2 * lanes, "i16")
        x = widened(f, 2 * lanes, x, False, "i16")
        found = [woven(f, half, x, "zeroinitializer", high) for high in (False, True)]
        return [_steps(f, lanes, f.let(f"bitcast {half} {v} to {whole}"), zero) for v in found]
    if vectors == 3:
        x = shuffled(f, four, x, x, [s * size + n % size for s in range(lanes // QUARTER) for n in range(STRETCH)])
    found = []
    for v in range(vectors):
        which = [s * STRETCH + QUARTER * v + d if byte == 0 else 4 * lanes
                 for s in range(lanes // QUARTER) for d in range(QUARTER) for byte in range(4)]
        y = shuffled(f, four, x, "zeroinitializer", which)
        found.append(_steps(f, lanes, f.let(f"bitcast {four} {y} to {whole}"), zero))
    return found


def _steps(f: Function, lanes: int, x: str, zero: int) -> str:
    whole = vector(lanes, "i32")
    return f.let(f"sub {whole} {x}, {number(whole, zero)}") if zero else x


@frozen
class Epilogue:
    """A function `(S, C, blocks, count, E, x)`: the results at C of `count` pixels, of which at S are the sums.

    For each pixel there are `vectors` of them, `each` bytes apart; with `shared` one more so far behind the first,
    which is added to all. Of the channels, those of the last vector are `tail` (0: all). Results are `step` bytes
    apart, and what is `added` to them, at E, `extra`. With a `width`, images have rows of so many pixels and so
    many more bytes behind each: `gaps`, of C and E; `x` is the first pixel's place in its row.
    """

    vectors: int
    tail: int
    formula: str
    out: Range
    each: int
    step: int
    added: Addition | None = None
    extra: int = 0
    shared: int = 0
    width: int = 0
    gaps: tuple[int, int] = (0, 0)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("epilogue", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, ENDING)
        given = [] if self._many(m.machine) else [self._parameters(f, j) for j in range(self.vectors)]

        def pixel(_: str, now: list[str]) -> list[str]:
            s, c, e, x = now
            self._pixel(f, given, s, c, e)
            c, e = f.at(c, self.step), f.at(e, self.extra)
            if self.width:
                x = f.add(x, 1)
                last = f.let(f"icmp eq i64 {x}, {self.width}")
                c, e = (f.at(p, f.select(last, "i64", str(gap), "0")) if gap else p
                        for p, gap in zip((c, e), self.gaps, strict=True))
                x = f.select(last, "i64", "0", x)
            return [f.at(s, self.each), c, e, x]
        f.loop(0, "%count", 1, [("ptr", "%S"), ("ptr", "%C"), ("ptr", "%E"), ("i64", "%x")], pixel, guarded=False)
        f.finish()

    def _many(self, machine: Machine) -> bool:
        """Whether all parameters, beside what else a pixel takes, are more than registers hold."""
        plain = self.added is None and self.formula not in CROWDED
        each = sum(SIZES[p] for p in PARAMETERS[self.formula]) // SIZES["i32"]
        return each * self.vectors > lasting(machine) - (PLAIN if plain else OTHERWISE)

    def _parameters(self, f: Function, j: int) -> list[str]:
        """Those of a vector of channels."""
        return parameters(f, self.formula, f.machine.lanes, "%blocks", j * block(self.formula) * f.machine.lanes)

    def _pixel(self, f: Function, given: list[list[str]], s: str, c: str, e: str) -> None:
        """The result of one pixel; parameters that are not given are read."""
        lanes, out, steps = f.machine.lanes, self.out, list[str]()
        kind, size = vector(lanes, "i32"), 4 * lanes
        more = f.load(kind, s, self.shared, size) if self.shared else ""
        for j in range(self.vectors):
            x = f.load(kind, s, j * size, size)
            x = f.let(f"add {kind} {x}, {more}") if more else x
            steps.append(by_formula(f, self.formula, lanes, x, given[j] if given else self._parameters(f, j)))
            if self.formula in CROWDED:          # what is read of the next vector stays behind: see `Function.fence`
                f.fence()
        if self.added:
            others = loaded(f, lanes, self.vectors, e, self.added.second)
            steps = [self.added.total(f, lanes, kept(f, lanes, y, out), z)
                     for y, z in zip(steps, others, strict=True)]
            out = self.added.out
        stored(f, lanes, steps, out, (self.vectors - 1) * lanes + (self.tail or lanes), c)
