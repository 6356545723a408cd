"""What moves elements moves those of every type: of the types NumPy has not, texts too, as their codes would be."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.ops import elementwise as e, gather, host as h, indexing, shape as s
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OpDef
from nnx_convert.types import (
    B8, C128, F8E8M0, F32, I32, NARROW_FLOATS, NARROW_INTS, STR, Tensor, Type)

TYPES = (*NARROW_FLOATS, *NARROW_INTS, C128, STR)
CODES = np.array([[0, 1, 2], [3, 1, 0]])

# operation, arguments: X is the array of codes, lists are index tensors
X = object()
CASES: list[tuple[OpDef, dict[str, Any]]] = [
    (s.RESHAPE, {"x": X, "shape": [3, 2]}), (s.TRANSPOSE, {"x": X, "perm": [1, 0]}),
    (s.CONCATENATION, {"xs": (X, X), "axis": 1}), (s.PACK, {"axis": 0, "xs": (X, X)}),
    (s.SPLIT, {"x": X, "axis": 1, "count": 3}), (s.SLICE, {"x": X, "begin": [0, 1], "size": [2, 2]}),
    (s.STRIDED_SLICE, {"x": X, "begin": [1, 2], "end": [0, 0], "strides": [-1, -2], "begin_mask": 0, "end_mask": 2,
                       "shrink_mask": 0}),
    (s.MIRROR_PAD, {"x": X, "paddings": [[0, 0], [1, 2]], "mode": 0}), (s.TILE, {"x": X, "multiples": [2, 2]}),
    (s.REVERSE, {"x": X, "axis": [1]}), (s.EXPAND_DIMS, {"x": X, "axis": 0}), (s.SQUEEZE, {"x": X, "dims": None}),
    (gather.GATHER, {"x": X, "axis": 1, "indices": [2, 0]}), (h.BROADCAST_TO, {"x": X, "shape": [2, 2, 3]}),
    (h.GATHER_ND, {"x": X, "indices": [[1, 2], [0, 1]]}),
    (h.WHERE, {"cond": [[True], [False]], "x": X, "y": X}),
    (e.SELECT, {"cond": [[True, False, True]] * 2, "x": X, "y": X}), (indexing.GATHER_ELEMENTS, {
        "x": X, "indices": [[2, 0, 1], [0, 0, 1]], "axis": 1})]


def elements(type_: Type) -> np.ndarray[Any, Any]:
    """Different values of a type, one for each code."""
    if type_ == STR:
        table = np.empty(4, object)
        table[:] = [b"a", b"", b"ccc", b"\xff"]
        return table[CODES]
    numbers = np.exp2(CODES) if type_ == F8E8M0 else CODES           # which has no zero
    return numbers.astype(np.float32).astype(type_.dtype)


def made(value: Any, array: np.ndarray[Any, Any], type_: Type) -> Any:
    """An argument with tensors in the place of lists and of X."""
    if value is X:
        return Tensor(type_, array.shape, None, array)
    if isinstance(value, tuple):
        return tuple(made(v, array, type_) for v in value)
    if isinstance(value, list):
        return tensor(value, B8 if np.asarray(value).dtype == bool else I32)
    return value


def moved(op: OpDef, args: dict[str, Any], array: np.ndarray[Any, Any], type_: Type) -> list[np.ndarray[Any, Any]]:
    given = {n: made(v, array, type_) for n, v in args.items()}
    return run_op(host_twin(op), given, *[Tensor(type_, None)] * given.get("count", 0))


@pytest.mark.parametrize("type_", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize(("op", "args"), CASES, ids=lambda v: v.name if isinstance(v, OpDef) else "")
def test_elements_are_moved(op: OpDef, args: dict[str, Any], type_: Type) -> None:
    found = moved(op, args, elements(type_), type_)
    plain = moved(op, args, np.arange(6, dtype=np.float32).reshape(2, 3), F32)
    flat = elements(type_).reshape(-1)
    for got, at in zip(found, plain, strict=True):
        assert got.dtype == type_.dtype and got.tolist() == flat[at.astype(int)].tolist()


@pytest.mark.parametrize("type_", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("op", [e.EQUAL, e.NOT_EQUAL], ids=lambda o: o.name)
def test_elements_are_compared(op: OpDef, type_: Type) -> None:
    x = Tensor(type_, (2, 3), None, elements(type_))
    y = Tensor(type_, (3,), None, np.ascontiguousarray(elements(type_)[0]))
    found, = run_op(host_twin(op), {"x": x, "y": y})
    assert found.tolist() == ((CODES == CODES[0]) == (op is e.EQUAL)).tolist()


@pytest.mark.parametrize("type_", [t for t in TYPES if t not in (STR, C128)], ids=lambda t: t.name)
def test_a_number_stands_around(type_: Type) -> None:
    x = Tensor(type_, (2, 3), None, elements(type_))
    found, = run_op(host_twin(s.PAD_V2), {"x": x, "paddings": tensor([[1, 0], [0, 1]], I32), "value": 1})
    want = np.pad(elements(type_).astype(np.float32), ((1, 0), (0, 1)), constant_values=1)
    assert found.dtype == type_.dtype and found.astype(np.float32).tolist() == want.tolist()
