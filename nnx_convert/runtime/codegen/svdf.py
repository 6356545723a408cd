"""SVDF: filters over features, whose results over some steps are summed by filters over time; in integers.

For each filter the memory is one row, whose last place a step fills; then all of it moves up by one place.
"""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import rnn
from ...types import Q8S, Array, Tensor
from ..bind import Bound
from ..fixedpoint import f32, grid, multiplier
from ..quantcells import HIGH16, LOW16
from .integers import bounded
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import ITEM, Place
from .recurrent import fitting
from .requantise import by_shifts
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .wholes import Walk, each, kept, packed, pitch, read, steps

#: The bytes of a memory's number.
WORD = 2
#: A multiplier and a shift, as `fixedpoint.multiplier` gives them.
Pair = tuple[int, int]


@frozen
class IntSvdf:
    """`runtime.quantcells.IntSvdf` of rows x [batch, width]: `states` [batch, filters * memory] before and after.

    Offsets of weights: those on features, what their sums begin with, those on time, the last of each, the bias.
    """

    x: Place
    states: tuple[Place, Place]
    out: Place
    filters: int
    memory: int
    rank: int
    quads: bool
    scales: tuple[Pair, Pair]
    zero: int
    weights: int
    start: int
    over_time: int
    last: int
    bias: int
    room: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("intsvdf", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.shape[0])
        f.loop(first, last, 1, [], lambda row, _: self._row(f, row))
        f.finish()

    def _row(self, f: Function, row: str) -> None:
        """One row of x."""
        rest = sizes(self.x.shape[1], self.filters, f.machine)
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        new, sums, own = (f.at(room, sum(rest[:n])) for n in range(3))
        x, state, after, out = (f.at(p.base, f.add(p.offset, f.mul(row, p.strides[0])))
                                for p in (self.x, *self.states, self.out))
        each(f, self.x.shape[1], lambda at, n: kept(f, self.quads, read(f, x, at, n, "i8"), own, at))
        self._features(f, own, new, sums)
        if self.filters * self.memory > 1:
            f.copy(after, f.at(state, WORD), (self.filters * self.memory - 1) * WORD)

        apart = (*(self.memory * WORD,) * 3, ITEM, ITEM)     # from what belongs to a filter to what does to the next

        def unit(i: str, at: list[str]) -> list[str]:
            total = f.load("i32", f.at("%weights", self.bias), f.mul(i, ITEM))
            for n in range(self.rank):
                own = (f.at(p, n * size) for p, size in zip(at, apart, strict=True))
                total = f.let(f"add i32 {total}, {self._filter(f, *own)}")
            f.store("i32", total, sums, f.mul(i, ITEM))
            return [f.at(p, self.rank * size) for p, size in zip(at, apart, strict=True)]
        begin = (state, after, f.at("%weights", self.over_time), new, sums)
        f.loop(0, self.filters // self.rank, 1, [("ptr", p) for p in begin], unit)
        each(f, self.filters // self.rank, lambda at, n: self._leave(f, sums, out, at, n))

    def _features(self, f: Function, own: str, new: str, sums: str) -> None:
        """What the filters make of x, and that times the last weights on time, as integers of 32 bits."""
        lanes = f.machine.lanes
        type, size, depth = vector(lanes, "i32"), lanes * ITEM, steps(self.x.shape[1], self.quads)
        groups = -(-self.filters // lanes)
        together = fitting(groups, f.machine.registers)
        walk = Walk((0,), together, 1, 0, ((0, depth),), self.quads)

        def panel(i: str, _: list[str]) -> None:
            here = f.mul(i, together * size)
            start = [f.load(type, f.at("%weights", f.add(self.start, here)), n * size) for n in range(together)]
            found = walk.sums(f, own, f.at("%weights", f.add(self.weights, f.mul(here, depth))), start)
            for n, total in enumerate([f.opaque(type, v) for v in found]):
                f.fence()                        # one after the other, and constants from memory: registers are few
                value = bounded(f, type, by_shifts(f, lanes, total, *self.scales[0], operand=True), LOW16, HIGH16)
                f.store(type, value, f.at(new, here), n * size)
                weight = f.load(type, f.at("%weights", f.add(self.last, here)), n * size)
                f.store(type, f.let(f"mul {type} {value}, {weight}"), f.at(sums, here), n * size)
        f.loop(0, groups // together, 1, [], panel)

    def _filter(self, f: Function, state: str, after: str, weights: str, new: str, product: str) -> str:
        """The sum of a filter over its memory, whose last two places are written: the new one, and 0."""
        total, count = f.load("i32", product), self.memory - 1
        wide = min(2 * f.machine.lanes, max(8, 1 << (count - 1).bit_length())) if count else 8
        type, half = vector(wide, "i32"), vector(wide, "i16")
        found = "zeroinitializer"
        for at in range(0, count, wide):
            taken = min(wide, count - at)
            x, w = (f.load_first(taken, wide, "i16", p, at * WORD) for p in (state, weights))
            wide_x, wide_w = (f.let(f"sext {half} {v} to {type}") for v in (x, w))
            found = f.let(f"add {type} {found}, {f.let(f'mul {type} {wide_x}, {wide_w}')}")
        if count:
            across = f.call("i32", f"llvm.vector.reduce.add.v{wide}i32", (type, found))
            total = f.let(f"add i32 {total}, {across}")
            f.store("i16", f.let(f"trunc i32 {f.load('i32', new)} to i16"), after, (count - 1) * WORD, WORD)
        f.store("i16", "0", after, count * WORD, WORD)
        return total

    def _leave(self, f: Function, sums: str, out: str, at: str, count: int) -> None:
        """The outputs of a vector of units."""
        lanes = f.machine.lanes
        type = vector(lanes, "i32")
        found = by_shifts(f, lanes, f.load(type, sums, f.mul(at, ITEM)), *self.scales[1], operand=True)
        found = bounded(f, type, found, -128 - self.zero, 127 - self.zero)
        found = f.let(f"add {type} {found}, {number(type, self.zero)}")
        f.store_first(count, lanes, "i8", f.let(f"trunc {type} {found} to {vector(lanes, 'i8')}"), out, at)


def sizes(width: int, filters: int, machine: Machine) -> tuple[int, int, int]:
    """The bytes of a thread's new results, of the sums, and of a row of x."""
    wide = -(-filters // machine.lanes) * machine.lanes * ITEM
    return wide, wide, -(-pitch(width, machine.vnni, machine.lanes) // ITEM) * ITEM


def _takes(b: Bound, _: Machine) -> bool:
    x, wf, wt, bias = (b.args[n] for n in ("x", "wf", "wt", "b"))
    sized = all(t.size > 0 for t in (x, wf, *b.outs))
    return bool(x.type == Q8S and sized and wf.data is not None and wt.data is not None and (
        bias is None or bias.data is not None))


def _make(w: Workshop, group: Group) -> Task:
    b, lanes, quad = group.head, w.machine.lanes, w.machine.vnni
    x, wf, wt, state = (b.args[n] for n in ("x", "wf", "wt", "state"))
    filters, memory = wt.shape
    (sx, zx), (st, _), (so, zo) = grid(x), grid(state), grid(b.outs[1])
    scales = (multiplier(float(f32(f32(sx * grid(wf)[0]) / st))), multiplier(float(f32(f32(st * grid(wt)[0]) / so))))
    whole = np.asarray(wf.data).T.astype(np.int32)
    start = -(zx + (128 if quad else 0)) * whole.sum(0)
    together = fitting(-(-filters // lanes), w.machine.registers)
    bias = np.zeros(filters // b.args["rank"], np.int32) if b.args["b"] is None else b.args["b"].data
    states = w.place(b.slots["state"]), w.place(b.outputs[0])
    return IntSvdf(
        w.place(b.slots["x"]), states, w.place(b.outputs[1]), filters, memory, b.args["rank"], quad, scales, zo,
        w.pack(packed(whole, len(whole), quad, together, lanes)), w.pack(_wide(start, lanes)),
        w.pack(np.ascontiguousarray(wt.data)), w.pack(_wide(np.asarray(wt.data)[:, -1], lanes)),
        w.pack(np.ascontiguousarray(bias)), w.place(SCRATCH))


def _wide(values: Array, lanes: int) -> Array:
    """Integers of 32 bits with zeros up to a whole vector."""
    found = np.zeros(-(-values.size // lanes) * lanes, np.int32)
    found[:values.size] = values
    return found


def _room(group: Group, machine: Machine) -> int:
    x: Tensor = group.head.args["x"]
    return sum(sizes(x.shape[1], group.head.args["wt"].shape[0], machine))


NATIVE = (native(Family(_takes, _make, scratch=_room), rnn.SVDF),)
