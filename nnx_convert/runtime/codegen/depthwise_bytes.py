"""Convolutions of bytes channel by channel.

Cells that lie side by side are woven together, so that each 32 bits hold neighbours of one channel: four bytes where
the machine multiplies so many at once, else two, widened to 16 bits. What is woven serves all outputs that cover it,
each with its filter moved to its place and zeros elsewhere. Weaving leaves channels out of order, which packing the
results undoes; so parameters lie in the order that weaving gives. Where channels are few, neighbours of a row, which
read neighbours, are one cell of more channels.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import Array
from ..bind import Bound
from ..fixedpoint import grid
from .bytes import made, scaling, sums, taken, x_signed, zero_border
from .dense import pads
from .depthwise import Depthwise
from .epilogue import blocks_of, from_zero, order_of, store_bytes
from .integers import bounded, clipped, flipped, lift, pairs, quads, quartered, widened, woven
from .ir import Function, Module, vector
from .machine import Machine
from .places import Place
from .requantise import CROWDED, NOTHING, Range, Scaling, block, cut_by, scaled
from .tasks import Family, Group, Task, Workshop, native

#: Taps of one row of a filter that meet cells woven together: for each cell the tap's column, or -1.
Taps = tuple[int, ...]
#: Sums of a patch by row and column: as many vectors as cells are woven together.
Totals = dict[tuple[int, int], list[str]]
#: Stretches up to which neighbours are taken for one cell.
FULL = 3


@frozen
class Weave:
    """How a filter's rows meet the cells of a patch: `together` cells at a time."""

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    together: int

    def met(self, column: int, first: int) -> Taps:
        """The taps of the output of a column at the cells from `first` on."""
        at = [column * self.strides[1] + k * self.dilations[1] for k in range(self.size[1])]
        return tuple(at.index(first + n) if first + n in at else -1 for n in range(self.together))

    def firsts(self, columns: int) -> range:
        """Where cells that are woven together begin, for so many outputs."""
        return range(0, (columns - 1) * self.strides[1] + (self.size[1] - 1) * self.dilations[1] + 1, self.together)

    def kinds(self, columns: int) -> tuple[Taps, ...]:
        """All different ways in which a row of the filter meets cells, up to so many outputs."""
        found = dict.fromkeys(t for c in range(columns) for first in self.firsts(columns)
                              if max(t := self.met(c, first)) >= 0)
        return tuple(found)


@frozen
class Strip:
    """A micro-kernel `(I, W, O, blocks, count)`: `rows` by `columns` outputs for so many stretches of channels.

    `x` and `out` are the bytes from row to row and from cell to cell. With a `tail`, only so many channels are stored.
    """

    weave: Weave
    kinds: tuple[Taps, ...]
    rows: int
    columns: int
    x: tuple[int, int]
    out: tuple[int, int]
    tail: int
    signed: bool
    formula: str
    range: Range

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("strip", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%I"), ("ptr noalias readonly", "%W"), ("ptr", "%O"),
                               ("ptr noalias readonly", "%blocks"), ("i64", "%count")))
        together, lanes = self.weave.together, m.machine.lanes
        channels, taps = together * lanes, self.weave.size[0] * len(self.kinds)
        steps = (channels, taps * together * lanes * 4, channels, channels * block(self.formula))

        def body(_: str, now: list[str]) -> list[str]:
            self._stretch(f, *now)
            return [f.at(p, step) for p, step in zip(now, steps, strict=True)]
        f.loop(0, "%count", 1, [("ptr", p) for p in ("%I", "%W", "%O", "%blocks")], body)
        f.finish()

    def _stretch(self, f: Function, x: str, w: str, out: str, blocks_: str) -> None:
        """The outputs of `together` vectors of channels."""
        lanes, vectors = f.machine.lanes, self.weave.together
        kind, size = vector(lanes, "i32"), block(self.formula) * lanes
        start = [f.load(kind, blocks_, v * size) for v in range(vectors)]
        totals = {(i, j): list(start) for i in range(self.rows) for j in range(self.columns)}
        if self.rows == 1 < self.weave.size[0]:
            totals = self._row_by_row(f, f.apart(x), w, totals)
        else:
            self._rows(f, f.apart(x), w, totals, self.weave.size[0])
        for (i, j), total in totals.items():
            steps = list[str]()
            for v, t in enumerate(total):
                steps.append(scaled(f, self.formula, lanes, t, blocks_, v * size))
                if self.formula in CROWDED:
                    f.fence()
                if not f.machine.x86 and (v + 1 == vectors or vectors > 2):
                    blocks_ = f.behind(blocks_, kind, steps[-2:])
            self._store(f, steps, f.at(f.at(out, i * self.out[0]), j * self.out[1]))
            f.fence()

    def _row_by_row(self, f: Function, x: str, w: str, totals: Totals) -> Totals:
        """The sums of one row of outputs, for which all rows of the filter are alike: one turn for each."""
        kind, lanes, vectors = vector(f.machine.lanes, "i32"), f.machine.lanes, self.weave.together

        def row(_: str, now: list[str]) -> list[str]:
            own = {at: now[2 + n * vectors:2 + (n + 1) * vectors] for n, at in enumerate(totals)}
            self._rows(f, now[0], now[1], own, 1)
            return [f.at(now[0], self.weave.dilations[0] * self.x[0]),
                    f.at(now[1], len(self.kinds) * vectors * lanes * 4), *(t for total in own.values() for t in total)]
        begin = [("ptr", x), ("ptr", w), *((kind, t) for total in totals.values() for t in total)]
        found = f.loop(0, self.weave.size[0], 1, begin, row)[2:]
        return {at: found[n * vectors:(n + 1) * vectors] for n, at in enumerate(totals)}

    def _rows(self, f: Function, x: str, w: str, totals: Totals, count: int) -> None:
        """Add what so many rows of the filter give."""
        lanes, vectors = f.machine.lanes, self.weave.together
        kind, row, line = vector(lanes, "i32"), 0, x
        for y, first in self._cells(count):
            if y != row:
                row, line = y, f.at(x, y * self.x[0])
            parts = self._woven(f, line, first)
            for v in range(vectors):
                for (i, j), total in totals.items():
                    ky, rest = divmod(y - i * self.weave.strides[0], self.weave.dilations[0])
                    taps = self.weave.met(j, first)
                    if rest == 0 and 0 <= ky < count and max(taps) >= 0:
                        at = (ky * len(self.kinds) + self.kinds.index(taps)) * vectors
                        total[v] = f.opaque(kind, self._product(f, total[v], parts[v], w, (at + v) * lanes * 4))
                        # Where operands take registers, nothing is read before its time.
                        w = w if f.machine.x86 else f.behind(w, kind, total)
            f.fence()
            if not f.machine.x86:
                now = [t for total in totals.values() for t in total]
                x, line = (f.behind(p, kind, now) for p in (x, line))

    def _cells(self, count: int) -> Iterator[tuple[int, int]]:
        """The rows of cells that so many rows of the filter read, each with where cells woven together begin."""
        strides, dilations = self.weave.strides, self.weave.dilations
        for y in sorted({i * strides[0] + k * dilations[0] for i in range(self.rows) for k in range(count)}):
            for first in self.weave.firsts(self.columns):
                if any(max(self.weave.met(j, first)) >= 0 for j in range(self.columns)):
                    yield y, first

    def _woven(self, f: Function, line: str, first: int) -> list[str]:
        """Neighbouring cells of a row, woven: vectors of 32 bits for each channel."""
        lanes, together = f.machine.lanes, self.weave.together
        used = [any(self.weave.met(j, first)[n] >= 0 for j in range(self.columns)) for n in range(together)]
        cells = [self._cell(f, line, (first + n) * self.x[1]) if there else "zeroinitializer"
                 for n, there in enumerate(used)]
        if together == 2:
            return [woven(f, vector(2 * lanes, "i16"), cells[0], cells[1], high) for high in (False, True)]
        four, half = vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
        found = []
        for high in (False, True):
            left, right = (f.let(f"bitcast {four} {woven(f, four, cells[n], cells[n + 1], high)} to {half}")
                           for n in (0, 2))
            found += [woven(f, half, left, right, upper) for upper in (False, True)]
        return [f.let(f"bitcast {half} {v} to {four}") for v in found]

    def _cell(self, f: Function, x: str, offset: int) -> str:
        """A cell's channels, those behind the last one among them: they are not stored."""
        lanes, together = f.machine.lanes, self.weave.together
        kind = vector(together * lanes, "i8")
        value = f.load(kind, x, offset, 1)
        if together == 2:
            return widened(f, 2 * lanes, value, self.signed, "i16")
        return flipped(f, kind, value) if lift(f.machine, self.signed) else value

    def _product(self, f: Function, total: str, x: str, w: str, offset: int) -> str:
        lanes, four = f.machine.lanes, self.weave.together == 4
        weights = f.load(vector(4 * lanes, "i8") if four else vector(2 * lanes, "i16"), w, offset)
        return (quads if four else pairs)(f, lanes, total, x, weights)

    def _store(self, f: Function, steps: list[str], out: str) -> None:
        """Steps of the output's grid as bytes in order."""
        lanes, half, r = f.machine.lanes, vector(2 * f.machine.lanes, "i16"), self.range
        found = [from_zero(f, lanes, a, b, r.zero) for a, b in zip(steps[::2], steps[1::2], strict=True)]
        count = len(steps) * lanes
        kind = vector(count, "i8")
        if len(found) == 2:
            value = clipped(f, kind, quartered(f, lanes, found[0], found[1], r.signed), r.low, r.high, r.signed)
        else:
            value = f.let(f"trunc {half} {bounded(f, half, found[0], r.low, r.high)} to {kind}")
        if f.machine.registers <= 16:            # where bytes have no masks
            store_bytes(f, self.tail or count, value, count, out)
        elif not self.tail:
            f.store(kind, value, out, 0, 1)
        else:                                    # a number that `merging` sees: other tails have this code, too
            bits = f.let(f"add i64 0, {(1 << self.tail) - 1}")
            bits = bits if count == 64 else f.let(f"trunc i64 {bits} to i{count}")
            f.store_masked(count, "i8", f.let(f"bitcast i{count} {bits} to <{count} x i1>"), value, out)


@frozen
class Strips(Depthwise):
    """A depthwise convolution of bytes; see `Depthwise` and `Strip`."""

    together: int = 2
    kinds: tuple[Taps, ...] = ()
    blocks: int = 0
    signed: bool = False
    formula: str = ""
    range: Range = NOTHING

    def _walk(self, f: Function) -> None:
        cut_by(f, self.formula, lambda: super(Strips, self)._walk(f))

    def _patch(self, f: Function, now: list[str], rows: int, columns: int) -> None:
        """All channels of one patch."""
        stretch = self.together * f.machine.lanes
        full, tail = divmod(self.out.shape[3], stretch)
        weave = Weave(self.size, self.strides, self.dilations, self.together)

        def call(first: int, count: int, tail: int) -> None:
            strip = Strip(weave, self.kinds, rows, columns, (self.x.strides[1], self.x.strides[2]),
                          (self.out.strides[1], self.out.strides[2]), tail, self.signed,
                          self.formula, self.range)
            weights = self.weights + first * stretch * 4 * self.size[0] * len(self.kinds)
            given = [f.at(now[0], first * stretch), f.at("%weights", weights), f.at(now[1], first * stretch),
                     f.at("%weights", self.blocks + first * stretch * block(self.formula))]
            pointers = ", ".join(f"ptr {p}" for p in given)
            f.do(f"call void @{strip.emit(f.module)}({pointers}, i64 {count})")
        if full:
            call(0, full, 0)
        if tail:
            call(full, 1, tail)


def order(channels: int, lanes: int, together: int) -> Array:
    """The channels in the order that weaving leaves them in, up to whole stretches."""
    stretch = together * lanes
    return order_of(-(-channels // stretch) * stretch, together, lanes, True)


def packed(w: Array, kinds: tuple[Taps, ...], where: Array, lanes: int, together: int) -> Array:
    """Weights [rows, columns, channels] in an order, by stretches: for each row and kind all vectors of a stretch."""
    rows, columns, channels = w.shape
    wide = np.zeros((rows, columns + 1, where.size), np.int8 if together == 4 else np.int16)
    wide[:, :columns, :channels] = w             # the last column stays zero: taps of -1
    found = wide[:, np.array(kinds)][..., where]  # rows, kinds, together, channels
    found = found.reshape(rows, len(kinds), together, -1, together * lanes)
    return np.ascontiguousarray(found.transpose(3, 0, 1, 4, 2)).view(np.uint8)


def _takes(b: Bound, _: Machine) -> bool:
    """Of one filter a channel; several filters of one channel are an ordinary convolution."""
    one = b.args["mult"] == 1 and math.prod(b.args["w"].shape[1:3]) <= 64
    return (one or b.args["x"].shape[3] == 1) and taken(b, 3)


def _beside(x: Place, out: Place, stride: int, stretch: int) -> int:
    """How many neighbours of a row are taken for one cell with as many more channels, so that stretches are fuller."""
    width, channels = out.shape[2:]
    if stride > 1 or x.strides[2] != channels or out.strides[2] != channels:
        return 1
    sizes = [n for n in range(1, max(2, FULL * stretch // channels + 1)) if width % n == 0]
    return min(sizes, key=lambda n: (Fraction(-(-n * channels // stretch), n), n))


def _joined(out: Place, count: int) -> Place:
    """An image with so many neighbours of each row as one cell."""
    n, h, w, c = out.shape
    return replace(out, shape=(n, h, w // count, count * c), strides=(*out.strides[:2], count * out.strides[2],
                                                                      out.strides[3]))


def _make(w: Workshop, group: Group) -> Task:
    b, lanes = group.head, w.machine.lanes
    top, left, _, _ = pads(b.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(group.outputs[0])
    _, kh, kw, channels = b.args["w"].shape
    strides, dilations = (b.args["sh"], b.args["sw"]), (b.args.get("dh", 1), b.args.get("dw", 1))
    if b.args["x"].shape[3] == 1:
        return made(w, group, x, out, strides, dilations, b.args["w"].data.transpose(3, 1, 2, 0))
    filters = b.args["w"].data.reshape(kh, kw, channels).astype(np.int16) - grid(b.args["w"])[1]
    together = 4 if w.machine.quads and filters.min() >= -128 and filters.max() <= 127 else 2
    reach, start = sums(b, b.args["w"].data.reshape(kh * kw, channels))
    if together == 4:
        start = start - lift(w.machine, x_signed(b)) * filters.sum((0, 1), dtype=np.int64)
    found, beside = scaling(b, reach, w.machine), _beside(x, out, strides[1], together * lanes) if together == 2 else 1
    if beside > 1:
        out, strides = _joined(out, beside), (strides[0], beside)
        filters, start = np.tile(filters, beside), np.tile(start, beside)
        found = Scaling(found.formula, tuple(np.tile(p, beside) for p in found.parameters))
    patch = (2 if strides[0] == 1 and out.shape[1] > 1 else 1), min(2, out.shape[2])
    kinds, where = Weave((kh, kw), strides, dilations, together).kinds(patch[1]), order(out.shape[3], lanes, together)
    return Strips(x, out, (kh, kw), strides, dilations, patch, w.pack(packed(filters, kinds, where, lanes, together)),
                  0, together=together, kinds=kinds, blocks=w.pack(blocks_of(start, found, where, lanes)),
                  signed=x_signed(b), formula=found.formula, range=Range.of(b.outs[0], b.args["act"]))


FAMILY = Family(_takes, _make, zero_border, strided=True)
NATIVE = (native(FAMILY, conv.DEPTHWISE_CONV_2D, of_bytes=True),)
