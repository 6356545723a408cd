"""Matrices turned in registers: rows of four bytes' elements become columns, four neighbours of many rows at a time.

With it, what else goes through neighbours by vectors, and takes these apart."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from .integers import shuffled
from .ir import Function, Module, parts, vector, width
from .places import ITEM

#: Neighbours of each row that are turned together: as many as a part of a register that shuffles do not leave has.
QUAD = 4
#: The bytes of such a part.
PART = 16
#: Rows turned together, so that lines of the cache are written as wholes.
LINE = 16
#: Pieces from which these are a loop.
UNROLLED = 5
#: For each lane of a part, where it comes from: a lane of the first vector's part, or of the second's, 4 further.
LOW, HIGH, FIRST, SECOND = (0, 4, 1, 5), (2, 6, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7)


def across_rows(f: Function, row: Callable[[int], str], rows: int, count: int) -> list[str]:
    """The first `count` (at most four) elements of the first `rows` rows as vectors, one for each element.

    `row` gives the address of a row. Lanes beyond the rows are zero.
    """
    lanes = f.machine.lanes
    read = [f.load_first(count, QUAD, "float", row(i)) if i < rows else "zeroinitializer" for i in range(lanes)]
    return _square(f, vector(lanes), [_joined(f, vector(QUAD), read[i::QUAD]) for i in range(QUAD)], count)


def dealt(f: Function, type: str, pointer: str, size: int) -> list[str]:
    """Four vectors to which numbers of a type, four vectors of neighbours, are dealt in stretches of a size."""
    lanes, element = parts(type)
    item, part = width(element) // 8, PART // (width(element) // 8)

    def row(first: int, step: int) -> str:
        """Parts of a register, so many numbers apart."""
        read = [f.load(vector(part, element), pointer, (first + n * step) * item, item) for n in range(lanes // part)]
        return _joined(f, vector(part, element), read)
    if size >= part:
        return [_joined(f, vector(part, element), [f.load(vector(part, element), pointer, (
            n // size * QUAD + q) * size * item + n % size * item, item) for n in range(0, lanes, part)])
            for q in range(QUAD)]
    deals = part // size                         # in a part of a register
    found = list[str]()
    for first in range(0, QUAD * size, part):
        rows = [row(first + n * QUAD * size, deals * QUAD * size) for n in range(deals)]
        if deals == QUAD:
            return _square(f, type, rows, QUAD)
        for some in (range(size), range(size, part)):
            found.append(_shuffled(f, type, rows[0], rows[1], [*some, *(part + n for n in some)]))
    return found


def _square(f: Function, type: str, rows: Sequence[str], count: int) -> list[str]:
    """The first `count` columns of what four vectors' parts of four elements are the rows of."""
    a, b, c, d = rows
    found: list[str] = []
    for order in (LOW, HIGH)[:-(-count // 2)]:
        pair = _shuffled(f, type, a, b, order), _shuffled(f, type, c, d, order)
        found += [_shuffled(f, type, *pair, FIRST), _shuffled(f, type, *pair, SECOND)]
    return found[:count]


def _joined(f: Function, type: str, parts_: Sequence[str]) -> str:
    """Vectors of a type as one."""
    found, (size, element) = list(parts_), parts(type)
    while len(found) > 1:
        found = [shuffled(f, vector(size, element), x, y, list(range(2 * size)))
                 for x, y in zip(found[::2], found[1::2], strict=True)]
        size *= 2
    return found[0]


def _shuffled(f: Function, type: str, x: str, y: str, order: Sequence[int]) -> str:
    """The same shuffle of every part of two vectors, which is as long as `order`."""
    lanes, part = parts(type)[0], len(order)
    return shuffled(f, type, x, y, [at + n if n < part else lanes + at + n - part
                                    for at in range(0, lanes, part) for n in order])


def turned(m: Module, rows: int, columns: int, step: int, pitch: int) -> str:
    """The function `(X, Y)` that turns rows of neighbours, `step` bytes apart, into columns of rows `pitch` apart."""
    def build(name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias", "%Y")))
        lanes = m.machine.lanes

        def part(source: str, to: str, count: int, width: int) -> None:
            for n, value in enumerate(across_rows(f, lambda i: f.at(source, i * step), count, width)):
                f.store_first(count, lanes, "float", value, to, n * pitch)

        def band(row: str, count: int) -> None:
            x, y = f.at("%X", f.mul(row, step)), f.at("%Y", f.mul(row, ITEM))

            def block(column: str, width: int) -> None:
                source, to = f.at(x, f.mul(column, ITEM)), f.at(y, f.mul(column, pitch))
                for at in range(0, count, lanes):
                    part(f.at(source, at * step), f.at(to, at * ITEM), min(lanes, count - at), width)
            pieces(f, columns, QUAD, block)
        pieces(f, rows, LINE, band)
        f.finish()
    return m.once(("turned", rows, columns, step, pitch), build)


def pieces(f: Function, count: int, size: int, body: Callable[[str, int], None]) -> None:
    """`body(first, how many)` for pieces of a size, and for what is left."""
    whole, rest = count - count % size, count % size
    if whole:
        f.loop(0, whole, size, [], lambda i, _: body(i, size))
    if rest:
        body(str(whole), rest)


def overlapping(f: Function, count: int, size: int, body: Callable[[str, int], None]) -> None:
    """`body(first, how many)` for pieces of a size, the last of which may begin within the one before; for fewer
    than a size, for all of them."""
    if count < size:
        body("0", count)
        return
    if count >= UNROLLED * size:
        f.loop(0, count - size + 1, size, [], lambda i, _: body(i, size))
    else:
        for at in range(0, count - size + 1, size):
            body(str(at), size)
    if count % size:
        body(str(count - size), size)


def neighbours(f: Function, first: int, last: int, lanes: int, body: Callable[[str, int], None]) -> None:
    """`body(i, lanes)` for vectors of neighbours from first to last, then `body(i, 1)` for each of those left."""
    whole = last - (last - first) % lanes
    if first < whole:
        f.loop(first, whole, lanes, [], lambda i, _: body(i, lanes))
    if whole < last:
        f.loop(whole, last, 1, [], lambda i, _: body(i, 1))


def of_several(f: Function, type: str, values: Sequence[str], picks: Sequence[int]) -> str:
    """A vector of elements of two to four vectors of a type, seen as one after the other."""
    if len(values) == 2:
        return shuffled(f, type, values[0], values[1], list(picks))
    lanes, element = parts(type)
    given = [*values, *["poison"] * (QUAD - len(values))]
    low, high = (shuffled(f, type, a, b, list(range(2 * lanes))) for a, b in (given[:2], given[2:]))
    return shuffled(f, vector(2 * lanes, element), low, high, list(picks))


def every_other(f: Function, type: str, pointer: str, align: int) -> list[str]:
    """Two vectors of a type (or single numbers): of as many pairs in memory the first parts, and the second ones."""
    lanes, element = parts(type)
    if lanes == 1:
        return [f.load(element, pointer, n * align, align) for n in range(2)]
    both = vector(2 * lanes, element)
    read = f.load(both, pointer, 0, align)
    return [shuffled(f, both, read, "poison", list(range(n, 2 * lanes, 2))) for n in range(2)]


def woven(m: Module, rows: int, columns: int, step: int) -> str:
    """The function `(X, Y)` of `turned` for two to four rows that become neighbours without gaps."""
    def build(name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias", "%Y")))
        lanes = m.machine.lanes

        def piece(column: str, count: int) -> None:
            x, y = f.at("%X", f.mul(column, ITEM)), f.at("%Y", f.mul(column, rows * ITEM))
            read = [f.load_first(count, lanes, "float", x, i * step) for i in range(rows)]
            for n in range(rows):
                left = min(lanes, count * rows - n * lanes)
                if left > 0:
                    picks = [at % rows * lanes + at // rows for at in range(n * lanes, (n + 1) * lanes)]
                    f.store_first(left, lanes, "float", of_several(f, vector(lanes), read, picks), y, n * lanes * ITEM)
        pieces(f, columns, lanes, piece)
        f.finish()
    return m.once(("woven", rows, columns, step), build)


def unwoven(m: Module, columns: int, rows: int, pitch: int) -> str:
    """The function `(X, Y)` of `turned` for rows of two to four neighbours without gaps between them."""
    def build(name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias", "%Y")))
        lanes = m.machine.lanes

        def piece(row: str, count: int) -> None:
            x, y = f.at("%X", f.mul(row, columns * ITEM)), f.at("%Y", f.mul(row, ITEM))
            there = [min(lanes, count * columns - n * lanes) for n in range(columns)]
            read = [f.load_first(left, lanes, "float", x, n * lanes * ITEM) if left > 0 else "zeroinitializer"
                    for n, left in enumerate(there)]
            for n in range(columns):
                value = of_several(f, vector(lanes), read, [i * columns + n for i in range(lanes)])
                f.store_first(count, lanes, "float", value, y, n * pitch)
        pieces(f, rows, lanes, piece)
        f.finish()
    return m.once(("unwoven", columns, rows, pitch), build)
