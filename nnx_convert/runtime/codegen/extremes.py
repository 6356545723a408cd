"""Where the largest or the smallest along an axis is, the first among equals.

What is no number counts as the last of all, as in TFLite. Columns are searched side by side; a row by itself lane by
lane, and a row of few bytes at once.
"""
from __future__ import annotations

from functools import partial

from ...frozen import frozen
from ...ops import reduce as r
from ...types import I32
from ..bind import Bound
from .ir import SHARED, Function, Module, mangled, mask, number, vector
from .machine import Machine
from .mathematics import flags, select
from .places import Place, around
from .scalars import SCALARS, Scalar
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

#: Bytes of a result, and of the longest row that is searched at once.
INDEX, SHORT = 4, 64


@frozen
class Extreme:
    """The index of the largest (or with `least` the smallest) of x [outer, size, inner] along its middle."""

    x: Place
    out: Place
    sizes: tuple[int, int, int]
    element: Scalar
    least: bool

    @property
    def worst(self) -> float:
        """What no element is beyond."""
        return self.element.most if self.least else self.element.least

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("extreme", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        outer, size, inner = self.sizes
        first, last = f.share(outer)

        def part(i: str, _: list[str]) -> None:
            x = f.at(self.x.base, f.add(self.x.offset, f.mul(i, size * inner * self.element.size)))
            to = f.at(self.out.base, f.add(self.out.offset, f.mul(i, inner * INDEX)))
            if inner > 1:
                pieces(f, inner, m.machine.lanes, lambda at, count: self._columns(
                    f, f.at(x, f.mul(at, self.element.size)), f.at(to, f.mul(at, INDEX)), count))
            elif self.element.size == 1 and size <= SHORT:
                f.store("i32", self._short(f, x), to)
            else:
                f.store("i32", self._row(f, x), to)
        f.loop(first, last, 1, [], part)
        f.finish()

    def _columns(self, f: Function, x: str, to: str, count: int) -> None:
        """The indices of neighbouring columns."""
        lanes, step = f.machine.lanes, self.sizes[2] * self.element.size
        type, whole = vector(lanes, self.element.code), vector(lanes, "i32")

        def row(i: str, now: list[str]) -> list[str]:
            value = self._numbers(f, type, f.load_first(count, lanes, self.element.code, now[0]))
            better, index = self._better(f, type, value, now[1]), f.splat(whole, f.let(f"trunc i64 {i} to i32"))
            return [f.at(now[0], step), select(f, type, better, value, now[1]), select(f, whole, better, index, now[2])]
        start = [("ptr", x), (type, number(type, self.worst)), (whole, number(whole, 0))]
        f.store_first(count, lanes, "i32", f.loop(0, self.sizes[1], 1, start, row)[2], to)

    def _row(self, f: Function, x: str) -> str:
        """The index in a row of neighbours: by lanes first, each of which begins with its first element."""
        lanes, size = f.machine.lanes, self.sizes[1]
        type, whole = vector(lanes, self.element.code), vector(lanes, "i32")
        found = [number(type, self.worst), "<" + ", ".join(f"i32 {i}" for i in range(lanes)) + ">"]
        ramp = found[1]

        def more(at: str, count: int, now: list[str]) -> list[str]:
            value = f.load_first(count, lanes, self.element.code, x, f.mul(at, self.element.size))
            value = self._numbers(f, type, value)
            if count < lanes:
                value = select(f, type, mask(count, lanes), value, number(type, self.worst))
            better = self._better(f, type, value, now[0])
            index = f.let(f"add {whole} {ramp}, {f.splat(whole, f.let(f'trunc i64 {at} to i32'))}")
            return [select(f, type, better, value, now[0]), select(f, whole, better, index, now[1])]
        rest = size % lanes
        if size > rest:
            found = f.loop(0, size - rest, lanes, list(zip((type, whole), found, strict=True)),
                           lambda at, now: more(at, lanes, now))
        if rest:
            found = more(str(size - rest), rest, found)
        best = f.splat(type, self._best(f, type, found[0]))
        equal = f.let(f"{self.element.relation('eq')} {type} {found[0]}, {best}")
        return f.call("i32", f"llvm.vector.reduce.umin.v{lanes}i32",
                      (whole, select(f, whole, equal, found[1], number(whole, -1))))

    def _short(self, f: Function, x: str) -> str:
        """The index in a row of few bytes, read as one vector together with what is behind it."""
        size = self.sizes[1]
        lanes = max(16, 1 << (size - 1).bit_length())
        type = vector(lanes, self.element.code)
        value = f.load(type, x, 0, 1)
        if size < lanes:
            value = select(f, type, mask(size, lanes), value, number(type, self.worst))
        equal = f.let(f"icmp eq {type} {value}, {f.splat(type, self._best(f, type, value))}")
        bits = f.let(f"bitcast {flags(type)} {equal} to i{lanes}")
        first = f.call(f"i{lanes}", f"llvm.cttz.i{lanes}", (f"i{lanes}", bits), ("i1", "true"))
        if lanes == 32:
            return first
        return f.let(f"{'zext' if lanes < 32 else 'trunc'} i{lanes} {first} to i32")

    def _numbers(self, f: Function, type: str, x: str) -> str:
        """Elements with what none is beyond in place of those that are no numbers."""
        if not self.element.real:
            return x
        return select(f, type, f.let(f"fcmp uno {type} {x}, {x}"), number(type, self.worst), x)

    def _better(self, f: Function, type: str, value: str, best: str) -> str:
        return f.let(f"{self.element.relation('lt' if self.least else 'gt')} {type} {value}, {best}")

    def _best(self, f: Function, type: str, x: str) -> str:
        """The best of a vector's lanes, which are numbers."""
        sign = "f" if self.element.real else "s" if self.element.signed else "u"
        name = f"llvm.vector.reduce.{sign}{'min' if self.least else 'max'}"
        return f.call(self.element.code, f"{name}.{mangled(type)}", (type, x))


def _takes(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type in SCALARS and out.type == I32 and 0 < x.size < 1 << 31 and out.size > 0


def _make(w: Workshop, group: Group, least: bool) -> Task:
    b = group.head
    sizes = around(b.args["x"].shape, b.args["axis"])
    return Extreme(w.place(b.slots["x"]), w.place(b.outputs[0]), sizes, SCALARS[b.args["x"].type], least)


NATIVE = (
    native(Family(_takes, partial(_make, least=False)), r.ARGMAX),
    native(Family(_takes, partial(_make, least=True)), r.ARGMIN),
)
