"""Windows and axes folded: pools, means, sums, extremes, softmax."""
from __future__ import annotations

import math
from collections.abc import Callable

from ...frozen import frozen
from ...ops import image, norm, reduce as r
from ...types import F32, Tensor
from ..bind import Bound
from . import mathematics
from .dense import pads
from .elements import BOUNDS, CODE
from .ir import SHARED, Function, Module, Operand, mangled, mask, number, parts, vector
from .machine import Machine
from .mathematics import select
from .places import ITEM, Place, dense_strides
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, kind, native
from .turns import pieces

#: Each fold's two-place operation and what it starts with; MOST is MAX where what is no number does not count, and
#: SQUARES is SUM of squares.
FOLDS = {"SUM": ("ADD", 0.0), "SQUARES": ("ADD", 0.0), "MAX": ("MAXIMUM", -math.inf), "MIN": ("MINIMUM", math.inf),
         "MOST": ("MAXIMUM", -math.inf)}
#: Runs of a fold side by side: one would wait for itself.
ABREAST = 4


def folded(f: Function, type: str, fold: str, x: str, y: str) -> str:
    """The fold of two values."""
    if fold == "MOST":
        return select(f, type, f.let(f"fcmp ogt {type} {y}, {x}"), y, x)
    return CODE[FOLDS[fold][0]][0](f, type, x, y)


def across(f: Function, type: str, fold: str, x: str) -> str:
    """The fold of a vector's lanes."""
    lanes, element = parts(type)
    while lanes > 1:
        half = lanes // 2
        low, high = (f.let(f"shufflevector <{lanes} x {element}> {x}, <{lanes} x {element}> poison, <{half} x i32> <"
                           + ", ".join(f"i32 {at + i}" for i in range(half)) + ">") for at in (0, half))
        x = folded(f, f"<{half} x {element}>", fold, low, high)
        lanes = half
    return f.let(f"extractelement <1 x {element}> {x}, i64 0")


@frozen
class Pool:
    """The fold of each window of an image; an average counts the cells inside the image, and of squares the root of
    it is taken."""

    x: Place
    out: Place
    size: tuple[int, int]
    strides: tuple[int, int]
    before: tuple[int, int]
    fold: str
    act: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("pool", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, h, _, _ = self.out.shape
        first, last = f.share(n * h)

        def row(i: str, _: list[str]) -> None:
            image, y = f.div(i, h), f.rem(i, h)
            low, high = self._span(f, y, 0)
            source = f.add(self.x.offset, f.mul(image, self.x.strides[0]))
            to = f.add(self.out.offset, f.add(f.mul(image, self.out.strides[0]), f.mul(y, self.out.strides[1])))

            def cell(x: str, _: list[str]) -> None:
                self._cell(f, source, (low, high), self._span(f, x, 1), f.add(to, f.mul(x, self.out.strides[2])))
            f.loop(0, self.out.shape[2], 1, [], cell)
        f.loop(first, last, 1, [], row)
        f.finish()

    def _span(self, f: Function, at: str, axis: int) -> tuple[str, str]:
        """The cells of an axis that a window covers inside the image."""
        start = f.add(f.mul(at, self.strides[axis]), -self.before[axis])
        outside = f.let(f"icmp slt i64 {start}, 0")
        end = f.least(f.add(start, self.size[axis]), self.x.shape[axis + 1])
        return f.select(outside, "i64", "0", start), end

    def _cell(self, f: Function, source: str, rows: tuple[str, str], columns: tuple[str, str], to: str) -> None:
        """All channels of one window."""
        lanes, channels = f.machine.lanes, self.out.shape[3]
        full, tail = divmod(channels, lanes)
        scale = ""
        if self.fold in ("SUM", "SQUARES"):
            sizes = [f.let(f"sub i64 {high}, {low}") for low, high in (rows, columns)]
            count = f.let(f"sitofp i64 {f.mul(*sizes)} to float")
            scale = f.splat(vector(lanes), count)
        if full:
            f.loop(0, full, 1, [], lambda v, _: self._vector(f, source, rows, columns, to, f.mul(v, lanes * ITEM),
                                                             lanes, scale))
        if tail:
            self._vector(f, source, rows, columns, to, str(full * lanes * ITEM), tail, scale)

    def _vector(self, f: Function, source: str, rows: tuple[str, str], columns: tuple[str, str], to: str, at: str,
                count: int, scale: str) -> None:
        lanes = f.machine.lanes
        type = vector(lanes)

        def line(y: str, carried: list[str]) -> list[str]:
            begin = f.at(self.x.base, f.add(f.add(source, f.mul(y, self.x.strides[1])), at))

            def cell(x: str, now: list[str]) -> list[str]:
                value = f.load_first(count, lanes, "float", begin, f.mul(x, self.x.strides[2]))
                value = f.let(f"fmul {type} {value}, {value}") if self.fold == "SQUARES" else value
                return [folded(f, type, self.fold, now[0], value)]
            return f.loop(columns[0], columns[1], 1, [(type, carried[0])], cell)
        found = f.loop(rows[0], rows[1], 1, [(type, number(type, FOLDS[self.fold][1]))], line)[0]
        if scale:
            found = f.let(f"fdiv {type} {found}, {scale}")
        if self.fold == "SQUARES":
            found = f.call(type, f"llvm.sqrt.{mangled(type)}", (type, found))
        f.store_first(count, lanes, "float", f.clamp(type, found, *BOUNDS[self.act]),
                      f.at(self.out.base, to), at)


def floats(b: Bound) -> bool:
    """Whether all of it is FLOAT32, and nothing empty."""
    tensors = [v for n, v in b.args.items() if isinstance(v, Tensor) and n in ("x", "y")]
    return all(t.type == F32 and t.size > 0 for t in (*tensors, *b.outs))


#: The fold of each pool's windows; sums become means.
POOLS = {"MAX_POOL_2D": "MAX", "AVERAGE_POOL_2D": "SUM", "L2_POOL_2D": "SQUARES"}


def _takes_pool(b: Bound, _: Machine) -> bool:
    return floats(b) and not b.args.get("nchw")


def _make_pool(w: Workshop, group: Group) -> Task | Phases:
    b, a = group.head, group.head.args
    (top, left, _, _), x, out = pads(a), w.place(b.slots["x"]), w.place(b.outputs[0])
    if not _apart(b):
        return Pool(x, out, (a["kh"], a["kw"]), (a["sh"], a["sw"]), (top, left), POOLS[kind(b.op)], a["act"])
    shape = (*x.shape[:2], *out.shape[2:])
    along = Place("%arena", w.places[SCRATCH].offset, shape, dense_strides(shape, ITEM), ITEM)
    return Phases((Pool(x, along, (1, a["kw"]), (1, a["sw"]), (0, left), "MAX", 0),
                   Pool(along, out, (a["kh"], 1), (a["sh"], 1), (top, 0), "MAX", a["act"])))


def _apart(b: Bound) -> bool:
    """Whether the largest of windows are found along rows first and then along columns: where that reads less than
    half as much."""
    kh, kw, sh = (b.args[n] for n in ("kh", "kw", "sh"))
    return POOLS[kind(b.op)] == "MAX" and bool(kh * kw >= 2 * (sh * kw + kh))


def _between(group: Group, _: Machine) -> int:
    """What is found along rows; all threads write it."""
    x, out = group.head.args["x"].shape, group.head.outs[0].shape
    return math.prod((*x[:2], *out[2:])) * ITEM if _apart(group.head) else 0


@frozen
class Reduce:
    """An array seen as [outer, folded, inner], folded along the middle; `mean` divides by how many there are."""

    x: Place
    out: Place
    sizes: tuple[int, int, int]
    fold: str
    mean: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("reduce", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        outer, size, inner = self.sizes
        lanes = m.machine.lanes
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)
        if inner == 1:
            first, last = f.share(outer)
            f.loop(first, last, 1, [], lambda i, _: self._row(
                f, f.at(x, f.mul(i, size * ITEM)), f.at(out, f.mul(i, ITEM))))
        else:
            vectors = -(-inner // lanes)
            first, last = f.share(outer * vectors)

            def column(i: str, _: list[str]) -> None:
                at, v = f.div(i, vectors), f.rem(i, vectors)
                start = f.at(x, f.add(f.mul(at, size * inner * ITEM), f.mul(v, lanes * ITEM)))
                to = f.at(out, f.add(f.mul(at, inner * ITEM), f.mul(v, lanes * ITEM)))
                if inner % lanes:
                    f.when(f.let(f"icmp eq i64 {v}, {vectors - 1}"), lambda: self._column(f, start, to, inner % lanes),
                           lambda: self._column(f, start, to, lanes))
                else:
                    self._column(f, start, to, lanes)
            f.loop(first, last, 1, [], column)
        f.finish()

    def _column(self, f: Function, x: str, out: str, count: int) -> None:
        lanes = f.machine.lanes
        type = vector(lanes)

        def step(_: str, now: list[str]) -> list[str]:
            value = f.load_first(count, lanes, "float", now[0])
            return [f.at(now[0], self.sizes[2] * ITEM), folded(f, type, self.fold, now[1], value)]
        found = f.loop(0, self.sizes[1], 1, [("ptr", x), (type, number(type, FOLDS[self.fold][1]))], step)[1]
        f.store_first(count, lanes, "float", self._scaled(f, type, found), out)

    def _row(self, f: Function, x: str, out: str) -> None:
        found = fold_row(f, self.fold, x, self.sizes[1])
        f.store("float", self._scaled(f, "float", found), out)

    def _scaled(self, f: Function, type: str, x: str) -> str:
        return f.let(f"fdiv {type} {x}, {number(type, self.sizes[1])}") if self.mean else x


#: What is done to a vector before it is folded; of it so many lanes count, so many bytes behind the row's begin.
Change = Callable[[str, Operand, int], str]


def fold_row(f: Function, fold: str, x: str, size: int, change: Change | None = None) -> str:
    """The fold of a row of neighbours, each vector changed before: one number."""
    lanes = f.machine.lanes
    type, step = vector(lanes), lanes * ITEM
    full, rest = divmod(size, lanes)
    least, runs = number(type, FOLDS[fold][1]), 1 if change else min(ABREAST, max(full, 1))

    def read(at: Operand, count: int) -> str:
        value = f.load_first(count, lanes, "float", x, at)
        value = change(value, at, count) if change else value
        return value if count == lanes else select(f, type, mask(count, lanes), value, least)

    def turn(i: str, now: list[str]) -> list[str]:
        return [folded(f, type, fold, v, read(f.add(f.mul(i, step), n * step), lanes)) for n, v in enumerate(now)]
    found = [least] * runs
    if full:
        found = f.loop(0, full - full % runs, runs, [(type, v) for v in found], turn)
    for n in range(full % runs):
        found[n] = folded(f, type, fold, found[n], read((full - full % runs + n) * step, lanes))
    if rest:
        found[-1] = folded(f, type, fold, found[-1], read(full * step, rest))
    total = found[0]
    for value in found[1:]:
        total = folded(f, type, fold, total, value)
    return across(f, type, fold, total)


#: Each reduction's fold, and whether it is a mean.
REDUCTIONS = {"MEAN": ("SUM", True), "REDUCE_SUM": ("SUM", False)}


def block(shape: tuple[int, ...], axes: list[int]) -> tuple[int, int, int] | None:
    """A shape as [outer, folded, inner] where the axes are neighbours, those of size 1 left aside; else None."""
    rank = len(shape)
    chosen = sorted({a % rank for a in axes if shape[a % rank] > 1})
    if not chosen:
        return (math.prod(shape), 1, 1)
    low, high = chosen[0], chosen[-1]
    if any(shape[a] > 1 and a not in chosen for a in range(low, high)):
        return None
    return math.prod(shape[:low]), math.prod(shape[low:high + 1]), math.prod(shape[high + 1:])


def _axes(b: Bound) -> list[int] | None:
    data = b.args["axes"].data
    return None if data is None else [int(a) for a in data.reshape(-1)]


def _takes_reduce(b: Bound, _: Machine) -> bool:
    axes = _axes(b)
    return axes is not None and floats(b) and block(b.args["x"].shape, axes) is not None


def _make_reduce(w: Workshop, group: Group) -> Task:
    b = group.head
    sizes = block(b.args["x"].shape, _axes(b) or [])
    if sizes is None:
        raise TypeError(b.op.name)
    return Reduce(w.place(b.slots["x"]), w.place(b.outputs[0]), sizes, *REDUCTIONS[kind(b.op)])


@frozen
class Softmax:
    """exp(beta * (x - max)) of each row, divided by its sum."""

    x: Place
    out: Place
    size: int
    beta: float

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("softmax", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.size // self.size)
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)

        def row(i: str, _: list[str]) -> None:
            at = f.mul(i, self.size * ITEM)
            self._row(f, f.at(x, at), f.at(out, at))
        f.loop(first, last, 1, [], row)
        f.finish()

    def _row(self, f: Function, x: str, out: str) -> None:
        lanes, type = f.machine.lanes, vector(f.machine.lanes)
        share = exponentials(f, x, out, self.size, self.beta)

        def scaled(at: str, count: int) -> None:
            value = f.load_first(count, lanes, "float", out, f.mul(at, ITEM))
            f.store_first(count, lanes, "float", f.let(f"fmul {type} {value}, {f.splat(type, share)}"), out,
                          f.mul(at, ITEM))
        pieces(f, self.size, lanes, scaled)


def exponentials(f: Function, x: str, out: str, size: int, beta: float) -> str:
    """Emit exp(beta * (x - max)) of a row, at `out`; one divided by their sum. What is no number spreads to all."""
    lanes, type = f.machine.lanes, vector(f.machine.lanes)
    most = f.splat(type, fold_row(f, "MOST", x, size))

    def power(value: str, at: Operand, count: int) -> str:
        less = f.let(f"fsub {type} {value}, {most}")
        less = f.let(f"fmul {type} {less}, {number(type, beta)}") if beta != 1 else less
        found = mathematics.exp(f, type, less)
        f.store_first(count, lanes, "float", found, out, at)
        return found
    return f.let(f"fdiv float {number('float', 1)}, {fold_row(f, 'SUM', x, size, power)}")


def by_rows(b: Bound, _: Machine) -> bool:
    """Whether rows of floats are folded along their last axis."""
    return floats(b) and b.args["axis"] % len(b.args["x"].shape) == len(b.args["x"].shape) - 1


def _make_softmax(w: Workshop, group: Group) -> Task:
    b = group.head
    return Softmax(w.place(b.slots["x"]), w.place(b.outputs[0]), b.args["x"].shape[-1], float(b.args["beta"]))


NATIVE = (
    native(Family(_takes_pool, _make_pool, scratch=_between, strided=True), image.AVERAGE_POOL_2D, image.MAX_POOL_2D,
           image.L2_POOL_2D),
    native(Family(_takes_reduce, _make_reduce), r.MEAN, r.REDUCE_SUM),
    native(Family(by_rows, _make_softmax), norm.SOFTMAX),
)
