"""Tasks that families do not know of: borders filled, images copied into rooms with a border."""
from __future__ import annotations

import math

from ...frozen import frozen
from .elements import merged, start
from .ir import SHARED, Function, Module
from .places import Place


@frozen
class FillBorders:
    """The borders of images, which who writes the images leaves alone.

    `waited`: the images are there already, and the next task reads them. Otherwise it writes them, inside of their
    borders, so that no thread need wait for another between the two.
    """

    images: tuple[Place, ...]
    waited: bool

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            for image in self.images:
                filled(f, image)
            f.finish()
        return m.once(("borders", self), build)


@frozen
class Copy:
    """An array copied elsewhere, row by row of neighbouring elements."""

    source: Place
    to: Place

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)
            copied(f, self.source, self.to)
            f.finish()
        return m.once(("copy", self), build)


@frozen
class Carry:
    """What a run leaves to the next one, each (from, to), where that reads it: once all has gone well, when there is
    nothing at `fault`."""

    pairs: tuple[tuple[Place, Place], ...]
    fault: int

    def emit(self, m: Module) -> str:
        """Write the function."""
        def build(name: str) -> None:
            f = Function(m, name, SHARED)

            def all_() -> None:
                for source, to in self.pairs:
                    copied(f, source, to)
            f.when(f.let(f"icmp eq i64 {f.load('i64', '%arena', self.fault, 8)}, 0"), all_)
            f.finish()
        return m.once(("carry", self), build)


def copied(f: Function, source: Place, to: Place) -> None:
    """Emit the copy of an array of any strides, its rows shared by threads."""
    outer = next((n + 1 for n, size in enumerate(source.shape[:-1]) if size > 1), 0)     # it is what threads share
    shape, strides = merged(source.shape[outer:], [p.strides[outer:] for p in (to, source)])
    if any(s[-1] != source.item for s in strides):
        shape, strides = (*shape, 1), [(*s, source.item) for s in strides]
    shape = (*source.shape[:outer], *shape)
    strides = [(*p.strides[:outer], *s) for p, s in zip((to, source), strides, strict=True)]
    width, lead = shape[-1] * source.item, shape[:-1]
    first, last = f.share(math.prod(lead))

    def row(i: str, _: list[str]) -> None:
        begin, read = (start(f, p, s[:-1], i, lead) for p, s in zip((to, source), strides, strict=True))
        f.copy(begin, read, width)
    f.loop(first, last, 1, [], row)


def address(f: Function, p: Place, index: str, lead: tuple[int, ...]) -> str:
    """Where the row of a number begins, rows counted along all axes but the last."""
    offset: str | int = p.offset
    rest: str = index
    for axis in reversed(range(len(lead))):
        here = f.rem(rest, lead[axis]) if axis else rest
        offset = f.add(f.mul(here, p.strides[axis]), offset)
        rest = f.div(rest, lead[axis]) if axis else rest
    return f.at(p.base, offset)


def filled(f: Function, p: Place) -> None:
    """Emit the filling of an image's border, images shared by threads."""
    (n, h, _, _), (batch, row, cell, _), b = p.shape, p.strides, p.border

    def image(i: str, _: list[str]) -> None:
        corner = f.at(p.base, f.add(f.mul(i, batch), p.offset - b.top * row - b.left * cell))
        if b.top:
            f.fill(corner, b.fill, b.top * row)
        if b.bottom:
            f.fill(f.at(corner, (b.top + h) * row), b.fill, b.bottom * row)

        sides(f, p, f.at(corner, b.top * row + b.left * cell), h)
    first, last = f.share(n)
    f.loop(first, last, 1, [], image)


def sides(f: Function, p: Place, first: str, rows: int) -> None:
    """Emit the filling of what lies left and right of so many rows of an image, from the one whose first cell is at
    `first`."""
    (_, row, cell, _), b = p.strides, p.border
    if not b.left and not b.right:
        return

    def line(y: str, _: list[str]) -> None:
        begin = f.at(first, f.mul(y, row))
        if b.left:
            f.fill(f.at(begin, -b.left * cell), b.fill, b.left * cell)
        if b.right:
            f.fill(f.at(begin, p.shape[2] * cell), b.fill, b.right * cell)
    f.loop(0, rows, 1, [], line)
