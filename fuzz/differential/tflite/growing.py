"""A TFLite model as it grows: the values there are, what they may hold, and how operators are added."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import tflite
from tflite_writer import OptionValue, sparsify

from ..draw import LARGEST, Array, Draw, Shape, Unfit
from ..growing import TAME, Growth, Kind, Ranged, ordered
from .net import Net, Operator, Tensor

#: Least and greatest codes of quantised types.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
ACT = "FusedActivationFunction"


@dataclass(frozen=True, eq=False)
class Value(Ranged):
    """A tensor of the model: its index, what the file says of it, and the range of the numbers it may hold."""

    index: int
    dtype: str
    shape: Shape
    scale: float | None = None
    zero: int | None = None
    low: float = -math.inf
    high: float = math.inf
    constant: bool = False

    @property
    def kind(self) -> str:
        """f: floats, q: codes on a grid, i: integers, b: truth values."""
        if self.dtype in ("float32", "bool"):
            return self.dtype[0]
        return "i" if self.scale is None else "q"

    @property
    def grid(self) -> tuple[float | None, int | None]:
        """Scale and zero point."""
        return self.scale, self.zero


Step = Callable[["Growing", Value], None]


#: The modules that have steps, in the order that seeds mean: in another one they give other models.
FAMILIES = ("elementwise", "flow", "images", "products", "rarer", "shaping")
STEPS: list[Kind] = []


def step(kinds: str, ranks: range = range(7), weight: int = 1) -> Callable[[Step], Step]:
    """Register a step for values of some kinds (see `Value.kind`) and ranks."""
    def register(fn: Step) -> Step:
        STEPS.append(Kind(fn, kinds, ranks, weight))
        return fn
    return register


@cache
def weighted() -> list[Kind]:
    """The steps, each as often as its weight says."""
    return [kind for kind in ordered(STEPS, __package__, FAMILIES) for _ in range(kind.weight)]


def type_code(dtype: str) -> int:
    """The schema's number of a type."""
    return int(getattr(tflite.TensorType, dtype.upper()))


class Growing(Growth[Value]):
    """A model of a type: "float32", or the codes that its quantised values have."""

    def __init__(self, draw: Draw, dtype: str, net: Net | None = None) -> None:
        super().__init__(draw)
        self.dtype = dtype
        self.net = net or Net()
        self.given: dict[int, Array] = {}

    # Tensors.

    def tensor(self, dtype: str, shape: Sequence[int], data: Array | None = None, **named: Any) -> int:
        """A new tensor; `Unfit` where it would be too large."""
        shape = tuple(int(n) for n in shape)
        if math.prod(shape) > LARGEST:
            raise Unfit
        self.net.tensors.append(Tensor(dtype, shape, data, **named))
        return len(self.net.tensors) - 1

    def ints(self, values: Any, dtype: str = "int32") -> int:
        """A constant of integers of a type."""
        array = np.asarray(values, dtype)
        return self.tensor(dtype, array.shape, array)

    def float32(self, values: Any) -> int:
        """A constant of floats."""
        array = np.asarray(values, np.float32)
        return self.tensor("float32", array.shape, array)

    def made(self, dtype: str, shape: Sequence[int], low: float = -math.inf, high: float = math.inf, *,
             scale: float | None = None, zero: int | None = None) -> Value:
        """A tensor that an operator will give."""
        named: dict[str, Any] = {} if scale is None else {"scale": scale, "zero": zero}
        index = self.tensor(dtype, shape, **named)
        if scale is not None and zero is not None and dtype in CODES:
            low, high = ((c - zero) * scale for c in CODES[dtype])
        return Value(index, dtype, self.net.tensors[index].shape, scale, zero, low, high)

    def counted(self, dtype: str, *shape: int) -> Value:
        """A tensor whose first size follows from what an operator is given."""
        index = self.tensor(dtype, (1, *shape), signature=(-1, *shape))
        return Value(index, dtype, (1, *shape))

    def like(self, x: Value, shape: Sequence[int] | None = None) -> Value:
        """One that holds the same numbers, in another shape perhaps."""
        return self.made(x.dtype, x.shape if shape is None else shape, x.low, x.high, scale=x.scale, zero=x.zero)

    def zero(self, dtype: str) -> int:
        """A zero point, at an end of its type at times; 0 where the type has no other."""
        low, high = CODES[dtype]
        if dtype == "int16":
            return 0
        return self.draw.one([low, high, 0 if dtype == "int8" else 128, *[self.draw.between(low, high)] * 3])

    def grid(self, dtype: str, bound: float) -> tuple[float, int]:
        """A grid that holds numbers up to a bound about; too fine or too coarse for them at times."""
        low, high = CODES[dtype]
        gain = self.draw.one([1.0, 1.0, 1.0, 0.7, 1.5, 0.1, 20.0]) * math.exp(self.draw.real(-0.3, 0.3))
        scale = max(min(bound, 1e6), 1e-6) * 2 / (high - low) * gain
        return float(np.float32(scale)), self.zero(dtype)

    def coded(self, shape: Sequence[int], bound: float, dtype: str = "") -> Value:
        """A quantised tensor that an operator will give, on a grid for numbers up to a bound."""
        dtype = dtype or self.dtype
        scale, zero = self.grid(dtype, bound)
        return self.made(dtype, shape, scale=scale, zero=zero)

    def result(self, x: Value, shape: Sequence[int], low: float, high: float) -> Value:
        """What an operator gives that computes in x's type: on a grid of its own where that is quantised."""
        if x.kind == "q":
            return self.coded(shape, max(abs(low), abs(high)) * 0.7, x.dtype)
        return self.made(x.dtype, shape, low, high)

    def constant(self, x: Value, shape: Shape, low: float = -2.0, high: float = 2.0) -> Value:
        """A constant of x's type."""
        if x.kind == "q":
            scale, zero = self.grid(x.dtype, max(abs(low), abs(high)))
            data = self.draw.integers(shape, *CODES[x.dtype], x.dtype)
            index = self.tensor(x.dtype, shape, data, scale=scale, zero=zero)
            low, high = ((c - zero) * scale for c in CODES[x.dtype])
            return Value(index, x.dtype, shape, scale, zero, low, high, constant=True)
        if x.kind == "b":
            data = self.draw.integers(shape, 0, 1, "bool")
        elif x.kind == "i":
            data = self.draw.integers(shape, int(low), int(high), x.dtype)
        else:
            data = self.draw.floats(shape, low, high)
        return Value(self.tensor(x.dtype, shape, data), x.dtype, shape, None, None, low, high, constant=True)

    def fed(self, dtype: str, shape: Shape, data: Array, low: float = -math.inf, high: float = math.inf,
            **named: Any) -> Value:
        """An input of the model with what a run feeds it."""
        made = self.made(dtype, shape, low, high, **named)
        self.net.inputs.append(made.index)
        self.given[made.index] = data
        self.values.append(made)
        return made

    def input(self, shape: Shape, dtype: str = "") -> Value:
        """An input that may hold anything."""
        dtype = dtype or self.dtype
        if dtype in CODES:
            scale, zero = self.grid(dtype, self.draw.one([1.0, 3.0, 8.0]))
            return self.fed(dtype, shape, self.draw.integers(shape, *CODES[dtype], dtype), scale=scale, zero=zero)
        if dtype == "bool":
            return self.fed(dtype, shape, self.draw.integers(shape, 0, 1, "bool"), 0, 1)
        if dtype.startswith("int"):
            high = self.draw.one([3, 9, 100])
            return self.fed(dtype, shape, self.draw.integers(shape, -high, high, dtype), -high, high)
        return self.fed(dtype, shape, self.draw.floats(shape), -3, 3)

    def indices(self, values: Any, dtype: str = "int32") -> int:
        """Indices: a constant, or an input that is fed with them."""
        array = np.asarray(values, dtype)
        if self.draw.chance(0.7):
            return self.ints(array, dtype)
        made = self.fed(dtype, array.shape, array, float(array.min(initial=0)), float(array.max(initial=0)))
        self.forget(made)
        return made.index

    # Weights.

    def stored(self, values: Array, **grid: Any) -> int:
        """Constant weights: as they are, sparse, or as float16."""
        dtype = values.dtype.name
        how = self.draw.one(["plain"] * 4 + ["sparse"] + ["float16"] * (dtype == "float32"))
        if how == "plain" or not values.size:
            return self.tensor(dtype, values.shape, values, **grid)
        if how == "float16":
            half = self.tensor("float16", values.shape, values.astype(np.float16))
            return self._unpacked("DEQUANTIZE", half, dtype, values.shape, {})
        values = (values * (self.draw.numbers.random(values.shape) < 0.4)).astype(dtype)
        formats = "".join(self.draw.one("ds") for _ in range(values.ndim))
        sparsity, kept = sparsify(values, self.draw.order(values.ndim), formats)
        index = self.tensor(dtype, values.shape, kept, sparsity=sparsity, **grid)
        return self._unpacked("DENSIFY", index, dtype, values.shape, grid)

    def _unpacked(self, name: str, index: int, dtype: str, shape: Shape, grid: Mapping[str, Any]) -> int:
        output = self.tensor(dtype, shape, **grid)
        self.net.operators.append(Operator(name, (index,), (output,), f"{name.capitalize()}Options"))
        return output

    def weights(self, x: Value, shape: Shape, axis: int) -> tuple[int, Array]:
        """A constant filter for x and its scales: one per slice of `axis`, or one."""
        size = math.prod(shape) // max(1, shape[axis])
        if x.kind == "f":
            spread = 1.5 / math.sqrt(max(1, size))
            return self.stored(self.draw.floats(shape, -spread, spread)), np.ones(1, np.float32)
        each = x.dtype != "uint8" and self.draw.chance(0.6)
        scales = np.exp(self.draw.numbers.uniform(-1.5, 1.5, shape[axis] if each else 1)).astype(np.float32) / 100
        if self.draw.chance(0.05):
            scales *= np.float32(self.draw.one([1e-4, 1e3]))
        if x.dtype == "uint8":
            zero = self.zero("uint8")
            data = self.draw.integers(shape, 0, 255, "uint8")
            return self.tensor("uint8", shape, data, scale=scales.tolist(), zero=zero), scales
        data = self.draw.integers(shape, -127, 127, "int8")
        return self.stored(data, scale=scales.tolist(), zero=0, axis=axis if each else 0), scales

    def bias(self, x: Value, size: int, scales: Array, none: float = 0.2) -> list[int]:
        """A constant bias on the grid of the products; none in a part of the cases, of floats."""
        if x.kind == "f":
            if self.draw.chance(none):
                return []
            return [self.float32(self.draw.floats((size,), -1, 1))]
        steps = (np.float32(x.scale or 1) * scales).astype(np.float32)
        dtype = "int64" if x.dtype == "int16" else "int32"
        data = self.draw.integers((size,), -5000, 5000, dtype)
        return [self.tensor(dtype, (size,), data, scale=steps.tolist(), zero=0)]

    # Operators.

    def op(self, name: str, inputs: Sequence[Value | int], outputs: Sequence[Value], table: str | None = None,
           values: Mapping[str, OptionValue] | None = None, version: int = 1) -> Value:
        """An operator whose outputs become values of the model; the first of them."""
        given = tuple(v if isinstance(v, int) else v.index for v in inputs)
        self.net.operators.append(Operator(name, given, tuple(v.index for v in outputs), table, dict(values or {}),
                                           version))
        self.values += outputs
        return outputs[0]

    def tamed(self, x: Value) -> Value:
        """x, or its tangent where it may hold numbers beyond `TAME`."""
        if x.kind != "f" or x.bound <= TAME:
            return x
        return self.op("TANH", [x], [self.made("float32", x.shape, -1, 1)])

    def positive(self, x: Value) -> Value:
        """Floats above zero, made of x."""
        x = self.tamed(x)
        if x.low > 0:
            return x
        size = self.op("ABS", [x], [self.made("float32", x.shape, 0, x.bound)])
        bound = self.made("float32", x.shape, 0.25, x.bound + 0.25)
        return self.op("ADD", [size, self.float32(0.25)], [bound], "AddOptions")

    def kinds(self) -> list[Kind]:
        """All steps."""
        return weighted()

    def mark(self) -> Callable[[], None]:
        """What takes back tensors, operators, inputs and bodies."""
        net = self.net
        parts: tuple[list[Any], ...] = (net.tensors, net.operators, net.inputs, net.bodies)
        before = [len(part) for part in parts]

        def undo() -> None:
            for part, n in zip(parts, before, strict=True):
                del part[n:]
        return undo
