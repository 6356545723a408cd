"""Threads, locks and forks. A child has the one thread that forked: a lock that another thread held would stay locked
in it."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakSet

Found = TypeVar("Found")

#: What Python says where the system starts no more threads.
NO_THREAD = "start new thread"


def beside(work: Callable[[], Found]) -> Callable[[], Found]:
    """Work in a thread of its own; what is returned waits for it, and gives what it gave or raises what it raised.

    Where the system starts no thread, the work is done by who waits. The process does not end before it is done.
    """
    found, raised = list[Found](), list[BaseException]()

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:          # who waits has it
            raised.append(error)
    thread, started = threading.Thread(target=do), True
    try:
        thread.start()
    except RuntimeError as error:
        if NO_THREAD not in str(error):
            raise
        started = False

    def wait() -> Found:
        if started:
            thread.join()
        elif not found and not raised:
            do()
        if raised:
            raise raised[0]
        return found[0]
    return wait


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
