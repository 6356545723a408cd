"""Functions of bytes and of 16-bit integers by tables of all their answers, which NumPy's kernels make.

What another family does is done there; here is what is left, exact by definition.
"""
from __future__ import annotations

import math

from ...frozen import frozen
from ...ops import convert as c, elementwise as e, ex, host, host_math, shape as s
from ...types import BYTES, Quant, Tensor
from ..bind import Bound
from ..kernels.shape import regrid
from ..kernels.tables import INTEGERS, patterns
from .copies import together, window
from .elements import merged, spread, start, tensors_of
from .ir import SHARED, Function, Module
from .machine import Machine
from .places import Place
from .strides import nest
from .tables import answers, by_table, picked, run
from .tasks import Family, Group, Task, Workshop, flat, kind, native, slots_of

#: Functions of one element, and of two.
ONE = (e.RELU, e.RELU1, e.RELU6, e.ABS, e.NEG, e.SQRT, e.RSQRT, e.FLOOR, e.EXP, e.LOGISTIC, e.TANH, e.HARD_SWISH,
       e.LOG, e.SIN, e.ELU, host.LEAKY_RELU, host.SQUARE, host.CEIL, host.COS, host.ROUND, host.RELU_0_TO_1,
       host.REQUANTIZE, host_math.SIGN, host_math.GELU)
#: What is a function of raw numbers, whatever it results in.
CONVERSIONS = (c.CAST, ex.CAST_EX, c.DEQUANTIZE)
TWO = (e.ADD, e.SUB, e.MUL, e.DIV, e.MAXIMUM, e.MINIMUM, e.PRELU, host.SQUARED_DIFFERENCE, e.EQUAL, e.NOT_EQUAL,
       e.GREATER, e.GREATER_EQUAL, e.LESS, e.LESS_EQUAL, ex.EQUAL_EX, ex.NOT_EQUAL_EX, ex.GREATER_EQUAL_EX,
       ex.LESS_EX)
#: What may follow a function of one byte.
FOLLOWING = frozenset(op.name for op in (*ONE, *TWO))


def _narrow(t: Tensor) -> bool:
    """Whether a tensor has integers on one grid of which a table has all."""
    return t.type in INTEGERS and isinstance(t.quant, Quant) and t.size > 0


def _takes_conversion(b: Bound, _: Machine) -> bool:
    x = b.args["x"]
    return _narrow(x) and x.shape == b.outs[0].shape


def _takes_one(b: Bound, machine: Machine) -> bool:
    return _takes_conversion(b, machine) and _narrow(b.outs[0])


def _follows(group: Group, b: Bound, _: Machine) -> bool:
    """Whether all is still a function of one byte, as x * sigmoid(x) is."""
    x, known = group.head.args["x"], {group.head.slots["x"], *(s for m in group.members for s in m.outputs)}
    tensors = (x, *group.outs, *tensors_of(b))
    return kind(b.op) in FOLLOWING and known.issuperset(slots_of(b)) and all(
        _narrow(t) and t.type in BYTES and t.shape == x.shape for t in tensors)


def _make_one(w: Workshop, group: Group) -> Task:
    x = group.head.slots["x"]
    found = {x: patterns(group.head.args["x"])}
    for b in group.members:
        found[b.outputs[0]] = answers(b, **{n: found[s] for n, s in b.slots.items() if s in found})
    return by_table(w, w.place(x), w.place(group.outputs[0]), found[group.outputs[0]])


@frozen
class Pairs:
    """Each pair of bytes, of arrays that broadcast, by a table of 256 rows among the weights."""

    x: Place
    y: Place
    out: Place
    table: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("pairs", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f, places = Function(m, name, SHARED), (self.x, self.y, self.out)
        shape, strides = merged(self.out.shape, [spread(p, self.out.shape) for p in places])
        lead, table, kind = shape[:-1], f.at("%weights", self.table), f"i{8 * self.out.item}"
        first, last = f.share(math.prod(lead) if lead else shape[0])

        def element(starts: list[str], i: str) -> None:
            x, y, to = (f.at(p, f.mul(i, s[-1])) for p, s in zip(starts, strides, strict=True))
            row = f.at(table, f.mul(f.let(f"zext i8 {f.load('i8', x, 0, 1)} to i64"), 256 * self.out.item))
            f.store(kind, picked(f, kind, 1, y, row), to, 0, self.out.item)

        def row(i: str, _: list[str]) -> None:
            starts = [start(f, p, s[:-1], i, lead) for p, s in zip(places, strides, strict=True)]
            f.loop(0, shape[-1], 1, [], lambda n, _: element(starts, n))
        if lead:
            f.loop(first, last, 1, [], row)
        else:
            starts = [f.at(p.base, p.offset) for p in places]
            f.loop(first, last, 1, [], lambda n, _: element(starts, n))
        f.finish()


def _takes_two(b: Bound, _: Machine) -> bool:
    tensors = tensors_of(b)
    return len(b.outs[0].shape) > 0 and all(_narrow(t) and t.type in BYTES for t in tensors) and (
        b.outs[0].type.dtype.itemsize == 1)


def _make_two(w: Workshop, group: Group) -> Task:
    b = group.head
    x, y = b.args["x"], b.args["y"]
    table = answers(b, x=patterns(x)[:, None], y=patterns(y)[None])
    first, second = slots_of(b)
    return Pairs(w.place(first), w.place(second), w.place(b.outputs[0]), w.pack(table))


@frozen
class Joined:
    """Arrays looked up on their way to places of their shapes, by tables among the weights; None: as they are."""

    parts: tuple[tuple[Place, Place, int | None], ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("joined", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        for source, to, table in self.parts:
            self._part(f, *together(source, to), table)
        f.finish()

    @staticmethod
    def _part(f: Function, source: Place, to: Place, table: int | None) -> None:
        def row(at: list[str]) -> None:
            if table is None:
                f.copy(at[0], at[1], length)
            else:
                run(f, at[1], at[0], f.at("%weights", table), (1, 1), "0", str(length))
        length = source.shape[-1]
        nest(f, (to, source), source.shape[:-1], row)


def _takes_joined(b: Bound, _: Machine) -> bool:
    return all(t.type == b.outs[0].type and t.type in BYTES and _narrow(t) for t in (*b.args["xs"], b.outs[0]))


def _make_joined(w: Workshop, group: Group) -> Task:
    b, at, parts = group.head, 0, []
    out, axis = w.place(b.outputs[0]), b.args["axis"] % len(b.outs[0].shape)
    for slot, t in zip(flat(b.slots["xs"]), b.args["xs"], strict=True):
        source, table = w.place(slot), regrid(t, b.outs[0])
        begin = tuple(at if i == axis else 0 for i in range(len(source.shape)))
        parts.append((source, window(out, begin, source.shape), None if table is None else w.pack(table)))
        at += source.shape[axis]
    return Joined(tuple(parts))


NATIVE = (
    native(Family(_takes_one, _make_one, fuses=_follows), *ONE, otherwise=True),
    native(Family(_takes_conversion, _make_one), *CONVERSIONS, otherwise=True),
    native(Family(_takes_two, _make_two), *TWO, otherwise=True),
    native(Family(_takes_joined, _make_joined, strided=True), s.CONCATENATION, otherwise=True),
)
