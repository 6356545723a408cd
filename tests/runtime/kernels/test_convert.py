"""Casts and quantisation: type by type, and the edges where TFLite's answer is its own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import found, rows
from litert_rows import Row
from one_op import run_op, tensor

from nnx_convert.ops import convert as c
from nnx_convert.ops.host import REQUANTIZE, host_twin
from nnx_convert.runtime.kernels.elements import PIECE
from nnx_convert.schema import OpDef
from nnx_convert.types import (
    B8, C64, F16, F32, F64, I16, I32, I64, Q8, Q8S, QPC, Q16S, U32, ChannelQuant, Quant, Tensor, Type)

LITERT = rows("CAST", "QUANTIZE", "DEQUANTIZE", "REQUANTIZE")
HOST_CAST = host_twin(c.CAST)
WIDE = [3e9, -3e9, 300, -5, 1.8, -1.8, np.inf, -np.inf, np.nan]
MOST, LEAST = 2**31 - 1, -2**31

# operation, type and values given, type and values wanted
CASTS: list[tuple[OpDef, Type, list[Any], Type, list[Any]]] = [
    (c.CAST, I32, [-1, 256, 7], Q8, [0, 255, 7]), (HOST_CAST, I32, [-1, 256, 7], Q8, [255, 0, 7]),
    (c.CAST, F32, WIDE, I32, [MOST, LEAST, 300, -5, 1, -1, MOST, LEAST, MOST]),
    (c.CAST, F16, [300, -5, 1.8, -1.8], Q8, [255, 0, 1, 0]), (c.CAST, Q8, [0, 200], F32, [0, 200]),
    (c.CAST, Q8, [0, 200], I32, [0, 200]), (c.CAST, I32, [MOST, 5], F16, [np.inf, 5]),
    (HOST_CAST, I64, [2**32 + 5, -1], I32, [5, -1]), (HOST_CAST, F64, [2.0**63, -2.0**63, 1e5], I64,
                                                      [2**63 - 1, -2**63, 100000]),
    (HOST_CAST, F32, [5e9, -5, 2.5], U32, [2**32 - 1, 0, 2]), (HOST_CAST, I32, [40000, -1], I16, [-25536, -1]),
    (HOST_CAST, F32, [0, -0.0, 0.1, np.nan], B8, [False, False, True, True]),
    (HOST_CAST, B8, [True, False], F32, [1, 0]),
    (HOST_CAST, C64, [1 + 2j], F32, [1]), (HOST_CAST, F32, [3], C64, [3 + 0j])]


@pytest.mark.parametrize("row", [r for _, r in LITERT], ids=[n for n, _ in LITERT])
def test_as_litert(row: Row) -> None:
    got, golden = found(row)
    np.testing.assert_array_equal(got, golden)


@pytest.mark.parametrize(("op", "kind", "x", "to", "want"), CASTS,
                         ids=[f"{o.name} {a.name} to {b.name}" for o, a, _, b, _ in CASTS])
def test_cast(op: OpDef, kind: Type, x: list[Any], to: Type, want: list[Any]) -> None:
    with np.errstate(all="ignore"):
        got = run_op(op, {"x": tensor(x, kind, Quant(0.5, 3) if kind == Q8 else None), "to": to})[0]
    assert got.dtype == to.dtype
    assert got.tolist() == want


@given(st.lists(st.floats(-2.0**33, 2.0**33, width=32), min_size=1), st.floats(2.0**-6, 4, width=32),
       st.integers(-128, 127), st.sampled_from([Q8S, I16, I32]))
@settings(max_examples=150)
def test_quantize(values: list[float], scale: float, zero: int, to: Type) -> None:
    """A float32 division; what no int32 holds becomes the least, and wraps with the zero point."""
    info = np.iinfo(to.dtype)

    def formula(v: float) -> int:
        q = scalars.away(float(np.float32(v) / np.float32(scale)))
        q = q if LEAST <= q <= MOST else LEAST
        return scalars.clamp(scalars.wrap(q + zero), int(info.min), int(info.max))
    got = run_op(c.QUANTIZE, {"x": tensor(values, F32), "to": to}, Tensor(to, None, Quant(scale, zero)))[0]
    assert got.tolist() == [formula(v) for v in values]


def test_quantize_in_pieces_and_from_float16() -> None:
    x = np.linspace(-70, 70, PIECE + 77, dtype=np.float32)
    for kind in (F32, F16):
        t = tensor(x.round(1) if kind == F16 else x, kind)
        exact = np.asarray(t.data, np.float32)
        want = np.clip(np.trunc(exact * 2 + np.copysign(np.float32(0.5), exact)) + 3, 0, 255)
        got = run_op(c.QUANTIZE, {"x": t, "to": Q8}, Tensor(Q8, None, Quant(0.5, 3)))[0]
        np.testing.assert_array_equal(got, want)


def test_per_channel() -> None:
    grid = ChannelQuant((0.5, 0.25), 1)
    x = tensor([[1.0, 1.0], [-0.25, 100.0]], F32)
    got = run_op(c.QUANTIZE, {"x": x, "to": QPC}, Tensor(QPC, None, grid))[0]
    assert got.tolist() == [[2, 4], [-1, 127]]
    for to in (F32, F16):
        assert run_op(c.DEQUANTIZE, {"x": tensor(got, QPC, grid), "to": to})[0].tolist() == [[1, 1], [-0.5, 31.75]]


@pytest.mark.parametrize("to", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(("kind", "quant"), [(Q8, Quant(0.1, 7)), (Q8S, Quant(0.1, 0)), (Q16S, Quant(0.1, 0)),
                                             (I32, Quant(0.001, 0))], ids=lambda v: getattr(v, "name", ""))
def test_dequantize_rounds_once(kind: Type, quant: Quant, to: Type) -> None:
    info = np.iinfo(kind.dtype)
    q = np.linspace(int(info.min), int(info.max), 300).astype(kind.dtype)
    want = (np.float64(np.float32(quant.scale)) * (q.astype(np.int64) - quant.zero)).astype(np.float32)
    with np.errstate(over="ignore"):
        got = run_op(c.DEQUANTIZE, {"x": tensor(q, kind, quant), "to": to})[0]
        np.testing.assert_array_equal(got, want.astype(to.dtype))


@given(st.lists(st.integers(-32768, 32767), min_size=1), st.floats(2.0**-10, 2, width=32),
       st.floats(2.0**-10, 2, width=32), st.integers(-128, 127), st.sampled_from([Q16S, I32]))
@settings(max_examples=80)
def test_requantize(values: list[int], si: float, so: float, zo: int, kind: Type) -> None:
    m, s = scalars.multiplier(si / so)
    got = run_op(REQUANTIZE, {"x": tensor(values, kind, Quant(si, 0)), "to": Q8S}, Tensor(Q8S, None, Quant(so, zo)))[0]
    assert got.tolist() == [scalars.clamp(scalars.scale32(v, m, s) + zo, -128, 127) for v in values]
