"""Matrices turned in registers: rows of four bytes' elements become columns, four neighbours of many rows at a time."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from .ir import Function, Module, vector

ITEM = 4
#: Neighbours of each row that are turned together: as many as a part of a register that shuffles do not leave has.
QUAD = 4
#: For each lane of a part, where it comes from: a lane of the first vector's part, or of the second's, 4 further.
LOW, HIGH, FIRST, SECOND = (0, 4, 1, 5), (2, 6, 3, 7), (0, 1, 4, 5), (2, 3, 6, 7)


def across_rows(f: Function, row: Callable[[int], str], rows: int, count: int) -> list[str]:
    """The first `count` (at most four) elements of the first `rows` rows as vectors, one for each element.

    `row` gives the address of a row. Lanes beyond the rows are zero.
    """
    lanes = f.machine.lanes
    read = [f.load_first(count, QUAD, "float", row(i)) if i < rows else "zeroinitializer" for i in range(lanes)]
    a, b, c, d = (_joined(f, read[i::QUAD]) for i in range(QUAD))
    found: list[str] = []
    for order in (LOW, HIGH)[:-(-count // 2)]:
        pair = _shuffled(f, a, b, order), _shuffled(f, c, d, order)
        found += [_shuffled(f, *pair, FIRST), _shuffled(f, *pair, SECOND)]
    return found[:count]


def _joined(f: Function, parts: Sequence[str]) -> str:
    """Vectors of four as one."""
    found, size = list(parts), QUAD
    while len(found) > 1:
        order = ", ".join(f"i32 {i}" for i in range(2 * size))
        kind = f"<{size} x float>"
        found = [f.let(f"shufflevector {kind} {x}, {kind} {y}, <{2 * size} x i32> <{order}>")
                 for x, y in zip(found[::2], found[1::2], strict=True)]
        size *= 2
    return found[0]


def _shuffled(f: Function, x: str, y: str, order: Sequence[int]) -> str:
    """The same shuffle of every part of two vectors."""
    lanes = f.machine.lanes
    kind = vector(lanes)
    indices = ", ".join(f"i32 {at + n if n < QUAD else lanes + at + n - QUAD}"
                        for at in range(0, lanes, QUAD) for n in order)
    return f.let(f"shufflevector {kind} {x}, {kind} {y}, <{lanes} x i32> <{indices}>")


def turned(m: Module, rows: int, columns: int, step: int, pitch: int) -> str:
    """The function `(X, Y)` that turns rows of neighbours, `step` bytes apart, into Y's columns, its rows `pitch` apart."""
    def build(name: str) -> None:
        f = Function(m, name, (("ptr noalias readonly", "%X"), ("ptr noalias", "%Y")))
        lanes = m.machine.lanes

        def band(row: str, count: int) -> None:
            x, y = f.at("%X", f.mul(row, step)), f.at("%Y", f.mul(row, ITEM))

            def block(column: str, width: int) -> None:
                source, to = f.at(x, f.mul(column, ITEM)), f.at(y, f.mul(column, pitch))
                for n, value in enumerate(across_rows(f, lambda i: f.at(source, i * step), count, width)):
                    f.store_first(count, lanes, "float", value, to, n * pitch)
            pieces(f, columns, QUAD, block)
        pieces(f, rows, lanes, band)
        f.finish()
    return m.once(("turned", rows, columns, step, pitch), build)


def pieces(f: Function, count: int, size: int, body: Callable[[str, int], None]) -> None:
    """`body(first, how many)` for pieces of a size, and for what is left."""
    whole, rest = count - count % size, count % size
    if whole:
        f.loop(0, whole, size, [], lambda i, _: body(i, size))
    if rest:
        body(str(whole), rest)
