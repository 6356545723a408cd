"""Integers of 16 and 32 bits on another grid, as LiteRT's QUANTIZE of integers brings them there."""
from __future__ import annotations


from ...frozen import frozen
from ...ops import host
from ...types import BYTES, I16, I32, Q16A, Q16S, Tensor, Type
from ..bind import Bound
from ..fixedpoint import grid, limits, multiplier
from .integers import bounded
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import Place
from .requantise import by_shifts
from .tasks import Family, Group, Task, Workshop, native

#: Types of integers that a grid may be of.
WIDE: frozenset[Type] = frozenset((I16, Q16S, Q16A, I32))


@frozen
class Rescaled:
    """clamp(zero + (x - begin) * scale), scale being a multiplier and a shift; `limits` are those of the result."""

    x: Place
    out: Place
    signed: bool
    begin: int
    scale: tuple[int, int]
    zero: int
    limits: tuple[int, int]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("rescaled", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes, size = m.machine.lanes, self.x.size
        whole, own, made = (vector(lanes, e) for e in ("i32", f"i{8 * self.x.item}", f"i{8 * self.out.item}"))
        x, out = (f.at(p.base, p.offset) for p in (self.x, self.out))

        def piece(at: str, count: int) -> None:
            value = f.load_first(count, lanes, f"i{8 * self.x.item}", x, f.mul(at, self.x.item))
            if own != whole:
                value = f.let(f"{'sext' if self.signed else 'zext'} {own} {value} to {whole}")
            value = f.let(f"sub {whole} {value}, {number(whole, self.begin)}")
            value = by_shifts(f, lanes, value, *self.scale)
            value = f.call(whole, f"llvm.sadd.sat.v{lanes}i32", (whole, value), (whole, number(whole, self.zero)))
            value = bounded(f, whole, value, *self.limits)
            value = value if made == whole else f.let(f"trunc {whole} {value} to {made}")
            f.store_first(count, lanes, f"i{8 * self.out.item}", value, out, f.mul(at, self.out.item))
        first, last = f.share(size // lanes)
        f.loop(first, last, 1, [], lambda i, _: piece(f.mul(i, lanes), lanes))
        if size % lanes:
            f.when(f.let("icmp eq i64 %thread, 0"), lambda: piece(str(size - size % lanes), size % lanes))
        f.finish()


def _takes(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type in WIDE and (out.type in WIDE or out.type in BYTES) and x.size > 0 and float(grid(out)[0]) > 0


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    x: Tensor = b.args["x"]
    out = b.outs[0]
    (sx, zx), (so, zo) = grid(x), grid(out)
    return Rescaled(w.place(b.slots["x"]), w.place(b.outputs[0]), x.type.dtype.kind == "i", zx,
                    multiplier(float(sx) / float(so)), zo, limits(out))


NATIVE = (native(Family(_takes, _make), host.REQUANTIZE),)
