"""Products of bytes, and bytes from reals and back."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...ops import convert as c, elementwise as e
from ...types import BYTES, F32, Quant
from ..bind import Bound
from ..fixedpoint import grid
from ..kernels.quantized import ratio
from ..kernels.tables import patterns
from .integers import centred
from .ir import SHARED, Function, Module, number, vector
from .machine import Machine
from .mathematics import select
from .nearest import product_scales
from .places import Place
from .requantise import Range, Steps, alike, narrowed, planned, rounded_away, scaled
from .sums import summed, taken as taken_pair
from .tables import answers, by_table
from .tasks import Family, Group, Task, Workshop, kind, native

#: Floats beyond which a quotient is no integer of 32 bits.
BEYOND = 2147483648.0
#: More steps than any grid of bytes has.
FAR = 1024.0


@frozen
class Product:
    """The product of two numbers of bytes, scaled by a formula with its parameters for a vector at `blocks`."""

    first: Range
    second: Range
    out: Range
    formula: str
    blocks: int

    def emit(self, f: Function, lanes: int, x: str, other: str) -> str:
        """Steps of the output's grid, without its zero point, of such steps of the first's and bytes of the second."""
        y = centred(f, lanes, other, self.second.signed, self.second.zero)
        product = f.let(f"mul {vector(lanes, 'i32')} {x}, {y}")
        return scaled(f, self.formula, lanes, product, f.at("%weights", self.blocks))


def _takes_product(b: Bound, machine: Machine) -> bool:
    if not taken_pair(b, machine):
        return False
    x, y, out = (grid(t)[0] for t in (b.args["x"], b.args["y"], b.outs[0]))
    return float(x) * float(y) < 2.0 ** 12 * float(out)


def _make_product(w: Workshop, group: Group) -> Task:
    b = group.head
    x, y, out = b.args["x"], b.args["y"], b.outs[0]
    m, s = ratio(grid(x)[0], grid(y)[0], over=grid(out)[0])
    steps = Steps(np.array([m]), np.array([s]), np.ldexp(np.array([float(m)]), s - 31), np.array([-1 << 16]),
                  np.array([1 << 16]))
    range_ = Range.of(out, b.args["act"])
    found = planned(steps, range_, w.machine, product_scales(x, y, out, 1))
    product = Product(Range.of(x), Range.of(y), range_, found.formula, w.pack(alike(0, found, w.machine.lanes)))
    return summed(w, b, product)


@frozen
class Conversion:
    """Neighbours of one type turned into another's: reals into bytes on a grid, or such bytes into reals."""

    x: Place
    out: Place
    scale: float
    range: Range
    back: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("conversion", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        lanes, size = m.machine.lanes, self.x.size
        x, out = f.at(self.x.base, self.x.offset), f.at(self.out.base, self.out.offset)
        body: Callable[[Function, str], str] = self._real if self.back else self._byte
        element, made = ("i8", "float") if self.back else ("float", "i8")

        def vector_at(at: str, count: int) -> None:
            value = f.load_first(count, lanes, element, x, f.mul(at, self.x.item))
            f.store_first(count, lanes, made, body(f, value), out, f.mul(at, self.out.item))
        first, last = f.share(size // lanes)
        f.loop(first, last, 1, [], lambda i, _: vector_at(f.mul(i, lanes), lanes))
        if size % lanes:
            f.when(f.let("icmp eq i64 %thread, 0"), lambda: vector_at(str(size - size % lanes), size % lanes))
        f.finish()

    def _real(self, f: Function, x: str) -> str:
        """scale * (x - zero)."""
        lanes = f.machine.lanes
        real, whole = vector(lanes), vector(lanes, "i32")
        steps = centred(f, lanes, x, self.range.signed, self.range.zero)
        return f.let(f"fmul {real} {f.let(f'sitofp {whole} {steps} to {real}')}, {number(real, self.scale)}")

    def _byte(self, f: Function, x: str) -> str:
        """A quotient, halves away from zero; what is no integer of 32 bits is the least, which a negative zero point
        takes round to the greatest."""
        lanes = f.machine.lanes
        real, whole = vector(lanes), vector(lanes, "i32")
        t = f.let(f"fdiv {real} {x}, {number(real, self.scale)}")
        size = f.call(real, f"llvm.fabs.v{lanes}f32", (real, t))
        inside = f.let(f"fcmp olt {real} {size}, {number(real, BEYOND)}")
        end = -FAR if self.range.zero >= 0 else FAR
        t = select(f, real, inside, t, number(real, end))
        t = f.clamp(real, t, -FAR, FAR)
        return narrowed(f, lanes, rounded_away(f, real, whole, t), self.range)


def _takes_quantize(b: Bound, _: Machine) -> bool:
    x, out = b.args["x"], b.outs[0]
    return x.type == F32 and out.type in BYTES and isinstance(out.quant, Quant) and x.size > 0


def _make_quantize(w: Workshop, group: Group) -> Task:
    b = group.head
    return Conversion(w.place(b.slots["x"]), w.place(b.outputs[0]), float(grid(b.outs[0])[0]), Range.of(b.outs[0]),
                      back=False)


def _takes_dequantize(b: Bound, _: Machine) -> bool:
    x = b.args["x"]
    return x.type in BYTES and isinstance(x.quant, Quant) and x.size > 0 and b.outs[0].type == F32


def _regrids(group: Group, b: Bound, machine: Machine) -> bool:
    """Whether bytes become reals only to be bytes again, of another type or grid: a function of 256 values."""
    return not group.tail and kind(b.op) == c.QUANTIZE.name and _takes_quantize(b, machine)


def _make_dequantize(w: Workshop, group: Group) -> Task:
    b = group.head
    if group.tail:
        reals = answers(b, x=patterns(b.args["x"]))
        return by_table(w, w.place(b.slots["x"]), w.place(group.outputs[0]), answers(group.tail[0], x=reals))
    return Conversion(w.place(b.slots["x"]), w.place(b.outputs[0]), float(grid(b.args["x"])[0]),
                      Range.of(b.args["x"]), back=True)


NATIVE = (
    native(Family(_takes_product, _make_product), e.MUL, of_bytes=True),
    native(Family(_takes_quantize, _make_quantize), c.QUANTIZE),
    native(Family(_takes_dequantize, _make_dequantize, fuses=_regrids), c.DEQUANTIZE),
)
