"""Images of bytes of another size: four cells blended, by LiteRT's rules for signed bytes and for unsigned ones."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ops import image
from ...types import BYTES
from ..bind import Bound
from ..resize import between, between_fixed
from .images import Bilinear, tabulated
from .integers import widened
from .ir import Function, number, vector
from .machine import Machine
from .mathematics import select
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

#: The bits of the steps between two cells of signed bytes, and how many these are.
BITS = 10
STEPS = 1 << BITS


@dataclass(frozen=True)
class ByteBilinear(Bilinear):
    """Four bytes blended; shares of signed ones are integers of 32 bits, in steps."""

    signed: bool = False

    def _cell(self, f: Function, corners: list[str], to: str, down: str, along: str) -> None:
        """All channels of one cell; corners are those of the left column, then of the right one."""
        lanes = f.machine.lanes
        kind = vector(lanes, "i8")

        def piece(at: str, count: int) -> None:
            read = [widened(f, lanes, f.load(kind, p, at, 1), self.signed) for p in corners]
            found = (self._steps if self.signed else self._reals)(f, read, down, along)
            f.store_first(count, lanes, "i8", f.let(f"trunc {vector(lanes, 'i32')} {found} to {kind}"), to, at)
        pieces(f, self.out.shape[3], lanes, piece)

    def _steps(self, f: Function, read: list[str], down: str, along: str) -> str:
        """Exact sums, one rounding, halves away from zero."""
        whole, real = vector(f.machine.lanes, "i32"), vector(f.machine.lanes)
        y, x = (f.let(f"bitcast {real} {v} to {whole}") for v in (down, along))

        def blended(low: str, high: str, share: str) -> str:
            rest = f.let(f"sub {whole} {number(whole, STEPS)}, {share}")
            first, second = f.let(f"mul {whole} {low}, {rest}"), f.let(f"mul {whole} {high}, {share}")
            return f.let(f"add {whole} {first}, {second}")
        total = blended(blended(read[0], read[1], y), blended(read[2], read[3], y), x)
        negative = f.let(f"icmp slt {whole} {total}, {number(whole, 0)}")
        size = select(f, whole, negative, f.let(f"sub {whole} {number(whole, 0)}, {total}"), total)
        rounded = f.let(f"add {whole} {size}, {number(whole, STEPS * STEPS // 2)}")
        rounded = f.let(f"lshr {whole} {rounded}, {number(whole, 2 * BITS)}")
        return select(f, whole, negative, f.let(f"sub {whole} {number(whole, 0)}, {rounded}"), rounded)

    def _reals(self, f: Function, read: list[str], down: str, along: str) -> str:
        """Four terms in FLOAT32, each rounded, in the reference's order, then a half, then cut."""
        whole, real = vector(f.machine.lanes, "i32"), vector(f.machine.lanes)
        up, left = (f.let(f"fsub {real} {number(real, 1)}, {v}") for v in (down, along))
        total = ""
        for value, y, x in zip(read, (up, down, up, down), (left, left, along, along), strict=True):
            term = f.let(f"fmul {real} {f.let(f'sitofp {whole} {value} to {real}')}, {y}")
            term = f.let(f"fmul {real} {term}, {x}")
            total = f.let(f"fadd {real} {total}, {term}") if total else term
        return f.let(f"fptosi {real} {f.let(f'fadd {real} {total}, {number(real, 0.5)}')} to {whole}")


def _takes(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type == out.type and x.type in BYTES and x.size > 0 and out.size > 0 and not b.args["nchw"]


def _make(w: Workshop, group: Group) -> Task:
    signed = group.head.args["x"].type.dtype.kind == "i"
    sides, shares = (between_fixed, np.int32) if signed else (between, np.float32)
    return ByteBilinear(*tabulated(w, group.head, sides, shares), signed)


native(Family(_takes, _make, strided=True), image.RESIZE_BILINEAR, of_bytes=True)
