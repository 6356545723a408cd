"""Work during which no cycles are searched for."""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sample_files import two_entries
from sample_models import dense

import nnx_convert
from nnx_convert.garbage import unsearched


@pytest.fixture(autouse=True)
def searching() -> Iterator[None]:
    """As it was, whatever a test does."""
    was = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was else gc.disable)()


def test_nothing_is_searched_within() -> None:
    with unsearched():
        with unsearched():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_searched_again_where_the_work_fails() -> None:
    with pytest.raises(KeyError), unsearched():
        raise KeyError
    assert gc.isenabled()


def test_who_does_not_want_it_does_not_get_it() -> None:
    gc.disable()
    with unsearched():
        pass
    assert not gc.isenabled()


@contextmanager
def work_of_another_thread() -> Iterator[None]:
    """Within it another thread is at such work."""
    begun, go = threading.Event(), threading.Event()

    def work() -> None:
        with unsearched():
            begun.set()
            go.wait(60)
    other = threading.Thread(target=work)
    other.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        go.set()
        other.join()


def test_the_last_of_several_threads_ends_it() -> None:
    with work_of_another_thread():
        with unsearched():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such system call here")
def test_a_child_searches_for_itself() -> None:
    with work_of_another_thread():
        child = os.fork()
        if not child:
            with unsearched():
                right = not gc.isenabled()
            os._exit(0 if right and gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("source", [dense(), two_entries()], ids=["model", "file"])
def test_compiling_leaves_it_as_it_was(source: nnx_convert.Model | bytes) -> None:
    model = nnx_convert.compile(source)
    assert gc.isenabled()
    model.run([np.zeros(s.shape, s.dtype) for s in model.inputs])
    assert gc.isenabled()
