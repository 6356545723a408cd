"""Memory in whole pages."""
from __future__ import annotations

import mmap
import sys
from contextlib import suppress

import numpy as np

from ...types import Array

#: Bytes from which the system is asked for huge pages, as NumPy asks.
HUGE = 4 << 20


def pages(size: int) -> Array:
    """So many zeros, from the beginning of a page on; the system has them back when nobody holds a part of them.

    The C library's allocator would keep what threads free, each thread's apart. Raises `MemoryError`.
    """
    private = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    try:
        memory = mmap.mmap(-1, max(size, 1), **private)
    except OSError as error:
        raise MemoryError(size) from error
    if size >= HUGE and sys.platform == "linux":
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8, size)
