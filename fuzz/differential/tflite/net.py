"""A TFLite model as data, so that one operator of it can be written as a file of its own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tflite_writer import OptionValue, Sparsity, TFLiteWriter

from ..draw import Array, Shape


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor as the file has it; a constant where there is data."""

    dtype: str
    shape: Shape
    data: Array | None = None
    scale: Any = None
    zero: Any = None
    axis: int = 0
    sparsity: Sparsity | None = None
    variable: bool = False
    signature: Shape | None = None


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator, its tensors by index; -1 leaves an input out."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str | None = None
    values: Mapping[str, OptionValue] = field(default_factory=dict)
    version: int = 1
    intermediates: tuple[int, ...] = ()


@dataclass
class Net:
    """A subgraph; `bodies` are the others, which only the first one has."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    bodies: list[Net] = field(default_factory=list)

    def written(self) -> bytes:
        """The file; tensors are named t0, t1, ..."""
        writer = TFLiteWriter()
        self._write(writer)
        for body in self.bodies:
            writer.subgraph()
            body._write(writer)
            writer.ends(body.inputs, body.outputs)
        return writer.finish(self.inputs, self.outputs)

    def __str__(self) -> str:
        return "\n".join(f"{o.name} {dict(o.values) or ''}\n    " + "\n    ".join(
            [*(self._said(i) for i in o.inputs), *("-> " + self._said(i) for i in o.outputs)]) for o in self.operators)

    def _said(self, index: int) -> str:
        if index < 0:
            return "none"
        t = self.tensors[index]
        data = "" if t.data is None else f" = {t.data.ravel()[:6].tolist()}"
        grid = "" if t.scale is None else f" scale {np.ravel(t.scale)[:4].tolist()} zero {t.zero} axis {t.axis}"
        return f"t{index} {t.dtype}{list(t.shape)}{grid}{data}"

    def _write(self, writer: TFLiteWriter) -> None:
        for i, t in enumerate(self.tensors):
            writer.tensor(f"t{i}", t.dtype, t.shape, t.data, scale=t.scale, zero=t.zero, axis=t.axis,
                          sparsity=t.sparsity, variable=t.variable, signature=t.signature)
        for o in self.operators:
            writer.op(o.name, o.inputs, o.outputs, o.options, o.values, o.version, o.intermediates)

    def part(self, numbers: Sequence[int]) -> Net:
        """A model of some of the operators: what they read and do not make are inputs, what the last makes outputs."""
        chosen = [self.operators[k] for k in numbers]
        made = [i for o in chosen for i in o.outputs]
        read = dict.fromkeys(i for o in chosen for i in o.inputs if i >= 0 and i not in made and
                             self.tensors[i].data is None and not self.tensors[i].variable)
        return Net(self.tensors, chosen, list(read), list(chosen[-1].outputs), self.bodies)

    def unpacks(self, o: Operator) -> bool:
        """Whether an operator only unpacks constant weights."""
        own = self.tensors[o.inputs[0]] if o.inputs and o.inputs[0] >= 0 else None
        return own is not None and own.data is not None and (own.sparsity is not None or own.dtype == "float16")

    def behind(self, number: int) -> list[int]:
        """What unpacks an operator's weights, which belongs to it, then itself."""
        own = self.operators[number]
        return [*(k for k, o in enumerate(self.operators[:number])
                  if self.unpacks(o) and set(o.outputs) & set(own.inputs)), number]
