"""Little memory for a process."""
from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nnx_convert.resources import memory


def addresses(more: int) -> int:
    """The bytes of addresses that this process has, and so many more."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more


@contextmanager
def scarce(room: int) -> Iterator[None]:
    """The process may hold so many bytes beside what it holds already."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    memory.cache_clear()                           # what is found out before, or within, holds nowhere else
    resource.setrlimit(resource.RLIMIT_AS, (addresses(room), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        memory.cache_clear()
