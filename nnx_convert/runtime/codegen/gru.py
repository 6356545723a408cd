"""GRU as a native recurrence."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...frozen import frozen
from ...ops import rnn_nd
from ...types import F32, Array, Tensor
from ..bind import Bound
from .cells import SIGMOID, TANH, activated, inward, packed_of, rows
from .ir import Function, vector
from .machine import Machine
from .places import ITEM
from .recurrent import Direction, Recurrence, State, layer, room_of
from .tasks import SCRATCH, Family, Group, Task, Workshop, native

#: TFLite's codes of the activations that there are.
CODES = {"Relu": 1, "Tanh": TANH, "Sigmoid": SIGMOID}


@frozen
class Gru:
    """Gates z r h: h' = (1 - z) * new(fed + r * inner) + z * h."""

    gate: int
    new: int
    gates: int = 3
    apart: int = 2

    def emit(self, f: Function, sums: Sequence[str], fed: str, at: State) -> str:
        """Write it."""
        kind = vector(f.machine.lanes)
        z, r = (activated(f, kind, self.gate, x) for x in sums[:2])
        return self.mixed(f, f.fma(kind, r, sums[2], fed), z, f.load(kind, at.h))

    def mixed(self, f: Function, candidate: str, z: str, h: str) -> str:
        """The new state by the sum that its function has not been applied to yet."""
        kind = vector(f.machine.lanes)
        new = activated(f, kind, self.new, candidate)
        return f.fma(kind, z, f.let(f"fsub {kind} {h}, {new}"), new)


@frozen
class Reset(Recurrence):
    """GRU whose candidate is of r * h: no unit has its own before all have r. A direction's weights of h are those of z
    and r, and where others have a bias apart, those of the candidate."""

    cell: Gru

    def _step(self, f: Function, d: Direction, fed: str, held: tuple[str, str, str]) -> None:
        """z goes where the next h will be, r * h where others have c."""
        kind, size, (now, after, reset) = vector(f.machine.lanes), f.machine.lanes * ITEM, held
        wide = self._sizes(f.machine.lanes)[1]

        def gates(i: str, at: list[str]) -> list[str]:
            here = f.mul(i, size)
            sums = self._sums(f, at[0], now, [f.load(kind, at[1], n * size) for n in range(2)])
            z, r = (activated(f, kind, self.cell.gate, x) for x in sums)
            f.store(kind, z, after, here)
            f.store(kind, f.let(f"fmul {kind} {r}, {f.load(kind, now, here)}"), reset, here)
            return [f.at(at[0], self.units * 2 * size), f.at(at[1], 3 * size)]

        def candidate(i: str, at: list[str]) -> list[str]:
            here = f.mul(i, size)
            total, = self._sums(f, at[0], reset, [f.load(kind, at[1], 2 * size)])
            mixed = self.cell.mixed(f, total, f.load(kind, after, here), f.load(kind, now, here))
            f.store(kind, mixed, after, here)
            return [f.at(at[0], self.units * size), f.at(at[1], 3 * size)]
        for body, weights in ((gates, d.recurrent), (candidate, d.apart)):
            f.loop(0, wide // size, 1, [("ptr", f.at("%weights", weights)), ("ptr", fed)], body)


def _acts(b: Bound) -> list[int | None]:
    """The codes of the functions of gates and candidate, of each direction."""
    names = [*rnn_nd.ACTIVATIONS]
    acts: Tensor = b.args["acts"]
    return [] if acts.data is None else [CODES.get(names[a]) for a in acts.ints()]


def _takes(b: Bound, _: Machine) -> bool:
    """The whole of each sequence, both directions with the same functions."""
    acts, count = _acts(b), b.args["w"].shape[0]
    tensors = [b.args[n] for n in ("x", "w", "r", "b", "h") if b.args[n] is not None]
    constant = all(b.args[n] is None or b.args[n].data is not None for n in ("w", "r", "b"))
    return not b.args["clip"] and b.args["lengths"] is None and acts == acts[:2] * count and None not in acts and \
        constant and all(t.type == F32 and t.size > 0 for t in (*tensors, *b.outs))


def _room(group: Group, machine: Machine) -> int:
    x, r = group.head.args["x"], group.head.args["r"]
    return room_of(x.shape[0], r.shape[2], 3, machine.lanes)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    count, units = b.args["r"].shape[0], b.args["r"].shape[2]
    places = [w.place(s) for s in b.outputs]
    found = []
    for d in range(count):
        h = None if b.args["h"] is None else layer(w.place(b.slots["h"]), 0, d)
        end = layer(places[1], 0, d) if len(places) > 1 else None
        found.append(Direction(w.place(b.slots["x"]), layer(places[0], 1, d), (h,), (end,), *_weights(w, b, d), 0,
                               bool(b.args["backward"]) or d == 1))
    kind = Recurrence if b.args["linear"] else Reset
    gate, new = (code for code in _acts(b)[:2] if code is not None)
    return kind(tuple(found), Gru(gate, new), units, w.place(SCRATCH))


def _weights(w: Workshop, b: Bound, d: int) -> tuple[int, int, int, int]:
    """The offsets of a direction's weights: of x, the bias with them, of h, and what stays apart."""
    units = b.args["r"].shape[2]
    own, inner = (list(b.args[n].data[d].reshape(3, units, -1)) for n in ("w", "r"))
    bias: Array = np.zeros(6 * units, np.float32) if b.args["b"] is None else b.args["b"].data[d]
    bias = bias.reshape(2, 3, units)
    if b.args["linear"]:
        sums = [bias[0, 0] + bias[1, 0], bias[0, 1] + bias[1, 1], bias[0, 2]]
        return *packed_of(w, own, sums, inner), w.pack(rows([bias[1, 2]], w.machine.lanes))
    return *packed_of(w, own, list(bias[0] + bias[1]), inner[:2]), w.pack(inward(inner[2:], w.machine.lanes))


NATIVE = (native(Family(_takes, _make, scratch=_room), rnn_nd.GRU_SEQUENCE),)
