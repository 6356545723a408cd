"""The largest of each row, in order: a sorted list of those so far, into which each element that is larger is put."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...frozen import frozen
from ...ops import reduce as r
from ...types import Tensor
from ..bind import Bound
from .ir import SHARED, Function, Module, number
from .machine import Machine
from .places import ITEM, Place
from .scalars import SCALARS, Scalar
from .tasks import SCRATCH, Family, Group, Task, Workshop, native

#: A longer list takes too long where rows ascend: what is put in front moves all of it.
LONGEST = 128


@frozen
class Largest:
    """The `count` largest of each row of x, and where they are: of equals the last one is the larger.

    What is no number is as small as can be.
    """

    x: Place
    values: Place
    indices: Place
    scratch: Place
    element: Scalar
    count: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        return m.once(("largest", self), lambda name: self._build(m, name))

    def _build(self, m: Module, name: str) -> None:
        f = Function(m, name, SHARED)
        size = self.x.shape[-1]
        first, last = f.share(self.x.size // size)
        keys = f.at("%arena", f.add(f.mul("%thread", self.scratch.strides[0]), self.scratch.offset))

        def row(i: str, _: list[str]) -> None:
            x = f.at(self.x.base, f.add(self.x.offset, f.mul(i, size * self.element.size)))
            values, indices = (f.at(p.base, f.add(p.offset, f.mul(i, self.count * p.item)))
                               for p in (self.values, self.indices))
            f.loop(0, self.count, 1, [], lambda n, _: self._put(f, x, keys, indices, n, n))
            worst = (self.count - 1) * self.element.size

            def try_(n: str, _: list[str]) -> None:
                better = self._before(f, self._key(f, x, n), f.load(self.element.code, keys, worst, self.element.size))
                f.when(better, lambda: self._put(f, x, keys, indices, n, str(self.count - 1)))
            f.loop(self.count, size, 1, [], try_)
            f.loop(0, self.count, 1, [], lambda n, _: self._told(f, x, values, indices, n))
        f.loop(first, last, 1, [], row)
        f.finish()

    def _key(self, f: Function, x: str, n: str) -> str:
        """What an element is compared by."""
        code, size = self.element.code, self.element.size
        value = f.load(code, x, f.mul(n, size), size)
        if not self.element.real:
            return value
        return f.select(f.let(f"fcmp uno {code} {value}, {value}"), code, number(code, -np.inf), value)

    def _before(self, f: Function, key: str, other: str) -> str:
        """Whether a later element's key comes before an earlier one's."""
        return f.let(f"{self.element.relation('ge')} {self.element.code} {key}, {other}")

    def _put(self, f: Function, x: str, keys: str, indices: str, n: str, place: str) -> None:
        """Element n into the list whose free place is that one, or further in front."""
        code, size, key = self.element.code, self.element.size, self._key(f, x, n)

        def better(at: str) -> str:
            return self._before(f, key, f.load(code, keys, f.mul(f.add(at, -1), size), size))

        def back(at: str) -> None:
            behind = f.add(at, -1)
            f.store(code, f.load(code, keys, f.mul(behind, size), size), keys, f.mul(at, size), size)
            f.store("i32", f.load("i32", indices, f.mul(behind, ITEM)), indices, f.mul(at, ITEM))
        at = _down(f, place, better, back)
        f.store(code, key, keys, f.mul(at, size), size)
        f.store("i32", f.let(f"trunc i64 {n} to i32"), indices, f.mul(at, ITEM))

    def _told(self, f: Function, x: str, values: str, indices: str, n: str) -> None:
        """An element of the list as it is in x."""
        kind, size = f"i{8 * self.element.size}", self.element.size
        at = f.let(f"zext i32 {f.load('i32', indices, f.mul(n, ITEM))} to i64")
        f.store(kind, f.load(kind, x, f.mul(at, size), size), values, f.mul(n, size), size)


def _down(f: Function, start: str, more: Callable[[str], str], body: Callable[[str], None]) -> str:
    """The number, counted down from a start, at which `more` ends or 0 is; `body` for each one above it."""
    before, head, test, turn, end = f.block, *(f.label() for _ in range(4))
    at, following = f"%at{head}", f"%next{head}"
    f.go(head)
    f.start(head)
    f.do(f"{at} = phi i64 [ {start}, %{before} ], [ {following}, %{turn} ]")
    f.do(f"br i1 {f.let(f'icmp sgt i64 {at}, 0')}, label %{test}, label %{end}")
    f.start(test)
    f.do(f"br i1 {more(at)}, label %{turn}, label %{end}")
    f.start(turn)
    body(at)
    f.do(f"{following} = add nsw i64 {at}, -1")
    f.go(head)
    f.start(end)
    return at


def _takes(b: Bound, _: Machine) -> bool:
    x: Tensor = b.args["x"]
    return x.type in SCALARS and x.size > 0 and 0 < b.args["k"] <= min(LONGEST, x.shape[-1])


def _make(w: Workshop, group: Group) -> Task:
    b = group.head
    values, indices = map(w.place, b.outputs)
    return Largest(w.place(b.slots["x"]), values, indices, w.places[SCRATCH], SCALARS[b.args["x"].type], b.args["k"])


def _scratch(group: Group, _: Machine) -> int:
    return int(group.head.args["k"]) * SCALARS[group.head.args["x"].type].size


NATIVE = (native(Family(_takes, _make, scratch=_scratch), r.TOPK_V2),)
