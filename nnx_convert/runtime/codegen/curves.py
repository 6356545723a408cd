"""Logarithms of a softmax."""
from __future__ import annotations

import math
from dataclasses import dataclass

from ...ops import norm
from ..bind import Bound
from . import mathematics
from .folds import floats, fold_row
from .ir import SHARED, Function, Module, Operand, number, vector
from .machine import Machine
from .mathematics import select
from .places import Place
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces

ITEM = 4


@dataclass(frozen=True)
class LogSoftmax:
    """beta * (x - max) less the logarithm of the sum of its exponentials, row by row."""

    x: Place
    out: Place
    size: int
    beta: float

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("logsoftmax", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        first, last = f.share(self.x.size // self.size)
        lanes = m.machine.lanes

        def row(i: str, _: list[str]) -> None:
            x, out = (f.at(p.base, f.add(p.offset, f.mul(i, self.size * ITEM))) for p in (self.x, self.out))
            type = vector(lanes)
            most = f.splat(type, fold_row(f, "MOST", x, self.size))

            def power(value: str, at: Operand, count: int) -> str:
                less = f.let(f"fsub {type} {value}, {most}")
                less = f.let(f"fmul {type} {less}, {number(type, self.beta)}")
                f.store_first(count, lanes, "float", less, out, at)
                return mathematics.exp(f, type, less)
            taken = logarithm(f, fold_row(f, "SUM", x, self.size, power))

            def write(at: str, count: int) -> None:
                offset = f.mul(at, ITEM)
                value = f.load_first(count, lanes, "float", out, offset)
                f.store_first(count, lanes, "float", f.let(f"fsub {type} {value}, {f.splat(type, taken)}"), out, offset)
            pieces(f, self.size, lanes, write)
        f.loop(first, last, 1, [], row)
        f.finish()


def logarithm(f: Function, x: str) -> str:
    """log of a FLOAT32 from 1 up: a first guess from its bits, within 0.04, then Halley's steps, which cube errors.

    The error is as large as that of exp near the result: about 1e-7, or 2 ulp; log of 1 is 0.
    """
    offset = number("float", 126.957)
    bits = f.let(f"sitofp i32 {f.let(f'bitcast float {x} to i32')} to float")
    log2 = f.let(f"fmul float {bits}, {number('float', 2.0 ** -23)}")
    found = f.let(f"fmul float {f.let(f'fsub float {log2}, {offset}')}, {number('float', math.log(2))}")
    for _ in range(2):
        power = mathematics.exp(f, "float", found)
        share = f.let(f"fdiv float {f.let(f'fsub float {x}, {power}')}, {f.let(f'fadd float {x}, {power}')}")
        found = f.fma("float", share, number("float", 2), found)
    one = f.let(f"fcmp oeq float {x}, {number('float', 1)}")
    return select(f, "float", one, number("float", 0), found)


def _takes_softmax(b: Bound, _: Machine) -> bool:
    return floats(b) and b.args["axis"] % len(b.args["x"].shape) == len(b.args["x"].shape) - 1


def _make_softmax(w: Workshop, group: Group) -> Task:
    b = group.head
    return LogSoftmax(w.place(b.slots["x"]), w.place(b.outputs[0]), b.args["x"].shape[-1], float(b.args["beta"]))


native(Family(_takes_softmax, _make_softmax), norm.LOG_SOFTMAX)
