"""Fourier transforms of rows of real numbers: in floats, and in the integers of `kissfft`, bit for bit.

A row of an even length is taken for half as many complex numbers; what their transform is of is told apart last. A
stage makes of p transforms of m numbers each one of p * m. Between stages number k of transform t lies at k * g + t,
g being how many there are, so that a stage writes neighbours and the last one leaves all in order; it reads neighbours,
too, but for the last stages, whose few transforms are told apart by a shuffle.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ...frozen import frozen
from ...ops import custom_signal as s, host
from ...types import F32, I16, I32, Array, Q16S
from ..bind import Bound
from ..kissfft import Transform
from .integers import shuffled
from .ir import SHARED, Function, Module, Operand, number, parts, vector
from .machine import Machine
from .places import ITEM, Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .tiles import scarce
from .turns import QUAD, dealt, every_other, neighbours

#: Real and imaginary parts.
Pair = tuple[str, str]
#: Reads a part of a number, and puts a part of a result away.
Read = Callable[[int, int], str]
Put = Callable[[int, int, str], None]
#: The odd primes that floats' lengths may be products of, beside twos.
PRIMES = (3, 5, 7)


@frozen
class Numbers:
    """The arithmetic of one transform: `bits` is 0 of floats, else how wide integers are stored.

    Integers of 16 bits are computed in 32, those of 32 in 64. Where `kissfft` brings sums back to their width, what is
    above it is left here: products are of the bits below, as is what is stored, and `half` is given what was `told`.
    """

    bits: int

    @property
    def stored(self) -> str:
        """The type of a number of a row."""
        return f"i{self.bits}" if self.bits else "float"

    @property
    def code(self) -> str:
        """The type in which is computed."""
        return f"i{2 * self.bits}" if self.bits else "float"

    @property
    def item(self) -> int:
        """Bytes of a number of a row."""
        return self.bits // 8 or ITEM

    @property
    def wide(self) -> int:
        """Bytes of a number in which is computed."""
        return self.bits // 4 or ITEM

    def widened(self, f: Function, lanes: int, x: str) -> str:
        """Stored numbers as those in which is computed."""
        return f.let(f"sext {vector(lanes, self.stored)} {x} to {vector(lanes, self.code)}") if self.bits else x

    def narrowed(self, f: Function, lanes: int, x: str) -> str:
        """Numbers as they are stored."""
        return f.let(f"trunc {vector(lanes, self.code)} {x} to {vector(lanes, self.stored)}") if self.bits else x

    def told(self, f: Function, t: str, x: str) -> str:
        """A number with its sign in all bits above its width."""
        if not self.bits:
            return x
        return f.let(f"ashr {t} {f.let(f'shl {t} {x}, {number(t, self.bits)}')}, {number(t, self.bits)}")

    def round(self, f: Function, t: str, x: str) -> str:
        """A product as a number again."""
        if not self.bits:
            return x
        more = f.let(f"add {t} {x}, {number(t, 1 << self.bits - 2)}")
        return f.let(f"lshr {t} {more}, {number(t, self.bits - 1)}")

    def product(self, f: Function, t: str, a: str, b: str) -> str:
        """The product of numbers, as wide as it gets."""
        if not self.bits:
            return f.let(f"fmul {t} {a}, {b}")
        half, word = vector(parts(t)[0], self.stored), "zext" if self.by_hand(f, t) else "sext"
        low = [f.let(f"{word} {half} {f.let(f'trunc {t} {v} to {half}')} to {t}") for v in (a, b)]
        found = f.let(f"mul {t} {low[0]}, {low[1]}")
        return f.let(f"sub {t} {found}, {self._signs(f, t, a, b)}") if self.by_hand(f, t) else found

    def by_hand(self, f: Function, t: str) -> bool:
        """Whether these are vectors that the machine multiplies as numbers without signs alone."""
        return self.bits == 32 and t.startswith("<") and f.machine.x86 and not f.machine.avx2

    @staticmethod
    def _signs(f: Function, t: str, a: str, b: str) -> str:
        """What a product of numbers without signs has too much; a constant is not below zero."""
        whole = vector(2 * parts(t)[0], "i32")

        def some(x: str, y: str) -> str:
            """x where y is below zero."""
            signs = f.let(f"ashr {whole} {f.let(f'bitcast {t} {y} to {whole}')}, {number(whole, 31)}")
            return f.let(f"and {t} {x}, {f.let(f'bitcast {whole} {signs} to {t}')}")
        less = some(b, a) if b.startswith("splat") else f.let(f"add {t} {some(a, b)}, {some(b, a)}")
        return f.let(f"shl {t} {less}, {number(t, 32)}")

    def over(self, f: Function, t: str, x: str, by: int) -> str:
        """x / by; floats are divided last."""
        if not self.bits:
            return x
        share = ((1 << self.bits - 1) - 1) // by
        return self.round(f, t, self.product(f, t, x, number(t, share)))

    def half(self, f: Function, t: str, x: str) -> str:
        """Half of a sum."""
        return f.let(f"ashr {t} {x}, {number(t, 1)}" if self.bits else f"fmul {t} {x}, {number(t, 0.5)}")

    def add(self, f: Function, t: str, a: str, b: str) -> str:
        """The sum, as wide as it gets."""
        return f.let(f"{'add' if self.bits else 'fadd'} {t} {a}, {b}")

    def sub(self, f: Function, t: str, a: str, b: str) -> str:
        """The difference, as wide as it gets."""
        return f.let(f"{'sub' if self.bits else 'fsub'} {t} {a}, {b}")

    def plus(self, f: Function, t: str, a: Pair, b: Pair) -> Pair:
        """The sum of complex numbers."""
        return self.add(f, t, a[0], b[0]), self.add(f, t, a[1], b[1])

    def minus(self, f: Function, t: str, a: Pair, b: Pair) -> Pair:
        """The difference of complex numbers."""
        return self.sub(f, t, a[0], b[0]), self.sub(f, t, a[1], b[1])

    def times(self, f: Function, t: str, a: Pair, b: Pair) -> Pair:
        """The product of complex numbers."""
        if not self.bits:
            crossed, other = self.product(f, t, a[1], b[1]), self.product(f, t, a[1], b[0])
            return f.fma(t, a[0], b[0], f.let(f"fneg {t} {crossed}")), f.fma(t, a[0], b[1], other)
        real = self.round(f, t, self.sub(f, t, self.product(f, t, a[0], b[0]), self.product(f, t, a[1], b[1])))
        if self.by_hand(f, t):                   # one part after the other, or registers are too few
            real, *held = (f.opaque(t, v) for v in (real, *a, *b))
            a, b = (held[0], held[1]), (held[2], held[3])
        return real, self.round(f, t, self.add(f, t, self.product(f, t, a[0], b[1]), self.product(f, t, a[1], b[0])))

    def joined(self, f: Function, t: str, p: int, read: Read, put: Put) -> None:
        """The transform of p numbers: each part of a result is put away as soon as it is known."""
        if p % 2:
            _odd(f, t, p, read, put)
            return

        def both(a: str, b: str) -> Pair:
            return self.add(f, t, a, b), self.sub(f, t, a, b)
        apart = list[Pair]()
        for part in range(2):
            sums, less = zip(*(both(read(q, part), read(q + p // 2, part)) for q in range(p // 2)), strict=True)
            for j, value in zip((0, p // 2), both(*sums) if p > 2 else (sums[0], less[0]), strict=True):
                put(j, part, value)
            apart.append((less[0], less[-1]))
        if p > 2:
            for part, j in ((0, 1), (1, 3)):     # a quarter turn makes of one part the other one
                for k, value in zip((j, 4 - j), both(apart[part][0], apart[1 - part][1]), strict=True):
                    put(k, part, value)


def _odd(f: Function, t: str, p: int, read: Read, put: Put) -> None:
    """The transform of an odd count of floats, by sums and differences of what lies opposite."""
    for part in range(2):
        first = read(0, part)
        both, apart = ([f.let(f"{word} {t} {read(q, which)}, {read(p - q, which)}") for q in range(1, p // 2 + 1)]
                       for word, which in (("fadd", part), ("fsub", 1 - part)))
        for j in range(p):
            found, turn = first, number(t, 0)
            for q, value in enumerate(both, 1):
                found = f.fma(t, value, number(t, np.cos(2 * np.pi * q * j / p)), found)
            for q, value in enumerate(apart if j else (), 1):     # the imaginary part turns into the real one, and back
                turn = f.fma(t, value, number(t, np.sin(2 * np.pi * q * j / p) * (-1 if part else 1)), turn)
            put(j, part, f.let(f"fadd {t} {found}, {turn}") if j else found)


@frozen
class Stage:
    """p transforms of m numbers become one, `groups` times; `table` is where its turns are among the weights.

    `shuffled`: what is read for neighbours is no neighbours; there are turns for each of these then, else one for each
    k, and none at all where they are one.
    """

    p: int
    m: int
    groups: int
    shuffled: bool
    table: int | None


@frozen
class RealFourier:
    """Rows of x, cut or with zeros behind them, as rows of the pairs of their transform."""

    x: Place
    out: Place
    scratch: Place
    step: int                                    # bytes from row to row of x
    rows: int
    length: int
    numbers: Numbers
    stages: tuple[Stage, ...]
    halves: int

    @property
    def size(self) -> int:
        """How many complex numbers are transformed."""
        return self.length // 2 if self.length % 2 == 0 else self.length

    def lanes(self, machine: Machine) -> int:
        """How many numbers a vector has."""
        return machine.bits // 8 // self.numbers.wide

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("fourier", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.rows)
        base = f.at("%arena", f.add(f.mul("%thread", self.scratch.strides[0]), self.scratch.offset))
        size = self.size * self.numbers.wide
        here, there = ((f.at(base, at), f.at(base, at + size)) for at in (0, 2 * size))

        def row(i: str, _: list[str]) -> None:
            now, then = here, there
            self._read(f, f.at(self.x.base, f.add(self.x.offset, f.mul(i, self.step))), now)
            for stage in self.stages:
                self._stage(f, stage, now, then)
                now, then = then, now
            bytes_ = (self.length // 2 + 1) * 2 * self.numbers.item
            self._write(f, now, f.at(self.out.base, f.add(self.out.offset, f.mul(i, bytes_))))
        f.loop(first, last, 1, [], row)
        f.finish()

    # What is read and written.
    def _read(self, f: Function, x: str, to: Pair) -> None:
        """A row as complex numbers."""
        n, lanes = self.numbers, self.lanes(f.machine)
        given = min(self.x.shape[-1], self.length)
        pairs, even = given // 2, self.length % 2 == 0
        count = pairs if even else given

        def piece(i: str, lanes: int) -> None:
            parts = f.at(x, f.mul(i, (2 if even else 1) * n.item))
            kind = vector(lanes, n.stored)
            read = every_other(f, kind, parts, n.item) if even else [f.load(kind, parts, 0, n.item)]
            for value, at in zip(read, to, strict=False):
                f.store(vector(lanes, n.code), n.widened(f, lanes, value), at, f.mul(i, n.wide), n.wide)
        neighbours(f, 0, count, lanes, piece)
        if even and given % 2:
            value = n.widened(f, 1, f.load(n.stored, x, 2 * pairs * n.item, n.item))
            f.store(n.code, value, to[0], pairs * n.wide, n.wide)
        filled = (-(-given // 2), pairs) if even else (given, 0)
        for at, first in zip(to, filled, strict=True):
            if first < self.size:
                f.fill(f.at(at, first * n.wide), 0, (self.size - first) * n.wide)

    def _write(self, f: Function, z: Pair, out: str) -> None:
        """The transform of the row from that of its halves."""
        if self.length % 2:
            neighbours(f, 0, self.length // 2 + 1, self.lanes(f.machine), lambda i, lanes: self._put(
                f, lanes, self._pair(f, lanes, z, i), out, i))
            return
        n, t, size = self.numbers, self.numbers.code, self.size
        first = [n.over(f, t, v, 2) for v in self._pair(f, 1, z, 0)]
        zero = number(t, 0)
        self._put(f, 1, (n.add(f, t, *first), zero), out, 0)
        self._put(f, 1, (n.sub(f, t, *first), zero), out, size)
        neighbours(f, 0, size // 2, self.lanes(f.machine), lambda i, lanes: self._told_apart(
            f, lanes, z, out, f.add(i, 1)))

    def _told_apart(self, f: Function, lanes: int, z: Pair, out: str, k: str) -> None:
        """Numbers from k on, and those as far from the end."""
        n, t = self.numbers, vector(lanes, self.numbers.code)
        opposite = f.let(f"sub i64 {self.size - lanes + 1}, {k}")
        near = self._pair(f, lanes, z, k)
        far = [_reversed(f, lanes, n.code, v) for v in self._pair(f, lanes, z, opposite)]
        less = n.sub(f, t, number(t, 0), far[1])
        a = n.over(f, t, near[0], 2), n.over(f, t, near[1], 2)
        b = n.over(f, t, far[0], 2), n.over(f, t, less, 2)
        turns = f.at("%weights", f.add(self.halves, f.mul(f.add(k, -1), n.wide)))
        turn = [f.load(t, turns, part * (self.size // 2) * n.wide, n.wide) for part in range(2)]
        both, apart = n.plus(f, t, a, b), n.times(f, t, n.minus(f, t, a, b), (turn[0], turn[1]))
        even, odd = ([n.told(f, t, v) for v in pair] for pair in (both, apart))
        self._put(f, lanes, (n.half(f, t, n.add(f, t, even[0], odd[0])),
                             n.half(f, t, n.add(f, t, even[1], odd[1]))), out, k)
        back = n.half(f, t, n.sub(f, t, even[0], odd[0])), n.half(f, t, n.sub(f, t, odd[1], even[1]))
        turned = [_reversed(f, lanes, n.code, v) for v in back]
        self._put(f, lanes, (turned[0], turned[1]), out, opposite)

    def _pair(self, f: Function, lanes: int, z: Pair, at: Operand) -> Pair:
        kind, offset = vector(lanes, self.numbers.code), f.mul(at, self.numbers.wide)
        return f.load(kind, z[0], offset, self.numbers.wide), f.load(kind, z[1], offset, self.numbers.wide)

    def _put(self, f: Function, lanes: int, value: Pair, out: str, at: Operand) -> None:
        """Complex numbers as pairs."""
        n = self.numbers
        re, im = (n.narrowed(f, lanes, v) for v in value)
        kind, to = vector(lanes, n.stored), f.at(out, f.mul(at, 2 * n.item))
        if lanes == 1:
            f.store(kind, re, to, 0, n.item)
            f.store(kind, im, to, n.item, n.item)
            return
        both = shuffled(f, kind, re, im, [i // 2 + i % 2 * lanes for i in range(2 * lanes)])
        f.store(vector(2 * lanes, n.stored), both, to, 0, n.item)

    # Stages.
    def _stage(self, f: Function, stage: Stage, x: Pair, out: Pair) -> None:
        lanes, g, table = self.lanes(f.machine), stage.groups, ""
        if stage.table is not None:
            table = f.at("%weights", stage.table)
        if stage.shuffled:
            f.loop(0, stage.m * g, lanes, [], lambda i, _: self._dealt(f, stage, x, out, table, i))
            return

        def number_of(k: str, _: list[str]) -> None:
            n = self.numbers
            at = f.at(table, f.mul(k, 2 * (stage.p - 1) * n.wide)) if table else ""

            def turn(q: int, part: int) -> str:
                return f.load(n.code, at, (2 * q - 2 + part) * n.wide, n.wide)
            known = [[turn(q, part) if q and not scarce(f.machine) else "" for part in range(2)]
                     for q in range(stage.p if table else 0)]

            def piece(t: str, lanes: int) -> None:
                kind, start = vector(lanes, n.code), f.add(f.mul(k, stage.p * g), t)
                offsets = [f.mul(f.add(start, q * g), n.wide) for q in range(stage.p)]
                given = [(f.at(x[0], offset), f.at(x[1], offset)) for offset in offsets]
                self._joined(f, lanes, stage, given, lambda q, part: f.splat(
                    kind, known[q][part] or turn(q, part)), out, f.add(f.mul(k, g), t))
            neighbours(f, 0, g, lanes, piece)
        f.loop(0, stage.m, 1, [], number_of)

    def _dealt(self, f: Function, stage: Stage, x: Pair, out: Pair, table: str, i: str) -> None:
        """A vector of neighbours, which are read from as many vectors as are joined."""
        n, lanes = self.numbers, self.lanes(f.machine)
        kind = vector(lanes, n.code)
        parts = list[list[str]]()
        for at in x:
            parts.append(dealt(f, kind, f.at(at, f.mul(i, stage.p * n.wide)), stage.groups))
            if scarce(f.machine):
                f.fence()
        self._joined(f, lanes, stage, list(zip(*parts, strict=True)), lambda q, part: f.load(kind, table, f.add(
            f.mul(i, n.wide), (2 * q - 2 + part) * stage.m * stage.groups * n.wide), n.wide), out, i)

    def _joined(self, f: Function, lanes: int, stage: Stage, given: Sequence[Pair], turn: Read, out: Pair, i: str
                ) -> None:
        """Numbers, or where they are, turned, transformed, and written, those of each result m * g further."""
        n, kind, where = self.numbers, vector(lanes, self.numbers.code), stage.p > QUAD and scarce(f.machine)
        turned = list[Pair]()
        for q, pair in enumerate(given if stage.table is not None or not where else ()):
            a, b = pair if stage.shuffled else (f.load(kind, at, 0, n.wide) for at in pair)
            value = n.over(f, kind, a, stage.p), n.over(f, kind, b, stage.p)
            if q and stage.table is not None:
                value = n.times(f, kind, value, (turn(q, 0), turn(q, 1)))
            turned.append(self._held(f, kind, value))
            for part, at in zip(turned[-1], pair if where else (), strict=False):
                f.store(kind, part, at, 0, n.wide)

        def read(q: int, part: int) -> str:
            """Five numbers and more are read again where they were, if registers are few."""
            return f.load(kind, given[q][part], 0, n.wide) if where else turned[q][part]

        def put(j: int, part: int, value: str) -> None:
            f.store(kind, value, out[part], f.mul(f.add(i, j * stage.m * stage.groups), n.wide), n.wide)
        n.joined(f, kind, stage.p, read, put)

    def _held(self, f: Function, kind: str, values: Pair) -> Pair:
        """The same, known before anything else is read: where registers are few, LLVM would read all at once."""
        if not kind.startswith("<") or not scarce(f.machine):
            return values
        found = f.opaque(kind, values[0]), f.opaque(kind, values[1])
        f.fence()
        return found


def _reversed(f: Function, lanes: int, code: str, x: str) -> str:
    if lanes == 1:
        return x
    return shuffled(f, vector(lanes, code), x, "poison", list(range(lanes))[::-1])


# Which transforms, and their tables.
@frozen
class Plan:
    """The stages and the tables of transforms of a length."""

    length: int
    numbers: Numbers

    @cached_property
    def size(self) -> int:
        """How many complex numbers are transformed."""
        return self.length if self.length % 2 else self.length // 2

    @cached_property
    def radices(self) -> tuple[int, ...] | None:
        """In the order of stages, the odd ones first; integers': one two first, then fours. None: a prime is large."""
        found, rest = list[int](), self.size
        for p in PRIMES:
            while rest % p == 0:
                found.append(p)
                rest //= p
        twos = rest.bit_length() - 1
        if rest != 1 << twos:
            return None
        return (*found, *(2,) * (twos % 2), *(4,) * (twos // 2))

    @cached_property
    def turns(self) -> tuple[Array, Array]:
        """exp(-2 pi i k / n), n being the size."""
        if self.numbers.bits:
            return Transform(self.length, self.numbers.bits).twiddles
        angles = -2 * np.pi * np.arange(self.size) / self.size
        return np.cos(angles), np.sin(angles)

    @cached_property
    def halves(self) -> Array:
        """What joins the two halves of an even length: real parts, then imaginary ones."""
        if self.numbers.bits:
            return self._array(np.stack(Transform(self.length, self.numbers.bits).halves))
        angles = -np.pi * (np.arange(1, self.size // 2 + 1) / self.size + 0.5)
        return self._array(np.stack([np.cos(angles), np.sin(angles)]))

    def _array(self, values: Array) -> Array:
        return values.astype({"float": np.float32, "i32": np.int32, "i64": np.int64}[self.numbers.code])

    def stages(self, w: Workshop, lanes: int) -> tuple[Stage, ...]:
        """Them, their tables among the weights."""
        found, m = list[Stage](), 1
        for p in self.radices or ():
            g = self.size // (p * m)
            mixed = p == QUAD and lanes % g == 0 and m * g % lanes == 0 and g < lanes
            times = np.arange(m)[:, None] * np.arange(1, p) * g
            table = np.stack([self.turns[0][times], self.turns[1][times]], -1).reshape(m, -1)
            if mixed:
                table = np.repeat(table, g, axis=0).T
            needed = m > 1 or self.numbers.bits
            found.append(Stage(p, m, g, mixed, w.pack(self._array(table)) if needed else None))
            m *= p
        return tuple(found)


def _plan(b: Bound) -> Plan:
    length = b.args["length"]
    numbers = Numbers({F32: 0, I32: 32}.get(b.args["x"].type, 16))
    return Plan(int(length) if isinstance(length, int) else int(length.ints()[1]), numbers)


def _takes(b: Bound, _: Machine) -> bool:
    """Rows whose length is a product of small primes; of matrices, one row."""
    x, length = b.args["x"], b.args["length"]
    if x.type not in (F32, I32, I16, Q16S) or x.size == 0 or b.outs[0].size == 0:
        return False
    if not isinstance(length, int) and (x.type != F32 or length.data is None or length.ints()[0] != 1):
        return False
    return _plan(b).radices is not None


def _make(w: Workshop, group: Group) -> Task:
    b, plan = group.head, _plan(group.head)
    x, out, n = w.place(b.slots["x"]), w.place(b.outputs[0]), plan.numbers
    lanes = w.machine.bits // 8 // n.wide
    rows, step = x.size // x.shape[-1], x.shape[-1]
    if not isinstance(b.args["length"], int):    # only the first row of each matrix counts
        rows, step = rows // x.shape[-2], step * x.shape[-2]
    halves = 0 if plan.length % 2 or plan.size < 2 else w.pack(plan.halves)
    return RealFourier(x, out, w.places[SCRATCH], step * n.item, rows, plan.length, n, plan.stages(w, lanes), halves)


def _scratch(group: Group, _: Machine) -> int:
    plan = _plan(group.head)
    return 4 * plan.size * plan.numbers.wide


NATIVE = (native(Family(_takes, _make, scratch=_scratch), host.RFFT, s.SIGNAL_RFFT),)
