"""Convolutions of bytes and products by constant matrices, as one micro-kernel.

As in `dense`, with four bytes of the depth at a time where the machine multiplies so many at once (unsigned by signed
ones: signed activations are read with 128 added, which the start values take back), else two, widened to 16 bits in
`rooms`. Memory holds the model's own bytes. Weights that are no signed bytes less their zero point lie lower:
`Micro.shift`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import BYTES, I32, QPC, QS, Array, ChannelQuant
from ..bind import Bound
from ..fixedpoint import grid, limits
from ..products import real_multipliers
from .amx import LANES, Depth, Tiled, config, height_of, packed as packed_tiles, repeated
from .dense import as_row, pads, rows_of, runs_of
from .elements import matched
from .epilogue import Epilogue, blocks_of, dealt, order_of
from .integers import flipped, lift, quads
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .nearest import product_scales
from .places import Border, Place
from .rooms import BEYOND, DEEPEST, Pairs, Room, fits, held
from .requantise import Range, Scaling, Steps, block, cut_by, directed, planned
from .sums import Addition, addition_of, joins
from .tasks import Family, Group, Task, Workshop, kind, native
from .tiles import Spot, Tile, best, cut, fit_of_bytes
from .wholes import STEP, narrowed, twice, weighing

#: Pixels that fit beside so many vectors of channels where each pixel is summed, too, in 32 registers.
SHIFTED = {1: 14, 2: 9, 3: 6, 4: 5}
#: The same on aarch64, where no product reads an operand from memory.
SHIFTED_BY_LOADS = {1: 11, 2: 7, 3: 5, 4: 4}
#: Whose sums are scaled in FLOAT64, as LiteRT does it.
BY_DOUBLES = frozenset({conv.FULLY_CONNECTED.name})
#: The places of what is added to results: none, or one.
Extras = tuple[Place, ...]
#: Of each channel the least and the greatest sum, and what sums of raw products begin with.
Sums = tuple[tuple[Array, Array], Array]
#: Those of operations that have been asked about, which are asked about again when they are made.
_sums: WeakKeyDictionary[Bound, Sums] = WeakKeyDictionary()
_reals: WeakKeyDictionary[Bound, Array] = WeakKeyDictionary()


@frozen
class Micro:
    """A micro-kernel `(A, B, blocks, S)`: see `micro.Micro`; runs are of bytes. Sums go to S, pixel after pixel.

    Four bytes of the depth are multiplied at once. Sums begin with those of `blocks`, each vector's `start`
    bytes apart. With a `shift`, weights lie so much lower than they are: each pixel's bytes are summed, too, and count
    so many times.
    """

    a: tuple[int, ...]
    vectors: int
    taps: int
    row: int
    runs: tuple[tuple[int, int], ...]
    signed: bool
    start: int
    shift: int = 0

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("bytes", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%A"), ("ptr noalias readonly", "%B"),
                               ("ptr noalias readonly", "%blocks"), ("ptr noalias", "%S")))
        kind, size = vector(m.machine.lanes, "i32"), 4 * m.machine.lanes
        start = [f.load(kind, "%blocks", j * self.start) for j in range(self.vectors)] * len(self.a)
        start += ["zeroinitializer"] * (len(self.a) if self.shift else 0)

        def tap(_: str, carried: list[str]) -> list[str]:
            a, length = carried[0], self.runs[0][1]
            now = f.over([at for at, _ in self.runs], [("ptr", carried[1]), *((kind, s) for s in carried[2:])],
                         lambda at, now: self._run(f, f.at(a, at), now[0], now[1:], length))
            return [f.at(a, self.row), *now]
        carried = [("ptr", "%A"), ("ptr", "%B"), *((kind, s) for s in start)]
        sums = f.loop(0, self.taps, 1, carried, tap)[2:] if self.taps > 1 else tap("0", ["%A", "%B", *start])[2:]
        for n, total in enumerate(self._shifted(f, sums) if self.shift else sums):
            f.store(kind, total, "%S", n * size, size)
        f.finish()

    def _shifted(self, f: Function, sums: list[str]) -> list[str]:
        """The sums of products with what the pixels' own sums add to them."""
        kind, count = vector(f.machine.lanes, "i32"), len(self.a) * self.vectors
        more = [f.let(f"mul {kind} {x}, {number(kind, self.shift)}") for x in sums[count:]]
        return [f.let(f"add {kind} {x}, {more[n // self.vectors]}") for n, x in enumerate(sums[:count])]

    def _run(self, f: Function, a: str, b: str, sums: list[str], length: int) -> list[str]:
        """The products of one run of neighbours: the panel's next place, and the sums."""
        lanes = f.machine.lanes
        kind, size, steps = vector(lanes, "i32"), lanes * 4 * self.vectors, -(-length // STEP)
        turns = 2 if twice(f.machine, self.a, sums) and steps % 2 == 0 else 1

        def body(_: str, carried: list[str]) -> list[str]:
            a, b, now = carried[0], carried[1], carried[2:]
            for u in range(turns):
                now = self._step(f, a, b, now, u)
            return [f.at(a, STEP * turns), f.at(b, size * turns), *now]
        return f.loop(0, steps, turns, [("ptr", a), ("ptr", b), *((kind, s) for s in sums)], body)[1:]

    def _step(self, f: Function, a: str, b: str, sums: list[str], step: int) -> list[str]:
        """Some bytes of the depth for all pixels and channels."""
        lanes, found = f.machine.lanes, list(sums)
        kind = vector(4 * lanes, "i8")
        panel = [f.load(kind, b, (step * self.vectors + j) * lanes * 4) for j in range(self.vectors)]
        for i, offset in enumerate(self.a):
            x = self._spread(f, a, offset + step * STEP)
            for j in range(self.vectors):
                n = i * self.vectors + j
                found[n] = quads(f, lanes, found[n], x, panel[j])
            if self.shift:
                n = len(self.a) * self.vectors + i
                found[n] = quads(f, lanes, found[n], x, number(kind, 1))
        return found

    def _spread(self, f: Function, a: str, offset: int) -> str:
        """The next bytes of a pixel, in every lane."""
        lanes = f.machine.lanes
        whole = vector(lanes, "i32")
        x = f.splat(whole, f.load("i32", a, offset, 1))
        x = flipped(f, whole, x) if lift(f.machine, self.signed) else x
        return f.let(f"bitcast {whole} {x} to {vector(4 * lanes, 'i8')}")


@frozen
class Bytes:
    """A convolution, or a product where the image is one row of pixels.

    `x` begins at the first tap of the first output; `weights` and `blocks` are offsets in the weights.
    """

    x: Place
    out: Place
    taps: int
    runs: tuple[tuple[int, int], ...]
    row: int
    strides: tuple[int, int]
    weights: int
    blocks: int
    tile: Tile
    together: int
    signed: bool
    formula: str
    range: Range
    added: Addition | None = None
    extras: Extras = ()
    shift: int = 0
    narrow: bool = False

    @property
    def panel(self) -> int:
        """The bytes of one lane's weights."""
        return weighing(self.narrow) * self.taps * sum(-(-length // self.together) for _, length in self.runs)

    @property
    def room(self) -> Room:
        """How tiles lie in a room, where two bytes are multiplied at once."""
        return Room(self.strides[1] * self.x.strides[2], self.taps, self.row, self.runs, self.signed)

    def micro(self, pixels: int, vectors: int, lanes: int) -> Micro | Pairs:
        """The micro-kernel of a tile's size."""
        start = block(self.formula) * lanes
        if self.together == 2:
            return Pairs(self.room.walk(pixels, vectors, self.narrow), start)
        step = self.strides[1] * self.x.strides[2]
        return Micro(tuple(i * step for i in range(pixels)), vectors, self.taps, self.row if self.taps > 1 else 0,
                     self.runs, self.signed, start, self.shift)

    def epilogue(self, vectors: int, tail: int, lanes: int) -> Epilogue:
        """What becomes of its sums."""
        extra = self.extras[0].strides[2] if self.extras else 0
        return Epilogue(vectors, tail, self.formula, self.range, 4 * lanes * vectors, self.out.strides[2], self.added,
                        extra)

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("product", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, lanes = Function(m, name, SHARED), m.machine.lanes
        count = self.tile.most * self.tile.vectors
        sums = f.let(f"alloca [{count} x {vector(lanes, 'i32')}], align {4 * lanes}")
        cut_by(f, self.formula, lambda: self._walk(f, sums))
        f.finish()

    def _walk(self, f: Function, sums: str) -> None:
        """This thread's tiles."""
        if self.together == 2:
            self._blocks(f, sums)
        else:
            self.tile.walk(f, self.out.shape, lambda spot: self._tile(f, spot, self._read(f, spot), sums))

    def _blocks(self, f: Function, sums: str) -> None:
        """This thread's panels of blocks of tiles, each block of which is brought into a room first."""
        n, rows, _, channels = self.out.shape
        tiles, panels = n * rows * self.tile.parts, self.tile.panels(channels, f.machine.lanes)
        size = self.room.size(self.tile.most)
        count = held(tiles, size, panels * f.machine.lanes * self.tile.vectors * self.panel)
        room = f.let(f"alloca [{count * size + BEYOND} x i8], align {BEYOND}")
        first, last = f.share(-(-tiles // count) * panels)

        def each(block: str, body: Callable[[Spot, str], None], panel: str) -> None:
            begin = f.mul(block, count)

            def one(tile: str, _: list[str]) -> None:
                body(self.tile.spot(f, rows, tile, panel), f.at(room, f.mul(f.let(f"sub i64 {tile}, {begin}"), size)))
            f.loop(begin, f.least(f.add(begin, count), tiles), 1, [], one, guarded=False)

        def step(i: str, _: list[str]) -> None:
            block, panel = f.div(i, panels), f.rem(i, panels)
            new = f.let(f"or i1 {f.let(f'icmp eq i64 {i}, {first}')}, {f.let(f'icmp eq i64 {panel}, 0')}")
            f.when(new, lambda: each(block, lambda spot, at: self._brought(f, spot, at), panel))
            each(block, lambda spot, at: self._tile(f, spot, at, sums), panel)
        f.loop(first, last, 1, [], step)

    def _read(self, f: Function, spot: Spot) -> str:
        """Where a tile's first pixel is read."""
        return spot.at(f, self.x, self.strides, 0)

    def _brought(self, f: Function, spot: Spot, to: str) -> None:
        """What a tile reads, brought into a room."""
        a = self._read(f, spot)
        self.tile.sized(f, spot.part, lambda pixels: f.do(
            f"call void @{self.room.emit(f.module, pixels)}(ptr {a}, ptr {to})"))

    def _tile(self, f: Function, spot: Spot, a: str, sums: str) -> None:
        """One tile of one panel of channels, which reads from an address."""
        lanes = f.machine.lanes
        wide = lanes * self.tile.vectors
        c = spot.at(f, self.out, (1, 1), wide)
        b = f.at("%weights", f.add(self.weights, f.mul(spot.panel, wide * self.panel)))
        blocks = f.at("%weights", f.add(self.blocks, f.mul(spot.panel, wide * block(self.formula))))
        e = spot.at(f, self.extras[0], (1, 1), wide) if self.extras else c

        def call(pixels: int, vectors: int, tail: int) -> None:
            micro = self.micro(pixels, vectors, lanes).emit(f.module)
            f.do(f"call void @{micro}(ptr {a}, ptr {b}, ptr {blocks}, ptr {sums})")
            f.do(f"call void @{self.epilogue(vectors, tail, lanes).emit(f.module)}(ptr {sums}, ptr {c}, ptr {blocks}, "
                 f"i64 {pixels}, ptr {e}, i64 0)")
        self.tile.fitted(f, self.out.shape[3], spot, call)


def packed(w: Array, runs: tuple[tuple[int, int], ...], together: int, narrow: bool, vectors: int, lanes: int) -> Array:
    """Weights [taps, depth, channels], whole vectors of channels, by panels; so many bytes of the depth together."""
    taps = len(w)
    ends = np.cumsum([length for _, length in runs])
    parts = []
    for end, (_, length) in zip(ends, runs, strict=True):
        part = np.zeros((taps, -(-length // together) * together, w.shape[2]), f"i{weighing(narrow) // together}")
        part[:, :length] = w[:, end - length:end]
        parts.append(part.reshape(taps, -1, together, w.shape[2]).swapaxes(2, 3))
    wide = np.concatenate(parts, 1).reshape(-1, w.shape[2], together)
    step = vectors * lanes
    return np.concatenate([wide[:, at:at + step].reshape(-1) for at in range(0, w.shape[2], step)]).view(np.uint8)


def taken(b: Bound, axis: int) -> bool:
    """Whether an operation is of bytes by constant weights, whose channels are along an axis, and neither a sum nor a
    thread's stack overflows."""
    x, w, bias = (b.args[n] for n in ("x", "w", "b"))
    sized = all(t.size > 0 for t in (x, w, *b.outs))
    typed = x.type in BYTES and b.outs[0].type in BYTES and w.type in (*BYTES, QPC, QS) and bias.type == I32
    if not typed or not sized or b.args.get("nchw") or w.data is None or bias.data is None:
        return False
    if w.size // w.shape[axis] > DEEPEST:
        return False
    if isinstance(w.quant, ChannelQuant) and w.quant.axis % w.rank != axis or not grid(x)[0] or not grid(b.outs[0])[0]:
        return False
    (low, high), _ = sums(b, np.moveaxis(w.data, axis, -1).reshape(-1, w.shape[axis]))
    reach = np.maximum(-low, high)
    return int(reach.max()) < 1 << 31 and _fits(b, reach)


def _fits(b: Bound, reach: Array) -> bool:
    """Whether sums, scaled, are integers of 31 bits."""
    factors = reals(b, reach.size)
    return bool((reach * factors < 2.0 ** 30).all() and factors.max() < 2.0 ** 30)


def sums(b: Bound, matrix: Array) -> Sums:
    """Of raw weights [depth, channels]: the least and the greatest sum, and what sums of raw products begin with."""
    if b not in _sums:
        _sums[b] = _found_sums(b, matrix)
    return _sums[b]


def _found_sums(b: Bound, matrix: Array) -> Sums:
    x, added = b.args["x"], b.args["b"].data.astype(np.int64)
    weights, (zero, (low, high)) = matrix.astype(np.int16) - grid(b.args["w"])[1], (grid(x)[1], limits(x))
    above, below = (part(weights, 0).sum(0, dtype=np.int64) for part in (np.maximum, np.minimum))
    low, high = low - zero, high - zero
    return (added + above * low + below * high, added + above * high + below * low), added - zero * (above + below)


def reals(b: Bound, count: int) -> Array:
    """The multiplier of each channel."""
    if b not in _reals:
        _reals[b] = real_multipliers(b.args["x"], b.args["w"], b.outs[0], count, kind(b.op) in BY_DOUBLES)
    return _reals[b]


def scaling(b: Bound, reach: tuple[Array, Array], machine: Machine) -> Scaling:
    """How an operation's sums, from the least to the greatest, become its outputs: within `cut_by`."""
    steps = Steps.of(reals(b, reach[0].size), *reach, kind(b.op) in BY_DOUBLES)
    fast = product_scales(b.args["x"], b.args["w"], b.outs[0], reach[0].size)
    return planned(steps, Range.of(b.outs[0], b.args["act"]), machine, fast, cut=True)


@frozen(eq=False)
class Layer:
    """Filters over an image, and the addition that may follow: what tasks are made of.

    `cells` are a filter's rows and columns, `centred` weights [taps, depth, channels] less their zero point, `lower`
    how much lower they lie where they are signed bytes, `start` what sums begin with, [channels].
    """

    x: Place
    out: Place
    strides: tuple[int, int]
    row: int
    runs: tuple[tuple[int, int], ...]
    cells: tuple[int, int]
    centred: Array
    lower: int
    start: Array
    scaling: Scaling
    range: Range
    signed: bool
    added: Addition | None
    extras: Extras

    @property
    def row_of_pixels(self) -> bool:
        """Whether pixels are read one after the other, as if they were one row."""
        return self.cells == self.strides == (1, 1) and self.x.even


def made(w: Workshop, group: Group, x: Place, out: Place, strides: tuple[int, int], dilations: tuple[int, int],
         filters: Array) -> Task:
    """The task of filters [out, kh, kw, in] over an image, and of the addition that may follow in the group."""
    b = group.head
    channels, kh, kw, depth = filters.shape
    matrix, zero = filters.reshape(channels, -1).T, grid(b.args["w"])[1]
    reach, start = sums(b, matrix)
    found = scaling(b, reach, w.machine)
    added = addition_of(group, w.machine, directed(w.machine, found.formula))
    extras: Extras = (matched(w.place(added[1]), out.shape),) if added else ()
    centred = matrix.astype(np.int16) - zero
    layer = Layer(x, out, strides, dilations[0] * x.strides[1], runs_of(kw, dilations[1], depth, x), (kh, kw),
                  centred.reshape(kh, -1, channels), lower_of(filters, zero), start, found,
                  Range.of(b.outs[0], b.args["act"]), x_signed(b), added[0] if added else None, extras)
    return task_of(w, layer)


def task_of(w: Workshop, layer: Layer) -> Tiled | Bytes:
    """A layer's task."""
    return _tiled(w, layer) or _vectors(w, layer)


def lower_of(filters: Array, zero: int) -> int:
    """How much lower weights less their zero point lie as signed bytes; 0 where they are such."""
    if int(filters.min()) - zero >= -128 and int(filters.max()) - zero <= 127:
        return 0
    return (128 if filters.dtype == np.uint8 else 0) - zero


def _tiled(w: Workshop, layer: Layer) -> Tiled | None:
    """A layer's task with AMX, where that is worth it."""
    x, out, (taps, _, channels) = layer.x, layer.out, layer.centred.shape
    places = (out, *layer.extras)
    flat = layer.row_of_pixels and (out.shape[0] == 1 or all(p.even for p in places))
    rows = 1 if flat else math.prod(out.shape[:2])
    height = height_of(math.prod(out.shape[:3]) if flat else out.shape[2], rows)
    depth, shift = Depth.of(taps, layer.row, layer.runs), layer.lower
    if not w.machine.amx or not height or shift and not (shift <= 127 and depth.whole(layer.runs[0][1])):
        return None
    vectors = min(4, -(-channels // LANES))
    where = order_of(channels, vectors, LANES, True)
    ones = w.pack(repeated(shift, depth, layer.runs[0][1])) if shift else None
    weights = packed_tiles(dealt(layer.centred - shift, where), depth, vectors)
    return Tiled(x, out, depth, layer.strides, height, flat, vectors, w.pack(config(height, depth.size)),
                 w.pack(weights), w.pack(blocks_of(layer.start, layer.scaling, where, LANES)), ones, layer.signed,
                 layer.scaling.formula, layer.range, layer.added, layer.extras)


def _vectors(w: Workshop, layer: Layer) -> Bytes:
    """A layer's task with vectors."""
    x, out, extras, machine = layer.x, layer.out, layer.extras, w.machine
    lanes, (taps, deep, channels) = machine.lanes, layer.centred.shape
    if layer.row_of_pixels and all(p.even for p in (out, *extras)):
        x, out, extras = as_row(x), as_row(out), tuple(map(as_row, extras))
    quads_fit = all(length % 4 == 0 for _, length in layer.runs)
    shift = layer.lower if machine.quads and quads_fit else 0
    together = 4 if machine.quads and layer.lower == shift else 2
    start = layer.start
    if together == 4:
        start = start - lift(machine, layer.signed) * layer.centred.sum((0, 1), dtype=np.int64)
    n, rows, width, _ = out.shape
    tile = best(channels, -(-deep // together), taps, n * rows, width, lanes, machine.registers)
    fit = fitting(machine, together, bool(shift))[tile.vectors]
    fit = min(fit, fits(taps * deep)) if together == 2 else fit
    tile = tile if tile.most <= fit else cut(width, fit, tile.vectors)
    where = order_of(channels, tile.vectors, lanes, machine.x86)
    lowered = layer.centred - shift
    narrow = narrowed(machine, together == 4, lowered)
    weights = packed(dealt(lowered, where), layer.runs, together, narrow, tile.vectors, lanes)
    return Bytes(x, out, taps, layer.runs, layer.row, layer.strides, w.pack(weights),
                 w.pack(blocks_of(start, layer.scaling, where, lanes)), tile, together, layer.signed,
                 layer.scaling.formula, layer.range, layer.added, extras, shift, narrow)


def fitting(machine: Machine, together: int, shifted: bool) -> Mapping[int, int]:
    """The pixels that fit beside so many vectors of channels, as so many bytes are multiplied at once."""
    if shifted:
        return SHIFTED if machine.x86 else SHIFTED_BY_LOADS
    return fit_of_bytes(machine, together)


def x_signed(b: Bound) -> bool:
    """Whether the activations are signed."""
    return bool(b.args["x"].type.dtype.kind == "i")


def zero_border(b: Bound) -> dict[int, Border]:
    """The border that a convolution of bytes reads: of the zero point."""
    sides, zero = pads(b.args), grid(b.args["x"])[1]
    return {b.slots["x"]: Border(*sides, zero - 256 if zero > 127 else zero)} if any(sides) else {}


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    top, left, _, _ = pads(b.args)
    x, out = w.place(b.slots["x"]).shifted(top, left), w.place(group.outputs[0])
    return made(w, group, x, out, (b.args["sh"], b.args["sw"]), (b.args.get("dh", 1), b.args.get("dw", 1)),
                b.args["w"].data)


def _make_product(w: Workshop, group: Group) -> Task:
    b = group.head
    units, depth = b.args["w"].shape
    x, out = rows_of(w.place(b.slots["x"]), depth), rows_of(w.place(group.outputs[0]), units)
    return made(w, group, x, out, (1, 1), (1, 1), b.args["w"].data.reshape(units, 1, 1, depth))


NATIVE = (
    native(Family(lambda b, _: taken(b, 0), _make, zero_border, strided=True, fuses=joins), conv.CONV_2D,
           of_bytes=True),
    native(Family(lambda b, _: taken(b, 0), _make_product, fuses=joins), conv.FULLY_CONNECTED, of_bytes=True),
)
