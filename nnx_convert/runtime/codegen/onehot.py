"""Products by rows of which one element is 1, as rows of a table.

Integers that are compared with n following numbers, the truth values as floats, a product of those by a constant
matrix, and what is done to it element by element: all of that is a function of one integer that has n + 1 values.
NumPy's kernels give them, so that results are theirs to the bit.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...frozen import frozen
from ...ops import convert, elementwise as e, ex
from ...types import F32, I32, Array, Tensor
from ..bind import Bound, Slot, once
from .elements import LONGEST, chainable, tensors_of
from .ir import SHARED, Function, Module
from .machine import Machine
from .micro import by_vectors
from .places import ITEM, Place
from .tasks import Family, Group, Native, Phases, Task, Workshop, either, kind, slots_of

#: Elements of the largest array that making a table takes.
MOST = 1 << 21
#: Which of a group is the product: a cast is between it and the comparison.
PRODUCT = 2


@frozen
class Rows:
    """For each integer of x a row of a table of `count` + 1: row n for `first` + n, the last one for all others."""

    x: Place
    out: Place
    table: int
    first: int
    count: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("rows", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        channels = self.out.size // self.x.size
        x, out = (f.at(p.base, p.offset) for p in (self.x, self.out))

        def row(i: str, _: list[str]) -> None:
            which = f.let(f"sub i32 {f.load('i32', x, f.mul(i, ITEM))}, {self.first}")
            there = f.let(f"icmp ult i32 {which}, {self.count}")
            number = f.let(f"zext i32 {f.select(there, 'i32', which, str(self.count))} to i64")
            size = channels * ITEM
            source = f.at("%weights", f.add(self.table, f.mul(number, size)))

            def copy(at: list[str], count: int) -> None:
                lanes = f.machine.lanes
                f.store_first(count, lanes, "float", f.load_first(count, lanes, "float", at[0]), at[1])
            by_vectors(f, channels, (source, f.at(out, f.mul(i, size))), (ITEM, ITEM), copy)
        f.loop(*f.share(self.x.size), 1, [], row)
        f.finish()


def compared(b: Bound) -> tuple[str, int, int] | None:
    """The argument of which each integer is compared with following numbers, the first of these and how many there
    are; None where that is not what an operation does."""
    for name, other in (("x", "y"), ("y", "x")):
        x, y = b.args[name], b.args[other]
        if x.type != I32 or y.type != I32 or x.data is not None or y.data is None or y.size < 2:
            continue
        numbers, wide = y.data.reshape(-1), (*x.shape[:-1], y.size)
        rises = bool((numbers == int(numbers[0]) + np.arange(y.size)).all())
        if rises and x.shape[-1:] == (1,) and b.outs[0].shape == wide and y.shape[-1] == y.size and x.size > 0:
            return name, int(numbers[0]), y.size
    return None


def _fuses(group: Group, b: Bound, machine: Machine) -> bool:
    """A cast, a product, then what gives every row by itself."""
    inner, found = {s for m in group.members for s in m.outputs}, compared(group.head)
    if found is None or b.outs[0].type != F32:
        return False
    if not group.tail:
        return b.op in (convert.CAST, ex.CAST_EX)
    if len(group.members) == PRODUCT:
        w, bias = b.args.get("w"), b.args.get("b")
        return (kind(b.op) == "FULLY_CONNECTED" and b.slots["x"] in inner and w is not None and bias is not None
                and w.data is not None and bias.data is not None and w.type == bias.type == F32
                and w.shape[1] == found[2] and bool(np.isfinite(w.data).all())
                and (found[2] + 1) * max(w.shape) <= MOST)
    channels = group.outs[0].shape[-1]
    others = [t for t, s in zip(tensors_of(b), slots_of(b), strict=True) if s not in inner]
    return (chainable(b, machine) and len(group.tail) < LONGEST and b.outs[0].shape[-1:] == (channels,)
            and b.outs[0].size == group.outs[0].size
            and all(t.data is not None and t.size in (1, t.shape[-1] if t.rank else 1) and t.size in (1, channels)
                    for t in others))


def table(group: Group, name: str, first: int, count: int) -> Array:
    """What a group, whose argument of a name is compared, gives for each number, and for any other one:
    [count + 1, channels]. Constants but those of the product are one number or a row, so they are given as rows."""
    other = first + count if first + count <= np.iinfo(np.int32).max else first - 1
    known: dict[Slot | Sequence[Any] | None, Array] = {
        group.head.slots[name]: np.array([*range(first, first + count), other], np.int32)[:, None]}
    for n, b in enumerate(group.members):
        def given(name: str, value: Any, b: Bound = b, plain: bool = n == PRODUCT) -> Any:
            if not isinstance(value, Tensor):
                return value
            slot = b.slots.get(name)
            data = known.get(slot, value.data)
            assert data is not None
            data = data if slot in known or plain else data.reshape(-1)
            return Tensor(value.type, data.shape, value.quant, data)
        out = b.outs[0]
        made = once(b.op, {name: given(name, value) for name, value in b.args.items()},
                    (Tensor(out.type, (count + 1, out.shape[-1]), out.quant),))
        assert made is not None
        known[b.outputs[0]] = made[0]
    return np.ascontiguousarray(known[group.outputs[0]])


def _over(plain: Family) -> Family:
    """The family of comparisons of following numbers, where others are those of `plain`."""
    def takes(b: Bound, machine: Machine) -> bool:
        return plain.takes(b, machine) and compared(b) is not None

    def make(w: Workshop, group: Group) -> Task | Phases:
        found = compared(group.head)
        if not group.tail or found is None:
            return plain.make(w, group)
        name, first, count = found
        x = group.head.slots[name]
        assert isinstance(x, int)
        return Rows(w.place(x), w.place(group.outputs[0]), w.pack(table(group, *found)), first, count)
    return Family(takes, make, fuses=_fuses, whole=lambda g: not g.tail or len(g.members) > PRODUCT)


def _joined(plain: Family | None) -> Family:
    assert plain is not None
    return either(_over(plain), plain)


NATIVE = (Native((e.EQUAL, ex.EQUAL_EX), _joined),)
