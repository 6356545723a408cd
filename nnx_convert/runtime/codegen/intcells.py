"""LSTMs in integers over time, bit by bit as `runtime.quantcells`: int8 products, gates of 16 bits, tables of curves.

As in `recurrent`, the inputs of all steps are multiplied first; the gates of a vector of units are neighbours.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...frozen import frozen
from ...ops import recurrent as r, rnn
from ...types import Array, Q8S
from ..bind import Bound
from ..cells import Span, constants, values
from ..kernels.rnn import integers
from ..quantcells import GATE_BITS, HIGH16, LOW16, Grids, IntLstm, Scaling, table
from .cells import woven
from .integers import bounded, flipped
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import ITEM, Place
from .recurrent import fitting, in_time, row_of
from .requantise import by_shifts
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .tiles import cut, fit_of_bytes
from .wholes import Walk, each, item, kept, packed, pitch as pitch_of, read, steps as steps_of

#: A multiplier and a shift, as `fixedpoint.multiplier` gives them.
Pair = tuple[int, int]


@frozen
class Products:
    """A micro-kernel `(A, B, C, start)`: sums of some gates of a walk's pixels, each gate scaled and cut to 16 bits,
    as integers of 32 bits, pixels `pitch` bytes apart."""

    walk: Walk
    scales: tuple[Pair, ...]
    pitch: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("gates", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"), ("ptr", "%C"),
                               ("ptr noalias readonly", "%start")))
        lanes, gates = m.machine.lanes, len(self.scales)
        type = vector(lanes, "i32")
        start = [f.load(type, "%start", j * lanes * ITEM) for j in range(gates)] * len(self.walk.a)
        for n, total in enumerate(self.walk.sums(f, "%A", "%B", start)):
            i, j = divmod(n, gates)
            found = bounded(f, type, by_shifts(f, lanes, total, *self.scales[j]), LOW16, HIGH16)
            f.store(type, found, "%C", i * self.pitch + j * lanes * ITEM)
        f.finish()


@frozen
class Side:
    """The weights that x or h is multiplied by, what their sums begin with, both offsets, and each gate's scale."""

    weights: int
    start: int
    scales: tuple[Pair, ...]


@frozen
class IntRecurrence:
    """A pass over x [time, batch, width] into `out` [time, batch, units], from states [batch, units] to states.

    `hide` scales a gate times tanh of the cell state, on the grid of h with the zero point `zero`. `shift` is the
    exponent of the cell state's scale; `tables` are the offsets of the logistic function, of tanh, and of the cell
    state's. The gates are (i) f c o; without i it is 1 - f.
    """

    x: Place
    states: tuple[Place, Place]
    ends: tuple[Place | None, Place | None]
    out: Place | None
    own: Side
    inner: Side
    units: int
    quads: bool
    hide: Pair
    zero: int
    shift: int
    clip: int
    tables: tuple[int, int, int]
    room: Place

    @property
    def gates(self) -> int:
        """How many gates there are."""
        return len(self.own.scales)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("intrecurrence", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.shape[1])
        f.loop(first, last, 1, [], lambda row, _: self._pass(f, row))
        f.finish()

    def _pass(self, f: Function, row: str) -> None:
        """One sequence."""
        time, _, width = self.x.shape
        sizes = room_sizes(time, width, self.units, self.gates, f.machine)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        fed, c, now, after, own = (f.at(room, sum(sizes[:n])) for n in range(len(sizes)))
        self._inputs(f, row, own, fed)
        h, cell = (row_of(f, p, row) for p in self.states)
        each(f, self.units, lambda at, n: kept(f, self.quads, read(f, h, at, n, "i8"), now, at))
        each(f, self.units, lambda at, n: f.store(vector(f.machine.lanes, "i32"), read(f, cell, at, n, "i16"),
                                                   c, f.mul(at, ITEM)))

        def step(t: str, held: list[str]) -> list[str]:
            self._step(f, f.at(fed, f.mul(t, sizes[0] // time)), (held[0], held[1], c))
            if self.out is not None:
                self._leave(f, held[1], f.at(row_of(f, self.out, row), f.mul(t, self.out.strides[0])))
            return [held[1], held[0]]
        end = f.loop(0, time, 1, [("ptr", now), ("ptr", after)], step)[0]
        if self.ends[0] is not None:
            self._leave(f, end, row_of(f, self.ends[0], row))
        if self.ends[1] is not None:
            to, lanes = row_of(f, self.ends[1], row), f.machine.lanes
            each(f, self.units, lambda at, n: f.store_first(n, lanes, "i16", f.let(
                f"trunc {vector(lanes, 'i32')} {f.load(vector(lanes, 'i32'), c, f.mul(at, ITEM))} to "
                f"{vector(lanes, 'i16')}"), to, f.mul(at, 2)))

    def _leave(self, f: Function, h: str, to: str) -> None:
        """A hidden state, from as the products read it, as bytes."""
        lanes, element = f.machine.lanes, f"i{8 * item(self.quads)}"

        def piece(at: str, count: int) -> None:
            value = f.load(vector(lanes, element), h, f.mul(at, item(self.quads)), item(self.quads))
            value = flipped(f, vector(lanes, "i8"), value) if self.quads else f.let(
                f"trunc {vector(lanes, element)} {value} to {vector(lanes, 'i8')}")
            f.store_first(count, lanes, "i8", value, to, at)
        each(f, self.units, piece)

    # Products.
    def _inputs(self, f: Function, row: str, own: str, fed: str) -> None:
        """The gates of all steps' inputs: [time, vector of units, gate, lane]."""
        lanes, (time, _, width) = f.machine.lanes, self.x.shape
        pitch, x = pitch_of(width, self.quads, lanes), row_of(f, self.x, row)

        def brought(t: str, _: list[str]) -> None:
            source, to = f.at(x, f.mul(t, self.x.strides[0])), f.at(own, f.mul(t, pitch))
            each(f, width, lambda at, n: kept(f, self.quads, read(f, source, at, n, "i8"), to, at))
        f.loop(0, time, 1, [], brought)
        vectors = fitting(self.gates, f.machine.registers)
        tile = cut(time, fit_of_bytes(f.machine, 4 if self.quads else 2)[vectors], vectors)
        size, steps = lanes * ITEM, steps_of(width, self.quads)
        groups = -(-self.units // lanes)
        far = groups * self.gates * size

        def part(i: str, _: list[str]) -> None:
            group, at = f.div(i, tile.parts), f.rem(i, tile.parts)
            first = tile.first(f, at)
            for n in range(0, self.gates, vectors):
                panel = f.add(f.mul(group, self.gates * size), n * size)
                pointers = (f.at(own, f.mul(first, pitch)),
                            f.at("%weights", f.add(self.own.weights, f.mul(panel, steps))),
                            f.at(fed, f.add(f.mul(first, far), panel)), f.at("%weights", f.add(self.own.start, panel)))
                given = ", ".join(f"ptr {p}" for p in pointers)

                def call(pixels: int, n: int = n, given: str = given) -> None:
                    walk = Walk(tuple(k * pitch for k in range(pixels)), vectors, 1, 0, ((0, steps),), self.quads)
                    made = Products(walk, self.own.scales[n:n + vectors], far)
                    f.do(f"call void @{made.emit(f.module)}({given})")
                tile.sized(f, at, call)
        f.loop(0, groups * tile.parts, 1, [], part)

    def _step(self, f: Function, fed: str, held: tuple[str, str, str]) -> None:
        """One step: held are h, where the next one goes, and c."""
        lanes, (now, after, c) = f.machine.lanes, held
        type, size, steps = vector(lanes, "i32"), lanes * ITEM, steps_of(self.units, self.quads)
        walk = Walk((0,), self.gates, 1, 0, ((0, steps),), self.quads)

        def group(i: str, at: list[str]) -> list[str]:
            weights, own, start = at
            sums = walk.sums(f, now, weights, [f.load(type, start, n * size) for n in range(self.gates)])
            gates = []
            f.fence()                            # constants are read where they are needed: there are many
            for n, total in enumerate(sums):
                scaled = by_shifts(f, lanes, total, *self.inner.scales[n], operand=True)
                scaled = f.let(f"add {type} {scaled}, {f.load(type, own, n * size)}")
                gates.append(bounded(f, type, scaled, LOW16, HIGH16))
            hidden = self._cell(f, gates, f.at(c, f.mul(i, size)))
            kept(f, self.quads, hidden, after, f.mul(i, lanes))
            return [f.at(weights, self.gates * size * steps), f.at(own, self.gates * size),
                    f.at(start, self.gates * size)]
        begin = [("ptr", f.at("%weights", self.inner.weights)), ("ptr", fed),
                 ("ptr", f.at("%weights", self.inner.start))]
        f.loop(0, -(-self.units // lanes), 1, begin, group)

    def _cell(self, f: Function, gates: Sequence[str], at: str) -> str:
        """The hidden state of a vector of units, whose cell state is at an address and is changed there."""
        lanes = f.machine.lanes
        type, c = vector(lanes, "i32"), f.load(vector(lanes, "i32"), at)
        *early, forget, inner, out = gates
        forget, inner, out = (looked_up(f, self.tables[n], x) for n, x in ((0, forget), (1, inner), (0, out)))
        share = looked_up(f, self.tables[0], early[0]) if early else f.let(
            f"sub {type} {number(type, HIGH16)}, {forget}")
        stays = shifted_right(f, f.let(f"mul {type} {forget}, {c}"), 15)
        fresh = shifted_right(f, f.let(f"mul {type} {share}, {inner}"), 30 + self.shift)
        c = f.let(f"add {type} {stays}, {fresh}")
        c = bounded(f, type, c, *((-self.clip, self.clip) if self.clip > 0 else (LOW16, HIGH16)))
        f.store(type, c, at)
        product = f.let(f"mul {type} {out}, {looked_up(f, self.tables[2], c)}")
        found = f.let(f"add {type} {by_shifts(f, lanes, product, *self.hide, operand=True)}, {number(type, self.zero)}")
        return bounded(f, type, found, -128, 127)


def shifted_right(f: Function, x: str, by: int) -> str:
    """`fixedpoint.shift_right` of a vector, by at least one."""
    type = vector(f.machine.lanes, "i32")
    less = f.let(f"ashr {type} {x}, {number(type, 31)}")
    total = f.let(f"add {type} {f.let(f'add {type} {x}, {number(type, 1 << by >> 1)}')}, {less}")
    return f.let(f"ashr {type} {total}, {number(type, by)}")


def looked_up(f: Function, table_: int, x: str) -> str:
    """Entries of a table of 65536 numbers of 16 bits at such numbers; two bytes behind it are read, too."""
    lanes = f.machine.lanes
    type, places = vector(lanes, "i32"), vector(lanes, "ptr")
    middle = f.at("%weights", table_ - 2 * LOW16)
    at = f.let(f"getelementptr i16, ptr {middle}, {type} {x}")
    every = "<" + ", ".join(["i1 true"] * lanes) + ">"
    found = f.call(type, f"llvm.masked.gather.v{lanes}i32.v{lanes}p0", (places, at), ("i32", "1"),
                   (vector(lanes, "i1"), every), (type, "zeroinitializer"))
    high = f.let(f"shl {type} {found}, {number(type, 16)}")
    return f.let(f"ashr {type} {high}, {number(type, 16)}")


def room_sizes(time: int, width: int, units: int, gates: int, machine: Machine) -> tuple[int, int, int, int, int]:
    """The bytes of a thread's gates of all inputs, of c, of both h, and of the inputs."""
    lanes, quad = machine.lanes, machine.vnni
    wide = -(-units // lanes) * lanes * ITEM
    h = -(-pitch_of(units, quad, lanes) // ITEM) * ITEM
    return time * gates * wide, wide, h, h, time * pitch_of(width, quad, lanes)


# What is taken.
def lstm_of(b: Bound) -> IntLstm | None:
    """The LSTM that an operation is; None where it is none in integers, or one that NumPy refuses."""
    a: Any = b.args
    if a["x"].type != Q8S:
        return None
    major = bool(a.get("time_major", True))
    span = Span.of(a["x"].shape, major)
    clips = a["cell_clip"] or 0.0, a["proj_clip"] or 0.0
    try:
        if "h_scale" not in a:                   # the weights' own grids say the gates'
            return integers(span, a["x"], a["cell"], a["norm"], a["h"], a["c"], *clips, rows=False)
        grids = Grids((a["i_scale"], a["f_scale"], a["c_scale"], a["o_scale"]), a["h_scale"], a["h_zero"])
        return IntLstm(span, a["x"], a["cell"], a["norm"], a["h"], a["c"], grids, *clips, rows=False)
    except RunError:
        return None


def _takes(b: Bound, _: Machine) -> bool:
    """Neither projected nor normalised, without peepholes, with constant weights whose sums have 32 bits."""
    cell: Any = b.args["cell"]
    plain = b.args["norm"].f is None and all(v is None for v in (cell.wp, cell.pi, cell.pf, cell.po))
    if not plain or not constants(cell) or not all(t.size > 0 for t in (b.args["x"], *b.outs)):
        return False
    lstm = lstm_of(b)
    return lstm is not None and all(_fits(*side) for side in _sides(lstm))


def _fits(matrix: Array, scaling: Scaling) -> bool:
    """Whether sums and what they are scaled to are integers of 31 bits."""
    reach = 128 * np.abs(matrix).sum(0) + np.abs(scaling.added)
    return bool(reach.max() < 2.0 ** 30 and (np.ldexp(reach * scaling.m, scaling.s - 31) < 2.0 ** 30).all())


def _sides(lstm: IntLstm) -> list[tuple[Array, Scaling]]:
    """The weights of x and of h [depth, gates * units], and what brings their sums to the gates' grids."""
    first = 0 if lstm.cell.wi is not None else 1
    data = values(lstm.cell)
    return [lstm.products(data[first:4], lstm.cell[first:4], data[11 + first:15], lstm.x),
            lstm.products(data[4 + first:8], lstm.cell[4 + first:8], [0] * 4, lstm.h)]


def _side(w: Workshop, matrix: Array, scaling: Scaling, units: int, together: int) -> Side:
    """Weights in the order of vectors of units, so many gates together."""
    lanes, quad = w.machine.lanes, w.machine.vnni
    gates = [g.T for g in np.split(matrix, matrix.shape[1] // units, axis=1)]
    start = scaling.added - (128 * matrix.sum(0) if quad else 0)
    starts = woven([s[:, None] for s in np.split(start, len(gates))], lanes).astype(np.int32)
    columns = woven(gates, lanes).reshape(-1, len(matrix)).T
    scales = tuple((int(m), int(s)) for m, s in zip(scaling.m[::units], scaling.s[::units], strict=True))
    return Side(w.pack(packed(columns, len(matrix), quad, together, lanes)), w.pack(starts), scales)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    lstm = lstm_of(b)
    if lstm is None:
        raise TypeError(b.op.name)
    major, units = bool(b.args.get("time_major", True)), lstm.units
    outs = {p.name: w.place(s) for p, s in zip(b.op.returns, b.outputs, strict=False)}
    gates = 3 if lstm.cell.wi is None else 4
    (own, of_x), (inner, of_h) = _sides(lstm)
    tables = [table(*of) for of in (("logistic", GATE_BITS), ("tanh", GATE_BITS), ("tanh", 15 + lstm.shift))]
    return IntRecurrence(
        in_time(w.place(b.slots["x"]), major), (w.place(b.slots["h"]), w.place(b.slots["c"])),
        (outs.get("h_out"), outs.get("c_out")), in_time(outs["out"], major) if "out" in outs else None,
        _side(w, own, of_x, units, fitting(gates, w.machine.registers)), _side(w, inner, of_h, units, gates), units,
        w.machine.vnni, lstm.hidden(), lstm.grids.zero, lstm.shift, lstm.clips()[0],
        (w.pack(tables[0]), w.pack(tables[1]), w.pack(tables[2])), w.place(SCRATCH))


def _room(group: Group, machine: Machine) -> int:
    x, cell = group.head.args["x"], group.head.args["cell"]
    span = Span.of(x.shape, bool(group.head.args.get("time_major", True)))
    return sum(room_sizes(span.time, x.shape[-1], cell.wo.shape[0], 3 if cell.wi is None else 4, machine))


FAMILY = Family(_takes, _make, scratch=_room)


NATIVE = (
    native(FAMILY, rnn.QUANTIZED_LSTM, r.QUANTIZED_SEQUENCE_LSTM),
    native(FAMILY, rnn.UNIDIRECTIONAL_SEQUENCE_LSTM, otherwise=True),
)
