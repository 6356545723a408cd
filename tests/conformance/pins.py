"""How many cases of each family pass: pinned, so that the numbers can only go up."""
from __future__ import annotations

import json
from pathlib import Path

from golden import FAMILIES, cases

PINNED = Path(__file__).with_name("pinned.json")


def total(family: str) -> int:
    """The cases of a family that count."""
    return len(cases(family))


def counted() -> list[str]:
    """The families that have cases that count."""
    return [f for f in FAMILIES if total(f)]


def pinned() -> dict[str, int]:
    """The passes each family is pinned at."""
    found: dict[str, int] = json.loads(PINNED.read_text())
    return found


def pin(passes: dict[str, int]) -> None:
    """Write the pins down."""
    lines = (f'  "{family}": {count}' for family, count in sorted(passes.items()))
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
