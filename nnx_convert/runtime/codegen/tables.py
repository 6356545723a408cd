"""Elements by tables of all answers there are, which NumPy's kernels make: exact by definition."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...frozen import frozen
from ...types import Array, Tensor
from ..bind import Bound, once
from .ir import SHARED, Function, Module, number, vector, width
from .places import Place
from .tasks import Task, Workshop

#: Elements that one turn of a loop looks up.
TURN = 8
#: Bytes that are picked at once out of two vectors of as many.
PICKED, BYTES = 64, "<64 x i8>"


def answers(b: Bound, **given: Array) -> Array:
    """An operation's answers where arguments of these names have these values."""
    args = {**b.args, **{n: Tensor(b.args[n].type, v.shape, b.args[n].quant, v) for n, v in given.items()}}
    shape = np.broadcast_shapes(*(v.shape for v in given.values()))
    made = once(b.op, args, (Tensor(b.outs[0].type, shape, b.outs[0].quant),))
    if made is None:
        raise TypeError(b.op.name)
    return np.ascontiguousarray(made[0])


def picked(f: Function, element: str, item: int, x: str, at: str) -> str:
    """The element of a table at x: the address of an integer of so many bytes and no sign."""
    index = f.let(f"zext i{8 * item} {f.load(f'i{8 * item}', x, 0, item)} to i64")
    size = width(element) // 8
    return f.load(element, at, f.mul(index, size), size)


def run(f: Function, x: str, to: str, table: str, items: tuple[int, int], first: str, last: str) -> None:
    """Emit neighbours from first to last looked up; `items` are the sizes of x's elements and of the table's."""
    def one(i: str, more: int = 0) -> None:
        kind = f"i{8 * items[1]}"
        value = picked(f, kind, items[0], f.at(x, f.add(f.mul(i, items[0]), more * items[0])), table)
        f.store(kind, value, to, f.add(f.mul(i, items[1]), more * items[1]), items[1])
    whole = f.add(first, f.mul(f.div(f.let(f"sub i64 {last}, {first}"), TURN), TURN))

    def turn(i: str, _: list[str]) -> None:
        for n in range(TURN):
            one(i, n)
    f.loop(first, whole, TURN, [], turn)
    f.loop(whole, last, 1, [], lambda i, _: one(i))


@frozen
class Lookup:
    """Each element of x by a table among the weights."""

    x: Place
    out: Place
    table: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("lookup", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        x, out, table = (f.at(base, offset) for base, offset in (
            (self.x.base, self.x.offset), (self.out.base, self.out.offset), ("%weights", self.table)))
        if m.machine.vbmi and self.x.item == self.out.item == 1:
            parts = [f.load(BYTES, table, n * PICKED, 1) for n in range(4)]
            by_vectors(f, self.x.size, PICKED, lambda at, count: f.store_first(count, PICKED, "i8", shuffled(
                f, f.load_first(count, PICKED, "i8", x, at), parts), out, at))
        else:
            run(f, x, out, table, (self.x.item, self.out.item), *f.share(self.x.size))
        f.finish()


def shuffled(f: Function, x: str, parts: Sequence[str]) -> str:
    """Bytes looked up in a table of 256, which is in four vectors: in either half, the higher one where the sign is."""
    low, high = (f.call(BYTES, "llvm.x86.avx512.vpermi2var.qi.512", (BYTES, a), (BYTES, x), (BYTES, b))
                 for a, b in zip(parts[::2], parts[1::2], strict=True))
    return f.let(f"select <{PICKED} x i1> {f.let(f'icmp slt {BYTES} {x}, zeroinitializer')}, {BYTES} {high}, "
                 f"{BYTES} {low}")


def by_vectors(f: Function, size: int, lanes: int, piece: Callable[[str, int], None]) -> None:
    """`piece(at, count)` for each vector of so many neighbours, shared by threads; the last one may be shorter."""
    first, last = f.share(-(-size // lanes))
    f.loop(first, f.least(last, size // lanes), 1, [], lambda i, _: piece(f.mul(i, lanes), lanes))
    if rest := size % lanes:
        f.when(f.let("icmp eq i64 %thread, 0"), lambda: piece(str(size - rest), rest))


@frozen
class Flips:
    """Bytes of which some bits change, the same ones in all: a grid moved by half of a byte's range, or not at all."""

    x: Place
    out: Place
    bits: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("flips", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes = 4 * m.machine.lanes
        kind = vector(lanes, "i8")
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)

        def piece(at: str, count: int) -> None:
            value = f.load_first(count, lanes, "i8", x, at)
            f.store_first(count, lanes, "i8", f.let(f"xor {kind} {value}, {number(kind, self.bits)}"), out, at)
        by_vectors(f, self.x.size, lanes, piece)
        f.finish()


def by_table(w: Workshop, x: Place, out: Place, table: Array) -> Task:
    """Each element of x by a table of raw results, for all raw numbers without their sign."""
    if x.item == out.item == 1:
        bits = table.view(np.uint8) ^ np.arange(table.size, dtype=np.uint8)
        if (bits == bits[0]).all():
            return Flips(x, out, int(bits.view(np.int8)[0]))
    return Lookup(x, out, w.pack(table))
