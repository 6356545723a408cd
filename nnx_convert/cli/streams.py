"""The three streams of the command: there at all, and with faults of their own."""
from __future__ import annotations

import io
import os
import sys
from typing import Any

NAMES = ("stdin", "stdout", "stderr")


def opened() -> None:
    """Put a null device where there is no stdin, stdout or stderr.

    The next file that is opened would get its number, and with that all that anybody prints.
    """
    for number, name in enumerate(NAMES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)         # gets the lowest number that is free
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def speaking() -> None:
    """Have what an encoding lacks spelt out, and a stdout that takes no more be a `UsageError`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out is sys.__stdout__:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(Out(1, "wb", closefd=False)), out.encoding, out.errors,
                                      line_buffering=out.line_buffering)


class Out(io.FileIO):
    """What stdout writes to. A reader that has gone is a `BrokenPipeError` as ever."""

    failed = False

    def write(self, data: Any, /) -> int:
        """Write bytes; raises `UsageError` where that is not possible, and from then on writes nothing."""
        if self.failed:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            from ..reading import reason
            from ..errors import UsageError
            self.failed = True
            raise UsageError(f"cannot be written: {reason(error)}", "stdout") from error
