"""Steps that compute each element on its own, on one value or on two that broadcast."""
from __future__ import annotations

import math
from collections.abc import Callable


from ..draw import Unfit
from ..growing import broadcast
from .growing import ACT, CODES, Growing, Value, step, type_code

Range = tuple[float, float]
#: Functions of floats and the range of what they give for a range; those of POSITIVE take only what is above zero.
FLOATS: dict[str, Callable[[float, float], Range]] = {
    "ABS": lambda a, b: (0, max(abs(a), abs(b))), "NEG": lambda a, b: (-b, -a), "FLOOR": lambda a, b: (a - 1, b),
    "CEIL": lambda a, b: (a, b + 1), "ROUND": lambda a, b: (a - 1, b + 1),
    "SQUARE": lambda a, b: (0, max(a * a, b * b)), "SIN": lambda a, b: (-1, 1), "COS": lambda a, b: (-1, 1),
    "RELU": lambda a, b: (0, max(0, b)), "RELU6": lambda a, b: (0, 6), "RELU_N1_TO_1": lambda a, b: (-1, 1),
    "RELU_0_TO_1": lambda a, b: (0, 1), "TANH": lambda a, b: (-1, 1), "LOGISTIC": lambda a, b: (0, 1),
    "ELU": lambda a, b: (-1, max(0, b)), "HARD_SWISH": lambda a, b: (-1, max(0, b)), "SIGN": lambda a, b: (-1, 1)}
POSITIVE: dict[str, Callable[[float, float], Range]] = {
    "SQRT": lambda a, b: (math.sqrt(a), math.sqrt(b)), "RSQRT": lambda a, b: (1 / math.sqrt(b), 1 / math.sqrt(a)),
    "LOG": lambda a, b: (math.log(a), math.log(b))}
#: Functions of codes that LiteRT has, by the types it has them for.
CODED = {"ABS": "int8 int16", "RELU": "int8 uint8 int16", "RELU6": "int8 uint8 int16", "RELU_N1_TO_1": "int8 uint8",
         "RELU_0_TO_1": "int8 uint8", "HARD_SWISH": "int8 uint8", "ELU": "int8", "RSQRT": "int8 int16", "LOG": "int8",
         "EXP": "int8 int16", "GELU": "int8 uint8", "LEAKY_RELU": "int8 uint8 int16", "SQRT": "int8"}
OPTIONS = {"ABS": "AbsOptions", "NEG": "NegOptions", "SQUARE": "SquareOptions", "COS": "CosOptions",
           "EXP": "ExpOptions", "HARD_SWISH": "HardSwishOptions", "SIGN": "SignOptions"}


@step("f", weight=4)
def unary(m: Growing, x: Value) -> None:
    """A function of floats."""
    x = m.tamed(x)
    name = m.draw.one([*FLOATS, *POSITIVE])
    if name in POSITIVE:
        x = m.positive(x)
    low, high = (FLOATS.get(name) or POSITIVE[name])(x.low, x.high)
    m.op(name, [x], [m.made("float32", x.shape, low, high)], OPTIONS.get(name))


@step("f")
def exponential(m: Growing, x: Value) -> None:
    """EXP of what is small enough."""
    if x.bound > 8:
        x = m.op("TANH", [x], [m.made("float32", x.shape, -1, 1)])
    m.op("EXP", [x], [m.made("float32", x.shape, math.exp(x.low), math.exp(x.high))], "ExpOptions")


@step("fq")
def leaky(m: Growing, x: Value) -> None:
    """Functions with a parameter."""
    if x.kind == "q" or m.draw.chance(0.5):
        y = m.result(x, x.shape, -x.bound, x.bound)
        m.op("LEAKY_RELU", [x], [y], "LeakyReluOptions", {"Alpha": m.draw.one([0.125, 0.3, 1.5, 0.0, -0.5])})
    else:
        m.op("GELU", [x], [m.made("float32", x.shape, -1, max(0, x.high))], "GeluOptions",
             {"Approximate": m.draw.chance(0.5)})


@step("q", weight=3)
def coded(m: Growing, x: Value) -> None:
    """A function of codes."""
    name = m.draw.one([n for n, types in CODED.items() if x.dtype in types.split()])
    values: dict[str, dict[str, float | bool]] = {
        "LEAKY_RELU": {"Alpha": m.draw.one([0.125, 0.3, 2.0])},
        "GELU": {"Approximate": m.draw.chance(0.5)}}
    table = {"LEAKY_RELU": "LeakyReluOptions", "GELU": "GeluOptions"}.get(name, OPTIONS.get(name))
    if name in ("RSQRT", "LOG", "SQRT") and (x.low < 0 or x.dtype == "int16"):
        raise Unfit
    bound = {"EXP": math.exp(min(x.bound, 4)), "RSQRT": 10.0, "LOG": 5.0}.get(name, x.bound)
    y = m.coded(x.shape, bound, x.dtype)
    if x.dtype == "int16" or m.draw.chance(0.3) and name.startswith("RELU"):
        y = m.like(x)
    version = 1 if name in ("HARD_SWISH", "RELU_0_TO_1", "RELU_N1_TO_1", "ELU") else 2
    m.op(name, [x], [y], table, values.get(name), version)


#: Scale and zero point that TFLite prescribes: of bytes with a sign, without, and of int16.
FIXED = {"LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
         "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
         "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
         "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
         "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}}


@step("fq", weight=2)
def normal(m: Growing, x: Value) -> None:
    """Functions whose result is on a grid that TFLite prescribes."""
    name = m.draw.one([n for n, grids in FIXED.items() if x.kind == "f" or x.dtype in grids])
    least = {"SOFTMAX": 1, "LOG_SOFTMAX": 1, "L2_NORMALIZATION": 1}.get(name, 0)
    if x.rank < least or x.kind == "q" and name == "SOFTMAX" and x.rank > 4:
        raise Unfit
    x = m.tamed(x)
    if x.kind == "q":
        scale, zero = FIXED[name][x.dtype]
        y = m.made(x.dtype, x.shape, scale=scale, zero=zero)
    else:
        y = m.made("float32", x.shape, -2 * x.bound - 10 if name == "LOG_SOFTMAX" else -1, 1)
    table = {"SOFTMAX": "SoftmaxOptions", "LOG_SOFTMAX": "LogSoftmaxOptions", "L2_NORMALIZATION": "L2NormOptions"}
    beta = m.draw.one([1.0, 1.0, 0.5, 2.0, 0.1])
    m.op(name, [x], [y], table.get(name), {"Beta": beta} if name == "SOFTMAX" else {}, 2 if x.kind == "q" else 1)


def other(m: Growing, x: Value, same_grid: bool = False) -> tuple[Value, Value, tuple[int, ...]]:
    """Another value or a constant that broadcasts with x, which of the two is first, and the result's shape."""
    def fits(v: Value) -> bool:
        if v.dtype != x.dtype or v.kind != x.kind or same_grid and v.grid != x.grid:
            return False
        return broadcast(v.shape, x.shape) is not None
    y = m.pick(fits) if m.draw.chance(0.6) else None
    if y is None:
        shape = m.draw.broadcast(x.shape)
        y = m.constant(x, shape)
        if same_grid and x.kind == "q":
            data = m.draw.integers(shape, *CODES[x.dtype], x.dtype)
            y = Value(m.tensor(x.dtype, shape, data, scale=x.scale, zero=x.zero), x.dtype, shape, x.scale, x.zero,
                      x.low, x.high, constant=True)
    found = broadcast(x.shape, y.shape)
    if found is None:
        raise Unfit
    first, second = (x, y) if m.draw.chance(0.6) else (y, x)
    return first, second, found


def products(a: Value, b: Value) -> Range:
    """The range of the product of numbers of two ranges."""
    ends = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    return min(ends), max(ends)


def activation(m: Growing, x: Value) -> int:
    """A fused activation: none, RELU, RELU_N1_TO_1 or RELU6."""
    return m.draw.one([0, 0, 1, 2, 3]) if x.kind != "i" else m.draw.one([0, 0, 0, 1, 3])


@step("fqi", range(6), weight=5)
def arithmetic(m: Growing, x: Value) -> None:
    """ADD, SUB, MUL with broadcasting and a fused activation."""
    a, b, shape = other(m, m.tamed(x))
    name = m.draw.one(["ADD", "SUB", "MUL"])
    low, high = {"ADD": (a.low + b.low, a.high + b.high), "SUB": (a.low - b.high, a.high - b.low),
                 "MUL": products(a, b)}[name]
    if x.kind == "i" and max(abs(low), abs(high)) > 1e8:
        raise Unfit
    values: dict[str, int | float | bool] = {ACT: activation(m, x)}
    if x.dtype == "int16" and name != "MUL":
        values["PotScaleInt16"] = False
    y = m.result(x, shape, low, high)
    m.op(name, [a, b], [y], f"{name.capitalize()}Options", values, 2 if x.kind == "q" else 1)


@step("fq")
def division(m: Growing, x: Value) -> None:
    """DIV by what is not zero."""
    if x.kind == "q":
        if x.dtype != "uint8":
            raise Unfit
        a, b, shape = other(m, x)
        if b.low <= 0 or len(shape) > 4:
            raise Unfit
        m.op("DIV", [a, b], [m.coded(shape, a.bound, x.dtype)], "DivOptions", {ACT: activation(m, x)})
        return
    a, b, shape = other(m, m.tamed(x))
    b = m.positive(b)
    if len(shape) > 5:
        raise Unfit
    bound = a.bound / b.low
    m.op("DIV", [a, b], [m.made("float32", shape, -bound, bound)], "DivOptions", {ACT: activation(m, x)})


@step("i", range(5))
def whole_division(m: Growing, x: Value) -> None:
    """Divisions of integers by constants that are not zero."""
    shape = m.draw.broadcast(x.shape)
    data = m.draw.integers(shape, 1, 7, x.dtype) * m.draw.one([1, -1])
    name = m.draw.one(["FLOOR_MOD", *["DIV", "FLOOR_DIV"] * (x.dtype == "int32")])
    b = m.tensor(x.dtype, shape, data.astype(x.dtype))
    m.op(name, [x, b], [m.made(x.dtype, x.shape, -x.bound - 7, x.bound + 7)],
         {"DIV": "DivOptions", "FLOOR_DIV": "FloorDivOptions", "FLOOR_MOD": "FloorModOptions"}[name])


@step("f", range(5))
def pairs(m: Growing, x: Value) -> None:
    """Functions of two floats."""
    x = m.tamed(x)
    name = m.draw.one(["SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"])
    a, b, shape = other(m, x)
    if name == "POW":
        a = m.positive(a)
        if max(a.bound, 1 / a.low) ** b.bound > 1e6:
            raise Unfit
        high = max(a.bound, 1 / a.low) ** b.bound
        m.op(name, [a, b], [m.made("float32", shape, 0, high)], "PowOptions")
    elif name == "SQUARED_DIFFERENCE":
        m.op(name, [a, b], [m.made("float32", shape, 0, (a.bound + b.bound) ** 2)], "SquaredDifferenceOptions")
    elif name == "ATAN2":
        if a.shape != b.shape:
            raise Unfit
        m.op(name, [a, b], [m.made("float32", shape, -4, 4)], "ATan2Options")
    else:
        b = m.positive(b)
        bound = a.bound / b.low + b.bound
        m.op(name, [a, b], [m.made("float32", shape, -bound - 1, bound)],
             "FloorDivOptions" if name == "FLOOR_DIV" else "FloorModOptions")


@step("q", range(5))
def squared_difference(m: Growing, x: Value) -> None:
    """SQUARED_DIFFERENCE of codes."""
    if x.dtype != "int8":
        raise Unfit
    a, b, shape = other(m, x)
    m.op("SQUARED_DIFFERENCE", [a, b], [m.coded(shape, (a.bound + b.bound) ** 2 / 2, x.dtype)],
         "SquaredDifferenceOptions", version=2)


@step("fqi", range(6), weight=2)
def extremes(m: Growing, x: Value) -> None:
    """MAXIMUM and MINIMUM."""
    a, b, shape = other(m, x, same_grid=True)
    low, high = min(a.low, b.low), max(a.high, b.high)
    m.op(m.draw.one(["MAXIMUM", "MINIMUM"]), [a, b],
         [m.made(x.dtype, shape, low, high, scale=x.scale, zero=x.zero)], "MaximumMinimumOptions",
         version={"int8": 2, "int16": 3}.get(x.dtype, 1))


@step("fqi", range(5), weight=2)
def comparisons(m: Growing, x: Value) -> None:
    """Comparisons, which give truth values."""
    a, b, shape = other(m, x)
    name, table = m.draw.one([(n, f"{t}Options") for n, t in (
        ("EQUAL", "Equal"), ("NOT_EQUAL", "NotEqual"), ("LESS", "Less"), ("LESS_EQUAL", "LessEqual"),
        ("GREATER", "Greater"), ("GREATER_EQUAL", "GreaterEqual"))])
    if x.dtype == "int16":
        raise Unfit
    m.op(name, [a, b], [m.made("bool", shape, 0, 1)], table, version=2 if x.kind == "q" else 1)


@step("b", range(5), weight=2)
def logic(m: Growing, x: Value) -> None:
    """LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT."""
    if m.draw.chance(0.3):
        m.op("LOGICAL_NOT", [x], [m.made("bool", x.shape, 0, 1)], "LogicalNotOptions")
        return
    a, b, shape = other(m, x)
    name = m.draw.one(["LOGICAL_AND", "LOGICAL_OR"])
    m.op(name, [a, b], [m.made("bool", shape, 0, 1)], {"LOGICAL_AND": "LogicalAndOptions",
                                                              "LOGICAL_OR": "LogicalOrOptions"}[name])


@step("b", range(5), weight=2)
def choice(m: Growing, x: Value) -> None:
    """SELECT and SELECT_V2 by truth values."""
    if m.draw.chance(0.4):
        a = m.need(lambda v: v.shape == x.shape and v.kind in "fqi")
        b = m.pick(lambda v: v.shape == a.shape and v.dtype == a.dtype and v.grid == a.grid) or a
        m.op("SELECT", [x, a, b], [m.made(a.dtype, a.shape, min(a.low, b.low), max(a.high, b.high), scale=a.scale,
                                          zero=a.zero)], "SelectOptions")
        return
    a = m.need(lambda v: v.kind in "fqi" and v.rank < 5 and broadcast(v.shape, x.shape) is not None)
    first, second, shape = other(m, a, same_grid=True)
    whole = broadcast(shape, x.shape)
    if whole is None or len(whole) > 4:
        raise Unfit
    m.op("SELECT_V2", [x, first, second],
         [m.made(a.dtype, whole, min(first.low, second.low), max(first.high, second.high), scale=a.scale,
                 zero=a.zero)], "SelectV2Options")


@step("fqi", range(5))
def parametric(m: Growing, x: Value) -> None:
    """PRELU with slopes that broadcast, ADD_N, ABS and SIGN of integers."""
    if x.kind == "i":
        name = m.draw.one(["ABS", "NEG"])
        m.op(name, [x], [m.made(x.dtype, x.shape, -x.bound, x.bound)], OPTIONS[name])
        return
    if not x.shape or x.dtype == "int16":
        raise Unfit
    if x.kind == "f" and m.draw.chance(0.3):
        n = m.draw.between(2, 4)
        parts = [x, *(m.pick(lambda v: v.dtype == "float32" and v.shape == x.shape) or x for _ in range(n - 1))]
        bound = sum(p.bound for p in parts)
        m.op("ADD_N", parts, [m.made("float32", x.shape, -bound, bound)], "AddNOptions")
        return
    slopes = m.constant(x, tuple(1 if m.draw.chance(0.4) else n for n in x.shape), -1, 1)
    m.op("PRELU", [x, slopes], [m.result(x, x.shape, -2 * x.bound, 2 * x.bound)])


@step("fib", weight=2)
def cast(m: Growing, x: Value) -> None:
    """CAST between floats, integers and truth values."""
    small = x.bound < 100
    to = m.draw.one(["float32", "float32", "int32", "int64", "bool", *["int16", "int8", "uint8"] * small])
    if to == "uint8" and x.low < 0 or to == x.dtype or x.kind == "f" and x.bound > 1e8:
        raise Unfit
    low, high = (0, 1) if to == "bool" else (x.low, x.high)
    m.op("CAST", [x], [m.made(to, x.shape, low, high)], "CastOptions",
         {"InDataType": type_code(x.dtype), "OutDataType": type_code(to)})


@step("fq", weight=3)
def regrid(m: Growing, x: Value) -> None:
    """QUANTIZE of floats and of codes, DEQUANTIZE."""
    if x.kind == "q" and m.draw.chance(0.4):
        m.op("DEQUANTIZE", [x], [m.made("float32", x.shape, x.low, x.high)], "DequantizeOptions",
             version=3 if x.dtype == "int16" else 2)
        return
    if x.kind == "f" and x.bound > 1e6:
        raise Unfit
    if x.kind == "f":
        to = m.draw.one([m.dtype]) if m.dtype in CODES else m.draw.one(list(CODES))
    else:
        to = m.draw.one({"int16": ["int8", "int16"]}.get(x.dtype, ["int8", "uint8"]))
    m.op("QUANTIZE", [x], [m.coded(x.shape, x.bound, to)], "QuantizeOptions", version=2)
