"""What users give and get: exact types, narrow ones, lists, None and dicts."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nnx_convert.contents import contents
from nnx_convert.runtime.given import entered, left

BF16, I4 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)


@pytest.mark.parametrize(("dtype", "given"), [
    ("bfloat16", np.ones(2, BF16)), ("bfloat16", np.ones(2, np.float32)), ("bfloat16", [1.0, 1]),
    ("bfloat16", np.ones(2, BF16).view("V2")), ("int4", np.ones(2, np.int8)), ("int4", np.ones(2, np.int64)),
    ("float8_e5m2", np.array([1, 1], np.float64)), ("int64", [1, 1]), ("float64", np.ones(2, np.float32)),
    ("complex128", np.ones(2, np.complex64))])
def test_values_that_stay_are_taken(dtype: str, given: Any) -> None:
    found = entered(contents(dtype), given)
    assert isinstance(found, np.ndarray) and found.dtype == np.dtype(getattr(ml_dtypes, dtype, dtype))
    assert found.astype(complex).tolist() == [1, 1]


@pytest.mark.parametrize(("dtype", "given", "said"), [
    ("bfloat16", np.array([1.001], np.float32), "float32, not bfloat16"), ("int4", np.array([8]), "int64, not int4"),
    ("int4", np.zeros(1, "V2"), "not int4"), ("float32", np.ones(1), "float64, not float32"),
    ("bfloat16", "text", "not bfloat16"), ("bfloat16", object(), "object, not bfloat16")])
def test_values_that_would_change_are_refused(dtype: str, given: Any, said: str) -> None:
    found = entered(contents(dtype), given)
    assert isinstance(found, str) and said in found


LISTS: list[tuple[str, Any]] = [
    ("sequence(int64)", [np.array([1, 2]), np.array(3)]), ("sequence(float32)", []), ("optional(int64)", None),
    ("optional(int64)", np.array([4])), ("optional(sequence(int64))", [np.array([1])]),
    ("optional(sequence(int64))", []), ("sequence(sequence(int64))", [[np.array([1])], []]),
    ("map(int64,float32)", {1: np.array(0.5, np.float32)}), ("map(object,int64)", {b"a": np.array(1)}),
    ("sequence(map(int64,int64))", [{1: np.array(1)}, {}])]


@pytest.mark.parametrize(("holds", "given"), LISTS)
def test_lists_go_in_and_come_out(holds: str, given: Any) -> None:
    inside = entered(contents(holds), given)
    assert isinstance(inside, np.ndarray) and inside.dtype == object and inside.ndim == 1
    assert repr(left(contents(holds), inside)) == repr(given)


@pytest.mark.parametrize(("holds", "given", "said"), [
    ("sequence(int64)", np.zeros(3), "ndarray, not a sequence(int64)"), ("sequence(int64)", None, "NoneType, not a"),
    ("sequence(int64)", [1, "x"], "no sequence(int64): element 1 is <U1, not int64"),
    ("map(int64,int64)", [1], "list, not a map(int64,int64)"), ("map(int64,int64)", {"a": 1}, "<U1, not int64"),
    ("map(int64,int64)", {1: "a"}, "<U1, not int64"), ("map(int64,int64)", {(1, 2): 3}, "a key is a tuple"),
    ("optional(int64)", 1.5, "float64, not int64")])
def test_what_is_none_is_refused(holds: str, given: Any, said: str) -> None:
    found = entered(contents(holds), given)
    assert isinstance(found, str) and said in found


def test_text_keys_are_bytes() -> None:
    inside = entered(contents("map(object,int64)"), {"a": 1})
    assert isinstance(inside, np.ndarray) and list(inside[0]) == [b"a"]
