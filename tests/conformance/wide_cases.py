"""Models of one operator on int16 activations, for a comparison with LiteRT's reference kernels."""
from __future__ import annotations

from typing import Any

import numpy as np
from litert_cases import ACT, fed
from one_operator import Case, T, const

X, Y, Z = 0.0021, 0.0037, 0.0113
#: Powers of two, for which additions shift.
P, Q = 2.0**-11, 2.0**-12


def wide(*shape: int, scale: float = X) -> T:
    """An int16 input or output."""
    return fed("int16", *shape, scale=scale)


def two(name: str, act: int = 0, scales: tuple[float, float, float] = (X, Y, Z), **named: Any) -> Case:
    """Arithmetic of two tensors, one broadcast."""
    a, b, c = scales
    options = {ACT: act, **named} if name in ("ADD", "SUB", "MUL") else {}
    return Case(name, [wide(2, 3, 4, scale=a), wide(3, 1, scale=b)], [wide(2, 3, 4, scale=c)], "",
                f"{name.capitalize()}Options" if options else None, options)


def alike(name: str, act: int, scales: tuple[float, float, float], **named: Any) -> Case:
    """Arithmetic of two tensors of one shape (LiteRT's shifts end the process where one is broadcast)."""
    a, b, c = scales
    return Case(name, [wide(3, 40, scale=a), wide(3, 40, scale=b)], [wide(3, 40, scale=c)], "",
                f"{name.capitalize()}Options", {ACT: act, **named})


def one(name: str, scale: float = X, out: float = Z, options: str | None = None, **named: Any) -> Case:
    """A function of each element."""
    return Case(name, [wide(3, 40, scale=scale)], [wide(3, 40, scale=out)], "", options, named)


def reduced(name: str, out: float = X) -> Case:
    """A reduction over the last two axes."""
    return Case(name, [wide(2, 3, 4, 5), const([1, 2])], [wide(2, 5, scale=out)], "", "ReducerOptions")


def pool(name: str, act: int = 0) -> Case:
    """A pool of 3 x 2."""
    values = {"StrideW": 2, "StrideH": 1, "FilterWidth": 2, "FilterHeight": 3, "Padding": 0, ACT: act}
    return Case(name, [wide(2, 7, 6, 3)], [wide(2, 7, 3, 3)], "", "Pool2DOptions", values)


def resized(**named: bool) -> Case:
    """RESIZE_BILINEAR to other sizes."""
    return Case("RESIZE_BILINEAR", [wide(2, 5, 4, 3), const([9, 7])], [wide(2, 9, 7, 3)], "", "ResizeBilinearOptions",
                named)


CASES: dict[str, list[Case]] = {
    **{f"int16 {name}": [two(name, act) for act in range(4)] for name in ("ADD", "SUB", "MUL")},
    **{f"int16 {name} by shifts": [alike(name, act, s, PotScaleInt16=True) for act in range(4)
                                   for s in ((P, Q, P), (Q, P, P), (P, P, P))] for name in ("ADD", "SUB")},
    **{f"int16 {name} not by shifts": [two(name, act, s, PotScaleInt16=False) for act in range(4)
                                       for s in ((P, Q, P), (Q, P, P), (P, P, P))] for name in ("ADD", "SUB")},
    "int16 MAXIMUM": [two("MAXIMUM", scales=(X, X, X)), two("MINIMUM", scales=(X, X, X))],
    **{f"int16 {name}": [one(name)] for name in ("RELU", "RELU6")},
    "int16 LEAKY_RELU": [one("LEAKY_RELU", options="LeakyReluOptions", Alpha=a) for a in (0.2, -0.3, 1.5)],
    **{f"int16 {name}": [one(name, s, 2.0**-15) for s in (X, P, 2.0**-12, 0.0003)] for name in ("LOGISTIC", "TANH")},
    "int16 SOFTMAX": [one("SOFTMAX", 0.0003, 2.0**-15, "SoftmaxOptions", Beta=1.0)],
    "int16 GELU": [one("GELU", 0.0002, 0.0002, "GeluOptions", Approximate=a) for a in (False, True)],
    "int8 GELU": [Case("GELU", [fed("int8", 3, 90, scale=s, zero=z)], [fed("int8", 3, 90, scale=s / 2, zero=-z)], "",
                       "GeluOptions", {"Approximate": a})
                  for a in (False, True) for s, z in ((0.05, 3), (0.02, -60), (0.11, 17))],
    "int16 EXP": [one("EXP", 0.0001, 0.001)], "int16 LOG": [one("LOG", 0.0003, 0.0004)],
    "int16 ABS": [one("ABS"), one("ABS", X, X)],
    "int16 MEAN": [reduced("MEAN"), reduced("MEAN", Y)], "int16 REDUCE_MAX": [reduced("REDUCE_MAX")],
    "int16 REDUCE_MIN": [reduced("REDUCE_MIN")],
    "int16 AVERAGE_POOL_2D": [pool("AVERAGE_POOL_2D", act) for act in range(4)],
    "int16 MAX_POOL_2D": [pool("MAX_POOL_2D", act) for act in range(4)],
    "int16 RESIZE_BILINEAR": [resized(), resized(AlignCorners=True), resized(HalfPixelCenters=True)],
    "int16 CONCATENATION": [Case("CONCATENATION", [wide(2, 3), wide(2, 4)], [wide(2, 7)], "", "ConcatenationOptions",
                                 {"Axis": 1})],
    "int16 PAD": [Case("PAD", [wide(2, 3), const([[0, 1], [2, 0]])], [wide(3, 5)], "")],
    "int16 TRANSPOSE": [Case("TRANSPOSE", [wide(2, 3, 4), const([2, 0, 1])], [wide(4, 2, 3)], "")],
    "int16 STRIDED_SLICE": [Case("STRIDED_SLICE", [wide(4, 6), const([1, 5]), const([4, 0]), const([2, -2])],
                                 [wide(2, 3)], "", "StridedSliceOptions")],
    "int16 SPLIT": [Case("SPLIT", [const(np.asarray(1)), wide(2, 6)], [wide(2, 3), wide(2, 3)], "", "SplitOptions",
                         {"NumSplits": 2})],
    "int16 PACK": [Case("PACK", [wide(2, 3), wide(2, 3)], [wide(2, 2, 3)], "", "PackOptions",
                        {"Axis": 1, "ValuesCount": 2})],
    "int16 GATHER": [Case("GATHER", [wide(5, 3), const([4, 0, 2])], [wide(3, 3)], "", "GatherOptions")],
    "int16 EQUAL": [Case("EQUAL", [wide(4, 3), wide(4, 3, scale=Y)], [fed("bool", 4, 3)], "")],
    "int16 LESS": [Case("LESS", [wide(4, 3), wide(4, 3, scale=Y)], [fed("bool", 4, 3)], "")],
    "int16 QUANTIZE": [
        Case("QUANTIZE", [wide(40)], [fed("int8", 40, scale=0.6, zero=-9)], ""),
        Case("QUANTIZE", [fed("int8", 40, scale=0.6, zero=-9)], [wide(40)], ""),
        Case("QUANTIZE", [wide(40)], [wide(40, scale=Y)], ""),
        Case("QUANTIZE", [wide(40)], [fed("int32", 40, scale=0.0001)], ""),
        Case("QUANTIZE", [fed("float32", 40)], [wide(40, scale=0.0001)], "")],
    "int16 DEQUANTIZE": [Case("DEQUANTIZE", [wide(40)], [fed("float32", 40)], "")],
    "int16 MUL to bytes": [Case("MUL", [wide(3, 4, scale=P), wide(3, 4, scale=P)], [fed("int8", 3, 4, scale=0.01)], "",
                                "MulOptions", {ACT: 0})],
}
