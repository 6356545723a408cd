"""Images of bytes of another size: four cells blended, by LiteRT's rules for signed bytes and for unsigned ones."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ...frozen import frozen
from ...ops import image
from ...types import BYTES
from ..bind import Bound
from ..resize import between, between_fixed
from .images import Bilinear, tabulated
from .integers import widened
from .ir import Function, number, vector
from .machine import Machine
from .mathematics import select
from .places import ITEM
from .tasks import Family, Group, Task, Workshop, native
from .turns import overlapping

#: The bits of the steps between two cells of signed bytes, and how many these are.
BITS = 10
STEPS = 1 << BITS
#: Bytes of a line that may lie on the stack.
ROOM = 64 << 10


@frozen
class ByteBilinear(Bilinear):
    """Four bytes blended; shares of signed ones are integers of 32 bits, in steps.

    Where the result is as wide as the image, what two lines give together comes first, for all of their cells: `room`
    bytes on the stack for each of the two (signed ones are added at once).
    """

    signed: bool = False
    room: int = 0

    def _prepare(self, f: Function) -> None:
        for name in ("upper", "lower")[self.signed:] if self.room else ():
            f.do(f"%{name} = alloca [{self.room} x i8], align {4 * f.machine.lanes}")

    def _line(self, f: Function, lines: list[str], to: str, down: str) -> None:
        if not self.room:
            super()._line(f, lines, to, down)
            return
        self._together(f, lines, down)

        def cell(x: str, sides: list[str], along: str) -> None:
            places = [f.mul(side, ITEM) for side in sides]
            self._blended(f, places, f.at(to, f.mul(x, self.out.strides[2])), along)
        self._cells(f, cell)

    def _together(self, f: Function, lines: list[str], down: str) -> None:
        """Two lines, each with its share in a row."""
        lanes = f.machine.lanes
        real, whole = vector(lanes), vector(lanes, "i32")
        up = "" if self.signed else f.let(f"fsub {real} {number(real, 1)}, {down}")

        def piece(at: str, count: int) -> None:
            read = [widened(f, lanes, f.load_first(count, lanes, "i8", p, at), self.signed) for p in lines]
            if self.signed:
                found = [blend(f, read[0], read[1], f.let(f"bitcast {real} {down} to {whole}"))]
            else:
                found = [f.let(f"fmul {real} {f.let(f'sitofp {whole} {v} to {real}')}, {share}")
                         for v, share in zip(read, (up, down), strict=True)]
            for name, value in zip(("lower", "upper"), found, strict=False):
                f.store(whole if self.signed else real, value, f"%{name}", f.mul(at, ITEM))
        overlapping(f, self.x.shape[2] * self.x.shape[3], lanes, piece)

    def _blended(self, f: Function, places: list[str], to: str, along: str) -> None:
        """All channels of one cell between two columns of what `_together` made."""
        lanes = f.machine.lanes
        real, whole = vector(lanes), vector(lanes, "i32")
        left = "" if self.signed else f.let(f"fsub {real} {number(real, 1)}, {along}")

        def piece(at: str, count: int) -> None:
            inside = [f.add(place, f.mul(at, ITEM)) for place in places]
            if self.signed:
                read = [f.load(whole, "%lower", place) for place in inside]
                found = settled(f, blend(f, read[0], read[1], f.let(f"bitcast {real} {along} to {whole}")))
            else:
                terms = [f.let(f"fmul {real} {f.load(real, name, place)}, {share}") for place, share in zip(
                    inside, (left, along), strict=True) for name in ("%lower", "%upper")]
                found = truncated(f, terms)
            f.store_first(count, lanes, "i8", f.let(f"trunc {whole} {found} to {vector(lanes, 'i8')}"), to, at)
        overlapping(f, self.out.shape[3], lanes, piece)

    def _cell(self, f: Function, corners: list[str], to: str, down: str, along: str) -> None:
        """All channels of one cell; corners are those of the left column, then of the right one."""
        lanes = f.machine.lanes
        kind = vector(lanes, "i8")

        def piece(at: str, count: int) -> None:
            read = [widened(f, lanes, f.load(kind, p, at, 1), self.signed) for p in corners]
            found = (self._steps if self.signed else self._reals)(f, read, down, along)
            f.store_first(count, lanes, "i8", f.let(f"trunc {vector(lanes, 'i32')} {found} to {kind}"), to, at)
        overlapping(f, self.out.shape[3], lanes, piece)

    def _steps(self, f: Function, read: list[str], down: str, along: str) -> str:
        """Exact sums, one rounding, halves away from zero."""
        whole, real = vector(f.machine.lanes, "i32"), vector(f.machine.lanes)
        y, x = (f.let(f"bitcast {real} {v} to {whole}") for v in (down, along))
        return settled(f, blend(f, blend(f, read[0], read[1], y), blend(f, read[2], read[3], y), x))

    def _reals(self, f: Function, read: list[str], down: str, along: str) -> str:
        """Four terms in FLOAT32, each rounded."""
        whole, real = vector(f.machine.lanes, "i32"), vector(f.machine.lanes)
        up, left = (f.let(f"fsub {real} {number(real, 1)}, {v}") for v in (down, along))
        terms = []
        for value, y, x in zip(read, (up, down, up, down), (left, left, along, along), strict=True):
            term = f.let(f"fmul {real} {f.let(f'sitofp {whole} {value} to {real}')}, {y}")
            terms.append(f.let(f"fmul {real} {term}, {x}"))
        return truncated(f, terms)


def blend(f: Function, low: str, high: str, share: str) -> str:
    """Integers of 32 bits blended in steps."""
    whole = vector(f.machine.lanes, "i32")
    rest = f.let(f"sub {whole} {number(whole, STEPS)}, {share}")
    first, second = f.let(f"mul {whole} {low}, {rest}"), f.let(f"mul {whole} {high}, {share}")
    return f.let(f"add {whole} {first}, {second}")


def settled(f: Function, total: str) -> str:
    """What was blended twice, as an integer, halves away from zero."""
    whole = vector(f.machine.lanes, "i32")
    negative = f.let(f"icmp slt {whole} {total}, {number(whole, 0)}")
    size = select(f, whole, negative, f.let(f"sub {whole} {number(whole, 0)}, {total}"), total)
    rounded = f.let(f"add {whole} {size}, {number(whole, STEPS * STEPS // 2)}")
    rounded = f.let(f"lshr {whole} {rounded}, {number(whole, 2 * BITS)}")
    return select(f, whole, negative, f.let(f"sub {whole} {number(whole, 0)}, {rounded}"), rounded)


def truncated(f: Function, terms: Sequence[str]) -> str:
    """The sum of reals in order, in the reference's, then a half, then cut."""
    whole, real = vector(f.machine.lanes, "i32"), vector(f.machine.lanes)
    total = reduce(lambda a, b: f.let(f"fadd {real} {a}, {b}"), [*terms, number(real, 0.5)])
    return f.let(f"fptosi {real} {total} to {whole}")


def _takes(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type == out.type and x.type in BYTES and x.size > 0 and out.size > 0 and not b.args["nchw"]


def _make(w: Workshop, group: Group) -> Task:
    signed = group.head.args["x"].type.dtype.kind == "i"
    sides, shares = (between_fixed, np.int32) if signed else (between, np.float32)
    x, out, rows, columns = tabulated(w, group.head, sides, shares)
    _, _, width, channels = x.shape
    size = (width * channels + w.machine.lanes) * ITEM           # the last cell's last vector goes beyond
    first = width <= out.shape[2] and x.strides[2] == channels and size <= ROOM
    return ByteBilinear(x, out, rows, columns, signed, size if first else 0)


NATIVE = (native(Family(_takes, _make, strided=True), image.RESIZE_BILINEAR, of_bytes=True),)
