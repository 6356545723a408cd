"""An ONNX model as it grows: the values there are, what they may hold, and how nodes are added."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from ..draw import LARGEST, Array, Draw, Shape, Unfit
from ..growing import TAME, Growth, Kind, Ranged, ordered



@dataclass(frozen=True, eq=False)
class Value(Ranged):
    """A tensor of the model: its name, type and shape, and the range of the numbers it may hold."""

    name: str
    dtype: str
    shape: Shape
    low: float = -math.inf
    high: float = math.inf

    @property
    def kind(self) -> str:
        """f: floats, i: integers of 32 or 64 bits, c: bytes, b: truth values."""
        return {"float32": "f", "bool": "b", "int8": "c", "uint8": "c"}.get(self.dtype, "i")

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)



Step = Callable[["Growing", Value], None]


#: The modules that have steps, in the order that seeds mean: in another one they give other models.
FAMILIES = ("elementwise", "shaping", "products", "coded", "flow", "images", "rarer")
STEPS: list[Kind] = []


def step(kinds: str, ranks: range = range(7), since: int = 7, weight: int = 1) -> Callable[[Step], Step]:
    """Register a step for values of some kinds (see `Value.kind`) and ranks, from a version of the standard on."""
    def register(fn: Step) -> Step:
        STEPS.append(Kind(fn, kinds, ranks, weight, since))
        return fn
    return register


@cache
def weighted(version: int) -> list[Kind]:
    """The steps of a version, each as often as its weight says."""
    return [kind for kind in ordered(STEPS, __package__, FAMILIES) if kind.since <= version for _ in range(kind.weight)]


def type_code(dtype: str) -> int:
    """The standard's number of a type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Growing(Growth[Value]):
    """A graph of a version of the standard. `prefix` keeps the names of bodies apart."""

    def __init__(self, draw: Draw, version: int, prefix: str = "") -> None:
        super().__init__(draw)
        self.version, self.prefix = version, prefix
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.given: dict[str, Array] = {}
        self.dtypes: dict[str, str] = {}
        self._named = 0

    # Tensors.

    def fresh(self, letter: str) -> str:
        """A name that nothing has yet."""
        self._named += 1
        return f"{self.prefix}{letter}{self._named}"

    def constant(self, data: Any, dtype: str = "") -> str:
        """A constant's name."""
        array = np.asarray(data, dtype or None)
        name = self.fresh("c")
        self.constants[name] = array
        self.dtypes[name] = array.dtype.name
        return name

    def ints(self, values: Any) -> str:
        """A constant of int64."""
        return self.constant(values, "int64")

    def floats(self, shape: Shape, low: float = -2.0, high: float = 2.0) -> str:
        """A constant of floats."""
        return self.constant(self.draw.floats(shape, low, high))

    def numbers(self, x: Value, shape: Shape, low: float = -2, high: float = 2) -> Value:
        """A constant of x's type."""
        if x.kind == "f":
            return Value(self.floats(shape, low, high), x.dtype, shape, low, high)
        if x.kind == "b":
            return Value(self.constant(self.draw.integers(shape, 0, 1, "bool")), "bool", shape, 0, 1)
        if x.dtype == "uint8":
            low = max(0, low)
        data = self.draw.integers(shape, int(low), int(high), x.dtype)
        return Value(self.constant(data), x.dtype, shape, low, high)

    def fed(self, data: Array, low: float = -math.inf, high: float = math.inf) -> Value:
        """An input of the model with what a run feeds it."""
        name = self.fresh("x")
        self.given[name], self.dtypes[name] = data, data.dtype.name
        return Value(name, data.dtype.name, data.shape, low, high)

    def input(self, shape: Shape, dtype: str = "float32") -> Value:
        """An input that may hold anything; it is one of the values."""
        if dtype == "float32":
            made = self.fed(self.draw.floats(shape), -3, 3)
        elif dtype == "bool":
            made = self.fed(self.draw.integers(shape, 0, 1, "bool"), 0, 1)
        else:
            low, high = {"int8": (-128, 127), "uint8": (0, 255)}.get(dtype, self.draw.one([(-3, 3), (-100, 100)]))
            made = self.fed(self.draw.integers(shape, low, high, dtype), low, high)
        self.values.append(made)
        return made

    def indices(self, data: Array) -> str:
        """Integers: a constant, or an input that is fed with them."""
        return self.constant(data) if self.draw.chance(0.7) else self.fed(data).name

    # Nodes.

    def made(self, dtype: str, shape: Sequence[int], low: float = -math.inf, high: float = math.inf) -> Value:
        """A tensor that a node will give; `Unfit` where it would be too large."""
        shape = tuple(int(n) for n in shape)
        if math.prod(shape) > LARGEST or len(shape) > 6:
            raise Unfit
        name = self.fresh("v")
        self.dtypes[name] = dtype
        return Value(name, dtype, shape, low, high)

    def like(self, x: Value, shape: Sequence[int] | None = None) -> Value:
        """One that holds the same numbers, in another shape perhaps."""
        return self.made(x.dtype, x.shape if shape is None else shape, x.low, x.high)

    def op(self, name: str, inputs: Sequence[Value | str], outputs: Sequence[Value | str], domain: str = "",
           **attributes: Any) -> Value:
        """A node whose outputs become values of the model; the first of them.

        A name instead of an output is one that no value stands for: a list, or left out where it is empty.
        """
        given = [v if isinstance(v, str) else v.name for v in inputs]
        while given and not given[-1]:
            given.pop()
        named = [v if isinstance(v, str) else v.name for v in outputs]
        self.nodes.append(helper.make_node(name, given, named, domain=domain, **attributes))
        made = [v for v in outputs if isinstance(v, Value)]
        self.values += made
        return made[0] if made else self.values[-1]

    def simple(self, name: str, x: Value, low: float, high: float, **attributes: Any) -> Value:
        """A node on one value that keeps its type and shape."""
        return self.op(name, [x], [self.made(x.dtype, x.shape, low, high)], **attributes)

    def tamed(self, x: Value) -> Value:
        """x, or its tangent where it may hold numbers beyond `TAME`."""
        if x.kind != "f" or x.bound <= TAME:
            return x
        return self.simple("Tanh", x, -1, 1)

    def positive(self, x: Value) -> Value:
        """Floats above zero, made of x."""
        x = self.tamed(x)
        if x.low > 0:
            return x
        size = self.simple("Abs", x, 0, x.bound)
        return self.op("Add", [size, self.constant(0.25, "float32")],
                       [self.made("float32", x.shape, 0.25, x.bound + 0.25)])

    def kinds(self) -> list[Kind]:
        """The steps that its version has."""
        return weighted(self.version)

    def mark(self) -> Callable[[], None]:
        """What takes back nodes, inputs and constants."""
        nodes, given, constants = len(self.nodes), list(self.given), list(self.constants)

        def undo() -> None:
            del self.nodes[nodes:]
            self.given = {n: self.given[n] for n in given}
            self.constants = {n: self.constants[n] for n in constants}
        return undo
