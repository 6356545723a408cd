"""Models that a device could take, which between them make every call that NNAPI has for building one."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sample_models import branch, constant, dense, finished, per_channel, scalar

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op, OperationCodeEx as Ex

F32, I32 = T.TENSOR_FLOAT32, T.TENSOR_INT32


def loop() -> Model:
    """while i < 5: i, x = i + 1, if(i < 2, -x, x * 1.5)."""
    one = ModelBuilder()
    i, x, more = one.add_operand(I32, (1,)), one.add_operand(F32, (2,)), one.add_operand(T.TENSOR_BOOL8, (1,))
    one.add_operation(Op.LESS, [i, constant(one, I32, [5])], [more])
    two = ModelBuilder()
    i2, x2, early = two.add_operand(I32, (1,)), two.add_operand(F32, (2,)), two.add_operand(T.TENSOR_BOOL8, (1,))
    next_, y = two.add_operand(I32, (1,)), two.add_operand(F32, (2,))
    two.add_operation(Op.LESS, [i2, constant(two, I32, [2])], [early])
    two.add_operation(Op.ADD, [i2, constant(two, I32, [1]), scalar(two, 0)], [next_])
    held = [two.add_operand(T.MODEL), two.add_operand(T.MODEL)]
    for index, factor in zip(held, (-1.0, 1.5), strict=True):
        two.set_operand_value_from_model(index, times(factor))
    two.add_operation(Op.IF, [early, *held, x2], [y])
    b = ModelBuilder()
    models = [b.add_operand(T.MODEL), b.add_operand(T.MODEL)]
    b.set_operand_value_from_model(models[0], finished(one, [i, x], [more]))
    b.set_operand_value_from_model(models[1], finished(two, [i2, x2], [next_, y]))
    ins = [b.add_operand(I32, (1,)), b.add_operand(F32, (2,))]
    outs = [b.add_operand(I32, (1,)), b.add_operand(F32, (2,))]
    b.add_operation(Op.WHILE, [*models, *ins], outs)
    return finished(b, ins, outs)


def counted() -> Model:
    """for i in range(n): x = x * 1.5. The loop gives x alone: i is state that it carries, n stays as it is."""
    count, value, truth = (I32, (1,)), (F32, (2,)), (T.TENSOR_BOOL8, (1,))
    one = ModelBuilder()
    x, i, n, more = (one.add_operand(*kind) for kind in (value, count, count, truth))
    one.add_operation(Op.LESS, [i, n], [more])
    two = ModelBuilder()
    x2, i2, n2, y, next_ = (two.add_operand(*kind) for kind in (value, count, count, value, count))
    two.add_operation(Op.MUL, [x2, constant(two, F32, [1.5]), scalar(two, 0)], [y])
    two.add_operation(Op.ADD, [i2, constant(two, I32, [1]), scalar(two, 0)], [next_])
    b = ModelBuilder()
    models = [b.add_operand(T.MODEL), b.add_operand(T.MODEL)]
    b.set_operand_value_from_model(models[0], finished(one, [x, i, n], [more]))
    b.set_operand_value_from_model(models[1], finished(two, [x2, i2, n2], [y, next_]))
    most, start, out = (b.add_operand(*kind) for kind in (count, value, value))
    b.add_operation(Op.WHILE, [*models, start, constant(b, I32, [0]), most], [out])
    return finished(b, [most, start], [out])


def times(factor: float) -> Model:
    """x * factor."""
    b = ModelBuilder()
    x, y = b.add_operand(F32, (2,)), b.add_operand(F32, (2,))
    b.add_operation(Op.MUL, [x, constant(b, F32, [factor]), scalar(b, 0)], [y])
    return finished(b, [x], [y])


def extended() -> Model:
    """Most of it in NNAPI-EX: gathered, halved, compared, the largest found, stacked, cast, one-hot."""
    b = ModelBuilder()
    x = b.add_operand(F32, (4, 6))
    taken, low, high, near = (b.add_operand(F32, s) for s in ((3, 6), (3, 3), (3, 3), (3, 3)))
    b.add_operation_ex(Ex.GATHER_EX, [x, constant(b, I32, [2, 0, 3]), scalar(b, 0)], [taken])
    b.add_operation_ex(Ex.SPLIT_EX, [taken, scalar(b, 1), scalar(b, 2)], [low, high])
    b.add_operation_ex(Ex.SQUARED_DIFFERENCE_EX, [low, high], [near])
    best, where = b.add_operand(F32, (3, 2)), b.add_operand(I32, (3, 2))
    b.add_operation_ex(Ex.TOPK_V2_EX, [near, scalar(b, 2)], [best, where])
    most, root = b.add_operand(F32, (3,)), b.add_operand(F32, (3,))
    b.add_operation_ex(Ex.REDUCE_MAX_EX, [best, constant(b, I32, [1])], [most])
    b.add_operation_ex(Ex.SQRT_EX, [most], [root])
    first, stacked, whole = b.add_operand(I32, (3,)), b.add_operand(F32, (2, 3)), b.add_operand(I32, (2, 3))
    b.add_operation_ex(Ex.ARGMAX_EX, [near, scalar(b, 1)], [first])
    b.add_operation_ex(Ex.PACK_EX, [most, root, scalar(b, 2), scalar(b, 0)], [stacked])
    b.add_operation_ex(Ex.CAST_EX, [stacked], [whole])
    marked, on, off = b.add_operand(F32, (3, 3)), b.add_operand(T.FLOAT32), b.add_operand(T.FLOAT32)
    b.set_operand_value(on, 2.5)
    b.set_operand_value(off, -1.0)
    b.add_operation_ex(Ex.ONE_HOT_EX, [first, scalar(b, 3), on, off], [marked])
    return finished(b, [x], [whole, where, marked, root])


def relaxed() -> Model:
    """Floats that may be computed as float16: level 28."""
    b = ModelBuilder()
    x, y = b.add_operand(F32, (2, 40)), b.add_operand(F32, (2, 2))
    w = constant(b, F32, np.linspace(-1, 1, 80).reshape(2, 40))
    b.add_operation(Op.FULLY_CONNECTED, [x, w, constant(b, F32, [0.1, -3e-39]), scalar(b, 1)], [y])
    b.relax_computation_float32_to_float16(True)
    return finished(b, [x], [y])


def halves() -> Model:
    """float16 and booleans, scalars and tensors, in and out: level 29."""
    b = ModelBuilder()
    x, yes = b.add_operand(T.TENSOR_FLOAT16, (5,)), b.add_operand(T.TENSOR_BOOL8, (5,))
    other = constant(b, T.TENSOR_FLOAT16, [np.inf, -0.0, 1 / 3, 6e-8, -2])
    y, not_ = b.add_operand(T.TENSOR_FLOAT16, (5,)), b.add_operand(T.TENSOR_BOOL8, (5,))
    b.add_operation(Op.SELECT, [yes, x, other], [y])
    b.add_operation(Op.LOGICAL_AND, [yes, constant(b, T.TENSOR_BOOL8, [True, False, True, True, False])], [not_])
    return finished(b, [x, yes], [y, not_])


def looked_up() -> Model:
    """A row of two, by an index that a drawn one is not."""
    b = ModelBuilder()
    i, y = b.add_operand(I32, (8,)), b.add_operand(F32, (8, 3))
    b.add_operation(Op.EMBEDDING_LOOKUP, [i, constant(b, F32, [[1, 2, 3], [4, 5, 6]])], [y])
    return finished(b, [i], [y])


MADE: dict[str, Callable[[], Model]] = {
    f.__name__: f for f in (dense, per_channel, branch, loop, extended, relaxed, halves, looked_up)}
