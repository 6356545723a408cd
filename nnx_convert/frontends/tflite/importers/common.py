"""What importers share: fused activations, output grids, weights, axes, sizes."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import FormatError, Unsupported
from ....graph import Value
from ....ops import convert, elementwise as e
from ....ops.host import host_twin
from ....schema import OpDef, OpError
from ....types import BYTES, F32, I32, I64, Q8, Q8S, QPC, Quant, Tensor
from ..importer import Op
from ..registry import narrow
from ..tensors import PLAIN

#: TFLite's codes of fused activations that NNAPI has, too, under the same numbers.
FUSED = range(4)
#: TFLite code of a fused activation -> the operation that does it afterwards.
AFTER: dict[int, OpDef] = {1: e.RELU, 2: e.RELU1, 3: e.RELU6, 4: e.TANH}


def grid(g: Op, x: Value) -> Tensor | None:
    """The declared output, for a node whose grid must be known before an activation follows it."""
    return Tensor(x.type, None, g.outs[0].quant or (PLAIN if x.type in BYTES else None)) \
        if g.outs and g.outs[0].type == x.type else None


def activated(g: Op, act: int, make: Callable[[int], Value]) -> Value:
    """A node with a fused activation, as an operation after it where NNAPI has no code for that."""
    return make(act) if act in FUSED else followed(g, act, make(0))


def followed(g: Op, act: int, x: Value) -> Value:
    """An activation after an operation that has none."""
    if act == 0:
        return x
    if act not in AFTER or act not in FUSED and x.tensor.quant is not None:
        raise Unsupported(f"fused activation {act} on {x.type.name}")
    return g(AFTER[act], x)


def onto(g: Op, op: OpDef, *args: Any, **named: Any) -> Value:
    """An operation on the output grid the file declares: the host's where NNAPI's has another.

    TFLite computes the value on that grid in one rounding; a REQUANTIZE after NNAPI's operation would be two.
    """
    want, key = g.outs[0], args[0]
    if want.quant is None or key.tensor.quant is None:
        return g(op, *args, **named)
    out = Tensor(want.type, None, want.quant)
    try:
        return g(op, *args, out=out, **named)
    except OpError:
        return g(host_twin(op), *args, out=out, **named)


def hybrid(x: Value, w: Value) -> bool:
    """Whether TFLite multiplies x as int8: floats beside int8 weights."""
    return x.type == F32 and w.type in (Q8S, QPC)


def unmoved(w: Value) -> Value:
    """int8 weights as LiteRT's kernels take them where they ignore the zero point."""
    return Value(w.name, replace(w.tensor, quant=Quant(w.tensor.scale)), w.sparse) \
        if w.type == Q8S and isinstance(w.tensor.quant, Quant) and w.tensor.quant.zero and w.constant else w


def real(g: Op, w: Value, x: Value) -> Value:
    """Quantised weights beside a float x (a hybrid kernel) as floats."""
    return g(convert.DEQUANTIZE, w, to=F32) if x.type == F32 and w.type in (Q8, Q8S, QPC) else w


def index(g: Op, v: Value) -> Value:
    """An index tensor as INT32, which NNAPI counts in; a constant one is narrowed here."""
    if v.tensor.data is not None and v.type != I32:
        return g.const(narrow(v.tensor.data), I32)
    return g(convert.CAST, v, to=I32) if v.type == I64 else v


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; raises `FormatError` where there is none such."""
    if not -rank <= axis < rank:
        raise FormatError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def element(v: Value, name: str) -> float:
    """The one element of a constant; raises `Unsupported` where it is computed."""
    data = v.tensor.data
    if data is None or data.size != 1:
        raise Unsupported(f"{name} must be a constant of one element")
    found: float = data.item(0)
    return found


def span(data: np.dtype[Any]) -> range:
    """The integers of a type."""
    return range(int(np.iinfo(data).min), int(np.iinfo(data).max) + 1)
