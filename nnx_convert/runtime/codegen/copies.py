"""Elements moved and not changed: what reads or writes strided stretches of neighbours."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ...frozen import frozen
from ...ops import shape as s
from ...types import OBJECTS, Shape, Tensor
from ..bind import Bound
from .ir import SHARED, Function, Module
from .machine import Machine
from .moves import copied
from .places import Place
from .tasks import Family, Group, Phases, Task, Workshop, flat, native


@frozen
class Copies:
    """Arrays copied to places of their shapes, one after the other; last axes are of neighbours on both sides."""

    pairs: tuple[tuple[Place, Place], ...]

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            for source, to in self.pairs:
                copied(f, *together(source, to))
            f.finish()
        return m.once(("copies", self), build)


def together(source: Place, to: Place) -> tuple[Place, Place]:
    """The same copy with axes taken together that are neighbours on both sides, so that rows are long."""
    shape, strides = list(source.shape), [list(source.strides), list(to.strides)]
    axis = len(shape) - 2
    while axis >= 0:
        if all(k[axis] == k[axis + 1] * shape[axis + 1] for k in strides) or shape[axis] == 1:
            shape[axis:axis + 2] = [shape[axis] * shape[axis + 1]]
            for k in strides:
                k[axis:axis + 2] = [k[axis + 1]]
        axis -= 1
    return (replace(source, shape=tuple(shape), strides=tuple(strides[0])),
            replace(to, shape=tuple(shape), strides=tuple(strides[1])))


def there(source: Place, to: Place) -> bool:
    """Whether an array is in its place already."""
    same = all(a == b for n, a, b in zip(to.shape, source.strides, to.strides, strict=True) if n > 1)
    return same and (source.base, source.offset, source.shape) == (to.base, to.offset, to.shape)


def copies(pairs: Sequence[tuple[Place, Place]]) -> Task | Phases:
    """The copies of a group, of which some need not be made."""
    left = tuple(pair for pair in pairs if not there(*pair))
    return Copies(left) if left else Phases(())


def window(p: Place, begin: Shape, size: Shape) -> Place:
    """A part of an array."""
    offset = p.offset + sum(b * stride for b, stride in zip(begin, p.strides, strict=True))
    return replace(p, offset=offset, shape=size)


def along(p: Place, axis: int, sizes: Sequence[int]) -> list[Place]:
    """Parts of an array of these sizes, one after the other along an axis."""
    return [window(p, tuple(at if a == axis else 0 for a in range(len(p.shape))),
                   (*p.shape[:axis], size, *p.shape[axis + 1:]))
            for at, size in zip(accumulate(sizes, initial=0), sizes, strict=False)]


def plain(b: Bound) -> bool:
    """Whether elements are copied as they are: one grid on all sides, no objects, nothing empty."""
    tensors = [v for v in b.args.values() if isinstance(v, Tensor)] + [
        t for v in b.args.values() if isinstance(v, tuple) for t in v]
    moved = [t for t in tensors if t.type == b.outs[0].type]
    return b.outs[0].type not in OBJECTS and all(t.size > 0 for t in (*tensors, *b.outs)) and all(
        t.quant == b.outs[0].quant for t in (*moved, *b.outs))


def _takes_joined(b: Bound, _: Machine) -> bool:
    return plain(b) and all(t.type == b.outs[0].type for t in b.args["xs"])


def _make_joined(w: Workshop, group: Group) -> Task | Phases:
    b = group.head
    out, sources = w.place(b.outputs[0]), [w.place(slot) for slot in flat(b.slots["xs"])]
    axis = b.args["axis"] % len(out.shape)
    return copies(list(zip(sources, along(out, axis, [p.shape[axis] for p in sources]), strict=True)))


def _takes_cut(b: Bound, _: Machine) -> bool:
    return plain(b) and b.args["begin"].data is not None


def _make_cut(w: Workshop, group: Group) -> Task | Phases:
    b = group.head
    out = w.place(b.outputs[0])
    return copies([(window(w.place(b.slots["x"]), b.args["begin"].ints(), out.shape), out)])


def _takes_split(b: Bound, _: Machine) -> bool:
    return plain(b)


def _make_split(w: Workshop, group: Group) -> Task | Phases:
    return copies(parted(w, group.head))


def parted(w: Workshop, b: Bound) -> list[tuple[Place, Place]]:
    """The parts of an array along an axis, one after the other, with the results that they are."""
    x, outs = w.place(b.slots["x"]), [w.place(slot) for slot in b.outputs]
    axis = b.args["axis"] % len(x.shape)
    return list(zip(along(x, axis, [p.shape[axis] for p in outs]), outs, strict=True))


NATIVE = (
    native(Family(_takes_joined, _make_joined, strided=True), s.CONCATENATION),
    native(Family(_takes_cut, _make_cut, strided=True), s.SLICE),
    native(Family(_takes_split, _make_split, strided=True), s.SPLIT),
)
