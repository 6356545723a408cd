"""The command `nnx-convert`: options in `commands`, the work of each in `converting` and `running`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process: see `commands.main`."""
    from .commands import main as run
    run(args)
