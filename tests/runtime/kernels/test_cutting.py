"""Cut, filled up, split and counted by computed numbers, by hand and against NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op
from test_host_arrays import given, ints, of_any_size
from test_indexing import longs

from nnx_convert.errors import NnxError
from nnx_convert.ops import cutting as c
from nnx_convert.schema import OpDef, OpError
from nnx_convert.types import B8, F32, F64, I32, I64, STR, UNKNOWN, Scalar, Tensor, Type

ROWS = np.arange(12).reshape(3, 4)
ENDLESS = 2**63 - 1


def cut(axes: list[int], *bounds: list[int]) -> dict[str, Any]:
    """The arguments of CUT; bounds: begin, end, strides."""
    return {"x": (ROWS, F32), "axes": (axes, I64)} | {
        n: (v, I64) for n, v in zip(("begin", "end", "strides"), bounds, strict=True)}


def padded(values: Any, kind: Type, pads: list[int], mode: int, value: Any = 0, axes: tuple[int, ...] = (0,)
           ) -> dict[str, Any]:
    """The arguments of PAD_BY."""
    return {"x": (values, kind), "pads": (pads, I64), "value": ([value], kind), "axes": (axes, I64), "mode": mode}


CASES: list[tuple[OpDef, dict[str, Any], Any]] = [
    (c.CUT, cut([1], [1], [ENDLESS], [2]), ROWS[:, 1::2]),
    (c.CUT, cut([-1, 0], [-1, -2], [-ENDLESS - 1, 10**9], [-2, 1]), ROWS[-2:, ::-2]),
    (c.CUT, cut([0], [5], [9], [1]), ROWS[5:]),
    (c.PAD_BY, padded([1, 2, 3], F32, [-1, 1], c.CONSTANT), [2, 3, 0]),
    (c.PAD_BY, padded([1, 2, 3], I64, [1, 2], c.CONSTANT, 2**40), [2**40, 1, 2, 3, 2**40, 2**40]),
    (c.PAD_BY, padded([True, False], B8, [0, 1], c.CONSTANT, True), [True, False, True]),
    (c.PAD_BY, padded([b"a"], STR, [1, 0], c.CONSTANT, b"-"), [b"-", b"a"]),
    (c.PAD_BY, padded([1, 2, 3], F64, [2, 1], c.REFLECT), [3, 2, 1, 2, 3, 2]),
    (c.PAD_BY, padded([1, 2, 3], I32, [2, 1], c.EDGE), [1, 1, 1, 2, 3, 3]),
    (c.PAD_BY, padded([1, 2, 3], I32, [2, 1], c.WRAP), [2, 3, 1, 2, 3, 1]),
    (c.PAD_BY, padded([1, 2, 3], F32, [-1, 1], c.REFLECT), [2, 3, 2]),
    (c.PAD_BY, padded(ROWS, F32, [1, -1], c.EDGE, axes=(-2,)), ROWS[[0, 0, 1]]),
    (c.PAD_BY, padded([1, 2], F32, [-3, 0], c.CONSTANT), None),
    (c.UNSQUEEZE, {"x": (ROWS, F32), "axes": longs(-1, 0)}, ROWS[None, :, :, None]),
    (c.SQUEEZE_TO, {"x": (ROWS[:, None, None], F32), "rank": 2}, ROWS),
    (c.SQUEEZE_TO, {"x": ([[7]], I64), "rank": 0}, [7]), (c.SQUEEZE_TO, {"x": (ROWS, F32), "rank": 1}, None),
    (c.EYE, {"shape": ints(2, 3), "k": 1, "to": F32}, np.eye(2, 3, 1)),
    (c.EYE, {"shape": ints(2, 2), "k": -1, "to": I64}, np.eye(2, k=-1))]


@pytest.mark.parametrize(("op", "args", "want"), CASES, ids=[f"{o.name} {n}" for n, (o, _, _) in enumerate(CASES)])
def test_case(op: OpDef, args: dict[str, Any], want: Any) -> None:
    if want is None:
        with pytest.raises((NnxError, OpError)):
            op.check([v for v in given(args).values() if isinstance(v, Tensor)] + [
                Scalar(Type.INT32, v) for v in args.values() if isinstance(v, int)], ())
            run_op(op, given(args))
        return
    (got,) = run_op(op, given(args))
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(got, want)


PARTS: list[tuple[OpDef, dict[str, Any], list[list[int]]]] = [
    (c.SPLIT_BY, {"x": ([1, 2, 3, 4], F32), "sizes": longs(1, 3, 0), "axis": 0}, [[1], [2, 3, 4], []]),
    (c.CHUNK, {"x": ([1, 2, 3, 4, 5, 6, 7], I64), "axis": -1, "count": 3}, [[1, 2, 3], [4, 5, 6], [7]]),
    (c.CHUNK, {"x": ([1, 2, 3, 4, 5], F32), "axis": 0, "count": 4}, [[1, 2], [3, 4], [5], []])]


@pytest.mark.parametrize(("op", "args", "want"), PARTS, ids=[o.name for o, _, _ in PARTS])
def test_parts(op: OpDef, args: dict[str, Any], want: list[list[int]]) -> None:
    assert [v.tolist() for v in run_op(op, given(args))] == want


COUNTS = [(0, 5, 2, I64, [0, 2, 4]), (5, 0, -2, I32, [5, 3, 1]), (1, 5, -1, I64, []),
          (0, 1, 0.25, F32, [0, 0.25, 0.5, 0.75]), (1, 1, 1, F64, []), (2**40, 2**40 + 2, 1, I64, [2**40, 2**40 + 1])]


@pytest.mark.parametrize(("start", "limit", "delta", "kind", "want"), COUNTS)
def test_count(start: float, limit: float, delta: float, kind: Type, want: list[float]) -> None:
    args = {"start": ([start], kind), "limit": ([limit], kind), "delta": ([delta], kind)}
    assert of_any_size(c.COUNT, args) == [want]


FAULTS: list[tuple[OpDef, dict[str, Any], str]] = [
    (c.COUNT, {"start": ([1], F32), "limit": ([5], F32), "delta": ([0], F32)}, "counts from 1.0 to 5.0 by 0"),
    (c.SPLIT_BY, {"x": ([1, 2, 3], F32), "sizes": longs(1, 1), "axis": 0}, "splits 3 into"),
    (c.SPLIT_BY, {"x": ([1, 2, 3], F32), "sizes": longs(4, -1), "axis": 0}, "would have the shape|splits 3 into")]


@pytest.mark.parametrize(("op", "args", "text"), FAULTS, ids=[f"{o.name} {t}" for o, _, t in FAULTS])
def test_fault(op: OpDef, args: dict[str, Any], text: str) -> None:
    with pytest.raises((NnxError, OpError), match=text):
        run_op(op, given(args))


def test_ranks_are_known_before_values_are() -> None:
    x, open_ = Tensor(F32, (3, UNKNOWN)), Tensor(I64, (1,))
    args = {"x": x, "begin": open_, "end": open_, "axes": open_, "strides": open_}
    assert c.CUT.infer(args, 1)[0].rank == 2
    assert c.UNSQUEEZE.infer({"x": x, "axes": open_}, 1)[0].rank == 3
    known = Tensor(I64, (1,), None, np.array([0]))
    assert c.CUT.infer(args | {"axes": known}, 1)[0].dims == (UNKNOWN, UNKNOWN)
