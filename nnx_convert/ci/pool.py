"""Entries in processes of their own: one that crashes or hangs takes no other with it."""
from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ..errors import ExitCode
from ..frozen import frozen
from .outcome import Outcome
from .settings import Entry
from .work import done, fault

#: Seconds that a process is given to end when it is asked to.
GRACE = 2.0
#: Seconds after which the processes are looked at again: systems do not wait for as long as an entry may take.
TURN = 3600.0
#: What does an entry; another one in tests of what may go wrong.
Work = Callable[[Entry], Outcome]


@frozen
class Worker:
    """A process at work on an entry."""

    entry: Entry
    process: BaseProcess
    answer: Connection
    begun: float

    @property
    def left(self) -> float:
        """The seconds that it still has."""
        return self.begun + self.entry.timeout - time.monotonic()


def ran(entries: Sequence[Entry], jobs: int, said: Callable[[str], None] = lambda stage: None, work: Work = done
        ) -> tuple[Outcome, ...]:
    """What came of the entries, in their order, `jobs` of them at a time.

    Those that are timed come after all others and one by one, so that nothing else takes their cores.
    """
    found: dict[str, Outcome] = {}
    for part, most in (([e for e in entries if e.latency is None], jobs), ([e for e in entries if e.latency], 1)):
        for outcome in in_processes(part, most, work):
            found[outcome.entry] = outcome
            said(f"{len(found)} of {len(entries)} entries done")
    return tuple(found[e.name] for e in entries)


def in_processes(entries: Sequence[Entry], jobs: int, work: Work) -> Iterator[Outcome]:
    """The outcomes as they come."""
    waiting, at_work = list(entries), list[Worker]()
    try:
        while waiting or at_work:
            while waiting and len(at_work) < jobs:
                at_work.append(started(waiting.pop(0), work))
            soonest = min(TURN, max(0.0, min(w.left for w in at_work)))
            told = connection.wait([w.answer for w in at_work], soonest)
            for w in [w for w in at_work if w.answer in told or w.left <= 0]:
                at_work.remove(w)
                yield ended(w)
    finally:
        for w in at_work:
            stopped(w)


def started(entry: Entry, work: Work) -> Worker:
    """A process of its own: of a server that has all imported where the system has such, else a new one."""
    context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([work.__module__])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answering, args=(entry, work, there), daemon=True)
    with undisturbed():
        process.start()
    there.close()                                  # its end is closed when the process ends, however that is
    return Worker(entry, process, here, time.monotonic())


@contextmanager
def undisturbed() -> Iterator[None]:
    """Processes that are started now take no Ctrl-C: it is for the one that waits, which ends them."""
    mask = getattr(signal, "pthread_sigmask", None)
    if mask:
        resource_tracker.ensure_running()          # which else is started in between, and unblocks what is blocked
    before = mask and mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if mask:
            mask(signal.SIG_SETMASK, before)


def answering(entry: Entry, work: Work, to: Connection) -> None:
    """What the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # where nothing could be blocked
    threading.Thread(target=bereft, daemon=True).start()
    to.send(work(entry))


def bereft() -> None:
    """End this process when the one that waits for it has gone, however that went."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(ExitCode.FAILED)


def ended(w: Worker) -> Outcome:
    """What a process has answered; what became of it where it has not."""
    with suppress(EOFError, OSError):
        if w.answer.poll():
            found: Outcome = w.answer.recv()
            stopped(w, GRACE)
            return found
    late = w.left <= 0
    stopped(w, 0.0 if late else GRACE)
    why = f"took longer than {w.entry.timeout:g} s" if late else f"its process ended by {how(w.process.exitcode)}"
    return failed(w.entry, why, time.monotonic() - w.begun)


def failed(entry: Entry, why: str, seconds: float = 0.0) -> Outcome:
    """An entry that gave no answer."""
    return Outcome(entry.name, Path(entry.path).name, (fault("entry", ExitCode.FAILED, why),), seconds)


def how(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def stopped(w: Worker, grace: float = 0.0) -> None:
    """End a process, if it does not by itself."""
    w.process.join(grace)
    for end in (w.process.terminate, w.process.kill):
        if w.process.exitcode is None:
            end()
            w.process.join(GRACE)
    w.answer.close()
