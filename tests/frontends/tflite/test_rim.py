"""The user's view of a file: names, types, shapes, states; sizes a caller asks for."""
from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_writer
from tflite_writer import TFLiteWriter

from nnx_convert.errors import FormatError, UsageError
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.graph import Graph
from nnx_convert.types import I32, Port, Quant, known

from .one_operator import Case, T, const, write


def sum_of(*tensors: T, out: T) -> Graph:
    """x0 + x1 + ... as ADD_N."""
    return load(write(Case("ADD_N", tensors, [out], "")))


@pytest.mark.parametrize(("tensor", "want"), [
    (T("float32", (2, 3)), Port("x0", "float32", (2, 3))), (T("float16", (2,)), Port("x0", "float16", (2,))),
    (T("int8", (2,), None, 0.5, -3), Port("x0", "int8", (2,), Quant(0.5, -3))),
    (T("int64", (2,)), Port("x0", "int64", (2,))),
    (T("uint8", (2,), None, 0.5, 9), Port("x0", "uint8", (2,), Quant(0.5, 9))),
    (T("int8", (2,)), Port("x0", "int8", (2,))),
    (T("int16", (2,), None, 0.5, 0), Port("x0", "int16", (2,), Quant(0.5, 0))),
    (T("float64", (2,)), Port("x0", "float64", (2,))),
    (T("uint32", (2,)), Port("x0", "uint32", (2,))), (T("bool", (2,)), Port("x0", "bool", (2,))),
    (T("float32", ()), Port("x0", "float32", ())), (T("float32", None), Port("x0", "float32", ())),
    (T("float32", (1, 3), signature=(-1, 3)), Port("x0", "float32", (None, 3)))])
def test_an_input_is_as_the_file_declares_it(tensor: T, want: Port) -> None:
    graph = load(write(Case("RANK", [tensor], [T("int32", ())], "")))
    assert graph.rim.inputs == (want,)
    assert graph.outputs[0].array.tolist() == [len(want.shape or ())]


def test_an_output_has_the_files_name_type_and_shape() -> None:
    row = T("float32", (1, 3), signature=(-1, 3))
    graph = sum_of(row, T("float32", (1, 3)), out=row)
    assert graph.rim.outputs == (Port("y0", "float32", (None, 3)),)
    graph = sum_of(T("float32", ()), T("float32", ()), out=T("float32", ()))
    assert graph.rim.outputs == (Port("y0", "float32", ()),)


def named(names: list[str | None], outputs: list[int]) -> Graph:
    """A file with tensors of these names: the last is the sum of all the others, all but it are inputs."""
    w = TFLiteWriter()
    tensors = [w.tensor(n, "float32", (2,)) for n in names]
    w.op("ADD_N", tensors[:-1], [tensors[-1]])
    return load(w.finish(tensors[:-1], [tensors[i] for i in outputs]))


@pytest.mark.parametrize(("names", "outputs", "want_in", "want_out"), [
    ([None, "", "y"], [2], ["tensor_0", "tensor_1"], ["y"]), (["a", "a", "a"], [2], ["a", "a_1"], ["a_2"]),
    (["a", "a_1", "a"], [2], ["a", "a_1"], ["a_2"]), (["a", "b", "y"], [2, 2], ["a", "b"], ["y", "y_1"]),
    (["a_1", "a", "a"], [2, 0], ["a_1", "a"], ["a_2", "a_1"])])
def test_names_are_there_and_distinct(names: list[str | None], outputs: list[int], want_in: list[str],
                                      want_out: list[str]) -> None:
    graph = named(names, outputs)
    assert [p.name for p in graph.rim.inputs] == want_in
    assert [p.name for p in graph.rim.outputs] == want_out


def test_the_same_file_has_the_same_names() -> None:
    assert named([None, "a", "a"], [2]).rim == named([None, "a", "a"], [2]).rim


def variable(initial: float | None = None, subgraph: bool = False) -> bytes:
    """y = v + x; v = y, where v is a resource variable, initialised by CALL_ONCE."""
    w = TFLiteWriter()
    h, x, v, y = (w.tensor(n, t, s) for n, t, s in (
        ("h", "resource", ()), ("x", "float32", (2,)), ("v", "float32", (2,)), ("y", "float32", (2,))))
    if initial is not None:
        w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, y], [])
    if initial is not None:
        w.subgraph("init")
        hi, c = w.tensor("hi", "resource", ()), w.tensor("c", "float32", (2,), np.full(2, initial, np.float32))
        w.op("VAR_HANDLE", [], [hi], "VarHandleOptions", {"SharedName": "total"})
        w.op("ASSIGN_VARIABLE", [hi, c], [])
        w.ends([], [])
    return w.finish([x], [y])


@pytest.mark.parametrize("initial", [None, 0.0, 1.5])
def test_a_resource_variable_is_a_state(initial: float | None) -> None:
    graph = load(variable(initial))
    state = Port("total", "float32", (2,), state=True)
    assert graph.rim.inputs == (Port("x", "float32", (2,)), state)
    assert graph.rim.outputs == (Port("y", "float32", (2,)), state)
    assert graph.outputs[0] is graph.outputs[1] and graph.inputs[1].name == "total"
    started = graph.rim.inputs[1].initial
    assert (None if started is None else started.tolist()) == (None if initial is None else [initial] * 2)


def svdf(data: Any = None) -> bytes:
    """SVDF, whose state is a variable tensor."""
    w = TFLiteWriter()
    x, f, t = w.tensor("x", "float32", (1, 3)), *(w.tensor(n, "float32", s, np.ones(s, np.float32))
                                                 for n, s in (("f", (2, 3)), ("t", (2, 4))))
    s, y = w.tensor("s", "float32", (1, 8), data, variable=True), w.tensor("y", "float32", (1, 2))
    w.op("SVDF", [x, f, t, -1, s], [y], "SVDFOptions", {"Rank": 1})
    return w.finish([x], [y])


def test_a_variable_tensor_is_a_state() -> None:
    graph = load(svdf())
    state = Port("s", "float32", (1, 8), state=True)
    assert (graph.rim.inputs[1:], graph.rim.outputs[1:]) == ((state,), (state,))
    assert graph.producer[graph.outputs[1]] is graph.producer[graph.outputs[0]]


def test_a_variable_tensor_may_have_a_value_to_start_from() -> None:
    started = load(svdf(np.ones((1, 8), np.float32))).rim.inputs[1].initial
    assert started is not None and started.tolist() == [[1.0] * 8]


def dense(signature: tuple[int, ...] | None) -> bytes:
    """[?, 4] -> FULLY_CONNECTED -> RELU."""
    w = TFLiteWriter()
    x = w.tensor("x", "float32", (1, 4), signature=signature)
    m = w.tensor("m", "float32", (3, 4), np.ones((3, 4), np.float32))
    y, z = (w.tensor(n, "float32", (1, 3), signature=None if signature is None else (-1, 3)) for n in "yz")
    w.op("FULLY_CONNECTED", [x, m, -1], [y], "FullyConnectedOptions")
    w.op("RELU", [y], [z])
    return w.finish([x], [z])


@pytest.mark.parametrize("signature", [None, (-1, 4)])
@pytest.mark.parametrize("rows", [1, 5])
def test_sizes_asked_for_are_inferred_again(signature: tuple[int, ...] | None, rows: int) -> None:
    graph = load(dense(signature), {"x": (rows, 4)})
    assert [v.tensor.dims for n in graph.nodes for v in n.outputs] == [(rows, 3)] * 2
    assert (graph.rim.inputs[0].shape, graph.rim.outputs[0].shape) == ((rows, 4), (rows, 3))


def test_an_open_size_stays_open() -> None:
    graph = load(dense((-1, 4)))
    assert not any(known(v.shape[0]) for n in graph.nodes for v in n.outputs)
    assert graph.rim.outputs[0].shape == (None, 3)


@pytest.mark.parametrize(("error", "shapes", "says"), [
    (UsageError, {"w": (1, 4)}, "there is no input 'w' .the inputs are x"),
    (UsageError, {"x": (4,)}, "has 2 dimensions, not 1"),
    (UsageError, {"x": (-1, 4)}, "cannot have"), (FormatError, {"x": (2, 3)}, "sizes agree")])
def test_sizes_that_do_not_fit_are_refused(error: type[Exception], shapes: dict[str, tuple[int, ...]],
says: str) -> None:
    with pytest.raises(error, match=says):
        load(dense(None), shapes)


def test_indices_of_int64_are_int32_inside_and_int64_to_the_user() -> None:
    rows = T("float32", (3, 4))
    graph = load(write(Case("GATHER", [rows, T("int64", (2,))], [T("float32", (2, 4))], "", "GatherOptions")))
    assert (graph.inputs[1].type, graph.rim.inputs[1].dtype) == (I32, "int64")
    graph = load(write(Case("ARG_MAX", [rows, const([1])], [T("int64", (3,))], "", "ArgMaxOptions")))
    assert (graph.outputs[0].type, graph.rim.outputs[0].dtype) == (I32, "int64")


def test_constants_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(dense(None))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = load(mapped).nodes[0].args["w"].array
    whole = np.frombuffer(mapped, np.uint8)
    assert np.shares_memory(data, whole) and not data.flags.writeable


def test_a_buffer_may_lie_behind_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    data, place = np.arange(12, dtype=np.float32).reshape(3, 4), [1 << 40]

    def write_buffer(builder: Any, raw: bytes | None) -> int:
        fields = {} if raw is None else {"Offset": place[0], "Size": len(raw)}
        return tflite_writer._table(builder, "Buffer", fields)

    monkeypatch.setattr(tflite_writer, "_write_buffer", write_buffer)
    tables = dense(None)
    with pytest.raises(FormatError, match="pass the end of the file"):
        load(tables)
    place[0] = len(tables)
    assert len(dense(None)) == len(tables)
    found = load(dense(None) + data.tobytes()).nodes[0].args["w"].array
    np.testing.assert_array_equal(found, data)
