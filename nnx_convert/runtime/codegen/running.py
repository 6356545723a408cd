"""Sums and products along an axis of all elements up to each one, in their order."""
from __future__ import annotations


from ...frozen import frozen
from ...ops import folds, host_math
from ...types import F32, F64, I32, I64, U32, U64
from ..bind import Bound
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .places import Place, around
from .scalars import SCALARS, Scalar
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

TYPES = (F32, F64, I32, I64, U32, U64)


@frozen
class Running:
    """x [outer, size, inner] summed, or multiplied, along its middle; without each element itself where `exclusive`,
    from the end where `reverse`."""

    x: Place
    out: Place
    sizes: tuple[int, int, int]
    element: Scalar
    product: bool
    exclusive: bool
    reverse: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("running", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        (outer, size, inner), item = self.sizes, self.element.size
        first, last = f.share(outer)

        def part(i: str, _: list[str]) -> None:
            start = f.add(f.mul(i, size * inner * item), (size - 1) * inner * item if self.reverse else 0)
            x, to = (f.at(p.base, f.add(p.offset, start)) for p in (self.x, self.out))
            if inner == 1:
                self._column(f, x, to, 1, 1)
            else:
                pieces(f, inner, m.machine.lanes, lambda at, count: self._column(
                    f, f.at(x, f.mul(at, item)), f.at(to, f.mul(at, item)), m.machine.lanes, count))
        f.loop(first, last, 1, [], part)
        f.finish()

    def _column(self, f: Function, x: str, to: str, lanes: int, count: int) -> None:
        """Neighbouring columns, `count` of so many lanes."""
        code, item = self.element.code, self.element.size
        type, step = vector(lanes, code), self.sizes[2] * item * (-1 if self.reverse else 1)

        def put(value: str, at: str) -> None:
            if lanes > 1:
                f.store_first(count, lanes, code, value, at)
            else:
                f.store(code, value, at, 0, item)

        def row(_: str, now: list[str]) -> list[str]:
            value = f.load_first(count, lanes, code, now[0]) if lanes > 1 else f.load(code, now[0], 0, item)
            word = f"{'f' if self.element.real else ''}{'mul' if self.product else 'add'}"
            found = f.let(f"{word} {type} {now[2]}, {value}")
            put(now[2] if self.exclusive else found, now[1])
            return [f.at(now[0], step), f.at(now[1], step), found]
        f.loop(0, self.sizes[1], 1, [("ptr", x), ("ptr", to), (type, number(type, int(self.product)))], row)


def _axis(b: Bound) -> int | None:
    """The axis, where it is known."""
    axis = b.args["axis"]
    if isinstance(axis, int):
        return axis % int(b.args["x"].rank)
    return None if axis.data is None else int(axis.data.item()) % int(b.args["x"].rank)


def _takes(b: Bound, _: Machine) -> bool:
    x = b.args["x"]
    return x.type in TYPES and x.size > 0 and x.rank > 0 and _axis(b) is not None


def _make(w: Workshop, group: Group) -> Task:
    b, a = group.head, group.head.args
    sizes = around(a["x"].shape, _axis(b) or 0)
    return Running(w.place(b.slots["x"]), w.place(b.outputs[0]), sizes, SCALARS[a["x"].type],
                   bool(a.get("product", False)), bool(a["exclusive"]), bool(a["reverse"]))


NATIVE = (native(Family(_takes, _make), host_math.CUMSUM, folds.CUMULATE),)
