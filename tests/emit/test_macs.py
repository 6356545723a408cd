"""Multiply-adds of one operation each, counted by hand."""
from __future__ import annotations

from collections.abc import Sequence

import pytest
from sample_models import SAMPLES, constant, finished

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op
from nnx_convert.emit.macs import macs
from nnx_convert.ops.host import host_twin
from nnx_convert.ops.macs import COUNTS, counter
from nnx_convert.schema import OPS
from nnx_convert.types import F32, Tensor

Shape = tuple[int, ...]


def one(op: Op, shapes: Sequence[Shape], numbers: Sequence[int | bool], out: Shape) -> Model:
    """A float operation on tensors (the first an input) and scalars."""
    b = ModelBuilder()
    x = b.add_operand(T.TENSOR_FLOAT32, shapes[0])
    tensors = [constant(b, T.TENSOR_FLOAT32, [0.0] * _size(s), s) for s in shapes[1:]]
    scalars = [b.add_operand(T.BOOL if isinstance(n, bool) else T.INT32) for n in numbers]
    for i, n in zip(scalars, numbers, strict=True):
        b.set_operand_value(i, n)
    y = b.add_operand(T.TENSOR_FLOAT32, out)
    b.add_operation(op, [x, *tensors, *scalars], [y])
    return finished(b, [x], [y])


def _size(shape: Shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


CASES: dict[str, tuple[Op, list[Shape], list[int | bool], Shape, int]] = {
    "conv": (Op.CONV_2D, [(2, 8, 8, 3), (5, 3, 3, 3), (5,)], [1, 2, 2, 0], (2, 4, 4, 5), 2 * 4 * 4 * 5 * 27),
    "depthwise": (Op.DEPTHWISE_CONV_2D, [(1, 8, 8, 3), (1, 3, 3, 6), (6,)], [1, 1, 1, 2, 0], (1, 8, 8, 6), 64 * 6 * 9),
    "grouped": (Op.GROUPED_CONV_2D, [(1, 4, 4, 4), (6, 1, 1, 2), (6,)], [1, 1, 1, 2, 0, False], (1, 4, 4, 6),
                16 * 6 * 2),
    "dense": (Op.FULLY_CONNECTED, [(7, 4), (9, 4), (9,)], [0], (7, 9), 7 * 9 * 4),
    "matmul": (Op.BATCH_MATMUL, [(2, 3, 4), (2, 5, 4)], [False, True], (2, 3, 5), 2 * 3 * 5 * 4),
    "rnn": (Op.UNIDIRECTIONAL_SEQUENCE_RNN, [(2, 6, 4), (3, 4), (3, 3), (3,), (2, 3)], [0, 0], (2, 6, 3),
            2 * 6 * (3 * 4 + 3 * 3)),
    "none": (Op.RELU, [(2, 3)], [], (2, 3), 0),
    "open": (Op.FULLY_CONNECTED, [(0, 4), (9, 4), (9,)], [0], (0, 9), -1),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operation(case: str) -> None:
    *made, count = CASES[case]
    assert macs(one(*made)) == (None if count < 0 else count)


def test_a_subgraph_counts_once_and_open_sizes_not_at_all() -> None:
    assert macs(SAMPLES["branch"]()) == 0
    assert macs(SAMPLES["dense"]()) == 2 * 2 * 4 * 4


@pytest.mark.parametrize("name", COUNTS)
def test_a_twin_counts_as_its_original(name: str) -> None:
    assert counter(host_twin(OPS[name])) is COUNTS[name]


X, W, OUT = Tensor(F32, (2, 4, 5, 6, 7)), Tensor(F32, (6, 2, 3, 2, 1)), Tensor(F32, (2, 6, 3, 5, 7))
STEPS = {"x": Tensor(F32, (5, 2, 4)), "w": Tensor(F32, (2, 9, 4)), "r": Tensor(F32, (2, 9, 3))}


def test_what_has_any_number_of_axes() -> None:
    assert COUNTS["CONV_ND"]({"x": X, "w": W}, OUT) == 2 * 6 * 3 * 5 * 7 * (2 * 3 * 2)
    assert COUNTS["TRANSPOSE_CONV_ND"]({"x": X, "w": W}, OUT) == 2 * 4 * 5 * 6 * 7 * (2 * 3 * 2)
    assert COUNTS["GRU_SEQUENCE"](STEPS, OUT) == 5 * 2 * 2 * 9 * (4 + 3)
    assert COUNTS["DYNAMIC_QUANTIZE_LSTM"](STEPS, OUT) == 5 * 2 * 2 * 9 * (4 + 3)
    assert COUNTS["CONV_INTEGER"]({"x": X, "w": W}, OUT) == 2 * 6 * 3 * 5 * 7 * (2 * 3 * 2)
    assert COUNTS["MATMUL_INTEGER"]({"x": Tensor(F32, (2, 3, 4)), "y": W}, Tensor(F32, (2, 3, 5))) == 2 * 3 * 5 * 4
