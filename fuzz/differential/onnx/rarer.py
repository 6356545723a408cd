"""Steps with operators that few models have."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..draw import Unfit
from .growing import Growing, Value, step, type_code


@step("fib", range(1, 5), since=9)
def chosen(m: Growing, x: Value) -> None:
    """NonZero, Compress, Unique: sizes that follow from values."""
    name = m.draw.one(["NonZero", "Compress", *["Unique"] * (m.version >= 11 and x.dtype in ("float32", "int64"))])
    if not x.size:
        raise Unfit
    if name == "NonZero":
        y = m.made("int64", (x.rank, x.size), 0, 1e3)
        m.op(name, [x], [y])
        m.forget(y)
    elif name == "Compress":
        axis = m.draw.between(0, x.rank - 1) if m.draw.chance(0.7) else None
        n = x.size if axis is None else x.shape[axis]
        said = m.draw.integers((m.draw.between(1, n),), 0, 1, "bool")
        said[0] = True
        y = m.made(x.dtype, (n,), x.low, x.high)
        more: dict[str, Any] = {} if axis is None else {"axis": axis}
        m.op(name, [x, m.constant(said)], [y], **more)
        m.forget(y)
    else:
        outputs = [m.made(x.dtype, x.shape, x.low, x.high), *(m.made("int64", (x.size,), 0, 1e3) for _ in range(3))]
        m.op(name, [x], outputs, sorted=m.draw.one([0, 1]))
        m.forget(*outputs)


@step("f", range(4, 5))
def places(m: Growing, x: Value) -> None:
    """MaxPool with places, and MaxUnpool of them; RoiAlign; MaxRoiPool."""
    if 0 in x.shape:
        raise Unfit
    name = m.draw.one(["MaxPool", *["RoiAlign"] * (m.version >= 10)])
    if name == "MaxPool":
        kernel = [m.draw.between(1, min(3, n)) for n in x.shape[2:]]
        sizes = [n // k for n, k in zip(x.shape[2:], kernel, strict=True)]
        if min(sizes) < 1 or m.version < 8:
            raise Unfit
        shape = (*x.shape[:2], *sizes)
        more: dict[str, Any] = {"kernel_shape": kernel, "strides": kernel}
        y, at = m.like(x, shape), m.made("int64", shape, 0, x.size)
        m.op("MaxPool", [x], [y, at], **more)
        if m.version >= 9 and m.draw.chance(0.6) and all(
                n % k == 0 for n, k in zip(x.shape[2:], kernel, strict=True)):
            m.op("MaxUnpool", [y, at], [m.made("float32", x.shape, min(x.low, 0), max(x.high, 0))], **more)
        return
    count = m.draw.between(1, 3)
    corners = np.sort(m.draw.floats((count, 2, 2), 0, 6), axis=1).reshape(count, 4)
    h, w = m.draw.between(1, 3), m.draw.between(1, 3)
    mode = {"coordinate_transformation_mode": m.draw.one(["half_pixel", "output_half_pixel"])} \
        if m.version >= 16 else {}
    m.op("RoiAlign", [x, m.constant(corners), m.constant(m.draw.integers((count,), 0, x.shape[0] - 1, "int64"))],
         [m.made("float32", (count, x.shape[1], h, w), min(x.low, 0), max(x.high, 0))], output_height=h,
         output_width=w, sampling_ratio=m.draw.one([0, 1, 2]), mode=m.draw.one(["avg", "max"]), **mode)


@step("f", range(2, 4), since=10)
def suppression(m: Growing, x: Value) -> None:
    """NonMaxSuppression of boxes drawn."""
    n, classes = m.draw.between(1, 10), m.draw.between(1, 2)
    corners = np.sort(m.draw.floats((1, n, 2, 2), 0, 2), axis=2).reshape(1, n, 4)
    scores = np.stack([m.draw.numbers.permutation(n) for _ in range(classes)])[None].astype(np.float32) / n
    y = m.made("int64", (n * classes, 3), 0, n)
    m.op("NonMaxSuppression", [m.fed(corners), m.fed(scores), m.ints([m.draw.between(1, 5)]),
                               m.constant([m.draw.one([0.3, 0.5])], "float32"), m.constant([0.1], "float32")], [y])
    m.forget(y)


@step("f", range(1, 5), since=11)
def lists(m: Growing, x: Value) -> None:
    """SequenceConstruct, SequenceAt, ConcatFromSequence, SplitToSequence."""
    if 0 in x.shape:
        raise Unfit
    name = m.fresh("s")
    axis = m.draw.axis(x.rank)
    if m.draw.chance(0.5):
        n = x.shape[axis]
        part = m.like(x, [1 if i == axis % x.rank else s for i, s in enumerate(x.shape)])
        m.op("SplitToSequence", [x, m.ints(1)], [name], axis=axis)
        at = m.draw.between(-n, n - 1)
        m.op("SequenceAt", [name, m.ints(at)], [part])
        return
    m.op("SequenceConstruct", [x, x], [name])
    shape = [2 * s if i == axis % x.rank else s for i, s in enumerate(x.shape)]
    m.op("ConcatFromSequence", [name], [m.like(x, shape)], axis=axis)


@step("f", range(2, 5), since=13)
def statistics(m: Growing, x: Value) -> None:
    """MeanVarianceNormalization, GlobalLpPool."""
    if 0 in x.shape or x.rank != 4:
        raise Unfit
    x = m.tamed(x)
    if m.draw.chance(0.5):
        m.op("MeanVarianceNormalization", [x], [m.made("float32", x.shape, -50, 50)],
             axes=m.draw.one([[0, 2, 3], [2, 3], [1, 2, 3]]))
    else:
        bound = x.bound * x.shape[2] * x.shape[3]
        m.op("GlobalLpPool", [x], [m.made("float32", (*x.shape[:2], 1, 1), 0, bound)], p=m.draw.one([1, 2]))


@step("fi", range(2, 3), since=9)
def made_of_shapes(m: Growing, x: Value) -> None:
    """EyeLike and Range."""
    if m.draw.chance(0.5) and x.size:
        m.op("EyeLike", [x], [m.made("float32", x.shape, 0, 1)], k=m.draw.between(-2, 2),
             dtype=type_code("float32"))
    elif m.version >= 11:
        start, count, by = m.draw.between(-5, 5), m.draw.between(1, 20), m.draw.one([1, 2, -1, -3])
        ends = [m.constant(n, x.dtype) for n in (start, start + count * by, by)]
        m.op("Range", ends, [m.made(x.dtype, (count,), -70, 70)])
    else:
        raise Unfit


@step("f", range(2, 4), weight=2)
def transformer(m: Growing, x: Value) -> None:
    """Microsoft's FusedMatMul, Gelu, FastGelu, QuickGelu, BiasGelu, SkipLayerNormalization."""
    x = m.tamed(x)
    n = x.shape[-1]
    if 0 in x.shape:
        raise Unfit
    name = m.draw.one(["FusedMatMul", "Gelu", "FastGelu", "QuickGelu", "BiasGelu",
                       *["SkipLayerNormalization"] * (x.rank == 3)])
    y = m.made("float32", x.shape, -max(x.bound + 3, 60), max(x.bound + 3, 60))
    inputs: list[Value | str] = [x]
    more: dict[str, Any] = {}
    if name == "FusedMatMul":
        columns, turned = m.draw.between(1, 5), m.draw.one([0, 1])
        spread = 1 / math.sqrt(n)
        inputs.append(m.floats((columns, n) if turned else (n, columns), -spread, spread))
        more = {"transB": turned, "alpha": m.draw.one([1.0, 0.5])}
        bound = x.bound * math.sqrt(n) + 1
        y = m.made("float32", (*x.shape[:-1], columns), -bound, bound)
    elif name in ("BiasGelu", "FastGelu"):
        inputs.append(m.floats((n,)))
    elif name == "QuickGelu":
        more = {"alpha": 1.702}
    elif name == "SkipLayerNormalization":
        inputs += [m.floats(x.shape), m.floats((n,)), m.floats((n,))]
    m.op(name, inputs, [y], domain="com.microsoft", **more)
