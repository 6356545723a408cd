"""Entries in processes of their own: what one does is its own affair."""
from __future__ import annotations

import os
import time

from ci_work import by_name

from nnx_convert.ci.outcome import Outcome, code
from nnx_convert.ci.pool import ran
from nnx_convert.ci.settings import Entry, Latency
from nnx_convert.errors import ExitCode


def entries(*names: str, timeout: float = 30) -> list[Entry]:
    return [Entry(n, "m.tflite", timeout=timeout) for n in names]


def why(outcome: Outcome) -> str:
    step, = outcome.steps
    return step.why


def test_a_crash_takes_nobody_with_it() -> None:
    found = ran(entries("crash", "a", "exit", "b"), 2, work=by_name)
    assert [o.entry for o in found] == ["crash", "a", "exit", "b"]
    assert [o.good for o in found] == [False, True, False, True]
    assert (why(found[0]), why(found[2])) == ("its process ended by signal SIGSEGV", "its process ended by exit code 7")
    assert code(found) == ExitCode.FAILED
    pids = {int(o.steps[0].found) for o in found if o.good}
    assert len(pids) == 2 and os.getpid() not in pids


def test_what_hangs_is_ended_in_time() -> None:
    begun = time.monotonic()
    found = ran([*entries("hang", timeout=0.5), *entries("a")], 2, work=by_name)
    assert time.monotonic() - begun < 30
    assert why(found[0]) == "took longer than 0.5 s" and found[1].good


def test_an_entry_may_take_longer_than_a_system_waits_at_once() -> None:
    found = ran(entries("a", timeout=1e300), 1, work=by_name)
    assert found[0].good


def test_what_is_timed_comes_last_and_alone() -> None:
    said: list[str] = []
    timed = [Entry(n, "m.tflite", latency=Latency(1.0)) for n in ("t", "u")]
    found = ran([timed[0], *entries("a"), timed[1]], 4, said.append, by_name)
    assert [o.entry for o in found] == ["t", "a", "u"] and all(o.good for o in found)
    assert said[-1] == "3 of 3 entries done"
