"""Tensors of every type, in every way a message holds them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from nnx_convert import types as t
from nnx_convert.errors import FormatError, NnxError, Unsupported
from nnx_convert.frontends.onnx.external import Folder
from nnx_convert.frontends.onnx.tensors import KINDS, OTHERS, PLAIN, array, dense_constant

NOWHERE = Folder(None)
NUMBERS = sorted(code for code in KINDS if code != TensorProto.STRING)


def elements(code: int, shape: tuple[int, ...]) -> np.ndarray:
    """Some elements of a type."""
    drawn = np.random.default_rng(code).normal(0, 3, shape)
    unsigned = KINDS[code].name.startswith(("UINT", "FLOAT8E8M0"))
    return np.asarray(drawn > 0 if code == TensorProto.BOOL else abs(drawn) if unsigned else drawn).astype(
        KINDS[code].type.dtype)


def tensor(**fields: Any) -> TensorProto:
    """A message of these fields, called t."""
    return TensorProto(**{"name": "t", "dims": [2], "data_type": TensorProto.FLOAT} | fields)


def test_all_types_of_onnx_are_known() -> None:
    assert set(TensorProto.DataType.values()) - {0} == {*KINDS, *OTHERS}
    assert all(TensorProto.DataType.Name(code) == kind.name for code, kind in KINDS.items())


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 2)], ids=str)
@pytest.mark.parametrize("code", NUMBERS, ids=lambda c: KINDS[c].name)
def test_raw_data(code: int, shape: tuple[int, ...]) -> None:
    want = elements(code, shape)
    proto = numpy_helper.from_array(want)
    found = array(proto, NOWHERE)
    assert (proto.data_type, found.dtype, found.shape, found.tobytes()) == (code, want.dtype, shape, want.tobytes())


@pytest.mark.parametrize("shape", [(), (0,), (3, 5)], ids=str)
@pytest.mark.parametrize("code", NUMBERS, ids=lambda c: KINDS[c].name)
def test_data_in_the_field_of_the_type(code: int, shape: tuple[int, ...]) -> None:
    want = elements(code, shape)
    proto = helper.make_tensor("t", code, shape, want.reshape(-1).tolist())
    found = array(proto, NOWHERE)
    assert (found.dtype, found.shape, found.tobytes()) == (want.dtype, shape, numpy_helper.to_array(proto).tobytes())


def test_texts_are_bytes() -> None:
    found = array(helper.make_tensor("t", TensorProto.STRING, (2, 1), [b"a", b"\xff"]), NOWHERE)
    assert found.shape == (2, 1) and found.reshape(-1).tolist() == [b"a", b"\xff"]


@pytest.mark.parametrize(("code", "codes", "want"), [
    (TensorProto.INT8, [-128, 255], [-128, -1]), (TensorProto.FLOAT16, [0x3C00, -0x4400], [1, -1]),
    (TensorProto.BOOL, [0, 7], [False, True])], ids=["int8", "float16", "bool"])
def test_bit_patterns_with_a_sign_or_without(code: int, codes: list[int], want: list[Any]) -> None:
    assert array(tensor(data_type=code, int32_data=codes), NOWHERE).tolist() == want


@pytest.mark.parametrize(("code", "raw", "want"), [
    (TensorProto.INT4, b"\x8f\x07", [-1, -8, 7]), (TensorProto.UINT4, b"\x8f\x07", [15, 8, 7]),
    (TensorProto.INT2, b"\x36", [-2, 1, -1]), (TensorProto.UINT2, b"\x36", [2, 1, 3]),
    (TensorProto.FLOAT4E2M1, b"\xf2\x01", [1, -6, 0.5])], ids=["int4", "uint4", "int2", "uint2", "float4"])
def test_the_lowest_bits_come_first(code: int, raw: bytes, want: list[float]) -> None:
    found = array(tensor(data_type=code, dims=[3], raw_data=raw), NOWHERE)
    assert found.itemsize == 1 and found.astype(np.float32).tolist() == want


def test_truth_is_any_bit() -> None:
    assert array(tensor(data_type=TensorProto.BOOL, raw_data=b"\x02\0"), NOWHERE).tolist() == [True, False]


def test_a_value_has_the_grid_of_plain_integers() -> None:
    found = dense_constant(helper.make_tensor("t", TensorProto.UINT8, (), [7]), NOWHERE)
    assert (found.name, found.type, found.shape, found.tensor.quant) == ("t", t.Q8, (1,), PLAIN)


def test_raw_data_are_not_copied_where_they_are_aligned() -> None:
    own = np.arange(64, dtype=np.float32)
    said = tensor(dims=[8], data_location=TensorProto.EXTERNAL)
    for key, value in {"own": "64", "length": "32"}.items():
        said.external_data.add(key=key, value=value)
    found = array(said, Folder(None, own.tobytes()))
    assert found.tolist() == own[16:24].tolist() and not found.flags.owndata


WRONG: dict[str, tuple[dict[str, Any], type[NnxError], str]] = {
    "no type": ({"data_type": 0}, FormatError, "tensor 't': has no type"),
    "unknown type": ({"data_type": 99}, FormatError, "has the type 99"),
    "float6": ({"data_type": 27}, Unsupported, "FLOAT6E2M3"),
    "negative size": ({"dims": [-1], "raw_data": b""}, FormatError, "has the shape [-1]"),
    "huge size": ({"dims": [0, 1 << 40]}, FormatError, "has the shape"),
    "many sizes": ({"dims": [1] * 40}, FormatError, "has 40 dimensions"),
    "no data": ({}, FormatError, "has the shape [2] and no data"),
    "short": ({"raw_data": b"1234567"}, FormatError, "takes 8 bytes, and has 7"),
    "long": ({"raw_data": b"123456789"}, FormatError, "takes 8 bytes, and has 9"),
    "too many floats": ({"float_data": [1, 2, 3]}, FormatError, "has 2, not 3"),
    "twice": ({"float_data": [1, 2], "raw_data": bytes(8)}, FormatError, "twice, as float_data and as raw_data"),
    "two fields": ({"float_data": [1, 2], "int32_data": [1, 2]}, FormatError, "twice"),
    "another field": ({"int64_data": [1, 2]}, FormatError, "has its data as int64_data, not as float_data"),
    "texts in raw data": ({"data_type": 8, "raw_data": b"ab"}, FormatError, "has its data as raw_data"),
    "few texts": ({"data_type": 8, "string_data": [b"a"]}, FormatError, "2 elements and has 1"),
    "segment": ({"raw_data": bytes(8), "segment": TensorProto.Segment(begin=0, end=1)}, Unsupported, "segment"),
    "out of range": ({"data_type": 3, "int32_data": [1, 256]}, FormatError, "holds 1 to 256 in 8 bits"),
    "beyond uint32": ({"data_type": 12, "uint64_data": [1, 1 << 32]}, FormatError, "holds 4294967296"),
    "half a complex": ({"data_type": 14, "float_data": [1, 2, 3]}, FormatError, "has 4, not 3"),
    "external, too": ({"raw_data": bytes(8), "data_location": 1}, FormatError, "twice"),
    "nowhere": ({"data_location": 1}, Unsupported, "given as bytes has no folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    fields, kind, said = WRONG[name]
    with pytest.raises(kind, match="tensor 't'") as found:
        array(tensor(**fields), NOWHERE)
    assert said in str(found.value)
