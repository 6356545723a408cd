"""How the command ends when it is told to: by Ctrl-C, by SIGTERM, or because its terminal has gone.

Python calls its handlers in the main thread and between two of its own steps; a run or a compilation in native code
may be far from the next one. So a thread waits for signals, too: what has not ended by itself `GRACE` seconds after
one is ended by it. Either way nothing half-written stays behind.
"""
from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: The signals that end the command, and what it says then.
SAID = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "its terminal has gone"}
#: What shells add to a signal's number where it ended a process: the exit code.
SHELL = 128
#: Seconds that the command has to end by itself.
GRACE = 0.5
#: What empties a terminal's line and shows its cursor again.
CURSOR = b"\r\x1b[K\x1b[?25h"


class Stopped(BaseException):
    """A signal that ends the command. It is nothing that a library would take for a fault of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """End the process where a signal says so: one line on stderr, and 128 and the signal's number as exit code.

    What was to be ignored from the start (a shell's background, `nohup`) is ignored.
    """
    texts = {int(n): text for name, text in SAID.items() if (n := getattr(signal, name, None)) is not None
             and signal.getsignal(n) is not signal.SIG_IGN}

    def stop(number: int, frame: FrameType | None) -> None:
        _handled(texts, signal.SIG_IGN)            # once is enough
        raise Stopped(number)
    over, told = threading.Event(), threading.Event()
    try:
        for n in texts:
            signal.signal(n, stop)
        _watched(texts, over, told)
        yield
    except Stopped as stopped:
        told.set()
        say(texts[stopped.number])
        sys.exit(SHELL + stopped.number)           # and if threads keep it from that, the watch ends it
    except SystemExit:
        over.set()
        _handled(texts, signal.SIG_DFL)            # nothing is left to be tidied up
        raise


def _handled(numbers: Iterable[int], how: signal.Handlers) -> None:
    for n in numbers:
        signal.signal(n, how)


def _watched(texts: dict[int, str], over: threading.Event, told: threading.Event) -> None:
    """Start the thread that ends what does not end by itself; systems whose signals come by no pipe have none."""
    if sys.platform == "win32":
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=_unwatched)

    def watch() -> None:
        while (number := os.read(reads, 1)) and number[0] not in texts:
            pass
        if number and not over.wait(GRACE):
            _ended(SHELL + number[0], "" if told.is_set() else texts[number[0]])
    with suppress(RuntimeError):                   # without a thread it may take as long as native code does
        threading.Thread(target=watch, name="nnx-signals", daemon=True).start()


def _unwatched() -> None:
    """A child's signals are not its parent's."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


def _ended(code: int, text: str) -> None:
    """End the process now, its children and half-written files before it."""
    # Not imported: the main thread, which does not move on, may be importing them.
    if files := sys.modules.get(f"{__package__.partition('.')[0]}.artifact.files"):
        files.abandon()
    if processes := sys.modules.get("multiprocessing.process"):
        for child in processes.active_children():
            child.kill()
    if text:
        say(text)
    os._exit(code)


def say(text: str) -> None:
    """A line on stderr, past what another thread may hold of it; nobody may be listening."""
    with suppress(OSError):
        os.write(2, (CURSOR if os.isatty(2) else b"") + text.encode() + b"\n")
