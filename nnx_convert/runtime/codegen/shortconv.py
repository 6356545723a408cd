"""Convolutions of 16-bit integers with 64-bit biases: pairs multiplied and added in 32 bits where weights allow that.

A tile of neighbouring pixels keeps its sums, for as many channels as a vector has, in registers. What follows is in 64
bits: the bias, a multiplier of 15 bits, one rounding.
"""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import I64, Q8S, QPC, Q16S, Array, Quant
from ..bind import Bound
from ..fixedpoint import activation_range, grid, multipliers
from ..products import real_multipliers
from .arithmetic import bounded
from .dense import border_of, pads
from .integers import pairs
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import Border, Place
from .scalars import SCALARS
from .tasks import Family, Group, Task, Workshop, native, remembered
from .turns import pieces

#: Pixels of a tile; bytes of a pair of 16 bits and of a number of 64.
PIXELS, PAIR, LONG = 4, 4, 8
#: 16 bits have no larger magnitude; multipliers from here on are cut to the largest of 15 bits.
MOST, LIMIT = 1 << 15, 0x7FFF0000
#: Numbers of 64 bits that each channel has: what is added, the multiplier, half of a unit, and by how much to shift.
PARAMETERS = 4


@frozen
class ShortConv:
    """A convolution of x, which begins where its border does; weights and parameters lie in blocks of a vector."""

    x: Place
    out: Place
    size: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    weights: int
    parameters: int
    bounds: tuple[int, int]

    @property
    def depth(self) -> int:
        """Pairs of channels of an input pixel."""
        return -(-self.x.shape[3] // 2)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("shortconv", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        n, rows, columns, channels = self.out.shape
        first, last = f.share(n * rows)

        def row(i: str, _: list[str]) -> None:
            image, y = f.div(i, rows), f.rem(i, rows)
            source = f.add(f.mul(image, self.x.strides[0]), f.mul(y, self.strides[0] * self.x.strides[1]))
            to = f.add(f.mul(image, self.out.strides[0]), f.mul(y, self.out.strides[1]))
            x, out = (f.at(p.base, f.add(p.offset, at)) for p, at in ((self.x, source), (self.out, to)))

            def tile(column: str, count: int) -> None:
                near = f.at(x, f.mul(column, self.strides[1] * self.x.strides[2]))
                far = f.at(out, f.mul(column, self.out.strides[2]))
                pieces(f, channels, m.machine.lanes, lambda c, some: self._tile(f, near, far, c, count, some))
            pieces(f, columns, PIXELS, tile)
        f.loop(first, last, 1, [], row)
        f.finish()

    def _tile(self, f: Function, x: str, out: str, channel: str, count: int, some: int) -> None:
        """So many pixels of some channels, the first of which begins a block."""
        lanes = f.machine.lanes
        whole, half = vector(lanes, "i32"), vector(2 * lanes, "i16")
        block = self.size[0] * self.size[1] * self.depth * PAIR
        weights = f.at("%weights", f.add(f.mul(channel, block), self.weights))
        across = self.strides[1] * self.x.strides[2]

        def tap(ky: str, kx: str, sums: list[str]) -> list[str]:
            at = f.add(f.mul(ky, self.dilation[0] * self.x.strides[1]), f.mul(kx, self.dilation[1] * self.x.strides[2]))
            near = f.at(x, at)
            place = f.mul(f.add(f.mul(ky, self.size[1]), kx), self.depth * lanes * PAIR)

            def pair(c: str, now: list[str]) -> list[str]:
                w = f.load(half, weights, f.add(place, f.mul(c, lanes * PAIR)), 2)
                at = f.at(near, f.mul(c, PAIR))
                read = [f.splat(whole, f.load("i32", at, p * across, 2)) for p in range(count)]
                return [pairs(f, lanes, total, f.let(f"bitcast {whole} {v} to {half}"), w)
                        for total, v in zip(now, read, strict=True)]
            return f.loop(0, self.depth, 1, [(whole, v) for v in sums], pair)

        def line(ky: str, sums: list[str]) -> list[str]:
            return f.loop(0, self.size[1], 1, [(whole, v) for v in sums], lambda kx, now: tap(ky, kx, now))
        sums = f.loop(0, self.size[0], 1, [(whole, number(whole, 0))] * count, line)
        numbers = f.at("%weights", f.add(f.mul(channel, PARAMETERS * LONG), self.parameters))
        for p, total in enumerate(sums):
            to = f.at(out, f.add(f.mul(channel, 2), p * self.out.strides[2]))
            f.store_first(some, lanes, "i16", self._scaled(f, total, numbers), to)

    def _scaled(self, f: Function, total: str, numbers: str) -> str:
        """`fixedpoint.scale64` of sums and what is added to them, within the bounds."""
        lanes = f.machine.lanes
        whole, long, short = (vector(lanes, code) for code in ("i32", "i64", "i16"))
        added, factor, half, shift = (f.load(long, numbers, n * lanes * LONG, LONG) for n in range(PARAMETERS))
        value = f.let(f"add {long} {f.let(f'sext {whole} {total} to {long}')}, {added}")
        value = f.let(f"add {long} {f.let(f'mul {long} {value}, {factor}')}, {half}")
        value = f.let(f"trunc {long} {f.let(f'ashr {long} {value}, {shift}')} to {whole}")
        return f.let(f"trunc {whole} {bounded(f, whole, SCALARS[Q16S], value, *self.bounds)} to {short}")


def _scales(b: Bound) -> tuple[Array, Array]:
    """The multiplier of 15 bits and the shift of each channel."""
    m, s = multipliers(real_multipliers(b.args["x"], b.args["w"], b.outs[0], b.outs[0].shape[3], False))
    m, s = (np.broadcast_to(np.asarray(v, np.int64), (b.outs[0].shape[3],)) for v in (m, s))
    return np.where(m < LIMIT, m + (1 << 15) >> 16, 0x7FFF), 15 - s


@remembered
def _takes(b: Bound, _: Machine) -> bool:
    """Constant weights small enough for sums of 32 bits, and zero points of 0."""
    a, out = b.args, b.outs[0]
    x, w, bias = a["x"], a["w"], a["b"]
    if x.type != Q16S or out.type != Q16S or a["nchw"] or w.type not in (Q8S, QPC) or bias.type != I64:
        return False
    if any(t.data is None for t in (w, bias)) or any(t.size == 0 for t in (x, out)) or any(
            not isinstance(t.quant, Quant) or t.quant.zero for t in (x, out)) or grid(w)[1]:
        return False
    reach = np.abs(w.data.astype(np.int64)).reshape(w.shape[0], -1).sum(1).max()
    shifts = _scales(b)[1]
    return bool(reach * MOST < 1 << 31 and shifts.min() >= 1 and shifts.max() < 63)


def _blocks(values: Array, lanes: int) -> Array:
    """Rows of channels with channels in front: [blocks, rows, lanes, ...], zeros behind the last."""
    rows, channels = values.shape[:2]
    blocks = -(-channels // lanes)
    made = np.zeros((rows, blocks * lanes, *values.shape[2:]), values.dtype)
    made[:, :channels] = values
    return np.moveaxis(made.reshape(rows, blocks, lanes, *values.shape[2:]), 1, 0)


def _make(w: Workshop, group: Group) -> Task:
    b, a = group.head, group.head.args
    lanes, (top, left, _, _) = w.machine.lanes, pads(a)
    filters, bias = a["w"].data.astype(np.int16), a["b"].data.astype(np.int64)
    units, kh, kw, depth = filters.shape
    paired = np.zeros((units, kh * kw, depth + depth % 2), np.int16)
    paired[..., :depth] = filters.reshape(units, kh * kw, depth)
    weights = _blocks(paired.reshape(units, -1, 2).swapaxes(0, 1), lanes)
    factor, shift = _scales(b)
    numbers = _blocks(np.stack([bias, factor, np.int64(1) << shift - 1, shift]), lanes)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(b.outputs[0])
    return ShortConv(x, out, (kh, kw), (a["sh"], a["sw"]), (a["dh"], a["dw"]), w.pack(weights), w.pack(numbers),
                     activation_range(a["act"], b.outs[0]))


def _border(b: Bound) -> dict[int, Border]:
    return border_of(b) if b.args["x"].type == Q16S else {}


native(Family(_takes, _make, _border, strided=True), conv.CONV_2D, otherwise=True)
