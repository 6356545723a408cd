"""Softmax, its logarithm and vectors of length one along any axis of floats: columns side by side, rows by themselves.
"""
from __future__ import annotations

import math

from ...frozen import frozen
from ...ops import norm
from ..bind import Bound
from . import mathematics
from .elements import CODE
from .folds import floats, fold_row, folded
from .ir import SHARED, Function, Module, Operand, mangled, number, vector
from .machine import Machine
from .places import ITEM, Place, around
from .tasks import Family, Group, Task, Workshop, kind, native
from .turns import pieces

#: No vector is taken for shorter.
SHORTEST = 1e-6


@frozen
class Columns:
    """A normalisation of x [outer, size, inner] along its middle; `beta` is what is in an exponent by it."""

    op: str
    x: Place
    out: Place
    sizes: tuple[int, int, int]
    beta: float

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("columns", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        outer, size, inner = self.sizes
        first, last = f.share(outer)

        def part(i: str, _: list[str]) -> None:
            at = f.mul(i, size * inner * ITEM)
            x, out = (f.at(p.base, f.add(p.offset, at)) for p in (self.x, self.out))
            pieces(f, inner, m.machine.lanes, lambda c, count: self._some(
                f, f.at(x, f.mul(c, ITEM)), f.at(out, f.mul(c, ITEM)), count))
        f.loop(first, last, 1, [], part)
        f.finish()

    def _some(self, f: Function, x: str, out: str, count: int) -> None:
        """So many neighbouring columns."""
        lanes, step = f.machine.lanes, self.sizes[2] * ITEM
        t = vector(lanes)

        def read(at: str, i: str) -> str:
            return f.load_first(count, lanes, "float", at, f.mul(i, step))

        def put(i: str, value: str) -> None:
            f.store_first(count, lanes, "float", value, out, f.mul(i, step))
        if self.op == norm.L2_NORMALIZATION.name:
            total = f.loop(0, self.sizes[1], 1, [(t, number(t, 0))],
                           lambda i, now: [_squared(f, t, now[0], read(x, i))])
            length = _length(f, t, total[0])
            f.loop(0, self.sizes[1], 1, [], lambda i, _: put(i, f.let(f"fdiv {t} {read(x, i)}, {length}")))
            return
        most = f.loop(0, self.sizes[1], 1, [(t, number(t, -math.inf))],
                      lambda i, now: [folded(f, t, "MOST", now[0], read(x, i))])[0]

        def power(i: str, now: list[str]) -> list[str]:
            less = f.let(f"fmul {t} {f.let(f'fsub {t} {read(x, i)}, {most}')}, {number(t, self.beta)}")
            found = mathematics.exp(f, t, less)
            put(i, found if self.op == norm.SOFTMAX.name else less)
            return [f.let(f"fadd {t} {now[0]}, {found}")]
        total = f.loop(0, self.sizes[1], 1, [(t, number(t, 0))], power)
        if self.op == norm.SOFTMAX.name:
            share = f.let(f"fdiv {t} {number(t, 1)}, {total[0]}")
            f.loop(0, self.sizes[1], 1, [], lambda i, _: put(i, f.let(f"fmul {t} {read(out, i)}, {share}")))
        else:
            share = mathematics.log(f, t, total[0])
            f.loop(0, self.sizes[1], 1, [], lambda i, _: put(i, f.let(f"fsub {t} {read(out, i)}, {share}")))


def _squared(f: Function, t: str, total: str, x: str) -> str:
    return f.let(f"fadd {t} {total}, {f.let(f'fmul {t} {x}, {x}')}")


def _length(f: Function, t: str, squares: str) -> str:
    root = f.call(t, f"llvm.sqrt.{mangled(t)}", (t, squares))
    return CODE["MAXIMUM"][0](f, t, root, number(t, SHORTEST))


@frozen
class UnitRows:
    """Each row of x divided by its length."""

    x: Place
    out: Place
    size: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("unitrows", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.size // self.size)
        lanes, t = m.machine.lanes, vector(m.machine.lanes)

        def square(value: str, _: Operand, __: int) -> str:
            return f.let(f"fmul {t} {value}, {value}")

        def row(i: str, _: list[str]) -> None:
            x, out = (f.at(p.base, f.add(p.offset, f.mul(i, self.size * ITEM))) for p in (self.x, self.out))
            length = f.splat(t, _length(f, "float", fold_row(f, "SUM", x, self.size, square)))

            def some(at: str, count: int) -> None:
                value = f.load_first(count, lanes, "float", x, f.mul(at, ITEM))
                f.store_first(count, lanes, "float", f.let(f"fdiv {t} {value}, {length}"), out, f.mul(at, ITEM))
            pieces(f, self.size, lanes, some)
        f.loop(first, last, 1, [], row)
        f.finish()


def _takes(b: Bound, _: Machine) -> bool:
    return floats(b)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    sizes = around(b.args["x"].shape, b.args["axis"])
    x, out, name = w.place(b.slots["x"]), w.place(b.outputs[0]), kind(b.op)
    if sizes[2] == 1 and name == norm.L2_NORMALIZATION.name:
        return UnitRows(x, out, sizes[1])
    return Columns(name, x, out, sizes, float(b.args.get("beta", 1.0)))


NATIVE = (native(Family(_takes, _make), norm.SOFTMAX, norm.LOG_SOFTMAX, norm.L2_NORMALIZATION, otherwise=True),)
