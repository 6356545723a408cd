"""Constants of the types that NumPy has not: built, kept in a file, read again."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_convert import CompiledModel, Model, ModelBuilder
from nnx_convert.artifact import from_bytes, to_bytes
from nnx_convert.artifact.container import pack, unpack
from nnx_convert.errors import ArtifactError, ModelError
from nnx_convert.ops.host import host_twin
from nnx_convert.ops.sequence import LIST_SIZE
from nnx_convert.ops.shape import CONCATENATION
from nnx_convert.types import C128, F4E2M1, I2, I4, LIST, NARROW_FLOATS, NARROW_INTS, U2, U4, Type

NARROW = (*NARROW_FLOATS, *NARROW_INTS)


def joined(type_: Type, value: Any, size: int = 2) -> Model:
    """A constant behind an input."""
    b = ModelBuilder()
    x, c, y = b.add_operand(type_, [2]), b.add_operand(type_, [size]), b.add_operand(type_, [2 + size])
    axis = b.add_operand(Type.INT32)
    b.set_operand_value(c, value)
    b.set_operand_value(axis, 0)
    b.add(host_twin(CONCATENATION), [x, c, axis], [y])
    b.identify_inputs_and_outputs([x], [y])
    return b.finish()


@pytest.mark.parametrize("size", [2, 70])
@pytest.mark.parametrize("type_", [*NARROW, C128], ids=lambda t: t.name)
def test_constants_are_kept(type_: Type, size: int) -> None:
    value = np.resize([1.0, 0.5, 2.0] if type_ in (*NARROW_FLOATS, C128) else [1, 0, 1], size).astype(type_.dtype)
    x = value[:2].copy()
    for m in (joined(type_, value, size), from_bytes(to_bytes(joined(type_, value, size)))):
        assert m.rim.inputs[0].dtype == type_.dtype.name
        found, = CompiledModel(m).run([x])
        assert found.dtype == type_.dtype and found.tobytes() == np.concatenate([x, value]).tobytes()


@pytest.mark.parametrize("type_", NARROW, ids=lambda t: t.name)
def test_numbers_become_elements(type_: Type) -> None:
    found, = CompiledModel(joined(type_, [1, 1])).run([np.ones(2, np.float32).astype(type_.dtype)])
    assert found.astype(np.float32).tolist() == [1] * 4


@pytest.mark.parametrize(("type_", "value", "said"), [
    (I4, [8, 0], "its value does not fit TENSOR_INT4"), (U4, [-1, 0], "its value does not fit TENSOR_UINT4"),
    (I2, [0.5, 0], "it is TENSOR_INT2, its value float64"), (F4E2M1, ["a", "b"], "it is TENSOR_FLOAT4_E2M1"),
    (U2, np.zeros(2, np.int8), "it is TENSOR_UINT2"), (LIST, np.array([None, None]), "a TENSOR_LIST is no constant")])
def test_what_does_not_fit_is_refused(type_: Type, value: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        joined(type_, value)


@pytest.mark.parametrize(("type_", "code"), [(I4, "10"), (U4, "ff"), (F4E2M1, "10"), (I2, "04"), (U2, "80")])
def test_bits_that_a_type_has_not_are_refused(type_: Type, code: str) -> None:
    header, tail = unpack(to_bytes(joined(type_, np.zeros(2, type_.dtype))))
    for o in header["models"][0]["operands"]:
        if o.get("hex") == "0000":
            o["hex"] = code + "00"
    with pytest.raises(ArtifactError, match="has bits beyond its own"):
        from_bytes(b"".join(pack(header, [bytes(tail)])))


@pytest.mark.parametrize(("dtype", "said"), [
    ("float", "a port of type"), ("sequence(float32", "a port of type"), ("list(int64)", "a port of type"),
    ("bfloat17", "a port of type"), ("sequence(float32)", "its operand does not"), ("object", "its operand does not")])
def test_a_port_that_holds_something_else_is_refused(dtype: str, said: str) -> None:
    header, tail = unpack(to_bytes(joined(I4, np.zeros(2, I4.dtype))))
    header["models"][0]["ports"]["inputs"][0]["dtype"] = dtype
    with pytest.raises(ArtifactError, match=said):
        from_bytes(b"".join(pack(header, [bytes(tail)])))


def test_a_list_of_a_model_built_by_hand_holds_float32() -> None:
    b = ModelBuilder()
    x, y = b.add_operand(LIST, [0]), b.add_operand(Type.TENSOR_INT64, [1])
    b.add(LIST_SIZE, [x], [y])
    b.identify_inputs_and_outputs([x], [y])
    m = from_bytes(to_bytes(b.finish()))
    assert CompiledModel(m).run([[np.ones(2, np.float32)] * 3])[0].tolist() == [3]


def test_a_list_in_a_file_is_no_constant() -> None:
    header, tail = unpack(to_bytes(joined(U4, np.ones(2, U4.dtype))))
    for o in header["models"][0]["operands"]:
        if "hex" in o and o["type"] == int(U4):
            o["type"] = int(LIST)
    with pytest.raises(ArtifactError, match="TENSOR_LIST is no constant"):
        from_bytes(b"".join(pack(header, [bytes(tail)])))
