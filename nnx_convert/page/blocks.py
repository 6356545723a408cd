"""Repeated blocks of a model: runs of operations that come several times in a row."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..frozen import frozen

#: The longest block that is looked for, in operations, and the shortest.
LONGEST, LEAST = 64, 2
#: Longer ones come at least three times: two halves of a model are no blocks.
HALF = 12


@frozen
class Block:
    """Operations from `first` up to `end`, the `number`-th of `of` that are alike; `names` are those of one."""

    first: int
    end: int
    number: int
    of: int
    names: tuple[str, ...]


def blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """The repeats in a sequence of operations by name: at each place that which saves the most, then on behind it.

    Of two that save the same the shorter block is taken. Single operations in a row are no blocks.
    """
    found: list[Block] = []
    at = 0
    while at < len(names):
        period, count = _best(names, at)
        if count > 1:
            own = tuple(names[at:at + period])
            found += (Block(at + n * period, at + (n + 1) * period, n, count, own) for n in range(count))
        at += period * count if count > 1 else 1
    return tuple(found)


def _best(names: Sequence[str], at: int) -> tuple[int, int]:
    """The period and the count of the repeat that begins at a place."""
    best = 1, 1
    for period, count in _repeats(names, at):
        if period * (count - 1) > best[0] * (best[1] - 1) and (count > 2 or period <= HALF):
            best = period, count
    return best


def _repeats(names: Sequence[str], at: int) -> Iterator[tuple[int, int]]:
    for period in range(LEAST, min(LONGEST, (len(names) - at) // 2) + 1):
        if names[at] != names[at + period]:
            continue
        own = names[at:at + period]
        if len(set(own)) == 1:
            continue
        count = 1
        while names[at + count * period:at + (count + 1) * period] == own:
            count += 1
        yield period, count
