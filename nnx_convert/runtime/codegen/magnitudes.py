"""Magnitudes of complex numbers, without overflow on the way."""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import host
from ...types import C64, F32, Tensor
from ..bind import Bound
from .ir import SHARED, Function, Module, mangled, number, vector
from .machine import Machine
from .mathematics import flags, select
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native
from .turns import every_other

#: Numbers beyond these are brought nearer to 1 by `SCALE` before they are squared.
SMALL, LARGE, SCALE = 2.0 ** -60, 2.0 ** 60, 2.0 ** 64


@frozen
class Magnitudes:
    """The magnitude of each complex number."""

    x: Place
    out: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("magnitudes", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes, count = m.machine.lanes, self.x.size
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)
        first, last = f.share(count // lanes)
        f.loop(first, last, 1, [], lambda i, _: self._some(f, x, out, f.mul(i, lanes), lanes))
        rest = count % lanes

        def tail() -> None:
            f.loop(count - rest, count, 1, [], lambda i, _: self._some(f, x, out, i, 1))
        if rest:
            f.when(f.let("icmp eq i64 %thread, 0"), tail)
        f.finish()

    @staticmethod
    def _some(f: Function, x: str, out: str, at: str, lanes: int) -> None:
        """So many neighbours."""
        parts = every_other(f, vector(lanes), f.at(x, f.mul(at, 2 * ITEM)), ITEM)
        f.store(vector(lanes), magnitude(f, vector(lanes), *parts), out, f.mul(at, ITEM))


def magnitude(f: Function, t: str, a: str, b: str) -> str:
    """sqrt(a * a + b * b); infinite where one of them is, whatever the other is."""
    a, b = (f.call(t, f"llvm.fabs.{mangled(t)}", (t, v)) for v in (a, b))
    most = select(f, t, f.let(f"fcmp ogt {t} {a}, {b}"), a, b)
    large, small = f.let(f"fcmp ogt {t} {most}, {number(t, LARGE)}"), f.let(f"fcmp olt {t} {most}, {number(t, SMALL)}")

    def either(down: float, up: float) -> str:
        return select(f, t, large, number(t, down), select(f, t, small, number(t, up), number(t, 1)))
    scale = either(1 / SCALE, SCALE)
    near = [f.let(f"fmul {t} {v}, {scale}") for v in (a, b)]
    square = f.fma(t, near[0], near[0], f.let(f"fmul {t} {near[1]}, {near[1]}"))
    root = f.call(t, f"llvm.sqrt.{mangled(t)}", (t, square))
    found = f.let(f"fmul {t} {root}, {either(SCALE, 1 / SCALE)}")
    infinite = [f.let(f"fcmp oeq {t} {v}, {number(t, np.inf)}") for v in (a, b)]
    return select(f, t, f.let(f"or {flags(t)} {infinite[0]}, {infinite[1]}"), number(t, np.inf), found)


def _takes(b: Bound, _: Machine) -> bool:
    x: Tensor = b.args["x"]
    return x.type == C64 and b.outs[0].type == F32 and x.size > 0


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    return Magnitudes(w.place(b.slots["x"]), w.place(b.outputs[0]))


NATIVE = (native(Family(_takes, _make), host.COMPLEX_ABS),)
