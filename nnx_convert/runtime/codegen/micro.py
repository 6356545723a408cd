"""The micro-kernel of products of floats: a tile of pixels by vectors of output channels, in registers.

The activation is read where it lies, one element at a time for all lanes; weights are packed by panels of channels, so
that both are walked in order.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ...frozen import frozen
from .elements import BOUNDS, Part
from .ir import Function, Module, vector
from .machine import Machine
from .places import ITEM
from .tiles import unrolled

#: Bytes that a cache keeps together.
LINE = 64
#: Bytes of a panel from which the next one is fetched while it is read.
FETCHED = 16_384


@frozen
class Micro:
    """A micro-kernel: `(A, B, C, bias)`. Offsets are in bytes, of each pixel: `a` in the activation, `c` in the result.

    The depth is `taps` rows, `row` bytes apart, each of `runs` of neighbouring elements (offset, length). Of the last
    vector, `tail` lanes are stored (0: all). Before that, the `chain` is done to the sums (input 0) and to `extras`,
    of which the offsets of pixels and the bytes from channel to channel are told. With `fetched` lines of weights a
    turn of the innermost loop, it is told how many bytes ahead those are which it brings near for who comes later.
    With `coming`, pixels are brought near that are behind the tile. A `resumed` one goes on with a piece of the depth:
    it is told whether sums begin with the bias (0), or with those that are stored at `bias` (1).
    """

    a: tuple[int, ...]
    c: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    tail: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[tuple[tuple[int, ...], int], ...] = ()
    fetched: int = 0
    resumed: bool = False
    coming: bool = False

    def panel(self, lanes: int) -> int:
        """The bytes of weights that it reads."""
        return self.taps * sum(length for _, length in self.runs) * lanes * ITEM * self.vectors

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("micro", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
        more += (("i64", "%again"),) if self.resumed else ()
        more += (("i64", "%ahead"),) if self.fetched else ()
        begin = "ptr readonly" if self.resumed else "ptr noalias readonly"
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"),
                               ("ptr", "%C"), (begin, "%bias"), *more))
        kind = vector(m.machine.lanes)
        start = self._resumed(f) if self.resumed else self._begun(f, "%bias") * len(self.a)

        def tap(_: str, carried: list[str]) -> list[str]:
            a, length = carried[0], self.runs[0][1]
            now = f.over([at for at, _ in self.runs], [("ptr", carried[1]), *((kind, s) for s in carried[2:])],
                         lambda at, now: self._run(f, f.at(a, at), now[0], now[1:], length))
            return [f.at(a, self.row), *now]
        carried = [("ptr", "%A"), ("ptr", "%B"), *((kind, s) for s in start)]
        sums = f.loop(0, self.taps, 1, carried, tap)[2:] if self.taps > 1 else tap("0", ["%A", "%B", *start])[2:]
        sums = [f.clamp(kind, value, *BOUNDS[self.act]) for value in sums]
        if len(sums) > 1 and any(part.long for part in self.chain):
            self._stored_first(f, sums)
        else:
            self._stored(f, sums)
        f.finish()

    def _begun(self, f: Function, pointer: str) -> list[str]:
        """What the sums of a pixel begin with."""
        lanes = f.machine.lanes
        return [f.load_first(self._count(f, j) if self.resumed else lanes, lanes, "float", pointer, j * lanes * ITEM)
                for j in range(self.vectors)]

    def _resumed(self, f: Function) -> list[str]:
        """What all sums begin with: the bias, or what was summed before."""
        return [value for offset in self.c for value in self._begun(f, f.at("%bias", f.mul("%again", offset)))]

    def _stored(self, f: Function, sums: list[str]) -> None:
        """What the chain makes of all sums, stored."""
        for i, offset in enumerate(self.c):
            pointers = [f.at(f"%E{n}", pixels[i]) for n, (pixels, _) in enumerate(self.extras)]
            for j in range(self.vectors):
                value = self._followed(f, sums[i * self.vectors + j], pointers, j)
                self._store(f, value, f.at("%C", offset), j)

    def _stored_first(self, f: Function, sums: list[str]) -> None:
        """The same where the chain is long: a loop over pixels, as its code for each would be many times the rest."""
        for n, value in enumerate(sums):
            i, j = divmod(n, self.vectors)
            self._store(f, value, f.at("%C", self.c[i]), j)
        places = tuple(zip(self.c, *(pixels for pixels, _ in self.extras), strict=True))
        for first, count in stretches(places):
            following = places[first + 1] if count > 1 else places[first]
            steps = [b - a for a, b in zip(places[first], following, strict=True)]
            bases = [f.at(p, at) for p, at in zip(("%C", *(f"%E{n}" for n in range(len(self.extras)))), places[first],
                                                  strict=True)]
            f.loop(0, count, 1, [("ptr", p) for p in bases],
                   lambda _, now, steps=steps: self._again(f, now, steps))  # type: ignore[misc]

    def _again(self, f: Function, now: list[str], steps: Sequence[int]) -> list[str]:
        """The chain done to a pixel that is stored, vector by vector; where the next one is."""
        apart, lanes = [channel for _, channel in self.extras], f.machine.lanes

        def again(at: list[str], count: int) -> None:
            value = f.load_first(count, lanes, "float", at[0])
            there = list(zip(at[1:], apart, strict=True))
            f.store_first(count, lanes, "float", continued(f, self.chain, value, there, count), at[0])
        channels = (self.vectors - 1) * lanes + self._count(f, self.vectors - 1)
        by_vectors(f, channels, now, (ITEM, *apart), again)
        return [f.at(p, by) for p, by in zip(now, steps, strict=True)]

    def _count(self, f: Function, j: int) -> int:
        """The lanes of a vector of channels that are stored."""
        return self.tail if self.tail and j == self.vectors - 1 else f.machine.lanes

    def _store(self, f: Function, value: str, pointer: str, j: int) -> None:
        """A vector of a pixel's channels."""
        lanes = f.machine.lanes
        f.store_first(self._count(f, j), lanes, "float", value, pointer, j * lanes * ITEM)

    def _followed(self, f: Function, value: str, extras: Sequence[str], j: int) -> str:
        """What the chain makes of a vector of channels of a pixel, at which `extras` point."""
        size = j * f.machine.lanes
        there = [(f.at(p, size * channel), channel) for p, (_, channel) in zip(extras, self.extras, strict=True)]
        return continued(f, self.chain, value, there, self._count(f, j))

    def _run(self, f: Function, a: str, b: str, sums: list[str], length: int) -> list[str]:
        """The products of one run of neighbours: the panel's next place, and the sums."""
        kind, size = vector(f.machine.lanes), f.machine.lanes * ITEM * self.vectors
        turns = 1 if self._shared else turns_of(length, len(sums), f.machine)

        behind = -(-(self.a[1] - self.a[0]) * len(self.a) // length) - ITEM if self.coming else 0

        def body(i: str, carried: list[str]) -> list[str]:
            a, b, now = carried[0], carried[1], carried[2:]
            for u in range(turns):
                now = self._step(f, a, b, now, u)
            for line in range(self.fetched):
                fetch(f, f.at(f.at(b, "%ahead"), line * LINE))
            if self.coming:
                fetch(f, f.at(f.at(a, f.mul(i, behind)), self.a[-1] + length * ITEM), 3)
            return [f.at(a, ITEM * turns), f.at(b, size * turns), *now]
        return f.loop(0, length, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], body)[1:]

    @property
    def _shared(self) -> bool:
        """Whether pixels are so near to each other that an element is read for one in a step and for the next in
        another: one turn of several steps would keep all of them."""
        return any(b - a == ITEM for a, b in pairwise(self.a))

    def _step(self, f: Function, a: str, b: str, sums: list[str], step: int) -> list[str]:
        """One element of the depth for all pixels and channels."""
        lanes, found = f.machine.lanes, list(sums)
        kind = vector(lanes)
        panel = [f.load(kind, b, (step * self.vectors + j) * lanes * ITEM) for j in range(self.vectors)]
        for i, offset in enumerate(self.a):
            x = f.splat(kind, f.load("float", a, offset + step * ITEM))
            for j in range(self.vectors):
                n = i * self.vectors + j
                found[n] = f.fma(kind, x, panel[j], found[n])
        return found


def fetch(f: Function, pointer: str, nearness: int = 2) -> None:
    """Bring the line of memory at an address, where there need be none, into a cache, to be read: 2 is the second one,
    3 the first."""
    f.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    f.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {nearness}, i32 1)")


def stretches(places: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Places cut into stretches in which each is as far from the one before: the first of each, and how many."""
    found, first = list[tuple[int, int]](), 0
    steps = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(places)]
    for n in range(1, len(places) + 1):
        if n == len(places) or n - first > 1 and steps[n - 1] != steps[first]:
            found.append((first, n - first))
            first = n
    return found


def turns_of(length: int, sums: int, machine: Machine) -> int:
    """How many steps of the depth one turn of a micro-kernel's loop makes."""
    if sums > unrolled(machine):
        return 1
    return 2 if length % 2 == 0 else 3 if length % 3 == 0 and length <= 9 else 1


def fetching(f: Function, micro: Micro, tile: str, tiles: int) -> tuple[Micro, str]:
    """The micro-kernel, and its last argument, with which each of a panel's tiles brings a part of the next panel near.

    It stays as it is where a panel is soon there, and where there are no tiles, so that panels come again. Where
    registers are few, one tile alone is done with a line as soon as one is fetched: that would only take longer.
    """
    size, panel = f.machine.lanes * ITEM * micro.vectors, micro.panel(f.machine.lanes)
    hurried = f.machine.registers == 16 and tiles == 1
    if panel < FETCHED or not tiles or hurried:
        return micro, ""
    lines = max(1, turns_of(micro.runs[0][1], len(micro.a) * micro.vectors, f.machine) * size // LINE)
    each = -(-lines // tiles)
    first = f.mul(f.rem(tile, lines // each), each * LINE)
    return replace(micro, fetched=each), f", i64 {f.add(first, panel)}"


def by_vectors(f: Function, channels: int, pointers: Sequence[str], steps: Sequence[int],
               body: Callable[[list[str], int], None]) -> None:
    """`body(pointers, channels)` for whole vectors of channels, of which pointers have such steps, and the rest."""
    lanes = f.machine.lanes
    full, tail = divmod(channels, lanes)
    at = list(pointers)

    def whole(_: str, now: list[str]) -> list[str]:
        body(now, lanes)
        return [f.at(p, lanes * step) for p, step in zip(now, steps, strict=True)]
    if full:
        at = f.loop(0, full, 1, [("ptr", p) for p in at], whole)
    if tail:
        body(at, tail)


def continued(f: Function, chain: Sequence[Part], value: str, extras: Sequence[tuple[str, int]], count: int) -> str:
    """What a chain makes of a vector of `count` channels. Of all else that it reads, where that is and the bytes from
    channel to channel."""
    lanes = f.machine.lanes
    kind, inputs, made = vector(lanes), [value], [value]
    for pointer, channel in extras:
        inputs.append(f.load_first(count, lanes, "float", pointer) if channel else
                      f.splat(kind, f.load("float", pointer)))
    for part in chain:
        made.append(part.emit(f, kind, inputs, made[1:]))
    return made[-1]


def revisited(f: Function, chain: Sequence[Part], size: tuple[int, int], pointers: Sequence[str],
              strides: Sequence[tuple[int, int, int]], count: int) -> None:
    """A long chain done to a vector of channels of rows by columns of pixels that are stored, as its code for each
    would be many times the rest. Of the pixels and of all else that it reads: where that is, and its strides."""
    def row(_: str, at: list[str]) -> list[str]:
        def cell(_: str, here: list[str]) -> list[str]:
            value = f.load_first(count, f.machine.lanes, "float", here[0])
            there = list(zip(here[1:], (channel for _, _, channel in strides[1:]), strict=True))
            f.store_first(count, f.machine.lanes, "float", continued(f, chain, value, there, count), here[0])
            return [f.at(p, step) for p, (_, step, _) in zip(here, strides, strict=True)]
        f.loop(0, size[1], 1, [("ptr", p) for p in at], cell)
        return [f.at(p, step) for p, (step, _, _) in zip(at, strides, strict=True)]
    f.loop(0, size[0], 1, [("ptr", p) for p in pointers], row)
