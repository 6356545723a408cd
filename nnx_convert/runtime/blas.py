"""How many threads matrix products use. NumPy has no call for that; threadpoolctl knows the library's own."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

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


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """While it is open, matrix products of this process use `count` threads."""
    before = [(library, library.get_num_threads()) for library in _libraries()]
    changed = [(library, old) for library, old in before if old != count]
    for library, _ in changed:
        library.set_num_threads(count)
    try:
        yield
    finally:
        for library, old in changed:
            library.set_num_threads(old)
