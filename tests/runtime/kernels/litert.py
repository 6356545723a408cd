"""The rows of `litert_rows` as calls of our kernels."""
from __future__ import annotations

from typing import Any

import numpy as np
from litert_rows import ROWS, Row
from one_op import Array

from nnx_convert.ops.host import host_twin
from nnx_convert.runtime.bind import once
from nnx_convert.schema import OPS
from nnx_convert.types import B8, F32, I16, I32, I64, Q8, Q8S, Quant, Tensor, Type

TYPES: dict[str, Type] = {"int8": Q8S, "uint8": Q8, "int16": I16, "int32": I32, "int64": I64, "bool": B8,
                          "float32": F32}


def rows(*names: str) -> list[tuple[str, Row]]:
    """The rows of these operations, each with a name for its test."""
    return [(f"{r[0]} {r[2][0][0]} to {r[3][0]} {n}", r) for n, r in enumerate(ROWS) if r[0] in names]


def tensor(dtype: str, scale: float | None, zero: int, values: Any = None,
           shape: tuple[int, ...] | None = None) -> Tensor:
    """An operand of a row: its values, or just its shape."""
    data = None if values is None else np.array(values, dtype)
    return Tensor(TYPES[dtype], shape if data is None else data.shape, None if scale is None else Quant(scale, zero),
                  data)


def found(row: Row) -> tuple[Array, Array]:
    """What our kernel gives, and the golden values."""
    name, numbers, ins, (dtype, scale, zero), values = row
    op = host_twin(OPS[name]) if OPS[name].code is not None else OPS[name]
    golden = np.array(values, dtype)
    tensors = [tensor(*i) for i in ins]
    free = [p.name for p in op.params if p.name not in numbers or p.name == "axes"]
    args = {p.name: TYPES[dtype] for p in op.params if p.kind.output} | numbers | dict(zip(free, tensors, strict=False))
    made = once(op, {p.name: args[p.name] for p in op.params}, (tensor(dtype, scale, zero, shape=golden.shape),))
    assert made is not None
    return made[0], golden
