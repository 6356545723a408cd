"""SOFTMAX of bytes as LiteRT's reference does it: the exponential is a table of the 256 differences."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ops import norm
from ...types import BYTES, Quant
from ..bind import Bound
from ..fixedmath import NEWTON_A, NEWTON_B
from ..fixedpoint import grid, limits, shift_right
from ..kernels.norm import exponentials
from .ir import SHARED, Function, Module
from .machine import Machine
from .places import Place
from .tasks import Family, Group, Task, Workshop, native

#: The greatest raw value of 32 bits, and 1 with two integer bits.
MOST, ONE = (1 << 31) - 1, 1 << 29
#: Elements of a row whose shares, of at most 2 ** 19 each, are no more than 32 bits together.
WIDEST = 4000


@dataclass(frozen=True)
class Shares:
    """The softmax of rows of `size` bytes; exponentials and shares of sums are tables of 256 among the weights."""

    x: Place
    out: Place
    size: int
    exponentials: int
    shares: int
    signed: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("shares", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.size // self.size)
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)

        def row(i: str, _: list[str]) -> None:
            at = f.mul(i, self.size)
            self._row(f, f.at(x, at), f.at(out, at))
        f.loop(first, last, 1, [], row)
        f.finish()

    def _row(self, f: Function, x: str, out: str) -> None:
        def read(i: str) -> str:
            return f.let(f"{'sext' if self.signed else 'zext'} i8 {f.load('i8', x, i, 1)} to i64")

        def more(i: str, now: list[str]) -> list[str]:
            return [f.call("i64", "llvm.smax.i64", ("i64", now[0]), ("i64", read(i)))]
        most = f.loop(0, self.size, 1, [("i64", "-128")], more)[0]
        tables = [f.at("%weights", f.add(table, f.mul(f.let(f"sub i64 255, {most}"), 4)))
                  for table in (self.exponentials, self.shares)]

        def share(table: str, i: str) -> str:
            return f.let(f"sext i32 {f.load('i32', table, f.mul(read(i), 4))} to i64")
        total = f.loop(0, self.size, 1, [("i64", "0")], lambda i, now: [f.add(now[0], share(tables[1], i))])[0]
        zeros = f.let(f"sub i64 {f.call('i64', 'llvm.ctlz.i64', ('i64', total), ('i1', 'true'))}, 32")
        inverse, right = reciprocal(f, total, zeros), f.let(f"sub i64 35, {zeros}")
        half = f.let(f"shl i64 1, {f.let(f'sub i64 {right}, 1')}")
        low = -128 if self.signed else 0

        def element(i: str, _: list[str]) -> None:
            y = f.let(f"ashr i64 {f.add(high_mul(f, inverse, share(tables[0], i)), half)}, {right}")
            y = f.call("i64", "llvm.smin.i64", ("i64", y), ("i64", "255"))
            f.store("i8", f.let(f"trunc i64 {f.add(y, low)} to i8"), out, i, 1)
        f.loop(0, self.size, 1, [], element)


def high_mul(f: Function, a: str, b: str | int) -> str:
    """`fixedpoint.high_mul` of integers of 32 bits in 64."""
    return f.let(f"ashr i64 {f.add(f.mul(a, b), 1 << 30)}, 31")


def wrapped(f: Function, x: str) -> str:
    """The low 32 bits, signed."""
    return f.let(f"sext i32 {f.let(f'trunc i64 {x} to i32')} to i64")


def shifted(f: Function, x: str, by: int) -> str:
    """x * 2 ** by, saturated."""
    top = (1 << (31 - by)) - 1
    found = f.let(f"shl i64 {x}, {by}")
    found = f.select(f.let(f"icmp sgt i64 {x}, {top}"), "i64", str(MOST), found)
    return f.select(f.let(f"icmp slt i64 {x}, {-top}"), "i64", str(-MOST - 1), found)


def reciprocal(f: Function, x: str, zeros: str) -> str:
    """`fixedmath.reciprocal`: 1 / x of x >= 1 with so many leading zeros, without integer bits; by Newton's method."""
    rest = f.let(f"sub i64 {f.let(f'shl i64 {x}, {zeros}')}, {1 << 31}")
    half = f.let(f"ashr i64 {f.add(rest, MOST + 1)}, 1")
    found = wrapped(f, f.add(high_mul(f, half, NEWTON_B), NEWTON_A))
    for _ in range(3):
        error = wrapped(f, f.let(f"sub i64 {ONE}, {high_mul(f, half, found)}"))
        found = wrapped(f, f.add(found, shifted(f, high_mul(f, found, error), 2)))
    return shifted(f, found, 1)


def _takes(b: Bound, _: Machine) -> bool:
    x, out, axis = b.args["x"], b.outs[0], b.args["axis"]
    last = axis % len(x.shape) == len(x.shape) - 1 if x.shape else False
    bytes_ = x.type == out.type and x.type in BYTES and isinstance(x.quant, Quant) and isinstance(out.quant, Quant)
    return last and bytes_ and 0 < x.shape[-1] <= WIDEST and x.size > 0 and (
        out.scale, grid(out)[1]) == (2.0 ** -8, limits(out)[0])


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x = b.args["x"]
    _, exps = exponentials(x, b.args["beta"])
    first, second = (w.pack(np.asarray(t, np.int32)) for t in (exps, shift_right(exps, 12)))
    return Shares(w.place(b.slots["x"]), w.place(b.outputs[0]), x.shape[-1], first, second, x.type.dtype.kind == "i")


native(Family(_takes, _make), norm.SOFTMAX, of_bytes=True)
