"""The limits: one table, three ways to set them, and what is said where one is exceeded."""
from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from nnx_convert.errors import ExitCode, LimitError, Oversized, UsageError
from nnx_convert.resources import Limits, limited, limits, memory, spelt, tick, timed, told, within


@pytest.mark.parametrize(("text", "found"), [
    ("", {}), ("depth=3", {"depth": 3}), ("file_bytes=2K,total_bytes=3M", {"file_bytes": 2048, "total_bytes": 3 << 20}),
    ("tensor_bytes=1GiB", {"tensor_bytes": 1 << 30}), ("file_bytes=1TB, seconds=2.5", {"file_bytes": 1 << 40,
                                                                                      "seconds": 2.5})])
def test_what_is_spelt(text: str, found: dict[str, float]) -> None:
    assert spelt(text) == found
    Limits().with_(**found)


@pytest.mark.parametrize("text", ["depth", "depth=", "depth=-1", "depth=1e3", "depth=0x10", "=3", "depth=3=4", "a\x1b=",
                                  "depth=" + "9" * 40, "depth=1_0", "depth=\u0663"])
def test_what_is_not(text: str) -> None:
    with pytest.raises(UsageError) as error:
        Limits().with_(**spelt(text))
    assert len(error.value.said) < 200


@pytest.mark.parametrize("values", [
    {"dept": 3}, {"depth": 0}, {"depth": -1}, {"depth": 17}, {"depth": True}, {"depth": 2.5}, {"depth": "3"},
    {"seconds": 0}, {"seconds": float("nan")}, {"tensor_bytes": 1 << 63}, {"rounds": None}], ids=str)
def test_values_that_are_none(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError), limited(**values):
        pass


def test_limits_hold_within() -> None:
    before = limits()
    with limited(depth=3), limited(rounds=5):
        assert (limits().depth, limits().rounds, limits().seconds) == (3, 5, before.seconds)
        kept = limits()
    assert limits() == before
    with limited(kept):
        assert limits() == kept


def test_the_variable_sets_those_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNX_LIMITS", "rounds=7,total_bytes=1M")
    assert (limits().rounds, limits().total, limits().tensor) == (7, 1 << 20, memory())
    with limited(rounds=8):
        assert (limits().rounds, limits().total) == (8, 1 << 20)
    monkeypatch.setenv("NNX_LIMITS", "round=7")
    with pytest.raises(UsageError, match=r"\$NNX_LIMITS: there is no limit 'round'.*did you mean rounds"):
        limits()


@pytest.mark.parametrize("limit", fields(Limits), ids=lambda f: f.name)
def test_a_default_can_be_asked_for(limit: Any) -> None:
    if limit.default is not None:
        assert getattr(Limits().with_(**spelt(f"{limit.name}={told(limit.default)}")), limit.name) == limit.default


def test_a_file_that_has_too_much_of_something() -> None:
    within("subgraphs", limits().subgraphs, "its graphs are")
    with limited(subgraphs=2), pytest.raises(Oversized) as error:
        within("subgraphs", 3000, "its graphs are", "here")
    assert str(error.value) == ("NNX104 here: its graphs are 3,000, 2 at most (--limit subgraphs=VALUE sets another "
                                "limit)")
    assert error.value.exit_code is ExitCode.UNREADABLE


def test_time_that_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    tick()
    with limited(seconds=2), timed("the run"):
        now = 1.5
        with timed("a part of it"):
            tick()
            now = 2.5
            with pytest.raises(LimitError) as error:
                tick("op 3")
    assert str(error.value) == ("NNX403 op 3: the run takes longer than 2 seconds (--limit seconds=VALUE sets another "
                                "limit)")
    tick()


def _text(text: str) -> Callable[..., str]:
    return lambda self, **_: text


@pytest.mark.parametrize(("group", "found"), [("1048576\n", 1 << 20), ("max\n", None), ("9223372036854771712\n", None)])
def test_memory_is_that_of_the_group(monkeypatch: pytest.MonkeyPatch, group: str, found: int | None) -> None:
    whole = memory.__wrapped__()
    assert 1 << 28 < whole < 1 << 46
    monkeypatch.setattr("pathlib.Path.read_text", _text(group))
    assert memory.__wrapped__() == (found or whole)


def test_no_system_says_what_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:

    def silent(*_: Any, **__: Any) -> int:
        raise ValueError
    monkeypatch.setattr("os.sysconf", silent)
    monkeypatch.setattr("pathlib.Path.read_text", silent)
    monkeypatch.setattr("resource.getrlimit", lambda which: (-1, -1))
    assert memory.__wrapped__() == sys.maxsize
