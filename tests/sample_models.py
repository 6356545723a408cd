"""Small models made call by call, which between them hold everything a model can."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op, OperationCodeEx as Ex

from nnx_convert.ops.host import COS, host_twin
from nnx_convert.types import Entry, Port, Quant, Rim, Source


def scalar(b: ModelBuilder, value: int) -> int:
    """An INT32 constant."""
    i = b.add_operand(T.INT32)
    b.set_operand_value(i, value)
    return i


def constant(b: ModelBuilder, code: T, value: Any, dims: tuple[int, ...] | None = None, scale: float = 0.0) -> int:
    """A constant tensor."""
    array = np.asarray(value, code.dtype)
    i = b.add_operand(code, array.shape if dims is None else dims, scale)
    b.set_operand_value(i, array)
    return i


def finished(b: ModelBuilder, inputs: list[int], outputs: list[int], **more: Any) -> Model:
    """The model."""
    b.identify_inputs_and_outputs(inputs, outputs)
    return b.finish(**more)


def dense() -> Model:
    """relu(x @ w.T + b), twice with the same weights; the second copy of them is another array."""
    b = ModelBuilder()
    x = b.add_operand(T.TENSOR_FLOAT32, (2, 4))
    weights = np.arange(16).reshape(4, 4) / 8 - 1
    for _ in range(2):
        w, bias = constant(b, T.TENSOR_FLOAT32, weights), constant(b, T.TENSOR_FLOAT32, [0, 1, -1, 0.5])
        y = b.add_operand(T.TENSOR_FLOAT32, (2, 4))
        b.add_operation(Op.FULLY_CONNECTED, [x, w, bias, scalar(b, 1)], [y])
        x = y
    return finished(b, [0], [y])


def per_channel() -> Model:
    """A convolution in int8 with a scale per channel, a state, and names and types of a source file."""
    b = ModelBuilder()
    x = b.add_operand(T.TENSOR_QUANT8_ASYMM_SIGNED, (1, 4, 4, 2), 0.1, -3)
    w = b.add_operand(T.TENSOR_QUANT8_SYMM_PER_CHANNEL, (3, 1, 1, 2))
    b.set_operand_symm_per_channel_quant_params(w, 0, (0.1, 1 / 3, 2e-7))
    b.set_operand_value(w, np.arange(6, dtype=np.int8).reshape(3, 1, 1, 2))
    bias = constant(b, T.TENSOR_INT32, [1, 2, 3])
    y = b.add_operand(T.TENSOR_QUANT8_ASYMM_SIGNED, (1, 4, 4, 3), 0.3, 7)
    b.add_operation(Op.CONV_2D, [x, w, bias, scalar(b, 2), scalar(b, 1), scalar(b, 1), scalar(b, 0)], [y])
    start = np.arange(32, dtype=np.int8).reshape(1, 4, 4, 2)
    rim = Rim((Port("Bild\n☃", "int8", (1, 4, 4, 2), Quant(0.1, -3), True, start, (-1.5, 0.1),
                    ((127.5,), (2.0, 1 / 3))),),
              (Port("y", "int8", (1, None, 4, 3), Quant(0.3, 7)),), (Entry("sign", (), (("out", "y"),)),),
              Source("TFLite", "v3", 1, 2, "made up", ("sign", "other"), (("name", "☃"),), ("a.txt",), ("cat", "dog")))
    return finished(b, [x], [y], rim=rim, notes=("op 0 CONV_2D: seen",))


def branch() -> Model:
    """IF whose branches are one model, relaxed."""
    inner = ModelBuilder()
    x, y = inner.add_operand(T.TENSOR_FLOAT32, (2,)), inner.add_operand(T.TENSOR_FLOAT32, (2,))
    inner.add_operation_ex(Ex.NEG_EX, [x], [y])
    negate = finished(inner, [x], [y])
    b = ModelBuilder()
    cond, x = b.add_operand(T.TENSOR_BOOL8, (1,)), b.add_operand(T.TENSOR_FLOAT32, (2,))
    then, orelse = b.add_operand(T.MODEL), b.add_operand(T.MODEL)
    b.set_operand_value_from_model(then, negate)
    b.set_operand_value_from_model(orelse, negate)
    y = b.add_operand(T.TENSOR_FLOAT32, (2,))
    b.add_operation(Op.IF, [cond, then, orelse, x], [y])
    b.relax_computation_float32_to_float16(True)
    return finished(b, [cond, x], [y])


def sparse() -> Model:
    """A sparse constant, rows dense and columns compressed, added to an input of open size."""
    b = ModelBuilder()
    x = b.add_operand(T.TENSOR_FLOAT32, (0, 8))
    stored = constant(b, T.TENSOR_FLOAT32, np.arange(1, 13))
    ints = [constant(b, T.TENSOR_INT32, v) for v in ([0, 1], [0, 1], [4, 8])]
    left_out = []
    for _ in range(3):
        left_out.append(b.add_operand(T.TENSOR_INT32))
        b.set_operand_value(left_out[-1], None)
    pair = [constant(b, T.TENSOR_INT32, v) for v in ([0, 3, 6, 9, 12], [0, 2, 4, 1, 3, 5, 2, 4, 6, 3, 5, 7])]
    w, y = b.add_operand(T.TENSOR_FLOAT32, (4, 8)), b.add_operand(T.TENSOR_FLOAT32, (0, 8))
    order, formats, dims = ints
    b.add_operation(Op.DENSIFY, [stored, order, left_out[0], formats, dims, *left_out[1:], *pair], [w])
    b.add_operation(Op.ADD, [x, w, scalar(b, 0)], [y])
    return finished(b, [x], [y])


def host() -> Model:
    """An operation of the extension, on a type of the extension."""
    b = ModelBuilder()
    x, y = b.add_operand(T.TENSOR_FLOAT64, (3,)), b.add_operand(T.TENSOR_FLOAT64, (3,))
    b.add(host_twin(COS), [x], [y], origin="op 3 COS")
    return finished(b, [x], [y], notes=("op 3 COS: to_host on COS: COS: takes no TENSOR_FLOAT64",))


SAMPLES: dict[str, Callable[[], Model]] = {f.__name__: f for f in (dense, per_channel, branch, sparse, host)}
