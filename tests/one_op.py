"""One operation of the table, computed by its kernel: arguments by name, as arrays and numbers."""
from __future__ import annotations

from typing import Any

import numpy as np

from nnx_convert.runtime.bind import once
from nnx_convert.schema import OpDef
from nnx_convert.types import ChannelQuant, Quant, Tensor, Type

Array = np.ndarray[Any, Any]


def tensor(data: Any, code: Type, quant: Quant | ChannelQuant | None = None) -> Tensor:
    """A constant of a type."""
    with np.errstate(invalid="ignore"):          # what no integer holds becomes some integer
        array = np.asarray(data, code.dtype)
    return Tensor(code, array.shape, quant, array)


def run_op(op: OpDef, args: dict[str, Any], *outs: Tensor) -> list[Array]:
    """The outputs of an operation on canonical arguments; `outs` gives what inference leaves open (grids)."""
    names = op.forms[0].names
    full = {n: args.get(n, next((p.default for p in op.params if n in (p.name, p.record)), None)) for n in names}
    inferred = op.infer(full, max(1, len(outs)))
    made = tuple(Tensor(t.type, t.dims, o.quant if o else t.quant) for t, o in
                 zip(inferred, outs or (None,) * len(inferred), strict=True))
    found = once(op, full, made)
    assert found is not None, f"{op.name} has no kernel"
    return found
