"""Windows and axes of bytes folded: pools, means."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...frozen import frozen
from ...ops import image, reduce as r
from ...types import BYTES
from ..bind import Bound
from ..fixedpoint import grid, multiplier
from .dense import pads
from .folds import POOLS, Pool, block
from .integers import clipped, widened
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .mathematics import select
from .nearest import mean_scale
from .places import Place
from .requantise import NOTHING, Range, Steps, alike, narrowed, planned, scaled
from .tasks import Family, Group, Task, Workshop, kind, native

#: Cells of a window up to which a quotient in FLOAT32, truncated, is that of the integers: 255 times that is exact.
MOST = 1 << 12


@frozen
class BytePool(Pool):
    """The largest byte of each window, or the mean of its cells inside the image, halves away from zero."""

    range: Range = NOTHING

    def _cell(self, f: Function, source: str, rows: tuple[str, str], columns: tuple[str, str], to: str) -> None:
        """All channels of one window."""
        mean = self.fold == "SUM"
        width, channels = f.machine.lanes * (1 if mean else 4), self.out.shape[3]
        full, tail = divmod(channels, width)
        cells = f.mul(*(f.let(f"sub i64 {high}, {low}") for low, high in (rows, columns))) if mean else ""

        def stretch(at: str, count: int) -> None:
            found = self._folded(f, width, source, rows, columns, at)
            value = self._mean(f, found, cells) if mean else clipped(
                f, vector(width, "i8"), found, self.range.low, self.range.high, self.range.signed)
            f.store_first(count, width, "i8", value, f.at(self.out.base, to), at)
        if full:
            f.loop(0, full, 1, [], lambda v, _: stretch(f.mul(v, width), width))
        if tail:
            stretch(str(full * width), tail)

    def _folded(self, f: Function, width: int, source: str, rows: tuple[str, str], columns: tuple[str, str],
                at: str) -> str:
        """The sum of a window's cells as integers of 32 bits, or the largest of their bytes."""
        bytes_, signed, mean = vector(width, "i8"), self.range.signed, self.fold == "SUM"
        type, first = (vector(width, "i32"), 0) if mean else (bytes_, -128 if signed else 0)

        def line(y: str, carried: list[str]) -> list[str]:
            begin = f.at(self.x.base, f.add(f.add(source, f.mul(y, self.x.strides[1])), at))

            def cell(x: str, now: list[str]) -> list[str]:
                value = f.load(bytes_, begin, f.mul(x, self.x.strides[2]), 1)
                if mean:
                    return [f.let(f"add {type} {now[0]}, {widened(f, width, value, signed)}")]
                return [f.call(type, f"llvm.{'s' if signed else 'u'}max.v{width}i8", (type, now[0]), (type, value))]
            return f.loop(columns[0], columns[1], 1, [(type, carried[0])], cell)
        return f.loop(rows[0], rows[1], 1, [(type, number(type, first))], line)[0]

    def _mean(self, f: Function, total: str, cells: str) -> str:
        lanes = f.machine.lanes
        whole, real = vector(lanes, "i32"), vector(lanes)
        count = f.splat(whole, f.let(f"trunc i64 {cells} to i32"))
        half = f.let(f"lshr {whole} {count}, {number(whole, 1)}")
        negative = f.let(f"icmp slt {whole} {total}, {number(whole, 0)}")
        up, down = (f.let(f"{how} {whole} {total}, {half}") for how in ("add", "sub"))
        above, below = (f.let(f"sitofp {whole} {v} to {real}") for v in (select(f, whole, negative, down, up), count))
        found = f.let(f"fptosi {real} {f.let(f'fdiv {real} {above}, {below}')} to {whole}")
        return narrowed(f, lanes, found, replace(self.range, zero=0))


def _takes_pool(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type == out.type and x.type in BYTES and x.size > 0 and out.size > 0 and not b.args.get("nchw") and bool(
        grid(out)[0]) and b.args["kh"] * b.args["kw"] <= MOST


def _make_pool(w: Workshop, group: Group) -> Task:
    b = group.head
    top, left, _, _ = pads(b.args)
    return BytePool(w.place(b.slots["x"]), w.place(b.outputs[0]), (b.args["kh"], b.args["kw"]),
                    (b.args["sh"], b.args["sw"]), (top, left), POOLS[kind(b.op)], 0,
                    Range.of(b.outs[0], b.args["act"]))


@frozen
class ByteMean:
    """An array seen as [outer, folded, inner], its mean along the middle; `blocks` as in `requantise`."""

    x: Place
    out: Place
    sizes: tuple[int, int, int]
    blocks: int
    formula: str
    range: Range
    signed: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bytemean", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes, (outer, size, inner) = m.machine.lanes, self.sizes
        vectors, tail = -(-inner // lanes), inner % lanes
        first, last = f.share(outer * vectors)
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)

        def column(i: str, _: list[str]) -> None:
            at, v = f.div(i, vectors), f.rem(i, vectors)
            source = f.at(x, f.add(f.mul(at, size * inner), f.mul(v, lanes)))
            to = f.at(out, f.add(f.mul(at, inner), f.mul(v, lanes)))
            value = self._vector(f, source)
            if tail:
                f.when(f.let(f"icmp eq i64 {v}, {vectors - 1}"),
                       lambda: f.store_first(tail, lanes, "i8", value, to),
                       lambda: f.store_first(lanes, lanes, "i8", value, to))
            else:
                f.store_first(lanes, lanes, "i8", value, to)
        f.loop(first, last, 1, [], column)
        f.finish()

    def _vector(self, f: Function, source: str) -> str:
        lanes, at = f.machine.lanes, f.at("%weights", self.blocks)
        whole = vector(lanes, "i32")

        def step(_: str, now: list[str]) -> list[str]:
            value = widened(f, lanes, f.load(vector(lanes, "i8"), now[0], 0, 1), self.signed)
            return [f.at(now[0], self.sizes[2]), f.let(f"add {whole} {now[1]}, {value}")]
        total = f.loop(0, self.sizes[1], 1, [("ptr", source), (whole, f.load(whole, at))], step)[1]
        return narrowed(f, lanes, scaled(f, self.formula, lanes, total, at), self.range)


def mean_steps(b: Bound, count: int) -> Steps:
    """The scaling of sums of so many bytes: the division is in the multiplier, as LiteRT folds it there."""
    m, s = multiplier(float(grid(b.args["x"])[0]) / float(grid(b.outs[0])[0]))
    shift = min(count.bit_length() - 1, 32, 31 + s)
    m, s = (m << shift) // count, s - shift
    return Steps(np.array([m]), np.array([s]), np.array([math.ldexp(m, s - 31)]), np.array([-255 * count]),
                 np.array([255 * count]))


def _sizes(b: Bound) -> tuple[int, int, int] | None:
    data = b.args["axes"].data
    return None if data is None else block(b.args["x"].shape, [int(a) for a in data.reshape(-1)])


def _takes_mean(b: Bound, _: Machine) -> bool:
    """Where neighbours are not folded into each other, and what is folded fits into 32 bits."""
    x, out, sizes = b.args["x"], b.outs[0], _sizes(b)
    if sizes is None or x.type not in BYTES or x.size == 0 or not grid(x)[0] or not grid(out)[0]:
        return False
    return sizes[2] > 1 and sizes[1] < 1 << 22 and float(grid(x)[0]) < 2.0 ** 8 * float(grid(out)[0])


def _make_mean(w: Workshop, group: Group) -> Task:
    b, sizes = group.head, _sizes(group.head)
    if sizes is None:
        raise TypeError(b.op.name)
    x, out = b.args["x"], Range.of(b.outs[0])
    found = planned(mean_steps(b, sizes[1]), out, w.machine, mean_scale(x, b.outs[0], sizes[1]))
    offset = w.pack(alike(-grid(x)[1] * sizes[1], found, w.machine.lanes))
    return ByteMean(w.place(b.slots["x"]), w.place(b.outputs[0]), sizes, offset, found.formula, out,
                    x.type.dtype.kind == "i")


NATIVE = (
    native(Family(_takes_pool, _make_pool, strided=True), image.AVERAGE_POOL_2D, image.MAX_POOL_2D, of_bytes=True),
    native(Family(_takes_mean, _make_mean), r.MEAN, of_bytes=True),
)
