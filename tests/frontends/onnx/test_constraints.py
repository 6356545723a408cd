"""The table of types is that of ONNX's schemas, and what it forbids is said in the file's words."""
from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

import nnx_convert
from nnx_convert.errors import FormatError
from nnx_convert.frontends.onnx.constraints import TABLE, takes, written

FLOAT, INT32, INT64, STRING, BOOL, COMPLEX64 = 1, 6, 7, 8, 9, 14


def test_the_table_is_fresh() -> None:
    assert set(written()) <= set(TABLE.read_text(encoding="ascii").splitlines()), (
        "python -m nnx_convert.frontends.onnx.constraints writes it")


def test_an_operator_that_is_none_of_onnx() -> None:
    assert takes("", "Magic", 20) is None and takes("com.microsoft", "Gelu", 1) is None


def model(op: str, *types: int, opset: int = 21, **attributes: Any) -> bytes:
    """A model of one node with inputs of these types, each of shape [2, 2]."""
    names = [f"x{i}" for i in range(len(types))]
    ins = [helper.make_tensor_value_info(n, t, (2, 2)) for n, t in zip(names, types, strict=True)]
    out = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", ins, [out])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


@pytest.mark.parametrize(("op", "types", "said"), [
    ("MatMul", (FLOAT, COMPLEX64), "op 0 MatMul: does not take TENSOR_COMPLEX64 as input 1"),
    ("Add", (FLOAT, INT32), "input 0 is TENSOR_FLOAT32 and input 1 TENSOR_INT32: they must have one type"),
    ("Not", (FLOAT,), "does not take TENSOR_FLOAT32 as input 0"),
    ("Where", (BOOL, FLOAT, INT64), "input 1 is TENSOR_FLOAT32 and input 2 TENSOR_INT64"),
    ("Max", (FLOAT, FLOAT, INT64), "input 0 is TENSOR_FLOAT32 and input 2 TENSOR_INT64"),
    ("Gather", (FLOAT, FLOAT), "does not take TENSOR_FLOAT32 as input 1"),
    ("SequenceAt", (FLOAT, INT64), "does not take TENSOR_FLOAT32 as input 0")], ids=lambda v: str(v)[:9])
def test_types_that_do_not_fit(op: str, types: tuple[int, ...], said: str) -> None:
    with pytest.raises(FormatError) as found:
        nnx_convert.convert(model(op, *types))
    assert said in str(found.value)


def test_an_operator_that_is_newer_than_the_file_says() -> None:
    with pytest.raises(FormatError, match=r"RMSNormalization: is an operator of version 23 of ai.onnx on, and"):
        nnx_convert.convert(model("RMSNormalization", FLOAT, FLOAT))


def test_what_an_optimiser_writes_into_older_files() -> None:
    nnx_convert.convert(model("LayerNormalization", FLOAT, FLOAT, opset=13))


@pytest.mark.parametrize(("op", "types"), [
    ("Add", (INT64, INT64)), ("Pow", (FLOAT, INT64)), ("Where", (BOOL, STRING, STRING)), ("Gather", (STRING, INT32)),
    ("SequenceConstruct", (FLOAT, FLOAT)), ("Max", (INT32, INT32))], ids=str)
def test_types_that_fit(op: str, types: tuple[int, ...]) -> None:
    nnx_convert.convert(model(op, *types))
