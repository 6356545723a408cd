"""RNN and LSTM as native recurrences."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...frozen import frozen
from ...ops import rnn
from ...ops.recurrent import SEQUENCE_RNN
from ...types import F32, Array
from ..bind import Bound
from . import mathematics
from .dense import packed
from .elements import BOUNDS, tensors_of
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import Place
from .recurrent import Direction, Recurrence, State, fitting, in_time, room_of
from .tasks import SCRATCH, Family, Group, Phases, Task, Workshop, native

#: TFLite's codes of the functions that are not a pair of `BOUNDS`.
TANH, SIGMOID = 4, 6


def activated(f: Function, type: str, act: int, x: str) -> str:
    """A function by TFLite's code of it."""
    if act == TANH:
        return mathematics.tanh(f, type, x)
    return mathematics.logistic(f, type, x) if act == SIGMOID else f.clamp(type, x, *BOUNDS[act])


@frozen
class Lstm:
    """Gates (i) f c o; without i it is 1 - f. `peepholes`: extras are those of (i) f o, zeros where there are none."""

    gates: int
    act: int
    clip: float
    peepholes: bool
    apart: int = -1

    def emit(self, f: Function, sums: Sequence[str], _: str, at: State) -> str:
        """Write it."""
        kind, c = vector(f.machine.lanes), f.load(vector(f.machine.lanes), at.c)
        *early, forget, inner, out = sums

        def gate(x: str, number: int, state: str) -> str:
            if self.peepholes:
                x = f.fma(kind, f.load(kind, at.extras, number * at.pitch), state, x)
            return mathematics.logistic(f, kind, x)
        forget = gate(forget, 1, c)
        share = gate(early[0], 0, c) if early else f.let(f"fsub {kind} {number(kind, 1)}, {forget}")
        fresh = f.let(f"fmul {kind} {share}, {activated(f, kind, self.act, inner)}")
        c = f.fma(kind, c, forget, fresh)
        if self.clip > 0:
            c = f.clamp(kind, c, -self.clip, self.clip)
        f.store(kind, c, at.c)
        return f.let(f"fmul {kind} {activated(f, kind, self.act, c)}, {gate(out, 2, c)}")


@frozen
class Plain:
    """One gate: h' = act(sum)."""

    act: int
    gates: int = 1
    apart: int = -1

    def emit(self, f: Function, sums: Sequence[str], _: str, __: State) -> str:
        """Write it."""
        return activated(f, vector(f.machine.lanes), self.act, sums[0])


# Weights.
def woven(gates: Sequence[Array], lanes: int) -> Array:
    """Weights [units, depth] of some gates as [vectors of units, gate, lane, depth], zeros behind the last unit."""
    units, depth = gates[0].shape
    wide = np.zeros((len(gates), -(-units // lanes) * lanes, depth), gates[0].dtype)
    for to, gate in zip(wide, gates, strict=True):
        to[:units] = gate
    return wide.reshape(len(gates), -1, lanes, depth).transpose(1, 0, 2, 3)


def packed_of(w: Workshop, inputs: Sequence[Array], bias: Sequence[Array], recurrent: Sequence[Array]
            ) -> tuple[int, int, int]:
    """The offsets of a direction's weights of inputs, of their bias, and of its weights of states."""
    lanes, gates = w.machine.lanes, len(inputs)
    matrix = woven(inputs, lanes).reshape(-1, inputs[0].shape[1]).T
    return (w.pack(*packed(matrix, fitting(gates, w.machine.registers), lanes)),
            w.pack(np.ascontiguousarray(woven([b[:, None] for b in bias], lanes))), w.pack(inward(recurrent, lanes)))


def inward(gates: Sequence[Array], lanes: int) -> Array:
    """Weights of h of some gates as [vectors of units, depth, gate, lane]."""
    found = woven(gates, lanes)
    return np.ascontiguousarray(found.reshape(len(found), -1, found.shape[-1]).transpose(0, 2, 1))


def rows(values: Sequence[Array], lanes: int) -> Array:
    """Vectors of units, each with zeros up to whole vectors of lanes."""
    wide = np.zeros((len(values), -(-values[0].size // lanes) * lanes), np.float32)
    for to, value in zip(wide, values, strict=True):
        to[:value.size] = value.reshape(-1)
    return wide


# LSTM.
def _cells(b: Bound) -> list[tuple[str, str]]:
    """The names of an operation's cells and of what normalises them."""
    return [("fw", "fw_norm"), ("bw", "bw_norm")] if "fw" in b.args else [("cell", "norm")]


def _takes_lstm(b: Bound, _: Machine) -> bool:
    """Of floats; neither projected nor normalised, and nothing beside x is read."""
    cells = [b.args[name] for name, _ in _cells(b)]
    plain = all(c.wp is None and b.args[norm].f is None for c, (_, norm) in zip(cells, _cells(b), strict=True))
    constant = all(t is None or t.data is not None for c in cells for t in c)
    return plain and constant and b.args.get("aux") is None and all(
        t.type == F32 and t.size > 0 for t in (*tensors_of(b), *b.outs, b.args["x"]))


def _steps(b: Bound) -> int:
    """How many steps a sequence has."""
    shape: tuple[int, ...] = b.args["x"].shape
    return 1 if len(shape) == 2 else shape[0 if b.args.get("time_major", True) else 1]


def _lstm_room(group: Group, machine: Machine) -> int:
    b = group.head
    cell = b.args[_cells(b)[0][0]]
    return room_of(_steps(b), cell.wo.shape[0], 3 if cell.wi is None else 4, machine.lanes)


def _ends(b: Bound, places: Sequence[Place]) -> list[tuple[Place, tuple[Place | None, ...]]]:
    """For each direction where its sequence goes, and its last states (h, c)."""
    major, more = bool(b.args.get("time_major", True)), [*places, None, None, None, None]
    if "fw" not in b.args:
        return [(in_time(places[0], major), (more[1], more[2]))]
    if not b.args["merge"]:
        return [(in_time(places[n], major), (more[2 + 2 * n], more[3 + 2 * n])) for n in range(2)]
    whole, found = in_time(places[0], major), list[tuple[Place, tuple[Place | None, ...]]]()
    for n, at in ((0, 0), (1, b.args["fw"].wo.shape[0])):
        width = b.args[("fw", "bw")[n]].wo.shape[0]
        part = replace(whole, offset=whole.offset + at * whole.strides[2], shape=(*whole.shape[:2], width))
        found.append((part, (more[1 + 2 * n], more[2 + 2 * n])))
    return found


def _direction(w: Workshop, b: Bound, n: int, ends: tuple[Place, tuple[Place | None, ...]]) -> tuple[Direction, Lstm]:
    name, _ = _cells(b)[n]
    cell, before = b.args[name], f"{name}_" if name != "cell" else ""
    values = [None if t is None else t.data for t in cell]
    gates = [[v for v in values[at:at + 4] if v is not None] for at in (0, 4, 11)]
    units, peepholes = cell.wo.shape[0], cell.pf is not None
    extras = [np.zeros(units) if v is None else v for v in values[8:11]]
    weights, bias, recurrent = packed_of(w, gates[0], gates[2], gates[1])
    x = in_time(w.place(b.slots["x"]), bool(b.args.get("time_major", True)))
    states = tuple(w.place(b.slots[before + s]) for s in ("h", "c"))
    own = Direction(x, ends[0], states, ends[1], weights, bias, recurrent, 0,
                    w.pack(rows(extras, w.machine.lanes)) if peepholes else 0, n == 1)
    return own, Lstm(len(gates[0]), b.args["act"], float(b.args["cell_clip"]), peepholes)


def _make_lstm(w: Workshop, group: Group) -> Task:
    b = group.head
    places = _ends(b, [w.place(s) for s in b.outputs])
    made = [_direction(w, b, n, ends) for n, ends in enumerate(places)]
    return Recurrence(tuple(d for d, _ in made), made[0][1], b.args[_cells(b)[0][0]].wo.shape[0], w.place(SCRATCH))


@frozen
class Blank:
    """Zeros in the whole of an array without gaps."""

    out: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            first, last = f.share(self.out.size)
            count = f.mul(f.let(f"sub i64 {last}, {first}"), self.out.item)
            f.fill(f.at(self.out.base, f.add(self.out.offset, f.mul(first, self.out.item))), 0, count)
            f.finish()
        return m.once(("blank", self), build)


def _make_step(w: Workshop, group: Group) -> Task | Phases:
    """One step of each sequence; what is scratch to others holds zeros."""
    b = group.head
    scratch, h, c, out = (w.place(s) for s in b.outputs)
    own, cell = _direction(w, b, 0, (in_time(out, True), (h, c)))
    return Phases((Recurrence((own,), cell, b.args["cell"].wo.shape[0], w.place(SCRATCH)), Blank(scratch)))


def _alike(b: Bound, machine: Machine) -> bool:
    """Both directions are of one kind of cell."""
    if not _takes_lstm(b, machine):
        return False
    fw, bw = b.args["fw"], b.args["bw"]
    return (fw.wi is None, fw.pf is None, fw.wo.shape) == (bw.wi is None, bw.pf is None, bw.wo.shape)


# RNN.
def _takes_rnn(b: Bound, _: Machine) -> bool:
    """Of floats."""
    constant = all(b.args[n].data is not None for n in ("w", "r", "b"))
    return constant and all(t.type == F32 and t.size > 0 for t in (*tensors_of(b), *b.outs))


def _rnn_room(group: Group, machine: Machine) -> int:
    return room_of(_steps(group.head), group.head.args["w"].shape[0], 1, machine.lanes)


def _make_rnn(w: Workshop, group: Group) -> Task:
    b = group.head
    major, places = bool(b.args.get("time_major", True)), dict(zip(b.op.outs, map(w.place, b.outputs), strict=False))
    weights, bias, inner = packed_of(w, *([b.args[n].data] for n in ("w", "b", "r")))
    own = Direction(in_time(w.place(b.slots["x"]), major), in_time(places["out"], major), (w.place(b.slots["h"]),),
                    (places.get("h_out"),), weights, bias, inner, 0, 0, bool(b.args.get("backward", False)))
    return Recurrence((own,), Plain(b.args["act"]), b.args["w"].shape[0], w.place(SCRATCH))


NATIVE = (
    native(Family(_takes_lstm, _make_step, scratch=_lstm_room), rnn.LSTM),
    native(Family(_takes_lstm, _make_lstm, scratch=_lstm_room), rnn.UNIDIRECTIONAL_SEQUENCE_LSTM),
    native(Family(_alike, _make_lstm, scratch=_lstm_room), rnn.BIDIRECTIONAL_SEQUENCE_LSTM),
    native(Family(_takes_rnn, _make_rnn, scratch=_rnn_room), rnn.RNN, rnn.UNIDIRECTIONAL_SEQUENCE_RNN,
           SEQUENCE_RNN),
)
