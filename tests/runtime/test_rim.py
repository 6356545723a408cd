"""The ways into a model: what a run remembers of the one before changes nothing."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert import InputError, Model, ModelBuilder, OperandCode, OperationCode
from nnx_convert.runtime.rim import Doors

FLOAT = OperandCode.TENSOR_FLOAT32


def added() -> Model:
    """input0 + input1, as many of each as a run gives."""
    b = ModelBuilder()
    x, y, out = (b.add_operand(FLOAT, (0,)) for _ in range(3))
    act = b.add_operand(OperandCode.INT32)
    b.set_operand_value(act, 0)
    b.add_operation(OperationCode.ADD, [x, y, act], [out])
    b.identify_inputs_and_outputs([x, y], [out])
    return b.finish()


def test_runs_alternate_between_inputs_of_all_kinds() -> None:
    doors = Doors(added())
    x, y = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    for given in ([x, y], [x, None], [x, None], [x, y], [[0, 1, 2], y], [y, x], [x.astype(np.float16), y], [x, y]) * 2:
        arrays = doors.enter(given)
        for array, value in zip(arrays, given, strict=True):
            if value is None:
                assert array is None
            else:
                assert array is not None and array.dtype == np.float32 and np.array_equal(array, value)


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((3, 1), np.float32), "x", None])
def test_what_did_not_fit_at_first_does_not_fit_later(value: object) -> None:
    doors = Doors(added())
    x = np.zeros(3, np.float32)
    doors.enter([x, x])
    if value is None:
        assert doors.enter([x, value])[1] is None
    else:
        with pytest.raises(InputError):
            doors.enter([x, value])
