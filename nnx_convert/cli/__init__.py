"""The command `nnx-convert`: `entry` begins and ends it, `commands` has the options, each command's work a module."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process: see `entry.main`, `streams`, and `stopping` for signals."""
    from .stopping import stoppable
    from .streams import opened
    opened()
    with stoppable():
        from .entry import main as run
        run(args)
