"""Rows and elements picked by indices; one that is out of bounds is told, as in NumPy, by an error of the run."""
from __future__ import annotations

import math

import numpy as np

from ...frozen import frozen
from ...ops import ex, gather, host, indexing
from ...types import I32, OBJECTS, Tensor
from ..bind import Bound
from ..kernels.gather import BEYOND
from .ir import SHARED, Function, Module
from .machine import Machine
from .places import Place, dense_strides
from .strides import ENOUGH
from .tasks import Family, Group, Task, Workshop, native, tell

INDEX = 4


@frozen
class Check:
    """Indices have to be below a size, and not below 0, or, `back`, count from the end; `number` is that of the
    workshop's check, `fault` where to say it failed. Those of 64 bits have another check for what 32 do not hold."""

    size: int
    number: int
    fault: int
    back: bool = False
    beyond: int | None = None

    def emit(self, f: Function, index: str) -> str:
        """Emit the test of an index of 64 bits; the index from the start on, or 0 in place of one that fails."""
        above = f.let(f"add i64 {index}, {self.size}") if self.back else index
        wrong = f.let(f"icmp uge i64 {above}, {self.size * (1 + self.back)}")
        f.when(wrong, lambda: self._told(f, index))
        index = f.select(wrong, "i64", "0", index)
        return f.select(f.let(f"icmp slt i64 {index}, 0"), "i64", above, index) if self.back else index

    def _told(self, f: Function, index: str) -> None:
        low, beyond = f.let(f"trunc i64 {index} to i32"), self.beyond
        if beyond is None:
            tell(f, self.number, low, self.fault)
            return
        held = f.let(f"icmp eq i64 {index}, {f.let(f'sext i32 {low} to i64')}")
        f.when(held, lambda: tell(f, self.number, low, self.fault), lambda: tell(f, beyond, "0", self.fault))


def checked(w: Workshop, b: Bound, size: int, code: str = "i32", back: bool = False) -> Check:
    """The check of an operation's indices of a type along an axis of a size."""
    number = w.check(f"index {{}} is not in [{-size if back else 0}, {size})", b.origin)
    return Check(size, number, w.fault, back, w.check(BEYOND, b.origin) if code == "i64" else None)


@frozen
class Gather:
    """x [before, size, inner] at indices along its middle: [before, count, inner], of `inner` bytes; all are dense.

    Without a `check`, the indices are known to be in bounds.
    """

    x: Place
    indices: Place
    out: Place
    sizes: tuple[int, int, int, int]
    check: Check | None

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("gather", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        before, _, count, _ = self.sizes
        first, last = f.share(before if before >= ENOUGH else count)

        def part(i: str, _: list[str]) -> None:
            if before >= ENOUGH:
                f.loop(0, count, 1, [], lambda k, _: self._pick(f, k, i, 1))
            else:
                self._pick(f, i, "0", before)
        f.loop(first, last, 1, [], part)
        f.finish()

    def _pick(self, f: Function, k: str, first: str, times: int) -> None:
        """What index k picks, from so many parts of x."""
        _, size, count, inner = self.sizes
        x, indices, out = (f.at(p.base, p.offset) for p in (self.x, self.indices, self.out))
        index = f.let(f"sext i32 {f.load('i32', indices, f.mul(k, INDEX))} to i64")
        if self.check is not None:
            index = self.check.emit(f, index)
        source = f.at(x, f.mul(f.add(f.mul(first, size), index), inner))
        to = f.at(out, f.mul(f.add(f.mul(first, count), k), inner))

        def copy(_: str, now: list[str]) -> list[str]:
            f.copy(now[0], now[1], inner)
            return [f.at(now[0], count * inner), f.at(now[1], size * inner)]
        f.loop(0, times, 1, [("ptr", to), ("ptr", source)], copy)


def _arguments(b: Bound) -> tuple[str, str, int]:
    """The names of what is picked from and of the indices, and the axis."""
    if "lookups" in b.args:
        return "values", "lookups", 0
    return "x", "indices", b.args["axis"] % len(b.args["x"].shape)


def _within(indices: Tensor, *sizes: int) -> bool:
    """Whether indices, or tuples of them with a size for each, are known and in bounds."""
    if indices.data is None:
        return False
    data = indices.data.reshape(-1, len(sizes))
    return bool((data >= 0).all() and (data < np.array(sizes)).all())


def _takes(b: Bound, _: Machine) -> bool:
    """Known indices that are out of bounds are an error before a run, which NumPy's kernel raises."""
    names = _arguments(b)
    x, indices, out = b.args[names[0]], b.args[names[1]], b.outs[0]
    same = x.type == out.type not in OBJECTS and x.quant == out.quant and indices.type == I32
    return same and x.size > 0 < out.size and (indices.data is None or _within(indices, x.shape[names[2]]))


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    name, at, axis = _arguments(b)
    x, indices, out = w.place(b.slots[name]), w.place(b.slots[at]), w.place(b.outputs[0])
    size = x.shape[axis]
    check = None if _within(b.args[at], size) else checked(w, b, size)
    sizes = math.prod(x.shape[:axis]), size, indices.size, math.prod(x.shape[axis + 1:]) * x.item
    return Gather(x, indices, out, sizes, check)


# Tuples of indices.
@frozen
class Tuples:
    """Stretches of `inner` bytes of x, picked by tuples of indices that are together, `each` of them for a batch.

    `batch` are the bytes of x that one has. An axis that is indexed has so many bytes, and a check where its indices
    are not known.
    """

    x: Place
    indices: Place
    out: Place
    count: int
    each: int
    batch: int
    inner: int
    axes: tuple[tuple[int, Check | None], ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("tuples", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.count)
        x, indices, out = (f.at(p.base, p.offset) for p in (self.x, self.indices, self.out))

        def pick(i: str, _: list[str]) -> None:
            at, here = f.mul(f.div(i, self.each), self.batch), f.at(indices, f.mul(i, len(self.axes) * INDEX))
            for n, (size, check) in enumerate(self.axes):
                index = f.let(f"sext i32 {f.load('i32', here, n * INDEX)} to i64")
                at = f.add(at, f.mul(check.emit(f, index) if check else index, size))
            f.copy(f.at(out, f.mul(i, self.inner)), f.at(x, at), self.inner)
        f.loop(first, last, 1, [], pick)
        f.finish()


def _batched(b: Bound) -> tuple[int, int]:
    """How many leading axes are those of batches, and how many behind them are indexed."""
    indexed = 1 if "axis" in b.args else b.args["indices"].shape[-1]
    return b.args.get("batch", 0), indexed


def _takes_tuples(b: Bound, _: Machine) -> bool:
    x, indices, out = b.args["x"], b.args["indices"], b.outs[0]
    batch, indexed = _batched(b)
    if x.type != out.type or x.type in OBJECTS or x.quant != out.quant or indices.type != I32 or not indexed:
        return False
    good = indices.data is None or _within(indices, *x.shape[batch:batch + indexed])
    return x.size > 0 < out.size and good and b.args.get("axis", batch) == batch


def _make_tuples(w: Workshop, group: Group) -> Task:
    b = group.head
    x, indices, out = w.place(b.slots["x"]), w.place(b.slots["indices"]), w.place(b.outputs[0])
    batch, indexed = _batched(b)
    strides, axes, known = dense_strides(x.shape, x.item), [], b.args["indices"].data is not None
    for axis in range(batch, batch + indexed):
        axes.append((strides[axis], None if known else checked(w, b, x.shape[axis])))
    count = indices.size // indexed
    return Tuples(x, indices, out, count, count // math.prod(x.shape[:batch]), math.prod(x.shape[batch:]) * x.item,
                  math.prod(x.shape[batch + indexed:]) * x.item, tuple(axes))


NATIVE = (
    native(Family(_takes, _make), gather.GATHER, gather.EMBEDDING_LOOKUP, ex.GATHER_EX),
    native(Family(_takes_tuples, _make_tuples), host.GATHER_ND, host.GATHER_BATCHED, indexing.GATHER_ND_BATCHED),
)
