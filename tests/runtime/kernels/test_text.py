"""Operations on texts."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op

from nnx_convert import RunError
from nnx_convert.ops import text as t
from nnx_convert.types import F32, I64, STR, Tensor, Type


def words(*values: str, shape: tuple[int, ...] | None = None) -> Tensor:
    found = np.empty(len(values), object)
    found[:] = [v.encode() for v in values]
    return given(found.reshape(shape or (-1,)), STR)


def given(data: Any, kind: Type) -> Tensor:
    array = np.asarray(data, kind.dtype)
    return Tensor(kind, array.shape, None, array)


def said(array: np.ndarray[Any, Any]) -> list[Any]:
    return np.vectorize(lambda v: v.decode(), otypes=[object])(array).tolist() if array.size else array.tolist()


def test_texts_are_joined_and_broadcast() -> None:
    (found,) = run_op(t.TEXT_JOIN, {"x": words("a", "é", shape=(2, 1)), "y": words("1", "2", "")})
    assert said(found) == [["a1", "a2", "a"], ["é1", "é2", "é"]]


@pytest.mark.parametrize(("separator", "most", "want", "count"), [
    (",", -1, [["a", "", "b"], ["c", "", ""]], [3, 1]), (",", 1, [["a", ",b"], ["c", ""]], [2, 1]),
    ("", -1, [["a,,b"], ["c"]], [1, 1])])
def test_parts_are_filled_up(separator: str, most: int, want: list[list[str]], count: list[int]) -> None:
    parts, counts = run_op(t.TEXT_SPLIT, {"x": words("a,,b", "c"), "separator": words(separator), "most": most})
    assert (said(parts), counts.tolist()) == (want, count)


@pytest.mark.parametrize(("change", "sensitive", "want"), [
    (t.KEEP, True, ["Mon", "TUE"]), (t.KEEP, False, ["TUE"]), (t.LOWER, False, ["tue"]),
    (t.UPPER, True, ["MON", "TUE"])])
def test_stopwords_go_and_letters_change(change: int, sensitive: bool, want: list[str]) -> None:
    args = {"x": words("Mon", "mon", "TUE"), "stopwords": words("mon"), "change": change, "sensitive": sensitive}
    assert said(run_op(t.TEXT_NORMALIZE, args)[0]) == want


def test_one_empty_text_is_left_of_none() -> None:
    args = {"x": words("a", "a", shape=(1, 2)), "stopwords": words("a"), "change": t.KEEP, "sensitive": True}
    assert said(run_op(t.TEXT_NORMALIZE, args)[0]) == [[""]]


def test_a_pattern_matches_the_whole() -> None:
    x = words("ab", "abc", "", shape=(3, 1))
    assert run_op(t.TEXT_MATCH, {"x": x, "pattern": words("ab|")})[0].tolist() == [[True], [False], [True]]
    with pytest.raises(RunError, match="RE2"):
        run_op(t.TEXT_MATCH, {"x": x, "pattern": words("(")})


def terms(x: list[int], **changes: Any) -> list[float]:
    args: dict[str, Any] = {
        "x": given(x, I64), "pool": given([2, 3, 5, 4, 5, 6, 7, 8, 6, 7], I64), "starts": given([0, 4], I64),
        "columns": given(range(7), I64), "weights": None, "least": 1, "most": 2, "skips": 0, "mode": t.TF, "size": 7}
    found: list[float] = run_op(t.TERMS, args | changes)[0].tolist()
    return found


def test_terms_are_counted_with_gaps() -> None:
    x = [1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]
    assert terms(x) == [0, 3, 1, 0, 1, 1, 1]
    assert terms(x, least=2, skips=5) == [0, 0, 0, 0, 1, 3, 1]
    weights = given([2, 2, 2, 2, 3, 3, 3], F32)
    assert terms(x, weights=weights, mode=t.IDF) == [0, 2, 2, 0, 3, 3, 3]
    assert terms(x, weights=weights, mode=t.TFIDF) == [0, 6, 2, 0, 3, 3, 3]
    assert terms([2]) == [1, 0, 0, 0, 0, 0, 0]
    assert terms(x, least=2, skips=2 ** 31 - 1) == [0, 0, 0, 0, 1, 3, 1]


def test_no_terms_are_in_no_row() -> None:
    empty = given(np.zeros((2, 0)), I64)
    args = {"pool": given([1], I64), "starts": given([0], I64), "columns": given([0], I64), "weights": None,
            "least": 1, "most": 1, "skips": 3, "mode": t.TF, "size": 1}
    assert run_op(t.TERMS, args | {"x": empty})[0].tolist() == [[0], [0]]
    assert run_op(t.TERMS, args | {"x": given([], I64)})[0].tolist() == [0]


def test_parts_that_no_memory_holds_fail() -> None:
    x = words(*[""] * 200_000, "," * 10_000_000)
    with pytest.raises(RunError, match="parts that are filled up"):
        run_op(t.TEXT_SPLIT, {"x": x, "separator": words(","), "most": -1})
