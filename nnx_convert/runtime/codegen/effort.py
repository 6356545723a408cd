"""How many threads a program is worth: waking a sleeping one takes longer than a small model's whole run."""
from __future__ import annotations

from collections.abc import Iterable

from ...ops.macs import multiplied
from ...types import BYTES
from ..bind import Bound

#: Multiply-adds of floats and of bytes, and elements written, in a microsecond of one core: of a usual one, roughly.
FLOATS, CODES, ELEMENTS = 40_000, 120_000, 3_000
#: Microseconds of one core from which a second one is woken.
LEAST = 150.0


def worth(asked: int, operations: Iterable[Bound]) -> int:
    """The threads for a program of these operations, of as many as may be had."""
    return asked if sum(map(effort, operations)) >= LEAST else 1


def effort(b: Bound) -> float:
    """About the microseconds that one core takes for an operation."""
    rate = CODES if b.outs[0].type in BYTES else FLOATS
    return multiplied(b.op, b.args, b.outs) / rate + sum(t.size for t in b.outs) / ELEMENTS
