"""Cast, CastLike and BitCast: every pair of types."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from one_node import converted, element, model, run

from nnx_convert.errors import FormatError, NnxError, RunError

NUMBERS = ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
           "bool", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
           "int4", "uint4", "int2", "uint2", "float4_e2m1fn")
#: In the range of all types, and beyond that of some where every type says what becomes of it.
SMALL, WIDE = [0, 1, 1, 0], [0, 1, -1, 3, 127, -128, 129, 200, 255, 256, 300, -300, 70000, 2 ** 31 - 1, -2 ** 31]
INTS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def cast(x: np.ndarray[Any, Any], to: Any, opset: int = 28, **attributes: Any) -> onnx.ModelProto:
    target = helper.np_dtype_to_tensor_dtype(to) if isinstance(to, np.dtype) else to
    node = helper.make_node("Cast", ["x"], ["y"], to=to if opset < 6 else target, **attributes)
    kind = getattr(TensorProto, to) if opset < 6 else target
    return model([node], [("x", element(x), x.shape)], [("y", kind, x.shape)], opset)


@pytest.mark.parametrize("to", NUMBERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_numbers_that_both_types_hold_stay(source: str, to: str) -> None:
    x = np.array(SMALL, np.float32).astype(dtype(source))
    found, = run(cast(x, dtype(to)), x)
    assert found.dtype == dtype(to)
    np.testing.assert_array_equal(found.astype(np.float32), np.array(SMALL, np.float32))


@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("source", INTS)
def test_integers_wrap(source: str, to: str) -> None:
    x = np.array(WIDE, np.int64).astype(source)
    found, = run(cast(x, dtype(to)), x)
    np.testing.assert_array_equal(found, x.astype(to), strict=True)


@pytest.mark.parametrize(("source", "to", "want"), [
    ("int32", "int4", [-8, -1, 0, 7, -1]), ("int32", "uint4", [8, 15, 0, 7, 15]), ("int32", "int2", [0, -1, 0, -1, -1]),
    ("int64", "uint2", [0, 3, 0, 3, 3]), ("float32", "uint4", [8, 15, 0, 7, 15])])
def test_integers_wrap_in_half_a_byte(source: str, to: str, want: list[int]) -> None:
    x = np.array([-8, -1, 16, 7, 15], source)
    found, = run(cast(x, dtype(to)), x)
    assert found.dtype == dtype(to) and found.astype(int).tolist() == want


FLOATS: list[tuple[list[float], str, dict[str, Any], list[Any]]] = [
    ([1.8, -1.8, -0.5, 300, -5, 255.9], "uint8", {}, [1, 255, 0, 44, 251, 255]),
    ([1.8, -1.8, 127.5, 128, -129, 300], "int8", {}, [1, -1, 127, -128, 127, 44]),
    ([1.8, -1.8, -0.5, 70000], "int32", {}, [1, -1, 0, 70000]), ([1.8, -1.8, 1e10], "int64", {}, [1, -1, 10 ** 10]),
    ([300, -5, 1.5], "int16", {}, [300, -5, 1]), ([0, -0.0, 1e-30, np.nan], "bool", {}, [False, False, True, True]),
    ([1e6, -1e6, np.inf, np.nan, 0.1], "float8_e4m3fn", {}, [448, -448, 448, np.nan, 0.1015625]),
    ([1e6, np.inf], "float8_e4m3fn", {"saturate": 0}, [np.nan, np.nan]),
    ([1e6, np.inf], "float8_e5m2", {"saturate": 0}, [np.inf, np.inf]),
    ([1e6, -np.inf], "float8_e5m2", {}, [57344, -57344]),
    ([3, 0.75, 1], "float8_e8m0fnu", {}, [4, 1, 1]),
    ([3, 0.75, 2.9], "float8_e8m0fnu", {"round_mode": "down"}, [2, 0.5, 2]),
    ([3, 2.9, 3.1], "float8_e8m0fnu", {"round_mode": "nearest"}, [4, 2, 4]), ([1e5, 0.1], "float16", {}, [np.inf, 0.1]),
    ([0.1, 314.15926, 1e20, np.nan, -np.inf, -2], "object", {},
     ["0.1", "314.15927", "1e+20", "NaN", "-INF", "-2"])]


@pytest.mark.parametrize(("given", "to", "attributes", "want"), FLOATS, ids=[f"{to}{a}" for _, to, a, _ in FLOATS])
def test_floats(given: list[float], to: str, attributes: dict[str, Any], want: list[Any]) -> None:
    x = np.array(given, np.float32)
    found, = run(cast(x, TensorProto.STRING if to == "object" else dtype(to), **attributes), x)
    if to == "object":
        assert found.tolist() == want
    else:
        np.testing.assert_array_equal(found.astype(np.float64), np.array(want, dtype(to)).astype(np.float64))


@pytest.mark.parametrize(("words", "to", "want"), [
    (["1", "-3", "1e3", "0.5", "NaN", "inf", "+INF", "-Inf", " 2"], "float32",
     [1, -3, 1000, 0.5, np.nan, np.inf, np.inf, -np.inf, 2]),
    (["7", "-3", "300", "2.7"], "int32", [7, -3, 300, 2]), (["7", "-3", "300"], "uint8", [7, 253, 44]),
    (["18446744073709551615"], "uint64", [2 ** 64 - 1]), (["1", "0"], "bool", [True, False]),
    (["0.1"], "bfloat16", [0.1])])
def test_texts(words: list[str], to: str, want: list[Any]) -> None:
    x = np.array(words, object)
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(dtype(to)))
    made = model([node], [("x", TensorProto.STRING, x.shape)], [("y", node.attribute[0].i, x.shape)])
    found, = run(made, x)
    np.testing.assert_array_equal(found, np.array(want, dtype(to)))


def test_what_is_no_number_ends_the_run() -> None:
    made = model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [("x", TensorProto.STRING, (1,))],
                 [("y", TensorProto.FLOAT, (1,))])
    with pytest.raises(RunError, match="could not convert"):
        run(made, np.array(["Hello World!"], object))


@pytest.mark.parametrize(("source", "to"), [
    ("float32", "uint8"), ("float32", "int8"), ("float32", "int32"), ("int32", "uint8"), ("int32", "float32"),
    ("uint8", "float32"), ("int8", "float32"), ("int8", "int32"), ("bool", "float32"), ("float32", "bool"),
    ("float16", "float32"), ("float32", "float16")])
def test_what_nnapi_has_needs_no_host(source: str, to: str) -> None:
    x = np.array(SMALL, source)
    assert not [o.op.name for o in converted(cast(x, dtype(to))).operations if o.op.host]


def test_the_first_version_names_its_type() -> None:
    x = np.array([1.5], np.float32)
    np.testing.assert_array_equal(run(cast(x, "INT32", 1), x)[0], np.array([1], np.int32))


def test_a_type_like_that_of_another_tensor() -> None:
    x, like = np.array(2.5, np.float32), np.array([0], np.int64)
    made = model([helper.make_node("CastLike", ["x", "like"], ["y"])],
                 [("x", 1, ()), ("like", 7, (1,))], [("y", 7, ())])
    np.testing.assert_array_equal(run(made, x, like)[0], np.array(2, np.int64), strict=True)


@pytest.mark.parametrize(("source", "to"), [("float32", "int32"), ("int8", "uint8"), ("int16", "bfloat16"),
                                            ("float64", "complex64"), ("uint8", "float8_e4m3fn"), ("int4", "uint4")])
def test_bits_are_read_as_another_type(source: str, to: str) -> None:
    x = np.array([1, -2, 7], np.int32).astype(dtype(source))
    kinds = helper.np_dtype_to_tensor_dtype(x.dtype), helper.np_dtype_to_tensor_dtype(dtype(to))
    made = model([helper.make_node("BitCast", ["x"], ["y"], to=kinds[1])], [("x", kinds[0], (3,))],
                 [("y", kinds[1], (3,))])
    assert run(made, x)[0].tobytes() == x.view(dtype(to)).tobytes()


@pytest.mark.parametrize(("kind", "attributes", "said"), [
    ("Cast", {"to": 99}, "type 99"), ("Cast", {"to": 0}, "no type"), ("Cast", {}, "lacks the attribute 'to'"),
    ("Cast", {"to": 24, "round_mode": "odd"}, "round_mode is 'odd'"), ("BitCast", {"to": 11}, "another number of bits"),
    ("Cast", {"to": 27}, "FLOAT6E2M3")])
def test_what_is_wrong_is_said(kind: str, attributes: dict[str, Any], said: str) -> None:
    made = model([helper.make_node(kind, ["x"], ["y"], **attributes)], [("x", 1, (3,))], [("y", 1, (3,))])
    with pytest.raises(NnxError, match=said) as fault:
        converted(made)
    assert isinstance(fault.value, FormatError) or "FLOAT6" in said
