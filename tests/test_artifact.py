"""The .nnx file: what goes in comes out, and nothing else is taken for one."""
from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import FAMILIES, legal_models
from hypothesis import given, settings, strategies as st
from sample_models import SAMPLES, branch, dense, per_channel, sparse

from nnx_convert import ArtifactError, Model, ModelBuilder, OperandCode, OperationCode, Unsupported, UsageError, load
from nnx_convert.artifact import from_bytes, to_bytes
from nnx_convert.artifact.container import MAGIC, PREAMBLE, pack, unpack
from nnx_convert.artifact.encode import stored
from nnx_convert.artifact.files import write, write_all
from nnx_convert.model import Operand

BYTES = {name: to_bytes(make()) for name, make in SAMPLES.items()}
Header = dict[str, Any]


def shown(model: Model) -> list[Any]:
    """Everything in a model, comparable."""
    return [[operand(o) for o in model.operands], [(o.op.code, o.inputs, o.outputs) for o in model.operations],
            model.inputs, model.outputs, model.relaxed, model.rim, model.origin, model.notes, model.level,
            [None if p.initial is None else p.initial.tolist() for p in model.rim.inputs],
            [(c.level, c.deferred, c.outputs) for c in model.checked]]


def operand(o: Operand) -> Any:
    value: Any = o.value
    if isinstance(value, Model):
        value = shown(value)
    elif value is not None:
        value = (value.dtype, value.shape, value.tobytes())
    return o.type, o.dims, o.quant, o.lifetime, value


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model = SAMPLES[name]()
    model.save(tmp_path / "m.nnx")
    assert (tmp_path / "m.nnx").read_bytes() == BYTES[name]
    found = [load(tmp_path / "m.nnx"), from_bytes(BYTES[name]), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for one in found:
        assert shown(one) == shown(model)
        assert to_bytes(one) == BYTES[name]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_models_of_the_suites_come_back(family: str) -> None:
    for model in legal_models(family):
        found = from_bytes(to_bytes(model))
        assert shown(found) == shown(model)
        assert to_bytes(found) == to_bytes(model)


def test_constants_are_mapped_and_aligned(tmp_path: Path) -> None:
    dense().save(tmp_path / "m.nnx")
    found = (o.value for o in load(tmp_path / "m.nnx").operands)
    values = [v for v in found if isinstance(v, np.ndarray) and v.nbytes > 32]
    assert len(values) == 2
    assert all(v.ctypes.data % 64 == 0 and not v.flags.writeable and not v.flags.owndata for v in values)


def test_equal_constants_are_stored_once() -> None:
    header, data = unpack(BYTES["dense"])
    assert header["blobs"] == [[0, 64]]
    assert len(data) == 64


@pytest.mark.parametrize(("high", "size"), [(255, 64), (256, 128), (65535, 128), (65536, 192), (-1, 192)])
def test_indices_take_no_more_bytes_than_they_need(high: int, size: int) -> None:
    b = ModelBuilder()
    x = b.add_operand(OperandCode.TENSOR_INT32, (48,))
    b.set_operand_value(x, np.array([0] * 47 + [high], np.int32))
    y, act, z = (b.add_operand(*a) for a in ((4, (48,)), (OperandCode.INT32,), (4, (48,))))
    b.set_operand_value(act, 0)
    b.add_operation(OperationCode.ADD, [y, x, act], [z])
    b.identify_inputs_and_outputs([y], [z])
    data = to_bytes(b.finish())
    assert len(unpack(data)[1]) == size
    assert from_bytes(data).operands[0].value.tolist() == [0] * 47 + [high]


def test_a_shared_subgraph_stays_shared() -> None:
    assert len(unpack(BYTES["branch"])[0]["models"]) == 2
    one, other = from_bytes(BYTES["branch"]).subgraphs
    assert one is other


@given(st.lists(st.floats(1e-300, 1e290), min_size=3, max_size=3), st.floats(1e-300, 1e290))
def test_scales_are_exact(scales: list[float], scale: float) -> None:
    b = ModelBuilder()
    x = b.add_operand(OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL, (3,))
    b.set_operand_symm_per_channel_quant_params(x, 0, scales)
    y = b.add_operand(OperandCode.TENSOR_FLOAT32, (3,))
    b.add_operation(OperationCode.DEQUANTIZE, [x], [y])
    z = b.add_operand(OperandCode.TENSOR_QUANT8_ASYMM, (3,), scale, 3)
    b.add_operation(OperationCode.QUANTIZE, [y], [z])
    b.identify_inputs_and_outputs([x], [z])
    model = b.finish()
    assert [o.quant for o in from_bytes(to_bytes(model)).operands] == [o.quant for o in model.operands]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_cut_at_any_byte_is_refused(name: str) -> None:
    for end in range(len(BYTES[name])):
        with pytest.raises(ArtifactError):
            from_bytes(BYTES[name][:end])
    with pytest.raises(ArtifactError):
        from_bytes(BYTES[name] + b"\0")


@pytest.mark.parametrize("name", ["dense", "branch"])
def test_a_file_with_any_bit_flipped_is_refused(name: str) -> None:
    data = bytearray(BYTES[name])
    for i in range(len(data)):
        for bit in range(8):
            data[i] ^= 1 << bit
            with pytest.raises(ArtifactError):
                from_bytes(data)
            data[i] ^= 1 << bit


def altered(name: str, change: Callable[[Header], object]) -> bytes:
    """A sample with another header, its checksums right."""
    header, data = unpack(BYTES[name])
    change(header)
    return b"".join(pack(header, [bytes(data)]))


def put(*path: Any) -> Callable[[Header], None]:
    """Replace the part of the header at a path by the last item."""
    *way, key, value = path

    def change(header: Header) -> None:
        part: Any = header
        for step in way:
            part = part[step]
        if isinstance(part, dict) != isinstance(key, str):
            raise TypeError(key)
        part[key] = value
    return change


M = ("models", 0)
LIES: dict[str, tuple[str, Callable[[Header], object], str]] = {
    "offset": ("dense", put("blobs", 0, [64, 64]), "outside"),
    "unaligned": ("dense", put("blobs", 0, [8, 16]), "outside"),
    "huge blob": ("dense", put("blobs", 0, [0, 1 << 62]), "outside"),
    "pair": ("dense", put("blobs", 0, [0]), "offset and a size"),
    "blob index": ("dense", put(*M, "operands", 1, "blob", 7), "whole number"),
    "negative": ("dense", put(*M, "operands", 1, "blob", -1), "whole number"),
    "size": ("dense", put(*M, "operands", 1, "dims", [4, 5]), "bytes"),
    "huge dims": ("dense", put(*M, "operands", 1, "dims", [1 << 30] * 30), "bytes|shape|rank"),
    "overflow": ("dense", put(*M, "operands", 1, "dims", [1 << 32, 1 << 32]), "large"),
    "many dims": ("dense", put(*M, "operands", 1, "dims", [1] * 33), "dimensions"),
    "type": ("dense", put(*M, "operands", 1, "type", 99), "no operand type"),
    "foreign type": ("dense", put(*M, "operands", 1, "type", 2 << 16), "extension"),
    "hex": ("dense", put(*M, "operands", 3, "hex", "0g"), "hexadecimal"),
    "stored": ("sparse", put(*M, "operands", 8, "stored", "float16"), "stored as"),
    "stored wide": ("sparse", put(*M, "operands", 8, "stored", "uint16"), "bytes"),
    "stored float": ("dense", put(*M, "operands", 1, "stored", "uint8"), "stored as"),
    "operation": ("dense", put(*M, "operations", 0, 0, 12345), "no operation"),
    "operand index": ("dense", put(*M, "operations", 0, 1, [0, 1, 2, 99]), "no operand 99"),
    "operation parts": ("dense", put(*M, "operations", 0, [9]), "an operation has"),
    "inputs": ("dense", put(*M, "inputs", [99]), "no operand 99"),
    "no ports": ("dense", put(*M, "ports", {"inputs": [], "outputs": []}), "port"),
    "port shape": ("dense", put(*M, "ports", "inputs", 0, "shape", [4, 2]), "port"),
    "port type": ("dense", put(*M, "ports", "inputs", 0, "dtype", "complex256"), "complex256"),
    "range": ("per_channel", put(*M, "ports", "inputs", 0, "range", [1]), "for a pair"),
    "norm": ("per_channel", put(*M, "ports", "inputs", 0, "norm", [[1], ["x"]]), "number"),
    "start": ("per_channel", put(*M, "ports", "inputs", 0, "initial", {"hex": "00"}), "starts with 1 bytes"),
    "start of a zero": ("per_channel", put(*M, "ports", "inputs", 0, "zero", -256), "with the zero point -256"),
    "start of texts": ("per_channel", put(*M, "ports", "inputs", 0, "dtype", "object"), "texts and lists are no state"),
    "signature": ("per_channel", put(*M, "signatures", 0, "outputs", [["out", "z"]]), "has other ports"),
    "signature parts": ("per_channel", put(*M, "signatures", 0, {}), "lacks"),
    "source": ("per_channel", put(*M, "source", "TFLite"), "object"),
    "source count": ("per_channel", put(*M, "source", "sparse", -1), "whole number"),
    "source texts": ("per_channel", put(*M, "source", "metadata", [["name"]]), "for a pair"),
    "not a number": ("per_channel", put(*M, "operands", 0, "scale", "nan"), "number"),
    "infinite": ("per_channel", put(*M, "operands", 0, "scale", 1e301), "number"),
    "scales": ("per_channel", put(*M, "operands", 1, "scales", {"hex": "00" * 24}), "not positive"),
    "half a scale": ("per_channel", put(*M, "operands", 1, "scales", {"hex": "00" * 23}), "8 bytes"),
    "own subgraph": ("branch", put("models", 1, "operands", 2, "model", 1), "whole number"),
    "extension": ("host", put("extension", "name", "com.example"), "com.example"),
    "prefix": ("host", put("extension", "prefix", 3), "extension"),
    "host name": ("host", put("extension", "operations", {}), "host operation"),
    "no models": ("dense", put("models", []), "no model"),
    "truth value": ("dense", put(*M, "relaxed", 1), "truth value"),
    "text": ("dense", put(*M, "notes", [1]), "text"),
    "object": ("dense", put(*M, "ports", []), "object"),
    "list": ("dense", put(*M, "inputs", {}), "list"),
    "key": ("dense", lambda h: h.pop("models"), "lacks"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(lie: str) -> None:
    name, change, said = LIES[lie]
    with pytest.raises(ArtifactError, match=said):
        from_bytes(altered(name, change))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path into a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


PLACES = {name: list(places(unpack(data)[0])) for name, data in BYTES.items()}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "00", "int8", 1 << 16, 61000, 65536, 131072]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["hex", "blob", "dims"]), inner),
    max_leaves=5)


@settings(max_examples=400)
@given(st.data())
def test_any_other_header_is_a_model_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(SAMPLES)))
    edits = data.draw(st.lists(st.tuples(st.sampled_from(PLACES[name]), JSON), min_size=1, max_size=2))

    def change(header: Header) -> None:
        for path, value in edits:
            try:
                put(*path, value)(header)
            except (LookupError, TypeError):
                continue                           # the first edit took away where the second goes
    try:
        found = from_bytes(altered(name, change))
    except ArtifactError:
        return
    assert to_bytes(from_bytes(to_bytes(found))) == to_bytes(found)


def test_subgraphs_nested_too_deep_are_refused() -> None:
    def nest(header: Header) -> None:
        for n in range(1, 30):
            header["models"].append(copy.deepcopy(header["models"][1]))
            for i in (2, 3):
                header["models"][-1]["operands"][i]["model"] = n
                header["models"][-1]["inputs"] = [0, 1]
    with pytest.raises(ArtifactError, match=r"deep|both graphs"):
        from_bytes(altered("branch", nest))


NO_FILES = {"empty": b"", "noise": bytes(range(256)) * 16, "text": b"hello", "magic": MAGIC,
            "another version": MAGIC + b"\2\0\0\0" + bytes(PREAMBLE.size),
            "deep": b"".join(pack({}, [])).replace(b"{}", b"[]")}


@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_artifact_is_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.nnx"
    path.write_bytes(NO_FILES[name])
    with pytest.raises(ArtifactError, match=r"m\.nnx"):
        load(path)


@pytest.mark.parametrize("place", ["absent.nnx", ".", "\0"])
def test_what_cannot_be_read_is_refused_by_name(place: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be read"):
        load(f"{tmp_path}/{place}")


def failing() -> Iterator[bytes]:
    """Pieces of a file whose making fails."""
    yield b"half"
    raise KeyboardInterrupt


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.nnx"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write(path, failing())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.nnx"]


def test_a_write_that_fails_leaves_those_of_other_threads(tmp_path: Path) -> None:
    def slowly() -> Iterator[bytes]:
        yield b"all of "
        with pytest.raises(UsageError):
            write(tmp_path / "no" / "folder", [b""])
        yield b"it"
    write(tmp_path / "m", slowly())
    assert (tmp_path / "m").read_bytes() == b"all of it"


def test_files_that_belong_together_are_all_written_or_none(tmp_path: Path) -> None:
    paths = [tmp_path / n for n in "abc"]
    paths[0].write_bytes(b"old")
    paths[1].mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        write_all([(p, [b"new"]) for p in paths])
    assert paths[0].read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["a", "b"]
    paths[1].rmdir()
    write_all([(p, [b"new"]) for p in paths])
    assert [p.read_bytes() for p in paths] == [b"new"] * 3


@pytest.mark.parametrize("place", ["no/folder/m.nnx", ".", "m\0"])
def test_a_place_that_takes_no_file_is_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        dense().save(f"{tmp_path}/{place}")
    assert os.listdir(tmp_path) == []


def test_a_link_is_followed_and_a_device_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    dense().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == BYTES["dense"]
    dense().save(os.devnull)
    assert not Path(os.devnull).is_file()


RUN = """
import sys, numpy, nnx_convert
model = nnx_convert.load(sys.argv[1])
nnx_convert.compile(model).run([numpy.ones((2, 4), numpy.float32)])
print(sorted({m.split(".")[0] for m in sys.modules} & {"onnx", "tflite", "flatbuffers", "click", "rich"}))
"""


def test_loading_and_running_needs_numpy_alone(tmp_path: Path) -> None:
    dense().save(tmp_path / "m.nnx")
    command = [sys.executable, "-c", RUN, str(tmp_path / "m.nnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_samples_are_what_they_claim() -> None:
    state = per_channel().rim.inputs[0]
    assert state.state and state.initial is not None
    assert branch().relaxed
    assert sparse().experimental


def test_texts_that_a_file_cannot_count() -> None:
    many = np.array([b"a" * (1 << 26)] * 32, object)          # one text of 64 MB, 32 times
    with pytest.raises(Unsupported, match=r"32 texts take 2,147,483,784 bytes"):
        stored(OperandCode.TENSOR_STRING, many)
