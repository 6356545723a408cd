"""Composites left whole, and the host's own operations."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.errors import NnxError
from nnx_convert.ops import host as h
from nnx_convert.runtime.bind import Options, bind
from nnx_convert.schema import OpDef
from nnx_convert.types import B8, C64, F16, F32, F64, I32, I64, Q8, Q8S, Quant, Tensor, Type

LITERT = rows(*(o.name for o in vars(h).values() if isinstance(o, OpDef)))


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    got, golden = found(row)
    np.testing.assert_array_equal(got, golden)


F = F32
ROOM = np.arange(24).reshape(2, 3, 4)
# operation, arguments (an array with its type is a tensor), the output
CASES: list[tuple[OpDef, dict[str, Any], Any]] = [
    (h.LEAKY_RELU, {"x": ([-2, -0.0, 3], F), "alpha": 0.25}, [-0.5, 0, 3]),
    (h.LEAKY_RELU, {"x": ([-2, 3], F), "alpha": 2.0}, [-4, 3]),
    (h.LEAKY_RELU, {"x": ([-2, 3], F), "alpha": -1.0}, [2, 3]),
    (h.LEAKY_RELU, {"x": ([-2, 3], F16), "alpha": 0.5}, [-1, 3]),
    (h.SQUARE, {"x": ([-3, 0.5], F)}, [9, 0.25]), (h.SQUARE, {"x": ([-3, 65536], I32)}, [9, 0]),
    (h.CEIL, {"x": ([1.2, -1.2, -0.5], F)}, [2, -1, 0]),
    (h.COS, {"x": ([0], F)}, [1]), (h.COS, {"x": ([np.pi], F64)}, [-1]),
    (h.ROUND, {"x": ([0.5, 1.5, 2.5, -0.5, -1.5, 1e9], F)}, [0, 2, 2, 0, -2, 1e9]),
    (h.RELU_0_TO_1, {"x": ([-1, 0.5, 2], F)}, [0, 0.5, 1]),
    (h.SQUARED_DIFFERENCE, {"x": ([[1, 2], [3, 4]], F), "y": ([1, 6], F)}, [[0, 16], [4, 4]]),
    (h.SQUARED_DIFFERENCE, {"x": ([1], I64), "y": ([2**20], I64)}, [(2**20 - 1) ** 2]),
    (h.FLOOR_DIV, {"x": ([7, -7, 7, -7], I32), "y": ([2, 2, -2, -2], I32)}, [3, -4, -4, 3]),
    (h.FLOOR_DIV, {"x": ([5.5, -7], F), "y": ([1.1, 2], F)}, [4, -4]),
    (h.FLOOR_MOD, {"x": ([7, -7, 7, -7], I64), "y": ([2, 2, -2, -2], I64)}, [1, 1, -1, -1]),
    (h.FLOOR_MOD, {"x": ([5.5, -5.5], F), "y": ([2, 2], F)}, [1.5, 0.5]),
    (h.TRUNC_DIV, {"x": ([7, -7, 7, -7, -6, 0], I32), "y": ([2, 2, -2, -2, 2, -5], I32)}, [3, -3, -3, 3, -3, 0]),
    (h.TRUNC_DIV, {"x": ([7], F), "y": ([2], F)}, [3.5]),
    (h.BROADCAST_TO, {"x": ([[1], [2]], I32), "shape": ([2, 2, 2], I32)}, [[[1, 1], [2, 2]]] * 2),
    (h.BROADCAST_TO, {"x": ([True], B8), "shape": ([2], I32)}, [True, True]),
    (h.WHERE, {"cond": ([[True], [False]], B8), "x": ([1, 2], F), "y": ([9], F)}, [[1, 2], [9, 9]]),
    (h.WHERE, {"cond": ([True, False], B8), "x": (np.ones((2, 3)), F), "y": ([0], F)}, [[1] * 3, [0] * 3]),
    (h.WHERE, {"cond": ([True, False, True], B8), "x": (np.ones((3, 3)), F), "y": ([0], F)}, [[1, 0, 1]] * 3),
    (h.GATHER_BATCHED, {"x": (ROOM, F), "indices": ([[2, 0], [1, 1]], I32), "axis": 1, "batch": 1},
     [ROOM[0, [2, 0]], ROOM[1, [1, 1]]]),
    (h.GATHER_BATCHED, {"x": (ROOM, F), "indices": ([[3], [0]], I32), "axis": 2, "batch": 1},
     [ROOM[0][:, [3]], ROOM[1][:, [0]]]),
    (h.GATHER_BATCHED, {"x": (ROOM, F), "indices": ([2, 0], I32), "axis": 1, "batch": 0}, ROOM[:, [2, 0]]),
    (h.GATHER_ND, {"x": (ROOM, F), "indices": ([[1, 2], [0, 0]], I32)}, [ROOM[1, 2], ROOM[0, 0]]),
    (h.GATHER_ND, {"x": (ROOM, F), "indices": ([[1, 2, 3]], I32)}, [23]),
    (h.SCATTER_ND, {"indices": ([[1], [3], [1]], I32), "updates": ([5, 6, 7], F), "shape": ([4], I32)}, [0, 12, 0, 6]),
    (h.SCATTER_ND, {"indices": ([[1, 0]], I32), "updates": ([[5, 6]], I32), "shape": ([2, 2, 2], I32)},
     [[[0, 0], [0, 0]], [[5, 6], [0, 0]]]),
    (h.TO_MASK, {"x": ([True, False], B8)}, [1, 0]), (h.TO_BOOL, {"x": ([0, 1, 255], Q8)}, [False, True, True]),
    (h.COMPLEX_ABS, {"x": ([3 + 4j], C64)}, [5]),
    (h.ATAN2, {"x": ([1, -1, 0], F), "y": ([1, -1, -1], F)}, np.arctan2([1, -1, 0], [1, -1, -1])),
    (h.MATMUL, {"x": (ROOM, F), "y": (ROOM, F), "adj_x": False, "adj_y": True}, ROOM @ ROOM.swapaxes(1, 2)),
    (h.MATMUL, {"x": (ROOM, F), "y": (ROOM[0], F), "adj_x": True, "adj_y": False},
     ROOM.swapaxes(1, 2) @ ROOM[0]),
    (h.MATMUL, {"x": (ROOM, I64), "y": (ROOM * 2**30, I64), "adj_x": False, "adj_y": True},
     (ROOM @ ROOM.swapaxes(1, 2)) * 2**30)]


def operand(value: Any) -> Any:
    """A tensor where a case gives values and a type."""
    if isinstance(value, tuple) and isinstance(value[1], Type):
        return tensor(value[0], value[1], Quant(1.0, 0) if value[1] in (Q8, Q8S) else None)
    return value


@pytest.mark.parametrize(("op", "args", "want"), CASES, ids=[f"{o.name} {i}" for i, (o, _, _) in enumerate(CASES)])
def test_case(op: OpDef, args: dict[str, Any], want: Any) -> None:
    got = run_op(op, {n: operand(v) for n, v in args.items()})[0]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


FAULTS: list[tuple[OpDef, dict[str, Any], str]] = [
    (h.FLOOR_DIV, {"x": ([1], I32), "y": ([0], I32)}, "division by zero"),
    (h.FLOOR_MOD, {"x": ([1], I32), "y": ([0], I32)}, "division by zero"),
    (h.TRUNC_DIV, {"x": ([1], I64), "y": ([0], I64)}, "division by zero"),
    (h.GATHER_ND, {"x": (ROOM, F), "indices": ([[1, 3]], I32)}, r"index 3 is not in \[0, 3\)"),
    (h.GATHER_ND, {"x": (ROOM, F), "indices": ([[-1, 0]], I32)}, r"index -1 is not in \[0, 2\)"),
    (h.GATHER_BATCHED, {"x": (ROOM, F), "indices": ([[9], [0]], I32), "axis": 1, "batch": 1}, "index 9"),
    (h.SCATTER_ND, {"indices": ([[4]], I32), "updates": ([5], F), "shape": ([4], I32)}, "index 4"),
    (h.COS, {"x": ([1], I32)}, "no kernel for TENSOR_INT32")]


@pytest.mark.parametrize(("op", "args", "text"), FAULTS, ids=[f"{o.name} {t}" for o, _, t in FAULTS])
def test_fault(op: OpDef, args: dict[str, Any], text: str) -> None:
    with pytest.raises(NnxError, match=text):
        run_op(op, {n: operand(v) for n, v in args.items()})


def test_matmul_of_bytes() -> None:
    """Integers summed exactly, then one multiplier; 300 products of the extremes need more than float32 holds."""
    x, y = np.full((1, 300), -128), np.full((300, 2), 127)
    got = run_op(h.MATMUL, {"x": tensor(x, Q8S, Quant(0.5, 127)), "y": tensor(y, Q8S, Quant(0.25, -128)),
                            "adj_x": False, "adj_y": False}, Tensor(Q8S, None, Quant(19000.0, 7)))[0]
    assert got.tolist() == [[7 + round(-255 * 255 * 300 * 0.125 / 19000)] * 2]


SCHEMES = [(1, (1, 1, 1)), (2, (1, 1, 1)), (1, (2, 1, 2)), (2, (1, 2, 2))]


@pytest.mark.parametrize("kind", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(("scheme", "strides"), SCHEMES, ids=str)
def test_conv_3d(scheme: int, strides: tuple[int, int, int], kind: Type) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.integers(-3, 4, (2, 4, 5, 6, 2)), rng.integers(-2, 3, (2, 3, 2, 2, 3)), np.array([1, 0, -9])
    sizes = [-(-n // s) if scheme == 1 else (n - k) // s + 1
             for n, k, s in zip(x.shape[1:4], w.shape[:3], strides, strict=True)]
    heads = [max((o - 1) * s + k - n, 0) // 2 if scheme == 1 else 0
             for o, n, k, s in zip(sizes, x.shape[1:4], w.shape[:3], strides, strict=True)]
    want = np.zeros((2, *sizes, 3)) + b
    for at in np.ndindex(*sizes):
        for tap in np.ndindex(*w.shape[:3]):
            cell = [o * s + t - p for o, s, t, p in zip(at, strides, tap, heads, strict=True)]
            if all(0 <= c < n for c, n in zip(cell, x.shape[1:4], strict=True)):
                want[(slice(None), *at)] += x[(slice(None), *cell)] @ w[tap]
    sd, sh, sw = strides
    for bias, act in ((b, 1), (None, 0)):
        args = {"x": tensor(x, kind), "w": tensor(w, kind), "b": None if bias is None else tensor(bias, kind),
                "scheme": scheme, "sd": sd, "sh": sh, "sw": sw, "act": act}
        got = run_op(h.CONV_3D, args)[0]
        np.testing.assert_array_equal(got, np.maximum(want, 0) if act else want - b)


@pytest.mark.parametrize("length", [(4, 8), (2, 4), (8, 16)], ids=str)
def test_rfft(length: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32)
    got = run_op(h.RFFT, {"x": tensor(x, F32), "length": tensor(length, I32)})[0]
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, np.fft.rfft2(x, length), atol=1e-4)


def sized(op: OpDef, **args: Tensor) -> Any:
    """The output of an operation whose size follows from values."""
    from nnx_convert import ModelBuilder
    b = ModelBuilder()
    inputs = [b.add_operand(t.type, t.shape) for t in args.values()]
    out = b.add_operand(op.infer(dict(args), 1)[0].type, (0, *(2,) * (next(iter(args.values())).rank - 1)))
    b.add(op, inputs, [out])
    b.identify_inputs_and_outputs(inputs, [out])
    program = bind(b.finish(), list(args.values()), Options())
    return program.constants[out]


@pytest.mark.parametrize("kind", [B8, F32, I64], ids=lambda t: t.name)
def test_non_zero(kind: Type) -> None:
    got = sized(h.NON_ZERO, x=tensor([[0, 1], [1, 1]], kind))
    assert (got.dtype, got.tolist()) == (np.int64, [[0, 1], [1, 0], [1, 1]])


def test_segment_sum() -> None:
    x = tensor([[1, 2], [3, 4], [5, 6]], F32)
    assert sized(h.SEGMENT_SUM, x=x, ids=tensor([0, 0, 2], I32)).tolist() == [[4, 6], [0, 0], [5, 6]]
    with pytest.raises(NnxError, match="ascending"):
        sized(h.SEGMENT_SUM, x=x, ids=tensor([1, 0, 2], I32))
