"""Convolutions of bytes in groups of channels, and transposed ones, by the kernels of dense ones."""
from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import Array
from ..bind import Bound
from ..fixedpoint import grid
from .bytes import Layer, lower_of, scaling, sums, taken, task_of, x_signed, zero_border
from .dense import pads, runs_of
from .grouped import Several, in_phases, met_by, reach_of
from .ir import SHARED, Function, Module
from .machine import Machine
from .places import Border, Place
from .requantise import Range, Scaling
from .tasks import ALIGN, Family, Group, Task, Workshop, native

#: Phases of a transposed convolution at most, each of which is code of its own.
MOST_PHASES = 64


@frozen
class Beside:
    """The same task for `count` groups of channels from one on, shared by threads: it reads at %source, writes at
    %target, and goes on by a number of bytes there and among the weights, from group to group."""

    one: Task
    count: int
    source: Place
    target: Place
    weights: int
    steps: tuple[int, int, int]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("beside", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        begins = [(p.base, p.offset) for p in (self.source, self.target)] + [("%weights", self.weights)]

        def group(i: str, _: list[str]) -> None:
            source, target, weights = (f.at(base, f.add(f.mul(i, step), offset))
                                       for (base, offset), step in zip(begins, self.steps, strict=True))
            f.do(f"call void @{self.one.emit(m)}(ptr %arena, ptr {weights}, i64 0, i64 1, ptr {source}, ptr {target}, "
                 f"ptr %arena)")
        f.loop(*f.share(self.count), 1, [], group)
        f.finish()


def layer(w: Workshop, b: Bound, x: Place, out: Place, filters: Array, strides: tuple[int, int],
          channels: slice = slice(None)) -> Layer:
    """Filters [out, kh, kw, in] over an image, those of some channels of an operation: scaled as all are."""
    weights, zero = b.args["w"].data, grid(b.args["w"])[1]
    reach, _ = sums(b, weights.reshape(len(weights), -1).T)
    found, count = scaling(b, reach, w.machine), filters.shape[0]
    _, kh, kw, depth = filters.shape
    centred = filters.reshape(count, -1).T.astype(np.int16) - zero
    start = b.args["b"].data[channels].astype(np.int64) - grid(b.args["x"])[1] * centred.sum(0, dtype=np.int64)
    return Layer(x, out, strides, x.strides[1], runs_of(kw, 1, depth, x), (kh, kw), centred.reshape(kh, -1, count),
                 lower_of(weights, zero), start, Scaling(found.formula, tuple(p[channels] for p in found.parameters)),
                 Range.of(b.outs[0], b.args["act"]), x_signed(b), None, ())


# Groups.
def _make(w: Workshop, group: Group) -> Task:
    """Where groups need other code than their neighbours, as their weights decide, they are tasks of their own."""
    b, (top, left, _, _) = group.head, pads(group.head.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(b.outputs[0])
    filters, groups = b.args["w"].data, b.args["groups"]
    each, depth = filters.shape[0] // groups, filters.shape[3]
    near, far = (replace(p, base=base, offset=0, shape=(*p.shape[:3], n), border=Border())
                 for p, base, n in ((x, "%source", depth), (out, "%target", each)))
    made = []
    for n in range(groups):
        own, part = replace(w, weights=[], used=0, _kept={}), slice(n * each, (n + 1) * each)
        made.append((task_of(own, layer(own, b, near, far, filters[part], (b.args["sh"], b.args["sw"]), part)), own))
    found, first = list[Task](), 0
    for task, alike in groupby(made, lambda pair: pair[0]):
        shops = [own for _, own in alike]
        size = -(-shops[0].used // ALIGN) * ALIGN
        at = w.pack(np.stack([blob(shop, size) for shop in shops]))
        source, target = (replace(p, offset=p.offset + first * n) for p, n in ((x, depth), (out, each)))
        found.append(Beside(task, len(shops), source, target, at, (depth, each, size)))
        first += len(shops)
    return found[0] if len(found) == 1 else Several(tuple(found))


def blob(shop: Workshop, size: int) -> Array:
    """All weights of a workshop as so many bytes."""
    made = np.zeros(size, np.uint8)
    for at, data in shop.weights:
        made[at:at + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return made


def _takes(b: Bound, _: Machine) -> bool:
    return taken(b, 0)


# Transposed convolutions.
def _takes_transposed(b: Bound, _: Machine) -> bool:
    return b.args["b"] is not None and taken(b, 0) and in_phases(b, MOST_PHASES)


def _border(b: Bound) -> dict[int, Border]:
    zero = grid(b.args["x"])[1]
    return reach_of(b, zero - 256 if zero > 127 else zero)


def _make_transposed(w: Workshop, group: Group) -> Task:
    b = group.head
    x, out = w.place(b.slots["x"]), w.place(b.outputs[0])
    return Several(tuple(task_of(w, layer(w, b, source, to, own, (1, 1))) for source, to, own in met_by(b, x, out)))


NATIVE = (
    native(Family(_takes, _make, zero_border, strided=True), conv.GROUPED_CONV_2D, of_bytes=True),
    native(Family(_takes_transposed, _make_transposed, _border, strided=True), conv.TRANSPOSE_CONV_2D, of_bytes=True),
)
