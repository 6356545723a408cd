"""Steps on codes as quantisers write them: pairs of QuantizeLinear and DequantizeLinear around an operator, and
Microsoft's operators on codes."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..draw import Unfit
from .growing import Growing, Value, step
from .products import BYTES, grid


def coded(m: Growing, x: Value, dtype: str, bound: float) -> tuple[Value, str, str]:
    """x as codes on a grid for numbers up to a bound, their scale and their zero point."""
    scale, zero = grid(m, dtype, bound)
    s, z = m.constant(scale, "float32"), m.constant(zero, dtype)
    return m.op("QuantizeLinear", [x, s, z], [m.made(dtype, x.shape, *BYTES[dtype])]), s, z


def paired(m: Growing, x: Value, dtype: str, bound: float) -> Value:
    """x through such codes, floats again."""
    codes, s, z = coded(m, x, dtype, bound)
    scale, zero = m.constants[s].item(), m.constants[z].item()
    low, high = ((c - zero) * scale for c in BYTES[dtype])
    return m.op("DequantizeLinear", [codes, s, z], [m.made("float32", x.shape, low, high)])


def weights(m: Growing, shape: tuple[int, ...], axis: int, outputs: int, spread: float) -> str:
    """Dequantised constant weights of int8, with a scale per output at times."""
    each = m.version >= 13 and m.draw.chance(0.5)
    scales = np.asarray(m.draw.numbers.uniform(0.5, 1.5, outputs if each else ()) * spread / 127, np.float32)
    codes = m.constant(m.draw.integers(shape, -127, 127, "int8"))
    zero = m.constant(np.zeros(scales.shape, np.int8))
    w = m.made("float32", shape, -spread * 2, spread * 2)
    more: dict[str, Any] = {"axis": axis} if each else {}
    m.op("DequantizeLinear", [codes, m.constant(scales), zero], [w], **more)
    m.forget(w)
    return w.name


@step("f", range(2, 5), since=10, weight=3)
def product(m: Growing, x: Value) -> None:
    """Conv or MatMul between codes, with weights that are dequantised."""
    x, dtype = m.tamed(x), m.draw.one(["uint8", "int8"])
    if 0 in x.shape or x.rank == 3:
        raise Unfit
    x = paired(m, x, dtype, x.bound)
    if x.rank == 2:
        columns = m.draw.between(1, 8)
        spread = 1 / math.sqrt(x.shape[1])
        w = weights(m, (x.shape[1], columns), 1, columns, spread)
        bound = x.bound * 2
        y = m.op("MatMul", [x, w], [m.made("float32", (x.shape[0], columns), -bound, bound)])
    else:
        outputs, kernel = m.draw.between(1, 5), [m.draw.between(1, min(3, n)) for n in x.shape[2:]]
        sizes = [n - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True)]
        spread = 1 / math.sqrt(x.shape[1] * math.prod(kernel))
        w = weights(m, (outputs, x.shape[1], *kernel), 0, outputs, spread)
        bound = x.bound * 2
        y = m.op("Conv", [x, w], [m.made("float32", (x.shape[0], outputs, *sizes), -bound, bound)])
        if m.draw.chance(0.4):
            y = m.op("Relu", [y], [m.made("float32", y.shape, 0, bound)])
    paired(m, y, dtype, bound)


@step("f", range(1, 5), since=10, weight=2)
def element(m: Growing, x: Value) -> None:
    """Add, Mul, activations and pools between codes."""
    x, dtype = m.tamed(x), m.draw.one(["uint8", "int8"])
    if 0 in x.shape:
        raise Unfit
    x = paired(m, x, dtype, x.bound)
    name = m.draw.one(["Add", "Mul", "Sigmoid", "LeakyRelu", "Concat", "Transpose", *["MaxPool"] * (x.rank == 4)])
    if name in ("Add", "Mul"):
        other = m.pick(lambda v: v.kind == "f" and v.shape == x.shape and v.bound < 1e3) or x
        other = paired(m, other, dtype, other.bound)
        bound = x.bound + other.bound if name == "Add" else x.bound * other.bound
        y = m.op(name, [x, other], [m.made("float32", x.shape, -bound, bound)])
    elif name == "Concat":
        y = m.op(name, [x, x], [m.like(x, (2 * x.shape[0], *x.shape[1:]))], axis=0)
    elif name == "Transpose":
        y = m.op(name, [x], [m.like(x, x.shape[::-1])])
    elif name == "MaxPool":
        y = m.op(name, [x], [m.like(x)], kernel_shape=[1, 1])
    else:
        y = m.simple(name, x, -x.bound, x.bound)
    paired(m, y, dtype, max(y.bound, 0.1))


@step("f", range(1, 5), since=10, weight=2)
def microsoft(m: Growing, x: Value) -> None:
    """QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearGlobalAveragePool."""
    tame, shape, dtype = m.tamed(x), x.shape, m.draw.one(["uint8", "int8"])
    if 0 in shape:
        raise Unfit
    given: list[Value | str] = [*coded(m, tame, dtype, tame.bound)]
    name = m.draw.one(["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
                       *["QLinearGlobalAveragePool"] * (x.rank == 4)])
    out, zero = grid(m, dtype, x.bound * 1.5)
    to = [m.constant(out, "float32"), m.constant(zero, dtype)]
    more: dict[str, Any] = {}
    if name in ("QLinearAdd", "QLinearMul"):
        given *= 2
    elif name == "QLinearGlobalAveragePool":
        shape, more = (*x.shape[:2], 1, 1), {"channels_last": 0}
    elif name == "QLinearLeakyRelu":
        more = {"alpha": m.draw.one([0.1, 0.3])}
    m.op(name, [*given, *to], [m.made(dtype, shape, *BYTES[dtype])], domain="com.microsoft", **more)
