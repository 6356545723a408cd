"""NNAPI-EX as its header promises it: values, output types, and what is refused with BAD_DATA."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_model import Operand, check, ints, model, q, run, t

from nnx_convert import ModelBuilder, ModelError, OperandCode, OperationCode, OperationCodeEx, ResultCode

RAMP = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.array([[3, 1, 2], [1, 5, 5]], np.float32)
DEEP = np.ones((1, 1, 1, 1, 2))


def i32(value: Any) -> Operand:
    return t(value, np.int32)


Cases = dict[str, tuple[str, list[Any], list[Operand]]]

CASES: Cases = {
    "cast truncates": ("CAST_EX", [t([1.8, 2.2, -1.8, -0.5])], [i32([1, 2, -1, 0])]),
    "cast ignores the grid": ("CAST_EX", [q([10, 0], 0.5, 3)], [t([10, 0])]),
    "cast to bytes saturates": ("CAST_EX", [t([300, -5, 2.9])], [q([255, 0, 2], 0.5, 3)]),
    "cast of integers": ("CAST_EX", [i32([-7, 9])], [t([-7, 9])]),
    "cast of itself": ("CAST_EX", [i32([-7, 9])], [i32([-7, 9])]),
    "top k, larger index first": ("TOPK_V2_EX", [t([3, 1, 3, 2, 3]), 2], [t([3, 3]), i32([4, 2])]),
    "top k of integers": ("TOPK_V2_EX", [i32([[1, 1], [-2, 7]]), 2], [i32([[1, 1], [7, -2]]), i32([[1, 0], [1, 0]])]),
    "top k of bytes": ("TOPK_V2_EX", [q([9, 200, 9], 0.5, 100), 3], [q([200, 9, 9], 0.5, 100), i32([1, 2, 0])]),
    "max drops axes": ("REDUCE_MAX_EX", [t(RAMP), ints(0, -1)], [t(RAMP.max((0, 2)))]),
    "max of all": ("REDUCE_MAX_EX", [i32([[1, -2], [7, 3]]), ints(0, 1)], [i32([7])]),
    "max of bytes": ("REDUCE_MAX_EX", [q([[1, 200]], 0.5, 100), ints(1)], [q([200], 0.5, 100)]),
    "min": ("REDUCE_MIN_EX", [t(RAMP), ints(1)], [t(RAMP.min(1))]),
    "min of all integers": ("REDUCE_MIN_EX", [i32([[1, -2], [7, 3]]), ints(0, 1)], [i32([-2])]),
    "min of bytes": ("REDUCE_MIN_EX", [q([[1, 200]], 0.5, 100), ints(1)], [q([1], 0.5, 100)]),
    "sum": ("REDUCE_SUM_EX", [t(RAMP), ints(0, 2)], [t(RAMP.sum((0, 2)))]),
    "sum of all": ("REDUCE_SUM_EX", [t(MATRIX), ints(0, 1)], [t([17])]),
    "gather": ("GATHER_EX", [t(MATRIX), ints(1, 0), 0], [t(MATRIX[::-1])]),
    "gather along the last axis": ("GATHER_EX", [i32(MATRIX), ints(2), -1], [i32(MATRIX[:, 2:])]),
    "sum, an axis named twice": ("REDUCE_SUM_EX", [t(RAMP), ints(1, -2)], [t(RAMP.sum(1))]),
    "split": ("SPLIT_EX", [t(RAMP), -1, 2], [t(RAMP[..., :2]), t(RAMP[..., 2:])]),
    "rsqrt": ("RSQRT_EX", [t([4, 0.25])], [t([0.5, 2])]),
    "sqrt": ("SQRT_EX", [t([4, 0.25])], [t([2, 0.5])]),
    "neg": ("NEG_EX", [i32([3, -4])], [i32([-3, 4])]),
    "neg of floats": ("NEG_EX", [t([3, -4])], [t([-3, 4])]),
    "abs": ("ABS_EX", [i32([3, -4])], [i32([3, 4])]),
    "abs of floats": ("ABS_EX", [t([3, -4.5])], [t([3, 4.5])]),
    "exp": ("EXP_EX", [t([0, -np.inf])], [t([1, 0])]),
    "squared difference": ("SQUARED_DIFFERENCE_EX", [t([[1], [4]]), t([2, 6])], [t([[1, 25], [4, 4]])]),
    "squared difference in place": ("SQUARED_DIFFERENCE_EX", [t([1, 4]), t([2, 6])], [t([1, 4])]),
    "pack": ("PACK_EX", [t([1, 2]), t([3, 4]), 2, 1], [t([[1, 3], [2, 4]])]),
    "pack at the end": ("PACK_EX", [i32([1, 2]), i32([3, 4]), 2, -1], [i32([[1, 3], [2, 4]])]),
    "pack one": ("PACK_EX", [q([1, 2], 0.5, 3), 1, 0], [q([[1, 2]], 0.5, 3)]),
    "unpack": ("UNPACK_EX", [t(MATRIX), 3, -1], [t(MATRIX[:, i]) for i in range(3)]),
    "unpack bytes": ("UNPACK_EX", [q([[1, 2], [3, 4]], 0.5, 3), 2, 0], [q([1, 2], 0.5, 3), q([3, 4], 0.5, 3)]),
    "unpack numbers": ("UNPACK_EX", [i32([5, 6]), 2, 0], [i32([5]), i32([6])]),
    "argmax": ("ARGMAX_EX", [t(MATRIX), -1], [i32([0, 1])]),
    "argmax of a line": ("ARGMAX_EX", [i32([1, 9, 9]), 0], [i32([1])]),
    "argmax of bytes": ("ARGMAX_EX", [q([[3, 200]], 0.5, 100), 1], [i32([1])]),
    "prelu": ("PRELU_EX", [t([[-1, 2], [-3, -4]]), t([0.5, 2])], [t([[-0.5, 2], [-1.5, -8]])]),
    "prelu widens x": ("PRELU_EX", [t([-1, 2]), t([[3], [4]])], [t([[-3, 2], [-4, 2]])]),
    "one-hot": ("ONE_HOT_EX", [i32([2, 0]), 3, 5.0, -1.0], [t([[-1, -1, 5], [5, -1, -1]])]),
    "one-hot in front": ("ONE_HOT_EX", [i32([2, 0]), 3, 1, 0, 0], [i32([[0, 1], [0, 0], [1, 0]])]),
    "one-hot in the middle": ("ONE_HOT_EX", [i32([[0, 1]]), 2, 1, 0, 1], [i32([[[1, 0], [0, 1]]])]),
    "one-hot, axis left out": ("ONE_HOT_EX", [i32([1]), 2, 1, 0, None], [i32([[0, 1]])]),
    "one-hot outside the depth": ("ONE_HOT_EX", [i32([-1, 2, 1]), 2, 1, 0, -1], [i32([[0, 0], [0, 0], [0, 1]])]),
    "not": ("LOGICAL_NOT_EX", [q([0, 1, 255])], [q([1, 0, 0])]),
    "and": ("LOGICAL_AND_EX", [q([[0, 1], [2, 255]]), q([[1], [0]])], [q([[0, 1], [0, 0]])]),
    "or": ("LOGICAL_OR_EX", [q([[0, 1], [2, 0]]), q([0, 128])], [q([[0, 1], [1, 1]])]),
    "equal, of two grids": ("EQUAL_EX", [q([10, 12], 0.5, 0), q([105, 105], 1.0, 100)], [q([1, 0])]),
    "equal, of a fine grid": ("EQUAL_EX", [q([2, 3], 1e-4), q([3, 3], 1e-4)], [q([0, 1])]),
    "less, of a fine grid": ("LESS_EX", [q([2, 3], 1e-4), q([3, 3], 1e-4)], [q([1, 0])]),
    "not equal, to a mask": ("NOT_EQUAL_EX", [i32([1, 2]), i32([1, 3])], [q([0, 1])]),
    "greater or equal, to a mask": ("GREATER_EQUAL_EX", [t([1, 2, np.nan]), t([1, 3, 0])], [q([1, 0, 0])]),
    "nothing equals NaN": ("EQUAL_EX", [t([np.nan, 1]), t([np.nan, 1])], [q([0, 1])]),
    "transposed convolution, VALID": ("TRANSPOSE_CONV_EX", [
        ints(1, 1, 5, 1), t(np.array([1, 2, 3]).reshape(1, 1, 3, 1)).const(), t(np.array([1, 10]).reshape(1, 1, 2, 1)),
        2, 2, 1], [t(np.array([1, 2, 13, 20, 30]).reshape(1, 1, 5, 1))]),
    "transposed convolution, SAME": ("TRANSPOSE_CONV_EX", [
        ints(1, 1, 4, 1), t(np.array([1, 2, 3]).reshape(1, 1, 3, 1)).const(), t(np.array([1, 10]).reshape(1, 1, 2, 1)),
        1, 2, 1], [t(np.array([1, 2, 13, 20]).reshape(1, 1, 4, 1))]),
    "transposed convolution of bytes": ("TRANSPOSE_CONV_EX", [
        ints(1, 1, 5, 1), q(np.array([5, 6, 7]).reshape(1, 1, 3, 1), 0.5, 4).const(),
        q(np.array([3, 12]).reshape(1, 1, 2, 1), 1.0, 2), 2, 2, 1],
        [q(np.array([11, 11, 17, 20, 25]).reshape(1, 1, 5, 1), 1.0, 10)]),
    "transposed convolution, all of the run": ("TRANSPOSE_CONV_EX", [
        i32([1, 1, 3, 1]), t(np.array([1, 2]).reshape(1, 1, 2, 1)), t(np.array([1, 10]).reshape(1, 1, 2, 1)), 2, 1, 1],
        [t(np.array([1, 12, 20]).reshape(1, 1, 3, 1)).open()]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    op, args, outs = CASES[name]
    check(op, args, *outs)


@pytest.mark.parametrize("name", CASES)
def test_open_sizes_give_the_same(name: str) -> None:
    op, args, outs = CASES[name]
    check(op, [a.open() if isinstance(a, Operand) and a.fed else a for a in args], *(o.open() for o in outs))


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "EQUAL_EX": np.equal, "NOT_EQUAL_EX": np.not_equal, "GREATER_EQUAL_EX": np.greater_equal, "LESS_EX": np.less}


@settings(max_examples=40)
@given(st.sampled_from(sorted(COMPARED)), st.sampled_from([np.float32, np.int32, np.uint8]), st.integers(1, 3),
       st.integers(1, 3), st.data())
def test_comparisons_are_numpys_in_masks(op: str, dtype: Any, rows: int, columns: int, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    make = (lambda v: q(v, 0.03, 9)) if dtype is np.uint8 else (lambda v: t(v, dtype))
    x, y = (make(random.integers(0, 4, s)) for s in ((rows, columns), (1, columns)))
    check(op, [x, y], q(COMPARED[op](x.value, y.value)))


LINE, WORDS, BYTES = t([1, 2]), i32([1, 2]), q([1, 2])
SHAPE, FILTER, IMAGE = ints(1, 2, 2, 1), t(np.ones((1, 2, 2, 1))).const(), t(np.ones((1, 1, 1, 1)))
FILLED = t(np.ones((1, 2, 2, 1)))

REFUSED: Cases = {
    # Types.
    "cast of half floats": ("CAST_EX", [t([1], np.float16)], [t([1])]),
    "cast to half floats": ("CAST_EX", [t([1])], [t([1], np.float16)]),
    "cast to truth values": ("CAST_EX", [t([1])], [t([1], np.bool_)]),
    "gather half floats": ("GATHER_EX", [t([1], np.float16), ints(0), 0], [t([1], np.float16)]),
    "gather signed bytes": ("GATHER_EX", [q([1], dtype=np.int8), ints(0), 0], [q([1], dtype=np.int8)]),
    "gather by floats": ("GATHER_EX", [LINE, t([0]), 0], [t([1])]),
    "gather, base order": ("GATHER_EX", [LINE, 0, ints(0)], [t([1])]),
    "gather to another type": ("GATHER_EX", [LINE, ints(0), 0], [i32([1])]),
    "top k of signed bytes": ("TOPK_V2_EX", [q([1], dtype=np.int8), 1], [q([1], dtype=np.int8), i32([0])]),
    "top k with float indices": ("TOPK_V2_EX", [LINE, 1], [t([1]), t([0])]),
    "top k of a tensor k": ("TOPK_V2_EX", [LINE, ints(1)], [t([1]), i32([0])]),
    "max of truth values": ("REDUCE_MAX_EX", [t([True], np.bool_), ints(0)], [t([True], np.bool_)]),
    "sum of integers": ("REDUCE_SUM_EX", [WORDS, ints(0)], [i32([3])]),
    "sum of bytes": ("REDUCE_SUM_EX", [BYTES, ints(0)], [q([3])]),
    "sum over a scalar axis": ("REDUCE_SUM_EX", [LINE, 0], [t([3])]),
    "sum with keep_dims": ("REDUCE_SUM_EX", [LINE, ints(0), True], [t([3])]),
    "rsqrt of integers": ("RSQRT_EX", [WORDS], [WORDS]),
    "sqrt of bytes": ("SQRT_EX", [BYTES], [BYTES]),
    "exp of half floats": ("EXP_EX", [t([1], np.float16)], [t([1], np.float16)]),
    "neg of bytes": ("NEG_EX", [BYTES], [BYTES]),
    "abs of bytes": ("ABS_EX", [BYTES], [BYTES]),
    "squared difference of integers": ("SQUARED_DIFFERENCE_EX", [WORDS, WORDS], [WORDS]),
    "squared difference of two types": ("SQUARED_DIFFERENCE_EX", [LINE, WORDS], [LINE]),
    "prelu of integers": ("PRELU_EX", [WORDS, WORDS], [WORDS]),
    "compare two types": ("EQUAL_EX", [LINE, WORDS], [BYTES]),
    "compare truth values": ("EQUAL_EX", [t([True], np.bool_), t([True], np.bool_)], [q([1])]),
    "compare into truth values": ("EQUAL_EX", [LINE, LINE], [t([True, True], np.bool_)]),
    "a mask of scale 2": ("LESS_EX", [LINE, LINE], [q([1, 0], 2.0)]),
    "a mask with a zero point": ("LESS_EX", [LINE, LINE], [q([1, 0], 1.0, 1)]),
    "and of truth values": ("LOGICAL_AND_EX", [t([True], np.bool_)] * 2, [q([1])]),
    "and of another scale": ("LOGICAL_AND_EX", [q([1], 0.5), q([1])], [q([1])]),
    "or of another zero point": ("LOGICAL_OR_EX", [q([1]), q([1], 1.0, 1)], [q([1])]),
    "not of integers": ("LOGICAL_NOT_EX", [WORDS], [BYTES]),
    "not of another scale": ("LOGICAL_NOT_EX", [q([1], 0.5)], [q([1])]),
    "argmax to floats": ("ARGMAX_EX", [LINE, 0], [t([1])]),
    "argmax over a tensor axis": ("ARGMAX_EX", [LINE, ints(0)], [i32([1])]),
    "one-hot of floats": ("ONE_HOT_EX", [LINE, 2, 1.0, 0.0], [t([[0, 1], [0, 0]])]),
    "one-hot values of another type": ("ONE_HOT_EX", [WORDS, 2, 1, 0], [t([[0, 1], [0, 0]])]),
    "one-hot values of two types": ("ONE_HOT_EX", [WORDS, 2, 1.0, 0], [t([[0, 1], [0, 0]])]),
    "one-hot of bytes": ("ONE_HOT_EX", [WORDS, 2, 1, 0], [q([[0, 1], [0, 0]])]),
    "pack two types": ("PACK_EX", [LINE, WORDS, 2, 0], [t([[1, 2], [1, 2]])]),
    "pack two grids": ("PACK_EX", [q([1], 0.5), q([1], 0.25), 2, 0], [q([[1], [1]], 0.5)]),
    "transposed convolution of integers": ("TRANSPOSE_CONV_EX", [
        SHAPE, i32(np.ones((1, 2, 2, 1))), i32(np.ones((1, 1, 1, 1))), 2, 1, 1], [i32(FILLED.value)]),
    "transposed convolution of two types": ("TRANSPOSE_CONV_EX", [
        SHAPE, FILTER, q(np.ones((1, 1, 1, 1))), 2, 1, 1], [q(FILLED.value)]),
    # Ranks.
    **{f"{op} of rank 5": (op, [t(DEEP)], [t(DEEP)]) for op in ("EXP_EX", "SQRT_EX", "RSQRT_EX", "ABS_EX", "NEG_EX")},
    **{f"{op} of rank 5": (op, [t(DEEP), t([1])], [t(DEEP)]) for op in ("PRELU_EX", "SQUARED_DIFFERENCE_EX")},
    **{f"{op} with y of rank 5": (op, [t([1]), t(DEEP)], [t(DEEP)]) for op in ("PRELU_EX", "SQUARED_DIFFERENCE_EX")},
    **{f"{op} of rank 5": (op, [t(DEEP), t([1])], [q(DEEP)]) for op in ("EQUAL_EX", "NOT_EQUAL_EX")},
    **{f"{op} of rank 5": (op, [q(DEEP), q([1])], [q(DEEP)]) for op in ("LOGICAL_AND_EX", "LOGICAL_OR_EX")},
    **{f"{op} of rank 5": (op, [t(DEEP), ints(0)], [t(DEEP[0])]) for op in (
        "REDUCE_MAX_EX", "REDUCE_MIN_EX", "REDUCE_SUM_EX")},
    "LOGICAL_NOT_EX of rank 5": ("LOGICAL_NOT_EX", [q(DEEP)], [q(DEEP)]),
    "CAST_EX of rank 5": ("CAST_EX", [t(DEEP)], [i32(DEEP)]),
    "PACK_EX of rank 4": ("PACK_EX", [t(DEEP[0]), 1, 0], [t(DEEP)]),
    "UNPACK_EX of rank 5": ("UNPACK_EX", [t(DEEP), 1, 0], [t(DEEP[0])]),
    "ONE_HOT_EX of rank 5": ("ONE_HOT_EX", [i32(DEEP), 1, 1.0, 0.0], [t(DEEP[..., None])]),
    "axes of rank 2": ("REDUCE_MAX_EX", [t(MATRIX), ints([0])], [t(MATRIX.max(0))]),
    "a filter of rank 3": ("TRANSPOSE_CONV_EX", [SHAPE, t(np.ones((2, 2, 1))), IMAGE, 2, 1, 1], [FILLED]),
    "an image of rank 3": ("TRANSPOSE_CONV_EX", [SHAPE, FILTER, t(np.ones((1, 1, 1))), 2, 1, 1], [FILLED]),
    # Counts.
    "no input": ("EXP_EX", [], [LINE]),
    "an input too many": ("EXP_EX", [LINE, LINE], [LINE]),
    "no output": ("EXP_EX", [LINE], []),
    "an output too many": ("EXP_EX", [LINE], [LINE, t([3, 4])]),
    "top k without indices": ("TOPK_V2_EX", [LINE, 1], [t([1])]),
    "gather without axis": ("GATHER_EX", [LINE, ints(0)], [t([1])]),
    "split into too few": ("SPLIT_EX", [LINE, 0, 2], [t([1])]),
    "split into too many": ("SPLIT_EX", [LINE, 0, 2], [t([1]), t([2]), t([3])]),
    "unpack into too few": ("UNPACK_EX", [LINE, 2, 0], [t([1])]),
    "pack of none": ("PACK_EX", [0, 0], [t([[1, 2]])]),
    "one-hot of three": ("ONE_HOT_EX", [WORDS, 2, 1.0], [t([[0, 1], [0, 0]])]),
    "transposed convolution with a bias": ("TRANSPOSE_CONV_EX", [
        SHAPE, FILTER, IMAGE, t([0]).const(), 2, 1, 1], [FILLED]),
    # Values and shapes.
    "gather along axis 1 of a line": ("GATHER_EX", [LINE, ints(0), 1], [t([1])]),
    "gather along axis -2 of a line": ("GATHER_EX", [LINE, ints(0), -2], [t([1])]),
    "gather to another grid": ("GATHER_EX", [q([1], 0.5), ints(0), 0], [q([1], 0.25)]),
    "more than there are": ("TOPK_V2_EX", [LINE, 3], [t([2, 1, 0]), i32([1, 0, 0])]),
    "an axis that is not there": ("REDUCE_MIN_EX", [LINE, ints(1)], [t([1])]),
    "axes kept": ("REDUCE_MAX_EX", [t(MATRIX), ints(1)], [t(MATRIX.max(1, keepdims=True))]),
    "split that does not divide": ("SPLIT_EX", [t([1, 2, 3]), 0, 2], [t([1]), t([2])]),
    "split along no axis": ("SPLIT_EX", [LINE, 1, 2], [t([1]), t([2])]),
    "shapes that do not broadcast": ("EQUAL_EX", [LINE, t([1, 2, 3])], [q([1, 0, 0])]),
    "pack another count": ("PACK_EX", [LINE, LINE, 3, 0], [t([[1, 2], [1, 2]])]),
    "pack two shapes": ("PACK_EX", [LINE, t([1]), 2, 0], [t([[1, 2], [1, 2]])]),
    "pack along no axis": ("PACK_EX", [LINE, LINE, 2, 2], [t([[1, 2], [1, 2]])]),
    "unpack another count": ("UNPACK_EX", [t([1, 2, 3, 4]), 2, 0], [t([1]), t([2])]),
    "unpack along no axis": ("UNPACK_EX", [LINE, 2, 1], [t([1]), t([2])]),
    "argmax along no axis": ("ARGMAX_EX", [LINE, -2], [i32([1])]),
    "one-hot of no depth": ("ONE_HOT_EX", [WORDS, 0, 1.0, 0.0], [t([[0, 1], [0, 0]])]),
    "one-hot along no axis": ("ONE_HOT_EX", [WORDS, 2, 1.0, 0.0, 2], [t([[0, 1], [0, 0]])]),
    "a shape of three": ("TRANSPOSE_CONV_EX", [ints(2, 2, 1), FILTER, IMAGE, 2, 1, 1], [FILLED]),
    "another depth": ("TRANSPOSE_CONV_EX", [ints(1, 2, 2, 2), FILTER, IMAGE, 2, 1, 1], [t(np.ones((1, 2, 2, 2)))]),
    "other batches": ("TRANSPOSE_CONV_EX", [ints(2, 2, 2, 1), FILTER, IMAGE, 2, 1, 1], [t(np.ones((2, 2, 2, 1)))]),
    "a stride of 0": ("TRANSPOSE_CONV_EX", [SHAPE, FILTER, IMAGE, 2, 0, 1], [FILLED]),
    "padding 0": ("TRANSPOSE_CONV_EX", [SHAPE, FILTER, IMAGE, 0, 1, 1], [FILLED]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_header_does_not_say_is_bad_data(name: str) -> None:
    op, args, outs = REFUSED[name]
    outs = [replace(o, fed=True) for o in outs]
    with pytest.raises(ModelError) as error:
        model(op, args, outs)
    assert error.value.result == ResultCode.BAD_DATA and error.value.text


FROM_1 = {"GATHER_EX": [t(DEEP), ints(0), 0], "TOPK_V2_EX": [t(DEEP), 1], "SPLIT_EX": [t(DEEP), 0, 1],
          "ARGMAX_EX": [t(DEEP), -1], "GREATER_EQUAL_EX": [t(DEEP), t([1])], "LESS_EX": [t(DEEP), t([1])]}
OUTS = {"GATHER_EX": [t(DEEP)], "TOPK_V2_EX": [t(DEEP[..., :1]), i32(DEEP[..., :1])], "SPLIT_EX": [t(DEEP)],
        "ARGMAX_EX": [i32(DEEP[..., 0] * 0)], "GREATER_EQUAL_EX": [q(DEEP)], "LESS_EX": [q(DEEP * 0)]}


@pytest.mark.parametrize("op", FROM_1)
def test_ranks_from_1_have_no_upper_limit(op: str) -> None:
    found = run(op, FROM_1[op], OUTS[op])
    assert [f.shape for f in found] == [o.value.shape for o in OUTS[op]]


@pytest.mark.parametrize("code", OperationCodeEx)
def test_an_ex_code_is_no_operation_of_nnapi(code: OperationCodeEx) -> None:
    with pytest.raises(ModelError, match=f"{code.name} is an NNAPI-EX operation: use add_operation_ex") as error:
        ModelBuilder().add_operation(code, [], [])
    assert error.value.result == ResultCode.BAD_DATA


@pytest.mark.parametrize("code", [OperationCode.GATHER, OperationCode.DENSIFY])
def test_an_nnapi_code_is_none_of_ex(code: OperationCode) -> None:
    with pytest.raises(ModelError, match=f"{code.name} is an NNAPI operation: use add_operation"):
        ModelBuilder().add_operation_ex(code, [], [])


def test_an_ex_operand_has_no_level() -> None:
    built, _ = model("NEG_EX", [WORDS], [i32([-1, -2])])
    assert built.level == 27 and built.operands[0].type is OperandCode.TENSOR_INT32


@dataclass(frozen=True)
class Twin:
    """The operation of NNAPI that is nearest ("": there is none), and the cases where the two part.

    `own`: EX gives this, and the twin refuses the operands or gives something else. `refused`: the twin takes what
    EX refuses.
    """

    of: str
    own: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


HALF = t([[1, 2]], np.float16)
MORE_REFUSED: Cases = {
    "split half floats": ("SPLIT_EX", [HALF, 1, 2], [t([[1]], np.float16), t([[2]], np.float16)]),
    "argmax of half floats": ("ARGMAX_EX", [HALF, 1], [i32([1])]),
    "argmax of signed bytes": ("ARGMAX_EX", [q([1, 2], dtype=np.int8), 0], [i32([1])]),
    "prelu of half floats": ("PRELU_EX", [HALF, HALF], [HALF]),
    "prelu of signed bytes": ("PRELU_EX", [q([1], dtype=np.int8)] * 2, [q([1], dtype=np.int8)]),
    "abs of half floats": ("ABS_EX", [HALF], [HALF]), "neg of half floats": ("NEG_EX", [HALF], [HALF]),
    "rsqrt of bytes": ("RSQRT_EX", [BYTES], [BYTES])}
EVERY = CASES | REFUSED | MORE_REFUSED

TWINS: dict[str, Twin] = {
    "CAST_EX": Twin("CAST", refused=("cast of half floats", "cast to half floats", "CAST_EX of rank 5")),
    "GATHER_EX": Twin("GATHER", own=("gather", "gather along the last axis"), refused=("gather, base order",)),
    "TOPK_V2_EX": Twin("TOPK_V2", refused=("top k of signed bytes",)),
    "REDUCE_MAX_EX": Twin("REDUCE_MAX", own=("max drops axes", "max of all", "max of bytes")),
    "REDUCE_MIN_EX": Twin("REDUCE_MIN", own=("min", "min of bytes", "min of all integers")),
    "REDUCE_SUM_EX": Twin("REDUCE_SUM", own=("sum", "sum, an axis named twice", "sum of all"),
                          refused=("sum with keep_dims",)),
    "SPLIT_EX": Twin("SPLIT", refused=("split half floats",)),
    "RSQRT_EX": Twin("RSQRT", refused=("RSQRT_EX of rank 5", "rsqrt of bytes")),
    "SQRT_EX": Twin("SQRT", refused=("SQRT_EX of rank 5",)),
    "EXP_EX": Twin("EXP", refused=("exp of half floats", "EXP_EX of rank 5")),
    "NEG_EX": Twin("NEG", refused=("neg of half floats", "NEG_EX of rank 5")),
    "ABS_EX": Twin("ABS", refused=("abs of half floats", "ABS_EX of rank 5")),
    "SQUARED_DIFFERENCE_EX": Twin("", own=("squared difference", "squared difference in place")),
    "PACK_EX": Twin("PACK", own=("pack", "pack at the end", "pack one")),
    "UNPACK_EX": Twin("", own=("unpack", "unpack bytes", "unpack numbers")),
    "ARGMAX_EX": Twin("ARGMAX", refused=("argmax of half floats", "argmax of signed bytes")),
    "PRELU_EX": Twin("PRELU", refused=("prelu of half floats", "prelu of signed bytes", "PRELU_EX of rank 5")),
    "ONE_HOT_EX": Twin("", own=("one-hot", "one-hot, axis left out", "one-hot in front")),
    "LOGICAL_NOT_EX": Twin("LOGICAL_NOT", own=("not",)), "LOGICAL_AND_EX": Twin("LOGICAL_AND", own=("and",)),
    "LOGICAL_OR_EX": Twin("LOGICAL_OR", own=("or",)),
    "EQUAL_EX": Twin("EQUAL", own=("equal, of two grids", "nothing equals NaN"), refused=(
        "compare into truth values",)),
    "NOT_EQUAL_EX": Twin("NOT_EQUAL", own=("not equal, to a mask",)),
    "GREATER_EQUAL_EX": Twin("GREATER_EQUAL", own=("greater or equal, to a mask",)),
    "LESS_EX": Twin("LESS", own=("less, of a fine grid",)),
    "TRANSPOSE_CONV_EX": Twin("TRANSPOSE_CONV_2D", own=(
        "transposed convolution, VALID", "transposed convolution, SAME", "transposed convolution of bytes"))}


def test_every_operation_has_cases_that_tell_it_from_its_twin() -> None:
    assert TWINS.keys() == OperationCodeEx.__members__.keys() and len(TWINS) == 26
    assert all(twin.own or twin.refused for twin in TWINS.values())
    assert all(twin.of in OperationCode.__members__ or not twin.of for twin in TWINS.values())
    assert not [n for name, twin in TWINS.items() for n in (*twin.own, *twin.refused) if EVERY[n][0] != name]


def fed(outs: list[Operand]) -> list[Operand]:
    """The outputs as operands, with values only to know their sizes."""
    return [replace(o, fed=True) for o in outs]


@pytest.mark.parametrize(("op", "name"), [(op, n) for op, twin in TWINS.items() for n in twin.own])
def test_the_twin_gives_something_else_or_nothing(op: str, name: str) -> None:
    _, args, outs = CASES[name]
    check(op, args, *outs)
    if not TWINS[op].of:
        return
    try:
        found = run(TWINS[op].of, args, outs)
    except ModelError:
        return
    assert [(f.dtype, f.tolist()) for f in found] != [(o.value.dtype, o.value.tolist()) for o in outs]


@pytest.mark.parametrize(("op", "name"), [(op, n) for op, twin in TWINS.items() for n in twin.refused])
def test_the_twin_takes_what_is_refused(op: str, name: str) -> None:
    _, args, outs = EVERY[name]
    with pytest.raises(ModelError):
        model(op, args, fed(outs))
    run(TWINS[op].of, args, fed(outs))
