"""Convolutions of 16-bit integers with 64-bit biases, and products of such by constant matrices: pairs multiplied and
added in 32 bits where weights allow that.

A tile of neighbouring pixels keeps its sums, for as many channels as a vector has, in registers. What follows is in 64
bits: the bias, a multiplier of 15 bits, one rounding.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...frozen import frozen
from ...ops import conv, host
from ...types import I64, Q8S, QPC, Q16S, Array, ChannelQuant, Quant, Tensor
from ..bind import Bound
from ..fixedpoint import activation_range, f32, grid, limits, multipliers
from ..products import real_multipliers
from .arithmetic import bounded
from .dense import border_of, pads, rows_of
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
    return _cut(real_multipliers(b.args["x"], b.args["w"], b.outs[0], b.outs[0].shape[3], False), b.outs[0].shape[3])


def _cut(reals: Sequence[float] | Array, count: int) -> tuple[Array, Array]:
    """The same of real multipliers: one, or so many."""
    m, s = (np.broadcast_to(np.asarray(v, np.int64), (count,)) for v in multipliers(reals))
    return np.where(m < LIMIT, m + (1 << 15) >> 16, 0x7FFF), 15 - s


@remembered
def _takes(b: Bound, _: Machine) -> bool:
    """Constant weights small enough for sums of 32 bits, and zero points of 0."""
    a, out = b.args, b.outs[0]
    x, w, bias = a["x"], a["w"], a["b"]
    if not _symmetric(x, w, out) or a["nchw"] or bias.type != I64 or bias.data is None:
        return False
    return _fits(w.data.reshape(w.shape[0], -1), _scales(b)[1])


def _symmetric(x: Tensor, w: Tensor, out: Tensor) -> bool:
    """Whether 16 bits, by constant bytes, become 16 bits, and all zero points are 0."""
    if x.type != Q16S or out.type != Q16S or w.type not in (Q8S, QPC) or w.data is None or x.size == 0 or out.size == 0:
        return False
    return all(isinstance(t.quant, Quant) and not t.quant.zero for t in (x, out)) and not grid(w)[1]


def _fits(rows: Array, shifts: Array) -> bool:
    """Whether sums by the rows of a matrix are of 32 bits, and shifted by what shifts do."""
    reach = np.abs(rows.astype(np.int64)).sum(1).max()
    return bool(reach * MOST < 1 << 31 and shifts.min() >= 1 and shifts.max() < 63)


def _blocks(values: Array, lanes: int) -> Array:
    """Rows of channels with channels in front: [blocks, rows, lanes, ...], zeros behind the last."""
    rows, channels = values.shape[:2]
    blocks = -(-channels // lanes)
    made = np.zeros((rows, blocks * lanes, *values.shape[2:]), values.dtype)
    made[:, :channels] = values
    return np.moveaxis(made.reshape(rows, blocks, lanes, *values.shape[2:]), 1, 0)


def _packed(w: Workshop, filters: Array, bias: Array, scales: tuple[Array, Array]) -> tuple[int, int]:
    """Where filters [out, kh, kw, in] are among the weights, and the parameters that go with them."""
    lanes, (units, kh, kw, depth), (factor, shift) = w.machine.lanes, filters.shape, scales
    paired = np.zeros((units, kh * kw, depth + depth % 2), np.int16)
    paired[..., :depth] = filters.reshape(units, kh * kw, depth)
    weights = _blocks(paired.reshape(units, -1, 2).swapaxes(0, 1), lanes)
    numbers = _blocks(np.stack([bias.astype(np.int64), factor, np.int64(1) << shift - 1, shift]), lanes)
    return w.pack(weights), w.pack(numbers)


def _make(w: Workshop, group: Group) -> Task:
    b, a, (top, left, _, _) = group.head, group.head.args, pads(group.head.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(b.outputs[0])
    return ShortConv(x, out, a["w"].shape[1:3], (a["sh"], a["sw"]), (a["dh"], a["dw"]),
                     *_packed(w, a["w"].data, a["b"].data, _scales(b)), activation_range(a["act"], b.outs[0]))


def _border(b: Bound) -> dict[int, Border]:
    return border_of(b) if b.args["x"].type == Q16S else {}


# Products by a matrix.
def _columns(b: Bound) -> tuple[Array, tuple[Array, Array]]:
    """The columns of a constant matrix as rows, and how sums by each are scaled: `kernels.conv.integer_matmul`."""
    x, y, so = b.args["x"], b.args["y"], float(grid(b.outs[0])[0])
    rows = y.data.reshape(y.shape[-2:])
    rows = rows if b.args["adj_y"] else rows.T
    if isinstance(y.quant, ChannelQuant):
        return rows, _cut([float(grid(x)[0]) * float(f32(k)) / so for k in y.quant.scales], len(rows))
    return rows, _cut([float(f32(grid(x)[0] * grid(y)[0])) / so], len(rows))


@remembered
def _takes_product(b: Bound, _: Machine) -> bool:
    x, y = b.args["x"], b.args["y"]
    if not _symmetric(x, y, b.outs[0]) or b.args["adj_x"] or math.prod(y.shape[:-2]) != 1:
        return False
    if isinstance(y.quant, ChannelQuant) and y.quant.axis != y.rank - (2 if b.args["adj_y"] else 1):
        return False
    rows, scales = _columns(b)
    return _fits(rows, scales[1])


def _make_product(w: Workshop, group: Group) -> Task:
    b = group.head
    rows, scales = _columns(b)
    units, depth = rows.shape
    weights, parameters = _packed(w, rows.reshape(units, 1, 1, depth), np.zeros(units), scales)
    x, out = (_lines(rows_of(w.place(slot), n)) for slot, n in ((b.slots["x"], depth), (b.outputs[0], units)))
    return ShortConv(x, out, (1, 1), (1, 1), (1, 1), weights, parameters, limits(b.outs[0]))


def _lines(p: Place) -> Place:
    """One row of pixels as several, which threads share."""
    count = p.shape[2]
    line = next((n for n in (16 * PIXELS, 4 * PIXELS, PIXELS) if count % n == 0), count)
    return replace(p, shape=(1, count // line, line, p.shape[3]), strides=(p.strides[0], line * p.strides[2],
                                                                           *p.strides[2:]))


NATIVE = (
    native(Family(_takes, _make, _border, strided=True), conv.CONV_2D, otherwise=True),
    native(Family(_takes_product, _make_product), conv.BATCH_MATMUL, host.MATMUL, otherwise=True),
)
