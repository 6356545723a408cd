"""Floats on grids that are chosen when they are there, for products with bytes: `runtime.hybrid`, bit by bit.

Where something is not finite, its grid's scale is no number, and with it all that is scaled by it, as there.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...frozen import frozen
from ..hybrid import LEAST, SPAN
from .folds import across, folded
from .integers import SIGN, bounded
from .ir import SHARED, Function, Module, number, vector
from .mathematics import select
from .nearest import nearest
from .places import ITEM, Place
from .requantise import rounded_away

#: A grid as others read it: its scale in FLOAT32, and what the byte of 0 is, as an integer of 32 bits.
INFO = 8
#: What an element of a size is in code, and how an integer becomes one.
ELEMENTS = {1: ("i8", "trunc"), 2: ("i16", "trunc"), 4: ("float", "sitofp")}
#: What a byte without a sign is above the integer that it stands for.
ABOVE = 128
#: The largest number below a half: added to a number with its sign, cutting rounds halves away from zero.
HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))
#: Kinds of grids: of TFLite, about 0, or over the values that there are and 0; and ONNX's, over these, which rounds
#: halves to even.
SYMMETRIC, WIDE, EVEN = "symmetric", "wide", "even"
#: Vectors that are read at once for the least and the greatest, by registers: each has three of its own.
ABREAST = {32: 4, 16: 3}
ONE, NONE, ENDLESS = (number("float", v) for v in (1, 0, np.inf))


@frozen
class Grid:
    """A grid in code: its scale, what floats are multiplied (or divided) by, and its zero point, a signed byte as an
    integer of 32 bits."""

    scale: str
    factor: str
    point: str


@frozen
class Gridded:
    """Images [n, h, w, c] of floats, each on a grid of its own.

    They become bytes without a sign, or integers of 16 bits or floats less their zero point, by the size of an
    element of `out`. That lies dense with its border, which is of zeros; `infos` is an INFO for each image. `rule`: of
    which kind the grids are.
    """

    x: Place
    out: Place
    infos: Place
    rule: str

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("gridded", self), lambda name: self._build(m, name))

    @property
    def rows(self) -> int:
        """The rows of one image with its border."""
        return self.out.shape[1] + self.out.border.top + self.out.border.bottom

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.shape[0] * self.rows)

        def image(i: str, _: list[str]) -> None:
            grid = self._grid(f, f.at(self.x.base, f.add(self.x.offset, f.mul(i, self.x.strides[0]))))
            self._told(f, grid, f.at(self.infos.base, f.add(self.infos.offset, f.mul(i, INFO))))
            low, high = (f.let(f"sub i64 {at}, {f.mul(i, self.rows)}") for at in (first, last))
            low = f.call("i64", "llvm.smax.i64", ("i64", low), ("i64", "0"))
            f.loop(low, f.least(high, self.rows), 1, [], lambda y, _: self._row(f, i, y, grid))
        end = f.div(f.add(last, self.rows - 1), self.rows)
        f.loop(f.div(first, self.rows), end, 1, [], image)
        f.finish()

    def one(self, f: Function, x: str, to: str, info: str) -> None:
        """Emit what is done to one image of one row without a border, at these addresses."""
        grid = self._grid(f, x)
        self._told(f, grid, info)
        self._cells(f, x, to, grid)

    @staticmethod
    def _told(f: Function, grid: Grid, info: str) -> None:
        f.store("float", grid.scale, info)
        f.store("i32", f.let(f"add i32 {grid.point}, {ABOVE}"), info, ITEM)

    def _grid(self, f: Function, x: str) -> Grid:
        """The grid of the floats of one image."""
        low, high, odd = self._span(f, x)
        reach = self._reach(f, low, high) if self.rule == SYMMETRIC else f.let(f"fsub float {high}, {low}")
        odd = f.let(f"or i1 {odd}, {f.let(f'fcmp oeq float {reach}, {ENDLESS}')}")
        least = number("float", 0.0 if self.rule == EVEN else float(LEAST))
        none = f.let(f"fcmp {'oeq' if self.rule == EVEN else 'olt'} float {reach}, {least}")
        span = number("float", SPAN // 2 if self.rule == SYMMETRIC else SPAN)
        scale = f.select(none, "float", ONE, f.let(f"fdiv float {reach}, {span}"))
        off = f.let(f"or i1 {odd}, {none}")
        factor, point = f.let(f"fdiv float {ONE}, {scale}"), "0"
        if self.rule == SYMMETRIC:
            factor = f.select(none, "float", NONE, f.let(f"fdiv float {span}, {reach}"))
        elif self.rule == WIDE:
            point = f.select(off, "i32", "0", self._point(f, low, high, reach))
        else:
            factor, point = scale, self._even(f, low, scale, odd)
        factor = f.select(odd, "float", ONE if self.rule == EVEN else NONE, factor)
        return Grid(f.select(odd, "float", number("float", np.nan), scale), factor, point)

    @staticmethod
    def _even(f: Function, low: str, scale: str, odd: str) -> str:
        """The zero point by the least value."""
        quotient = f.let(f"fdiv float {f.let(f'fneg float {low}')}, {scale}")
        quotient = f.clamp("float", f.select(odd, "float", NONE, quotient), 0, SPAN)
        whole = f.let(f"fptosi float {f.call('float', 'llvm.rint.f32', ('float', quotient))} to i32")
        return f.let(f"add i32 {whole}, {-ABOVE}")

    @staticmethod
    def _reach(f: Function, low: str, high: str) -> str:
        """The greatest magnitude."""
        below = f.let(f"fneg float {low}")
        return f.select(f.let(f"fcmp ogt float {below}, {high}"), "float", below, high)

    @staticmethod
    def _point(f: Function, low: str, high: str, reach: str) -> str:
        """The zero point by the end where it is off by less, in FLOAT64 until it is an integer."""
        wide = f.let(f"fdiv double {f.let(f'fpext float {reach} to double')}, {number('double', SPAN)}")
        ends = [f.let(f"fdiv double {f.let(f'fpext float {v} to double')}, {wide}") for v in (low, high)]
        sizes = [f.let(f"fadd double {number('double', n)}, {f.call('double', 'llvm.fabs.f64', ('double', v))}")
                 for n, v in zip((ABOVE, ABOVE - 1), ends, strict=True)]
        points = [f.let(f"fsub double {number('double', n)}, {v}") for n, v in zip((-ABOVE, ABOVE - 1), ends,
                                                                                     strict=True)]
        first = f.let(f"fcmp olt double {sizes[0]}, {sizes[1]}")
        point = f.clamp("double", f.select(first, "double", *points), -ABOVE, ABOVE - 1)
        return rounded_away(f, "double", "i32", point)

    def _span(self, f: Function, x: str) -> tuple[str, str, str]:
        """The least and the greatest of an image and 0, and whether one is not finite."""
        lanes, size, abreast = f.machine.lanes, self.x.size // self.x.shape[0], ABREAST[f.machine.registers]
        kind = vector(lanes)
        zero = number(kind, 0)

        def taken(at: str, count: int, now: Sequence[str]) -> list[str]:
            value = f.load_first(count, lanes, "float", x, at)
            low = select(f, kind, f.let(f"fcmp olt {kind} {value}, {now[0]}"), value, now[0])
            high = select(f, kind, f.let(f"fcmp ogt {kind} {value}, {now[1]}"), value, now[1])
            return [low, high, f.fma(kind, value, zero, now[2])]      # the last stays 0, or becomes no number

        def turn(i: str, now: list[str]) -> list[str]:
            at = f.mul(i, lanes * ITEM)
            return [v for n in range(abreast) for v in taken(f.add(at, n * lanes * ITEM), lanes, now[3 * n:3 * n + 3])]
        full = size // lanes
        whole = full - full % abreast
        found = [zero] * (3 * abreast)
        if whole:
            found = f.loop(0, whole, abreast, [(kind, v) for v in found], turn)
        for n in range(whole, -(-size // lanes)):
            at = 3 * (n % abreast)
            found[at:at + 3] = taken(str(n * lanes * ITEM), min(lanes, size - n * lanes), found[at:at + 3])
        low, high, odd = (_joined(f, fold, found[n::3]) for n, fold in enumerate(("MIN", "MAX", "SUM")))
        return low, high, f.let(f"fcmp uno float {odd}, {odd}")

    def _row(self, f: Function, i: str, y: str, grid: Grid) -> None:
        """One row of an image with its border."""
        border, (_, height, width, depth) = self.out.border, self.out.shape
        cell, inner = depth * self.out.item, f.let(f"sub i64 {y}, {border.top}") if border.top else y
        to, x = (f.at(p.base, f.add(p.offset, f.add(f.mul(i, p.strides[0]), f.mul(inner, p.strides[1]))))
                 for p in (self.out, self.x))
        fill = f.let(f"trunc i32 {f.let(f'add i32 {grid.point}, {ABOVE}')} to i8") if self.out.item == 1 else "0"

        def filled(first: int, cells: int) -> None:
            if cells:
                f.fill(f.at(to, first * cell), fill, cells * cell)

        def inside() -> None:
            filled(-border.left, border.left)
            filled(width, border.right)
            self._cells(f, x, to, grid)
        if border.top or border.bottom:
            f.when(f.let(f"icmp ult i64 {inner}, {height}"), inside,
                   lambda: filled(-border.left, border.left + width + border.right))
        else:
            inside()

    def _cells(self, f: Function, x: str, to: str, grid: Grid) -> None:
        """A row's neighbours on the grid."""
        lanes, size = f.machine.lanes, self.out.shape[2] * self.out.shape[3]
        kind, whole = vector(lanes), vector(lanes, "i32")
        factor, point = f.splat(kind, grid.factor), f.splat(whole, grid.point)
        less = number(whole, -ABOVE) if self.out.item == 1 else point

        def piece(at: str, count: int) -> None:
            value = f.load_first(count, lanes, "float", x, f.mul(at, ITEM))
            scaled = f.let(f"{'fdiv' if self.rule == EVEN else 'fmul'} {kind} {value}, {factor}")
            steps = nearest(f, lanes, scaled) if self.rule == EVEN else to_nearest(f, scaled)
            steps = steps if self.rule == SYMMETRIC else f.let(f"add {whole} {steps}, {point}")
            steps = bounded(f, whole, steps, 1 - ABOVE if self.rule == SYMMETRIC else -ABOVE, ABOVE - 1)
            steps = f.let(f"sub {whole} {steps}, {less}")
            element, change = ELEMENTS[self.out.item]
            value = f.let(f"{change} {whole} {steps} to {vector(lanes, element)}")
            f.store_first(count, lanes, element, value, to, f.mul(at, self.out.item))
        if size >= lanes:
            f.loop(0, size // lanes, 1, [], lambda i, _: piece(f.mul(i, lanes), lanes))
        if size % lanes:
            piece(str(size - size % lanes), size % lanes)


def to_nearest(f: Function, x: str) -> str:
    """A vector of floats, all of 31 bits, as integers: halves away from zero."""
    kind, whole = vector(f.machine.lanes), vector(f.machine.lanes, "i32")
    sign = f.let(f"and {whole} {f.let(f'bitcast {kind} {x} to {whole}')}, {number(whole, SIGN)}")
    bits = f.let(f"or {whole} {sign}, {number(whole, int(np.float32(HALF).view(np.int32)))}")
    moved = f.let(f"fadd {kind} {x}, {f.let(f'bitcast {whole} {bits} to {kind}')}")
    return f.let(f"fptosi {kind} {moved} to {whole}")


def _joined(f: Function, fold: str, found: Sequence[str]) -> str:
    """The fold of all lanes of vectors."""
    kind, total = vector(f.machine.lanes), found[0]
    for value in found[1:]:
        total = folded(f, kind, fold, total, value)
    return across(f, kind, fold, total)
