"""What the command says: lines on stdout, coloured on a terminal only; one line on stderr for a fault."""
from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from ..errors import ExitCode, NnxError

#: Work that takes longer than this many seconds says what it does.
PATIENCE = 1.0


def complain(error: NnxError | str) -> int:
    """Say a fault in one line on stderr; the exit code that goes with it."""
    with suppress(OSError, ValueError):            # nobody may be listening
        print(printable(str(error)), file=sys.stderr, flush=True)
    return int(error.exit_code if isinstance(error, NnxError) else ExitCode.FAILED)


def printable(text: str) -> str:
    """The text on one line: names in a file may hold anything, also what a terminal obeys."""
    return "".join(c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode()
                   for c in text)


def quiet_stdout() -> None:
    """Send the rest of stdout nowhere, so that its end is no fault either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def colourful() -> bool:
    """Whether stdout is a terminal that wants colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(lines: Iterable[tuple[str, str]], width: int) -> None:
    """Print lines, each a label of this width and a text."""
    rows = [(printable(label), printable(body)) for label, body in lines]
    if not colourful():
        sys.stdout.writelines(f"{label:<{width}}{body}".rstrip() + "\n" for label, body in rows)
        return
    from rich.console import Console
    from rich.text import Text
    console = Console(highlight=False, soft_wrap=True)
    for label, body in rows:
        console.print(Text.assemble((f"{label:<{width}}", "bold cyan" if body else "bold"), body))


def show_json(value: Any) -> None:
    """Print a value as JSON, two spaces to a level."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


class Progress:
    """Says on stderr, where that is a terminal, what takes longer than a second; a context manager."""

    def __init__(self) -> None:
        self._begun, self._stage, self._lock = time.perf_counter(), "", threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._say)
        self._timer.daemon = True

    def __enter__(self) -> Callable[[str], None]:
        if sys.stderr.isatty():
            self._timer.start()
        return self._next

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._timer.cancel()

    def _next(self, stage: str) -> None:
        with self._lock:
            self._stage = stage
        if sys.stderr.isatty() and time.perf_counter() - self._begun > PATIENCE:
            self._say()

    def _say(self) -> None:
        with self._lock, suppress(OSError, ValueError):
            print(f"{self._stage} ...", file=sys.stderr, flush=True)
