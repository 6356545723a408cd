"""Processes that judge models, each ended and begun anew where a model takes it down or holds it up."""
from __future__ import annotations

import multiprocessing
import os
import resource
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from .judging import Finding, judge
from .models import model

#: Seconds of processor time that a model may take, and those that may pass while a machine has other things to do.
PATIENCE, LATEST = 60, 1800.0
Operators = tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """Which model, and by whom it is run; `native`: natively as well."""

    form: str
    seed: int
    with_peer: bool = True
    native: bool = True


@dataclass(frozen=True)
class Judged:
    """A model's operators and what became of it."""

    task: Task
    operators: Operators
    finding: Finding


def judged(task: Task, tell: Callable[[str | Operators], None] = lambda _: None) -> Judged:
    """Judge a model, telling its operators, then turns; whatever is raised meanwhile is a fault of this package's."""
    operators: Operators = ()
    try:
        made = model(task.form, task.seed)
        operators = made.operators
        tell(operators)
        return Judged(task, operators, judge(made, task.with_peer, task.native, tell))
    except Exception as error:                   # the point of it is to find those
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}"[:300]
        return Judged(task, operators, Finding("fault", "raised", detail=f"{said} ({where.name}, {where.lineno})"))


def work(connection: Connection) -> None:
    """What a process does: judge what it is sent. What engines print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while True:
        try:
            task = connection.recv()
            most = int(time.process_time()) + PATIENCE
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            connection.send(judged(task, connection.send))
        except (EOFError, KeyboardInterrupt):
            return


@dataclass
class Worker:
    """A process with what it is at: a model, since when, its operators, and whose turn it is."""

    task: Task | None = None
    since: float = 0.0
    operators: Operators = ()
    turn: str = ""
    process: Any = field(init=False)
    connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, task: Task) -> None:
        """Send it a model."""
        self.task, self.since, self.operators, self.turn = task, time.monotonic(), (), ""
        self.connection.send(task)

    def ended(self) -> Judged | None:
        """What it found; a fault where it is gone or has taken too long; None while it is at it."""
        task = self.task
        if task is None:
            return None
        while self.connection.poll():
            try:
                found: Judged | Operators | str = self.connection.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                return self._gone(task, "died", f"ended with {self.process.exitcode}")
            if isinstance(found, Judged):
                self.task = None
                return found
            if isinstance(found, str):
                self.turn = found
            else:
                self.operators = found
        if time.monotonic() - self.since > LATEST:
            self.process.kill()
            return self._gone(task, "late", f"took more than {LATEST:.0f} s")
        return None

    def _gone(self, task: Task, how: str, said: str) -> Judged:
        """What is said of a model that took its process with it; where that was the peer's turn, no fault of ours."""
        return Judged(task, self.operators, gone(self.turn, how, said))

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def gone(turn: str, how: str, said: str) -> Finding:
    """What became of a model whose process is gone, at the turn of one of the runtimes."""
    return Finding("peer", detail=said) if turn == "peer" else Finding("fault", how, detail=said)


def judging(tasks: Sequence[Task], workers: int) -> Iterator[Judged]:
    """Each model's finding, as they come."""
    todo = iter(tasks)
    pool = [Worker() for _ in range(min(workers, len(tasks)))]
    try:
        for w in pool:
            _next(w, todo)
        while any(w.task for w in pool):
            wait([w.connection for w in pool if w.task], timeout=5)
            for i, worker in enumerate(pool):
                if found := worker.ended():
                    yield found
                    if worker.task:              # it is gone
                        worker.close()
                        pool[i] = Worker()
                    _next(pool[i], todo)
    finally:
        for w in pool:
            w.close()


def _next(worker: Worker, todo: Iterator[Task]) -> None:
    if task := next(todo, None):
        worker.begin(task)

