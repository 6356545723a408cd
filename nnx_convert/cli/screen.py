"""What the command says: lines on stdout, coloured on a terminal only; one line on stderr for a fault."""
from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import ExitCode, NnxError, printable

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

#: What the command is called.
COMMAND = "nnx-convert"
#: Characters of a line at most.
LONGEST = 4000
#: Work that takes longer than this many seconds says what it does.
PATIENCE = 1.0


class Volume(Enum):
    """How much is said."""

    QUIET = "faults and results"
    NORMAL = "a screen"
    VERBOSE = "all there is"


#: What --quiet and --verbose set for the command that runs.
volume: ContextVar[Volume] = ContextVar("volume", default=Volume.NORMAL)


def notice(text: str) -> None:
    """Say in one line on stderr what a user should know, unless they asked for quiet."""
    if volume.get() is not Volume.QUIET:
        complain(text)


def complain(error: NnxError | str) -> int:
    """Say a fault in one line on stderr; the exit code that goes with it."""
    with suppress(OSError, ValueError):            # nobody may be listening
        print(lined(str(error)), file=sys.stderr, flush=True)
    return int(error.exit_code if isinstance(error, NnxError) else ExitCode.FAILED)


def lined(text: str) -> str:
    """The text on a line that a screen has room for: of one that is longer, its begin and its end."""
    found = printable(text)
    return found if len(found) <= LONGEST else f"{found[:LONGEST // 2]} ... {found[-LONGEST // 2:]}"


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
    rows = [(lined(label), lined(body)) for label, body in lines]
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
    """Says on stderr what takes longer than a second, where that is a terminal; a context manager.

    With --verbose each stage is a line, with the seconds it took, on whatever stderr is; with --quiet nothing is said.
    """

    def __init__(self) -> None:
        self._begun = self._stage_begun = time.perf_counter()
        self._stage, self._lock = "", threading.Lock()
        self._status: Status | None = None
        self._lively = sys.stderr.isatty() and volume.get() is Volume.NORMAL
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Callable[[str], None]:
        if self._lively:
            self._timer.start()
        return self._next

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            self._lively = False
            if self._status is not None:
                self._status.stop()
        self._ended_stage()

    def _next(self, stage: str) -> None:
        self._ended_stage()
        with self._lock:
            self._stage, self._stage_begun = stage, time.perf_counter()
            if self._status is not None:
                self._status.update(self._text())

    def _ended_stage(self) -> None:
        if self._stage and volume.get() is Volume.VERBOSE:
            complain(f"{self._stage}: {time.perf_counter() - self._stage_begun:.2f} s")

    def _text(self) -> Text:
        from rich.text import Text
        return Text(f"{printable(self._stage)} ...")

    def _show(self) -> None:
        """A second has gone: from now on the stage is shown, until all is done."""
        from rich.console import Console
        from rich.status import Status
        with self._lock, suppress(OSError, ValueError):
            if self._lively:
                self._status = Status(self._text(), console=Console(stderr=True))
                self._status.start()
