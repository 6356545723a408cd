"""Quantisation as ONNX has it, the kernels: against its reference implementation, and against plain loops."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.exact import computed
from nnx_convert.ops import grids
from nnx_convert.types import (
    F8E4M3FN, F8E5M2, F32, F64, F4E2M1, I2, I4, I16, Q8, Q8S, Q16A, U2, U4, Array, Quant, Tensor, Type)

RNG = np.random.default_rng(3)
#: Operand type -> ONNX's number of it.
TYPES: dict[Type, int] = {
    Q8: TensorProto.UINT8, Q8S: TensorProto.INT8, Q16A: TensorProto.UINT16, I16: TensorProto.INT16,
    I4: TensorProto.INT4, U4: TensorProto.UINT4, I2: TensorProto.INT2, U2: TensorProto.UINT2,
    F8E4M3FN: TensorProto.FLOAT8E4M3FN, F8E5M2: TensorProto.FLOAT8E5M2, F4E2M1: TensorProto.FLOAT4E2M1}
PLAIN = Quant(1.0, 0)


def constant(data: Array, type_: Type) -> Value:
    return Value("c", Tensor(type_, data.shape, PLAIN if type_ in (Q8, Q8S, Q16A) else None, data.astype(type_.dtype)))


def made(op: Any, *args: Any, out: Tensor | None = None, **named: Any) -> Array:
    """What an operation on constants gives."""
    found = computed(evaluate, lambda g: g(op, *args, out=out, **named))
    assert found is not None
    return found


def reference(op: str, kind: int, x: Array, scale: Array, zero: Array | None, **attributes: Any) -> Array:
    """What ONNX's own implementation gives."""
    names = ["x", "s", "z"][:2 + (zero is not None)]
    more = {"output_dtype": kind} if zero is None and op == "QuantizeLinear" else {}
    node = helper.make_node(op, names, ["y"], **attributes, **more)
    given = {"x": x, "s": scale} | ({"z": zero} if zero is not None else {})
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items()]
    output = helper.make_tensor_value_info("y", kind if op == "QuantizeLinear" else TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([node], "g", ports, [output]), opset_imports=[
        helper.make_opsetid("", 25)])
    return np.asarray(ReferenceEvaluator(model).run(None, given)[0])


SCALES: dict[str, tuple[Array, dict[str, int]]] = {
    "one": (np.array([0.37], np.float32), {"axis": 0}),
    "axis": (np.array([0.37, 0.5, 1.25], np.float32), {"axis": 1}),
    "last axis": (RNG.uniform(0.1, 2, 5).astype(np.float32), {"axis": -1}),
    "blocks": (RNG.uniform(0.1, 2, (4, 3, 3)).astype(np.float32), {"axis": 2, "block_size": 2}),
}


@pytest.mark.parametrize("how", SCALES)
@pytest.mark.parametrize("type_", TYPES, ids=lambda t: t.name)
def test_codes_are_those_of_the_reference(type_: Type, how: str) -> None:
    scale, attributes = SCALES[how]
    x = (RNG.normal(size=(4, 3, 5)) * 9).astype(np.float32)
    x.reshape(-1)[:6] = [0.185, 0.555, -0.185, 1e8, -1e8, 0]              # halves of the first scale, far, nothing
    zero = None if type_ in (F8E4M3FN, F8E5M2, F4E2M1) else RNG.integers(0, 2, scale.shape).astype(type_.dtype)
    named = {"axis": attributes["axis"], "block": attributes.get("block_size", 0)}
    point = None if zero is None else constant(zero, type_)
    plain = Tensor(type_, None, PLAIN if type_ in (Q8, Q8S, Q16A) else None)
    got = made(grids.QUANTIZE_LINEAR, constant(x, F32), constant(scale, F32), point, saturate=True, to=type_, out=plain,
               **named)
    want = reference("QuantizeLinear", TYPES[type_], x, scale, zero, **attributes)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    back = made(grids.DEQUANTIZE_LINEAR, constant(got, type_), constant(scale, F32), point, to=F32, **named)
    np.testing.assert_array_equal(back, reference("DequantizeLinear", TYPES[type_], want, scale, zero, **attributes))


def test_numbers_that_are_none_and_narrow_floats_that_do_not_saturate() -> None:
    x, one = constant(np.array([np.nan, np.inf, -np.inf, 1e9]), F32), constant(np.array([1.0]), F32)
    more: dict[str, Any] = {"axis": 0, "block": 0}
    got = made(grids.QUANTIZE_LINEAR, x, one, None, saturate=True, to=Q8S, out=Tensor(Q8S, None, PLAIN), **more)
    np.testing.assert_array_equal(got, [-128, 127, -128, 127])
    wide = [made(grids.QUANTIZE_LINEAR, x, one, None, saturate=s, to=F8E5M2, **more).astype(np.float32)
            for s in (True, False)]
    np.testing.assert_array_equal(wide, [[np.nan, 57344, -57344, 57344], [np.nan, np.inf, -np.inf, np.inf]])
    quotient = made(grids.QUANTIZE_LINEAR, constant(np.array([1.0, 2.0]), F64), constant(np.array([0.4]), F64), None,
                    saturate=True, to=Q8, out=Tensor(Q8, None, PLAIN), **more)
    np.testing.assert_array_equal(quotient, [2, 5])


def test_halves_go_to_even_on_a_grid() -> None:
    x = constant(np.arange(-6, 7) * 0.25, F32)
    got = made(grids.QUANTIZE_EVEN, x, to=Q8, out=Tensor(Q8, None, Quant(0.5, 10)))
    np.testing.assert_array_equal(got, 10 + np.rint(np.arange(-6, 7) / 2))
    same = made(grids.RELABEL, constant(np.arange(5), Q8), out=Tensor(Q8, None, Quant(0.5, 10)))
    np.testing.assert_array_equal(same, np.arange(5))


def drawn(*dims: int, signed: bool = False) -> Value:
    kind = Q8S if signed else Q8
    info = np.iinfo(kind.dtype)
    return constant(RNG.integers(info.min, info.max, dims, endpoint=True), kind)


def test_products_of_whole_numbers_are_exact() -> None:
    x, y, zx, zy = drawn(2, 3, 5000), drawn(5000, 4, signed=True), drawn(3, 1), drawn(4, signed=True)
    want = (x.array.astype(np.int64) - zx.array) @ (y.array.astype(np.int64) - zy.array)
    np.testing.assert_array_equal(made(grids.MATMUL_INTEGER, x, y, zx, zy), want)
    np.testing.assert_array_equal(made(grids.MATMUL_INTEGER, x, y, None, None),
                                  x.array.astype(np.int64) @ y.array.astype(np.int64))


@pytest.mark.parametrize(("size", "kernel", "groups"), [
    ((7,), (3,), 1), ((6, 5), (2, 3), 2), ((4, 3, 5), (2, 2, 2), 1)])
def test_convolutions_of_whole_numbers_are_exact(size: tuple[int, ...], kernel: tuple[int, ...], groups: int) -> None:
    rank = len(size)
    x, w = drawn(2, 4, *size), drawn(6, 4 // groups, *kernel, signed=True)
    zx, zw = constant(np.array([9]), Q8), drawn(6, signed=True)
    pads, strides, dilations = (1,) * rank + (0,) * rank, (2,) + (1,) * (rank - 1), (1,) * (rank - 1) + (2,)
    got = made(grids.CONV_INTEGER, x, w, zx, zw, pads, strides, dilations, groups=groups)
    image = np.pad(x.array.astype(np.int64) - 9, [(0, 0), (0, 0), *[(1, 0)] * rank])
    filters = w.array.astype(np.int64) - zw.array.reshape(-1, *(1,) * (rank + 1))
    want = np.zeros(got.shape, np.int64)
    for o, place in product(range(6), np.ndindex(*got.shape[2:])):
        part = slice(o // (6 // groups) * (4 // groups), (o // (6 // groups) + 1) * (4 // groups))
        cut = tuple(slice(p * s, p * s + (k - 1) * d + 1, d)
                    for p, s, k, d in zip(place, strides, kernel, dilations, strict=True))
        want[(slice(None), o, *place)] = (image[(slice(None), part, *cut)] * filters[o]).sum(tuple(range(1, rank + 2)))
    np.testing.assert_array_equal(got, want)


def test_a_row_of_a_recurrence_that_has_ended_keeps_its_state() -> None:
    """The first step of a long row is that of a short one; after its end a row gives zeros."""
    x = constant(RNG.normal(size=(3, 2, 4)), F32)
    w, r = drawn(1, 4, 8, signed=True), drawn(1, 2, 8, signed=True)
    grid = (constant(np.array([0.01]), F32), constant(np.array([0]), Q8S)) * 2

    def run(*lengths: int) -> tuple[Array, Array]:
        build = Build()
        y, h, _ = build.add(grids.DYNAMIC_QUANTIZE_LSTM, x, w, r, None, np.array(lengths), None, None, None, *grid,
                            backward=False, coupled=False, clip=0.0)
        found = [computed(evaluate, lambda g, v=v: (g.nodes.extend(build.nodes), v)[1]) for v in (y, h)]  # type: ignore[misc]
        assert found[0] is not None and found[1] is not None
        return found[0], found[1]
    (y, h), (ended, last) = run(3, 3), run(3, 1)
    np.testing.assert_array_equal(ended[0], y[0])
    np.testing.assert_array_equal(ended[1:, 0, 1], 0)
    np.testing.assert_array_equal(last[0, 1], y[0, 0, 1])
    np.testing.assert_array_equal(h[0], y[-1, 0])
