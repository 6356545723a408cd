"""`rounding="fast"`: native code against the closed forms of XNNPACK, and whole models against XNNPACK itself."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from natively import MACHINES, left_to

from nnx_convert import Model, ModelBuilder, OperandCode
from nnx_convert.runtime.codegen.program import NativeProgram
from nnx_convert.schema import OPS

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Q8S, INT32 = OperandCode.TENSOR_QUANT8_ASYMM_SIGNED, OperandCode.TENSOR_INT32
QPC = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
f32 = np.float32
#: A model, its inputs, and the steps of the output's grid that XNNPACK gives.
Case = tuple[Model, list[Array], Array]


def operand(net: ModelBuilder, value: Array, scale: float, zero: int) -> int:
    return net.add_operand(Q8S, value.shape, scale, zero)


def constant(net: ModelBuilder, value: Array) -> int:
    index = net.add_operand(INT32, value.shape)
    net.set_operand_value(index, value.astype(np.int32))
    return index


def scalars(net: ModelBuilder, *values: int) -> list[int]:
    found = [net.add_operand(OperandCode.INT32, ()) for _ in values]
    for index, value in zip(found, values, strict=True):
        net.set_operand_value(index, value)
    return found


def raw(rng: Rng, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def scale(rng: Rng) -> float:
    return float(f32(0.02 * rng.uniform(0.5, 2)))


def even(x: Array, factor: Array | np.float32) -> Array:
    return np.rint(x.astype(f32) * factor).astype(np.int64)


def finished(net: ModelBuilder, inputs: list[int], name: str, args: list[int], out: int) -> Model:
    net.add(OPS[name], args, [out])
    net.identify_inputs_and_outputs(inputs, [out])
    return net.finish()


def convolution(rng: Rng) -> Case:
    net, (h, w, c, n) = ModelBuilder(), rng.integers(1, 24, 4)
    x, weights, bias = raw(rng, 1, h, w, c), np.maximum(raw(rng, n, 1, 1, c), -127), rng.integers(-3000, 3000, n)
    sx, so, zx, zo = scale(rng), 4 * scale(rng), 7, -9
    each = (0.01 * rng.uniform(0.1, 2, n)).astype(f32)
    place, filters = operand(net, x, sx, zx), net.add_operand(QPC, weights.shape)
    net.set_operand_symm_per_channel_quant_params(filters, 0, each.tolist())
    net.set_operand_value(filters, weights)
    out = net.add_operand(Q8S, (1, h, w, n), so, zo)
    args = [place, filters, constant(net, bias), *scalars(net, 0, 0, 0, 0, 1, 1, 0)]
    sums = (x.astype(np.int64) - zx) @ weights.reshape(n, c).T.astype(np.int64) + bias
    return finished(net, [place], "CONV_2D", args, out), [x], even(sums, f32(sx) * each / f32(so)) + zo


def addition(rng: Rng) -> Case:
    net, shape = ModelBuilder(), tuple(rng.integers(1, 40, 2))
    x, y = raw(rng, *shape), raw(rng, *shape)
    sx, sy, so, zx, zy, zo = scale(rng), scale(rng), 2 * scale(rng), 3, -20, 5
    places = [operand(net, x, sx, zx), operand(net, y, sy, zy)]
    out, sign = net.add_operand(Q8S, shape, so, zo), int(rng.choice([1, -1]))
    a, b = (float(f32(s) / f32(so)) for s in (sx, sy))
    shift = 20 - math.floor(math.log2(max(a, b)))
    ma, mb = (math.floor(r * 2.0 ** shift + 0.5) for r in (a, b))
    sums = (x.astype(np.int64) - zx) * ma + sign * (y.astype(np.int64) - zy) * mb
    model = finished(net, places, "ADD" if sign > 0 else "SUB", [*places, *scalars(net, 0)], out)
    return model, [x, y], (sums + (1 << shift - 1) >> shift) + zo


def product(rng: Rng) -> Case:
    net, shape = ModelBuilder(), tuple(rng.integers(1, 40, 2))
    x, y = raw(rng, *shape), raw(rng, *shape)
    sx, sy, so, zx, zy, zo = scale(rng), scale(rng), scale(rng), 3, -20, 5
    places = [operand(net, x, sx, zx), operand(net, y, sy, zy)]
    out = net.add_operand(Q8S, shape, so, zo)
    products = (x.astype(np.int64) - zx) * (y.astype(np.int64) - zy)
    model = finished(net, places, "MUL", [*places, *scalars(net, 0)], out)
    return model, [x, y], even(products, f32(sx) * f32(sy) / f32(so)) + zo


def mean(rng: Rng) -> Case:
    net, (h, w, c) = ModelBuilder(), rng.integers(2, 24, 3)
    x, s, zero = raw(rng, 1, h, w, c), scale(rng), 3
    place, out = operand(net, x, s, zero), net.add_operand(Q8S, (1, c), s, zero)
    sums = x.astype(np.int64).sum((1, 2)) - zero * int(h * w)
    model = finished(net, [place], "MEAN", [place, constant(net, np.array([1, 2])), *scalars(net, 0)], out)
    return model, [x], even(sums, f32(1) / f32(h * w)) + zero


DRAWS: dict[str, Callable[[Rng], Case]] = {
    "convolution": convolution, "addition": addition, "product": product, "mean": mean}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", DRAWS)
def test_native_code_gives_what_the_closed_forms_give(family: str, machine: str) -> None:
    rng, at = np.random.default_rng(3), replace(MACHINES[machine], fast=True)
    for n in range(12):
        model, given, want = DRAWS[family](rng)
        program = left_to(model, given, at)
        assert all(step.elsewhere for step in program.steps)
        got, = NativeProgram(program, at, 1).run(given)
        np.testing.assert_array_equal(got, np.clip(want, -128, 127), err_msg=str(n))
