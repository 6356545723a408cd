"""Arrays that are copied but for what a run's numbers say: a part written over, rows in turn or left out."""
from __future__ import annotations

import math
from dataclasses import replace

from ...frozen import frozen
from ...ops import host_arrays as h, indexing as i
from ..bind import Bound
from .copies import together
from .gathers import Check, checked
from .ir import SHARED, Function, Module, Operand
from .machine import Machine
from .moves import address
from .places import Border, Place
from .scatters import CODES, after, moved, read
from .strides import nest
from .tasks import Family, Group, Phases, Task, Workshop, native, tell

#: Beyond it no diagonal is, however large the matrix.
FAR = 1 << 40


def held(f: Function, x: str, low: Operand, high: Operand) -> str:
    """An integer of 64 bits within bounds."""
    x = f.call("i64", "llvm.smax.i64", ("i64", x), ("i64", str(low)))
    return f.call("i64", "llvm.smin.i64", ("i64", x), ("i64", str(high)))


def begin(f: Function, p: Place) -> str:
    """Where an array begins."""
    return f.at(p.base, p.offset)


# A part written over.
@frozen
class Window:
    """An update written to `out`, where numbers of a run say for each axis, moved so that all of it fits."""

    update: Place
    start: Place
    out: Place
    code: str

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("window", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, at = Function(m, name, SHARED), "0"
        first, size = begin(f, self.start), int(self.code[1:]) // 8
        for n, (whole, part) in enumerate(zip(self.out.shape, self.update.shape, strict=True)):
            if whole > part:
                index = held(f, read(f, self.code, f.at(first, n * size)), 0, whole - part)
                at = f.add(at, f.mul(index, self.out.strides[n]))
        source, to = together(self.update, replace(self.out, shape=self.update.shape, border=Border()))
        width = source.shape[-1] * source.item
        nest(f, (to, source), source.shape[:-1], lambda where: f.copy(f.at(where[0], at), where[1], width))
        f.finish()


@frozen
class Rows:
    """Rows of an update [batch, before, count, inner bytes] written to those of `out` from each batch's start on."""

    update: Place
    start: Place
    out: Place
    sizes: tuple[int, int, int, int]
    code: str
    circular: bool
    check: Check

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("writtenrows", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, (batches, before, count, inner), size = Function(m, name, SHARED), self.sizes, self.check.size
        update, start, out = (begin(f, p) for p in (self.update, self.start, self.out))

        def batch(b: str, _: list[str]) -> None:
            first = read(f, self.code, f.at(start, f.mul(b, int(self.code[1:]) // 8)))

            def row(n: str, _: list[str]) -> None:
                index = f.let(f"add i64 {first}, {n}")
                if self.circular:
                    rest = f.let(f"srem i64 {index}, {size}")
                    below = f.let(f"icmp slt i64 {rest}, 0")
                    index = f.select(below, "i64", f.let(f"add i64 {rest}, {size}"), rest)
                index = self.check.emit(f, index)
                to, source = (f.at(base, f.mul(f.add(f.mul(b, before * rows), at), inner))
                              for base, rows, at in ((out, size, index), (update, count, n)))

                def copy(_: str, now: list[str]) -> list[str]:
                    f.copy(now[0], now[1], inner)
                    return [f.at(now[0], size * inner), f.at(now[1], count * inner)]
                f.loop(0, before, 1, [("ptr", to), ("ptr", source)], copy)
            f.loop(0, count, 1, [], row)
        f.loop(*f.share(batches), 1, [], batch)
        f.finish()


def _takes_window(b: Bound, _: Machine) -> bool:
    return moved(b, "x", "update") and b.args["start"].type in CODES


def _make_window(w: Workshop, group: Group) -> Phases:
    b = group.head
    update, start, out = w.place(b.slots["update"]), w.place(b.slots["start"]), w.place(b.outputs[0])
    return after(w, b, Window(update, start, out, CODES[b.args["start"].type]))


def _make_rows(w: Workshop, group: Group) -> Phases:
    b, code = group.head, CODES[group.head.args["start"].type]
    update, start, out = w.place(b.slots["update"]), w.place(b.slots["start"]), w.place(b.outputs[0])
    axis = b.args["axis"] % len(out.shape)
    sizes = (out.shape[0], math.prod(out.shape[1:axis]), update.shape[axis], math.prod(out.shape[axis + 1:]) * out.item)
    check = checked(w, b, out.shape[axis], "i64")
    return after(w, b, Rows(update, start, out, sizes, code, b.args["circular"], check))


# Rows in turn.
@frozen
class Turned:
    """The first elements of x along an axis back to front, as many as each batch's length says."""

    x: Place
    lengths: Place
    out: Place
    axis: int
    batch: int
    code: str
    check: int
    fault: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("turnedrows", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, shape = Function(m, name, SHARED), self.x.shape
        lead = max(self.axis, self.batch) + 1
        inner, size = math.prod(shape[lead:]) * self.x.item, shape[self.axis]
        x, lengths, out = (begin(f, p) for p in (self.x, self.lengths, self.out))

        def place(i: str, axis: int) -> str:
            return f.rem(f.div(i, math.prod(shape[axis + 1:lead])), shape[axis])

        def part(i: str, _: list[str]) -> None:
            at, stride = place(i, self.axis), self.x.strides[self.axis]
            length = read(f, self.code, f.at(lengths, f.mul(place(i, self.batch), int(self.code[1:]) // 8)))
            wrong = f.let(f"icmp ugt i64 {length}, {size}")
            f.when(wrong, lambda: tell(f, self.check, "0", self.fault))
            inside = f.let(f"icmp slt i64 {at}, {f.select(wrong, 'i64', '0', length)}")
            there = f.select(inside, "i64", f.add(f.let(f"sub i64 {length}, {at}"), -1), at)
            here = f.mul(i, inner)
            moved = f.add(here, f.mul(f.let(f"sub i64 {there}, {at}"), stride))
            f.copy(f.at(out, here), f.at(x, moved), inner)
        f.loop(*f.share(math.prod(shape[:lead])), 1, [], part)
        f.finish()


def _takes_turned(b: Bound, _: Machine) -> bool:
    return moved(b, "x") and b.args["lengths"].type in CODES


def _make_turned(w: Workshop, group: Group) -> Task:
    b, x = group.head, w.place(group.head.slots["x"])
    axis, batch = b.args["axis"], b.args["batch"]
    check = w.check(f"a length is not in [0, {x.shape[axis]}]", b.origin)
    return Turned(x, w.place(b.slots["lengths"]), w.place(b.outputs[0]), axis, batch, CODES[b.args["lengths"].type],
                  check, w.fault)


# Beside a diagonal.
@frozen
class Triangle:
    """Matrices with zeros on one side of a diagonal: below it, where `upper`."""

    x: Place
    k: Place
    out: Place
    code: str
    upper: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("triangle", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, item, (*lead, columns) = Function(m, name, SHARED), self.x.item, self.x.shape
        k = held(f, read(f, self.code, begin(f, self.k)), -FAR, FAR)
        more = f.add(k, 0 if self.upper else 1)

        def row(n: str, _: list[str]) -> None:
            source, to = (address(f, p, n, tuple(lead)) for p in (self.x, self.out))
            edge = f.mul(held(f, f.add(f.rem(n, lead[-1]), more), 0, columns), item)
            rest, behind = f.let(f"sub i64 {columns * item}, {edge}"), f.at(to, edge)
            if self.upper:
                f.fill(to, 0, edge)
                f.copy(behind, f.at(source, edge), rest)
            else:
                f.copy(to, source, edge)
                f.fill(behind, 0, rest)
        f.loop(*f.share(math.prod(lead)), 1, [], row)
        f.finish()


def _takes_triangle(b: Bound, _: Machine) -> bool:
    return moved(b, "x") and b.args["k"].type in CODES


def _make_triangle(w: Workshop, group: Group) -> Task:
    b = group.head
    return Triangle(w.place(b.slots["x"]), w.place(b.slots["k"]), w.place(b.outputs[0]), CODES[b.args["k"].type],
                    b.args["upper"])


NATIVE = (
    native(Family(_takes_window, _make_window), h.DYNAMIC_UPDATE_SLICE),
    native(Family(_takes_window, _make_rows), i.WRITE_ROWS),
    native(Family(_takes_turned, _make_turned), h.REVERSE_SEQUENCE),
    native(Family(_takes_triangle, _make_triangle), i.TRILU),
)
