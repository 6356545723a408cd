"""Large arrays in pieces that stay in a core's second-level cache, and small operands repeated beside them."""
from __future__ import annotations

from collections.abc import Iterator

from ..types import Shape, product

#: Elements handled at a time.
CHUNK = 1 << 14


def cuts(count: int, width: int = 1, step: int = CHUNK) -> Iterator[tuple[slice, slice]]:
    """Cuts of `count` flat elements, each with the cut of a constant of `width` elements its rows line up with.

    Every cut but the last is a whole number of widths; rows of a cut are `[-1, use.stop]`.
    """
    step = max(step // width, 1) * width
    whole = count // width * width
    for at in range(0, whole, step):
        yield slice(at, min(at + step, whole)), slice(0, width)
    if whole < count:
        yield slice(whole, count), slice(0, count - whole)


def period(shape: Shape, full: Shape) -> int | None:
    """The number of trailing elements of `full` that an operand of `shape` repeats with; None where it does not."""
    lead = (1,) * (len(full) - len(shape)) + tuple(shape)
    first = next((i for i, n in enumerate(lead) if n != 1), len(lead))
    return product(lead[first:]) if lead[first:] == tuple(full)[first:] else None


def repeats(width: int) -> int:
    """How often to repeat a constant of `width` elements so that one row of it is worth a NumPy loop."""
    return max(1, 1024 // max(width, 1))
