"""Recurrent sequences: one product for the inputs of all steps, then step after step with the gates in registers.

The gates of a vector of units are neighbours in products and weights: [vector of units, gate, lane].
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ...frozen import frozen
from ...types import Shape
from .ir import SHARED, Function, Module, number, vector
from .micro import Micro
from .places import ITEM, Place
from .tiles import FIT, cut


class Cell(Protocol):
    """What a step makes of the gates' sums; of one gate, the inputs' part may stay apart from that of the states."""

    @property
    def gates(self) -> int:
        """How many gates there are."""

    @property
    def apart(self) -> int:
        """The gate of which the inputs' part is handed on beside its sum, -1 for none."""

    def emit(self, f: Function, sums: Sequence[str], fed: str, at: State) -> str:
        """Emit it for a vector of units: `fed` is the input's part of the gate that stays apart; the new h."""


@frozen
class State:
    """Where a vector of units has its cell state, its h before the step, and its extra constants (bytes apart)."""

    c: str
    h: str
    extras: str
    pitch: int


@frozen
class Direction:
    """One pass over x [time, batch, width] into `out` [time, batch, units], from states [batch, units], to states.

    States are (h, c), each of which may be missing: zeros at the begin. `weights` and `bias` are those of the inputs,
    `recurrent` those of h, `apart` the bias of the gate that stays apart, `extras` more constants of units.
    """

    x: Place
    out: Place | None
    states: tuple[Place | None, ...]
    ends: tuple[Place | None, ...]
    weights: int
    bias: int
    recurrent: int
    apart: int
    extras: int
    backward: bool


@frozen
class Recurrence:
    """Directions of cells with so many units; each sequence of a batch is the work of one thread."""

    directions: tuple[Direction, ...]
    cell: Cell
    units: int
    room: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("recurrence", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        batch = self.directions[0].x.shape[1]
        first, last = f.share(len(self.directions) * batch)

        def item(i: str, _: list[str]) -> None:
            which, row = f.div(i, batch), f.rem(i, batch)
            for n, direction in enumerate(self.directions):
                f.when(f.let(f"icmp eq i64 {which}, {n}"),
                       lambda direction=direction: self._pass(f, direction, row))  # type: ignore[misc]
        f.loop(first, last, 1, [], item)
        f.finish()

    def _sizes(self, lanes: int) -> tuple[int, int]:
        """The bytes of a step's products, and of a state, in whole vectors."""
        wide = -(-self.units // lanes) * lanes * ITEM
        return wide * self.cell.gates, wide

    def _pass(self, f: Function, d: Direction, row: str) -> None:
        """One sequence in one direction."""
        time = d.x.shape[0]
        products, wide = self._sizes(f.machine.lanes)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        now, after, c = (f.at(room, time * products + n * wide) for n in range(3))
        self._inputs(f, d, row, room)
        for state, to in zip(d.states, (now, c), strict=False):
            if state is None:
                f.fill(to, 0, self.units * ITEM)
            else:
                f.copy(to, row_of(f, state, row), self.units * ITEM)

        def step(t: str, held: list[str]) -> list[str]:
            at = f.let(f"sub i64 {time - 1}, {t}") if d.backward else t
            self._step(f, d, f.at(room, f.mul(at, products)), (held[0], held[1], c))
            if d.out is not None:
                f.copy(f.at(row_of(f, d.out, row), f.mul(at, d.out.strides[0])), held[1], self.units * ITEM)
            return [held[1], held[0]]
        last = f.loop(0, time, 1, [("ptr", now), ("ptr", after)], step)[0]
        for end, source in zip(d.ends, (last, c), strict=False):
            if end is not None:
                f.copy(row_of(f, end, row), source, self.units * ITEM)

    def _inputs(self, f: Function, d: Direction, row: str, room: str) -> None:
        """The products of all steps' inputs: [time, vector of units, gate, lane] into the room."""
        lanes, (time, _, depth) = f.machine.lanes, d.x.shape
        products, _ = self._sizes(lanes)
        vectors = fitting(self.cell.gates, f.machine.registers)
        tile, wide = cut(time, FIT[f.machine.registers][vectors], vectors), vectors * lanes * ITEM
        x = row_of(f, d.x, row)

        def part(i: str, _: list[str]) -> None:
            panel, at = f.div(i, tile.parts), f.rem(i, tile.parts)
            first = tile.first(f, at)
            pointers = (f.at(x, f.mul(first, d.x.strides[0])),
                        f.at("%weights", f.add(d.weights, f.mul(panel, wide * depth))),
                        f.at(room, f.add(f.mul(first, products), f.mul(panel, wide))),
                        f.at("%weights", f.add(d.bias, f.mul(panel, wide))))
            given = ", ".join(f"ptr {p}" for p in pointers)

            def call(pixels: int) -> None:
                micro = Micro(tuple(n * d.x.strides[0] for n in range(pixels)),
                              tuple(n * products for n in range(pixels)), vectors, 1, 0, ((0, depth),), 0, 0)
                f.do(f"call void @{micro.emit(f.module)}({given})")
            tile.sized(f, at, call)
        f.loop(0, products // wide * tile.parts, 1, [], part)

    def _step(self, f: Function, d: Direction, fed: str, held: tuple[str, str, str]) -> None:
        """One step: held are h, where the next one goes, and c."""
        lanes, gates, apart = f.machine.lanes, self.cell.gates, self.cell.apart
        kind, size, (now, after, c) = vector(lanes), lanes * ITEM, held
        _, wide = self._sizes(lanes)

        def group(i: str, at: list[str]) -> list[str]:
            weights, own = at
            start = [f.load(kind, own, n * size) for n in range(gates)]
            here = f.mul(i, size)
            if apart >= 0:
                other, start[apart] = start[apart], f.load(kind, f.at("%weights", f.add(d.apart, here)))
            sums = self._sums(f, weights, now, start)
            state = State(f.at(c, here), f.at(now, here), f.at("%weights", f.add(d.extras, here)), wide)
            f.store(kind, self.cell.emit(f, sums, other if apart >= 0 else "", state), after, here)
            return [f.at(weights, self.units * gates * size), f.at(own, gates * size)]
        f.loop(0, wide // size, 1, [("ptr", f.at("%weights", d.recurrent)), ("ptr", fed)], group)

    def _sums(self, f: Function, weights: str, h: str, start: list[str]) -> list[str]:
        """Sums of some gates over h of a vector of units, added to those they start with; two sums of each run abreast,
        as one alone would wait for itself."""
        kind, size, gates = vector(f.machine.lanes), f.machine.lanes * ITEM, len(start)

        def product(at: str, state: str, k: int, sums: Sequence[str]) -> list[str]:
            x = f.splat(kind, f.load("float", state, k * ITEM))
            return [f.fma(kind, x, f.load(kind, at, (k * gates + n) * size), v) for n, v in enumerate(sums)]

        def turn(_: str, now: list[str]) -> list[str]:
            at, state, first, second = now[0], now[1], now[2:2 + gates], now[2 + gates:]
            return [f.at(at, 2 * gates * size), f.at(state, 2 * ITEM), *product(at, state, 0, first),
                    *product(at, state, 1, second)]
        found = [weights, h, *start, *[number(kind, 0)] * gates]
        if self.units > 1:
            kinds = ["ptr", "ptr", *[kind] * (2 * gates)]
            found = f.loop(0, self.units - self.units % 2, 2, list(zip(kinds, found, strict=True)), turn)
        sums = found[2:2 + gates]
        if self.units % 2:
            sums = product(found[0], found[1], 0, sums)
        return [f.let(f"fadd {kind} {a}, {b}") for a, b in zip(sums, found[2 + gates:], strict=True)]


def row_of(f: Function, p: Place, row: str) -> str:
    """Where the row of a sequence begins in [.., batch, width]."""
    return f.at(p.base, f.add(p.offset, f.mul(row, p.strides[-2])))


def fitting(vectors: int, registers: int) -> int:
    """How many vectors of products are made together: a divisor of all that there are."""
    return max(n for n in FIT[registers] if vectors % n == 0)


def room_of(time: int, units: int, gates: int, lanes: int) -> int:
    """The bytes of a thread's products, of both h and of c."""
    wide = -(-units // lanes) * lanes * ITEM
    return time * wide * gates + 3 * wide


def in_time(p: Place, time_major: bool) -> Place:
    """A sequence as [time, batch, width]; [batch, width] is one step."""
    shape: Shape = p.shape if len(p.shape) == 3 else (1, *p.shape)
    strides = p.strides if len(p.shape) == 3 else (0, *p.strides)
    order = (0, 1, 2) if time_major or len(p.shape) == 2 else (1, 0, 2)
    return Place(p.base, p.offset, tuple(shape[a] for a in order), tuple(strides[a] for a in order), p.item)


def layer(p: Place, axis: int, number: int) -> Place:
    """An array without an axis, at a place of it."""
    rest = [a for a in range(len(p.shape)) if a != axis]
    return replace(p, offset=p.offset + number * p.strides[axis], shape=tuple(p.shape[a] for a in rest),
                   strides=tuple(p.strides[a] for a in rest))
