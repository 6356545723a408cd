"""One operation as a model: operands written as values, built by `ModelBuilder`, run by the executor."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode, OperationCodeEx
from nnx_convert.schema import HOST_CODES, OPS

_TYPES = {"float32": OperandCode.TENSOR_FLOAT32, "float16": OperandCode.TENSOR_FLOAT16,
          "int32": OperandCode.TENSOR_INT32, "bool": OperandCode.TENSOR_BOOL8,
          "uint8": OperandCode.TENSOR_QUANT8_ASYMM, "int8": OperandCode.TENSOR_QUANT8_ASYMM_SIGNED,
          "uint16": OperandCode.TENSOR_QUANT16_ASYMM, "int16": OperandCode.TENSOR_QUANT16_SYMM}
_SCALARS = {bool: OperandCode.BOOL, int: OperandCode.INT32, float: OperandCode.FLOAT32, np.float16: OperandCode.FLOAT16}
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Operand:
    """A tensor operand: a model input of this value where `fed`, else a constant. Of an output, the golden value."""

    value: Array
    type: OperandCode
    scale: float = 0.0
    zero: int = 0
    fed: bool = True
    dims: tuple[int, ...] | None = None          # as declared, where that is not the value's shape

    def const(self) -> Operand:
        """The same as a constant."""
        return replace(self, fed=False)

    def open(self) -> Operand:
        """The same with no size declared."""
        return replace(self, dims=(0,) * self.value.ndim)

    def listed(self) -> tuple[OperandCode, tuple[int, ...], float, int]:
        """What `add_operand` takes."""
        return self.type, self.value.shape if self.dims is None else self.dims, self.scale, self.zero


def t(value: Any, dtype: Any = np.float32) -> Operand:
    """A tensor without quantisation, of the type NNAPI has for the dtype."""
    array = np.asarray(value, dtype)
    return Operand(array, _TYPES[array.dtype.name])


def q(value: Any, scale: float = 1.0, zero: int = 0, dtype: Any = np.uint8, code: OperandCode | None = None) -> Operand:
    """A quantised tensor, by its stored integers."""
    array = np.asarray(value, dtype)
    return Operand(array, code or _TYPES[array.dtype.name], scale, zero)


def ints(*values: Any) -> Operand:
    """A constant index tensor."""
    return t(list(values), np.int32).const()


def model(op: str, args: Sequence[Any], outs: Sequence[Operand]) -> tuple[Model, list[Array]]:
    """The model of an operation (of the host's row where it is called "host.NAME"), and its inputs' values.

    An argument is an `Operand`, a Python number (a constant scalar), or None (left out).
    """
    b = ModelBuilder()
    fed: list[tuple[int, Array]] = []
    inputs = [_add(b, a, fed) for a in args]
    outputs = [b.add_operand(*o.listed()) for o in outs]
    code = OPS[op.removeprefix("host.")].code or 0
    add = b.add_operation_ex if op in OperationCodeEx.__members__ else b.add_operation
    add(HOST_CODES | code & 0xFFFF if op.startswith("host.") else code, inputs, outputs)
    b.identify_inputs_and_outputs([i for i, _ in fed], outputs)
    return b.finish(), [v for _, v in fed]


def _add(b: ModelBuilder, a: Any, fed: list[tuple[int, Array]]) -> int:
    if isinstance(a, Operand) and a.fed:
        i = b.add_operand(*a.listed())
        fed.append((i, a.value))
        return i
    i = b.add_operand(*a.listed()) if isinstance(a, Operand) else b.add_operand(
        OperandCode.TENSOR_INT32 if a is None else _SCALARS[type(a)])
    b.set_operand_value(i, a.value if isinstance(a, Operand) else a)
    return i


def run(op: str, args: Sequence[Any], outs: Sequence[Operand]) -> list[Array]:
    """The outputs; raises what the builder or the run raises."""
    built, values = model(op, args, outs)
    return CompiledModel(built).run(values)


def check(op: str, args: Sequence[Any], *outs: Operand) -> None:
    """The outputs are the golden ones in type, shape and every element."""
    for found, want in zip(run(op, args, outs), outs, strict=True):
        assert (found.dtype, found.shape) == (want.value.dtype, want.value.shape)
        np.testing.assert_array_equal(found, want.value)
