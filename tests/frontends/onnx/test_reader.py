"""Files as bytes: whole, cut short, changed anywhere; weights that stay where they are."""
from __future__ import annotations

import io
import mmap
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data, write_external_data_tensors

import nnx_convert
from nnx_convert.errors import FormatError, NnxError, Unsupported, UsageError
from nnx_convert.frontends.onnx import reader, weights
from nnx_convert.frontends.onnx.importer import load
from nnx_convert.frontends.onnx.reader import read
from nnx_convert.frontends.onnx.tensors import array
from nnx_convert.graph import Graph, Node


def sum_of(*arrays: np.ndarray, **more: object) -> ModelProto:
    """A model that adds initializers w0, w1, ... of one shape to its input."""
    shape = arrays[0].shape
    ends = [helper.make_tensor_value_info(name, 1, shape) for name in "xy"]
    names = ["x", *(f"t{i}" for i in range(len(arrays) - 1)), "y"]
    nodes = [helper.make_node("Add", [names[i], f"w{i}"], [names[i + 1]]) for i in range(len(arrays))]
    held = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(arrays)]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], held), **more)


def small() -> bytes:
    """A file with one of each: a function, a branch, a sparse initializer, text, an attribute that is a tensor."""
    made = sum_of(np.ones((2, 8), np.float32), producer_name="test", doc_string="a small model")
    made.graph.node.append(helper.make_node("Constant", [], ["c"], value=helper.make_tensor("v", 7, (), [1])))
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "b", [], [
        helper.make_tensor_value_info("z", 1, None)])
    made.graph.node.append(helper.make_node("Cast", ["c"], ["b"], to=9))
    made.graph.node.append(helper.make_node("If", ["b"], ["u"], then_branch=branch, else_branch=branch))
    made.graph.node.append(helper.make_node("F", ["u"], ["v"], domain="f", alpha=0.5))
    made.functions.append(helper.make_function("f", "F", ["a"], ["b"], [helper.make_node("Elu", ["a"], ["b"])],
                                               [helper.make_opsetid("", 17)], ["alpha"]))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "s"), numpy_helper.from_array(np.array([1, 3])), (2, 8)))
    made.graph.value_info.append(helper.make_tensor_value_info("u", 1, ("n", 8)))
    made.metadata_props.add(key="k", value="v")
    return made.SerializeToString()


SMALL = small()


def never(node: Node, values: Sequence[object]) -> None:
    """Nothing is computed."""


def outcome(data: bytes) -> Graph | NnxError:
    """What comes of a file; any other exception is a failure."""
    try:
        return load(data, {}, never)
    except NnxError as error:
        return error


def test_what_a_file_says() -> None:
    found = read(SMALL)
    assert (found.producer, found.description, found.metadata) == ("test", "a small model", (("k", "v"),))
    assert [*found.functions] == [("f", "F", "")] and found.ir_version >= 8 and found.versions[""] >= 17


@pytest.mark.parametrize("data", [
    b"", b"\x08", bytes(64), b"\x08\x08" + bytes(62), b"\xff" * 64, np.random.default_rng(1).bytes(4096),
    b"\x08\x08\x3a" + b"\xff" * 20, b"\x3a\x02\x0a\x00" * 40], ids=lambda d: f"{len(d)}-{d[:3].hex()}")
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(NnxError) as found:
        read(data)
    assert found.value.exit_code == 3


@pytest.mark.parametrize("depth", [40, 5000])
def test_messages_nested_deep_are_refused(depth: int) -> None:
    data = b""
    for _ in range(depth):                       # graph in attribute in node in graph
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            data = tag + weights._spelt(len(data)) + data
    with pytest.raises(FormatError, match="nested too deep"):
        read(b"\x08\x08\x3a" + weights._spelt(len(data)) + data)


def test_texts_that_are_no_unicode_are_refused() -> None:
    for word in (b"w0", b"Elu", b"Add", b"alpha", b"test", b"ai.x"):
        if word in SMALL:
            assert isinstance(outcome(SMALL.replace(word, b"\xff" * len(word))), NnxError)


@pytest.mark.parametrize("length", range(0, len(SMALL), 3))
def test_a_file_cut_short_is_refused_or_read(length: int) -> None:
    assert isinstance(outcome(SMALL[:length]), NnxError | Graph)


@settings(max_examples=400, deadline=2000)
@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_bytes_changed_anywhere_do_no_harm(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL)
    for at, value in changes:
        data[at] = value
    assert isinstance(outcome(bytes(data)), Graph | NnxError)


@settings(max_examples=200, deadline=2000)
@given(st.integers(0, len(SMALL)), st.integers(0, len(SMALL)), st.integers(0, len(SMALL)))
def test_parts_moved_and_repeated_do_no_harm(a: int, b: int, c: int) -> None:
    a, b = sorted((a, b))
    assert isinstance(outcome(SMALL[:c] + SMALL[a:b] + SMALL[c:]), Graph | NnxError)


@settings(max_examples=200, deadline=2000)
@given(st.binary(max_size=200))
def test_any_fields_behind_the_file_do_no_harm(more: bytes) -> None:
    assert isinstance(outcome(SMALL + more), Graph | NnxError)


def test_large_weights_stay_in_the_file() -> None:
    held = [np.arange(n, dtype=np.float32).reshape(1, -1) for n in (200_000, 4)]
    data = sum_of(held[0], held[0][:, ::-1].copy()).SerializeToString()
    tracemalloc.start()
    found = read(data)
    assert tracemalloc.get_traced_memory()[1] < 200_000 and len(weights.slim(data)) < 1000
    tracemalloc.stop()
    arrays = [array(t, found.folder) for t in found.graph.initializer]
    assert (arrays[0] == held[0]).all() and (arrays[1] == held[0][:, ::-1]).all()


def test_a_slim_model_says_the_same_else() -> None:
    made = sum_of(np.zeros((1, 4000), np.float32), np.zeros((1, 4000), np.float32))
    made.graph.initializer[1].ClearField("raw_data")
    made.graph.initializer[1].float_data.extend([0.5] * 4000)
    data = made.SerializeToString()
    slim = ModelProto.FromString(bytes(weights.slim(data)))
    told = slim.graph.initializer[0]
    assert {e.key: e.value for e in told.external_data} == {
        "own": str(data.index(bytes(16000))), "length": "16000"}
    told.ClearField("external_data")
    told.ClearField("data_location")
    told.raw_data = bytes(16000)
    assert slim == made


@pytest.mark.parametrize("size", [0, 1, 100, 300, 1 << 14])
def test_slim_gives_back_what_is_no_model(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert bytes(weights.slim(data)) == data


def test_weights_with_external_data_are_left_alone() -> None:
    made = sum_of(np.zeros((1, 4000), np.float32))
    made.graph.initializer[0].data_location = TensorProto.EXTERNAL
    data = made.SerializeToString()
    assert bytes(weights.slim(data)) == data


def test_a_file_of_2_gb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.write(b"\x08\x08\x3a")
        file.truncate((1 << 31) + 3)
    with pytest.raises(FormatError, match=r"a protobuf message has less than 2 GB \(save the model with"):
        nnx_convert.convert(path)


def test_the_format_of_a_runtime_is_named() -> None:
    with pytest.raises(Unsupported, match=r"ONNX Runtime's own format \(give the .onnx file"):
        nnx_convert.convert(b"\x18\0\0\0ORTM" + bytes(64))


def external(folder: Path) -> tuple[Path, np.ndarray]:
    """A model with its weights in a file beside it."""
    w = np.arange(800, dtype=np.float32).reshape(1, -1)
    made = sum_of(w)
    convert_model_to_external_data(made, location="w.bin", size_threshold=0)
    (folder / "m.onnx").write_bytes(write_external_data_tensors(made, str(folder)).SerializeToString())
    return folder / "m.onnx", w


def test_a_path_a_file_and_bytes_with_a_folder(tmp_path: Path) -> None:
    path, w = external(tmp_path)
    x = np.ones_like(w)
    with path.open("rb") as file:
        ways = [nnx_convert.compile(path), nnx_convert.compile(file),
                nnx_convert.compile(path.read_bytes(), folder=tmp_path)]
    assert all((way.run({"x": x})["y"] == w + 1).all() for way in ways)


def test_bytes_without_a_folder(tmp_path: Path) -> None:
    path, _ = external(tmp_path)
    for source in (path.read_bytes(), io.BytesIO(path.read_bytes())):
        with pytest.raises(Unsupported, match=r"tensor 'w0': .* given as bytes has no folder"):
            nnx_convert.convert(source)


def test_the_current_folder_is_not_that_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = external(tmp_path)
    monkeypatch.chdir(tmp_path)
    named = io.BytesIO(path.read_bytes())
    named.name = "m.onnx"  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match="no folder"):
        nnx_convert.convert(named)


@pytest.mark.parametrize("source", [5, None, io.StringIO("x"), [b"x"]], ids=["int", "None", "text", "list"])
def test_what_is_no_source(source: object) -> None:
    with pytest.raises(UsageError, match="a model is a path, bytes or a file opened in binary mode"):
        nnx_convert.convert(source)  # type: ignore[arg-type]


def test_reading_takes_time_in_step_with_the_size() -> None:
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(20_000)]
    ends = [helper.make_tensor_value_info(n, 1, (1,)) for n in ("t0", "t20000")]
    data = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])).SerializeToString()
    began = time.perf_counter()
    read(data)
    assert time.perf_counter() - began < 3 and len(data) > reader.SMALL


def test_a_map_is_read_as_bytes_are(tmp_path: Path) -> None:
    data = sum_of(np.zeros((1, 40_000), np.float32)).SerializeToString()
    (tmp_path / "m").write_bytes(data)
    with (tmp_path / "m").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert read(mapped).graph == read(data).graph
