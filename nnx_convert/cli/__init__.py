"""The command `nnx-convert`: options in `commands`, the work of each in `converting` and `running`."""
from __future__ import annotations

from .commands import main

__all__ = ["main"]
