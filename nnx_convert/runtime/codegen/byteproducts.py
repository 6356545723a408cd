"""Products of matrices of bytes that a run computes, both: less their zero points, two at once, as 16 bits.

Who multiplies brings a panel of the second matrix and some rows of the first into a room of its own, neighbours of the
depth together.
"""
from __future__ import annotations

import math

import numpy as np

from ...frozen import frozen
from ...ops import conv, host
from ...types import BYTES, Quant
from ..bind import Bound
from ..fixedpoint import f32, grid, limits
from .elements import start
from .integers import pairs, shuffled, widened
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .nearest import product_scales
from .panels import operand
from .places import Place
from .requantise import Range, Steps, alike, narrowed, planned, scaled
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .turns import pieces

#: Rows and vectors of columns that a tile has, and rows that are brought into a room together.
ROWS, VECTORS, TOGETHER = 4, 2, 64
#: Bytes of a pair of 16 bits, and of one of these.
PAIR, HALF = 4, 2


@frozen
class Tile:
    """A micro-kernel `(X, B, C, P)`: so many rows in pairs by a panel of `columns`, scaled by the parameters at P, the
    results `pitch` bytes from row to row."""

    rows: int
    columns: int
    depth: int
    pitch: int
    formula: str
    range: Range

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bytetile", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias readonly", "%B"), ("ptr noalias", "%C"),
                               ("ptr noalias readonly", "%P")))
        lanes = m.machine.lanes
        whole, half, vectors = vector(lanes, "i32"), vector(2 * lanes, "i16"), -(-self.columns // lanes)

        def pair(_: str, now: list[str]) -> list[str]:
            x, b, sums = now[0], now[1], list(now[2:])
            panel = [f.load(half, b, v * lanes * PAIR) for v in range(vectors)]
            for r in range(self.rows):
                value = f.splat(whole, f.load("i32", x, r * self.depth * PAIR))
                value = f.let(f"bitcast {whole} {value} to {half}")
                for v in range(vectors):
                    sums[r * vectors + v] = pairs(f, lanes, sums[r * vectors + v], value, panel[v])
            return [f.at(x, PAIR), f.at(b, vectors * lanes * PAIR), *sums]
        carried = [("ptr", "%X"), ("ptr", "%B"), *[(whole, number(whole, 0))] * (self.rows * vectors)]
        sums = f.loop(0, self.depth, 1, carried, pair)[2:]
        for n, total in enumerate(sums):
            r, v = divmod(n, vectors)
            value = narrowed(f, lanes, scaled(f, self.formula, lanes, total, "%P"), self.range)
            f.store_first(min(lanes, self.columns - v * lanes), lanes, "i8", value, "%C", r * self.pitch + v * lanes)
        f.finish()


@frozen
class ByteProduct:
    """x [..., rows, depth] by y [..., depth, columns]; strides of 0 repeat leading axes.

    One of an operand's last two strides is 1: an operand that is turned has the other order. `zeros` are their zero
    points, `signed` says whether their bytes have signs; `parameters` is where those of the formula are.
    """

    x: Place
    y: Place
    out: Place
    room: Place
    zeros: tuple[int, int]
    signed: tuple[bool, bool]
    parameters: int
    formula: str
    range: Range

    @property
    def depth(self) -> int:
        """The pairs of the depth."""
        return -(-self.x.shape[-1] // 2)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("byteproduct", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, (*lead, rows, columns), wide = Function(m, name, SHARED), self.out.shape, m.machine.lanes * VECTORS
        panels, blocks = -(-columns // wide), -(-rows // TOGETHER)

        def item(i: str, _: list[str]) -> None:
            batch, rest = f.div(i, panels * blocks), f.rem(i, panels * blocks)
            panel, block = f.div(rest, blocks), f.rem(rest, blocks)
            last = columns - (panels - 1) * wide
            if panels == 1 or last == wide:
                self._panel(f, batch, panel, block, last)
            else:
                f.when(f.let(f"icmp eq i64 {panel}, {panels - 1}"), lambda: self._panel(f, batch, panel, block, last),
                       lambda: self._panel(f, batch, panel, block, wide))
        f.loop(*f.share(math.prod(lead) * panels * blocks), 1, [], item)
        f.finish()

    def _panel(self, f: Function, batch: str, panel: str, block: str, columns: int) -> None:
        """A block of rows by a panel of so many columns."""
        wide, rows = f.machine.lanes * VECTORS, self.out.shape[-2]
        x, y, out = (start(f, p, p.strides[:-2], batch, self.out.shape[:-2]) for p in (self.x, self.y, self.out))
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        self._packed(f, f.at(y, f.mul(panel, wide * self.y.strides[-1])), room, columns)
        first = f.mul(block, TOGETHER)
        count, near = f.least(f.let(f"sub i64 {rows}, {first}"), TOGETHER), f.at(room, self.depth * wide * PAIR)
        self._brought(f, f.at(x, f.mul(first, self.x.strides[-2])), near, count)
        to = f.at(out, f.add(f.mul(first, self.out.strides[-2]), f.mul(panel, wide)))

        def some(number_: int) -> None:
            tile = Tile(number_, columns, self.depth, self.out.strides[-2], self.formula, self.range).emit(f.module)

            def call(r: str, _: list[str]) -> None:
                source, target = f.at(near, f.mul(r, self.depth * PAIR)), f.at(to, f.mul(r, self.out.strides[-2]))
                f.do(f"call void @{tile}(ptr {source}, ptr {room}, ptr {target}, "
                     f"ptr {f.at('%weights', self.parameters)})")
            f.loop("0" if number_ > 1 else full, full if number_ > 1 else count, number_, [], call)
        full = f.mul(f.div(count, ROWS), ROWS)
        for n in (ROWS, 1):
            some(n)

    def _centred(self, f: Function, lanes: int, value: str, which: int) -> str:
        """Bytes of the first matrix, or the second one, less their zero point in 16 bits."""
        half = vector(lanes, "i16")
        wide = widened(f, lanes, value, self.signed[which], "i16")
        return f.let(f"sub {half} {wide}, {number(half, self.zeros[which])}")

    def _one(self, f: Function, source: str, to: str, which: int) -> None:
        f.store("i16", self._centred(f, 1, f.load("i8", source, 0, 1), which), to, 0, HALF)

    def _brought(self, f: Function, x: str, to: str, count: str) -> None:
        """So many rows of the first matrix in pairs."""
        lanes, depth = f.machine.lanes, self.x.shape[-1]
        across, along = self.x.strides[-2:]

        def row(r: str, _: list[str]) -> None:
            source, near = f.at(x, f.mul(r, across)), f.at(to, f.mul(r, self.depth * PAIR))

            def some(at: str, number_: int) -> None:
                value = self._centred(f, lanes, f.load_first(number_, lanes, "i8", source, at), 0)
                f.store_first(number_, lanes, "i16", value, near, f.mul(at, HALF))
            if along == 1:
                pieces(f, depth, lanes, some)
            else:
                f.loop(0, depth, 1, [], lambda k, _: self._one(
                    f, f.at(source, f.mul(k, along)), f.at(near, f.mul(k, HALF)), 0))
            if depth % 2:
                f.store("i16", "0", near, depth * HALF, HALF)
        f.loop(0, count, 1, [], row)

    def _packed(self, f: Function, y: str, room: str, columns: int) -> None:
        """A panel of the second matrix: for each pair of the depth, those of all columns."""
        lanes, depth, size = f.machine.lanes, self.x.shape[-1], -(-columns // f.machine.lanes) * f.machine.lanes * PAIR
        down, across = self.y.strides[-2:]

        def pair(k: str, both: bool) -> None:
            for at in range(0, columns, lanes):
                first, second = (self._centred(f, lanes, f.load_first(
                    min(lanes, columns - at), lanes, "i8", y, f.add(f.mul(f.add(f.mul(k, 2), n), down), at)), 1)
                    if both or not n else number(vector(lanes, "i16"), 0) for n in (0, 1))
                turns = [i for n in range(lanes) for i in (n, lanes + n)]
                woven = shuffled(f, vector(lanes, "i16"), first, second, turns)
                f.store(vector(2 * lanes, "i16"), woven, room, f.add(f.mul(k, size), at * PAIR), HALF)

        def column(j: str, _: list[str]) -> None:
            source, to = f.at(y, f.mul(j, across)), f.at(room, f.mul(j, PAIR))
            f.loop(0, depth, 1, [], lambda k, _: self._one(
                f, f.at(source, k), f.at(to, f.add(f.mul(f.div(k, 2), size), f.mul(f.rem(k, 2), HALF))), 1))
        if across != 1:
            f.loop(0, columns, 1, [], column)
            return
        f.loop(0, depth // 2, 1, [], lambda k, _: pair(k, both=True))
        if depth % 2:
            pair(str(depth // 2), both=False)


def _depth(b: Bound) -> int:
    return int(b.args["x"].shape[-2 if b.args["adj_x"] else -1])


def _steps(b: Bound) -> Steps:
    """How sums are scaled: `kernels.conv.integer_matmul`."""
    x, y, out = b.args["x"], b.args["y"], b.outs[0]
    (sx, zx), (sy, zy) = grid(x), grid(y)
    reach = _depth(b)
    for t, zero in ((x, zx), (y, zy)):
        low, high = limits(t)
        reach *= max(high - zero, zero - low)
    return Steps.of(np.array([float(f32(sx * sy)) / float(grid(out)[0])]), np.array([-reach]), np.array([reach]))


def _takes(b: Bound, _: Machine) -> bool:
    """Where no sum leaves 32 bits, nor what it is scaled to 31."""
    tensors = (b.args["x"], b.args["y"], b.outs[0])
    if any(t.type not in BYTES or not isinstance(t.quant, Quant) or not grid(t)[0] or t.size == 0 for t in tensors):
        return False
    steps = _steps(b)
    reach, real = int(steps.high[0]), float(steps.reals[0])
    return reach < 1 << 31 and reach * real < 2.0 ** 30 and real < 2.0 ** 30


def _make(w: Workshop, group: Group) -> Task:
    b, lead = group.head, group.outs[0].shape[:-2]
    x, y, out = b.args["x"], b.args["y"], b.outs[0]
    found = planned(_steps(b), Range.of(out), w.machine, product_scales(x, y, out, 1))
    first, second = (operand(w.place(b.slots[n]), lead, bool(b.args[f"adj_{n}"])) for n in ("x", "y"))
    return ByteProduct(first, second, operand(w.place(group.outputs[0]), lead), w.place(SCRATCH),
                       (grid(x)[1], grid(y)[1]), (x.type.dtype.kind == "i", y.type.dtype.kind == "i"),
                       w.pack(alike(0, found, w.machine.lanes)), found.formula, Range.of(out))


def _room(group: Group, machine: Machine) -> int:
    """A panel, and the rows that meet it."""
    rows = min(TOGETHER, group.outs[0].shape[-2])
    return -(-_depth(group.head) // 2) * PAIR * (machine.lanes * VECTORS + rows)


NATIVE = (native(Family(_takes, _make, scratch=_room), conv.BATCH_MATMUL, host.MATMUL, of_bytes=True),)
