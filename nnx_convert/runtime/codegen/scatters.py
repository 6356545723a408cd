"""Elements picked and written one by one, at indices along an axis, or at tuples of them.

An index that is out of bounds is told, as in NumPy, by an error of the run. What is written to one place several times
is written in the order of the indices, so that the last one stays: threads share what does not meet.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...ops import host, indexing as i
from ...types import B8, I32, I64, OBJECTS, Shape, Tensor, Type
from ..bind import Bound
from .arithmetic import INTEGERS
from .copies import copies
from .elements import CODE
from .gathers import Check, checked
from .ir import SHARED, Function, Module, Operand
from .machine import Machine
from .moves import address
from .places import Border, Place, dense_strides
from .scalars import SCALARS, Scalar
from .strides import nest
from .tasks import Family, Group, Phases, Task, Workshop, native

#: Types of indices, in code.
CODES = {I32: "i32", I64: "i64"}
#: Neighbours of a stretch from which threads share each stretch; else one of them does all.
LONG = 64
#: What joins an element that is written and the one that is there: of numbers, and of truth values.
JOINS = {i.ADD: ("ADD", "or"), i.MULTIPLY: ("MUL", "and"), i.LEAST: ("MINIMUM", "and"), i.MOST: ("MAXIMUM", "or")}


@frozen
class Fold:
    """How an element that is written joins the one that is there: bytes that replace it, or numbers by an operation."""

    kind: int
    size: int
    element: Scalar | None = None
    truth: bool = False

    @property
    def code(self) -> str:
        """An element's type in code."""
        return self.element.code if self.element else f"i{8 * self.size}"

    def emit(self, f: Function, to: str, source: str) -> None:
        """Write an element."""
        new = f.load(self.code, source, 0, self.size)
        if self.element:
            new = self._joined(f, self.element, f.load(self.code, to, 0, self.size), new)
        f.store(self.code, new, to, 0, self.size)

    def _joined(self, f: Function, element: Scalar, old: str, new: str) -> str:
        name, logic = JOINS[self.kind]
        if self.truth:
            return f.let(f"{logic} {element.code} {old}, {new}")
        return CODE[name][0](f, element.code, old, new) if element.real else INTEGERS[name].emit(
            f, element.code, element, old, new)


def fold_of(kind: int, type: Type) -> Fold | None:
    """That of a type; None where there is none."""
    size = type.dtype.itemsize
    if kind == i.REPLACE:
        return Fold(kind, size)
    return Fold(kind, size, SCALARS[type], type == B8) if type in SCALARS else None


def read(f: Function, code: str, pointer: str) -> str:
    """An index in 64 bits."""
    index = f.load(code, pointer, 0, int(code[1:]) // 8)
    return index if code == "i64" else f.let(f"sext {code} {index} to i64")


# Along an axis.
@frozen
class Picked:
    """x at indices along an axis, one for each element of the result; x is as large as that but along the axis, where
    its stride is `step` and here 0."""

    x: Place
    indices: Place
    out: Place
    code: str
    step: int
    check: Check

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("picked", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, places, shape = Function(m, name, SHARED), (self.out, self.indices, self.x), self.out.shape
        steps, kind = [p.strides[-1] for p in places], f"i{8 * self.out.item}"

        def row(at: list[str]) -> None:
            def element(_: str, now: list[str]) -> list[str]:
                index = self.check.emit(f, read(f, self.code, now[1]))
                value = f.load(kind, f.at(now[2], f.mul(index, self.step)), 0, self.out.item)
                f.store(kind, value, now[0], 0, self.out.item)
                return [f.at(p, step) for p, step in zip(now, steps, strict=True)]
            f.loop(0, shape[-1], 1, [("ptr", a) for a in at], element)
        nest(f, places, shape[:-1], row)
        f.finish()


@frozen
class Scattered:
    """Updates written to `out` at indices along an axis, as `Picked` picks; threads share what is before the axis."""

    indices: Place
    updates: Place
    out: Place
    axis: int
    code: str
    step: int
    check: Check
    fold: Fold

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("scattered", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, shape = Function(m, name, SHARED), self.indices.shape
        places, lead = (self.indices, self.updates, self.out), shape[:self.axis]

        def element(at: list[str]) -> None:
            index = self.check.emit(f, read(f, self.code, at[0]))
            self.fold.emit(f, f.at(at[2], f.mul(index, self.step)), at[1])

        def part(n: str, _: list[str]) -> None:
            starts = [address(f, p, n, lead) for p in places]
            within(f, shape[self.axis:], [p.strides[self.axis:] for p in places], starts, element)
        f.loop(*f.share(math.prod(lead)), 1, [], part)
        f.finish()


def within(f: Function, shape: Shape, strides: Sequence[Shape], at: list[str], body: Callable[[list[str]], None]
           ) -> None:
    """`body(addresses)` for each index of some axes, in order."""
    if not shape:
        body(at)
        return

    def step(_: str, now: list[str]) -> list[str]:
        within(f, shape[1:], [s[1:] for s in strides], now, body)
        return [f.at(a, s[0]) for a, s in zip(now, strides, strict=True)]
    f.loop(0, shape[0], 1, [("ptr", a) for a in at], step)


def flat(p: Place, axis: int, shape: Shape) -> Place:
    """The part of an array that indices of a shape reach, as if it had one element along the axis."""
    strides = tuple(0 if n == axis else stride for n, stride in enumerate(p.strides))
    return replace(p, shape=shape, strides=strides, border=Border())


def moved(b: Bound, *names: str) -> bool:
    """Whether elements of arguments become those of the result as they are."""
    tensors: list[Tensor] = [*(b.args[n] for n in names), b.outs[0]]
    return tensors[0].type not in OBJECTS and all(
        t.type == tensors[0].type and t.quant == tensors[0].quant and t.size > 0 < t.rank for t in tensors)


def plain(b: Bound, *names: str) -> bool:
    """The same, by indices of 32 or 64 bits."""
    indices: Tensor = b.args["indices"]
    return indices.type in CODES and indices.size > 0 and moved(b, *names)


def _takes_picked(b: Bound, _: Machine) -> bool:
    return plain(b, "x")


def _make_picked(w: Workshop, group: Group) -> Task:
    b = group.head
    x, indices, out = w.place(b.slots["x"]), w.place(b.slots["indices"]), w.place(b.outputs[0])
    axis, code = b.args["axis"] % len(x.shape), CODES[b.args["indices"].type]
    return Picked(flat(x, axis, out.shape), indices, out, code, x.strides[axis], checked(w, b, x.shape[axis], code))


def _takes_scattered(b: Bound, _: Machine) -> bool:
    return plain(b, "x", "updates") and fold_of(b.args["fold"], b.outs[0].type) is not None


def _make_scattered(w: Workshop, group: Group) -> Phases:
    b = group.head
    indices, updates, out = w.place(b.slots["indices"]), w.place(b.slots["updates"]), w.place(b.outputs[0])
    axis, code = b.args["axis"] % len(out.shape), CODES[b.args["indices"].type]
    fold = fold_of(b.args["fold"], b.outs[0].type)
    assert fold is not None
    check = checked(w, b, out.shape[axis], code, back=True)
    return after(w, b, Scattered(indices, updates, flat(out, axis, indices.shape), axis, code, out.strides[axis], check,
                                 fold))


def after(w: Workshop, b: Bound, task: Task) -> Phases:
    """A task on a copy of x, or on x itself where that is its place."""
    x, out = w.place(b.slots["x"]), w.place(b.outputs[0])
    if x == out:
        return Phases((task,))
    copied = copies([(x, out)])
    return Phases((*(copied.tasks if isinstance(copied, Phases) else (copied,)), task))


# At tuples.
@frozen
class Stretches:
    """Updates of `inner` elements each written to `out` at tuples of indices, of which an axis has so many bytes."""

    indices: Place
    updates: Place
    out: Place
    count: int
    inner: int
    code: str
    axes: tuple[tuple[int, Check], ...]
    fold: Fold

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("stretches", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, size, width = Function(m, name, SHARED), self.fold.size, int(self.code[1:]) // 8
        shared = self.inner >= LONG
        first, last = f.share(self.inner if shared else 1)
        first, last = (v if shared else f.mul(v, self.inner) for v in (first, last))
        indices, updates, out = (f.at(p.base, p.offset) for p in (self.indices, self.updates, self.out))

        def one(n: str, _: list[str]) -> None:
            at: Operand = f.mul(first, size)
            here, source = f.at(indices, f.mul(n, len(self.axes) * width)), f.add(f.mul(n, self.inner * size), at)
            for k, (stride, check) in enumerate(self.axes):
                index = check.emit(f, read(f, self.code, f.at(here, k * width)))
                at = f.add(at, f.mul(index, stride))
            self._written(f, f.at(out, at), f.at(updates, source), f.let(f"sub i64 {last}, {first}"))
        f.loop(0, f.select(f.let(f"icmp slt i64 {first}, {last}"), "i64", str(self.count), "0"), 1, [], one)
        f.finish()

    def _written(self, f: Function, to: str, source: str, count: str) -> None:
        """So many neighbours."""
        if self.fold.kind == i.REPLACE:
            f.copy(to, source, f.mul(count, self.fold.size))
            return

        def element(_: str, now: list[str]) -> list[str]:
            self.fold.emit(f, *now)
            return [f.at(p, self.fold.size) for p in now]
        f.loop(0, count, 1, [("ptr", to), ("ptr", source)], element)


@frozen
class Cleared:
    """An array of zeros."""

    out: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            first, last = f.share(self.out.size)
            to = f.at(self.out.base, f.add(f.mul(first, self.out.item), self.out.offset))
            f.fill(to, 0, f.mul(f.let(f"sub i64 {last}, {first}"), self.out.item))
            f.finish()
        return m.once(("cleared", self), build)


def _tuples(w: Workshop, b: Bound, kind: int, back: bool) -> Stretches:
    indices, updates, out = w.place(b.slots["indices"]), w.place(b.slots["updates"]), w.place(b.outputs[0])
    code, indexed, strides = CODES[b.args["indices"].type], indices.shape[-1], dense_strides(out.shape, out.item)
    axes = tuple((stride, checked(w, b, n, code, back))
                 for n, stride in zip(out.shape[:indexed], strides, strict=False))
    fold = fold_of(kind, b.outs[0].type)
    assert fold is not None
    return Stretches(indices, updates, out, indices.size // indexed, math.prod(out.shape[indexed:]), code, axes, fold)


def _takes_tuples(b: Bound, machine: Machine) -> bool:
    return _takes_scattered(b, machine) and b.args["indices"].rank > 0


def _make_tuples(w: Workshop, group: Group) -> Phases:
    return after(w, group.head, _tuples(w, group.head, group.head.args["fold"], back=True))


def _takes_added(b: Bound, _: Machine) -> bool:
    """Updates on zeros of a shape that is known, as large as what they are added to."""
    indices, updates, out = b.args["indices"], b.args["updates"], b.outs[0]
    wanted = indices.shape[:-1] + out.shape[indices.shape[-1]:] if indices.rank else ()
    return plain(b, "updates") and fold_of(i.ADD, out.type) is not None and updates.shape == wanted


def _make_added(w: Workshop, group: Group) -> Phases:
    return Phases((Cleared(w.place(group.outputs[0])), _tuples(w, group.head, i.ADD, back=False)))


NATIVE = (
    native(Family(_takes_picked, _make_picked), i.GATHER_ELEMENTS),
    native(Family(_takes_scattered, _make_scattered), i.SCATTER_ELEMENTS),
    native(Family(_takes_tuples, _make_tuples), i.SCATTER_TUPLES),
    native(Family(_takes_added, _make_added), host.SCATTER_ND),
)
