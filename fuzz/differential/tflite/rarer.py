"""Steps with operators that few models have."""
from __future__ import annotations

import math

import numpy as np

from ..draw import Unfit
from .elementwise import activation
from .growing import ACT, Growing, Value, step, type_code
from .images import product, said, windows


@step("i", range(5))
def bits(m: Growing, x: Value) -> None:
    """BITWISE_XOR, RIGHT_SHIFT."""
    if x.dtype != "int32" or x.bound > 1e6:
        raise Unfit
    name = m.draw.one(["BITWISE_XOR", "RIGHT_SHIFT"])
    high = 100 if name == "BITWISE_XOR" else 31
    y = m.tensor(x.dtype, x.shape, m.draw.integers(x.shape, 0, high, x.dtype))
    bound = 2.0 ** math.ceil(math.log2(max(x.bound, 128)) + 1)
    m.op(name, [x, y], [m.made(x.dtype, x.shape, -bound, bound)],
         "BitwiseXorOptions" if name == "BITWISE_XOR" else "RightShiftOptions")


@step("f")
def classes(m: Growing, x: Value) -> None:
    """BUCKETIZE, FAKE_QUANT, BITCAST."""
    name = m.draw.one(["BUCKETIZE", "FAKE_QUANT", "BITCAST"])
    if name == "BUCKETIZE":
        ends = sorted({m.draw.real(-3, 3) for _ in range(m.draw.between(1, 6))})
        m.op(name, [x], [m.made("int32", x.shape, 0, len(ends))], "BucketizeOptions", {"Boundaries": ends})
    elif name == "FAKE_QUANT":
        m.op(name, [x], [m.made("float32", x.shape, -6, 6)], "FakeQuantOptions",
             {"Min": m.draw.one([-1.0, -6.0, 0.0, -3.3]), "Max": m.draw.one([1.0, 6.0, 2.7]),
              "NumBits": m.draw.one([8, 8, 4, 16]), "NarrowRange": False})
    else:
        m.op(name, [x], [m.made("int32", x.shape, -2.0 ** 31, 2.0 ** 31)], "BitcastOptions")


@step("b", range(1, 5))
def where(m: Growing, x: Value) -> None:
    """WHERE: the places of what is true."""
    y = m.counted("int64", x.rank)
    m.op("WHERE", [x], [y], "WhereOptions")
    m.forget(y)


@step("fi", range(1, 2))
def unique(m: Growing, x: Value) -> None:
    """UNIQUE, of floats rounded first."""
    if x.kind == "f":
        x = m.op("ROUND", [m.tamed(x)], [m.made("float32", x.shape, x.low, x.high)])
    found, places = m.counted(x.dtype), m.made("int32", x.shape, 0, x.size)
    m.op("UNIQUE", [x], [found, places], "UniqueOptions", {"IdxOutType": type_code("int32")})
    m.forget(found)


@step("fi")
def filled(m: Growing, x: Value) -> None:
    """FILL, RANGE and SPARSE_TO_DENSE."""
    name = m.draw.one(["FILL", "RANGE", "SPARSE_TO_DENSE"])
    if x.dtype == "int64" and name == "RANGE":
        raise Unfit
    if name == "FILL":
        shape = m.draw.shape(m.draw.between(1, 4))
        value = m.constant(x, ())
        m.op(name, [m.indices(shape), value], [m.made(x.dtype, shape, value.low, value.high)], "FillOptions")
    elif name == "RANGE":
        start, count, by = m.draw.between(-5, 5), m.draw.between(1, 20), m.draw.one([1, 2, -1, -3])
        if x.dtype == "uint8" and min(start, start + count * by, by) < 0:
            raise Unfit
        ends = [m.tensor(x.dtype, (), np.array(n, x.dtype)) for n in (start, start + count * by, by)]
        m.op(name, ends, [m.made(x.dtype, (count,), -70, 70)], "RangeOptions")
    else:
        shape = m.draw.shape(m.draw.between(1, 3))
        places = sorted(m.draw.some(range(math.prod(shape)), 1, 5))
        index = np.stack(np.unravel_index(places, shape), -1)
        values = m.constant(x, (len(places),))
        m.op(name, [m.ints(index), m.ints(shape), values, m.constant(x, ())], [m.made(x.dtype, shape, -2, 2)],
             "SparseToDenseOptions")


@step("f", range(2, 5))
def spectrum(m: Growing, x: Value) -> None:
    """RFFT2D, and what a complex number is."""
    x = m.tamed(x)
    rows, columns = (1 << m.draw.between(0, 4) for _ in range(2))
    if 0 in x.shape:
        raise Unfit
    shape = (*x.shape[:-2], rows, columns // 2 + 1)
    both = m.made("complex64", shape)
    m.op("RFFT2D", [x, m.ints([rows, columns])], [both], "Rfft2dOptions")
    m.forget(both)
    name = m.draw.one(["REAL", "IMAG", "COMPLEX_ABS"])
    bound = x.bound * max(1, x.size)
    m.op(name, [both], [m.made("float32", shape, -bound, bound)])


@step("f", range(5, 6))
def transposed_3d(m: Growing, x: Value) -> None:
    """CONV_3D_TRANSPOSE without padding."""
    x = m.tamed(x)
    kernel, strides = ([m.draw.between(1, 3) for _ in range(3)] for _ in range(2))
    outputs = m.draw.one([1, 2, 3])
    sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[1:4], strides, kernel, strict=True)]
    if 0 in x.shape:
        raise Unfit
    weight = m.float32(m.draw.floats((*kernel, outputs, x.shape[4]), -0.5, 0.5))
    shape = [x.shape[0], *sizes, outputs]
    y = product(m, x, shape, 1.0, math.prod(kernel) * x.shape[4])
    m.op("CONV_3D_TRANSPOSE", [m.ints(shape), weight, x], [y], "Conv3DOptions",
         {"Padding": 1, **{f"Stride{c}": s for c, s in zip("DHW", strides, strict=True)},
          "DilationDFactor": 1, "DilationHFactor": 1, "DilationWFactor": 1})


@step("f", range(4, 5), weight=2)
def hybrid_conv(m: Growing, x: Value) -> None:
    """CONV_2D and DEPTHWISE_CONV_2D of floats with filters of bytes."""
    x = m.tamed(x)
    padding, axes = windows(m, x.shape[1:3], True)
    depth = m.draw.chance(0.4)
    outputs = x.shape[3] if depth else m.draw.one([1, 2, 3, 8])
    if 0 in x.shape:
        raise Unfit
    shape = (1, axes[0][0], axes[1][0], outputs) if depth else (outputs, axes[0][0], axes[1][0], x.shape[3])
    scales = m.draw.numbers.uniform(0.002, 0.02, outputs).astype(np.float32)
    weight = m.tensor("int8", shape, m.draw.integers(shape, -127, 127, "int8"), scale=scales.tolist(), zero=0,
                      axis=3 if depth else 0)
    y = product(m, x, [x.shape[0], axes[0][3], axes[1][3], outputs], 1.0, math.prod(shape) // outputs)
    name, table = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depth else ("CONV_2D", "Conv2DOptions")
    more = {"DepthMultiplier": 1} if depth else {}
    m.op(name, [x, weight, *m.bias(x, outputs, scales, 0)], [y], table,
         {**said(padding, axes), **more, ACT: activation(m, x)}, 6 if depth else 5)


@step("f", range(2, 3))
def suppression(m: Growing, x: Value) -> None:
    """NON_MAX_SUPPRESSION_V4 and _V5 of boxes drawn."""
    n, most = m.draw.between(1, 12), m.draw.between(1, 8)
    corners = np.sort(m.draw.floats((n, 2, 2), 0, 2), axis=1).reshape(n, 4)
    boxes = m.fed("float32", (n, 4), corners, 0, 2)
    scores = m.fed("float32", (n,), m.draw.numbers.permutation(n).astype(np.float32) / n, 0, 1)
    inputs: list[Value | int] = [boxes, scores, m.ints(most), m.float32(m.draw.one([0.3, 0.5, 0.8])),
                                 m.float32(m.draw.one([0.0, 0.2]))]
    chosen, valid = m.made("int32", (most,), 0, n), m.made("int32", (), 0, most)
    if m.draw.chance(0.5):
        m.op("NON_MAX_SUPPRESSION_V4", inputs, [chosen, valid], "NonMaxSuppressionV4Options")
    else:
        left = m.made("float32", (most,), 0, 1)
        m.op("NON_MAX_SUPPRESSION_V5", [*inputs, m.float32(m.draw.one([0.0, 0.5]))], [chosen, left, valid],
             "NonMaxSuppressionV5Options")


@step("f", range(3, 4))
def both_ways(m: Growing, x: Value) -> None:
    """BIDIRECTIONAL_SEQUENCE_RNN, its outputs apart or merged."""
    x = m.tamed(x)
    major, merged = m.draw.chance(0.5), m.draw.chance(0.5)
    time, batch, depth = x.shape if major else (x.shape[1], x.shape[0], x.shape[2])
    if 0 in x.shape or time > 12:
        raise Unfit
    spread, sizes = 1 / math.sqrt(depth + 3), list[int]()
    inputs = list[Value | int]([x])
    for _ in range(2):
        units = m.draw.one([1, 2, 3])
        parts = [m.float32(m.draw.floats(s, -spread, spread)) for s in ((units, depth), (units, units), (units,))]
        inputs += [*parts, m.tensor("float32", (batch, units), variable=True)]
        sizes.append(units)
    lead = (time, batch) if major else (batch, time)
    outputs = [m.made("float32", (*lead, n), -1, 1) for n in ([sum(sizes)] if merged else sizes)]
    m.op("BIDIRECTIONAL_SEQUENCE_RNN", [*inputs, -1, -1, -1], outputs, "BidirectionalSequenceRNNOptions",
         {"TimeMajor": major, "MergeOutputs": merged, ACT: 4})
