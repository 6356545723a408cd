"""LSTMs of ONNX over time whose products are of bytes: x as a whole and h in each step are on grids that a run chooses.

Three tasks: x is brought to its grid; the inputs of all steps are multiplied; then step after step, each direction
being the work of one thread. The gates of a vector of units are neighbours.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import grids as g
from ...types import F32, Array, Tensor
from ..bind import Bound
from ..hybrid import SPAN
from . import mathematics
from .cells import woven
from .grids import EVEN, INFO, Gridded
from .hybrid import BLOCK, Hybrid, blocks
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .places import ITEM, Place, dense_strides
from .recurrent import layer
from .tasks import SCRATCH, Family, Group, Phases, Workshop, native, remembered
from .tiles import best, fit_of_bytes
from .wholes import SHORT, Walk, item, narrowed, of_bytes, packed, pitch, shortens, shortest, steps, tame, tile_of

GATES = 4
#: One in so many vectors of units may have weights that sums of 16 bits do not hold.
RARE = 8
#: ONNX's order of the gates is i o f c.
INPUT, OUTPUT, FORGET, CELL = range(GATES)


@frozen
class Direction:
    """One pass: the products of its inputs [time, ...], where h goes after each step [time, 1, units], its first states
    (h, c), each of which may be missing, its last ones, and the offsets of its weights of h and their parameters.

    Sums of 16 bits hold the products of `short` steps, but for vectors of units that have a byte which is not 0 at
    `wild`: see `wholes.tame`."""

    given: Place
    out: Place
    states: tuple[Place | None, Place | None]
    ends: tuple[Place, Place]
    weights: int
    blocks: int
    short: int
    wild: int
    backward: bool


@frozen
class Steps:
    """The steps of all directions; each is the work of one thread, which has `room`."""

    directions: tuple[Direction, ...]
    units: int
    quads: bool
    biased: bool
    room: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bytesteps", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(len(self.directions))

        def direction(i: str, _: list[str]) -> None:
            for n, own in enumerate(self.directions):
                f.when(f.let(f"icmp eq i64 {i}, {n}"), lambda own=own: self._pass(f, own))  # type: ignore[misc]
        f.loop(first, last, 1, [], direction)
        f.finish()

    def _pass(self, f: Function, d: Direction) -> None:
        """One direction."""
        sizes, time = room_sizes(self.units, self.quads, f.machine.lanes), d.out.shape[0]
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        h, c, whole, info, sums = (f.at(room, sum(sizes[:n])) for n in range(5))
        for state, to in zip(d.states, (h, c), strict=True):
            f.fill(to, 0, sizes[0])
            if state is not None:
                f.copy(to, f.at(state.base, state.offset), self.units * ITEM)
        def step(t: str, _: list[str]) -> None:
            at = f.let(f"sub i64 {time - 1}, {t}") if d.backward else t
            f.do(f"call void @{self._gridded(f.module)}(ptr {h}, ptr {whole}, ptr {info})")
            self._step(f, d, f.at(d.given.base, f.add(d.given.offset, f.mul(at, d.given.strides[2]))),
                       (h, c, whole, info, sums))
            f.copy(f.at(d.out.base, f.add(d.out.offset, f.mul(at, d.out.strides[0]))), h, self.units * ITEM)
        f.loop(0, time, 1, [], step)
        for end, source in zip(d.ends, (h, c), strict=True):
            f.copy(f.at(end.base, end.offset), source, self.units * ITEM)

    def _gridded(self, m: Module) -> str:
        """The function `(X, Y, info)` that brings h to its grid."""
        def build(name: str) -> None:
            f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias", "%Y"), ("ptr noalias", "%I")))
            shape, size = (1, 1, 1, self.units), item(self.quads)
            x, y = (Place("", 0, shape, dense_strides(shape, n), n) for n in (ITEM, size))
            Gridded(x, y, x, EVEN).one(f, "%X", "%Y", "%I")
            f.finish()
        return m.once(("state", self.units, self.quads), build)

    def _step(self, f: Function, d: Direction, given: str, held: tuple[str, ...]) -> None:
        """One step from the products of its input; held are h and c, which it changes, h on its grid, that, and room
        for the gates' sums."""
        h, c, whole, info, room = held
        lanes = f.machine.lanes
        type, size = vector(lanes), lanes * ITEM
        scale, zero = f.splat(type, f.load("float", info)), f.load("i32", info, ITEM)

        def group(i: str, at: list[str]) -> list[str]:
            weights, parameters, own = at
            gates = [self._sum(f, total, scale, f.at(parameters, n * BLOCK * lanes), f.at(own, n * size))
                     for n, total in enumerate(self._sums(f, d, i, (whole, weights, parameters, room), zero))]
            here = f.mul(i, size)
            self._cell(f, gates, f.at(h, here), f.at(c, here))
            return [f.at(weights, GATES * size * steps(self.units, self.quads)),
                    f.at(parameters, GATES * BLOCK * lanes), f.at(own, GATES * size)]
        begin = [("ptr", f.at("%weights", d.weights)), ("ptr", f.at("%weights", d.blocks)), ("ptr", given)]
        f.loop(0, -(-self.units // lanes), 1, begin, group)

    def _sums(self, f: Function, d: Direction, i: str, at: tuple[str, str, str, str], zero: str) -> list[str]:
        """The gates' sums for a vector of units, in integers; `zero` is what 0 is on the grid of h."""
        x, weights, parameters, room = at
        lanes = f.machine.lanes
        type, size = vector(lanes, "i32"), lanes * ITEM

        def found(walk: Walk) -> list[str]:
            start = ["zeroinitializer"] * GATES
            if self.quads:
                less = f.splat(type, f.let(f"sub i32 {walk.less(f.machine)}, {zero}"))
                start = [f.let(f"mul {type} {less}, {f.load(type, parameters, n * BLOCK * lanes)}")
                         for n in range(GATES)]
            return walk.sums(f, x, weights, start)
        walk = Walk((0,), GATES, 1, 0, ((0, steps(self.units, self.quads)),), self.quads)
        if not d.short:
            return found(walk)

        def put(walk: Walk) -> None:
            for n, total in enumerate(found(walk)):
                f.store(type, total, room, n * size)
        wild = f.load("i8", f.at("%weights", d.wild), i, 1)
        f.when(f.let(f"icmp eq i8 {wild}, 0"), lambda: put(replace(walk, short=d.short)), lambda: put(walk))
        return [f.load(type, room, n * size) for n in range(GATES)]

    def _sum(self, f: Function, total: str, scale: str, parameters: str, given: str) -> str:
        """A gate's sum for a vector of units: of the input's products, h's, and the bias, in this order."""
        lanes = f.machine.lanes
        type, size = vector(lanes), lanes * ITEM
        real = f.let(f"sitofp {vector(lanes, 'i32')} {total} to {type}")
        real = f.let(f"fmul {type} {real}, {f.let(f'fmul {type} {scale}, {f.load(type, parameters, size)}')}")
        real = f.let(f"fadd {type} {f.load(type, given)}, {real}")
        return f.let(f"fadd {type} {real}, {f.load(type, parameters, 2 * size)}") if self.biased else real

    @staticmethod
    def _cell(f: Function, gates: list[str], h: str, c: str) -> None:
        """The next states of a vector of units."""
        type = vector(f.machine.lanes)
        share, out, forget = (mathematics.logistic(f, type, gates[n]) for n in (INPUT, OUTPUT, FORGET))
        kept = f.let(f"fmul {type} {forget}, {f.load(type, c)}")
        fresh = f.let(f"fmul {type} {share}, {mathematics.tanh(f, type, gates[CELL])}")
        state = f.let(f"fadd {type} {kept}, {fresh}")
        f.store(type, state, c)
        f.store(type, f.let(f"fmul {type} {out}, {mathematics.tanh(f, type, state)}"), h)


def room_sizes(units: int, quad: bool, lanes: int) -> tuple[int, ...]:
    """The bytes of a thread's h, c, h on its grid, that, and the sums of a vector's gates."""
    wide = -(-units // lanes) * lanes * ITEM
    return wide, wide, -(-pitch(units, quad, lanes) // INFO) * INFO, INFO, GATES * lanes * ITEM


# What is taken.
def _takes(b: Bound, _: Machine) -> bool:
    """One sequence, whole, with constant weights and nothing beside the gates; sums are integers of 32 bits."""
    a: Any = b.args
    names = ("w", "r", "ws", "wz", "rs", "rz")
    plain = a["lengths"] is None and a["peepholes"] is None and not a["coupled"] and not a["clip"] > 0
    constant = all(a[n].data is not None for n in names) and (a["b"] is None or a["b"].data is not None)
    if not plain or not constant or a["x"].shape[1] != 1 or not all(t.size > 0 for t in (a["x"], *b.outs)):
        return False
    return a["x"].type == F32 and all(SPAN * int(np.abs(m).sum(0).max()) < 1 << 31 for m in _matrices(b))


def _matrices(b: Bound) -> list[Array]:
    """The weights of x of each direction, then those of h, less their zero points: [depth, gates * units]."""
    several = b.args["w"].shape[0]
    return [b.args[n].data[d].astype(np.int32) - b.args[z].data.reshape(several, -1)[d].astype(np.int32)
            for n, z in (("w", "wz"), ("r", "rz")) for d in range(several)]


def _width(b: Bound, lanes: int) -> int:
    """The gates of whole vectors of units."""
    return int(-(-b.args["r"].shape[1] // lanes) * lanes * GATES)


@remembered
def _of_bytes(b: Bound, machine: Machine) -> tuple[bool, bool]:
    """Whether bytes are multiplied: those of x, and those of h."""
    matrices, time = _matrices(b), b.args["x"].shape[0]
    own, inner = matrices[:len(matrices) // 2], matrices[len(matrices) // 2:]
    small = all(shortest(machine, time, m, len(m)) for m in own)
    return small or of_bytes(machine, time, *own), of_bytes(machine, 1, *inner)


def rarely(machine: Machine, matrix: Array) -> tuple[int, Array]:
    """How many steps of most vectors of units fit into sums of 16 bits, and which vectors are wild."""
    for short in reversed(SHORT) if shortens(machine) else ():
        wild = np.logical_not(tame(matrix, len(matrix), short).reshape(-1, GATES * machine.lanes).all(1))
        if wild.mean() * RARE <= 1:
            return short, np.asarray(wild, np.uint8)
    return 0, np.zeros(1, np.uint8)


def _shared(b: Bound, quad: bool, lanes: int) -> tuple[int, int, int]:
    """The bytes of x on its grid, of that, and of the products of each direction."""
    x: Tensor = b.args["x"]
    return -(-x.size * item(quad) // INFO) * INFO, INFO, x.shape[0] * _width(b, lanes) * ITEM


def _room(group: Group, machine: Machine) -> int:
    b, lanes = group.head, machine.lanes
    (own, inner), directions = _of_bytes(b, machine), int(b.args["w"].shape[0])
    whole, info, products = _shared(b, own, lanes)
    return whole + info + products * directions + sum(room_sizes(b.args["r"].shape[1], inner, lanes))


def _columns(matrix: Array, lanes: int) -> Array:
    """Weights [depth, gates * units] with the gates of a vector of units together, zeros behind the last unit."""
    return woven([m.T for m in np.split(matrix, GATES, axis=1)], lanes).reshape(-1, len(matrix)).T


def _scales(b: Bound, name: str, d: int, lanes: int) -> Array:
    """The scale of each of the gates' units, in the same order."""
    own: Array = b.args[name].data.reshape(b.args["w"].shape[0], -1)[d]
    return np.asarray(_columns(np.broadcast_to(own.astype(np.float32), (1, GATES * b.args["r"].shape[1])), lanes)[0])


def _bias(b: Bound, d: int, lanes: int) -> Array | float:
    """What is added to the gates."""
    if b.args["b"] is None:
        return 0.0
    x, h = np.split(b.args["b"].data[d], 2)
    return np.asarray(_columns((x + h)[None], lanes)[0])


def _make(w: Workshop, group: Group) -> Phases:
    b, lanes, matrices = group.head, w.machine.lanes, _matrices(group.head)
    (quad, inner_quad), several = _of_bytes(b, w.machine), len(matrices) // 2
    x, scratch, units = w.place(b.slots["x"]), w.place(SCRATCH), b.args["r"].shape[1]
    time, _, depth = x.shape
    whole, _, products = _shared(b, quad, lanes)
    shape = (1, 1, time, depth)
    on_grid = Place(scratch.base, scratch.offset, shape, dense_strides(shape, item(quad)), item(quad))
    infos = Place(scratch.base, scratch.offset + whole, (1, 1, 1, 1), (0, 0, 0, 0), INFO)
    tasks: list[Any] = [Gridded(x.reshaped(shape), on_grid, infos, EVEN)]
    directions = []
    for d, (own, inner) in enumerate(zip(matrices[:several], matrices[several:], strict=True)):
        wide = (1, 1, time, _width(b, lanes))
        given = Place(scratch.base, infos.offset + INFO + d * products, wide, dense_strides(wide, ITEM), ITEM)
        tasks.append(_inputs(w, b, d, own, on_grid, infos, given, quad))
        directions.append(_direction(w, b, d, inner, given, inner_quad))
    size = scratch.strides[0]
    room = Place(scratch.base, infos.offset + INFO + len(directions) * products, (1, size), (size, 1), 1)
    return Phases((*tasks, Steps(tuple(directions), units, inner_quad, b.args["b"] is not None, room)))


def _inputs(w: Workshop, b: Bound, d: int, matrix: Array, x: Place, infos: Place, out: Place, quad: bool) -> Hybrid:
    """The products of all inputs of a direction by its weights."""
    lanes, (_, _, time, depth) = w.machine.lanes, x.shape
    matrix, narrow = _columns(matrix, lanes), narrowed(w.machine, quad, matrix)
    short, byte_tile = shortest(w.machine, time, matrix, depth) if quad else 0, quad and not w.machine.vnni
    tile = tile_of(matrix.shape[1], time, short, lanes) if byte_tile else best(
        matrix.shape[1], steps(depth, quad), 1, 1, time, lanes, w.machine.registers,
        fit_of_bytes(w.machine, 4 if quad else 2))
    return Hybrid(x, infos, out, 1, ((0, steps(depth, quad)),), 0, (1, 1),
                  w.pack(packed(matrix, depth, quad, tile.vectors, lanes, narrow)),
                  w.pack(blocks(matrix.sum(0), _scales(b, "ws", d, lanes), 0.0, lanes)), tile, quad, narrow, short,
                  twice=False, biased=False, act=0)


def _direction(w: Workshop, b: Bound, d: int, matrix: Array, given: Place, quad: bool) -> Direction:
    lanes, units = w.machine.lanes, b.args["r"].shape[1]
    matrix = _columns(matrix, lanes)
    short, wild = rarely(w.machine, matrix) if quad else (0, np.zeros(1, np.uint8))
    y, *ends = (w.place(s) for s in b.outputs)
    states = [None if b.args[n] is None else w.place(b.slots[n]) for n in ("h", "c")]
    h, c = (None if p is None else layer(p, 0, d) for p in states)
    return Direction(given, layer(y, 1, d), (h, c), (layer(ends[0], 0, d), layer(ends[1], 0, d)),
                     w.pack(packed(matrix, units, quad, GATES, lanes)),
                     w.pack(blocks(matrix.sum(0), _scales(b, "rs", d, lanes), _bias(b, d, lanes), lanes)),
                     short, w.pack(wild) if short else 0, bool(b.args["backward"]) or d > 0)


NATIVE = (native(Family(_takes, _make, scratch=_room), g.DYNAMIC_QUANTIZE_LSTM),)
