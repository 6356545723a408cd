"""Work that makes very many objects which all stay, during which Python does not search them for cycles.

A search walks over all that a process holds. To import the modules that a compilation needs and to make its graphs sets
off dozens of them, a tenth of its time, which find next to nothing.
"""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Works:
    """How many there are now, in all threads, and whether Python searched before the first of them."""

    def __init__(self) -> None:
        self._lock, self._count, self._searched = threading.Lock(), 0, False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    def begin(self) -> None:
        """One more."""
        with self._lock:
            if not self._count:
                self._searched = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        """One less."""
        with self._lock:
            self._count = max(self._count - 1, 0)
            if not self._count and self._searched:
                gc.enable()

    def _in_child(self) -> None:
        """Only the thread that forked is there: the lock is open, and nobody else's work goes on."""
        self._lock = threading.Lock()
        if self._count:
            self._count = 1
            self.end()


_works = _Works()


@contextmanager
def unsearched() -> Iterator[None]:
    """Within it no cycles are searched for, in no thread; afterwards, if they were before."""
    _works.begin()
    try:
        yield
    finally:
        _works.end()
