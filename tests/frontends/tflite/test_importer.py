"""Whole files: subgraphs, what is written twice or never, versions, states that are none."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tflite_writer
from tflite_writer import TFLiteWriter

from nnx_convert.convert import compile as compiled, convert
from nnx_convert.errors import FormatError, NnxError, Unsupported
from nnx_convert.frontends.tflite.importer import load


def branches(then: int = 1, orelse: int = 2) -> bytes:
    """y = x + 1 where c, else x * 3."""
    w = TFLiteWriter()
    c, x, y = w.tensor("c", "bool", ()), w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("IF", [c, x], [y], "IfOptions", {"ThenSubgraphIndex": then, "ElseSubgraphIndex": orelse})
    for name, value in (("ADD", 1.0), ("MUL", 3.0)):
        w.subgraph(name)
        a, k = w.tensor("a", "float32", (2,)), w.tensor("k", "float32", (1,), np.array([value], np.float32))
        b = w.tensor("b", "float32", (2,))
        w.op(name, [a, k], [b], f"{name.capitalize()}Options")
        w.ends([a], [b])
    return w.finish([c, x], [y])


def loop(body: int = 2) -> bytes:
    """x doubled while its sum is less than 100."""
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("WHILE", [x], [y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": body})
    w.subgraph("cond")
    a, k, axis = w.tensor("a", "float32", (2,)), w.tensor("k", "float32", (), np.float32(100)), w.tensor(
        "axis", "int32", (1,), np.array([0]))
    s, c = w.tensor("s", "float32", ()), w.tensor("c", "bool", ())
    w.op("SUM", [a, axis], [s], "ReducerOptions")
    w.op("LESS", [s, k], [c])
    w.ends([a], [c])
    w.subgraph("body")
    a, b = w.tensor("a", "float32", (2,)), w.tensor("b", "float32", (2,))
    w.op("ADD", [a, a], [b], "AddOptions")
    w.ends([a], [b])
    return w.finish([x], [y])


X = np.array([1.0, 2.5], np.float32)


@pytest.mark.parametrize(("data", "given", "want"), [
    (branches(), [np.True_, X], X + 1), (branches(), [np.False_, X], X * 3), (branches(2, 2), [np.True_, X], X * 3),
    (loop(), [X], X * 32), (loop(), [X * 100], X * 100)])
def test_subgraphs_run_as_they_read(data: bytes, given: list[np.ndarray], want: np.ndarray) -> None:
    np.testing.assert_array_equal(compiled(convert(data)).run(given)[0], want)


@pytest.mark.parametrize(("data", "says"), [
    (branches(3), "no subgraph 3"), (branches(-1), "no subgraph -1"), (branches(0), "contains itself"),
    (loop(0), "contains itself"), (loop(1), "the model says")])
def test_subgraphs_that_cannot_be_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        load(data)


def adds(inputs: list[int], outputs: list[int], pairs: list[tuple[list[int], list[int]]]) -> bytes:
    """Four tensors and these additions."""
    w = TFLiteWriter()
    for name in "abcd":
        w.tensor(name, "float32", (2,))
    for xs, ys in pairs:
        w.op("ADD", xs, ys, "AddOptions")
    return w.finish(inputs, outputs)


@pytest.mark.parametrize(("error", "data", "says"), [
    (FormatError, adds([0], [1], [([0, 2], [1])]), "tensor 2 'c' is read and never written"),
    (FormatError, adds([0], [1], [([0, 0], [1]), ([0, 0], [1])]), "tensor 1 'b' is written twice"),
    (FormatError, adds([0], [0], [([0, 0], [0])]), "tensor 0 'a' is written twice, or is an input"),
    (FormatError, adds([0, 0], [1], [([0, 0], [1])]), "tensor 0 'a' is an input twice"),
    (FormatError, adds([9], [1], []), "no tensor 9"), (FormatError, adds([0], [9], []), "no tensor 9"),
    (FormatError, adds([-1], [0], []), "no tensor -1"), (FormatError, adds([0], [1], [([0, 9], [1])]), "no tensor 9"),
    (FormatError, adds([0], [1], [([0, 0], [-1])]), "no tensor -1"), (Unsupported, adds([0], [], []), "no outputs"),
    (Unsupported, adds([0], [-1], []), "left out"), (FormatError, adds([0], [1], [([0], [1])]), "y, is left out"),
    (FormatError, adds([0], [1, 2], [([0, 0], [1, 2])]), "2 outputs, not 1"),
    (FormatError, adds([0], [1], []), "'b' is read and never written")])
def test_a_graph_that_cannot_be_is_refused(error: type[NnxError], data: bytes, says: str) -> None:
    with pytest.raises(error, match=says) as found:
        load(data)
    assert found.value.exit_code == 3


def test_an_input_may_be_an_output() -> None:
    graph = load(adds([0, 1], [1, 0], []))
    assert [v.name for v in graph.outputs] == ["b", "a"]
    assert [p.name for p in graph.rim.outputs] == ["b", "a"]


@pytest.mark.parametrize(("change", "says"), [
    (lambda fields: fields | {"Version": 2}, "version 2"), (lambda fields: fields | {"Subgraphs": None}, "no subgraph"),
    (lambda fields: fields | {"OperatorCodes": None}, "no operator code 0"),
    (lambda fields: fields | {"Buffers": None}, "no buffer 0")])
def test_a_model_without_its_parts_is_refused(change: Callable[[dict[str, object]], dict[str, object]], says: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    table = tflite_writer._table
    monkeypatch.setattr(tflite_writer, "_table", lambda builder, name, fields: table(
        builder, name, change(dict(fields)) if name == "Model" else fields))
    data = adds([0], [1], [([0, 2], [1])])
    with pytest.raises(NnxError, match=says):
        load(data)


@pytest.mark.parametrize(("dtype", "says"), [("complex128", "COMPLEX128"), ("variant", "VARIANT")])
def test_a_type_without_a_counterpart_is_named(dtype: str, says: str) -> None:
    w = TFLiteWriter()
    x = w.tensor("x", dtype, (2,))
    with pytest.raises(Unsupported, match=f"tensor 'x' is {says}"):
        load(w.finish([x], [x]))


@pytest.mark.parametrize(("raw", "says"), [(b"\0" * 7, "takes 8 bytes, its buffer has 7"), (b"\0" * 12, "has 12")])
def test_a_constant_must_fill_its_shape(raw: bytes, says: str) -> None:
    w = TFLiteWriter()
    x, k, y = w.tensor("x", "float32", (2,)), w.tensor("k", "float32", (2,), raw), w.tensor("y", "float32", (2,))
    w.op("ADD", [x, k], [y], "AddOptions")
    with pytest.raises(FormatError, match=says):
        load(w.finish([x], [y]))


@pytest.mark.parametrize("custom", [b"", bytes(8)])
def test_custom_options_cut_short_are_refused(custom: bytes) -> None:
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (1, 2, 2, 1)), w.tensor("y", "float32", (1, 4, 4, 1))
    k = w.tensor("k", "float32", (1, 2, 2, 1), np.ones((1, 2, 2, 1), np.float32))
    b = w.tensor("b", "float32", (1,), np.zeros(1, np.float32))
    w.custom("Convolution2DTransposeBias", [x, k, b], [y], custom)
    with pytest.raises(FormatError, match=f"has {len(custom)} bytes of options"):
        load(w.finish([x], [y]))
