"""The ways a case runs: as a model of one operation, saved, of open sizes, all of it fed, all of it constant."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from row_case import Array, Instance, complete

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode, artifact
from nnx_convert.types import ChannelQuant, Quant, Scalar, Tensor

Results = list[Array]


def model(instance: Instance, fed: Callable[[int], bool], sizes: bool = True) -> tuple[Model, Results]:
    """The model of one operation and its inputs. `fed`: what is an input; `sizes`: whether these say their sizes."""
    b, inputs, values, indices = ModelBuilder(), [], [], []
    for i, a in enumerate(instance.inputs):
        given = fed(i) and isinstance(a, Tensor | Scalar)
        index = _operand(b, a, sizes or not given)
        indices.append(index)
        if given:
            inputs.append(index)
            values.append(np.asarray(a.data if isinstance(a, Tensor) else a.value, a.type.dtype))
        elif isinstance(a, Model):
            b.set_operand_value_from_model(index, a)
        else:
            b.set_operand_value(index, a.data if isinstance(a, Tensor) else None if a is None else _number(a))
    outs = [_operand(b, t, sizes and complete(t)) for t in instance.outs]
    b.add(instance.op, indices, outs)
    b.identify_inputs_and_outputs(inputs, outs)
    return b.finish(), values


def _number(a: Scalar) -> Any:
    return np.asarray(a.value, a.type.dtype)


def _operand(b: ModelBuilder, a: Any, sized: bool) -> int:
    if not isinstance(a, Tensor):
        code = OperandCode.MODEL if isinstance(a, Model) else OperandCode.TENSOR_INT32 if a is None else a.type
        return b.add_operand(code)
    dims = a.shape if sized else (0,) * a.rank
    if isinstance(a.quant, ChannelQuant):
        index = b.add_operand(a.type, a.shape)          # scales need their dimension
        b.set_operand_symm_per_channel_quant_params(index, a.quant.axis, a.quant.scales)
        return index
    quant = a.quant or Quant(0.0, 0)
    return b.add_operand(a.type, dims, quant.scale, quant.zero)


def usual(instance: Instance) -> tuple[Model, Results]:
    """Weights and indices constant, the rest fed; also what is empty, which no constant is."""
    return model(instance, lambda i: instance.fed[i] or _empty(instance, i))


def whole(instance: Instance) -> tuple[Model, Results]:
    """Everything fed, numbers too."""
    return model(instance, lambda i: True)


def unsized(instance: Instance) -> tuple[Model, Results]:
    """As usual, no size being said."""
    return model(instance, lambda i: instance.fed[i] or _empty(instance, i), sizes=False)


def fixed(instance: Instance) -> tuple[Model, Results]:
    """Everything constant, but what is empty."""
    return model(instance, lambda i: _empty(instance, i))


def _empty(instance: Instance, i: int) -> bool:
    a = instance.inputs[i]
    return isinstance(a, Tensor) and 0 in a.shape


def saved(instance: Instance) -> tuple[Model, Results]:
    """As usual, through the bytes of a file."""
    made, values = usual(instance)
    return artifact.from_bytes(artifact.to_bytes(made)), values


def run(made: tuple[Model, Results]) -> Results:
    """The outputs."""
    return CompiledModel(made[0]).run(made[1])


def told(outputs: Results) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Types, shapes and bytes: what has to agree. Zeros lose their sign: a maximum of two gives either."""
    return [(a.dtype.name, a.shape, (a + a.dtype.type(0)).tobytes()) for a in outputs]


WAYS = {"unsized": unsized, "whole": whole, "fixed": fixed, "saved": saved}
