"""Images read at places that a run computes: the nearest cell, or the four around by distance.

A vector of neighbouring places finds its cells and their shares once, for all channels; then it goes through the
channels once for each cell, so that few registers are enough.
"""
from __future__ import annotations

from functools import partial

import numpy as np

from ...frozen import frozen
from ...ops import sampling as s
from ...types import F32
from ..bind import Bound
from ..places import FAR, ends, placed
from .ir import SHARED, Function, Module, mangled, number, vector
from .machine import Machine
from .mathematics import flags, integers, select
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native
from .turns import every_other

#: Bytes of a place.
PAIR = 8


@frozen
class Axis:
    """An axis of an image: of `size` cells, and what is `outside` of it, a code of GRID_SAMPLE."""

    size: int
    outside: int
    align: bool
    linear: bool

    def cells(self, f: Function, t: str, at: str) -> list[tuple[str, str, str]]:
        """For places from -1 to 1 along the axis: each cell that counts, its share, and whether it is there."""
        at = self._inside(f, t, self._scaled(f, t, at))
        whole = integers(t)
        down = f.call(t, f"llvm.floor.{mangled(t)}", (t, at)) if self.linear else at
        odd = f.let(f"fcmp uno {t} {at}, {at}")
        held = select(f, t, odd, number(t, -FAR), f.clamp(t, down, -FAR, FAR))
        low = f.let(f"fptosi {t} {held} to {whole}")
        if not self.linear:
            return [(*self._placed(f, whole, low), "")]
        share = f.let(f"fsub {t} {at}, {down}")
        found = []
        for cell, part in ((low, f.let(f"fsub {t} {number(t, 1)}, {share}")),
                           (f.let(f"add {whole} {low}, {number(whole, 1)}"), share)):
            found.append((*self._placed(f, whole, cell), part))
        return found

    def _scaled(self, f: Function, t: str, at: str) -> str:
        """Places in cells; halves of them to the even one, where the nearest counts."""
        above = f.let(f"fadd {t} {at}, {number(t, 1)}")
        if self.align:
            at = f.let(f"fmul {t} {f.let(f'fmul {t} {above}, {number(t, 0.5)}')}, {number(t, self.size - 1)}")
        else:
            at = f.let(f"fsub {t} {f.let(f'fmul {t} {above}, {number(t, self.size)}')}, {number(t, 1)}")
            at = f.let(f"fmul {t} {at}, {number(t, 0.5)}")
        return at if self.linear else f.call(t, f"llvm.rint.{mangled(t)}", (t, at))

    def _inside(self, f: Function, t: str, at: str) -> str:
        """Places moved into the axis, as far as it is not zeros that are outside."""
        low, high = ends(self.size, self.align)
        beyond = f.let(f"or {flags(t)} {f.let(f'fcmp olt {t} {at}, {number(t, low)}')}, "
                       f"{f.let(f'fcmp ogt {t} {at}, {number(t, high)}')}")
        if s.OUTSIDE[self.outside] == "border":
            return select(f, t, beyond, f.clamp(t, at, 0, self.size - 1), at)
        if s.OUTSIDE[self.outside] == "reflection":
            return select(f, t, beyond, self._reflected(f, t, at, low, high), at) if high > low else number(t, low)
        return at

    def _reflected(self, f: Function, t: str, at: str, low: float, high: float) -> str:
        """`places.reflected` of what is outside."""
        span, back = number(t, high - low), f.let(f"fcmp olt {t} {at}, {number(t, low)}")
        far = select(f, t, back, f.let(f"fsub {t} {number(t, low)}, {at}"), f.let(f"fsub {t} {at}, {number(t, high)}"))
        count = f.call(t, f"llvm.trunc.{mangled(t)}", (t, f.let(f"fdiv {t} {far}, {span}")))
        rest = f.let(f"fsub {t} {far}, {f.let(f'fmul {t} {count}, {span}')}")
        half = f.let(f"fmul {t} {count}, {number(t, 0.5)}")
        even = f.let(f"fcmp oeq {t} {half}, {f.call(t, f'llvm.trunc.{mangled(t)}', (t, half))}")
        turned = f.let(f"xor {flags(t)} {back}, {even}")
        return select(f, t, turned, f.let(f"fsub {t} {number(t, high)}, {rest}"),
                      f.let(f"fadd {t} {number(t, low)}, {rest}"))

    def _placed(self, f: Function, whole: str, cell: str) -> tuple[str, str]:
        """Cells, some of them outside, as cells inside, and whether they count; "" for all."""
        last, said = self.size - 1, s.OUTSIDE[self.outside]
        there = f.let(f"icmp ule {whole} {cell}, {number(whole, last)}")
        if said != "reflection":
            inner = cell
            for name, bound in (("smax", 0), ("smin", last)):
                inner = f.call(whole, f"llvm.{name}.{mangled(whole)}", (whole, inner), (whole, number(whole, bound)))
            return inner, there if said == "zeros" else ""
        mirror = placed(said, self.size, self.align)
        before, behind, nowhere = (number(whole, int(mirror(np.array([i]))[0][0])) for i in (-1, last + 1, -int(FAR)))
        found = select(f, whole, f.let(f"icmp eq {whole} {cell}, {number(whole, -1)}"), before, nowhere)
        found = select(f, whole, f.let(f"icmp slt {whole} {cell}, {number(whole, 0)}"), found, behind)
        return select(f, whole, there, cell, found), ""


@frozen
class Samples:
    """x [n, c, h, w] at places [n, rows, columns, 2], columns first."""

    x: Place
    places: Place
    out: Place
    axes: tuple[Axis, Axis]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("samples", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, (n, channels, rows, columns), lanes = Function(m, name, SHARED), self.out.shape, m.machine.lanes
        count = rows * columns
        vectors = -(-count // lanes)

        def some(i: str, _: list[str]) -> None:
            image, first = f.div(i, vectors), f.mul(f.rem(i, vectors), lanes)
            at = f.add(self.places.offset, f.mul(f.add(f.mul(image, count), first), PAIR))
            to = f.add(self.out.offset, f.mul(f.add(f.mul(image, channels * count), first), ITEM))
            source = f.at(self.x.base, f.add(self.x.offset, f.mul(image, self.x.strides[0])))
            given = f.at(self.places.base, at), source, f.at(self.out.base, to)
            if count % lanes:
                f.when(f.let(f"icmp eq i64 {first}, {count - count % lanes}"),
                       lambda: self._vector(f, *given, count % lanes), lambda: self._vector(f, *given, lanes))
            else:
                self._vector(f, *given, lanes)
        f.loop(*f.share(n * vectors), 1, [], some)
        f.finish()

    def _vector(self, f: Function, places: str, x: str, out: str, count: int) -> None:
        """So many neighbouring places of all channels; what is read behind them finds some cells, too."""
        t = vector(f.machine.lanes)
        across, down = every_other(f, t, places, ITEM)
        rows, columns = (axis.cells(f, t, at) for axis, at in zip(self.axes, (down, across), strict=True))
        cells = [(row, column) for row in rows for column in columns]
        for number_, (row, column) in enumerate(cells):
            self._cell(f, t, row, column, x, out, count, first=number_ == 0)

    def _cell(self, f: Function, t: str, row: tuple[str, str, str], column: tuple[str, str, str], x: str, out: str,
              count: int, *, first: bool) -> None:
        """What one cell of each place adds."""
        lanes, whole, yes = f.machine.lanes, integers(t), flags(t)
        plane, pitch = self.x.strides[1], self.out.strides[1]
        index = f.let(f"add {whole} {f.let(f'mul {whole} {row[0]}, {number(whole, self.x.shape[3])}')}, {column[0]}")
        share = f.let(f"fmul {t} {row[2]}, {column[2]}") if row[2] else ""
        there = f.let(f"and {yes} {row[1]}, {column[1]}") if row[1] else ""

        def channel(_: str, now: list[str]) -> list[str]:
            value = f.gather(t, f.let(f"getelementptr float, ptr {now[0]}, {whole} {index}"))
            value = f.let(f"fmul {t} {value}, {share}") if share else value
            value = select(f, t, there, value, number(t, 0)) if there else value
            if not first:
                value = f.let(f"fadd {t} {f.load_first(count, lanes, 'float', now[1])}, {value}")
            f.store_first(count, lanes, "float", value, now[1])
            return [f.at(now[0], plane), f.at(now[1], pitch)]
        f.loop(0, self.x.shape[1], 1, [("ptr", x), ("ptr", out)], channel)


def _takes(b: Bound, _: Machine) -> bool:
    """Of images whose cells 32 bits count."""
    x, grid = b.args["x"], b.args["grid"]
    plain = all(t.type == F32 and t.rank == 4 and t.size > 0 for t in (x, grid, b.outs[0]))
    return plain and b.args["mode"] != s.CUBIC and x.shape[2] * x.shape[3] < 1 << 30


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x = w.place(b.slots["x"])
    axis = partial(Axis, outside=b.args["outside"], align=b.args["align"], linear=b.args["mode"] == s.LINEAR)
    return Samples(x, w.place(b.slots["grid"]), w.place(b.outputs[0]), (axis(x.shape[2]), axis(x.shape[3])))


NATIVE = (native(Family(_takes, _make), s.GRID_SAMPLE),)
