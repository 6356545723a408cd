"""Numbers that programs stumble over."""
from __future__ import annotations

import random
import struct
from typing import Any

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, 100, 255, 256, 1000)
EDGES = (127, 128, 255, 256, 32767, 32768, 65535, 65536, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32,
         (1 << 48), (1 << 53) + 1, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, 0.1, 3.0, 127.0, 255.0, 1e-45, 1e-38, 1e-30, 1e10, 3.4e38, -3.4e38,
         float("inf"), -float("inf"), float("nan"))


def whole(r: random.Random, old: int = 0, low: int = -1 << 63, high: int = 1 << 63) -> int:
    """An integer from `low` up to `high` (not included) instead of another one: near it, small, or on an edge."""
    way = r.random()
    if way < 0.3:
        new = old + r.choice((-2, -1, 1, 1, 2))
    elif way < 0.45:
        new = r.choice((-old, old * 2, old // 2, old ^ 1 << r.randrange(32)))
    elif way < 0.8:
        new = r.choice(SMALL) * r.choice((1, 1, 1, -1))
    else:
        new = r.choice(EDGES) * r.choice((1, 1, -1))
    return new if low <= new < high else low + (new - low) % (high - low)


def real(r: random.Random, old: float = 1.0) -> float:
    """A real number instead of another one, one that fits a float."""
    new = r.choice((*REALS, -old, old * 2, old * 1.0000001, old / 3))
    try:
        return float(struct.unpack("<f", struct.pack("<f", new))[0])
    except OverflowError:
        return float("inf")


def changed(values: list[Any], r: random.Random, other: Any) -> list[Any]:
    """A list with an element changed (by `other(r, element)`), added, dropped, moved or repeated."""
    found, at = list(values), r.randrange(len(values) + 1)
    way = r.random()
    if not found or way < 0.15:
        found.insert(at, other(r, values[0] if values else 0))
    elif way < 0.3:
        del found[at - 1]
    elif way < 0.4:
        r.shuffle(found)
    elif way < 0.5:
        found.insert(at, found[at - 1])
    elif way < 0.53:
        found *= r.choice((2, 8))
    else:
        found[at - 1] = other(r, found[at - 1])
    return found
