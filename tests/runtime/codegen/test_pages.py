"""Memory in whole pages: zeros, aligned, private, given back."""
from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from nnx_convert.runtime.codegen.pages import HUGE, pages

STATM = Path("/proc/self/statm")


@pytest.mark.parametrize("size", [0, 1, 64, mmap.PAGESIZE + 1, HUGE])
def test_zeros_begin_a_page(size: int) -> None:
    found = pages(size)
    assert found.size == size and not found.any() and found.ctypes.data % mmap.PAGESIZE == 0
    found[:] = 7
    part = found[size // 2:]
    del found
    assert (part == 7).all()


@pytest.mark.parametrize("told", [STATM] if STATM.exists() else [])
def test_what_nobody_holds_is_given_back(told: Path) -> None:
    def resident() -> int:
        return int(told.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    before = resident()
    for _ in range(20):
        pages(HUGE)[::mmap.PAGESIZE] = 1
    assert resident() - before < 2 * HUGE


def test_more_than_there_is_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        pages(1 << 62)
