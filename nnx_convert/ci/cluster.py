"""Entries on a Dask cluster, whose workers see the files of the entries at the same paths: extra `dask`."""
from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from ..errors import RunError, UsageError
from .outcome import Outcome
from .pool import Work, failed
from .settings import Entry
from .work import done

#: Seconds that a scheduler is given to answer.
PATIENCE = 10.0
#: An entry at a time in a process: engines write to stderr and are kept from it, and times are times.
_ALONE = threading.Lock()


def ran(entries: Sequence[Entry], address: str, said: Callable[[str], None] = lambda stage: None, work: Work = done
        ) -> tuple[Outcome, ...]:
    """What came of the entries, in their order; those that are timed come after all others, and one by one.

    An entry that its worker does not survive, or that takes longer than it may, fails by itself: what was lost with a
    worker is run again alone. Time is told from here, from when the entry before came back, as a task cannot be ended
    from outside. Raises `UsageError`, `RunError` where there is no cluster.
    """
    found: dict[str, Outcome] = {}
    with connected(address) as client, client.as_current():
        parts = deque([[e for e in entries if e.latency is None], *([e] for e in entries if e.latency)])
        while parts:
            part = parts.popleft()
            tasks = {client.submit(alone, work, e, key=f"nnx-{e.name}-{time.time_ns()}", pure=False): e for e in part}
            for entry, outcome in answered(tasks, certain=len(part) == 1):
                if outcome is None:
                    parts.append([entry])
                    continue
                found[entry.name] = outcome
                said(f"{len(found)} of {len(entries)} entries done")
    return tuple(found[e.name] for e in entries)


def answered(tasks: dict[Any, Entry], certain: bool) -> Iterator[tuple[Entry, Outcome | None]]:
    """The outcomes as they come; those that do not come in time are given up.

    Of an entry whose worker ended there is none, as another may have ended it, but where that is `certain`.
    """
    import distributed
    first: Any = distributed.wait
    while tasks:
        with suppress(TimeoutError):
            first(list(tasks), timeout=max(e.timeout for e in tasks.values()), return_when="FIRST_COMPLETED")
        over = [t for t in tasks if t.done()]
        for task in over:
            entry = tasks.pop(task)
            lost = isinstance(task.exception(), distributed.KilledWorker) if task.status == "error" else False
            yield entry, answer(task, entry) if certain or not lost else None
        if not over:
            for task, entry in tasks.items():
                task.cancel()
                yield entry, failed(entry, f"took longer than {entry.timeout:g} s", entry.timeout)
            return


def connected(address: str) -> Any:
    """A client of the cluster."""
    if find_spec("distributed") is None:
        raise UsageError("--dask takes dask.distributed, which is not installed",
                         hint="pip install 'nnx-convert[dask]'")
    import distributed
    logging.getLogger("distributed").setLevel(logging.CRITICAL)        # what matters is told as an outcome
    try:
        client: Any = distributed.Client
        return client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"no Dask scheduler answers: {' '.join(str(error).split())[:200]}", f"--dask {address}",
                       "give the address that `dask scheduler` prints, as tcp://host:8786") from error


def alone(work: Work, entry: Entry) -> Outcome:
    """What a worker does."""
    with _ALONE:
        return work(entry)


def answer(task: Any, entry: Entry) -> Outcome:
    """The outcome of a task that has ended, or why there is none."""
    try:
        found: Outcome = task.result()
        return found
    except Exception as error:                     # KilledWorker, CancelledError, and whatever a worker raises
        return failed(entry, f"its worker failed: {type(error).__name__}: {error}")
