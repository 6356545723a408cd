"""Additions of bytes on grids of their own, exactly as the NumPy kernels (and LiteRT's reference) do them.

Three roundings in fixed point define the result. Two products, a sum and an offset in FLOAT32 mostly give the same
for all pairs of bytes: that is tried when code is made, and the definition is computed where they do not.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from ...frozen import frozen
from ...ops import elementwise as e
from ...types import BYTES, Array, Shape, Tensor
from ..bind import Bound, Slot
from ..fixedpoint import f32, grid, multiplier, scale32
from .directed import single
from .elements import merged, spread, start
from .integers import centred, signed_like
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .nearest import addends
from .places import Place
from .requantise import Range, by_shifts, narrowed
from .repeats import joined_rows
from .tasks import Family, Group, Task, Workshop, kind, native

#: Bits that both terms are given before they are scaled.
LEFT = 20
#: Offsets that are tried: a half, and what is a little beside it.
OFFSETS = tuple(float(np.float32(0.5 + n * 2.0 ** -20)) for n in (0, 1, 2, 4, 8, -1, -2, -4))
#: How the second number counts.
SIGNS = {e.ADD.name: 1, e.SUB.name: -1}
#: A multiplier and a shift, as `fixedpoint.multiplier` gives them.
Pair = tuple[int, int]


@frozen
class Addition:
    """The sum (`sign` 1) or the difference (-1) of two numbers of bytes.

    `pairs` scale the first, the second and the result; with `floats` the two slopes and the offset that do the same.
    If it is `fast`, it is that of `nearest.addends`.
    """

    first: Range
    second: Range
    out: Range
    sign: int
    pairs: tuple[Pair, Pair, Pair]
    floats: tuple[float, float, float] | None
    fast: tuple[int, int, int] | None = None

    def emit(self, f: Function, lanes: int, x: str, other: str) -> str:
        """Steps of the output's grid, without its zero point, of such steps of the first's and bytes of the second."""
        return self.total(f, lanes, x, centred(f, lanes, other, self.second.signed, self.second.zero))

    def total(self, f: Function, lanes: int, x: str, y: str) -> str:
        """The same of such steps of both."""
        if self.fast:
            return self._products(f, lanes, x, y, *self.fast)
        return self._floats(f, lanes, x, y, *self.floats) if self.floats else self._shifts(f, lanes, x, y)

    def _products(self, f: Function, lanes: int, x: str, y: str, first: int, second: int, shift: int) -> str:
        whole = vector(lanes, "i32")
        a = f.let(f"mul {whole} {x}, {number(whole, first)}")
        b = f.let(f"mul {whole} {y}, {number(whole, self.sign * second)}")
        total = f.let(f"add {whole} {f.let(f'add {whole} {a}, {b}')}, {number(whole, 1 << shift >> 1)}")
        return f.let(f"ashr {whole} {total}, {number(whole, shift)}")

    def _floats(self, f: Function, lanes: int, x: str, y: str, a: float, b: float, offset: float) -> str:
        whole, real = vector(lanes, "i32"), vector(lanes)
        first, second = (f.let(f"sitofp {whole} {v} to {real}") for v in (x, y))
        total = f.fma(real, first, number(real, a), f.let(f"fmul {real} {second}, {number(real, b)}"))
        moved = signed_like(f, lanes, number(real, offset), f.let(f"bitcast {real} {total} to {whole}"))
        total = f.let(f"fadd {real} {total}, {moved}")
        return f.let(f"fptosi {real} {total} to {whole}")

    def _shifts(self, f: Function, lanes: int, x: str, y: str) -> str:
        whole = vector(lanes, "i32")
        a, b = (by_shifts(f, lanes, f.let(f"shl {whole} {v}, {number(whole, LEFT)}"), *pair)
                for v, pair in zip((x, y), self.pairs, strict=False))
        total = f.let(f"{'add' if self.sign > 0 else 'sub'} {whole} {a}, {b}")
        return by_shifts(f, lanes, total, *self.pairs[2])


@lru_cache(maxsize=256)
def addition(x: Tensor, y: Tensor, out: Tensor, act: int, sign: int, fused: bool, fast: bool, cut: bool) -> Addition:
    """The addition of two tensors. `fused`: a product and a sum are rounded once; `cut`: toward zero."""
    (sx, _), (sy, _), (so, _) = map(grid, (x, y, out))
    twice = 2.0 * max(float(sx), float(sy))
    pairs = (multiplier(float(sx) / twice), multiplier(float(sy) / twice),
             multiplier(twice / float(f32((1 << LEFT) * so))))
    ranges = Range.of(x), Range.of(y), Range.of(out, act)
    slopes = float(sx) / float(so), sign * float(sy) / float(so)
    floats = _floats(ranges, pairs, *slopes, fused, cut)
    return Addition(*ranges, sign, pairs, floats, addends(x, y, out) if fast else None)


def _values(r: Range) -> Array:
    """All steps of a grid of bytes."""
    low = -128 if r.signed else 0
    return np.arange(low, low + 256) - r.zero


def _floats(ranges: tuple[Range, Range, Range], pairs: tuple[Pair, Pair, Pair], a: float, b: float,
            fused: bool, cut: bool) -> tuple[float, float, float] | None:
    """Slopes and an offset that give what the definition gives for all bytes; None where none of those tried does."""
    if not 2.0 ** -12 < abs(a / b) < 2.0 ** 12 or abs(a) + abs(b) > 2.0 ** 12:
        return None                              # beyond, FLOAT64 does not show what fused operations give
    x, y = _values(ranges[0])[:, None], _values(ranges[1])[None]
    low, high = ranges[2].low - ranges[2].zero, ranges[2].high - ranges[2].zero
    first, second = scale32(x << LEFT, *pairs[0]), scale32(y << LEFT, *pairs[1])
    want = np.clip(scale32(first + second * int(math.copysign(1, b)), *pairs[2]), low, high)
    slopes = float(np.float32(a)), float(np.float32(b))
    first = x * slopes[0] if fused else single(x * slopes[0], cut)
    total = single(first + single(y * slopes[1], cut).astype(np.float64), cut).astype(np.float64)
    for offset in OFFSETS:
        found = np.trunc(single(total + np.copysign(offset, total), cut))
        if np.array_equal(np.clip(found, low, high), want):
            return *slopes, offset
    return None


def taken(b: Bound, _: Machine) -> bool:
    """Whether an operation adds bytes."""
    x, y, out = b.args["x"], b.args["y"], b.outs[0]
    return len(out.shape) > 0 and all(t.type in BYTES and t.size > 0 and grid(t)[0] for t in (x, y, out))


def of(b: Bound, machine: Machine, turned: bool = False, cut: bool = False) -> Addition:
    """An operation as an addition; `turned`: its second argument comes first; `cut`: floats are cut there."""
    x, y = (b.args[n] for n in ("yx" if turned else "xy"))
    return addition(bare(x), bare(y), bare(b.outs[0]), b.args["act"], SIGNS[kind(b.op)], machine.fused, machine.fast,
                    cut)


def bare(t: Tensor) -> Tensor:
    """A tensor's type and grid."""
    return Tensor(t.type, (), t.quant)


def joins(group: Group, b: Bound, machine: Machine) -> bool:
    """Whether an addition of bytes can be done to a product's results before they are stored."""
    if SIGNS.get(kind(b.op)) != 1 or group.tail or not taken(b, machine):
        return False
    shape = group.outs[0].shape
    return b.slots["x"] != b.slots["y"] and all(b.args[n].shape == shape for n in "xy") and b.outs[0].shape == shape


def addition_of(group: Group, machine: Machine, cut: bool) -> tuple[Addition, Slot] | None:
    """The addition that follows in a group, done where floats are `cut` or not, and the slot of what is added."""
    if not group.tail:
        return None
    b = group.tail[0]
    turned = b.slots["y"] in group.head.outputs
    return of(b, machine, turned, cut), b.slots["x" if turned else "y"]


class Pairing(Protocol):
    """What is made of two numbers on grids of bytes: see `Addition`."""

    @property
    def first(self) -> Range:
        """The first one's bytes."""

    @property
    def out(self) -> Range:
        """The result's."""

    def emit(self, f: Function, lanes: int, x: str, other: str) -> str:
        """As `Addition.emit`."""


@frozen
class Sums:
    """An addition, or another pairing, of arrays that broadcast to the result's shape."""

    x: Place
    y: Place
    out: Place
    addition: Pairing

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("sums", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, places = Function(m, name, SHARED), (self.x, self.y, self.out)
        shape, strides = merged(self.out.shape, [spread(p, self.out.shape) for p in places])
        lead, width = shape[:-1], shape[-1]
        rows, (full, rest) = math.prod(lead), divmod(width, m.machine.lanes)
        first, last = f.share(rows if rows > 1 else full)

        def row(i: str, _: list[str]) -> None:
            starts = [start(f, p, s[:-1], i, lead) for p, s in zip(places, strides, strict=True)]
            self._row(f, starts, strides, "0", str(full), full, rest)
        if rows > 1:
            f.loop(first, last, 1, [], row)
        else:
            starts = [f.at(p.base, p.offset) for p in places]
            self._row(f, starts, strides, first, last, full, 0)
            if rest:
                f.when(f.let("icmp eq i64 %thread, 0"), lambda: self._row(f, starts, strides, "0", "0", full, rest))
        f.finish()

    def _row(self, f: Function, starts: list[str], strides: Sequence[Shape], first: str, last: str, full: int,
             rest: int) -> None:
        """The vectors of one row from first to last, and what is left behind them all."""
        lanes = f.machine.lanes
        if full and last != "0":
            f.loop(first, last, 1, [], lambda i, _: self._vector(f, starts, strides, f.mul(i, lanes), lanes))
        if rest:
            self._vector(f, starts, strides, str(full * lanes), rest)

    def _vector(self, f: Function, starts: list[str], strides: Sequence[Shape], at: str, count: int) -> None:
        """So many neighbours, `at` bytes from the starts."""
        lanes, type = f.machine.lanes, vector(f.machine.lanes, "i8")
        x, y = (f.load_first(count, lanes, "i8", p, at) if s[-1] else f.splat(type, f.load("i8", p, 0, 1))
                for p, s in zip(starts[:-1], strides[:-1], strict=True))
        first = centred(f, lanes, x, self.addition.first.signed, self.addition.first.zero)
        total = self.addition.emit(f, lanes, first, y)
        f.store_first(count, lanes, "i8", narrowed(f, lanes, total, self.addition.out), starts[-1], at)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    return summed(w, b, of(b, w.machine))


def summed(w: Workshop, b: Bound, pairing: Pairing) -> Sums:
    """The task of an operation of two arrays of bytes."""
    slots, out = (b.slots["x"], b.slots["y"]), w.place(b.outputs[0])
    longer = joined_rows(w, out, slots)
    out, (x, y) = longer if longer is not None else (out, [w.place(s) for s in slots])
    return Sums(x, y, out, pairing)


NATIVE = (native(Family(taken, _make), e.ADD, e.SUB, of_bytes=True),)
