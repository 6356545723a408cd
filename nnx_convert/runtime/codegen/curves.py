"""Logarithms of a softmax."""
from __future__ import annotations


from ...frozen import frozen
from ...ops import norm
from . import mathematics
from .folds import by_rows, fold_row
from .ir import SHARED, Function, Module, Operand, number, vector
from .places import ITEM, Place
from .tasks import Family, Group, Task, Workshop, native
from .turns import pieces


@frozen
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
            taken = mathematics.log(f, "float", fold_row(f, "SUM", x, self.size, power))

            def write(at: str, count: int) -> None:
                offset = f.mul(at, ITEM)
                value = f.load_first(count, lanes, "float", out, offset)
                f.store_first(count, lanes, "float", f.let(f"fsub {type} {value}, {f.splat(type, taken)}"), out, offset)
            pieces(f, self.size, lanes, write)
        f.loop(first, last, 1, [], row)
        f.finish()


def _make_softmax(w: Workshop, group: Group) -> Task:
    b = group.head
    return LogSoftmax(w.place(b.slots["x"]), w.place(b.outputs[0]), b.args["x"].shape[-1], float(b.args["beta"]))


NATIVE = (native(Family(by_rows, _make_softmax), norm.LOG_SOFTMAX),)
