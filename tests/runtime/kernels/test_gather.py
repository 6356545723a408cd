"""Picking by index: hand-made cases, NumPy's take, and every way an index can be out of bounds."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_model import Operand, check, ints, q, run, t

from nnx_convert import OperandCode, RunError

RAMP = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)
HITS = [1, 0, 1]

CASES: dict[str, tuple[str, list[Any], list[Operand]]] = {
    "first axis": ("GATHER", [t(TABLE), 0, ints(3, 0, 3)], [t(TABLE[[3, 0, 3]])]),
    "last axis": ("GATHER", [t(RAMP), -1, ints(2)], [t(RAMP[..., [2]])]),
    "indices of rank 2": ("GATHER", [t(RAMP), 1, ints([0, 1], [2, 0])], [t(RAMP.take([[0, 1], [2, 0]], 1))]),
    "indices of a run": ("GATHER", [t(TABLE), 0, t([1], np.int32)], [t(TABLE[[1]])]),
    "bytes": ("GATHER", [q([5, 6, 7], 0.5, 3), 0, ints(2, 2)], [q([7, 7], 0.5, 3)]),
    "EX order of operands": ("GATHER_EX", [t(RAMP), ints(2, 1), 1], [t(RAMP[:, [2, 1]])]),
    "EX negative axis": ("GATHER_EX", [t([[1, 2, 3]], np.int32), ints([2], [0]), -1], [t([[[3], [1]]], np.int32)]),
    "EX bytes": ("GATHER_EX", [q([5, 6, 7], 0.5, 3), t([1], np.int32), 0], [q([6], 0.5, 3)]),
    "embedding": ("EMBEDDING_LOOKUP", [ints(2, 0), t(TABLE)], [t(TABLE[[2, 0]])]),
    "hashtable": ("HASHTABLE_LOOKUP", [t([30, 5, 10], np.int32), ints(10, 20, 30, 40), t(TABLE)],
                  [t(TABLE[[2, 0, 0]] * [[1], [0], [1]]), q(HITS)]),
    "hashtable beyond the last key": ("HASHTABLE_LOOKUP", [t([50], np.int32), ints(10), t([[7.0]])],
                                      [t([[0]]), q([0])]),
    "hashtable of bytes": ("HASHTABLE_LOOKUP", [t([11], np.int32), ints(10), q([[7]], 0.5, 9)],
                           [q([[0]], 0.5, 9), q([0])]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    op, args, outs = CASES[name]
    check(op, args, *outs)


@pytest.mark.parametrize("type_", ["TENSOR_INT64", "TENSOR_FLOAT64", "TENSOR_INT16", "TENSOR_BOOL8"])
def test_the_host_gathers_any_type(type_: str) -> None:
    code = OperandCode[type_]
    x = Operand(np.array([0, 1, 3], code.dtype), code)
    check("host.GATHER", [x, 0, ints(2, 1)], Operand(x.value[[2, 1]], code))


@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1, -2**31])
@pytest.mark.parametrize("const", [True, False])
@pytest.mark.parametrize("op", ["GATHER", "GATHER_EX", "EMBEDDING_LOOKUP"])
def test_an_index_out_of_bounds_is_named(op: str, const: bool, index: int) -> None:
    indices = ints(1, index) if const else t([1, index], np.int32)
    args = {"GATHER": [t(TABLE), 0, indices], "GATHER_EX": [t(TABLE), indices, 0],
            "EMBEDDING_LOOKUP": [indices, t(TABLE)]}
    with pytest.raises(RunError, match=rf"operation 0 {op}: index {index} is not in \[0, 4\)"):
        run(op, args[op], [t(TABLE[:2])])


@settings(max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.integers(1, 3), min_size=1, max_size=3),
       st.data())
def test_gathering_is_numpys_take(shape: list[int], picks: list[int], data: st.DataObject) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = prod(picks)
    indices = data.draw(st.lists(st.integers(0, shape[axis] - 1), min_size=count, max_size=count))
    at = t(np.reshape(indices, picks), np.int32)
    want = t(x.take(at.value, axis))
    check("GATHER", [t(x), axis, at], want)
    check("GATHER_EX", [t(x), at, axis], want)


@pytest.mark.parametrize("op, first", [("GATHER", 1), ("GATHER_EX", 2)])
def test_a_scalar_may_come_from_the_run(op: str, first: int) -> None:
    axis = Operand(np.asarray(1, np.int32), OperandCode.INT32)
    args = [t(TABLE), t([1], np.int32)]
    args.insert(first, axis)
    check(op, args, t(TABLE[:, [1]]))
    check(op, args, t(TABLE[:, [1]]).open())
