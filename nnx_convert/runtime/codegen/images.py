"""Images of another size: cells picked, or blended of four; where they are is told by tables among the weights."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...ops import image
from ...types import OBJECTS, Array
from ..bind import Bound
from ..resize import between, nearest_rows
from .folds import floats
from .ir import SHARED, Function, Module, Operand, vector
from .machine import Machine
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

OFFSET = 8


def _entry(f: Function, table: int, at: Operand, kind: str = "i64", size: int = OFFSET) -> str:
    """An entry of a table among the weights."""
    return f.load(kind, f.at("%weights", f.add(table, f.mul(at, size))), 0, size)


@frozen
class Nearest:
    """Cells of an image, by tables of the bytes to each row and to each column's cell."""

    x: Place
    out: Place
    rows: int
    columns: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("nearest", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, h, w, c = self.out.shape
        first, last = f.share(n * h)

        def row(i: str, _: list[str]) -> None:
            picture, y = f.div(i, h), f.rem(i, h)
            source = f.at(self.x.base, f.add(f.add(f.mul(picture, self.x.strides[0]), _entry(f, self.rows, y)),
                                             self.x.offset))
            to = f.at(self.out.base, f.add(f.add(f.mul(picture, self.out.strides[0]), f.mul(y, self.out.strides[1])),
                                           self.out.offset))
            f.loop(0, w, 1, [], lambda x, _: f.copy(f.at(to, f.mul(x, self.out.strides[2])),
                                                    f.at(source, _entry(f, self.columns, x)), c * self.out.item))
        f.loop(first, last, 1, [], row)
        f.finish()


@frozen
class Axis:
    """Tables of an axis: the bytes to the cells on either side, and the share of the second one."""

    low: int
    high: int
    share: int


@frozen
class Bilinear:
    """Four cells blended: rows first, then columns."""

    x: Place
    out: Place
    rows: Axis
    columns: Axis

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bilinear", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, h, _, _ = self.out.shape
        kind = vector(m.machine.lanes)
        first, last = f.share(n * h)

        def row(i: str, _: list[str]) -> None:
            picture, y = f.div(i, h), f.rem(i, h)
            start = f.add(f.mul(picture, self.x.strides[0]), self.x.offset)
            lines = [f.at(self.x.base, f.add(start, _entry(f, table, y))) for table in (self.rows.low, self.rows.high)]
            to = f.at(self.out.base, f.add(f.add(f.mul(picture, self.out.strides[0]), f.mul(y, self.out.strides[1])),
                                           self.out.offset))
            self._line(f, lines, to, f.splat(kind, _entry(f, self.rows.share, y, "float", ITEM)))
        self._prepare(f)
        f.loop(first, last, 1, [], row)
        f.finish()

    def _prepare(self, f: Function) -> None:
        """What is made once, before the rows."""

    def _line(self, f: Function, lines: list[str], to: str, down: str) -> None:
        """A row of cells between two lines."""
        def cell(x: str, sides: list[str], along: str) -> None:
            corners = [f.at(line, side) for side in sides for line in lines]
            self._cell(f, corners, f.at(to, f.mul(x, self.out.strides[2])), down, along)
        self._cells(f, cell)

    def _cells(self, f: Function, body: Callable[[str, list[str], str], None]) -> None:
        """`body` for each cell of a row, with the bytes to the columns beside it and the share of the second one."""
        def cell(x: str, _: list[str]) -> None:
            sides = [_entry(f, table, x) for table in (self.columns.low, self.columns.high)]
            body(x, sides, f.splat(vector(f.machine.lanes), _entry(f, self.columns.share, x, "float", ITEM)))
        f.loop(0, self.out.shape[2], 1, [], cell)

    def _cell(self, f: Function, corners: list[str], to: str, down: str, along: str) -> None:
        """All channels of one cell; corners are those of the left column, then of the right one."""
        lanes = f.machine.lanes
        kind = vector(lanes)

        def blended(low: str, high: str, share: str) -> str:
            return f.fma(kind, f.let(f"fsub {kind} {high}, {low}"), share, low)

        def piece(at: str, count: int) -> None:
            a, b, c, d = (f.load_first(count, lanes, "float", p, f.mul(at, ITEM)) for p in corners)
            value = blended(blended(a, b, down), blended(c, d, down), along)
            f.store_first(count, lanes, "float", value, to, f.mul(at, ITEM))
        pieces(f, self.out.shape[3], lanes, piece)


def _takes_nearest(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type == out.type not in OBJECTS and x.quant == out.quant and x.size > 0 < out.size and not b.args["nchw"]


def _rules(b: Bound) -> tuple[bool, bool]:
    return bool(b.args["align"]), bool(b.args["half"])


def _bytes(cells: Array, stride: int) -> Array:
    return np.asarray(cells.astype(np.int64) * stride)


def _make_nearest(w: Workshop, group: Group) -> Task:
    b = group.head
    x, out = w.place(b.slots["x"]), w.place(b.outputs[0])
    tables = [w.pack(_bytes(nearest_rows(x.shape[a], out.shape[a], *_rules(b)), x.strides[a])) for a in (1, 2)]
    return Nearest(x, out, *tables)


def _takes_bilinear(b: Bound, _: Machine) -> bool:
    return floats(b) and not b.args["nchw"]


def tabulated(w: Workshop, b: Bound, sides: Callable[[int, int, bool, bool], tuple[Array, Array, Array]],
              shares: type[np.generic]) -> tuple[Place, Place, Axis, Axis]:
    """An image, its result, and the tables of rows and of columns: `sides` says where the cells of an axis are, as
    `between` does; shares are stored in a type."""
    x, out = w.place(b.slots["x"]), w.place(b.outputs[0])

    def axis(a: int) -> Axis:
        low, high, share = sides(x.shape[a], out.shape[a], *_rules(b))
        first, second = (w.pack(_bytes(cells, x.strides[a])) for cells in (low, high))
        return Axis(first, second, w.pack(np.asarray(share, shares)))
    return x, out, axis(1), axis(2)


def _make_bilinear(w: Workshop, group: Group) -> Task:
    return Bilinear(*tabulated(w, group.head, between, np.float32))


NATIVE = (
    native(Family(_takes_nearest, _make_nearest, strided=True), image.RESIZE_NEAREST_NEIGHBOR),
    native(Family(_takes_bilinear, _make_bilinear, strided=True), image.RESIZE_BILINEAR),
)
