"""Threads of matrix products: how many are worth it, set while a run lasts and put back."""
from __future__ import annotations

import os

import pytest

from nnx_convert.runtime.blas import HEAVY, _libraries, blas_threads, threads_for

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("asked", "largest", "want"), [
    (0, 0, 1), (0, HEAVY - 1, 1), (0, HEAVY, CORES), (1, HEAVY, 1), (3, 0, 3)])
def test_threads_are_woken_for_heavy_products_only(asked: int, largest: int, want: int) -> None:
    assert threads_for(asked, largest) == want


def test_the_librarys_own_number_comes_back() -> None:
    def now() -> list[int]:
        return [library.get_num_threads() for library in _libraries()]
    before = now()
    assert before
    with blas_threads(1):
        assert now() == [1] * len(before)
        with blas_threads(2):
            assert now() == [2] * len(before)
        assert now() == [1] * len(before)
    with pytest.raises(KeyError), blas_threads(1):
        raise KeyError
    assert now() == before


def test_the_librarys_own_number_comes_back_whatever_run_ends_first() -> None:
    def now() -> list[int]:
        return [library.get_num_threads() for library in _libraries()]
    before = now()
    for first_ends in (True, False):
        first, second = blas_threads(1), blas_threads(3)
        first.__enter__()
        second.__enter__()
        assert now() == [3] * len(before)
        for run in (first, second) if first_ends else (second, first):
            run.__exit__(None, None, None)
        assert now() == before
