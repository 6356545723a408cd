"""Answers that are remembered from compilation to compilation."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from natively import host

from nnx_convert.runtime.codegen import requantise
from nnx_convert.runtime.codegen.plans import recalled, recalling
from nnx_convert.runtime.codegen.requantise import Range, Steps, planned

#: The multipliers of a rounding that is not fast.
NONE = np.empty(0, np.float32)


def answers(program: list[str], questions: list[bytes]) -> tuple[list[bytes], int]:
    """The answers in a compilation of a program, and how many had to be found."""
    found: list[bytes] = []

    def find(question: bytes) -> bytes:
        found.append(question)
        return question + b"!"
    with recalling(program):
        return [recalled([q], lambda q=q: find(q)) for q in questions], len(found)  # type: ignore[misc]


def test_an_answer_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNX_CACHE", str(tmp_path))
    assert answers(["p"], [b"a", b"b", b"a"]) == ([b"a!", b"b!", b"a!"], 2)
    assert answers(["p"], [b"b", b"c"]) == ([b"b!", b"c!"], 1)
    assert answers(["p"], [b"a", b"b", b"c"]) == ([b"a!", b"b!", b"c!"], 0)
    assert answers(["q"], [b"a"])[1] == 1
    for path in (tmp_path / "objects").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert answers(["p"], [b"a"]) == ([b"a!"], 1)


@pytest.mark.parametrize("place", ["0", "no/such\0folder"])
def test_nothing_is_kept_where_there_is_no_cache(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"NNX_CACHE": place})
    assert answers(["p"], [b"a", b"a"])[1] == 1 and answers(["p"], [b"a"])[1] == 1


def test_a_question_is_all_of_its_parts() -> None:
    with recalling(["p"]):
        assert [recalled(q, lambda q=q: repr(q).encode()) for q in ([b"ab"], [b"a", b"b"], [b"", b"ab"])] == [
            b"[b'ab']", b"[b'a', b'b']", b"[b'', b'ab']"]


def test_what_failed_leaves_nothing_behind() -> None:
    with pytest.raises(ZeroDivisionError), recalling(["p"]):
        recalled([b"a"], lambda: bytes(1 // 0))
    assert recalled([b"a"], lambda: b"1") == b"1"


@pytest.mark.parametrize("real", [0.0037, 2.0 ** -30, 2.0 ** 8])
def test_a_plan_that_is_recalled_is_the_one_that_was_found(real: float, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNX_CACHE", str(tmp_path))
    high, out = np.array([1 << 20, 1 << 22]), Range(3, 0, 255, signed=False)
    steps = Steps.of(np.array([real, real / 3]), -high, high)
    with recalling(["p"]):
        want = planned(steps, out, host(), NONE)
    monkeypatch.setattr(requantise, "_planned", None)
    with recalling(["p"]):
        got = planned(steps, out, host(), NONE)
    assert got.formula == want.formula
    assert all(np.array_equal(a, b) for a, b in zip(got.parameters, want.parameters, strict=True))


def test_a_plan_is_for_its_sums_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNX_CACHE", str(tmp_path))
    real, high, out = np.array([3.3e-7]), np.array([1 << 28]), Range(3, 3, 255, signed=False)
    with recalling(["p"]):
        wide, near = (planned(Steps.of(real, low, high), out, host(), NONE) for low in (-high, high - 50))
    assert (wide.formula, near.formula) == ("shifts", "above")
