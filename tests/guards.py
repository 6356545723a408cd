"""Memory for native code in which pages that nobody may touch are around each array: a stray access ends the process.

Each array has pages of its own. They end with the slack that vectors may read behind it, or begin with it.
"""
from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnx_convert.runtime.codegen.pages import Memory
from nnx_convert.runtime.codegen.places import SLACK
from nnx_convert.runtime.memory import ALIGN

Array = np.ndarray[Any, Any]
#: mmap's protections.
NONE, READ = 0, 1
PAGE = mmap.PAGESIZE
_mprotect = ctypes.CDLL(None, use_errno=True).mprotect


def protect(memory: Array, access: int) -> None:
    """Let nobody touch whole pages, or nobody write to them."""
    if memory.size and _mprotect(ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.size), access):
        raise OSError(ctypes.get_errno(), "memory cannot be protected")


def up(n: int, to: int) -> int:
    """The next multiple."""
    return -(-n // to) * to


def reach(size: int) -> int:
    """The bytes that may be read of an array: up to where the next one might begin, and the slack."""
    return up(max(size, 1), ALIGN) + SLACK


@dataclass(frozen=True)
class Guarded(Memory):
    """Guards `behind` each array, as near as its slack lets them be, or before it; on the other side there are some,
    too, farther away."""

    behind: bool
    shared = False

    def begin(self, at: int, size: int) -> int:
        """In pages of its own, one page or more behind the last array."""
        return (up(at + SLACK, PAGE) + PAGE if at else 0) + self._late(reach(size))

    def take(self, size: int, arrays: Sequence[tuple[int, int]] = ()) -> Array:
        """Zeros between and around which nobody may touch anything; only around them where no array is known."""
        return self._taken(size, arrays)[0]

    def filled(self, size: int, arrays: Sequence[tuple[int, Array]]) -> Array:
        """The arrays, which nobody can write to, and guards."""
        found, open_ = self._taken(size, [(at, data.nbytes) for at, data in arrays])
        for at, data in arrays:
            np.copyto(found[at:at + data.nbytes].view(data.dtype).reshape(data.shape), data)
        for part in open_:
            protect(part, READ)
        return found

    def _taken(self, size: int, arrays: Sequence[tuple[int, int]]) -> tuple[Array, list[Array]]:
        """The bytes, and the pages of them that are not shut."""
        extents = [(start, start + reach(stop - start)) for start, stop in joined(arrays)]
        lead = PAGE if extents else PAGE + self._late(up(size, ALIGN))
        inside = [(lead + a, lead + b) for a, b in extents or [(0, up(size, ALIGN))]]
        memory = np.frombuffer(mmap.mmap(-1, up(max(lead + size, inside[-1][1]), PAGE) + PAGE), np.uint8)
        found, free = list[Array](), 0
        for start, stop in inside:
            first, last = start // PAGE * PAGE, up(stop, PAGE)
            protect(memory[free:first], NONE)
            found.append(memory[first:last])
            free = last
        protect(memory[free:], NONE)
        return memory[lead:lead + size], found

    def _late(self, size: int) -> int:
        """How far behind a page's first byte something begins that is to end with a page."""
        return -size % PAGE if self.behind else 0


def joined(arrays: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches (offset, bytes) as (start, stop), those that follow each other without a gap as one."""
    found = list[tuple[int, int]]()
    for start, size in sorted(arrays):
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], start + size
        else:
            found.append((start, start + size))
    return found
