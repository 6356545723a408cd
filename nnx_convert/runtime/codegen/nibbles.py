"""Products of a few rows of floats by a matrix that was weights of four bits in blocks with a scale each.

The matrix itself shows what it was. Its rows are read as four bits again, an eighth of the bytes, and multiplied with
three digits of each activation, which hold 22 bits of the largest of its block: within a block all is exact. A row in
which something is not finite gives no numbers.
"""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import conv
from ...types import F32, Array
from ..bind import Bound
from .dense import rows_of
from .elements import BOUNDS
from .folds import across
from .integers import PAIRS, quads
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .mathematics import select
from .nearest import nearest
from .places import ITEM, Place
from .tasks import SCRATCH, Family, Group, Task, Workshop, native, remembered
from .wholes import shortens

#: Sizes of blocks that are looked for; sums over one fit into integers of 32 bits.
SIZES = (128, 64, 32)
#: The largest activation of a block as an integer, whose digits are signed bytes: each of DIGIT bits but the first.
MOST, DIGIT, DIGITS = 127 << 14, 7, 3
#: What four bits lie above the weights that they stand for.
ABOVE = 8
#: How far a float may be from a multiple of a scale, relative to the largest of its block.
NEAR = 2e-7
#: Rows that are worth it: of more, weights are read once for many anyway. Elements of a matrix that is no trifle.
FEW, LARGE = 4, 1 << 16
#: Blocks that are looked at together.
PIECE = 1 << 13
#: Elements of which sums of 16 bits hold the products: in each, eight pairs of neighbours' of at most 2 * 15 * 127.
SHORT = 32


@frozen
class Nibbles:
    """Rows x by such a matrix: offsets of the weights' bits, of the blocks' scales, and of the bias."""

    x: Place
    out: Place
    block: int
    weights: int
    scales: int
    bias: int
    act: int
    room: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("nibbles", self), lambda name: self._build(m, name))

    @property
    def depth(self) -> int:
        """Elements of a row."""
        return self.x.shape[3]

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        return self.depth // self.block

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes, rows = m.machine.lanes, self.x.shape[2]
        room = f.at(self.room.base, f.add(self.room.offset, f.mul("%thread", self.room.strides[0])))
        infos = f.at(room, DIGITS * self.depth)
        panels = -(-self.out.shape[3] // (together(f.machine) * lanes))
        first, last = f.share(panels)

        def row(i: str, _: list[str]) -> None:
            x, out = (f.at(p.base, f.add(p.offset, f.mul(i, p.strides[2]))) for p in (self.x, self.out))
            f.loop(0, self.blocks, 1, [], lambda b, _: self._digits(
                f, f.at(x, f.mul(b, self.block * ITEM)), f.at(room, f.mul(b, self.block)), f.at(infos, f.mul(b, 8))))
            f.loop(first, last, 1, [], lambda p, _: self._panel(f, p, room, infos, out, panels))
        f.loop(0, rows, 1, [], row)
        f.finish()

    def _digits(self, f: Function, x: str, to: str, info: str) -> None:
        """A block's digits, each digit's bytes `depth` apart; its scale, and what the weights' bits count too much."""
        lanes = f.machine.lanes
        real, whole = vector(lanes), vector(lanes, "i32")
        most, odd = number(real, 0), number(real, 0)
        for n in range(self.block // lanes):
            value = f.load(real, x, n * lanes * ITEM)
            size = f.call(real, f"llvm.fabs.v{lanes}f32", (real, value))
            most = select(f, real, f.let(f"fcmp ogt {real} {size}, {most}"), size, most)
            odd = f.fma(real, value, number(real, 0), odd)
        reach, wrong = across(f, real, "MAX", most), across(f, real, "SUM", odd)
        small = f.let(f"fcmp olt float {reach}, {number('float', 1e-30)}")
        reach = f.select(small, "float", number("float", 1), reach)
        factor = f.splat(real, f.let(f"fdiv float {number('float', MOST)}, {reach}"))
        total = number(whole, 0)
        for n in range(self.block // lanes):
            f.fence()                            # a block is more than there are registers for: it is read again
            steps = nearest(f, lanes, f.let(f"fmul {real} {f.load(real, x, n * lanes * ITEM)}, {factor}"))
            total = f.let(f"add {whole} {total}, {steps}")
            for digit, part in enumerate(_split(f, steps)):
                byte = f.let(f"trunc {whole} {part} to {vector(lanes, 'i8')}")
                f.store(vector(lanes, "i8"), byte, to, digit * self.depth + n * lanes, 1)
        step = f.let(f"fdiv float {reach}, {number('float', MOST)}")
        scale = f.let(f"fadd float {step}, {wrong}")
        f.store("float", scale, info)
        count = f.call("i32", f"llvm.vector.reduce.add.v{lanes}i32", (whole, total))
        f.store("i32", f.let(f"mul i32 {count}, {-ABOVE}"), info, ITEM)

    def _panel(self, f: Function, p: str, digits: str, infos: str, out: str, panels: int) -> None:
        """The sums of a panel of channels over all blocks."""
        lanes, count = f.machine.lanes, together(f.machine)
        real, size = vector(lanes), lanes * ITEM
        bias = f.at("%weights", f.add(self.bias, f.mul(p, count * size)))
        begin = [("ptr", f.at("%weights", f.add(self.weights, f.mul(p, count * lanes * self.depth // 2)))),
                 ("ptr", f.at("%weights", f.add(self.scales, f.mul(p, count * size * self.blocks)))),
                 ("ptr", digits), ("ptr", infos), *((real, f.load(real, bias, n * size)) for n in range(count))]

        def block(_: str, now: list[str]) -> list[str]:
            weights, scales, x, info, *totals = now
            scale = f.splat(real, f.load("float", info))
            sums = self._sums if f.machine.vnni else self._short_sums
            for n, total in enumerate(sums(f, weights, x, f.load("i32", info, ITEM))):
                factor = f.let(f"fmul {real} {f.load(real, scales, n * size)}, {scale}")
                value = f.let(f"sitofp {vector(lanes, 'i32')} {total} to {real}")
                totals[n] = f.fma(real, value, factor, totals[n])
            return [f.at(weights, count * lanes * self.block // 2), f.at(scales, count * size),
                    f.at(x, self.block), f.at(info, 8), *totals]
        found = f.loop(0, self.blocks, 1, begin, block)[4:]
        self._leave(f, p, found, f.at(out, f.mul(p, count * size)))

    def _leave(self, f: Function, p: str, found: list[str], to: str) -> None:
        """A panel's outputs, as far as there are such channels."""
        lanes, (full, rest) = f.machine.lanes, divmod(self.out.shape[3], f.machine.lanes)
        size, count = lanes * ITEM, together(f.machine)
        for n, value in enumerate(f.clamp(vector(lanes), v, *BOUNDS[self.act]) for v in found):
            at = f.add(f.mul(p, count), n)
            f.when(f.let(f"icmp slt i64 {at}, {full}"),
                   lambda value=value, n=n: f.store(vector(lanes), value, to, n * size))  # type: ignore[misc]
            if rest and full % count == n:
                f.when(f.let(f"icmp eq i64 {at}, {full}"),
                       lambda value=value, n=n: f.store_first(rest, lanes, "float", value, to, n * size))  # type: ignore[misc]

    def _sums(self, f: Function, weights: str, x: str, less: str) -> list[str]:
        """A block's sums for the vectors of a panel."""
        lanes = f.machine.lanes
        whole, bytes_ = vector(lanes, "i32"), vector(4 * lanes, "i8")
        many = together(f.machine)

        def step(_: str, now: list[str]) -> list[str]:
            w, x, sums = now[0], now[1], now[2:]
            parts = [_halves(f, f.load(bytes_, w, n * 4 * lanes, 1)) for n in range(many)]
            for half in range(2):
                for digit in range(DIGITS):
                    given = self._digit(f, x, digit, half * 4)
                    for n in range(many):
                        at = n * DIGITS + digit
                        sums[at] = quads(f, lanes, sums[at], parts[n][half], given)
            return [f.at(w, many * 4 * lanes), f.at(x, 8), *sums]
        begin = [("ptr", weights), ("ptr", x), *[(whole, number(whole, 0))] * (many * DIGITS)]
        sums = f.loop(0, self.block // 8, 1, begin, step)[2:]
        found = []
        for n in range(many):
            total = f.splat(whole, less)
            for digit in range(DIGITS):
                by = number(whole, DIGIT * (DIGITS - 1 - digit))
                total = f.let(f"add {whole} {total}, {f.let(f'shl {whole} {sums[n * DIGITS + digit]}, {by}')}")
            found.append(total)
        return found


    def _digit(self, f: Function, x: str, digit: int, offset: int) -> str:
        """A digit of four activations, in every lane."""
        whole, bytes_ = vector(f.machine.lanes, "i32"), vector(4 * f.machine.lanes, "i8")
        given = f.splat(whole, f.load("i32", x, digit * self.depth + offset, 1))
        return f.let(f"bitcast {whole} {given} to {bytes_}")

    def _short_sums(self, f: Function, weights: str, x: str, less: str) -> list[str]:
        """The same where neighbours' products become sums of 16 bits, which are added up for some time."""
        lanes, many = f.machine.lanes, together(f.machine)
        whole, words, size = vector(lanes, "i32"), vector(2 * lanes, "i16"), 4 * lanes * many

        def part(_: str, now: list[str]) -> list[str]:
            w, x, totals = now[0], now[1], now[2:]
            begin = [("ptr", w), ("ptr", x), *[(words, number(words, 0))] * (many * DIGITS)]
            sums = f.loop(0, SHORT // 8, 1, begin, lambda _, now: [
                f.at(now[0], size), f.at(now[1], 8), *self._step(f, now[0], now[1], now[2:])])[2:]
            for at, value in enumerate(sums):
                n, digit = divmod(at, DIGITS)
                by = number(words, 1 << DIGIT * (DIGITS - 1 - digit))
                wide = f.call(whole, PAIRS[lanes], (words, value), (words, by))
                totals[n] = f.let(f"add {whole} {totals[n]}, {wide}")
            return [f.at(w, size * SHORT // 8), f.at(x, SHORT), *totals]
        begin = [("ptr", weights), ("ptr", x), *[(whole, f.splat(whole, less))] * many]
        return f.loop(0, self.block // SHORT, 1, begin, part)[2:]

    def _step(self, f: Function, weights: str, x: str, sums: list[str]) -> list[str]:
        """The sums of 16 bits with eight more elements of each channel."""
        lanes, many = f.machine.lanes, together(f.machine)
        bytes_, words = vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
        parts = [_halves(f, f.load(bytes_, weights, n * 4 * lanes, 1)) for n in range(many)]
        for half in range(2):
            for digit in range(DIGITS):
                given = self._digit(f, x, digit, half * 4)
                for n in range(many):
                    at = n * DIGITS + digit
                    two = f.call(words, "llvm.x86.avx2.pmadd.ub.sw", (bytes_, parts[n][half]), (bytes_, given))
                    sums[at] = f.let(f"add {words} {sums[at]}, {two}")
        return sums


def together(machine: Machine) -> int:
    """Vectors of channels that are made together."""
    return 4 if machine.vnni else 2


def _halves(f: Function, both: str) -> list[str]:
    """The lower four bits of bytes, and the higher ones."""
    lanes = f.machine.lanes
    bytes_, words = vector(4 * lanes, "i8"), vector(2 * lanes, "i16")
    high = f.let(f"lshr {words} {f.let(f'bitcast {bytes_} {both} to {words}')}, {number(words, 4)}")
    high = f.let(f"bitcast {words} {high} to {bytes_}")
    return [f.let(f"and {bytes_} {v}, {number(bytes_, 15)}") for v in (both, high)]


def _split(f: Function, x: str) -> list[str]:
    """The digits of a vector of integers, the first one first."""
    whole, digits = vector(f.machine.lanes, "i32"), list[str]()
    for _ in range(DIGITS - 1):
        high = f.let(f"shl {whole} {x}, {number(whole, 32 - DIGIT)}")
        digits.insert(0, f.let(f"ashr {whole} {high}, {number(whole, 32 - DIGIT)}"))
        x = f.let(f"ashr {whole} {f.let(f'sub {whole} {x}, {digits[0]}')}, {number(whole, DIGIT)}")
    return [x, *digits]


# What a matrix was.
def fitted(blocks: Array) -> tuple[Array, Array] | None:
    """Blocks [n, size] of floats as integers from -8 to 7 and a scale for each; None where they are not such.

    They are looked at piece by piece, so that a large matrix takes little memory, and another one little time.
    """
    found = []
    for at in range(0, len(blocks), PIECE):
        piece = _fitted(blocks[at:at + PIECE])
        if piece is None:
            return None
        found.append(piece)
    return np.concatenate([whole for whole, _ in found]), np.concatenate([scale for _, scale in found])


def _fitted(blocks: Array) -> tuple[Array, Array] | None:
    whole, scale = np.zeros(blocks.shape, np.int8), np.ones(len(blocks), np.float32)
    most = np.abs(blocks).max(1)
    left = np.flatnonzero(most != 0)             # what is not finite is there, and fits no scale
    for top in range(8, 0, -1):
        own = blocks[left]
        step = (most[left] / np.float32(top))[:, None]
        with np.errstate(all="ignore"):
            steps = np.rint(own / step)
            good = (np.abs(steps * step - own).max(1) <= NEAR * most[left]) & (steps.min(1) >= -8) & (steps.max(1) <= 7)
        whole[left[good]], scale[left[good]] = steps[good], step[good, 0]
        left = left[~good]
        if not left.size:
            return whole, scale
    return None


def blockwise(w: Array) -> tuple[Array, Array] | None:
    """A matrix [units, depth] as integers from -8 to 7 and scales [units, blocks], by the largest blocks that do."""
    units, depth = w.shape
    for size in SIZES:
        if depth % size == 0 and fitted(w[0].reshape(-1, size)) is not None:
            found = fitted(w.reshape(-1, size))
            if found is not None:
                return found[0].reshape(units, depth), found[1].reshape(units, -1)
    return None


@remembered
def _takes(b: Bound, machine: Machine) -> bool:
    x, w, bias = (b.args[n] for n in ("x", "w", "b"))
    if not (machine.vnni or shortens(machine)) or w.data is None or bias.data is None:
        return False
    if any(t.type != F32 for t in (x, w, bias, *b.outs)):
        return False
    return 0 < x.size <= FEW * w.shape[1] and w.size >= LARGE and blockwise(w.data) is not None


def _make(w: Workshop, group: Group) -> Task:
    b, lanes = group.head, w.machine.lanes
    found = blockwise(b.args["w"].data)
    if found is None:
        raise TypeError(b.op.name)
    (whole, scales), (units, depth) = found, b.args["w"].shape
    many = together(w.machine)
    wide = -(-units // (many * lanes)) * many * lanes
    bits = np.full((wide, depth), ABOVE, np.uint8)
    bits[:units] = whole + ABOVE
    pairs = bits.reshape(-1, many, lanes, depth // 8, 2, 4).transpose(0, 3, 1, 2, 5, 4)
    packed = np.ascontiguousarray(pairs[..., 0] | pairs[..., 1] << 4)
    factors, bias = np.zeros((wide, scales.shape[1]), np.float32), np.zeros(wide, np.float32)
    factors[:units], bias[:units] = scales, b.args["b"].data
    order = np.ascontiguousarray(factors.reshape(-1, many * lanes, scales.shape[1]).swapaxes(1, 2))
    x, out = rows_of(w.place(b.slots["x"]), depth), rows_of(w.place(b.outputs[0]), units)
    return Nibbles(x, out, depth // scales.shape[1], w.pack(packed), w.pack(order), w.pack(bias), b.args["act"],
                   w.place(SCRATCH))


def _room(group: Group, _: Machine) -> int:
    depth = group.head.args["w"].shape[1]
    return int(DIGITS * depth + 8 * (depth // SIZES[-1]))


NATIVE = (native(Family(_takes, _make, scratch=_room), conv.FULLY_CONNECTED, first=True),)
