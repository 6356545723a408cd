"""What a file declares, beside what its operators give; the ports as a user sees them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

import nnx_convert
from nnx_convert.errors import FormatError, UsageError

FLOAT, INT64, BOOL = 1, 7, 9


def model(op: str, x: Any, y: Any, *between: Any, outputs: Sequence[str] = "y", **attributes: Any) -> bytes:
    """A model of one operator and an Identity behind it; types and shapes as they are declared, None where not."""
    def port(name: str, said: Any) -> Any:
        return helper.make_tensor_value_info(name, *said) if said else helper.make_empty_tensor_value_info(name)

    nodes = [helper.make_node(op, ["x"], ["t"], **attributes), helper.make_node("Identity", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "g", [port("x", x)], [port(n, y) for n in outputs], value_info=[
        port("t", said) for said in between])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()


SHAPE = (FLOAT, (2, 3))


@pytest.mark.parametrize(("y", "between", "said"), [
    ((FLOAT, (2, 4)), (), "'y' is declared to have the shape [2, 4], its operator gives TENSOR_FLOAT32[2, 3]"),
    ((INT64, (2, 3)), (), "'y' is declared TENSOR_INT64, its operator gives TENSOR_FLOAT32"),
    ((FLOAT, (2, 3, 1)), (), "'y' is declared to have the shape [2, 3, 1]"),
    (SHAPE, ((FLOAT, (3, 3)),), "op 0 Relu: 't' is declared to have the shape [3, 3]"),
    (SHAPE, ((BOOL, (2, 3)),), "op 0 Relu: 't' is declared TENSOR_BOOL8")], ids=range(5))
def test_a_file_that_contradicts_itself(y: Any, between: Any, said: str) -> None:
    with pytest.raises(FormatError) as found:
        nnx_convert.convert(model("Relu", SHAPE, y, *between))
    assert said in str(found.value)


@pytest.mark.parametrize(("x", "y", "between", "shape"), [
    (SHAPE, SHAPE, (), (2, 3)), (SHAPE, None, (), (2, 3)), (SHAPE, (FLOAT, None), (), (2, 3)),
    (SHAPE, (FLOAT, ("n", 3)), (), (2, 3)), ((FLOAT, ("n", 3)), (FLOAT, ("m", 3)), (), (None, 3)),
    (SHAPE, SHAPE, ((FLOAT, ("?", None)),), (2, 3)),
    ((FLOAT, ()), (FLOAT, ()), (), ())], ids=range(7))
def test_a_file_that_says_enough(x: Any, y: Any, between: Any, shape: tuple[int | None, ...]) -> None:
    out, = nnx_convert.convert(model("Relu", x, y, *between)).rim.outputs
    assert (out.name, out.dtype, out.shape) == ("y", "float32", shape)


def test_integers_come_back_as_they_are_declared() -> None:
    compiled = nnx_convert.compile(model("Shape", SHAPE, (INT64, (2,))))
    assert compiled.run({"x": np.zeros((2, 3), np.float32)})["y"].dtype == np.int64


def test_an_output_twice_has_two_names() -> None:
    found = nnx_convert.convert(model("Relu", SHAPE, SHAPE, outputs=["y", "y", "t"]))
    assert [p.name for p in found.rim.outputs] == ["y", "y_1", "t"]


@pytest.mark.parametrize(("shapes", "said"), [
    ({"z": (2, 3)}, "there is no input 'z'"), ({"x": (2, 4)}, "input 'x' cannot have the shape [2, 4]"),
    ({"x": (2,)}, "input 'x' cannot have the shape [2]"), ({"x": (-1, 3)}, "cannot have the shape [-1, 3]")],
    ids=["name", "size", "rank", "negative"])
def test_sizes_that_the_file_rules_out(shapes: dict[str, tuple[int, ...]], said: str) -> None:
    with pytest.raises(UsageError) as found:
        nnx_convert.convert(model("Relu", (FLOAT, ("n", 3)), None), shapes=shapes)
    assert said in str(found.value)


def test_where_a_model_is_from() -> None:
    source = nnx_convert.convert(model("Relu", SHAPE, SHAPE)).rim.source
    assert source is not None and (source.format, source.version, source.operators) == ("ONNX", "opset 21", 2)
