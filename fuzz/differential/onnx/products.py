"""Steps that sum: matrices, reductions, functions over an axis, recurrent operators, codes."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..draw import Unfit
from ..growing import broadcast
from .growing import Growing, Value, step
from .shaping import axis_of


@step("f", range(1, 6), weight=4)
def matmul(m: Growing, x: Value) -> None:
    """MatMul with vectors, matrices and broadcast batches."""
    x = m.tamed(x)
    depth, columns = x.shape[-1], m.draw.one([1, 2, 3, 5, 9])
    if not depth:
        raise Unfit
    batch = m.draw.broadcast(x.shape[:-2]) if x.rank > 2 else ()
    spread = 1 / math.sqrt(depth)
    bound = x.bound * math.sqrt(depth) + 1
    if m.draw.chance(0.2):
        m.op("MatMul", [x, m.floats((depth,), -spread, spread)],
             [m.made("float32", x.shape[:-1], -bound, bound)])
        return
    y = m.floats((*batch, depth, columns), -spread, spread)
    both = broadcast(batch, x.shape[:-2]) or ()
    shape = (columns,) if x.rank == 1 else (*both, x.shape[-2], columns)
    if x.rank == 1:
        y = m.floats((depth, columns), -spread, spread)
    m.op("MatMul", [x, y], [m.made("float32", shape, -bound, bound)])


@step("f", range(2, 3), weight=2)
def gemm(m: Growing, x: Value) -> None:
    """Gemm with either factor transposed, scaled, and a bias that broadcasts."""
    x = m.tamed(x)
    a, b = m.draw.one([0, 1]), m.draw.one([0, 1])
    rows, depth = x.shape[::-1] if a else x.shape
    columns = m.draw.one([1, 2, 5, 8])
    if 0 in x.shape:
        raise Unfit
    weight = m.floats((columns, depth) if b else (depth, columns), -1, 1)
    alpha, beta = m.draw.one([1.0, 0.5, -2.0]), m.draw.one([1.0, 0.0, 0.25])
    bias = m.floats(m.draw.one([(columns,), (1, columns), (rows, 1), (rows, columns), (1,), ()]))
    added = [bias] if m.version < 11 or m.draw.chance(0.7) else []
    bound = x.bound * depth * 2 + 2
    m.op("Gemm", [x, weight, *added], [m.made("float32", (rows, columns), -bound, bound)], transA=a, transB=b,
         alpha=alpha, beta=beta)


REDUCED = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
           "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"]


@step("fi", range(1, 6), weight=5)
def reduction(m: Growing, x: Value) -> None:
    """A reduction over any axes or all, as an attribute or an input."""
    name = m.draw.one(REDUCED if x.kind == "f" else ["ReduceSum", "ReduceMax", "ReduceMin"])
    x = m.positive(x) if name == "ReduceLogSum" else m.tamed(x)
    axes = m.draw.some(range(x.rank), 1, x.rank)
    whole = m.draw.chance(0.2)
    axes = list(range(x.rank)) if whole else axes
    keep = m.draw.one([0, 1])
    count = math.prod(x.shape[i] for i in axes)
    bound = max(1, x.bound)
    if not count or name == "ReduceProd" and math.log(bound) * count > 12 or x.bound * count > 1e7 or (
            name == "ReduceLogSumExp" and bound > 60):
        raise Unfit
    high = {"ReduceProd": bound ** min(count, 60), "ReduceSumSquare": bound * bound * count}.get(name, bound * count)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    said = [i - (x.rank if m.version >= 11 and m.draw.chance(0.4) else 0) for i in axes]
    y = m.made(x.dtype, shape, -high, high)
    as_input = m.version >= 18 or name == "ReduceSum" and m.version >= 13
    if whole and m.draw.chance(0.7):
        m.op(name, [x], [y], keepdims=keep)
    elif as_input:
        m.op(name, [x, m.ints(said)], [y], keepdims=keep)
    else:
        m.op(name, [x], [y], axes=said, keepdims=keep)


@step("f", range(1, 6), weight=3)
def over_an_axis(m: Growing, x: Value) -> None:
    """Softmax, LogSoftmax, Hardmax as their version means them, LpNormalization."""
    x = m.tamed(x)
    if 0 in x.shape:
        raise Unfit
    name = m.draw.one(["Softmax", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    axis = axis_of(m, x.rank)
    more: dict[str, Any] = {"axis": axis}
    if name == "LpNormalization":
        x = m.positive(x)
        more["p"] = m.draw.one([1, 2])
    low = -2 * x.bound - 10 if name == "LogSoftmax" else 0
    m.op(name, [x], [m.made("float32", x.shape, low, 1)], **more)


@step("f", range(2, 6), since=17, weight=2)
def layer_norm(m: Growing, x: Value) -> None:
    """LayerNormalization from any axis on."""
    x = m.tamed(x)
    axis = m.draw.axis(x.rank)
    shape = x.shape[axis % x.rank:]
    if 0 in x.shape:
        raise Unfit
    bias = [m.floats(shape)] if m.draw.chance(0.6) else []
    bound = 2 * math.sqrt(math.prod(shape)) + 2
    m.op("LayerNormalization", [x, m.floats(shape), *bias], [m.made("float32", x.shape, -bound, bound)], axis=axis,
         epsilon=m.draw.one([1e-5, 1e-2]))


@step("f", range(3, 6), since=21)
def group_norm(m: Growing, x: Value) -> None:
    """GroupNormalization."""
    x, c = m.tamed(x), x.shape[1]
    if 0 in x.shape:
        raise Unfit
    groups = m.draw.one([g for g in range(1, c + 1) if c % g == 0])
    m.op("GroupNormalization", [x, m.floats((c,)), m.floats((c,))], [m.made("float32", x.shape, -100, 100)],
         num_groups=groups)


EQUATIONS = {2: ["ij->ji", "ij->i", "ij->", "ij,jk->ik", "ij,ij->ij", "ij,kj->ik"],
             3: ["bij->bji", "bij,bjk->bik", "bij,jk->bik", "bij->bj", "bij,bkj->bik"]}


@step("f", range(2, 4), since=12)
def einsum(m: Growing, x: Value) -> None:
    """Einsum of one or two operands."""
    x = m.tamed(x)
    equation = m.draw.one(EQUATIONS[x.rank])
    left, _, right = equation.partition("->")
    first, _, second = left.partition(",")
    sizes = dict(zip(first, x.shape, strict=True))
    if 0 in x.shape:
        raise Unfit
    for letter in second:
        sizes.setdefault(letter, m.draw.between(1, 4))
    right_side = [m.floats(tuple(sizes[c] for c in second), -1, 1)] if second else []
    bound = x.bound * x.size + 1
    if bound > 1e6:
        raise Unfit
    m.op("Einsum", [x, *right_side], [m.made("float32", [sizes[c] for c in right], -bound, bound)], equation=equation)


@step("f", range(3, 4), weight=3)
def recurrent(m: Growing, x: Value) -> None:
    """LSTM, GRU and RNN: directions, biases, starts, lengths, peepholes, clips."""
    x = m.tamed(x)
    time, batch, depth = x.shape
    units = m.draw.one([1, 2, 3, 5, 8])
    name, gates = m.draw.one([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    way = m.draw.one(["forward", "reverse", "bidirectional"])
    ways = 2 if way == "bidirectional" else 1
    if 0 in x.shape or time > 12:
        raise Unfit
    spread = 1 / math.sqrt(depth + units)
    inputs: list[Value | str] = [x, m.floats((ways, gates * units, depth), -spread, spread),
                                 m.floats((ways, gates * units, units), -spread, spread)]
    inputs.append(m.floats((ways, 2 * gates * units), -1, 1) if m.draw.chance(0.6) else "")
    inputs.append(m.indices(m.draw.integers((batch,), 1, time, "int32")) if m.draw.chance(0.3) else "")
    inputs.append(m.floats((ways, batch, units), -1, 1) if m.draw.chance(0.4) else "")
    said: dict[str, Any] = {"hidden_size": units, "direction": way}
    state = (ways, batch, units)
    outputs: list[Value | str] = [m.made("float32", (time, ways, batch, units), -1, 1), m.made("float32", state, -1, 1)]
    if name == "LSTM":
        inputs.append(m.floats(state, -1, 1) if m.draw.chance(0.4) else "")
        inputs.append(m.floats((ways, 3 * units), -0.5, 0.5) if m.draw.chance(0.3) else "")
        outputs.append(m.made("float32", state, -20, 20))
    if name == "GRU":
        said["linear_before_reset"] = m.draw.one([0, 1])
    if m.draw.chance(0.2):
        said["clip"] = 0.75
    m.op(name, inputs, outputs, **said)


BYTES = {"uint8": (0, 255), "int8": (-128, 127)}


def grid(m: Growing, dtype: str, bound: float) -> tuple[float, int]:
    """A scale and a zero point for numbers up to a bound."""
    low, high = BYTES[dtype]
    scale = float(np.float32(max(min(bound, 1e4), 1e-3) * 2 / 255 * m.draw.one([1.0, 1.0, 0.7, 1.5, 0.2, 5.0])))
    return scale, m.draw.one([0, low, high, m.draw.between(low, high)])


@step("f", since=10, weight=4)
def quantised(m: Growing, x: Value) -> None:
    """QuantizeLinear and DequantizeLinear, one scale or one per slice of an axis."""
    x, dtype = m.tamed(x), m.draw.one(["uint8", "int8"])
    more: dict[str, Any] = {}
    if m.version >= 13 and x.rank and m.draw.chance(0.25):
        axis = m.draw.axis(x.rank)
        n = x.shape[axis]
        grids = [grid(m, dtype, x.bound) for _ in range(n)]
        scale = m.constant([s for s, _ in grids], "float32")
        zero = m.constant([z for _, z in grids], dtype)
        more["axis"] = axis
    else:
        s, z = grid(m, dtype, x.bound)
        scale, zero = m.constant(s, "float32"), m.constant(z, dtype)
    codes = m.op("QuantizeLinear", [x, scale, zero], [m.made(dtype, x.shape, *BYTES[dtype])], **more)
    if m.draw.chance(0.85):
        bound = max(x.bound, 1) * 12
        m.op("DequantizeLinear", [codes, scale, zero], [m.made("float32", x.shape, -bound, bound)], **more)


@step("f", range(2, 5), since=11)
def dynamic(m: Growing, x: Value) -> None:
    """DynamicQuantizeLinear, and MatMulInteger of what it gives."""
    x = m.tamed(x)
    depth = x.shape[-1]
    if 0 in x.shape:
        raise Unfit
    outputs = [m.made("uint8", x.shape, 0, 255), m.made("float32", (), 0, 100), m.made("uint8", (), 0, 255)]
    codes = m.op("DynamicQuantizeLinear", [x], outputs)
    columns, dtype = m.draw.between(1, 5), m.draw.one(["uint8", "int8"])
    weight = m.constant(m.draw.integers((depth, columns), *BYTES[dtype], dtype))
    zero = m.constant(m.draw.integers((), *BYTES[dtype], dtype)) if dtype == "uint8" and m.draw.chance(0.5) else ""
    bound = 255 * 255 * depth
    m.op("MatMulInteger", [codes, weight, outputs[2], zero],
         [m.made("int32", (*x.shape[:-1], columns), -bound, bound)])


@step("c", range(4, 5), since=10)
def integer_conv(m: Growing, x: Value) -> None:
    """ConvInteger, QLinearConv."""
    if 0 in x.shape or x.dtype != "uint8":
        raise Unfit
    outputs, channels = m.draw.between(1, 4), x.shape[1]
    kernel = [m.draw.between(1, min(3, n)) for n in x.shape[2:]]
    sizes = [n - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True)]
    dtype = m.draw.one(["uint8", "int8"])
    data = m.draw.integers((outputs, channels, *kernel), *BYTES[dtype], dtype)
    weight, shape = m.constant(data), (x.shape[0], outputs, *sizes)
    bound = 255 * 255 * channels * math.prod(kernel)
    zero = m.constant(m.draw.integers((), 0, 255, "uint8"))
    if m.draw.chance(0.5):
        m.op("ConvInteger", [x, weight, zero], [m.made("int32", shape, -bound, bound)])
        return
    scale = float(np.sqrt(channels * math.prod(kernel)) * 0.01)
    bias = [m.constant(m.draw.integers((outputs,), -3000, 3000, "int32"))] if m.draw.chance(0.5) else []
    own = m.constant(0 if dtype == "int8" else 120, dtype)
    m.op("QLinearConv", [x, m.constant(0.02, "float32"), zero, weight, m.constant(0.01, "float32"), own,
                         m.constant(scale, "float32"), m.constant(m.draw.between(0, 255), "uint8"), *bias],
         [m.made("uint8", shape, 0, 255)])
