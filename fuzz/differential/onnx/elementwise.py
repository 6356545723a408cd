"""Steps that compute each element on its own, on one value or on several that broadcast."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..draw import Shape, Unfit
from ..growing import broadcast
from .growing import Growing, Value, step, type_code

Range = tuple[float, float]
#: Functions of floats: the version they came with, and the range of what they give for a range.
FLOATS: dict[str, tuple[int, Callable[[float, float], Range]]] = {
    "Abs": (7, lambda a, b: (0, max(abs(a), abs(b)))), "Neg": (7, lambda a, b: (-b, -a)),
    "Floor": (7, lambda a, b: (a - 1, b)), "Ceil": (7, lambda a, b: (a, b + 1)),
    "Round": (11, lambda a, b: (a - 1, b + 1)), "Sin": (7, lambda a, b: (-1, 1)), "Cos": (7, lambda a, b: (-1, 1)),
    "Atan": (7, lambda a, b: (-2, 2)), "Asinh": (9, lambda a, b: (-8, 8)), "Erf": (9, lambda a, b: (-1, 1)),
    "Relu": (7, lambda a, b: (0, max(0, b))), "Tanh": (7, lambda a, b: (-1, 1)), "Sigmoid": (7, lambda a, b: (0, 1)),
    "Softsign": (7, lambda a, b: (-1, 1)), "Softplus": (7, lambda a, b: (0, max(0, b) + 1)),
    "Sign": (9, lambda a, b: (-1, 1)), "Identity": (7, lambda a, b: (a, b)), "Mish": (18, lambda a, b: (-1, b + 1)),
    "HardSwish": (14, lambda a, b: (-1, max(0, b)))}
POSITIVE: dict[str, Callable[[float, float], Range]] = {
    "Sqrt": lambda a, b: (math.sqrt(a), math.sqrt(b)), "Log": lambda a, b: (math.log(a), math.log(b)),
    "Reciprocal": lambda a, b: (1 / b, 1 / a)}
#: Functions with parameters: the version, the parameters and the values they may have.
SHAPED: dict[str, tuple[int, dict[str, list[Any]]]] = {
    "LeakyRelu": (7, {"alpha": [0.01, 0.3, 1.5, -0.5]}), "Elu": (7, {"alpha": [1.0, 0.5]}),
    "Selu": (7, {"alpha": [1.67, 0.5], "gamma": [1.05, 2.0]}), "ThresholdedRelu": (10, {"alpha": [1.0, 0.2]}),
    "HardSigmoid": (7, {"alpha": [0.2, 0.5], "beta": [0.5, 0.3]}), "Celu": (12, {"alpha": [1.0, 0.5]}),
    "Shrink": (9, {"lambd": [0.5, 1.0], "bias": [0.0, 0.25]}), "Gelu": (20, {"approximate": ["none", "tanh"]})}
#: Functions of floats within -1 and 1.
WITHIN = {"Asin": 7, "Acos": 7, "Tan": 7, "Sinh": 9, "Cosh": 9, "Exp": 7}


@step("f", weight=5)
def unary(m: Growing, x: Value) -> None:
    """A function of floats."""
    x = m.tamed(x)
    name = m.draw.one([*(n for n, (since, _) in FLOATS.items() if since <= m.version), *POSITIVE])
    if name in POSITIVE:
        x = m.positive(x)
        m.simple(name, x, *POSITIVE[name](x.low, x.high))
    else:
        m.simple(name, x, *FLOATS[name][1](x.low, x.high))


@step("f", weight=2)
def shaped(m: Growing, x: Value) -> None:
    """A function with parameters, some of them left out."""
    x = m.tamed(x)
    name = m.draw.one([n for n, (since, _) in SHAPED.items() if since <= m.version])
    said = {n: m.draw.one(values) for n, values in SHAPED[name][1].items() if m.draw.chance(0.7)}
    m.simple(name, x, -2 * x.bound - 4, 2 * x.bound + 4, **said)


@step("f")
def within(m: Growing, x: Value) -> None:
    """A function of what lies within -1 and 1."""
    if x.bound > 1:
        x = m.simple("Tanh", x, -1, 1)
    name = m.draw.one([n for n, since in WITHIN.items() if since <= m.version])
    m.simple(name, x, -4, 4)


@step("i")
def whole(m: Growing, x: Value) -> None:
    """Functions of integers."""
    name = m.draw.one(["Abs", "Neg", *["Sign"] * (m.version >= 9)])
    m.simple(name, x, -x.bound, x.bound)


@step("fi", weight=2)
def clip(m: Growing, x: Value) -> None:
    """Clip with either bound left out at times."""
    low, high = sorted([m.draw.real(-3, 3), m.draw.real(-3, 3)])
    bounds = [low if m.draw.chance(0.8) else None, high if m.draw.chance(0.8) else None]
    if m.version < 11:
        if x.kind != "f":
            raise Unfit
        said = {n: b for n, b in zip(("min", "max"), bounds, strict=True) if b is not None}
        m.simple("Clip", x, x.low, x.high, **said)
        return
    if x.kind == "i" and m.version < 12:
        raise Unfit
    named = ["" if b is None else m.constant(math.floor(b) if x.kind == "i" else b, x.dtype) for b in bounds]
    m.op("Clip", [x, *named], [m.made(x.dtype, x.shape, min(x.low, -4), max(x.high, 4))])


def other(m: Growing, x: Value, low: float = -2, high: float = 2) -> tuple[Value, Value, Shape]:
    """Another value or a constant that broadcasts with x, which of the two is first, and the result's shape."""
    y = m.pick(lambda v: v.dtype == x.dtype and v.bound < 1e6 and broadcast(v.shape, x.shape) is not None) \
        if m.draw.chance(0.6) else None
    y = y or m.numbers(x, m.draw.broadcast(x.shape), low, high)
    found = broadcast(x.shape, y.shape)
    if found is None:
        raise Unfit
    a, b = (x, y) if m.draw.chance(0.6) else (y, x)
    return a, b, found


@step("fi", weight=5)
def arithmetic(m: Growing, x: Value) -> None:
    """Add, Sub, Mul with broadcasting."""
    a, b, shape = other(m, m.tamed(x))
    name = m.draw.one(["Add", "Sub", "Mul"])
    ends = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    low, high = {"Add": (a.low + b.low, a.high + b.high), "Sub": (a.low - b.high, a.high - b.low),
                 "Mul": (min(ends), max(ends))}[name]
    if max(abs(low), abs(high)) > 1e8:
        raise Unfit
    m.op(name, [a, b], [m.made(x.dtype, shape, low, high)])


@step("fi", weight=2)
def division(m: Growing, x: Value) -> None:
    """Div, and Mod both ways, by what is not zero."""
    x = m.tamed(x)
    if x.kind == "i":
        shape = m.draw.broadcast(x.shape)
        data = m.draw.integers(shape, 1, 7, x.dtype) * m.draw.one([1, -1])
        y = Value(m.constant(data, x.dtype), x.dtype, shape, -7, 7)
    else:
        y = m.positive(m.need(lambda v: v.kind == "f" and broadcast(v.shape, x.shape) is not None))
    both = broadcast(x.shape, y.shape)
    if both is None:
        raise Unfit
    if m.version >= 10 and m.draw.chance(0.4):
        exact = 1 if x.kind == "f" or m.draw.chance(0.5) else 0
        m.op("Mod", [x, y], [m.made(x.dtype, both, -max(y.bound, x.bound), max(y.bound, x.bound))], fmod=exact)
        return
    bound = x.bound / (y.low if y.low > 0 else 1)
    m.op("Div", [x, y], [m.made(x.dtype, both, -bound, bound)])


@step("f")
def power(m: Growing, x: Value) -> None:
    """Pow of what is above zero, or by whole numbers."""
    x = m.tamed(x)
    if m.draw.chance(0.5):
        exponent = m.draw.one([2.0, 3.0, 1.0, 0.0, -1.0])
        x = m.positive(x) if exponent < 0 else x
        bound = max(x.bound, 1 / x.low if x.low > 0 else 0, 1) ** 3
        kind = m.draw.one(["float32", *["int64", "int32"] * (m.version >= 12)])
        y = m.constant(int(exponent) if kind != "float32" else exponent, kind)
        m.op("Pow", [x, y], [m.made("float32", x.shape, -bound, bound)])
        return
    x = m.positive(x)
    a, b, shape = other(m, x, -2, 2)
    if a is not x or max(x.bound, 1 / x.low) ** min(b.bound, 50) > 1e6:
        raise Unfit
    m.op("Pow", [a, b], [m.made("float32", shape, 0, max(x.bound, 1 / x.low) ** b.bound)])


@step("fi", weight=2)
def several(m: Growing, x: Value) -> None:
    """Max, Min, Sum, Mean of one to four."""
    name = m.draw.one(["Max", "Min", *["Sum", "Mean"] * (x.kind == "f")])
    if x.kind == "i" and m.version < 12:
        raise Unfit
    x = m.tamed(x)
    parts, shape = [x], x.shape
    for _ in range(m.draw.between(0, 3)):
        _, y, _ = other(m, x)
        both = broadcast(shape, y.shape)
        if both is None:
            raise Unfit
        parts, shape = [*parts, y], both
    bound = sum(p.bound for p in parts)
    m.op(name, parts, [m.made(x.dtype, shape, -bound, bound)])


@step("fi", weight=2)
def comparisons(m: Growing, x: Value) -> None:
    """Comparisons, which give truth values."""
    names = ["Equal", *["Less", "Greater"] * (m.version >= 9), *["LessOrEqual", "GreaterOrEqual"] * (m.version >= 12)]
    if x.kind == "f" and m.version < 11:
        names = [n for n in names if n != "Equal"]
    if not names:
        raise Unfit
    a, b, shape = other(m, x)
    m.op(m.draw.one(names), [a, b], [m.made("bool", shape, 0, 1)])


@step("b", weight=2)
def logic(m: Growing, x: Value) -> None:
    """And, Or, Xor, Not."""
    if m.draw.chance(0.3):
        m.simple("Not", x, 0, 1)
        return
    a, b, shape = other(m, x)
    m.op(m.draw.one(["And", "Or", "Xor"]), [a, b], [m.made("bool", shape, 0, 1)])


@step("b", since=9, weight=2)
def choice(m: Growing, x: Value) -> None:
    """Where, all three broadcast."""
    a = m.need(lambda v: v.kind in "fi" and broadcast(v.shape, x.shape) is not None)
    first, second, shape = other(m, a)
    both = broadcast(shape, x.shape)
    if both is None:
        raise Unfit
    m.op("Where", [x, first, second], [m.made(a.dtype, both, min(a.low, -2, first.low, second.low),
                                              max(a.high, 2, first.high, second.high))])


@step("i", since=18)
def bits(m: Growing, x: Value) -> None:
    """BitwiseAnd, -Or, -Xor, -Not."""
    bound = 1 << max(1, math.ceil(x.bound)).bit_length()
    if m.draw.chance(0.3):
        m.simple("BitwiseNot", x, -bound, bound)
        return
    a, b, shape = other(m, x, -100, 100)
    bound = 1 << max(1, math.ceil(max(a.bound, b.bound))).bit_length()
    m.op(m.draw.one(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [a, b], [m.made(x.dtype, shape, -bound, bound)])


@step("f", range(1, 6))
def parametric(m: Growing, x: Value) -> None:
    """PRelu with slopes that broadcast towards x."""
    shape = x.shape[m.draw.between(0, x.rank - 1):]
    slopes = m.floats(tuple(1 if m.draw.chance(0.4) else n for n in shape), -1, 1)
    m.op("PRelu", [x, slopes], [m.made("float32", x.shape, -x.bound, x.bound)])


@step("fibc", weight=2)
def cast(m: Growing, x: Value) -> None:
    """Cast to another type that holds the numbers."""
    to = m.draw.one(["float32", "float32", "int32", "int64", "bool", *["uint8", "int8"] * (x.bound < 100)])
    if x.kind == "f" and x.bound > 1e8 or to == "uint8" and x.low < 0:
        raise Unfit
    low, high = (0, 1) if to == "bool" else (x.low, x.high)
    m.op("Cast", [x], [m.made(to, x.shape, low, high)], to=type_code(to))


@step("f", since=10)
def special(m: Growing, x: Value) -> None:
    """IsNaN and IsInf, Dropout as it is in inference."""
    name = m.draw.one(["IsNaN", "IsInf", "Dropout"])
    if name == "Dropout":
        m.op("Dropout", [x], [m.like(x)])
    else:
        m.op(name, [x], [m.made("bool", x.shape, 0, 1)])
