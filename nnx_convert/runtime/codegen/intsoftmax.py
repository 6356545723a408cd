"""SOFTMAX of bytes, and of 16-bit integers, as LiteRT's reference does it: the exponential is a table."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...ops import norm
from ...types import BYTES, Quant
from ..bind import Bound
from ..fixedmath import NEWTON_A, NEWTON_B
from ..fixedpoint import grid, limits, shift_right
from ..kernels.norm import curves16, exponentials, steps16
from ..kernels.tables import INTEGERS, reals
from .ir import SHARED, Function, Module, number
from .machine import Machine
from .places import Place
from .requantise import rounded_away
from .tasks import Family, Group, Task, Workshop, native

#: The greatest raw value of 32 bits, and 1 with two integer bits.
MOST, ONE = (1 << 31) - 1, 1 << 29
#: The bytes of a number of 16 bits.
WORD = 2
#: Elements of a row whose shares, of at most 2 ** 19 each, are no more than 32 bits together.
WIDEST = 4000


def by_rows(m: Module, name: str, x: Place, out: Place, size: int, row: Callable[[Function, str, str], None]) -> None:
    """Write a function that does `row(f, x, out)`, with addresses, for each row of so many elements."""
    f = Function(m, name, SHARED)
    first, last = f.share(x.size // size)
    begin = [f.at(p.base, p.offset) for p in (x, out)]
    f.loop(first, last, 1, [], lambda i, _: row(f, *(f.at(at, f.mul(i, size * p.item))
                                                     for at, p in zip(begin, (x, out), strict=True))))
    f.finish()


@frozen
class Softmax:
    """The softmax of rows of `size` bytes; exponentials and shares of sums are tables of 256 among the weights.

    Results are on the finest grid of their type, which begins at `low`.
    """

    x: Place
    out: Place
    size: int
    exponentials: int
    shares: int
    signed: bool
    low: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("softmax", self), lambda name: by_rows(m, name, self.x, self.out, self.size, self._row))

    def _row(self, f: Function, x: str, out: str) -> None:
        bits, item = 8 * self.out.item, self.out.item

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
        inverse, right = reciprocal(f, total, zeros), f.let(f"sub i64 {43 - bits}, {zeros}")
        half = f.let(f"shl i64 1, {f.let(f'sub i64 {right}, 1')}")

        def element(i: str, _: list[str]) -> None:
            y = f.let(f"ashr i64 {f.add(high_mul(f, inverse, share(tables[0], i)), half)}, {right}")
            y = f.call("i64", "llvm.smin.i64", ("i64", y), ("i64", str((1 << bits) - 1)))
            f.store(f"i{bits}", f.let(f"trunc i64 {f.add(y, self.low)} to i{bits}"), out, f.mul(i, item), item)
        f.loop(0, self.size, 1, [], element)


@frozen
class WideSoftmax:
    """The softmax of rows of `size` numbers of 16 bits; exponential and reciprocal are tables of 513 points.

    `scale` brings differences to the exponential's grid. Exponentials wait for the sum in the result.
    """

    x: Place
    out: Place
    size: int
    scale: tuple[int, int]
    exponentials: int
    reciprocals: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("widesoftmax", self), lambda name: by_rows(m, name, self.x, self.out, self.size, self._row))

    def _row(self, f: Function, x: str, out: str) -> None:
        def more(i: str, now: list[str]) -> list[str]:
            return [f.call("i64", "llvm.smax.i64", ("i64", now[0]), ("i64", _word(f, x, i)))]
        most = f.loop(0, self.size, 1, [("i64", str(-1 << 15))], more)[0]

        def share(i: str, now: list[str]) -> list[str]:
            d = f.let(f"sub i64 {_word(f, x, i)}, {most}")
            d = between(f, self.exponentials, _cut(f, f.add(scaled(f, d, *self.scale), (1 << 15) - 1)))
            f.store("i16", f.let(f"trunc i64 {d} to i16"), out, f.mul(i, WORD), WORD)
            return [f.add(now[0], d)]
        total = f.loop(0, self.size, 1, [("i64", "0")], share)[0]
        left = f.let(f"sub i64 {f.call('i64', 'llvm.ctlz.i64', ('i64', total), ('i1', 'true'))}, 33")
        moved = f.let(f"ashr i64 {f.add(f.let(f'shl i64 {total}, {left}'), 1 << 13)}, 14")
        inverse = between(f, self.reciprocals, _cut(f, f.add(moved, -3 << 15)))
        right = f.let(f"sub i64 30, {left}")
        half = f.let(f"shl i64 1, {f.add(right, -1)}")

        def element(i: str, _: list[str]) -> None:
            y = f.let(f"ashr i64 {f.add(f.mul(_word(f, out, i), inverse), half)}, {right}")
            y = f.call("i64", "llvm.smin.i64", ("i64", y), ("i64", str((1 << 15) - 1)))
            y = f.call("i64", "llvm.smax.i64", ("i64", y), ("i64", "0"))
            f.store("i16", f.let(f"trunc i64 {y} to i16"), out, f.mul(i, WORD), WORD)
        f.loop(0, self.size, 1, [], element)


def _word(f: Function, p: str, i: str) -> str:
    """A number of 16 bits."""
    return f.let(f"sext i16 {f.load('i16', p, f.mul(i, WORD), WORD)} to i64")


def _cut(f: Function, x: str) -> str:
    """Saturated to 16 bits."""
    x = f.call("i64", "llvm.smax.i64", ("i64", x), ("i64", str(-1 << 15)))
    return f.call("i64", "llvm.smin.i64", ("i64", x), ("i64", str((1 << 15) - 1)))


def between(f: Function, points: int, x: str) -> str:
    """`kernels.tables.between` of one number of 16 bits; the points, of as many, are among the weights."""
    at = f.at("%weights", f.add(points, f.mul(f.add(f.let(f"ashr i64 {x}, 7"), 256), WORD)))
    here, there = _word(f, at, "0"), _word(f, at, "1")
    rise = f.let(f"sub i64 {there}, {here}")
    slope = f.let(f"sext i16 {f.let(f'trunc i64 {rise} to i16')} to i64")
    more = f.let(f"ashr i64 {f.add(f.mul(slope, f.let(f'and i64 {x}, 127')), 64)}, 7")
    return f.let(f"sext i16 {f.let(f'trunc i64 {f.add(here, more)} to i16')} to i64")


def scaled(f: Function, x: str, m: int, s: int) -> str:
    """`fixedpoint.scale32` of an integer of 32 bits in 64."""
    y = high_mul(f, wrapped(f, f.let(f"shl i64 {x}, {max(s, 0)}")), m)
    if s >= 0:
        return y
    less = f.let(f"ashr i64 {y}, 63")
    return f.let(f"ashr i64 {f.add(f.add(y, 1 << -s >> 1), less)}, {-s}")


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


def _in_rows(b: Bound) -> bool:
    """Whether rows, on one grid before and one after, are along the last axis and not too long."""
    x, out = b.args["x"], b.outs[0]
    if not isinstance(x.quant, Quant) or not isinstance(out.quant, Quant) or not x.shape or not x.size:
        return False
    return bool(b.args["axis"] % x.rank == x.rank - 1 and x.shape[-1] <= WIDEST)


def _takes(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    typed = x.type in BYTES and out.type.dtype in (x.type.dtype, np.int16)
    return typed and _in_rows(b) and (out.scale, grid(out)[1]) == (
        2.0 ** (-8 * out.type.dtype.itemsize), limits(out)[0])


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x = b.args["x"]
    _, exps = exponentials(x, b.args["beta"])
    first, second = (w.pack(np.asarray(t, np.int32)) for t in (exps, shift_right(exps, 12)))
    return Softmax(w.place(b.slots["x"]), w.place(b.outputs[0]), x.shape[-1], first, second, x.type.dtype.kind == "i",
                  limits(b.outs[0])[0])


# Short rows of bytes on grids that LiteRT has no integer kernel for.
@frozen
class RealSoftmax:
    """The softmax of rows of fewer than eight bytes, in floats: of each byte below each greatest one, the exponential
    is in a table [256, 256] among the weights."""

    x: Place
    out: Place
    size: int
    exponentials: int
    signed: bool
    inverse: float
    zero: int
    limits: tuple[int, int]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("realsoftmax", self), lambda name: by_rows(m, name, self.x, self.out, self.size, self._row))

    def _row(self, f: Function, x: str, out: str) -> None:
        bits, item = 8 * self.out.item, self.out.item
        bytes_ = [f.let(f"zext i8 {f.load('i8', x, n, 1)} to i64") for n in range(self.size)]
        order = [f.let(f"xor i64 {v}, 128") if self.signed else v for v in bytes_]
        most = order[0]
        for v in order[1:]:
            most = f.call("i64", "llvm.smax.i64", ("i64", most), ("i64", v))
        table = f.at("%weights", f.add(self.exponentials, f.mul(most, 256 * 4)))
        values = [f.load("float", table, f.mul(v, 4)) for v in order]
        total = values[0]
        for v in values[1:]:
            total = f.let(f"fadd float {total}, {v}")
        for n, v in enumerate(values):
            share = f.let(f"fmul float {f.let(f'fdiv float {v}, {total}')}, {number('float', self.inverse)}")
            y = f.let(f"add i32 {rounded_away(f, 'float', 'i32', share)}, {self.zero}")
            for bound, limit in zip(("smax", "smin"), self.limits, strict=True):
                y = f.call("i32", f"llvm.{bound}.i32", ("i32", y), ("i32", str(limit)))
            f.store(f"i{bits}", f.let(f"trunc i32 {y} to i{bits}"), out, n * item, item)


def _takes_real(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    typed = x.type in BYTES and out.type in INTEGERS
    return typed and _in_rows(b) and x.shape[-1] < 8 and out.scale > 2.0 ** -20


def _make_real(w: Workshop, group: Group) -> Task:
    b = group.head
    x, out = b.args["x"], b.outs[0]
    low, _ = limits(x)
    real = reals(x, np.arange(low, low + 256))
    with np.errstate(all="ignore"):
        below = (real[None] - real[:, None]) * (np.float32(b.args["beta"]) if b.args["beta"] != 1 else np.float32(1))
        table = np.exp(below)
    scale, zero = grid(out)
    return RealSoftmax(w.place(b.slots["x"]), w.place(b.outputs[0]), x.shape[-1], w.pack(table), low < 0,
                      float(np.float32(1) / scale), zero, limits(out))


def _takes_wide(b: Bound, _: Machine) -> bool:
    """On the grids of TFLite's kernel, whose sums have 31 bits."""
    x, out = b.args["x"], b.outs[0]
    typed = x.type.dtype == out.type.dtype == np.int16
    return typed and _in_rows(b) and (out.scale, grid(out)[1]) == (2.0 ** -15, 0)


def _make_wide(w: Workshop, group: Group) -> Task:
    b = group.head
    x = b.args["x"]
    exponentials, reciprocals = (w.pack(points.astype(np.int16)) for points in curves16())
    return WideSoftmax(w.place(b.slots["x"]), w.place(b.outputs[0]), x.shape[-1], steps16(x, b.args["beta"]),
                      exponentials, reciprocals)


NATIVE = (
    native(Family(_takes, _make, retypes=True), norm.SOFTMAX, otherwise=True),
    native(Family(_takes_wide, _make_wide, retypes=True), norm.SOFTMAX, otherwise=True),
    native(Family(_takes_real, _make_real, retypes=True), norm.SOFTMAX, otherwise=True),
)
