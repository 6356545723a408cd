"""Cases of the table's rows on types that only their host twins have."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from row_case import Instance

from nnx_convert import Model
from nnx_convert.ops.host import host_twin
from nnx_convert.schema import OpError
from nnx_convert.types import Tensor, Type


def twin(i: Instance, type_: Type) -> Instance | None:
    """The case on another type that only the host has; None where it has no such row."""
    def of(t: Any) -> Any:
        if not isinstance(t, Tensor) or t.type != i.key:
            return t
        with np.errstate(invalid="ignore"):          # what no integer holds becomes some integer
            return replace(t, type=type_, data=None if t.data is None else np.asarray(t.data).astype(type_.dtype))
    op, inputs, outs = host_twin(i.op), tuple(map(of, i.inputs)), tuple(map(of, i.outs))
    try:
        op.check([a.signature() if isinstance(a, Model) else a for a in inputs], outs)
    except OpError:
        return None
    return replace(i, op=op, key=type_, inputs=inputs, outs=outs)
