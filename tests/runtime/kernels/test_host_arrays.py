"""Diagonals, windows, segments, elements by their index, by hand; LiteRT's answers stand in the importers' cases."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.errors import NnxError
from nnx_convert.ops import host_arrays as h
from nnx_convert.runtime.bind import once
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, F16, F32, I32, I64, STR, UNKNOWN, Tensor, Type

ROWS = np.arange(6).reshape(2, 3)
CUBE = np.arange(24).reshape(2, 3, 4)
LOW, HIGH = float(np.finfo(np.float32).min), 2**31 - 1


def ints(*values: Any) -> tuple[Any, Type]:
    """Operands of INT32."""
    return list(values), I32


def windows(x: Any, kind: Type, start: Any, function: int, *numbers: list[int]) -> dict[str, Any]:
    """The arguments of REDUCE_WINDOW; numbers: sizes, strides, dilations."""
    sizes, strides, dilations = numbers
    return {"x": (x, kind), "start": ([start], kind), "sizes": (sizes, I32), "strides": (strides, I32),
            "dilations": (dilations, I32), "function": function}


def bags(combiner: int) -> dict[str, Any]:
    """Two rows of one bag, none of the next, one of the last."""
    return {"lookups": ints(1, 2, 0), "indices": ints([0, 0], [0, 1], [2, 0]), "shape": ints(3, 2),
            "weights": ([1, 3, 2], F32), "values": ([[1, 1], [2, 4], [6, 8]], F32), "combiner": combiner}


# operation, arguments (values with their type are a tensor), the output
CASES: list[tuple[OpDef, dict[str, Any], Any]] = [
    (h.SHAPE, {"x": (CUBE, F32)}, [2, 3, 4]),
    (h.MATRIX_DIAG, {"x": ([[1, 2], [3, 4]], I64)}, [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]),
    (h.MATRIX_SET_DIAG, {"x": (ROWS, F32), "diagonal": ([9, 8], F32)}, [[9, 1, 2], [3, 8, 5]]),
    (h.REVERSE_SEQUENCE, {"x": (ROWS, F32), "lengths": ints(2, 3), "axis": 1, "batch": 0}, [[1, 0, 2], [5, 4, 3]]),
    (h.REVERSE_SEQUENCE, {"x": (ROWS, I32), "lengths": ints(0, 1, 2), "axis": 0, "batch": 1}, [[0, 1, 5], [3, 4, 2]]),
    (h.DYNAMIC_UPDATE_SLICE, {"x": (ROWS, F32), "update": ([[9]], F32), "start": ints(1, 1)}, [[0, 1, 2], [3, 9, 5]]),
    (h.DYNAMIC_UPDATE_SLICE, {"x": (ROWS, I64), "update": ([[9, 8]], I64), "start": ints(-5, 7)},
     [[0, 9, 8], [3, 4, 5]]),
    (h.DILATE, {"x": ([1, 2, 3], I32), "dilations": ints(3), "value": ([-1], I32)}, [1, -1, -1, 2, -1, -1, 3]),
    (h.DILATE, {"x": (np.zeros((0, 2)), F32), "dilations": ints(2, 2), "value": ([0], F32)}, np.zeros((0, 3))),
    (h.REDUCE_WINDOW, windows([1, 2, 3, 4, 5], I32, 10, h.SUM, [3], [2], [1]), [16, 22]),
    (h.REDUCE_WINDOW, windows([1, 2, 3, 4, 5], F32, 2, h.PRODUCT, [2], [1], [3]), [8, 20]),
    (h.REDUCE_WINDOW, windows([4, 2, 3], I32, 9, h.LEAST, [2], [1], [1]), [2, 2]),
    (h.REDUCE_WINDOW, windows([[4, 2], [3, 1]], F32, LOW, h.MOST, [2, 1], [1, 1], [1, 1]), [[4, 2]]),
    (h.REDUCE_WINDOW, windows([True, False, True], B8, True, h.EVERY, [1], [1], [1]), [True, False, True]),
    (h.REDUCE_WINDOW, windows([True, False, False], B8, False, h.ANY, [2], [1], [1]), [True, False]),
    (h.SPARSE_TO_DENSE, {"indices": ints(2, 0, 2), "shape": ints(4), "values": ([5, 6, 7], F32),
                         "default": ([-1], F32)}, [6, -1, 7, -1]),
    (h.SPARSE_TO_DENSE, {"indices": ints([0, 1], [1, 0]), "shape": ints(2, 2), "values": ([9], I64),
                         "default": ([0], I64)}, [[0, 9], [9, 0]]),
    (h.EMBEDDING_LOOKUP_SPARSE, bags(h.BAG_SUM), [[20, 28], [0, 0], [2, 2]]),
    (h.EMBEDDING_LOOKUP_SPARSE, bags(h.BAG_MEAN), [[5, 7], [0, 0], [1, 1]]),
    (h.EMBEDDING_LOOKUP_SPARSE, bags(h.BAG_ROOT), [[20 / 10**0.5, 28 / 10**0.5], [0, 0], [1, 1]]),
    *((op, {"x": ([[1, 2], [3, 4], [5, 6], [7, 8]], kind), "ids": ints(2, 0, 2, -1), "count": ints(3)}, want)
      for op, kind, want in ((h.UNSORTED_SEGMENT_SUM, F32, [[3, 4], [0, 0], [6, 8]]),
                             (h.UNSORTED_SEGMENT_PROD, I32, [[3, 4], [1, 1], [5, 12]]),
                             (h.UNSORTED_SEGMENT_MAX, F32, [[3, 4], [LOW, LOW], [5, 6]]),
                             (h.UNSORTED_SEGMENT_MIN, I32, [[3, 4], [HIGH, HIGH], [1, 2]]))),
    (h.UNSORTED_SEGMENT_SUM, {"x": (ROWS, I64), "ids": ints([0, 1, 0], [1, 1, 1]), "count": ints(2)}, [2, 13])]


def operand(value: Any) -> Any:
    """A tensor where a case gives values and a type."""
    return tensor(*value) if isinstance(value, tuple) and isinstance(value[1], Type) else value


def given(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a case."""
    return {n: operand(v) for n, v in args.items()}


@pytest.mark.parametrize(("op", "args", "want"), CASES, ids=[f"{o.name} {i}" for i, (o, _, _) in enumerate(CASES)])
def test_case(op: OpDef, args: dict[str, Any], want: Any) -> None:
    got = run_op(op, given(args))[0]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def of_any_size(op: OpDef, args: dict[str, Any], outs: int = 1) -> Any:
    """The outputs of an operation whose sizes follow from values."""
    made = given(args)
    found = once(op, made, tuple(Tensor(t.type, (UNKNOWN,) * t.rank) for t in op.infer(made, outs)))
    assert found is not None
    return [v.tolist() for v in found]


BOXES = [[0, 0, 2, 2], [2, 2, 0, 0.2], [5, 5, 6, 6]], F32
SCORES = [0.5, 0.9, 0.9], F32
PIXELS = np.arange(4.0).reshape(1, 2, 2, 1), F32


def resized(nearest: bool, height: int, width: int) -> dict[str, Any]:
    """The arguments of RESIZE."""
    return {"x": PIXELS, "size": ints(height, width), "nearest": nearest, "align": False, "half": False}


SIZED: list[tuple[OpDef, dict[str, Any], Any]] = [
    (h.RANGE, {"start": ([5], I64), "limit": ([0], I64), "delta": ([-2], I64)}, [[5, 3, 1]]),
    (h.RANGE, {"start": ([1], F32), "limit": ([1], F32), "delta": ([0.5], F32)}, [[]]),
    (h.TOPK, {"x": ([[3, 1, 3, 2]], I32), "k": ints(3)}, [[[3, 3, 2]], [[0, 2, 3]]]),
    (h.TOPK, {"x": ([3, 1], F32), "k": ints(0)}, [[], []]),
    (h.UNIQUE, {"x": ([7, 3, 7, 7, 1], I64)}, [[7, 3, 1], [0, 1, 0, 0, 2]]),
    (h.UNIQUE, {"x": ([], F32)}, [[], []]),
    (h.RESIZE, resized(True, 2, 4), [[[[[0], [0], [1], [1]], [[2], [2], [3], [3]]]]]),
    (h.RESIZE, resized(False, 1, 4), [[[[[0], [0.5], [1], [1]]]]]),
    (h.NON_MAX_SUPPRESSION, {"boxes": BOXES, "scores": SCORES, "most": ints(3), "iou_threshold": ([0.5], F32),
                             "score_threshold": ([0], F32), "sigma": ([0], F32)},
     [[1, 2, 0], [np.float32(0.9), np.float32(0.9), 0], [2]])]


@pytest.mark.parametrize(("op", "args", "want"), SIZED, ids=[f"{o.name} {i}" for i, (o, _, _) in enumerate(SIZED)])
def test_sizes_follow_from_values(op: OpDef, args: dict[str, Any], want: Any) -> None:
    assert of_any_size(op, args, len(want)) == want


def test_a_range_of_floats_rounds_at_each_step() -> None:
    (found,) = of_any_size(h.RANGE, {"start": ([0], F32), "limit": ([1], F32), "delta": ([0.1], F32)})
    total, want = np.float32(0), []
    while len(want) < 10:
        want.append(float(total))
        total += np.float32(0.1)
    assert found == want


FAULTS: list[tuple[OpDef, dict[str, Any], str]] = [
    (h.RANGE, {"start": ([1], I32), "limit": ([5], I32), "delta": ([0], I32)}, "counts from 1 to 5 by 0"),
    (h.RANGE, {"start": ([1], F32), "limit": ([5], F32), "delta": ([-1], F32)}, "counts from"),
    (h.RANGE, {"start": ([0], F32), "limit": ([1e9], F32), "delta": ([1e-3], F32)}, "elements are asked for"),
    (h.RESIZE, resized(True, 1 << 15, 1 << 14), "536870912 elements"),
    (h.TOPK, {"x": ([3, 1], F32), "k": ints(3)}, "the 3 largest of 2"),
    (h.REVERSE_SEQUENCE, {"x": (ROWS, F32), "lengths": ints(2, 4), "axis": 1, "batch": 0}, "a length is not in"),
    (h.UNSORTED_SEGMENT_SUM, {"x": (ROWS, F32), "ids": ints(0, 2), "count": ints(2)}, "index 2 is not in"),
    (h.SPARSE_TO_DENSE, {"indices": ints(4), "shape": ints(4), "values": ([5], F32), "default": ([0], F32)},
     "index 4 is not in"),
    (h.EMBEDDING_LOOKUP_SPARSE, bags(0) | {"lookups": ints(1, 3, 0)}, "index 3 is not in"),
    (h.RESIZE, resized(True, 0, 4), "an image of 0 by 4")]


@pytest.mark.parametrize(("op", "args", "text"), FAULTS, ids=[f"{o.name} {t}" for o, _, t in FAULTS])
def test_fault(op: OpDef, args: dict[str, Any], text: str) -> None:
    with pytest.raises(NnxError, match=text):
        run_op(op, given(args))


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(("scheme", "size"), [(1, (2, 6, 5)), (1, (2, 5, 5)), (2, (3, 7, 6)), (2, (3, 8, 6))], ids=str)
def test_conv_3d_transpose(scheme: int, size: tuple[int, int, int], kind: Type) -> None:
    rng, strides = np.random.default_rng(0), (1, 2, 1)
    x, w, b = rng.integers(-3, 4, (2, 2, 3, 5, 2)), rng.integers(-2, 3, (2, 3, 2, 3, 2)), np.array([1, 0, -9])
    heads = [max((-(-n // s) - 1) * s + k - n, 0) // 2 if scheme == 1 else 0
             for n, k, s in zip(size, w.shape[:3], strides, strict=True)]
    want = np.zeros((2, *size, 3)) + b
    for at in np.ndindex(*x.shape[1:4]):
        for tap in np.ndindex(*w.shape[:3]):
            cell = [i * s + t - p for i, s, t, p in zip(at, strides, tap, heads, strict=True)]
            if all(0 <= c < n for c, n in zip(cell, size, strict=True)):
                want[(slice(None), *cell)] += x[(slice(None), *at)] @ w[tap].T
    args = {"shape": tensor([2, *size, 3], I32), "w": tensor(w, kind), "x": tensor(x, kind), "scheme": scheme,
            "sd": 1, "sh": 2, "sw": 1}
    np.testing.assert_array_equal(run_op(h.CONV_3D_TRANSPOSE, {**args, "b": tensor(b, kind), "act": 1})[0],
                                  np.maximum(want, 0))
    np.testing.assert_array_equal(run_op(h.CONV_3D_TRANSPOSE, {**args, "b": None, "act": 0})[0], want - b)


TEXT = b"The quick  brown\tfox "
GRAMS = [
    (2, 0, False, [b"The quick", b"quick brown", b"brown fox"]),
    (3, 1, False, [b"The quick brown", b"The quick fox", b"The brown fox", b"quick brown fox"]),
    (2, 9, True, [b"The quick", b"The brown", b"The fox", b"The", b"quick brown", b"quick fox", b"quick", b"brown fox",
                  b"brown", b"fox"]), (5, 0, True, [])]


@pytest.mark.parametrize(("size", "skip", "every", "want"), GRAMS)
def test_runs_of_words(size: int, skip: int, every: bool, want: list[bytes]) -> None:
    """LiteRT's answers, in its order."""
    text = Tensor(STR, (1,), None, np.array([TEXT], object))
    args = {"x": text, "size": size, "skip": skip, "every": every}
    (found,) = once(h.SKIP_GRAM, args, (Tensor(STR, (UNKNOWN,)),)) or [None]
    assert found is not None and found.dtype == object and list(found) == want
