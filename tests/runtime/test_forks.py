"""A child that is forked amid everything runs what its parent has compiled, and compiles."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from nnx_convert.runtime.forks import NO_THREAD, beside

HELD = """
import os, sys, threading
sys.path[:0] = {paths}
from pathlib import Path
import numpy as np
import nnx_convert
from nnx_convert.runtime import blas
from nnx_convert.runtime.codegen import objects
path, x = Path({path!r}), np.full((1, 8, 8, 1), 0.5, np.float32)
model = nnx_convert.compile(path, backend="{backend}", threads=2)
want = model.run([x])[0]
held, go = threading.Event(), threading.Event()
def hold():
    with model._runner._lock, model._state._lock, blas._ASKED._lock, {more}:
        held.set()
        go.wait(0.2)
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    for made in (model, nnx_convert.compile(path, backend="{backend}", threads=2)):
        made._runner._last = None, None              # it asks for its program again
        if not (made.state == {{}} and (made.run([x])[0] == want).all()):
            os._exit(1)
    os._exit(0)
go.set()
assert os.waitpid(child, 0)[1] == 0
assert (model.run([x])[0] == want).all()
"""


@pytest.mark.parametrize(("backend", "more"), [("numpy", "threading.Lock()"), ("native", "objects._compiling")])
def test_a_child_does_not_wait_for_threads_that_it_has_not(backend: str, more: str) -> None:
    model = os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits_cnn.tflite")
    text = HELD.format(paths=[p for p in sys.path if p], path=model, backend=backend, more=more)
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


@pytest.mark.parametrize("threads", [True, False])
def test_work_beside_gives_what_it_gives_to_who_waits(threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: threading.Thread) -> None:
        raise RuntimeError(f"can't {NO_THREAD}")
    if not threads:
        monkeypatch.setattr(threading.Thread, "start", none)
    by = list[threading.Thread]()

    def work() -> int:
        by.append(threading.current_thread())
        return 3
    assert beside(work)() == 3
    assert (by[0] is threading.current_thread()) != threads
    wait = beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        wait()
