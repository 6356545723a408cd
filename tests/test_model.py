"""Models: what is known of operands, signatures, levels, ports; frozen."""
from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from golden import FAMILIES, legal_models

from nnx_convert.builder import ModelBuilder
from nnx_convert.codes import OperandCode as C, OperationCode as O
from nnx_convert.model import Lifetime, Model, Operand
from nnx_convert.types import F32, UNKNOWN, Port, Quant, Scalar, Tensor, Type


def relu(*dims: int) -> Model:
    b = ModelBuilder()
    x, y = b.add_operand(C.TENSOR_QUANT8_ASYMM, dims, 0.5, 3), b.add_operand(C.TENSOR_QUANT8_ASYMM, dims, 0.5, 3)
    b.add_operation(O.RELU, [x], [y])
    b.identify_inputs_and_outputs([x], [y])
    return b.finish()


#: An operand, and what an operation that reads it is told.
TOLD = [
    (Operand(F32, (2, 0)), Tensor(F32, (2, UNKNOWN))), (Operand(F32), Tensor(F32, None)),
    (Operand(F32, (2,), lifetime=Lifetime.NO_VALUE), None),
    (Operand(Type.INT32, lifetime=Lifetime.CONSTANT, value=np.array(7, np.int32)), Scalar(Type.INT32, 7)),
    (Operand(Type.FLOAT32), Scalar(Type.FLOAT32, UNKNOWN)),
    (Operand(F32, (1,), lifetime=Lifetime.CONSTANT, value=np.float32([2])), Tensor(F32, (1,)))]


@pytest.mark.parametrize(("operand", "told"), TOLD)
def test_operands_as_arguments(operand: Operand, told: object) -> None:
    assert repr(operand.arg()) == repr(told)


@pytest.mark.parametrize(("lifetime", "omittable"), [(Lifetime.INPUT, True), (Lifetime.TEMPORARY, True)])
def test_only_what_a_caller_gives_can_be_left_out(lifetime: Lifetime, omittable: bool) -> None:
    found = Operand(F32, (2,), lifetime=lifetime).arg()
    assert isinstance(found, Tensor) and found.omittable is omittable


def test_a_model_is_frozen_and_knows_its_ports() -> None:
    m = relu(2, 0)
    assert m.rim.inputs == (Port("input0", "uint8", (2, None), Quant(0.5, 3)),)
    assert m.signature().inputs[0].type == C.TENSOR_QUANT8_ASYMM and not list(m.subgraphs)
    with pytest.raises(FrozenInstanceError):
        m.relaxed = True  # type: ignore[misc]


def test_a_model_survives_pickling() -> None:
    m = relu(2, 3)
    again = pickle.loads(pickle.dumps(m))
    assert (again.operands, again.inputs, again.outputs, again.rim, again.level) == (
        m.operands, m.inputs, m.outputs, m.rim, m.level)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operation_runs_after_what_it_reads(family: str) -> None:
    for m in legal_models(family):
        seen = {i for i, o in enumerate(m.operands) if o.lifetime is not Lifetime.TEMPORARY} - {*m.outputs}
        for o in m.operations:
            assert seen.issuperset(o.inputs)
            seen.update(o.outputs)
        assert len(m.checked) == len(m.operations) == len(m.origin)
