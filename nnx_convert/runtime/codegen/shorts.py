"""Sums, differences and products of 16-bit integers on symmetric grids, as `kernels.quantized` defines them."""
from __future__ import annotations

from collections.abc import Sequence

from ...frozen import frozen
from ...ops import elementwise as e, shifts as sh
from ...types import Q16S, Quant
from ..bind import Bound
from ..fixedpoint import activation_range, f32, grid, multiplier
from ..kernels.quantized import Pair, powers, ratio
from .arithmetic import bounded
from .ir import Function, number, vector
from .machine import Machine
from .mathematics import flags
from .requantise import by_shifts
from .scalars import SCALARS
from .tasks import Family, Group, Task, Workshop, kind, native, slots_of
from .values import Values

#: Bits that both terms of a sum are given before they are scaled, and the ends of 16 bits.
LEFT, LEAST, MOST = 15, -0x8000, 0x7FFF
#: How the second number of a sum counts.
SIGNS = {e.ADD.name: 1, e.SUB.name: -1, sh.ADD_BY_SHIFTS.name: 1, sh.SUB_BY_SHIFTS.name: -1}


@frozen
class Shorts(Values):
    """A product (`sign` 0) that one multiplier scales; or a sum whose terms are scaled, and it again.

    `powers`: instead, by how many bits the terms are shifted to the right.
    """

    sign: int = 0
    pairs: tuple[Pair, ...] = ()
    powers: tuple[int, int] | None = None
    bounds: tuple[int, int] = (LEAST, MOST)

    def _vector(self, f: Function, pointers: list[str], steps: list[int], count: int) -> None:
        lanes, whole, short = f.machine.lanes, vector(f.machine.lanes, "i32"), vector(f.machine.lanes, "i16")
        read = [f.load_first(count, lanes, "i16", p) if step else f.splat(short, f.load("i16", p, 0, 2))
                for p, step in zip(pointers[:2], steps, strict=False)]
        found = self._scaled(f, whole, [f.let(f"sext {short} {v} to {whole}") for v in read])
        found = bounded(f, whole, SCALARS[Q16S], found, *self.bounds)
        f.store_first(count, lanes, "i16", f.let(f"trunc {whole} {found} to {short}"), pointers[-1])

    def _scaled(self, f: Function, whole: str, read: Sequence[str]) -> str:
        lanes = f.machine.lanes
        if not self.sign:
            return by_shifts(f, lanes, f.let(f"mul {whole} {read[0]}, {read[1]}"), *self.pairs[0])
        word = "add" if self.sign > 0 else "sub"
        if self.powers is not None:
            terms = [_over(f, whole, v, n) for v, n in zip(read, self.powers, strict=True)]
            return bounded(f, whole, SCALARS[Q16S], f.let(f"{word} {whole} {terms[0]}, {terms[1]}"), LEAST, MOST)
        terms = [by_shifts(f, lanes, f.let(f"shl {whole} {v}, {number(whole, LEFT)}"), *pair)
                 for v, pair in zip(read, self.pairs, strict=False)]
        return by_shifts(f, lanes, f.let(f"{word} {whole} {terms[0]}, {terms[1]}"), *self.pairs[2])


def _over(f: Function, whole: str, x: str, bits: int) -> str:
    """x / 2 ** bits, halves away from zero."""
    if not bits:
        return x
    below = f.let(f"sext {flags(whole)} {f.let(f'icmp slt {whole} {x}, {number(whole, 0)}')} to {whole}")
    half = f.let(f"add {whole} {f.let(f'add {whole} {x}, {number(whole, 1 << bits - 1)}')}, {below}")
    return f.let(f"ashr {whole} {half}, {number(whole, min(bits, 31))}")


def _takes(b: Bound, _: Machine) -> bool:
    tensors = (b.args["x"], b.args["y"], b.outs[0])
    return len(b.outs[0].shape) > 0 and all(
        t.type == Q16S and t.size > 0 and isinstance(t.quant, Quant) and t.quant.zero == 0 for t in tensors)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x, y, out = b.args["x"], b.args["y"], b.outs[0]
    (sx, _), (sy, _), (so, _) = map(grid, (x, y, out))
    sign, shifted = SIGNS.get(kind(b.op), 0), None
    pairs: tuple[Pair, ...] = (ratio(sx, sy, over=so),)
    if sign:
        shifted = powers(x, y, out) if b.op in (sh.ADD_BY_SHIFTS, sh.SUB_BY_SHIFTS) else None
        twice = 2.0 * max(float(sx), float(sy))
        pairs = (*(multiplier(float(s) / twice) for s in (sx, sy)), multiplier(twice / float(f32((1 << LEFT) * so))))
    first, second = slots_of(b)
    types = (x.type, y.type, out.type)
    return Shorts(b.op.name, types, (w.place(first), w.place(second)), w.place(b.outputs[0]), 0, None, sign, pairs,
                  shifted, activation_range(b.args["act"], out))


NATIVE = (native(Family(_takes, _make), e.ADD, e.SUB, e.MUL, sh.ADD_BY_SHIFTS, sh.SUB_BY_SHIFTS, otherwise=True),)
