"""The memory that native code reads and writes: whole pages, and where arrays lie in them."""
from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ...types import Array
from ..memory import ALIGN

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


class Memory:
    """Where arenas and weights are. Tests put another one at `MEMORY`, in which each array has guards around it."""

    #: Whether arrays that are never needed at once may share bytes.
    shared = True

    def begin(self, at: int, size: int) -> int:
        """Where an array of so many bytes begins, in an arena or among weights, whose last one so far ends at `at`."""
        return -(-at // ALIGN) * ALIGN

    def take(self, size: int, arrays: Sequence[tuple[int, int]] = ()) -> Array:
        """So many zeros, from a multiple of `ALIGN` on; `arrays` are in them, each as (offset, bytes).

        Raises `MemoryError`.
        """
        return pages(size)

    def filled(self, size: int, arrays: Sequence[tuple[int, Array]]) -> Array:
        """So many bytes with these arrays at their offsets; nobody writes there from now on. Raises `MemoryError`."""
        found = self.take(size, [(at, data.nbytes) for at, data in arrays])
        for at, data in arrays:
            np.copyto(found[at:at + data.nbytes].view(data.dtype).reshape(data.shape), data)
        return found


#: The one there is.
MEMORY = Memory()
