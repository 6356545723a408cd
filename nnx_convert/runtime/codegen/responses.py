"""Numbers divided by a power of the squares around them."""
from __future__ import annotations

from ...frozen import frozen
from ...ops import norm
from ..bind import Bound
from . import powers
from .folds import floats
from .ir import SHARED, Function, Module, Operand, number, vector
from .machine import Machine
from .places import ITEM, Place, around
from .tasks import SCRATCH, Family, Group, Task, Workshop, native
from .turns import pieces


@frozen
class Factor:
    """The function `(S)` that makes (bias + alpha * a sum) ** -beta of a vector of sums, where they are.

    It is one of its own, as so many constants have no place in the registers of a loop.
    """

    bias: float
    alpha: float
    beta: float

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f, type = Function(m, name, (("ptr noalias", "%S"),)), vector(m.machine.lanes)
            base = f.fma(type, f.load(type, "%S"), number(type, self.alpha), number(type, self.bias))
            f.store(type, powers.pow(f, type, base, number(type, -self.beta)), "%S")
            f.finish()
        return m.once(("factor", self), build)


@frozen
class Responses:
    """x * (bias + alpha * the sum of squares within a radius along the middle of x [outer, size, inner]) ** -beta.

    Rows of neighbours have their squares in a room, with zeros on both sides.
    """

    x: Place
    out: Place
    room: Place | None
    sizes: tuple[int, int, int]
    radius: int
    factor: Factor

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("responses", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, (outer, size, inner) = Function(m, name, SHARED), self.sizes
        first, last = f.share(outer * size if inner > 1 else outer)
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)
        sums = f.let(f"alloca {vector(m.machine.lanes)}, align {ITEM * m.machine.lanes}")

        def line(i: str, _: list[str]) -> None:
            row = f.mul(i, inner * ITEM if inner > 1 else size * ITEM)
            if inner > 1:
                self._columns(f, f.at(x, row), f.at(out, row), f.rem(i, size), sums)
            else:
                self._row(f, f.at(x, row), f.at(out, row), sums)
        f.loop(first, last, 1, [], line)
        f.finish()

    def _columns(self, f: Function, x: str, out: str, at: str, sums: str) -> None:
        """One of the middle's: its neighbours are whole rows away."""
        lanes, (_, size, inner) = f.machine.lanes, self.sizes
        type, pitch = vector(lanes), inner * ITEM
        low = f.let(f"sub i64 0, {f.least(at, self.radius)}")
        high = f.least(f.let(f"sub i64 {size}, {at}"), self.radius + 1)

        def some(c: str, count: int) -> None:
            here = f.mul(c, ITEM)

            def add(n: str, now: list[str]) -> list[str]:
                value = f.load_first(count, lanes, "float", x, f.add(f.mul(n, pitch), here))
                return [f.fma(type, value, value, now[0])]
            total = f.loop(low, high, 1, [(type, number(type, 0))], add)[0]
            f.store(type, total, sums)
            self._put(f, x, out, here, count, sums)
        pieces(f, inner, lanes, some)

    def _row(self, f: Function, x: str, out: str, sums: str) -> None:
        lanes, size = f.machine.lanes, self.sizes[1]
        type, room = vector(lanes), self.room
        assert room is not None
        begin = f.at(room.base, f.add(room.offset, f.mul("%thread", room.strides[0])))
        first, reach = f.at(begin, self.radius * ITEM), 2 * self.radius + 1
        f.fill(begin, 0, self.radius * ITEM)

        def square(c: str, count: int) -> None:
            value = f.load_first(count, lanes, "float", x, f.mul(c, ITEM))
            f.store(type, f.let(f"fmul {type} {value}, {value}"), first, f.mul(c, ITEM))
        pieces(f, size, lanes, square)
        f.fill(f.at(first, size * ITEM), 0, (self.radius + lanes) * ITEM)

        def some(c: str, count: int) -> None:
            here = f.mul(c, ITEM)

            def add(n: str, now: list[str]) -> list[str]:
                return [f.let(f"fadd {type} {now[0]}, {f.load(type, begin, f.add(f.mul(n, ITEM), here))}")]
            f.store(type, f.loop(0, reach, 1, [(type, number(type, 0))], add)[0], sums)
            self._put(f, x, out, here, count, sums)
        pieces(f, size, lanes, some)

    def _put(self, f: Function, x: str, out: str, at: Operand, count: int, sums: str) -> None:
        """So many neighbours times what their sums make."""
        lanes, type = f.machine.lanes, vector(f.machine.lanes)
        f.do(f"call void @{self.factor.emit(f.module)}(ptr {sums})")
        value = f.load_first(count, lanes, "float", x, at)
        f.store_first(count, lanes, "float", f.let(f"fmul {type} {value}, {f.load(type, sums)}"), out, at)


def _takes(b: Bound, _: Machine) -> bool:
    return floats(b)


def _reach(b: Bound) -> tuple[tuple[int, int, int], int]:
    """x as [outer, size, inner], and how far what counts reaches."""
    sizes = around(b.args["x"].shape, b.args["axis"])
    return sizes, min(b.args["radius"], sizes[1] - 1)


def _make(w: Workshop, group: Group) -> Task:
    b, (sizes, radius) = group.head, _reach(group.head)
    return Responses(w.place(b.slots["x"]), w.place(b.outputs[0]), w.places.get(SCRATCH), sizes, radius,
                     Factor(*(float(b.args[n]) for n in ("bias", "alpha", "beta"))))


def _room(group: Group, machine: Machine) -> int:
    (_, size, inner), radius = _reach(group.head)
    return 0 if inner > 1 else (size + 2 * radius + machine.lanes) * ITEM


NATIVE = (native(Family(_takes, _make, scratch=_room), norm.LOCAL_RESPONSE_NORMALIZATION),)
