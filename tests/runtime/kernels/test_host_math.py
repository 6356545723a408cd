"""Functions of elements, running sums and bits, by hand; LiteRT's answers stand in the importers' cases."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.ops import host_math as h
from nnx_convert.schema import OpDef
from nnx_convert.types import C64, F16, F32, F64, I16, I32, I64, Q8, Q8S, U32, Quant, Tensor, Type

nan, inf = math.nan, math.inf
ROWS = [[1, 2, 3], [4, 5, 6]]
# operation, x of a type, the other arguments, the output
CASES: list[tuple[OpDef, tuple[Any, Type], dict[str, Any], Any]] = [
    (h.SIGN, ([-2.5, 0, -0.0, 7, nan, -inf], F32), {}, [-1, 0, 0, 1, 0, -1]),
    (h.SIGN, ([-3, 0, 9], I64), {}, [-1, 0, 1]), (h.SIGN, ([-3, 0, 9], F16), {}, [-1, 0, 1]),
    (h.GELU, ([0, 1, -1, 10, -10], F64), {"approximate": False},
     [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in (0, 1, -1, 10, -10)]),
    (h.GELU, ([0, 1, -1], F32), {"approximate": True}, [0, 0.841192, -0.158808]),
    (h.GELU, ([1], F16), {"approximate": False}, [0.8413]),
    (h.BUCKETIZE, ([-3, -1, 0.5, 9, nan], F32), {"boundaries": ([-1, 0.5], F32)}, [0, 1, 2, 2, 2]),
    (h.BUCKETIZE, ([-3, 1], I64), {"boundaries": ([], F32)}, [0, 0]),
    (h.CUMSUM, (ROWS, I32), {"axis": 1, "exclusive": False, "reverse": False}, [[1, 3, 6], [4, 9, 15]]),
    (h.CUMSUM, (ROWS, I32), {"axis": -1, "exclusive": True, "reverse": False}, [[0, 1, 3], [0, 4, 9]]),
    (h.CUMSUM, (ROWS, F32), {"axis": 1, "exclusive": False, "reverse": True}, [[6, 5, 3], [15, 11, 6]]),
    (h.CUMSUM, (ROWS, F32), {"axis": 0, "exclusive": True, "reverse": True}, [[4, 5, 6], [0, 0, 0]]),
    (h.CUMSUM, ([2**31 - 1, 1], I32), {"axis": 0, "exclusive": False, "reverse": False}, [2**31 - 1, -2**31]),
    (h.BITWISE_XOR, ([0b1100, -1], I32), {"y": ([0b1010, 1], I32)}, [0b0110, -2]),
    (h.BITWISE_XOR, ([[255], [1]], Q8), {"y": ([15], Q8)}, [[240], [14]]),
    (h.RIGHT_SHIFT, ([-16, 17, -1, 5], I16), {"y": ([2, 4, 99, -3], I16)}, [-4, 1, -1, 5]),
    (h.RIGHT_SHIFT, ([2**32 - 1, 8], U32), {"y": ([31, 40], U32)}, [1, 0]),
    (h.REAL, ([1 + 2j], C64), {}, [1]), (h.IMAG, ([1 + 2j], C64), {}, [2]),
    (h.FAKE_QUANT, ([-9, -0.3, 0.3, 9], F32), {"least": -1.5, "most": 1.5, "bits": 2, "narrow": False},
     [-2, 0, 0, 1]),
    (h.FAKE_QUANT, ([0.49999997, 0.5, 1.5, 2.4999998], F32), {"least": 0.0, "most": 255.0, "bits": 8, "narrow": False},
     [0, 1, 2, 2]),
    (h.FAKE_QUANT, ([-9, -0.3, 0.8, 9], F32), {"least": -1.0, "most": 1.0, "bits": 2, "narrow": True}, [-1, 0, 1, 1])]


def operand(value: Any) -> Any:
    """A tensor where a case gives values and a type."""
    if isinstance(value, tuple) and isinstance(value[1], Type):
        return tensor(*value, Quant(1.0, 0) if value[1] in (Q8, Q8S) else None)
    return value


@pytest.mark.parametrize(("op", "x", "rest", "want"), CASES, ids=[f"{c[0].name} {i}" for i, c in enumerate(CASES)])
def test_case(op: OpDef, x: Any, rest: dict[str, Any], want: Any) -> None:
    outs = [Tensor(x[1], None, Quant(1.0, 0))] if x[1] == Q8 else []
    got = run_op(op, {"x": operand(x)} | {n: operand(v) for n, v in rest.items()}, *outs)[0]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-3 if x[1] == F16 else 1e-6)


LITERT = rows("GELU")


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    np.testing.assert_array_equal(*found(row))


@pytest.mark.parametrize(("x", "kind", "to", "want"), [
    ([1.0, -2.0], F32, I32, [0x3F800000, -0x40000000]), ([0x01020304], I32, Q8, [[4, 3, 2, 1]]),
    ([[1, 0], [0, 1]], I16, I32, [1, 65536]), ([1, 2], I16, I32, [0x20001]), ([-1], I64, U32, [[2**32 - 1] * 2])])
def test_bytes_stay_and_the_type_changes(x: Any, kind: Type, to: Type, want: Any) -> None:
    got = run_op(h.BITCAST, {"x": tensor(x, kind), "to": to})[0]
    assert (got.dtype, got.tolist()) == (to.dtype, want)


@pytest.mark.parametrize("op", [h.RANDOM_UNIFORM, h.RANDOM_STANDARD_NORMAL], ids=lambda o: o.name)
def test_random_numbers_follow_from_seeds(op: OpDef) -> None:
    def drawn(seed: int) -> Any:
        return run_op(op, {"shape": tensor([3, 5], I32), "seed": seed, "seed2": 0})[0]
    assert drawn(1).shape == (3, 5) and drawn(1).dtype == np.float32
    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert (drawn(1) != drawn(2)).any() and (drawn(0) != drawn(0)).any()
