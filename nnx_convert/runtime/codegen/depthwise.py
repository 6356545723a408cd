"""Convolutions channel by channel: a vector of channels and a patch of outputs share what they read."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import Array
from ..bind import Bound
from .dense import border_of, pads, taken
from .elements import BOUNDS, Part, chained, follows, matched
from .grouped import in_groups
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .micro import continued, revisited
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native
from .tiles import scarce


#: Registers for sums below which a filter is not kept in registers, and its columns up to which that is not slower.
ROOM, WIDE = 6, 7


@frozen
class Patch:
    """A micro-kernel `(I, W, O, vectors)`: `rows` by `columns` outputs for each vector of channels.

    `x` and `out` are the bytes from row to row and from cell to cell. Of weights, those of a vector are together, its
    bias last. With a `tail`, there is one vector, of so many channels.
    """

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    rows: int
    columns: int
    x: tuple[int, int]
    out: tuple[int, int]
    tail: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[tuple[int, int, int], ...] = ()

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("patch", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        more = tuple(("ptr readonly", f"%E{n}") for n in range(len(self.extras)))
        f = Function(m, name, (("ptr noalias readonly", "%I"), ("ptr noalias readonly", "%W"), ("ptr", "%O"),
                               ("i64", "%vectors"), *more))
        size, taps = m.machine.lanes * ITEM, self.size[0] * self.size[1]
        if self.tail:
            self._vector(f, "%I", "%W", "%O", [e for _, e in more])
            if self._later(f):
                self._again(f, ["%O", *(e for _, e in more)], self.tail)
        else:
            carried = [("ptr", "%I"), ("ptr", "%W"), ("ptr", "%O"), *(("ptr", e) for _, e in more)]

            def body(_: str, now: list[str]) -> list[str]:
                self._vector(f, now[0], now[1], now[2], now[3:])
                steps = (size, size * (taps + 1), size, *(size if e[2] else 0 for e in self.extras))
                return [f.at(p, step) for p, step in zip(now, steps, strict=True)]
            f.loop(0, "%vectors", 1, carried, body)
            if self._later(f):
                self._all_again(f, carried[2:], size)
        f.finish()

    def _all_again(self, f: Function, carried: Sequence[tuple[str, str]], size: int) -> None:
        """The chain done to all vectors of channels."""
        def body(_: str, now: list[str]) -> list[str]:
            self._again(f, now, f.machine.lanes)
            steps = (size, *(size if e[2] else 0 for e in self.extras))
            return [f.at(p, step) for p, step in zip(now, steps, strict=True)]
        f.loop(0, "%vectors", 1, carried, body)

    def _vector(self, f: Function, x: str, w: str, out: str, extras: list[str]) -> None:
        """The outputs of one vector of channels. Each cell of the image is loaded once, a filter's row for each row."""
        lanes, (kh, kw) = f.machine.lanes, self.size
        kind, count = vector(lanes), self.tail or lanes
        bias = f.load(kind, w, kh * kw * lanes * ITEM)
        sums: dict[tuple[int, int], str] = {}
        weights: dict[int, str] = {}
        row, line = -1, x
        for (y, column), uses in sorted(self._cells().items()):
            if y != row:
                weights, row = {}, y
                if sums and not f.machine.x86:   # LLVM would read all rows first
                    x, w = (f.behind(p, kind, sums.values()) for p in (x, w))
                line = f.at(x, y * self.x[0])
            value = f.load_first(count, lanes, "float", line, column * self.x[1])
            for at, tap in uses:
                if tap not in weights:
                    weights[tap] = f.load(kind, w, tap * lanes * ITEM)
                sums[at] = f.fma(kind, value, weights[tap], sums.get(at, bias))
        later = self._later(f)
        for (i, j), value in sums.items():
            found = f.clamp(kind, value, *BOUNDS[self.act])
            there = [(f.at(e, i * row + j * cell), channel) for e, (row, cell, channel) in zip(
                extras, self.extras, strict=True)]
            now = found if later else continued(f, self.chain, found, there, count)
            f.store_first(count, lanes, "float", now, f.at(out, i * self.out[0]), j * self.out[1])

    def _later(self, f: Function) -> bool:
        """Whether the chain has too many numbers for the registers, beside the filter: a loop of its own does it."""
        return scarce(f.machine) and any(part.long for part in self.chain)

    def _again(self, f: Function, at: Sequence[str], count: int) -> None:
        """The chain done to a vector of channels of what is stored."""
        revisited(f, self.chain, (self.rows, self.columns), at, ((*self.out, ITEM), *self.extras), count)

    def _cells(self) -> dict[tuple[int, int], list[tuple[tuple[int, int], int]]]:
        """The cells of the image that the patch reads: for each the outputs it counts in, and by which tap."""
        found: dict[tuple[int, int], list[tuple[tuple[int, int], int]]] = {}
        for i in range(self.rows):
            for j in range(self.columns):
                for tap in range(self.size[0] * self.size[1]):
                    ky, kx = divmod(tap, self.size[1])
                    cell = (i * self.strides[0] + ky * self.dilations[0], j * self.strides[1] + kx * self.dilations[1])
                    found.setdefault(cell, []).append(((i, j), tap))
        return found


@frozen
class Depthwise:
    """A depthwise convolution with one filter a channel; `x` begins at the first tap of the first output."""

    x: Place
    out: Place
    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    patch: tuple[int, int]
    weights: int
    act: int
    chain: tuple[Part, ...] = ()
    extras: tuple[Place, ...] = ()

    def micro(self, rows: int, columns: int, tail: int) -> Patch:
        """The micro-kernel of a patch."""
        return Patch(self.size, self.strides, self.dilations, rows, columns,
                     (self.x.strides[1], self.x.strides[2]), (self.out.strides[1], self.out.strides[2]), tail,
                     self.act, self.chain,
                     tuple((e.strides[1], e.strides[2], e.strides[3]) for e in self.extras))

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("depthwise", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        self._walk(f)
        f.finish()

    def _walk(self, f: Function) -> None:
        """This thread's bands of rows."""
        n, h, _, _ = self.out.shape
        bands = -(-h // self.patch[0])
        first, last = f.share(n * bands)

        def band(i: str, _: list[str]) -> None:
            image, at = f.div(i, bands), f.rem(i, bands)
            if h % self.patch[0]:
                f.when(f.let(f"icmp eq i64 {at}, {bands - 1}"),
                       lambda: self._band(f, image, at, h % self.patch[0]),
                       lambda: self._band(f, image, at, self.patch[0]))
            else:
                self._band(f, image, at, self.patch[0])
        f.loop(first, last, 1, [], band)

    def _band(self, f: Function, image: str, at: str, rows: int) -> None:
        """So many rows of outputs, patch after patch."""
        w, columns = self.out.shape[2], self.patch[1]
        y = f.mul(at, self.patch[0])
        places = ((self.x, self.strides), (self.out, (1, 1)), *((e, (1, 1)) for e in self.extras))
        starts = [f.at(p.base, f.add(p.offset, f.add(f.mul(image, p.strides[0]), f.mul(y, p.strides[1] * s[0]))))
                  for p, s in places]
        steps = [columns * p.strides[2] * s[1] for p, s in places]

        def patch(_: str, now: list[str]) -> list[str]:
            self._patch(f, now, rows, columns)
            return [f.at(p, step) for p, step in zip(now, steps, strict=True)]
        ends = starts
        if w >= columns:
            ends = f.loop(0, w // columns, 1, [("ptr", p) for p in starts], patch)
        if w % columns:
            self._patch(f, ends, rows, w % columns)

    def _patch(self, f: Function, now: list[str], rows: int, columns: int) -> None:
        """All channels of one patch."""
        lanes, channels = f.machine.lanes, self.out.shape[3]
        full, tail = divmod(channels, lanes)
        taps = self.size[0] * self.size[1]

        def call(pointers: list[str], weights: str, vectors: int, tail: int) -> None:
            more = "".join(f", ptr {p}" for p in pointers[2:])
            f.do(f"call void @{self.micro(rows, columns, tail).emit(f.module)}(ptr {pointers[0]}, ptr {weights}, "
                 f"ptr {pointers[1]}, i64 {vectors}{more})")
        base = f.at("%weights", self.weights)
        if full:
            call(now, base, full, 0)
        if tail:
            size = full * lanes * ITEM
            moved = [f.at(p, size) for p in now[:2]] + [
                f.at(p, size if e.strides[3] else 0) for p, e in zip(now[2:], self.extras, strict=True)]
            call(moved, f.at(base, size * (taps + 1)), 1, tail)


def packed(w: Array, bias: Array, lanes: int) -> Array:
    """Weights [taps, channels] and the bias, those of a vector of channels together, zeros behind."""
    taps, channels = w.shape
    wide = np.zeros((taps + 1, -(-channels // lanes) * lanes), np.float32)
    wide[:taps, :channels], wide[taps, :channels] = w, bias
    return wide.reshape(taps + 1, -1, lanes).transpose(1, 0, 2)


def _takes(b: Bound, machine: Machine) -> bool:
    return taken(b, machine, "w", "b") and (b.args["mult"] > 1 or math.prod(b.args["w"].shape[1:3]) <= 64)


def patch_of(size: tuple[int, int], strides: tuple[int, int], h: int, w: int, machine: Machine) -> tuple[int, int]:
    """Rows and columns of outputs together: sums and a filter fit into registers. Where a filter does not, its numbers
    are read again for each row of cells, and more sums share them, fewer where those numbers take registers, too."""
    registers = machine.registers
    room = registers - size[0] * size[1] - 2
    if room < ROOM and size[1] <= WIDE:
        rows = 2 if registers > 16 and h > 1 else 1
        most = (8 if machine.x86 else 6) if (strides[1] == 1 if registers > 16 else size[1] <= 5) else 4
        return rows, -(-w // -(-w // most))
    rows = 2 if strides[0] == 1 and h > 1 and room >= 10 else 1
    return rows, max(1, min(w, 4, room // rows if room > 0 else 1))


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    top, left, _, _ = pads(b.args)
    filters = b.args["w"].data
    _, kh, kw, channels = filters.shape
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(group.outputs[0])
    strides, dilations = (b.args["sh"], b.args["sw"]), (b.args.get("dh", 1), b.args.get("dw", 1))
    if b.args["mult"] > 1:
        return in_groups(w, group, filters.transpose(3, 1, 2, 0), channels // b.args["mult"], dilations)
    chain, slots = chained(group.tail, b.outputs[0])
    weights = w.pack(packed(filters.reshape(kh * kw, channels), b.args["b"].data, w.machine.lanes))
    patch = patch_of((kh, kw), strides, out.shape[1], out.shape[2], w.machine)
    return Depthwise(x, out, (kh, kw), strides, dilations, patch, weights, b.args["act"], chain,
                     tuple(matched(w.place(s), out.shape) for s in slots))


NATIVE = (native(Family(_takes, _make, border_of, strided=True, fuses=follows), conv.DEPTHWISE_CONV_2D),)
