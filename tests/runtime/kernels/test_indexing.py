"""Elements at computed places, by hand."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor
from test_host_arrays import given, ints, of_any_size

from nnx_convert.errors import NnxError
from nnx_convert.ops import indexing as i
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, BF16, F32, F64, I32, I64, Q8, STR, Quant, Type

SQUARE = np.arange(9).reshape(3, 3)
CUBE = np.arange(8).reshape(2, 2, 2)


def longs(*values: Any) -> tuple[Any, Type]:
    """Operands of INT64."""
    return list(values), I64


def scattered(kind: Type, fold: int) -> dict[str, Any]:
    """Three of which two meet."""
    return {"x": ([4, 5, 6], kind), "indices": longs(1, -1, 1), "updates": ([2, 3, 7], kind), "axis": 0, "fold": fold}


def at_tuples(fold: int) -> dict[str, Any]:
    """The same as tuples of one."""
    return {"x": ([4, 5, 6], F32), "indices": longs([1], [-1], [1]), "updates": ([2, 3, 7], F32), "fold": fold}


def written(axis: int, circular: bool, *start: int) -> dict[str, Any]:
    """Two rows of each batch written."""
    x, update = np.zeros((2, 3, 4)), np.arange(1, 17).reshape(2, 2, 4)
    swapped = axis != 1
    return {"x": (x.transpose(0, 2, 1) if swapped else x, F32),
            "update": (update.transpose(0, 2, 1) if swapped else update, F32), "start": longs(*start), "axis": axis,
            "circular": circular}


ROWS = [[[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]], [[13, 14, 15, 16], [0, 0, 0, 0], [9, 10, 11, 12]]]

# operation, arguments (values with their type are a tensor), the output
CASES: list[tuple[OpDef, dict[str, Any], Any]] = [
    (i.GATHER_ELEMENTS, {"x": (SQUARE, F32), "indices": ints([1, 2, 0], [2, 0, 0]), "axis": 0},
     [[3, 7, 2], [6, 1, 2]]),
    (i.GATHER_ELEMENTS, {"x": (SQUARE, I64), "indices": ints([1], [2]), "axis": -1}, [[1], [5]]),
    (i.GATHER_ND_BATCHED, {"x": (CUBE, F32), "indices": ints([1], [0]), "batch": 1}, [[2, 3], [4, 5]]),
    (i.GATHER_ND_BATCHED, {"x": (CUBE, I64), "indices": ints([0, 1], [1, 0]), "batch": 0}, [[2, 3], [4, 5]]),
    (i.GATHER_ND_BATCHED, {"x": (CUBE, F64), "indices": ints([[1], [0]], [[0], [1]]), "batch": 2}, [[1, 2], [4, 7]]),
    (i.TRILU, {"x": (SQUARE, F32), "k": ints(1), "upper": True}, np.triu(SQUARE, 1)),
    (i.TRILU, {"x": (CUBE, I64), "k": ints(-1), "upper": False}, np.tril(CUBE, -1)),
    (i.SCATTER_ELEMENTS, scattered(F32, i.REPLACE), [4, 7, 3]),
    (i.SCATTER_ELEMENTS, scattered(I64, i.ADD), [4, 14, 9]),
    (i.SCATTER_ELEMENTS, scattered(F32, i.MULTIPLY), [4, 70, 18]),
    (i.SCATTER_ELEMENTS, scattered(F64, i.LEAST), [4, 2, 3]),
    (i.SCATTER_ELEMENTS, scattered(I32, i.MOST), [4, 7, 6]),
    (i.SCATTER_ELEMENTS, scattered(Q8, i.ADD), [4, 14, 9]),
    (i.SCATTER_ELEMENTS, {"x": (SQUARE, F32), "indices": ints([2], [0]), "updates": ([[-1], [-2]], F32), "axis": 1,
                          "fold": 0}, [[0, 1, -1], [-2, 4, 5], [6, 7, 8]]),
    (i.SCATTER_TUPLES, at_tuples(i.REPLACE), [4, 7, 3]), (i.SCATTER_TUPLES, at_tuples(i.ADD), [4, 14, 9]),
    (i.SCATTER_TUPLES, {"x": (SQUARE, F32), "indices": longs([1], [0]), "updates": ([[9, 9, 9], [8, 8, 8]], F32),
                        "fold": 0}, [[8, 8, 8], [9, 9, 9], [6, 7, 8]]),
    (i.SCATTER_TUPLES, {"x": (SQUARE, F32), "indices": longs(1, 1), "updates": ([-4], F32), "fold": 1},
     [[0, 1, 2], [3, 0, 5], [6, 7, 8]]),
    (i.WRITE_ROWS, written(1, True, 1, 2), ROWS),
    (i.WRITE_ROWS, written(-1, True, 1, 2), np.transpose(ROWS, (0, 2, 1))),
    (i.ONE_HOT, {"indices": longs(0, -1, 3, 2, -4), "depth": longs(3), "values": ([5, 7], F32), "axis": -1},
     [[7, 5, 5], [5, 5, 7], [5, 5, 5], [5, 5, 7], [5, 5, 5]]),
    (i.ONE_HOT, {"indices": ([1.9, -0.5], F32), "depth": ([2.0], F64), "values": ([0, 1], I64), "axis": 0},
     [[0, 1], [1, 0]])]


@pytest.mark.parametrize(("op", "args", "want"), CASES, ids=[f"{o.name} {n}" for n, (o, _, _) in enumerate(CASES)])
def test_case(op: OpDef, args: dict[str, Any], want: Any) -> None:
    (got,) = run_op(op, given(args))
    assert got.shape == np.shape(want) and got.dtype == given(args)["values" if op is i.ONE_HOT else "x"].data.dtype
    np.testing.assert_array_equal(got, want)


SIZED: list[tuple[OpDef, dict[str, Any], Any]] = [
    (i.COMPRESS, {"x": (SQUARE, F32), "keep": ([False, True], B8), "axis": 1}, [[[1], [4], [7]]]),
    (i.COMPRESS, {"x": ([b"a", b"b", b"c"], STR), "keep": ([True, False, True], B8), "axis": 0}, [[b"a", b"c"]]),
    (i.UNIQUE_ALONG, {"x": ([7, 3, 7, 1], I64), "axis": 0, "ordered": False},
     [[7, 3, 1], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]),
    (i.UNIQUE_ALONG, {"x": ([7, 3, 7, 1], F32), "axis": 0, "ordered": True},
     [[1, 3, 7], [3, 1, 0], [2, 1, 2, 0], [1, 1, 2]]),
    (i.UNIQUE_ALONG, {"x": ([[2, 1, 2], [5, 4, 5]], I32), "axis": 1, "ordered": True},
     [[[1, 2], [4, 5]], [1, 0], [1, 0, 1], [1, 2]]),
    (i.UNIQUE_ALONG, {"x": ([[b"b", b"a"], [b"a", b"a"], [b"b", b"a"]], STR), "axis": 0, "ordered": False},
     [[[b"b", b"a"], [b"a", b"a"]], [0, 1], [0, 1, 0], [2, 1]])]


@pytest.mark.parametrize(("op", "args", "want"), SIZED, ids=[f"{o.name} {n}" for n, (o, _, _) in enumerate(SIZED)])
def test_sizes_follow_from_values(op: OpDef, args: dict[str, Any], want: Any) -> None:
    assert of_any_size(op, args, len(want)) == want


FAULTS: list[tuple[OpDef, dict[str, Any], str]] = [
    (i.GATHER_ELEMENTS, {"x": (SQUARE, F32), "indices": ints([3]), "axis": 0}, "index 3 is not in"),
    (i.SCATTER_ELEMENTS, scattered(F32, 0) | {"indices": longs(1, -4, 0)}, "index -4 is not in"),
    (i.SCATTER_TUPLES, at_tuples(0) | {"indices": longs([1], [3], [0])}, "index 3 is not in"),
    (i.WRITE_ROWS, written(1, False, 1, 2), "index 3 is not in"),
    (i.GATHER_ND_BATCHED, {"x": (CUBE, F32), "indices": ints([2], [0]), "batch": 1}, "index 2 is not in")]


@pytest.mark.parametrize(("op", "args", "text"), FAULTS, ids=[f"{o.name} {t}" for o, _, t in FAULTS])
def test_fault(op: OpDef, args: dict[str, Any], text: str) -> None:
    with pytest.raises(NnxError, match=text):
        run_op(op, given(args))


def test_elements_of_any_type_are_moved() -> None:
    x = tensor(np.array([1.5, -2, 3]), BF16)
    at = {"indices": tensor([2, 0], I64), "axis": 0}
    (got,) = run_op(i.SCATTER_ELEMENTS, {"x": x, "updates": tensor(np.array([9, 8]), BF16), "fold": 0, **at})
    assert got.dtype == BF16.dtype and got.tolist() == [8, -2, 9]
    grid = tensor([1, 2, 3], Q8, Quant(0.5, 7))
    (got,) = run_op(i.GATHER_ELEMENTS, {"x": grid, "indices": tensor([2, 0], I32), "axis": 0})
    assert got.tolist() == [3, 1]
