"""How many threads matrix products use. NumPy has no call for that; threadpoolctl knows the library's own."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from .forks import Locked

#: Multiplications from which a single product is worth waking other threads for: about two milliseconds of one
#: core. Waking them costs tens of microseconds where a core is idle and far more where none is.
HEAVY = 1 << 27


@cache
def _libraries() -> tuple[Any, ...]:
    from threadpoolctl import ThreadpoolController
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def threads_for(asked: int, largest: int) -> int:
    """The threads for a program: those asked for, else all cores if its largest product is heavy, else one."""
    return asked or (cores() if largest >= HEAVY else 1)


def cores() -> int:
    """The cores this process may use; those of the machine where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Asked(Locked):
    """What the runs under way ask for, the latest last. The library has one number for all threads of the process.

    The number before the first of them comes back after the last, in whatever order they end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[object, int] = {}
        self._before: list[int] = []

    def open(self, mark: object, count: int) -> None:
        """A run begins."""
        with self._lock:
            if not self._marks:
                self._before = [library.get_num_threads() for library in _libraries()]
            self._marks[mark] = count
            self._set([count] * len(self._before))

    def close(self, mark: object) -> None:
        """A run ends."""
        with self._lock:
            del self._marks[mark]
            last = next(reversed(self._marks.values()), None)
            self._set(self._before if last is None else [last] * len(self._before))

    def _set(self, counts: Sequence[int]) -> None:
        for library, count in zip(_libraries(), counts, strict=True):
            if library.get_num_threads() != count:
                library.set_num_threads(count)


_ASKED = Asked()


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """While it is open, matrix products of this process use `count` threads, or what a run begun since asks for."""
    mark = object()
    _ASKED.open(mark, count)
    try:
        yield
    finally:
        _ASKED.close(mark)
