"""Folds over any axes, which need not be neighbours, and images normalised channel by channel."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ...frozen import frozen
from ...ops import ex, norm, reduce as r
from ...schema import OPS
from ...types import B8
from ..bind import Bound
from ..kernels.tables import on_grid
from .arithmetic import INTEGERS
from .folds import REDUCTIONS, floats
from .ir import SHARED, Function, Module, mask, number, vector
from .machine import Machine
from .mathematics import select
from .moves import address
from .places import ITEM, Place
from .scalars import SCALARS, Scalar
from .strides import ordered
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

#: A fold's operation of two integers; and those that give one of what they fold.
WHOLE = {"SUM": "ADD", "PROD": "MUL", "MAX": "MAXIMUM", "MIN": "MINIMUM"}
EXTREMES = ("MAX", "MIN")


@frozen
class Rule:
    """What an operation folds by, whether it gives the mean, and whether it is of truth values, bytes 0 and 1."""

    fold: str
    mean: bool = False
    truths: bool = False


@frozen
class Folded:
    """For each element of `out` the fold of the view `x`, whose first `kept` axes are those of the result.

    Rows of neighbours are folded, or, with `whole`, stay: the last kept axis.
    """

    x: Place
    out: Place
    kept: int
    whole: bool
    fold: str
    mean: bool
    element: Scalar

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("folded", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lead = self.x.shape[:self.kept - self.whole]
        first, last = f.share(math.prod(lead))

        def part(i: str, _: list[str]) -> None:
            x = address(f, self.x, i, lead)
            width = self.x.shape[self.kept - 1] if self.whole else 1
            to = f.at(self.out.base, f.add(self.out.offset, f.mul(i, width * self.element.size)))
            if self.whole:
                pieces(f, width, m.machine.lanes, lambda at, count: self._column(f, x, to, at, count))
            else:
                self._row(f, x, to)
        f.loop(first, last, 1, [], part)
        f.finish()

    def _walk(self, f: Function, x: str, axes: range, start: str, body: Callable[[str, str], str]) -> str:
        """`body(address, value)` for each index of axes, one value carried from one to the next."""
        if not axes:
            return body(x, start)
        n, stride, type = self.x.shape[axes[0]], self.x.strides[axes[0]], vector(f.machine.lanes, self.element.code)

        def step(_: str, now: list[str]) -> list[str]:
            return [f.at(now[0], stride), self._walk(f, now[0], axes[1:], now[1], body)]
        return f.loop(0, n, 1, [("ptr", x), (type, start)], step)[1]

    def _column(self, f: Function, x: str, to: str, at: str, count: int) -> None:
        """Neighbours that stay."""
        lanes, code, offset = f.machine.lanes, self.element.code, f.mul(at, self.element.size)
        type = vector(lanes, code)
        found = self._walk(f, f.at(x, offset), range(self.kept, len(self.x.shape)), self._start(type),
                           lambda p, now: self._folded(f, type, now, f.load_first(count, lanes, code, p)))
        f.store_first(count, lanes, code, self._scaled(f, type, found), to, offset)

    def _row(self, f: Function, x: str, to: str) -> None:
        """Rows of neighbours folded, lane by lane first."""
        lanes, width, size = f.machine.lanes, self.x.shape[-1], self.element.size
        type, rest = vector(lanes, self.element.code), width % lanes

        def row(p: str, now: str) -> str:
            if width >= lanes:
                now = f.loop(0, width - rest, lanes, [(type, now)], lambda i, held: [self._folded(
                    f, type, held[0], f.load(type, p, f.mul(i, size), size))])[0]
            if rest:
                value = f.load_first(rest, lanes, self.element.code, p, (width - rest) * size)
                now = self._folded(f, type, now, select(f, type, mask(rest, lanes), value, self._start(type)))
            return now
        found = self._walk(f, x, range(self.kept, len(self.x.shape) - 1), self._start(type), row)
        f.store(self.element.code, self._scaled(f, self.element.code, self._across(f, found)), to, 0, size)

    def _start(self, type: str) -> str:
        """What does not change what it is folded with."""
        return number(type, {"SUM": 0, "PROD": 1, "MAX": self.element.least, "MIN": self.element.most}[self.fold])

    def _folded(self, f: Function, type: str, now: str, value: str) -> str:
        """The fold of two values; of extremes, what is no number does not count."""
        if not self.element.real:
            return INTEGERS[WHOLE[self.fold]].emit(f, type, self.element, now, value)
        if self.fold in ("SUM", "PROD"):
            return f.let(f"{'fadd' if self.fold == 'SUM' else 'fmul'} {type} {now}, {value}")
        better = f.let(f"fcmp {'ogt' if self.fold == 'MAX' else 'olt'} {type} {value}, {now}")
        return select(f, type, better, value, now)

    def _across(self, f: Function, x: str) -> str:
        """The fold of a vector's lanes."""
        lanes, code = f.machine.lanes, self.element.code
        while lanes > 1:
            half = lanes // 2
            low, high = (f.let(f"shufflevector <{lanes} x {code}> {x}, <{lanes} x {code}> poison, <{half} x i32> <"
                               + ", ".join(f"i32 {at + i}" for i in range(half)) + ">") for at in (0, half))
            x, lanes = self._folded(f, f"<{half} x {code}>", low, high), half
        return f.let(f"extractelement <1 x {code}> {x}, i64 0")

    def _scaled(self, f: Function, type: str, x: str) -> str:
        count = math.prod(self.x.shape[self.kept:])
        return f.let(f"fdiv {type} {x}, {number(type, count)}") if self.mean else x


def _axes(b: Bound) -> list[int]:
    """The axes that are folded, those of one element left aside."""
    shape = b.args["x"].shape
    return sorted({a % len(shape) for a in b.args["axes"].ints() if shape[a % len(shape)] > 1})


def _takes(b: Bound, _: Machine, rule: Rule) -> bool:
    """Bytes on a grid have extremes here where that is the result's; means are of floats."""
    x, out = b.args["x"], b.outs[0]
    if b.args["axes"].data is None or not x.shape or x.type not in SCALARS or x.type != out.type or not x.size:
        return False
    if rule.truths:
        return bool(x.type == B8)
    plain = x.quant == out.quant if rule.fold in EXTREMES else not on_grid(x) and x.type != B8
    return bool(plain and (SCALARS[x.type].real or not rule.mean))


def _make(w: Workshop, group: Group, rule: Rule) -> Task:
    b = group.head
    x, axes = w.place(b.slots["x"]), _axes(b)
    stay = [a for a in range(len(x.shape)) if a not in axes and x.shape[a] > 1]
    last = max([*stay, *axes], default=0)
    stay = stay or [a for a in range(len(x.shape)) if a not in axes][:1]
    whole = bool(stay) and (not axes or last in stay)
    return Folded(ordered(x, [*stay, *axes]), w.place(b.outputs[0]), len(stay), whole, rule.fold,
                  rule.mean, SCALARS[b.args["x"].type])


def _folds(rule: Rule) -> Family:
    return Family(partial(_takes, rule=rule), partial(_make, rule=rule))


# Normalisation.
@frozen
class Normalised:
    """Each channel of an image less its mean, divided by its deviation; then scaled and moved."""

    x: Place
    out: Place
    gamma: float
    beta: float
    eps: float

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("normalised", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, h, w, c = self.x.shape
        lanes = m.machine.lanes
        vectors = -(-c // lanes)
        first, last = f.share(n * vectors)

        def part(i: str, _: list[str]) -> None:
            start = f.add(f.mul(f.div(i, vectors), h * w * c * ITEM), f.mul(f.rem(i, vectors), lanes * ITEM))
            x, out = (f.at(p.base, f.add(p.offset, start)) for p in (self.x, self.out))
            if c % lanes:
                f.when(f.let(f"icmp eq i64 {f.rem(i, vectors)}, {vectors - 1}"),
                       lambda: self._channels(f, x, out, c % lanes), lambda: self._channels(f, x, out, lanes))
            else:
                self._channels(f, x, out, lanes)
        f.loop(first, last, 1, [], part)
        f.finish()

    def _channels(self, f: Function, x: str, out: str, count: int) -> None:
        """A vector of channels: three times over the image."""
        (_, h, w, c), lanes = self.x.shape, f.machine.lanes
        type = vector(lanes)

        def total(term: Callable[[str], str]) -> str:
            def step(_: str, now: list[str]) -> list[str]:
                value = term(f.load_first(count, lanes, "float", now[0]))
                return [f.at(now[0], c * ITEM), f.let(f"fadd {type} {now[1]}, {value}")]
            found = f.loop(0, h * w, 1, [("ptr", x), (type, number(type, 0))], step)[1]
            return f.let(f"fdiv {type} {found}, {number(type, h * w)}")

        def square(value: str) -> str:
            less = f.let(f"fsub {type} {value}, {mean}")
            return f.let(f"fmul {type} {less}, {less}")
        mean = total(lambda value: value)
        variance = f.let(f"fadd {type} {total(square)}, {number(type, self.eps)}")
        deviation = f.call(type, f"llvm.sqrt.v{lanes}f32", (type, variance))
        scale = f.let(f"fdiv {type} {number(type, self.gamma)}, {deviation}")

        def write(_: str, now: list[str]) -> list[str]:
            less = f.let(f"fsub {type} {f.load_first(count, lanes, 'float', now[0])}, {mean}")
            value = f.fma(type, less, scale, number(type, self.beta))
            f.store_first(count, lanes, "float", value, now[1])
            return [f.at(p, c * ITEM) for p in now]
        f.loop(0, h * w, 1, [("ptr", x), ("ptr", out)], write)


def _takes_normalised(b: Bound, _: Machine) -> bool:
    return floats(b) and not b.args["nchw"]


def _make_normalised(w: Workshop, group: Group) -> Task:
    b = group.head
    gamma, beta, eps = (float(b.args[n]) for n in ("gamma", "beta", "eps"))
    return Normalised(w.place(b.slots["x"]), w.place(b.outputs[0]), gamma, beta, eps)


NATIVE = (
    native(_folds(Rule("SUM")), ex.REDUCE_SUM_EX),
    native(_folds(Rule("MAX")), r.REDUCE_MAX, ex.REDUCE_MAX_EX),
    native(_folds(Rule("MIN")), r.REDUCE_MIN, ex.REDUCE_MIN_EX),
    native(_folds(Rule("PROD")), r.REDUCE_PROD),
    native(_folds(Rule("MIN", truths=True)), r.REDUCE_ALL),
    native(_folds(Rule("MAX", truths=True)), r.REDUCE_ANY),
    *(native(_folds(Rule(*rule)), OPS[name], otherwise=True) for name, rule in REDUCTIONS.items()),
    native(Family(_takes_normalised, _make_normalised), norm.INSTANCE_NORMALIZATION),
)
