"""Between types as ONNX has it, also those between which its Cast does not go."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op

from nnx_convert.errors import RunError
from nnx_convert.ops import casts as c
from nnx_convert.types import (
    B8, C64, C128, F16, F32, F64, F8E4M3FN, F8E8M0, I16, I32, I4, I64, Q8, Q8S, STR, U2, U4, U32, U64, Tensor, Type)

NAN, INF = float("nan"), float("inf")
CASES: list[tuple[list[Any], Type, Type, list[Any]]] = [
    ([1 + 2j, -3], C64, F32, [1, -3]), ([1.5, -2], F32, C128, [1.5, -2]), ([1 + 2j], C128, C64, [1 + 2j]),
    ([b"1+2j"], STR, C64, [1 + 2j]), ([2 + 1j], C64, STR, [b"(2+1j)"]), ([True, False], B8, STR, [b"1", b"0"]),
    ([0.5, NAN, -INF, 1e-5], F64, STR, [b"0.5", b"NaN", b"-INF", b"1e-05"]), ([7, -8], I4, STR, [b"7", b"-8"]),
    ([300, -5, 70000], I32, I16, [300, -5, 4464]), ([255, 128], Q8, Q8S, [-1, -128]), ([-1, 5], I64, U4, [15, 5]),
    ([3, 2], U2, I4, [3, 2]), ([-1], I4, U2, [3]), ([0.1, 1000], F16, F8E4M3FN, [0.1015625, 448]),
    ([b"-INF", b"nan", b" 12 "], STR, F32, [-INF, NAN, 12]), ([b"12.9", b"-1"], STR, Q8, [12, 255])]


def tensor(values: list[Any], type_: Type) -> Tensor:
    array = np.empty(len(values), object)
    array[:] = values
    if type_ != STR:
        array = np.array(values).astype(type_.dtype)
    return Tensor(type_, array.shape, None, array)


@pytest.mark.parametrize(("given", "source", "to", "want"), CASES)
def test_elements_become_those_of_another_type(given: list[Any], source: Type, to: Type, want: list[Any]) -> None:
    found, = run_op(c.CONVERT, {"x": tensor(given, source), "to": to, "saturate": True, "rounding": c.UP})
    assert found.dtype == to.dtype
    if to == STR:
        assert found.tolist() == want
    else:
        expected = tensor(want, to).data
        assert expected is not None
        np.testing.assert_array_equal(found.astype(complex), expected.astype(complex))


#: What integers make of floats that they have not, each type of the ends and what is no number.
BEYOND = [300.7, -1.5, 2.0 ** 31, 2.0 ** 33 + 1024, 2.0 ** 63, 1e20, -1e20, INF, -INF, NAN]
U64_MOST, I64_MOST = 2 ** 64 - 1, 2 ** 63 - 1


@pytest.mark.parametrize("source", [F32, F64])
@pytest.mark.parametrize(("to", "want"), [
    (Q8, [44, 255, 255, 255, 255, 255, 0, 255, 0, 255]), (Q8S, [44, -1, -1, -1, -1, -1, 0, -1, 0, -1]),
    (I16, [300, -1, -1, -1, -1, -1, 0, -1, 0, -1]), (I4, [-4, -1, -1, -1, -1, -1, 0, -1, 0, -1]),
    (I32, [300, -1, *[2 ** 31 - 1] * 4, -2 ** 31, 2 ** 31 - 1, -2 ** 31, 2 ** 31 - 1]),
    (U32, [300, 2 ** 32 - 1, 2 ** 31, 1024, *[2 ** 32 - 1] * 2, 0, 2 ** 32 - 1, 0, 2 ** 32 - 1]),
    (I64, [300, -1, 2 ** 31, 2 ** 33 + 1024, I64_MOST, I64_MOST, -2 ** 63, I64_MOST, -2 ** 63, I64_MOST]),
    (U64, [300, U64_MOST, 2 ** 31, 2 ** 33 + 1024, 2 ** 63, U64_MOST, 2 ** 63, U64_MOST, 2 ** 63, U64_MOST])])
def test_what_no_integer_holds_is_the_same_everywhere(source: Type, to: Type, want: list[int]) -> None:
    x = Tensor(source, (10,), None, np.array(BEYOND, source.dtype))
    found, = run_op(c.CONVERT, {"x": x, "to": to, "saturate": True, "rounding": c.UP})
    assert found.dtype == to.dtype and found.tolist() == want


@pytest.mark.parametrize(("rounding", "saturate", "want"), [
    (c.UP, True, [2.0, 4.0, 2.0 ** 127, 2.0 ** -127]), (c.DOWN, True, [2.0, 2.0, 2.0 ** 127, 2.0 ** -127]),
    (c.NEAREST, True, [2.0, 4.0, 2.0 ** 127, 2.0 ** -127]), (c.UP, False, [2.0, 4.0, NAN, 2.0 ** -127])])
def test_numbers_become_powers_of_two(rounding: int, saturate: bool, want: list[float]) -> None:
    x = tensor([2.0, 3.0, 3e38, 0.0], F32)
    found, = run_op(c.CONVERT, {"x": x, "to": F8E8M0, "saturate": saturate, "rounding": rounding})
    np.testing.assert_array_equal(found.astype(np.float32), np.array(want, np.float32))


@pytest.mark.parametrize("word", [b"one", b"", b"0x", b"\xff"])
def test_what_is_no_number_is_refused(word: bytes) -> None:
    with pytest.raises(RunError, match="failed"):
        run_op(c.CONVERT, {"x": tensor([word], STR), "to": I32, "saturate": True, "rounding": c.UP})
