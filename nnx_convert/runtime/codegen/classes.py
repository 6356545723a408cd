"""Indices as rows of one number and another one where they point."""
from __future__ import annotations


import numpy as np

from ...frozen import frozen
from ...ops import ex, indexing
from ...types import F32, I32, I64, Tensor, Type
from ..bind import Bound
from .ir import SHARED, Function, Module
from .places import Place, around
from .scalars import SCALARS
from .tasks import Family, Group, Task, Workshop, native


@frozen
class OneHot:
    """[outer, depth, inner] of indices [outer, inner]: `values[1]` where the middle one is the index, else `values[0]`.

    `values` is where both are among arrays. `wraps`: a negative index counts from the end.
    """

    indices: Place
    out: Place
    values: Place
    sizes: tuple[int, int, int]
    kind: Type
    wraps: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("onehot", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        (outer, depth, inner), item = self.sizes, self.out.item
        first, last = f.share(outer)
        code, values = f"i{8 * item}", f.at(self.values.base, self.values.offset)
        off, on = (f.load(code, values, n * item, item) for n in range(2))

        def part(i: str, _: list[str]) -> None:
            to = f.at(self.out.base, f.add(self.out.offset, f.mul(i, depth * inner * item)))
            f.loop(0, depth * inner, 1, [], lambda n, _: f.store(code, off, to, f.mul(n, item), item))

            def one(n: str, _: list[str]) -> None:
                index = self._index(f, f.add(f.mul(i, inner), n))
                there = f.let(f"icmp ult i64 {index}, {depth}")
                f.when(there, lambda: f.store(code, on, to, f.mul(f.add(f.mul(index, inner), n), item), item))
            f.loop(0, inner, 1, [], one)
        f.loop(first, last, 1, [], part)
        f.finish()

    def _index(self, f: Function, n: str) -> str:
        """An index of 64 bits; one that is none is out of bounds."""
        scalar = SCALARS[self.kind]
        at = f.at(self.indices.base, f.add(self.indices.offset, f.mul(n, scalar.size)))
        value = f.load(scalar.code, at, 0, scalar.size)
        if scalar.real:
            whole = f.call("i64", "llvm.fptosi.sat.i64.f32", ("float", value))
            value = f.select(f.let(f"fcmp uno float {value}, {value}"), "i64", str(-1 << 63), whole)
        elif scalar.size < 8:
            value = f.let(f"sext {scalar.code} {value} to i64")
        if not self.wraps:
            return value
        below = f.let(f"icmp slt i64 {value}, 0")
        return f.select(below, "i64", f.let(f"add i64 {value}, {self.sizes[1]}"), value)


def _takes(b: Bound, kinds: tuple[Type, ...]) -> bool:
    indices: Tensor = b.args["indices"]
    return indices.type in kinds and b.outs[0].size > 0 and b.outs[0].type.dtype.itemsize <= 8 and (
        b.outs[0].type.dtype.kind in "fiub")


def _made(w: Workshop, b: Bound, values: Place, wraps: bool) -> Task:
    axis = b.args["axis"]
    sizes = around(b.outs[0].shape, -1 if axis is None else axis)
    return OneHot(w.place(b.slots["indices"]), w.place(b.outputs[0]), values, sizes, b.args["indices"].type, wraps)


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    return _made(w, b, w.place(b.slots["values"]), wraps=True)


def _make_ex(w: Workshop, group: Group) -> Task:
    b = group.head
    given = np.array([b.args["off"], b.args["on"]]).astype(b.outs[0].type.dtype)
    return _made(w, b, Place("%weights", w.pack(given), given.shape, given.strides, given.itemsize), wraps=False)


NATIVE = (
    native(Family(lambda b, _: _takes(b, (I32, I64, F32)), _make), indexing.ONE_HOT),
    native(Family(lambda b, _: _takes(b, (I32,)), _make_ex), ex.ONE_HOT_EX),
)
