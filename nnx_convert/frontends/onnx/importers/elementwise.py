"""Element by element: arithmetic, comparison, logic. Operators with NNAPI's own operands are one line of a table."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, functions as f, host, host_math, norm, reduce as r
from ....schema import OpDef
from ....types import F64, Shape, known, product
from ..importer import Op
from ..registry import imports
from .axes import axis_of, open_, ranked

#: Operators of one input without attributes, by the operation that they are.
UNARY: dict[str, OpDef] = {
    "Abs": e.ABS, "Neg": e.NEG, "Exp": e.EXP, "Log": e.LOG, "Sqrt": e.SQRT, "Sin": e.SIN, "Cos": host.COS,
    "Tan": f.TAN, "Asin": f.ASIN, "Acos": f.ACOS, "Atan": f.ATAN, "Sinh": f.SINH, "Cosh": f.COSH, "Asinh": f.ASINH,
    "Acosh": f.ACOSH, "Atanh": f.ATANH, "Tanh": e.TANH, "Sigmoid": e.LOGISTIC, "Floor": e.FLOOR, "Ceil": host.CEIL,
    "Round": host.ROUND, "Erf": f.ERF, "Not": e.LOGICAL_NOT, "Softplus": f.SOFTPLUS, "Mish": f.MISH,
    "HardSwish": e.HARD_SWISH}
#: Operators of two inputs that broadcast, by the operation that they are.
BINARY: dict[str, OpDef] = {
    "And": e.LOGICAL_AND, "Or": e.LOGICAL_OR, "Xor": e.NOT_EQUAL, "Equal": e.EQUAL, "Less": e.LESS,
    "LessOrEqual": e.LESS_EQUAL, "Greater": e.GREATER, "GreaterOrEqual": e.GREATER_EQUAL,
    "BitwiseAnd": f.BITWISE_AND, "BitwiseOr": f.BITWISE_OR, "BitwiseXor": host_math.BITWISE_XOR}
#: The operation of a clip between two constants, where there is one.
CLIPS: dict[tuple[float | None, float | None], OpDef] = {
    (0, None): e.RELU, (0, 6): e.RELU6, (-1, 1): e.RELU1, (0, 1): host.RELU_0_TO_1}


def number(g: Op, x: Value, value: float) -> Value:
    """A scalar of the type of x."""
    return g.const(np.asarray(value, x.type.dtype), x.type)


def same(g: Op, op: OpDef, x: Value, **named: Any) -> Value:
    """An operation of one value that keeps its shape, rank 0 too."""
    return g.elementwise(op, x, **named)


def add(g: Op, x: Value, y: Value) -> Value:
    """x + y, broadcast."""
    return g.elementwise(e.ADD, x, y, act=0)


def sub(g: Op, x: Value, y: Value) -> Value:
    """x - y, broadcast."""
    return g.elementwise(e.SUB, x, y, act=0)


def mul(g: Op, x: Value, y: Value) -> Value:
    """x * y, broadcast."""
    return g.elementwise(e.MUL, x, y, act=0)


def div(g: Op, x: Value, y: Value) -> Value:
    """x / y, broadcast, of integers toward zero."""
    return g.elementwise(host.TRUNC_DIV, x, y) if whole(x) else g.elementwise(e.DIV, x, y, act=0)


def times(g: Op, x: Value, factor: float) -> Value:
    """x times a number; x itself for 1."""
    return x if factor == 1 else mul(g, x, number(g, x, factor))


def where(g: Op, cond: Value, x: Value, y: Value) -> Value:
    """x where cond, else y, broadcast."""
    return g.elementwise(host.WHERE, cond, x, y)


def whole(x: Value) -> bool:
    """Whether it is of integers."""
    return x.type.dtype.kind in "iu"


def lined_up(g: Op, x: Value, y: Value, axis: int | None) -> Value:
    """y with its axes at those of x from `axis` on, as operators below version 7 broadcast."""
    if axis is None:
        return y
    return g.reshape(y, g.shape(y) + (1,) * (g.rank(x) - axis % max(g.rank(x), 1) - g.rank(y)))


def unary(name: str, op: OpDef) -> None:
    """Register the importers of an operator of one input, with the attribute that it has in version 1."""
    @imports(name, until=5, arithmetic=True)
    def first(g: Op, x: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
        return same(g, op, x)

    @imports(name, since=6, arithmetic=True)
    def later(g: Op, x: Value) -> Value:
        return same(g, op, x)


def binary(name: str, emit: Callable[[Op, Value, Value], Value]) -> None:
    """Register the importers of an operator of two inputs, with the attributes that it has below version 7."""
    @imports(name, until=6, arithmetic=True)
    def first(g: Op, x: Value, y: Value, *, axis: int | None = None, broadcast: int = 0,
              consumed_inputs: tuple[int, ...] = ()) -> Value:
        return emit(g, x, lined_up(g, x, y, axis if broadcast else None))

    @imports(name, since=7, arithmetic=True)
    def later(g: Op, x: Value, y: Value) -> Value:
        return emit(g, x, y)


def plain(op: OpDef) -> Callable[[Op, Value, Value], Value]:
    """How an operation of two values is emitted."""
    def emit(g: Op, x: Value, y: Value) -> Value:
        return g.elementwise(op, x, y)
    return emit


for _name, _op in UNARY.items():
    unary(_name, _op)
for _name, _op in BINARY.items():
    binary(_name, plain(_op))
for _name, _emit in {"Add": add, "Sub": sub, "Mul": mul, "Div": div}.items():
    binary(_name, _emit)


@imports(arithmetic=True)
def Relu(g: Op, x: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
    return g.elementwise(e.MAXIMUM, x, number(g, x, 0)) if whole(x) else same(g, e.RELU, x)


@imports(arithmetic=True)
def Sign(g: Op, x: Value) -> Value:
    """NaN of NaN, as in the reference, where TFLite's gives 0."""
    if x.type.dtype.kind != "f":
        return g.elementwise(e.MINIMUM, x, number(g, x, 1)) if x.type.dtype.kind == "u" else same(g, host_math.SIGN, x)
    low, zero, high = (number(g, x, v) for v in (-1, 0, 1))
    return where(g, g.elementwise(e.GREATER, x, zero), high, where(g, g.elementwise(e.LESS, x, zero), low, x))


@imports(arithmetic=True)
def Reciprocal(g: Op, x: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
    return div(g, number(g, x, 1), x)


@imports(arithmetic=True)
def IsNaN(g: Op, x: Value) -> Value:
    return g.elementwise(e.NOT_EQUAL, x, x)


@imports(arithmetic=True)
def IsInf(g: Op, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    if not detect_negative and not detect_positive:
        return g.elementwise(e.LESS, x, x)
    far = number(g, x, np.inf if detect_positive else -np.inf)
    return g.elementwise(e.EQUAL, same(g, e.ABS, x) if detect_negative and detect_positive else x, far)


@imports(arithmetic=True)
def BitwiseNot(g: Op, x: Value) -> Value:
    return same(g, f.BITWISE_NOT, x)


@imports(arithmetic=True)
def BitShift(g: Op, x: Value, y: Value, *, direction: str) -> Value:
    if direction not in ("LEFT", "RIGHT"):
        raise FormatError(f"shifts in the direction {direction!r}")
    return g.elementwise(f.SHIFT, x, y, left=direction == "LEFT")


@imports(arithmetic=True)
def Mod(g: Op, x: Value, y: Value, *, fmod: int = 0) -> Value:
    return g.elementwise(f.TRUNC_MOD if fmod else host.FLOOR_MOD, x, y)


# Powers.
@imports(until=6, arithmetic=True)
def Pow(g: Op, x: Value, y: Value, *, axis: int | None = None, broadcast: int = 0) -> Value:
    return power(g, x, lined_up(g, x, y, axis if broadcast else None))


@imports("Pow", since=7, arithmetic=True)
def power(g: Op, x: Value, y: Value) -> Value:
    """x ** y of the type of x; a square, a root or an inverse where y is such a number."""
    number_ = g.known(y)
    if number_ is not None and number_.size == 1 and g.rank(y) <= g.rank(x):
        found = known_power(g, x, float(number_.item()))
        if found is not None:
            return g.reshape(found, g.shape(x) if g.rank(x) else ())
    if not whole(x):
        return g.elementwise(e.POW, x, g.cast(y, x.type))
    if whole(y):
        return g.elementwise(f.INTEGER_POWER, x, g.cast(y, x.type))
    return g.cast(g.elementwise(e.POW, g.cast(x, F64), g.cast(y, F64)), x.type)


def known_power(g: Op, x: Value, exponent: float) -> Value | None:
    """x to a power that operations other than POW give as exactly."""
    if exponent == 1:
        return x
    if exponent == 2:
        return same(g, host.SQUARE, x)
    if whole(x):
        return None
    if exponent == 0.5:
        return same(g, e.SQRT, x)
    if exponent == -1:
        return div(g, number(g, x, 1), x)
    return same(g, e.RSQRT, x) if exponent == -0.5 else None


# Any number of inputs.
def folded(name: str, emit: Callable[[Op, Value, Value], Value], mean: bool = False) -> None:
    """Register the importer of an operator that takes any number of values, two by two."""
    @imports(name, arithmetic=True)
    def importer(g: Op, *xs: Value, consumed_inputs: tuple[int, ...] = ()) -> Value:
        found = xs[0]
        for x in xs[1:]:
            found = emit(g, found, x)
        return div(g, found, number(g, found, len(xs))) if mean and len(xs) > 1 else found


folded("Max", plain(e.MAXIMUM))
folded("Min", plain(e.MINIMUM))
folded("Sum", add)
folded("Mean", add, mean=True)


# Clips.
@imports(until=5, arithmetic=True)
def Clip(g: Op, x: Value, *, min: float | None = None, max: float | None = None,
         consumed_inputs: tuple[int, ...] = ()) -> Value:
    return clipped(g, x, *(None if v is None else number(g, x, v) for v in (min, max)))


@imports("Clip", since=6, until=10, arithmetic=True)
def clip_by_attributes(g: Op, x: Value, *, min: float | None = None, max: float | None = None) -> Value:
    return clipped(g, x, *(None if v is None else number(g, x, v) for v in (min, max)))


@imports("Clip", since=11, arithmetic=True)
def clipped(g: Op, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """min(max(x, low), high): high wins where low is above it."""
    bounds = [None if v is None else g.known(v) for v in (low, high)]
    fixed = all(v is None or b is not None for v, b in zip((low, high), bounds, strict=True))
    ends = tuple(None if b is None else b.item() for b in bounds)
    if fixed and not whole(x) and ends in CLIPS:
        return same(g, CLIPS[ends], x)
    if low is not None:
        x = g.elementwise(e.MAXIMUM, x, low)
    return x if high is None else g.elementwise(e.MINIMUM, x, high)


# Softmax.
def flattened(op: OpDef, axis: int, g: Op, x: Value) -> Value:
    """As below version 13: over all axes from `axis` on, as if they were one."""
    shape = g.shape(x)
    axis = axis_of(axis, len(shape))
    if all(known(n) and n == 1 for n in shape[axis + 1:]):
        return g(op, x, beta=1.0, axis=axis)
    rows: Shape = (product(shape[:axis]), product(shape[axis:]))
    if max(map(open_, (shape, rows))) > 1:
        return step_by_step(g, x, list(range(axis, len(shape))), op is norm.LOG_SOFTMAX)
    return g.reshape(g(op, g.reshape(x, rows), beta=1.0, axis=1), shape)


def step_by_step(g: Op, x: Value, axes: list[int], log: bool) -> Value:
    """The softmax over several axes, of whatever size."""
    lowered = sub(g, x, g(r.REDUCE_MAX, x, axes, keep=True))
    raised = same(g, e.EXP, lowered)
    total = g(r.REDUCE_SUM, raised, axes, keep=True)
    return sub(g, lowered, same(g, e.LOG, total)) if log else div(g, raised, total)


def softmax(name: str, op: OpDef) -> None:
    """Register the importers of Softmax or LogSoftmax."""
    @imports(name, until=12, arithmetic=True)
    def first(g: Op, x: Value, *, axis: int = 1) -> Value:
        return flattened(op, axis, g, x)

    @imports(name, since=13, arithmetic=True)
    def later(g: Op, x: Value, *, axis: int = -1) -> Value:
        return ranked(g, g(op, x, beta=1.0, axis=axis), g.rank(x))


softmax("Softmax", norm.SOFTMAX)
softmax("LogSoftmax", norm.LOG_SOFTMAX)
