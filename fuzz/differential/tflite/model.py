"""A random TFLite model from a seed."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..draw import Array, Draw
from .growing import Growing
from .net import Net

DTYPES = ("float32", "float32", "float32", "int8", "int8", "int8", "uint8", "int16")
Tensors = Mapping[str, Array]


@dataclass(frozen=True)
class TFLite:
    """A model with inputs for it; tensors go by their names in the file."""

    net: Net
    given: Tensors
    form: str = "tflite"

    @cached_property
    def data(self) -> bytes:
        """The file."""
        return self.net.written()

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' names."""
        return names(self.net.outputs)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators' names in order."""
        return tuple(o.name for o in self.net.operators)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The options of the last operator."""
        return self.net.operators[-1].values

    def __str__(self) -> str:
        return str(self.net)

    def parts(self) -> list[TFLite]:
        """Each operator as a model of its own, with what unpacks its weights; what they are given is not there yet."""
        return [TFLite(self.net.part(self.net.behind(k)), {}) for k, o in enumerate(self.net.operators)
                if not self.net.unpacks(o)]

    def fed(self, given: Tensors) -> TFLite:
        """The same with other values for its inputs."""
        return TFLite(self.net, given)

    def changed(self, change: Callable[[Array], Array]) -> TFLite:
        """The same with other values for its inputs and constants of single precision."""
        tensors = [replace(t, data=change(t.data)) if t.data is not None and t.dtype == "float32" else t
                   for t in self.net.tensors]
        return TFLite(replace(self.net, tensors=tensors), {n: change(a) for n, a in self.given.items()})

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs' names."""
        return names(self.net.inputs)


def names(indices: list[int]) -> tuple[str, ...]:
    """The names of tensors."""
    return tuple(f"t{i}" for i in indices)


def model(seed: int) -> TFLite:
    """The model of a seed: one to three inputs, up to twelve operators, all that nothing reads as outputs."""
    draw = Draw(seed)
    m = Growing(draw, draw.one(DTYPES))
    images_first = draw.chance(0.5)
    for _ in range(draw.one([1, 1, 2, 2, 3])):
        m.input(draw.shape(4 if images_first else None))
    if draw.chance(0.3):
        m.input(draw.shape(), draw.one(["float32", "int32", "int32", "int64", "bool"]))
    if draw.chance(0.03):
        m.input(tuple(0 if draw.chance(0.3) else n for n in draw.shape(draw.between(1, 4))))
    while not m.net.operators:
        m.grow(draw.one([1, 1, 2, 3, 3, 4, 5, 6, 8, 10, 12]))
    read = {i for o in m.net.operators for i in o.inputs}
    made = [i for o in m.net.operators for i in o.outputs if m.net.tensors[i].data is None]
    m.net.outputs = [i for i in made if i not in read or draw.chance(0.1)]
    unpacked = {i for o in m.net.operators if m.net.unpacks(o) for i in o.outputs}
    m.net.outputs = [i for i in m.net.outputs if i not in unpacked]
    return TFLite(m.net, {f"t{i}": m.given[i] for i in m.net.inputs})
