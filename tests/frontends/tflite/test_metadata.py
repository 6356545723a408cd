"""What a file says of itself: description, normalisation, labels, ranges, signatures; none of it can break a model."""
from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite
import tflite_writer
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert.emit.facts import facts
from nnx_convert.emit.report import text
from nnx_convert.errors import FormatError
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.frontends.tflite.metadata import PACKED
from nnx_convert.types import Entry, Source

NAMES = ("label_names.txt", "other.bin")


def table(b: Any, *fields: Any) -> int:
    """A table of offsets and, as a tuple, numbers of a byte, by slot; None leaves one out."""
    b.StartObject(len(fields))
    for slot, value in enumerate(fields):
        if isinstance(value, tuple):
            b.PrependUint8Slot(slot, value[0], 0)
        elif value is not None:
            b.PrependUOffsetTRelativeSlot(slot, value, 0)
    return int(b.EndObject())


def vector(b: Any, *offsets: int) -> int:
    """A vector of tables."""
    b.StartVector(4, len(offsets), 4)
    for o in reversed(offsets):
        b.PrependUOffsetTRelative(o)
    return int(b.EndVector())


def described(mean: Sequence[float] = (127.5,)) -> bytes:
    """A description: an image normalised, an output with labels."""
    b = flatbuffers.Builder(0)
    name, about, file, author = (b.CreateString(t) for t in ("Thing", "Finds things.", NAMES[0], "Nobody"))
    norm = table(b, b.CreateNumpyVector(np.array(mean, np.float32)), b.CreateNumpyVector(np.float32([2.0])))
    image = table(b, None, None, None, None, vector(b, table(b, (1,), norm)))
    scores = table(b, None, None, None, None, None, None, vector(b, table(b, file, None, (2,))))
    graph = table(b, None, None, vector(b, image), vector(b, scores))
    b.Finish(table(b, name, about, None, vector(b, graph), author), b"M001")
    return bytes(b.Output())


def archive() -> bytes:
    """Two files, one with labels."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as z:
        z.writestr(NAMES[1], b"\0")
        z.writestr(NAMES[0], "cat\ndog\n")
    return whole.getvalue()


def model(description: bytes = b"", behind: bytes = b"") -> bytes:
    """relu(x), under a signature."""
    w = TFLiteWriter("written by hand")
    x, y = w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("RELU", [x], [y])
    w.entry("serving_default", {"in": x}, {"out": y})
    w.metadata("min_runtime_version", b"1.5.0\0\0\0")
    w.metadata("noise", b"\xff\xfe\0")
    if description:
        w.metadata("TFLITE_METADATA", description)
    return w.finish([x], [y]) + behind


PLAIN = Source("TFLite", "v3", 1, 0, "written by hand", ("serving_default",), (("min_runtime_version", "1.5.0"),))


def test_a_plain_file() -> None:
    rim = load(model()).rim
    assert rim.source == PLAIN
    assert rim.entries == (Entry("serving_default", (("in", "x"),), (("out", "y"),)),)


def test_all_that_a_file_says_is_kept(tmp_path: Path) -> None:
    made = nnx_convert.convert(model(described(), archive()))
    made.save(tmp_path / "m.nnx")
    for m in (made, nnx_convert.load(tmp_path / "m.nnx")):
        assert m.source == replace(
            PLAIN, description="Finds things.", files=(NAMES[1], NAMES[0]), labels=("cat", "dog"),
            metadata=(("name", "Thing"), ("author", "Nobody"), *PLAIN.metadata))
        assert m.rim.inputs[0].norm == ((127.5,), (2.0,)) and m.rim.outputs[0].norm is None
        said = text(facts(m, source="m", format="TFLite", source_bytes=1, seconds=0, arena_bytes=None))
        for line in ("TFLite v3, 1 operator", "mean 127.5 std 2", "about    Finds things.", "labels   cat; dog",
                     "files    other.bin, label_names.txt"):
            assert line in said


def packed(method: int) -> bytes:
    """An archive whose labels are compressed into something else."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as z:
        z.writestr(NAMES[0], "cat\ndog\n" * 99)
    return whole.getvalue()[:60] + b"\xff" * 8 + whole.getvalue()[68:]


@pytest.mark.parametrize("behind", [
    archive()[:-9], b"PK\5\6" * 30, archive().replace(b"PK\1\2", b"PK\1\3"), packed(zipfile.ZIP_STORED),
    packed(zipfile.ZIP_DEFLATED), packed(zipfile.ZIP_BZIP2), packed(zipfile.ZIP_LZMA)])
def test_a_broken_archive_is_none(behind: bytes) -> None:
    source = load(model(b"", behind)).rim.source
    assert source is not None and source.labels == ()


def test_an_archive_whose_directory_is_very_large_is_none() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as z:
        for i in range(260):
            z.writestr(f"{i:065000}", b"")
    source = load(model(b"", whole.getvalue())).rim.source
    assert len(whole.getvalue()) < PACKED and source is not None and source.files == ()


@pytest.mark.parametrize("place", range(0, len(described()), 3))
@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_a_broken_description_breaks_nothing(place: int, byte: int) -> None:
    data = bytearray(described())
    data[place] = byte
    assert load(model(bytes(data))).rim.inputs[0].name == "x"


def test_a_normalisation_that_is_no_number_is_none() -> None:
    assert load(model(described((np.nan,)))).rim.inputs[0].norm is None


@pytest.mark.parametrize(("ends", "want"), [
    (([-1.0], [2.5]), (-1.0, 2.5)), (([-1.0], []), None), (([-1.0, 0.0], [1.0, 2.0]), None), (([np.nan], [1.0]), None)])
def test_a_range_is_what_the_file_says(monkeypatch: pytest.MonkeyPatch, ends: Any,
                                       want: tuple[float, float] | None) -> None:
    def quantization(b: Any, _: Any) -> int:
        low, high = (tflite_writer._vector(b, e, np.float32) for e in ends)
        return tflite_writer._table(b, "QuantizationParameters", {"Min": low, "Max": high})

    monkeypatch.setattr(tflite_writer, "_write_quantization", quantization)
    assert load(model()).rim.inputs[0].range == want


@pytest.mark.parametrize(("entry", "error"), [
    (({"in": 7}, {"out": 1}, 0), "calls 'in' what is no input"), (({"in": 0}, {"out": 0}, 0), "calls 'out' what is no"),
    (({"in": 7}, {"out": 1}, 3), "")])
def test_a_signature_of_other_tensors_is_refused(entry: Any, error: str) -> None:
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("RELU", [x], [y])
    w.entry("odd", *entry)
    data = w.finish([x], [y])
    if error:
        with pytest.raises(FormatError, match=error):
            load(data)
    else:
        assert load(data).rim.entries == ()
        with pytest.raises(FormatError, match="leads to subgraph 3 of 1"):
            load(data, signature="odd")


def test_an_output_that_is_one_twice_is_named_once() -> None:
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("RELU", [x], [y])
    w.entry("s", {"in": x}, {"a": y})
    assert load(w.finish([x], [y, y])).rim.entries[0].outputs == (("a", "y"),)


def test_the_package_knows_the_tables_this_reads() -> None:
    assert {"Metadata", "SignatureDef", "TensorMap"} <= set(dir(tflite))
