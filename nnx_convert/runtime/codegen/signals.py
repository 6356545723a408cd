"""The audio front end of TFLite-Micro in integers, as `kernels/custom_signal.py` has it.

There are some hundred samples and some dozen channels, so that all but samples are done one by one.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...frozen import frozen
from ...ops import custom_signal as s
from ...types import I16, U32, U64, Array, Q16S, product
from ..bind import Bound
from ..kernels.custom_signal import (
    LOG_BITS, LOG_OF_2, LOGS, OUT_BITS, SEGMENT_BITS, SNR_BITS, banked, values)
from .arithmetic import bounded
from .ir import SHARED, Function, Module, Operand, number, vector
from .machine import Machine
from .moves import address
from .places import Place
from .scalars import SCALARS
from .tasks import Family, Group, Task, Workshop, native
from .turns import every_other, neighbours

#: Samples, and bytes of one and of numbers of 32 and of 64 bits.
INT16, SHORT, WORD, LONG = (I16, Q16S), 2, 4, 8
#: The largest root of a number of 64 bits, and of one of 32.
ROOT, SHORT_ROOT = (1 << 32) - 1, (1 << 16) - 1


class Words:
    """Integers of 64 bits, computed one by one."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def load(self, code: str, at: str, index: Operand = 0, *, signed: bool = False) -> str:
        """An element of an array, widened."""
        size = {"i16": SHORT, "i32": WORD, "i64": LONG}[code]
        found = self.f.load(code, at, self.f.mul(index, size), size)
        return found if size == LONG else self.f.let(f"{'s' if signed else 'z'}ext {code} {found} to i64")

    def store(self, code: str, value: str, at: str, index: Operand = 0) -> None:
        """An element, cut to its width."""
        size = {"i16": SHORT, "i32": WORD, "i64": LONG}[code]
        value = value if size == LONG else self.f.let(f"trunc i64 {value} to {code}")
        self.f.store(code, value, at, self.f.mul(index, size), size)

    def do(self, word: str, a: Operand, b: Operand) -> str:
        """An instruction of two numbers."""
        return self.f.let(f"{word} i64 {a}, {b}")

    def cut(self, a: str) -> str:
        """The lower 32 bits."""
        return self.do("and", a, 0xFFFFFFFF)

    def either(self, relation: str, a: Operand, b: Operand, yes: Operand, no: Operand) -> str:
        """One of two numbers, by a comparison of two."""
        return self.f.select(self.do(f"icmp {relation}", a, b), "i64", str(yes), str(no))

    def one_if(self, relation: str, a: Operand, b: Operand) -> str:
        """1 where a comparison holds, else 0."""
        return self.f.let(f"zext i1 {self.do(f'icmp {relation}', a, b)} to i64")

    def bit_length(self, a: str) -> str:
        """How many bits a number has."""
        return self.do("sub", 64, self.f.call("i64", "llvm.ctlz.i64", ("i64", a), ("i1", "false")))

    def moved(self, a: str, left: str) -> str:
        """A number shifted to the left by so many bits, to the right where there are fewer than none."""
        right = self.do("sub", 0, left)
        return self.either("sgt", left, 0, self.do("shl", a, self.either("sgt", left, 0, left, 0)),
                           self.do("lshr", a, self.either("sgt", right, 0, right, 0)))


@frozen
class Samples:
    """Rows of samples by weights, shifted to the right and saturated; or the squared magnitudes of some pairs."""

    x: Place
    out: Place
    weights: Place | None
    shift: int = 0
    span: tuple[int, int] = (0, 0)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("samples", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(product(self.x.shape[:-1]))

        def row(i: str, _: list[str]) -> None:
            x, out = (address(f, p, i, p.shape[:-1]) for p in (self.x, self.out))
            if self.weights is None:
                self._energy(f, x, out)
            else:
                self._window(f, x, out, f.at(self.weights.base, self.weights.offset))
        f.loop(first, last, 1, [], row)
        f.finish()

    def _window(self, f: Function, x: str, out: str, weights: str) -> None:
        def some(i: str, lanes: int) -> None:
            narrow, wide, at = vector(lanes, "i16"), vector(lanes, "i32"), f.mul(i, SHORT)
            a, b = (f.let(f"sext {narrow} {f.load(narrow, p, at, SHORT)} to {wide}") for p in (x, weights))
            found = f.let(f"ashr {wide} {f.let(f'mul {wide} {a}, {b}')}, {number(wide, self.shift)}")
            found = bounded(f, wide, SCALARS[I16], found, -0x8000, 0x7FFF)
            f.store(narrow, f.let(f"trunc {wide} {found} to {narrow}"), out, at, SHORT)
        neighbours(f, 0, self.x.shape[-1], f.machine.lanes, some)

    def _energy(self, f: Function, x: str, out: str) -> None:
        first, last = self.span
        f.fill(out, 0, self.out.shape[-1] * WORD)

        def some(i: str, lanes: int) -> None:
            wide, narrow = vector(lanes, "i32"), vector(lanes, "i16")
            read = every_other(f, narrow, f.at(x, f.mul(i, 2 * SHORT)), SHORT)
            values = [f.let(f"sext {narrow} {v} to {wide}") for v in read]
            squares = [f.let(f"mul {wide} {v}, {v}") for v in values]
            f.store(wide, f.let(f"add {wide} {squares[0]}, {squares[1]}"), out, f.mul(i, WORD), WORD)
        neighbours(f, first, last, f.machine.lanes, some)


@frozen
class AutoScale:
    """All samples shifted to the left as far as none overflows, and by how far; one thread does that."""

    x: Place
    out: Place
    bits: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("autoscale", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        f.when(f.let("icmp eq i64 %thread, 0"), lambda: self._all(f))
        f.finish()

    def _all(self, f: Function) -> None:
        x, out, bits = (f.at(p.base, p.offset) for p in (self.x, self.out, self.bits))
        words = Words(f)

        def more(i: str, now: list[str]) -> list[str]:
            value = words.load("i16", x, i, signed=True)
            size = words.either("slt", value, 0, words.do("sub", 0, value), value)
            return [words.either("sgt", size, now[0], size, now[0])]
        most = f.loop(0, self.x.size, 1, [("i64", "0")], more)[0]
        room = words.do("sub", 15, words.bit_length(most))
        room = words.either("eq", most, 0, 0, words.either("sgt", room, 0, room, 0))
        words.store("i32", room, bits)
        f.loop(0, self.x.size, 1, [], lambda i, _: words.store(
            "i16", words.do("shl", words.load("i16", x, i), room), out, i))


@frozen
class FilterBank:
    """Sums of products by rows of weights, which wrap; a row is its first column, how many there are, and them.

    Where in the table each row is stands in front of them.
    """

    x: Place
    out: Place
    table: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("filterbank", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        words, table = Words(f), f.at("%weights", self.table)
        x, out = (f.at(p.base, p.offset) for p in (self.x, self.out))
        first, last = f.share(self.out.size)

        def channel(c: str, _: list[str]) -> None:
            row = f.at(table, f.mul(words.load("i64", table, c), LONG))
            low, count = words.load("i64", row), words.load("i64", row, 1)
            part, weights = f.at(x, f.mul(low, WORD)), f.at(row, 2 * LONG)

            def more(i: str, now: list[str]) -> list[str]:
                return [words.do("add", now[0], words.do("mul", words.load("i32", part, i),
                                                         words.load("i64", weights, i)))]
            words.store("i64", f.loop(0, count, 1, [("i64", "0")], more)[0], out, c)
        f.loop(first, last, 1, [], channel)
        f.finish()


#: What is done to one element: (words, addresses of what is read, and of what is written, its index, numbers).
Emit = Callable[[Words, list[str], list[str], str, tuple[int, ...]], None]


@frozen
class Channels:
    """An operation of single numbers; what it reads that is no such number is whole."""

    op: str
    reads: tuple[Place, ...]
    outs: tuple[Place, ...]
    numbers: tuple[int, ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("channels", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.outs[0].size)
        reads, outs = ([f.at(p.base, p.offset) for p in places] for places in (self.reads, self.outs))
        f.loop(first, last, 1, [], lambda i, _: EMITS[self.op](Words(f), reads, outs, i, self.numbers))
        f.finish()


def _root(w: Words, reads: list[str], outs: list[str], i: str, _: tuple[int, ...]) -> None:
    """The root rounded to the nearest: FLOAT64's, mended by one."""
    x, bits = w.load("i64", reads[0], i), w.do("and", w.load("i32", reads[1]), 63)
    real = w.f.call("double", "llvm.sqrt.f64", ("double", w.f.let(f"uitofp i64 {x} to double")))
    root = w.f.let(f"fptosi double {real} to i64")
    root = w.either("ugt", root, ROOT, ROOT, root)
    root = w.do("sub", root, w.one_if("ugt", w.do("mul", root, root), x))
    next_ = w.do("add", root, 1)
    fits = w.do("and", w.one_if("ult", root, ROOT), w.one_if("ule", w.do("mul", next_, next_), x))
    root = w.do("add", root, fits)
    most = w.either("ugt", x, 0xFFFFFFFF, ROOT, SHORT_ROOT)
    above = w.one_if("ugt", w.do("sub", x, w.do("mul", root, root)), root)
    found = w.do("add", root, w.do("and", above, w.one_if("ne", root, most)))
    w.store("i32", w.do("lshr", found, bits), outs[0], i)


def _subtraction(w: Words, reads: list[str], outs: list[str], i: str, numbers: tuple[int, ...]) -> None:
    columns, gain, keep, odd_gain, odd_keep, least, scale_bits, bits, clamp = numbers
    x, noise = (w.load("i32", at, i) for at in reads)
    odd = w.do("and", w.f.rem(i, columns), 1)
    share, rest = (w.either("eq", odd, 1, a, b) for a, b in ((odd_gain, gain), (odd_keep, keep)))
    scaled = w.cut(w.do("shl", x, scale_bits))
    now = w.cut(w.do("lshr", w.do("add", w.do("mul", scaled, share), w.do("mul", noise, rest)), bits))
    below = w.either("ult", now, scaled, now, scaled)
    w.store("i32", below if clamp else now, outs[1], i)
    floor = w.cut(w.do("lshr", w.do("mul", x, least), bits))
    left = w.do("lshr", w.do("sub", scaled, below), scale_bits)
    w.store("i32", w.either("ugt", left, floor, left, floor), outs[0], i)


def _gain(w: Words, noise: str, table: str) -> str:
    """`kernels.custom_signal.interpolated`, as a number of 32 bits."""
    power = w.bit_length(noise)
    at = w.do("sub", w.do("shl", power, 2), 6)
    at = w.either("slt", at, 0, 0, at)
    part = w.do("and", w.moved(noise, w.do("sub", 11, power)), 0x3FF)
    start, slope, bend = (w.load("i16", table, w.do("add", at, n), signed=True) for n in range(3))
    curve = w.do("add", w.do("ashr", w.do("mul", bend, part), 5), w.do("shl", slope, 5))
    found = w.do("ashr", w.do("add", w.do("mul", curve, part), 1 << 14), 15)
    small = w.load("i16", table, w.either("ult", noise, 2, noise, 2), signed=True)
    found = w.either("ule", noise, 2, small, w.do("add", found, start))
    return w.cut(w.do("ashr", w.do("shl", found, 48), 48))


def _pcan(w: Words, reads: list[str], outs: list[str], i: str, numbers: tuple[int, ...]) -> None:
    x, noise = (w.load("i32", at, i) for at in reads[:2])
    snr = w.cut(w.do("lshr", w.do("mul", x, _gain(w, noise, reads[2])), numbers[0]))
    square = w.do("lshr", w.cut(w.do("mul", snr, snr)), 2 + 2 * SNR_BITS - OUT_BITS)
    above = w.do("sub", w.do("lshr", snr, SNR_BITS - OUT_BITS), 1 << OUT_BITS)
    w.store("i32", w.either("ult", snr, 2 << SNR_BITS, square, above), outs[0], i)


def _log(w: Words, reads: list[str], outs: list[str], i: str, numbers: tuple[int, ...]) -> None:
    scale, bits, half = *numbers, 1 << LOG_BITS - 1
    scaled = w.cut(w.do("shl", w.load("i32", reads[0], i), bits))
    x = w.either("ult", scaled, 1, 1, scaled)
    whole = w.do("sub", w.bit_length(x), 1)
    part = w.moved(w.do("sub", x, w.do("shl", 1, whole)), w.do("sub", LOG_BITS, whole))
    at = w.do("lshr", part, LOG_BITS - SEGMENT_BITS)
    low, high = (w.load("i64", reads[1], w.do("add", at, n)) for n in range(2))
    rest = w.do("sub", part, w.do("shl", at, LOG_BITS - SEGMENT_BITS))
    inside = w.do("ashr", w.do("mul", w.do("sub", high, low), rest), LOG_BITS)
    log2 = w.do("add", w.do("add", w.do("shl", whole, LOG_BITS), part), w.do("add", low, inside))
    natural = w.do("ashr", w.do("add", w.do("mul", log2, LOG_OF_2), half), LOG_BITS)
    found = w.do("lshr", w.do("add", w.cut(w.do("mul", natural, scale)), half), LOG_BITS)
    found = w.either("ugt", found, 0x7FFF, 0x7FFF, found)
    w.store("i16", w.either("ugt", scaled, 1, found, 0), outs[0], i)


EMITS: Mapping[str, Emit] = {"SIGNAL_SQUARE_ROOT": _root, "SIGNAL_SPECTRAL_SUBTRACTION": _subtraction,
                             "SIGNAL_PCAN": _pcan, "SIGNAL_LOG": _log}


# Which operations, and the numbers of each.
def _takes_samples(b: Bound, _: Machine) -> bool:
    x, weights = b.args["x"], b.args.get("weights")
    return x.type in INT16 and x.size > 0 and (weights is None or weights.type in INT16) and (
        b.args.get("shift", 0) < 32)


def _make_samples(w: Workshop, group: Group) -> Task:
    b, a = group.head, group.head.args
    x, out = w.place(b.slots["x"]), w.place(b.outputs[0])
    if b.op is s.SIGNAL_WINDOW:
        return Samples(x, out, w.place(b.slots["weights"]), a["shift"])
    return Samples(x, out, None, 0, (a["start"], a["end"]))


def _make_scale(w: Workshop, group: Group) -> Task:
    b = group.head
    return AutoScale(w.place(b.slots["x"]), *map(w.place, b.outputs))


def _bank(b: Bound) -> Array | None:
    """The filters; None where they are no constants, or lie outside of what they are for."""
    given = [b.args[n] for n in ("weights", "unweights", "places", "starts", "widths")]
    if any(t.data is None for t in given):
        return None
    try:
        return banked(b.args["x"].shape[0], b.args["channels"], *map(values, given))
    except ValueError:
        return None


def _make_bank(w: Workshop, group: Group) -> Task:
    b, bank = group.head, _bank(group.head)
    assert bank is not None
    rows, offsets, at = list[Array](), list[int](), len(bank)
    for row in bank:
        used = np.flatnonzero(row)
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        rows.append(np.concatenate([np.array([first, last - first], np.uint64), row[first:last]]))
        offsets.append(at)
        at += rows[-1].size
    table = w.pack(np.concatenate([np.array(offsets, np.uint64), *rows]))
    return FilterBank(w.place(b.slots["x"]), w.place(b.outputs[0]), table)


def _numbers(b: Bound) -> tuple[int, ...]:
    a = b.args
    if b.op is s.SIGNAL_SPECTRAL_SUBTRACTION:
        words = (a[n] & 0xFFFFFFFF for n in ("smoothing", "rest", "odd_smoothing", "odd_rest", "least"))
        return a["x"].shape[-1], *words, a["scale_bits"], a["bits"], int(a["clamp"])
    return (a["scale"], a["bits"]) if b.op is s.SIGNAL_LOG else (a["shift"],) if b.op is s.SIGNAL_PCAN else ()


def _takes_channels(b: Bound, _: Machine) -> bool:
    """Shifts are within their words."""
    a, op = b.args, b.op
    wide = {s.SIGNAL_SPECTRAL_SUBTRACTION.name: 64, s.SIGNAL_LOG.name: 32}.get(op.name, 0)
    kind = U64 if op is s.SIGNAL_SQUARE_ROOT else U32
    return a["x"].type == kind and a["x"].size > 0 and a["x"].rank > 0 and a.get("shift", 0) < 64 and (
        not wide or a["bits"] < wide) and a.get("scale_bits", 0) < 32 and (
        "gains" not in a or a["gains"].type in INT16)


def _make_channels(w: Workshop, group: Group) -> Task:
    b = group.head
    reads = [w.place(slot) for slot in b.slots.values()]
    if b.op is s.SIGNAL_LOG:
        reads.append(Place("%weights", w.pack(LOGS), LOGS.shape, LOGS.strides, LONG))
    return Channels(b.op.name, tuple(reads), tuple(map(w.place, b.outputs)), _numbers(b))


NATIVE = (
    native(Family(_takes_samples, _make_samples), s.SIGNAL_WINDOW, s.SIGNAL_ENERGY),
    native(Family(_takes_samples, _make_scale), s.SIGNAL_AUTO_SCALE),
    native(Family(lambda b, _: _bank(b) is not None, _make_bank), s.SIGNAL_FILTER_BANK),
    native(Family(_takes_channels, _make_channels), s.SIGNAL_SQUARE_ROOT, s.SIGNAL_SPECTRAL_SUBTRACTION, s.SIGNAL_PCAN,
           s.SIGNAL_LOG),
)
