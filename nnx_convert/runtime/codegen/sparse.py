"""Products of a few rows of floats by a matrix most of which is zeros: only blocks that are not all zeros are read.

The matrix itself shows its blocks. Rows of blocks, those with the most blocks first, are done several at a time: step
by step a vector of blocks of each, of the inputs that indices tell. So all sums stay in registers; what a row lacks of
the longest one's blocks are some that are zeros. What is left out is no product: where an input is infinite or no
number, zeros make no NaN of it.

Small blocks are held up by loads, of which a Zen 3 makes two a cycle, more than by memory. So a vector's blocks are all
of one row: where neighbours fill it, their inputs are one load, and those of a row do that first.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import F32, Array
from ..bind import Bound
from .dense import rows_of
from .elements import BOUNDS
from .folds import across
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .micro import LINE, fetch
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native, remembered

#: Outputs by inputs of the blocks that are looked for.
BLOCKS = ((1, 1), (1, 4), (1, 8), (1, 16), (4, 1), (8, 1), (16, 1), (4, 4))
#: Vectors of sums that are kept in registers; where each lane reads an input of its own.
SUMS, GATHERING = 8, 4
#: Rows that are worth it: of more, weights are read once for many anyway. Elements of a matrix that is no trifle.
FEW, LARGE = 4, 1 << 14
#: Bytes of an index, the inputs it tells apart, and how many are read at once at most. Entries of a slice's bounds.
INDEX, REACH, WORD, BOUND = 2, 1 << 16, 4, 3
#: Bytes of weights from which they are fetched before they are read, and how many bytes before. The last cache, which
#: others need, too, may not have them since the run before; where it has, that takes some hundredths longer.
FAR, AHEAD = 2 << 20, 8192
#: Bytes of weights that come in a cycle, where they are not in the first cache.
FROM_FAR = 16


@frozen
class Form:
    """How blocks of `high` outputs by `wide` inputs are done: `slice` rows of blocks at a time.

    A vector of `lanes` elements is a part of a block (or all of it), or `blocks` of one row; where each lane `gathers`
    an input of its own, it is of as many rows.
    """

    high: int
    wide: int
    lanes: int
    blocks: int
    slice: int

    @classmethod
    def of(cls, block: tuple[int, int], few: int, machine: Machine) -> Form:
        """That of blocks of a size, for so many rows of x."""
        high, wide = block
        length = high if high > 1 else wide
        lanes = machine.lanes if length > 1 or machine.avx512 else 1     # others gather no faster than one by one
        if length == 1 < lanes:
            return cls(high, wide, lanes, 1, lanes * max(1, GATHERING // few))
        blocks = max(1, lanes // length)
        sums = SUMS // few // (min(blocks, 2 * wide) if high > 1 else 1)   # inputs that are joined take registers, too
        return cls(high, wide, lanes, blocks, max(1, sums // max(1, length // lanes)))

    @property
    def down(self) -> bool:
        """Whether a vector's lanes are outputs; else they are summed up at the end."""
        return self.high > 1 or self.wide == 1

    @property
    def gathers(self) -> bool:
        """Whether a vector's lanes are outputs of which each has an input of its own."""
        return self.high == self.wide == 1 < self.lanes

    @property
    def runs(self) -> bool:
        """Whether neighbours that fill a vector are one load of inputs."""
        return self.high == 1 < self.blocks

    @property
    def rows(self) -> int:
        """Rows of blocks that a vector is of."""
        return self.lanes if self.gathers else 1

    @property
    def parts(self) -> int:
        """Vectors of sums of a row of blocks; 1 where several rows share one."""
        return max(1, (self.high if self.high > 1 else self.wide) // self.lanes)

    @property
    def each(self) -> int:
        """Lanes of a vector that are of one block."""
        return self.lanes // self.blocks // self.rows

    @property
    def bytes(self) -> int:
        """Bytes of the weights of a step."""
        return self.slice * self.blocks * self.high * self.wide * ITEM


@frozen
class Sparse:
    """Rows x by such a matrix. In the weights there are, of each slice, where its steps begin, those that are no runs
    of neighbours, and its indices; each row of blocks' first output (32 bits all), its bias, the indices of inputs, and
    the steps' weights, which are fetched ahead where they are `far`."""

    x: Place
    out: Place
    form: Form
    slices: int
    bounds: int
    order: int
    bias: int
    indices: int
    weights: int
    act: int
    far: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("sparse", self), lambda name: self._build(m, name))

    @property
    def kind(self) -> str:
        """The type of a vector."""
        return vector(self.form.lanes)

    @property
    def few(self) -> int:
        """Rows of x."""
        return self.x.shape[2]

    @property
    def sums(self) -> int:
        """Vectors of sums of one row of x."""
        return self.form.slice // self.form.rows * self.form.parts

    def _build(self, m: Module, name: str) -> None:
        """Threads take turns, as the first slices have the most steps."""
        f = Function(m, name, SHARED)
        left = f.add(f.let(f"sub i64 {self.slices}, %thread"), f.let("add i64 %threads, -1"))
        turns = f.let(f"udiv i64 {left}, %threads")
        f.loop(0, turns, 1, [], lambda n, _: self._slice(f, f.add(f.mul(n, "%threads"), "%thread")))
        f.finish()

    def _slice(self, f: Function, n: str) -> None:
        """The outputs of a slice."""
        form, x = self.form, f.at(self.x.base, self.x.offset)
        first, single, entry, last = (_entry(f, self.bounds, f.add(f.mul(n, BOUND), more)) for more in range(BOUND + 1))
        bias = f.at("%weights", f.add(self.bias, f.mul(n, form.slice * form.high * ITEM)))
        now = [f.at("%weights", f.add(self.weights, f.mul(first, form.bytes))),
               f.at("%weights", f.add(self.indices, f.mul(entry, INDEX))), *self._begun(f, bias) * self.few]
        for runs, low, high in ((True, first, single), (False, single, last)):
            if form.runs or not runs:
                carried = list(zip(("ptr", "ptr", *[self.kind] * (len(now) - 2)), now, strict=True))
                now = f.loop(low, high, 1, carried, lambda _, now, runs=runs: self._step(f, x, now, runs))  # type: ignore[misc]
        for r in range(form.slice):
            at = f.mul(_entry(f, self.order, f.add(f.mul(n, form.slice), r)), ITEM)
            for row in range(self.few):
                to = f.at(self.out.base, f.add(at, self.out.offset + row * self.out.strides[2]))
                self._leave(f, r, now[2 + row * self.sums:][:self.sums], bias, to)

    def _begun(self, f: Function, bias: str) -> list[str]:
        """What the sums of a row of x begin with."""
        form = self.form
        if not form.down:
            return [number(self.kind, 0)] * self.sums
        own = form.lanes // form.blocks
        return [f.load_first(own, form.lanes, "float", bias, j * own * ITEM) if form.lanes > 1 else
                f.load("float", bias, j * ITEM) for j in range(self.sums)]

    def _step(self, f: Function, x: str, now: list[str], runs: bool) -> list[str]:
        """A vector of blocks of each row of the slice; with `runs`, they are neighbours."""
        form, size = self.form, self.form.lanes * ITEM
        weights, indices, sums = now[0], now[1], list(now[2:])
        for line in range(0, form.bytes if self.far else 0, LINE):
            fetch(f, f.at(weights, AHEAD + line))
        blocks, n = 1 if runs else form.blocks, 0
        inputs = [] if form.gathers else _inputs(f, indices, form.slice * blocks)
        for group in range(0, form.slice, form.rows):
            for column in range(form.wide if form.high > 1 else 1):
                for part in range(form.parts):
                    w = f.load(self.kind, weights, n * size)
                    n += 1
                    offset = (column if form.high > 1 else part * form.lanes) * ITEM
                    for row in range(self.few):
                        at = row * self.sums + group // form.rows * form.parts + part
                        there = f.at(x, offset + row * self.x.strides[2])
                        own = inputs[group * blocks:][:blocks]
                        given = self._given(f, there, own) if own else self._gathered(
                            f, there, f.at(indices, group * INDEX))
                        sums[at] = f.fma(self.kind, given, w, sums[at])
        return [f.at(weights, form.bytes), f.at(indices, form.slice * blocks * INDEX), *sums]

    def _given(self, f: Function, x: str, there: list[str]) -> str:
        """What a vector of weights is multiplied with: of each block one input for all lanes, or an input a lane."""
        each = self.form.each
        if not self.form.down:
            own = self.form.lanes // len(there)
            return joined(f, [f.load(vector(own), f.at(x, at)) for at in there], own)
        found = [f.splat(self.kind, f.load("float", f.at(x, at))) for at in there]
        value = found[0]
        for n, more in enumerate(found[1:], 1):
            which = ", ".join(f"i32 {i + self.form.lanes * (i >= n * each)}" for i in range(self.form.lanes))
            value = f.let(f"shufflevector {self.kind} {value}, {self.kind} {more}, <{self.form.lanes} x i32> <{which}>")
        return value

    def _gathered(self, f: Function, x: str, indices: str) -> str:
        """The inputs at so many indices."""
        lanes = self.form.lanes
        narrow, wide = vector(lanes, "i16"), vector(lanes, "i32")
        at = f.let(f"zext {narrow} {f.load(narrow, indices, 0, INDEX)} to {wide}")
        return f.gather(self.kind, f.let(f"getelementptr float, ptr {x}, {wide} {at}"))

    def _leave(self, f: Function, r: int, sums: list[str], bias: str, to: str) -> None:
        """The outputs of one row of blocks of the slice, for one row of x."""
        form = self.form
        own = sums[r // form.rows * form.parts:][:form.parts]
        if form.down and form.blocks == form.rows == 1:
            for part, value in enumerate(own):
                f.store(self.kind, f.clamp(self.kind, value, *BOUNDS[self.act]), to, part * form.lanes * ITEM)
            return
        value, kind, lanes = own[0], self.kind, form.lanes
        for more in own[1:]:
            value = f.let(f"fadd {self.kind} {value}, {more}")
        if form.gathers:
            value, kind = f.let(f"extractelement {kind} {value}, i64 {r % form.rows}"), "float"
        elif form.down:
            while lanes > form.high:                                       # the halves' sum, until there is one block
                value, lanes = halved(f, value, lanes), lanes // 2
            kind = vector(lanes)
        else:
            total, kind = across(f, kind, "SUM", value), "float"
            value = f.let(f"fadd float {total}, {f.load('float', bias, r * ITEM)}")
        f.store(kind, f.clamp(kind, value, *BOUNDS[self.act]), to)


def _inputs(f: Function, indices: str, count: int) -> list[str]:
    """The bytes to the inputs of so many blocks; a word is read for several, as loads are what there are most."""
    found, each = list[str](), min(WORD, count)
    kind = f"i{8 * INDEX * each}"
    for at in range(0, count, each):
        word = f.load(kind, indices, at * INDEX, INDEX)
        for n in range(each):
            one = f.let(f"lshr {kind} {word}, {8 * INDEX * n}") if n else word
            one = f.let(f"and {kind} {one}, {REACH - 1}") if each > 1 else one
            found.append(f.mul(one if each == WORD else f.let(f"zext {kind} {one} to i64"), ITEM))
    return found


def _entry(f: Function, table: int, n: str) -> str:
    """An entry of a table among the weights."""
    return f.let(f"zext i32 {f.load('i32', f.at('%weights', f.add(table, f.mul(n, 4))))} to i64")


def joined(f: Function, values: list[str], each: int) -> str:
    """Vectors of `each` lanes, a power of two of them, as one."""
    while len(values) > 1:
        kind, which = vector(each), ", ".join(f"i32 {i}" for i in range(2 * each))
        values = [f.let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * each} x i32> <{which}>")
                  for a, b in zip(values[::2], values[1::2], strict=True)]
        each *= 2
    return values[0]


def halved(f: Function, value: str, lanes: int) -> str:
    """The sum of a vector's two halves."""
    kind, half = vector(lanes), lanes // 2
    low, high = (f.let(f"shufflevector {kind} {value}, {kind} poison, <{half} x i32> <"
                       + ", ".join(f"i32 {at + i}" for i in range(half)) + ">") for at in (0, half))
    return f.let(f"fadd {vector(half)} {low}, {high}")


# What a matrix is made of, and whether that is worth it.
def there(w: Array, block: tuple[int, int]) -> Array | None:
    """Which blocks of a matrix [outputs, inputs] are not all zeros [outputs / high, inputs / wide]; None where they do
    not fit it."""
    (high, wide), (units, depth) = block, w.shape
    if units % high or depth % wide:
        return None
    return np.asarray((w.reshape(units // high, high, depth // wide, wide) != 0).any((1, 3)))


def cost(form: Form, blocks: int, few: int) -> float:
    """Cycles of a product by so many blocks, as measured: a load of weights and of inputs at a time, of indices for
    several blocks, or what memory gives."""
    vectors = blocks * form.high * form.wide / form.lanes
    loads = blocks / 3 + vectors * (1 + max(form.blocks, form.rows) * few) / 2
    return max(1.25 * loads, blocks * (form.high * form.wide * ITEM + INDEX) / FROM_FAR)


def dense_cost(units: int, depth: int, few: int, machine: Machine) -> float:
    """Cycles of the same product by all of the matrix."""
    return max(units * depth * ITEM / FROM_FAR, few * units * depth / machine.lanes / 2)


def best(w: Array, few: int, machine: Machine) -> tuple[int, int] | None:
    """The blocks by which a product with so many rows is done fastest; None where that is the whole matrix."""
    (units, depth), found = w.shape, None
    least = dense_cost(units, depth, few, machine)
    for block in BLOCKS:
        blocks, form = there(w, block), Form.of(block, few, machine)
        if blocks is not None and form.parts * few <= SUMS:
            now = cost(form, int(np.count_nonzero(blocks)), few)
            if now < least:
                found, least = block, now
    return found


@remembered
def chosen(b: Bound, machine: Machine) -> tuple[int, int] | None:
    """The same of an operation and its constant matrix."""
    w = b.args["w"].data
    return best(w, b.args["x"].size // w.shape[1], machine)


def _takes(b: Bound, machine: Machine) -> bool:
    x, w, bias = (b.args[n] for n in ("x", "w", "b"))
    if any(t.type != F32 for t in (x, w, bias, *b.outs)) or w.data is None or bias.data is None or w.size < LARGE:
        return False
    few, depth = x.size // w.shape[1], w.shape[1]
    return 0 < few <= FEW and depth <= REACH and chosen(b, machine) is not None


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    matrix = b.args["w"].data
    units, depth = matrix.shape
    x, out = rows_of(w.place(b.slots["x"]), depth), rows_of(w.place(b.outputs[0]), units)
    block = chosen(b, w.machine)
    assert block is not None
    form = Form.of(block, x.shape[2], w.machine)
    order, bounds, indices, weights = packed(matrix, form)
    bias = b.args["b"].data.reshape(-1, form.high)[order]
    return Sparse(x, out, form, len(bounds) - 1, w.pack(bounds), w.pack((order * form.high).astype(np.int32)),
                  w.pack(bias), w.pack(indices), w.pack(weights), b.args["act"], weights.nbytes >= FAR)


def packed(w: Array, form: Form) -> tuple[Array, Array, Array, Array]:
    """The rows of blocks in order, the longest first and the last one repeated up to a whole slice; the bounds of each
    slice, and those behind all; the inputs at which the blocks of each step begin; the weights of each step."""
    blocks = there(w, (form.high, form.wide))
    assert blocks is not None
    steps, ends = -(-blocks.sum(1) // form.blocks), ending(blocks, form.blocks if form.runs else 0)
    order = np.lexsort((-ends.sum(1), -steps))                 # rows of a slice are alike in steps, and in runs
    order = np.concatenate([order, np.repeat(order[-1:], -len(order) % form.slice)])
    cut = w.reshape(-1, form.high, blocks.shape[1], form.wide)
    bounds, indices, weights = [(0, 0, 0)], list[Array](), list[Array]()
    for rows in order.reshape(-1, form.slice):
        runs, all_ = int(ends[rows].sum(1).min()), int(steps[rows].max())
        for columns, values in stepped(cut[rows], blocks[rows], ends[rows], (runs, all_ - runs), form):
            indices.append(columns.ravel())
            weights.append(values.ravel())
        first, _, entry = bounds[-1]
        bounds[-1] = first, first + runs, entry
        bounds.append((first + all_, 0, entry + form.slice * (runs + (all_ - runs) * form.blocks)))
    return (order, np.array(bounds, np.int32), (np.concatenate(indices) * form.wide).astype(np.uint16),
            np.concatenate(weights).astype(np.float32))


def ending(blocks: Array, length: int) -> Array:
    """Of rows of blocks, where runs of so many neighbours end that do not overlap; none where that is less than two."""
    at = np.arange(blocks.shape[1])
    before = np.maximum.accumulate(np.where(blocks, -1, at), 1)
    return np.asarray(blocks & ((at - before) % length == 0) if length > 1 else np.zeros_like(blocks))


def stepped(cut: Array, blocks: Array, ends: Array, steps: tuple[int, int], form: Form
            ) -> Iterator[tuple[Array, Array]]:
    """What steps of runs of neighbours read, and then the others: the columns of blocks [step, row, ...], and weights.

    Blocks that a row lacks are some that are zeros; where it has no more, parts of the last one.
    """
    count, some = form.blocks, np.arange(len(blocks))
    ends = ends & (np.cumsum(ends, 1) <= steps[0])
    taken = ends.copy()
    for n in range(1, count if steps[0] else 1):
        taken[:, :-n] |= ends[:, n:]
    begins = (np.nonzero(ends)[1] - count + 1).reshape(len(blocks), steps[0])
    yield begins.T, cut[some[:, None, None], 0, begins[..., None] + np.arange(count)].transpose(1, 0, 2, 3)
    slots, left = steps[1] * count, blocks.shape[1] - steps[0] * count
    columns = np.argsort(np.where(blocks, 2 * taken, 1), axis=1, kind="stable")
    columns = columns[:, np.minimum(np.arange(slots), left - 1)]
    values = cut[some[:, None], :, columns]
    values[:, left - 1:] /= 1 + max(0, slots - left)
    values = values.reshape(len(blocks), steps[1], count, form.high, form.wide)
    yield (columns.reshape(len(blocks), steps[1], count).transpose(1, 0, 2),
           values.transpose((1, 0, 4, 2, 3) if form.high > 1 else (1, 0, 2, 3, 4)))


NATIVE = (native(Family(_takes, _make), conv.FULLY_CONNECTED, first=True),)
