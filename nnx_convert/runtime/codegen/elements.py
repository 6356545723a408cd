"""Operations element by element, in one loop."""
from __future__ import annotations

from dataclasses import dataclass

from ...ops import elementwise as e
from ...types import F32
from ..bind import Bound
from .ir import SHARED, Function, Module, vector
from .machine import Machine
from .places import Place
from .tasks import Family, Group, Task, Workshop, native

UNARY = {"RELU": (0.0, None), "RELU1": (-1.0, 1.0), "RELU6": (0.0, 6.0)}


@dataclass(frozen=True)
class Clamp:
    """RELU and its like on dense arrays."""

    x: Place
    out: Place
    low: float | None
    high: float | None

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            lanes = m.machine.lanes
            full, rest = divmod(self.x.size, lanes)
            x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)

            def step(at: str, count: int) -> None:
                v = f.load_first(count, lanes, "float", x, at)
                f.store_first(count, lanes, "float", f.clamp(vector(lanes), v, self.low, self.high), out, at)
            first, last = f.share(full)
            f.loop(first, last, 1, [], lambda i, _: step(f.mul(i, 4 * lanes), lanes))
            if rest:
                f.when(f.let("icmp eq i64 %thread, 0"), lambda: step(str(4 * lanes * full), rest))
            f.finish()
        return m.once(("clamp", self), build)


def _takes(b: Bound, _: Machine) -> bool:
    return b.outs[0].type == F32


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    return Clamp(w.place(b.slots["x"]), w.place(b.outputs[0]), *UNARY[b.op.name])


native(Family(_takes, _make), e.RELU, e.RELU1, e.RELU6)
