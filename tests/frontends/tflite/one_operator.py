"""Models of one operator, written as data: what goes in, what the file declares, what must come out of import."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tflite_writer import TFLiteWriter

Array = np.ndarray[Any, np.dtype[Any]]
Options = dict[str, Any]


@dataclass(frozen=True, eq=False)
class T:
    """A tensor: a constant where it has `data`, else an input or an output of the model.

    `fed`: what a run feeds an input that may not hold just anything.
    """

    dtype: str
    shape: tuple[int, ...] | None
    data: Any = None
    scale: Any = None
    zero: Any = None
    axis: int = 0
    signature: tuple[int, ...] | None = None
    variable: bool = False
    fed: Any = None

    def add(self, w: TFLiteWriter, name: str) -> int:
        """Its index in the file."""
        data = None if self.data is None else np.asarray(self.data)
        return w.tensor(name, self.dtype, self.shape, data, scale=self.scale, zero=self.zero, axis=self.axis,
                        variable=self.variable, signature=self.signature)


def const(values: Any, dtype: str = "int32", **named: Any) -> T:
    """A constant."""
    array = np.asarray(values)
    return T(dtype, array.shape, array, **named)


def q8(*shape: int, scale: float = 0.5, zero: int = 0, dtype: str = "int8") -> T:
    """A quantised tensor."""
    return T(dtype, shape, None, scale, zero)


@dataclass(frozen=True, eq=False)
class Case:
    """An operator; `nodes` are the names of the operations it becomes, `args` some of the last one's arguments."""

    name: str
    inputs: Sequence[T | None]
    outputs: Sequence[T]
    nodes: str
    options: str | None = None
    values: Options = field(default_factory=dict)
    args: Options = field(default_factory=dict)
    version: int = 1

    def __str__(self) -> str:
        return f"{self.name}-{self.nodes}".replace(" ", "+")


def write(case: Case) -> bytes:
    """The file: inputs are named x0, x1, ..., outputs y0, y1, ..."""
    w = TFLiteWriter()
    ins = [-1 if t is None else t.add(w, f"x{i}") for i, t in enumerate(case.inputs)]
    outs = [t.add(w, f"y{i}") for i, t in enumerate(case.outputs)]
    w.op(case.name, ins, outs, case.options, case.values, case.version)
    fed = [i for i, t in zip(ins, case.inputs, strict=True) if t is not None and t.data is None and not t.variable]
    return w.finish(fed, outs)
