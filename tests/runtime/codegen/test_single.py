"""What there is once in a process, asked for by many threads at the same time."""
from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nnx_convert.runtime.codegen import pool
from nnx_convert.runtime.codegen.objects import Library

THREADS = 8


def test_the_code_that_all_runs_need_is_made_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Library] = []

    def slow(*args: Any) -> Library:
        time.sleep(0.05)                           # the others are here by then
        made.append(Library(*args))
        return made[-1]
    monkeypatch.setattr(pool, "Library", slow)
    monkeypatch.setattr(pool, "_single", [])
    pool._library.cache_clear()
    go = threading.Barrier(THREADS)

    def ask() -> Any:
        go.wait()
        return pool._alone()
    with ThreadPoolExecutor(THREADS) as threads:
        found = [f.result() for f in [threads.submit(ask) for _ in range(THREADS)]]
    assert len(made) == 1 and len(set(map(id, found))) == 1
