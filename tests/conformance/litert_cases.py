"""Models of one operator with weights and inputs drawn by a seed, for a comparison with LiteRT's reference kernels."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from one_operator import Case, T

Rng = np.random.Generator
ACT = "FusedActivationFunction"
CONV, DEPTHWISE, TRANSPOSE = "Conv2DOptions", "DepthwiseConv2DOptions", "TransposeConvOptions"
DENSE, MATMUL = "FullyConnectedOptions", "BatchMatMulOptions"
LIMITS = {"int8": 127, "int4": 7, "uint8": 255, "int16": 32767}


def ints(r: Rng, shape: Sequence[int], dtype: str = "int8", scale: Any = 0.03, **named: Any) -> T:
    """Constant integers over all of their range; symmetric where they are signed."""
    low = 0 if dtype == "uint8" else -LIMITS[dtype]
    values = r.integers(low, LIMITS[dtype] + 1, tuple(shape))
    return T(dtype, tuple(shape), values, scale, named.pop("zero", 0), **named)


def channels(r: Rng, shape: Sequence[int], axis: int, dtype: str = "int8") -> T:
    """Constant weights with a scale for each slice of an axis."""
    return ints(r, shape, dtype, r.uniform(0.001, 0.05, shape[axis]).astype(np.float32), axis=axis)


def floats(r: Rng, *shape: int) -> T:
    """A float constant."""
    return T("float32", shape, r.normal(size=shape).astype(np.float32))


def bias(r: Rng, x: Any, w: T, axis: int, dtype: str) -> list[T]:
    """The bias beside x and weights as a list; an empty one where it has no type."""
    shape = w.shape or ()
    if not dtype:
        return []
    if dtype == "float32":
        return [floats(r, shape[axis])]
    scale = np.float32(x[1]) * np.asarray(w.scale, np.float32)
    return [T(dtype, shape[axis:axis + 1], r.integers(-2000, 2000, shape[axis]), scale, 0)]


def typed(b: str) -> dict[str, int]:
    """The option that says what type a bias beside int16 has."""
    return {"QuantizedBiasType": {"int32": 2, "int64": 4}[b]} if b.startswith("int") else {}


def fed(dtype: str, *shape: int, scale: float | None = None, zero: int = 0) -> T:
    """An input or an output."""
    return T(dtype, shape, None, scale, None if scale is None else zero)


def strided(r: Rng, act: int, same: int) -> dict[str, Any]:
    """Strides and dilations, not both beyond 1."""
    stride = int(r.integers(1, 3))
    dilation = 1 if stride > 1 else int(r.integers(1, 3))
    return {"StrideW": stride, "StrideH": stride, "DilationWFactor": dilation, "DilationHFactor": dilation,
            "Padding": same, ACT: act}


def positions(size: int, k: int, o: dict[str, Any]) -> int:
    """The positions of a window along an axis."""
    reach = (k - 1) * o["DilationHFactor"] + 1 if o["Padding"] else 1
    return -(-(size - reach + 1) // o["StrideH"])


def conv(seed: int, x: tuple[str, float | None, int], y: tuple[str, float | None, int], w: str = "int8",
         per_channel: bool = True, b: str = "int32", groups: int = 1, zero: int = 0) -> Case:
    """CONV_2D of 2 images."""
    r = np.random.default_rng(seed)
    o, (kh, kw, c, units) = strided(r, seed % 4, seed // 4 % 2), (3, 2, 4, 6)
    shape = (units, kh, kw, c // groups)
    weights = channels(r, shape, 0, w) if per_channel else ints(r, shape, w, zero=zero)
    out = (2, positions(7, kh, o), positions(6, kw, o), units)
    return Case("CONV_2D", [fed(x[0], 2, 7, 6, c, scale=x[1], zero=x[2]), weights, *bias(r, x, weights, 0, b)],
                [fed(y[0], *out, scale=y[1], zero=y[2])], "", CONV, o | typed(b))


def depthwise(seed: int, x: tuple[str, float | None, int], y: tuple[str, float | None, int], w: str = "int8",
              per_channel: bool = True, b: str = "int32", zero: int = 0) -> Case:
    """DEPTHWISE_CONV_2D of 2 images with a multiplier of 2."""
    r = np.random.default_rng(seed)
    o, (kh, kw, c) = strided(r, seed % 4, seed // 4 % 2) | {"DepthMultiplier": 2}, (3, 2, 3)
    shape = (1, kh, kw, 2 * c)
    weights = channels(r, shape, 3, w) if per_channel else ints(r, shape, w, zero=zero)
    out = (2, positions(7, kh, o), positions(6, kw, o), 2 * c)
    given = bias(r, x, weights, 3, b)
    return Case("DEPTHWISE_CONV_2D", [fed(x[0], 2, 7, 6, c, scale=x[1], zero=x[2]), weights, *given],
                [fed(y[0], *out, scale=y[1], zero=y[2])], "", DEPTHWISE, o)


def transposed(seed: int, x: tuple[str, float | None, int], y: tuple[str, float | None, int], w: str = "int8",
               per_channel: bool = True, b: str = "int32", zero: int = 0) -> Case:
    """TRANSPOSE_CONV of 2 images."""
    r = np.random.default_rng(seed)
    stride, same, (kh, kw, c, units) = int(r.integers(1, 3)), seed % 2, (3, 2, 4, 5)
    h, wd = (4 * stride, 3 * stride) if not same else (3 * stride + kh, 2 * stride + kw)
    weights = channels(r, (units, kh, kw, c), 0, w) if per_channel else ints(r, (units, kh, kw, c), w, zero=zero)
    given = bias(r, x, weights, 0, b)
    size = T("int32", (4,), np.array([2, h, wd, units], np.int32))
    return Case("TRANSPOSE_CONV", [size, weights, fed(x[0], 2, 4, 3, c, scale=x[1], zero=x[2]), *given],
                [fed(y[0], 2, h, wd, units, scale=y[1], zero=y[2])], "", TRANSPOSE,
                {"StrideW": stride, "StrideH": stride, "Padding": same} | typed(b))


def dense(seed: int, x: tuple[str, float | None, int], y: tuple[str, float | None, int], w: str = "int8",
          per_channel: bool = False, b: str = "int32", zero: int = 0, wide: bool = False, depth: int = 40) -> Case:
    """FULLY_CONNECTED on 3 rows."""
    r = np.random.default_rng(seed)
    weights = channels(r, (7, depth), 0, w) if per_channel else ints(r, (7, depth), w, zero=zero)
    given = bias(r, x, weights, 0, b)
    return Case("FULLY_CONNECTED", [fed(x[0], 3, depth, scale=x[1], zero=x[2]), weights, *given],
                [fed(y[0], 3, 7, scale=y[1], zero=y[2])], "", DENSE,
                {ACT: seed % 4, "AsymmetricQuantizeInputs": wide} | typed(b))


def matmul(seed: int, x: tuple[str, float | None, int], y: tuple[str, float | None, int],
           out: tuple[str, float | None, int], wide: bool = False, fixed: bool = False) -> Case:
    """BATCH_MATMUL of two batches."""
    r, adj = np.random.default_rng(seed), seed % 2 == 1
    right = (2, 4, 9) if adj else (2, 9, 4)
    second = ints(r, right, y[0], y[1]) if fixed else fed(y[0], *right, scale=y[1], zero=y[2])
    return Case("BATCH_MATMUL", [fed(x[0], 2, 3, 9, scale=x[1], zero=x[2]), second],
                [fed(out[0], 2, 3, 4, scale=out[1], zero=out[2])], "", MATMUL,
                {"AdjY": adj, "AsymmetricQuantizeInputs": wide})


REAL: tuple[str, float | None, int] = ("float32", None, 0)
BYTE, UBYTE, WIDE = ("int8", 0.04, -7), ("uint8", 0.04, 120), ("int16", 0.0004, 0)
TO_BYTE, TO_UBYTE, TO_WIDE = ("int8", 0.31, 5), ("uint8", 0.31, 133), ("int16", 0.0021, 0)
SEEDS = range(8)
CASES: dict[str, list[Case]] = {
    "hybrid CONV_2D per channel": [conv(s, REAL, REAL, b="float32") for s in SEEDS],
    "hybrid CONV_2D": [conv(s, REAL, REAL, per_channel=False, b="float32") for s in SEEDS],
    "hybrid CONV_2D int4": [conv(s, REAL, REAL, "int4", b="float32") for s in SEEDS],
    "hybrid CONV_2D in groups": [conv(s, REAL, REAL, b="float32", groups=2) for s in SEEDS],
    "hybrid DEPTHWISE_CONV_2D": [depthwise(s, REAL, REAL, b="float32") for s in SEEDS],
    "hybrid TRANSPOSE_CONV": [transposed(s, REAL, REAL, b="float32") for s in SEEDS],
    "hybrid FULLY_CONNECTED": [dense(s, REAL, REAL, b="float32") for s in SEEDS],
    "hybrid FULLY_CONNECTED asymmetric": [dense(s, REAL, REAL, b="float32", wide=True) for s in SEEDS],
    "hybrid FULLY_CONNECTED per channel": [dense(s, REAL, REAL, per_channel=True, b="float32") for s in SEEDS],
    "hybrid FULLY_CONNECTED int4": [dense(s, REAL, REAL, "int4", b="") for s in SEEDS],
    "hybrid FULLY_CONNECTED int4 per channel": [dense(s, REAL, REAL, "int4", True, "float32") for s in SEEDS],
    "hybrid FULLY_CONNECTED of many": [dense(s, REAL, REAL, b="float32", wide=True, depth=1500) for s in SEEDS],
    "hybrid BATCH_MATMUL": [matmul(s, REAL, ("int8", 0.02, 0), REAL, fixed=s < 4) for s in SEEDS],
    "hybrid BATCH_MATMUL asymmetric": [matmul(s, REAL, ("int8", 0.02, 0), REAL, True, s < 4) for s in SEEDS],
    "int8 CONV_2D": [conv(s, BYTE, TO_BYTE) for s in SEEDS],
    "int8 CONV_2D per tensor": [conv(s, BYTE, TO_BYTE, per_channel=False) for s in SEEDS],
    "int8 CONV_2D int4": [conv(s, BYTE, TO_BYTE, "int4") for s in SEEDS],
    "uint8 CONV_2D": [conv(s, UBYTE, TO_UBYTE, "uint8", False, zero=130) for s in SEEDS],
    "int16 CONV_2D": [conv(s, WIDE, TO_WIDE, b="int64") for s in SEEDS],
    "int16 CONV_2D with a bias in 32 bits": [conv(s, WIDE, TO_WIDE) for s in SEEDS],
    "int8 DEPTHWISE_CONV_2D": [depthwise(s, BYTE, TO_BYTE) for s in SEEDS],
    "int8 DEPTHWISE_CONV_2D with a zero point of the weights": [
        depthwise(s, BYTE, TO_BYTE, per_channel=False, zero=9) for s in SEEDS],
    "uint8 DEPTHWISE_CONV_2D": [depthwise(s, UBYTE, TO_UBYTE, "uint8", False, zero=130) for s in SEEDS],
    "int16 DEPTHWISE_CONV_2D": [depthwise(s, WIDE, TO_WIDE, b="int64") for s in SEEDS],
    "int8 TRANSPOSE_CONV with a zero point of the weights": [
        transposed(s, BYTE, TO_BYTE, per_channel=False, zero=9) for s in SEEDS],
    "int8 TRANSPOSE_CONV": [transposed(s, BYTE, TO_BYTE) for s in SEEDS],
    "int16 TRANSPOSE_CONV": [transposed(s, WIDE, TO_WIDE, b="int64") for s in SEEDS],
    "int16 TRANSPOSE_CONV with a bias in 32 bits": [transposed(s, WIDE, TO_WIDE) for s in SEEDS],
    "int16 TRANSPOSE_CONV without a bias": [transposed(s, WIDE, TO_WIDE, b="") for s in SEEDS],
    "int8 FULLY_CONNECTED": [dense(s, BYTE, TO_BYTE, zero=9) for s in SEEDS],
    "int8 FULLY_CONNECTED per channel": [dense(s, BYTE, TO_BYTE, per_channel=True) for s in SEEDS],
    "int8 FULLY_CONNECTED int4": [dense(s, BYTE, TO_BYTE, "int4") for s in SEEDS],
    "uint8 FULLY_CONNECTED": [dense(s, UBYTE, TO_UBYTE, "uint8", zero=130) for s in SEEDS],
    "int16 FULLY_CONNECTED": [dense(s, WIDE, TO_WIDE, b="int64") for s in SEEDS],
    "int16 FULLY_CONNECTED int4": [dense(s, WIDE, TO_WIDE, "int4", b="int64") for s in SEEDS],
    "int16 FULLY_CONNECTED per channel": [dense(s, WIDE, TO_WIDE, per_channel=True, b="int64") for s in SEEDS],
    "int16 FULLY_CONNECTED int16": [dense(s, WIDE, ("int16", 0.5, 0), "int16", b="int64") for s in SEEDS],
    "int8 BATCH_MATMUL": [matmul(s, BYTE, ("int8", 0.02, 3), TO_BYTE, fixed=s < 4) for s in SEEDS],
    "int16 BATCH_MATMUL": [matmul(s, WIDE, ("int16", 0.0002, 0), TO_WIDE) for s in SEEDS],
    "int16 BATCH_MATMUL int8": [matmul(s, WIDE, ("int8", 0.02, 0), TO_WIDE, fixed=True) for s in SEEDS],
}
