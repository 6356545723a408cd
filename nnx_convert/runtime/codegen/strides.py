"""Copies between strided views of arrays: rows of neighbours, matrices turned in registers, or element by element."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...frozen import frozen
from ...types import Shape
from .ir import SHARED, Function, Module
from .moves import address
from .places import Border, Place
from .turns import QUAD, turned, unwoven, woven

#: As many parts of the work as make it worth sharing them alone, and neighbours that a part of a turn has at least.
ENOUGH, LEAST = 8, 64
Pairs = tuple[tuple[Place, Place], ...]


@frozen
class Moves:
    """Views copied to views of the same shapes, which do not overlap."""

    pairs: Pairs

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            for source, to in self.pairs:
                moved(f, *simple(source, to))
            f.finish()
        return m.once(("moves", self), build)


# Views.
def split(p: Place, axis: int, sizes: Shape) -> Place:
    """The same array with an axis taken apart."""
    steps, step = list[int](), p.strides[axis]
    for size in reversed(sizes):
        steps.insert(0, step)
        step *= size
    return replace(p, shape=(*p.shape[:axis], *sizes, *p.shape[axis + 1:]),
                   strides=(*p.strides[:axis], *steps, *p.strides[axis + 1:]), border=Border())


def ordered(p: Place, axes: Sequence[int]) -> Place:
    """The same array with its axes in another order; those not named are of one element, and left out."""
    return replace(p, shape=tuple(p.shape[a] for a in axes), strides=tuple(p.strides[a] for a in axes),
                   border=Border())


def sliced(p: Place, cuts: Sequence[range]) -> Place:
    """The elements of an array that ranges name along each axis, back to front as well."""
    offset = sum(cut.start * stride for cut, stride in zip(cuts, p.strides, strict=True) if len(cut))
    return replace(p, offset=p.offset + offset, shape=tuple(map(len, cuts)), border=Border(),
                   strides=tuple(cut.step * stride for cut, stride in zip(cuts, p.strides, strict=True)))


def simple(source: Place, to: Place) -> tuple[Place, Place]:
    """The same copy without axes of one element, and with neighbours on both sides taken together."""
    axes: list[tuple[int, int, int]] = []
    for n, a, b in zip(to.shape, source.strides, to.strides, strict=True):
        if n == 1:
            continue
        if axes and axes[-1][1] == a * n and axes[-1][2] == b * n:
            axes[-1] = axes[-1][0] * n, a, b
        else:
            axes.append((n, a, b))
    shape, one, other = zip(*(axes or [(1, source.item, to.item)]), strict=True)
    return (replace(source, shape=shape, strides=one, border=Border()),
            replace(to, shape=shape, strides=other, border=Border()))


# Copies.
def moved(f: Function, source: Place, to: Place) -> None:
    """Emit the copy of a view, its parts shared by threads."""
    item, neighbours = to.item, [a for a, s in enumerate(source.strides) if s == to.item]
    if source.strides[-1] == to.strides[-1] == item:
        _rows(f, source, to)
    elif item == 4 and to.strides[-1] == item and neighbours:
        _turn(f, source, to, neighbours[0])
    else:
        _single(f, source, to)


def nest(f: Function, places: Sequence[Place], lead: Shape, body: Callable[[list[str]], None]) -> None:
    """`body(addresses)` for each index of the leading axes, shared by threads."""
    if not lead:
        f.when(f.let("icmp eq i64 %thread, 0"), lambda: body([f.at(p.base, p.offset) for p in places]))
        return
    outer = lead[:-1] if math.prod(lead[:-1]) >= ENOUGH else lead
    first, last = f.share(math.prod(outer))

    def part(i: str, _: list[str]) -> None:
        starts = [address(f, p, i, outer) for p in places]
        if outer == lead:
            body(starts)
            return

        def step(_: str, now: list[str]) -> list[str]:
            body(now)
            return [f.at(a, p.strides[len(outer)]) for a, p in zip(now, places, strict=True)]
        f.loop(0, lead[-1], 1, [("ptr", a) for a in starts], step)
    f.loop(first, last, 1, [], part)


def _rows(f: Function, source: Place, to: Place) -> None:
    width = source.shape[-1]
    if len(source.shape) == 1:
        first, last = f.share(width)
        size = f.mul(f.let(f"sub i64 {last}, {first}"), to.item)
        near, far = (f.at(p.base, f.add(p.offset, f.mul(first, to.item))) for p in (to, source))
        f.copy(near, far, size)
    else:
        nest(f, (to, source), source.shape[:-1], lambda at: f.copy(at[0], at[1], width * to.item))


def _single(f: Function, source: Place, to: Place) -> None:
    kind = f"i{8 * to.item}"

    def row(at: list[str]) -> None:
        def element(_: str, now: list[str]) -> list[str]:
            f.store(kind, f.load(kind, now[1], 0, to.item), now[0], 0, to.item)
            return [f.at(now[0], to.strides[-1]), f.at(now[1], source.strides[-1])]
        f.loop(0, to.shape[-1], 1, [("ptr", a) for a in at], element)
    nest(f, (to, source), to.shape[:-1], row)


def _turn(f: Function, source: Place, to: Place, axis: int) -> None:
    """Rows of neighbours along an axis become columns: parts of that axis are shared, too, where others are few."""
    others = [a for a in range(len(to.shape) - 1) if a != axis]
    columns, outer = to.shape[axis], math.prod(to.shape[a] for a in others)
    parts = min(-(-columns // LEAST), -(-ENOUGH // outer))
    size = -(-columns // parts // QUAD) * QUAD
    for first, count, width in ((0, columns // size, size), (columns // size * size, 1, columns % size)):
        if count and width:
            near, far = (replace(
                p, offset=p.offset + first * p.strides[axis], shape=(*(p.shape[a] for a in others), count),
                strides=(*(p.strides[a] for a in others), width * p.strides[axis])) for p in (to, source))
            name = _turning(f.module, to.shape[-1], width, source.strides[-1], to.strides[axis])

            def call(at: list[str], name: str = name) -> None:
                f.do(f"call void @{name}(ptr {at[1]}, ptr {at[0]})")
            nest(f, (near, far), near.shape, call)


def _turning(m: Module, rows: int, columns: int, step: int, pitch: int) -> str:
    """The function that turns rows: woven where few of them become neighbours, or neighbours become few rows."""
    if 1 < rows <= QUAD and pitch == rows * 4:
        return woven(m, rows, columns, step)
    if 1 < columns <= QUAD and step == columns * 4:
        return unwoven(m, columns, rows, pitch)
    return turned(m, rows, columns, step, pitch)
