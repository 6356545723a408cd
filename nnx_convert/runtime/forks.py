"""Locks and forks. A child has the one thread that forked: a lock that another thread held would stay locked in it."""
from __future__ import annotations

import os
import threading
from weakref import WeakSet

#: What Python says where the system starts no more threads.
NO_THREAD = "start new thread"


class Locked:
    """Something with a lock, `_lock`, that its thread may take again. In a child it is another one, and open."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)


_all: WeakSet[Locked] = WeakSet()


def _renewed() -> None:
    for each in _all:
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renewed)
