"""What a file says of itself beside the model: texts, how images are normalised, labels, files packed behind it.

The description of TFLite's metadata (identifier M001, metadata_schema.fbs) is a FlatBuffer of its own, for which no
package has classes: its few fields here are read by their slots. None of it changes a result, so that what is broken
in it is left out.
"""
from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import flatbuffers.number_types as numbers
import numpy as np

from ...errors import FormatError
from ...frozen import frozen
from ...reading import ZIP_REACH, refuse_large_directory
from . import records
from .guard import Checked, File

MAGIC, NAME = b"M001", "TFLITE_METADATA"
#: The end of a ZIP archive.
ZIP_END = b"PK\x05\x06"
#: Of a file, as much of its end is looked at for what is packed behind the model.
PACKED = 1 << 26
#: No text is longer, no file of labels larger, no archive fuller.
TEXT, LABELS, FILES = 1 << 12, 1 << 20, 256
#: Slots of the tables, and codes.
MODEL = {"name": 0, "description": 1, "version": 2, "author": 4, "license": 5}
SUBGRAPHS, INPUTS, OUTPUTS, PROCESSING, ASSOCIATED = 3, 2, 3, 4, 6
NORMALIZATION, AXIS_LABELS, VALUE_LABELS = 1, 2, 3
Norm = tuple[tuple[float, ...], tuple[float, ...]]


@frozen
class About:
    """Texts by name; for each input and output by position, how it is normalised; the lines of a file of labels."""

    texts: tuple[tuple[str, str], ...] = ()
    inputs: tuple[Norm | None, ...] = ()
    outputs: tuple[Norm | None, ...] = ()
    files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """A text; empty where there is none."""
        return dict(self.texts).get(name, "")


def about(file: File, model: records.Model, index: int) -> About:
    """What the file says of itself and of one of its subgraphs."""
    texts = [(n, readable(model.buffers[i])) for n, i in model.metadata if n != NAME and i < len(model.buffers)]
    where = next((i for n, i in model.metadata if n == NAME and i < len(model.buffers)), None)
    root = None if where is None else opened(model.buffers[where])
    try:
        more, ins, outs, wanted = described(root, index) if root is not None else ([], (), (), [])
    except FormatError:
        more, ins, outs, wanted = [], (), (), []
    names, labels = packed(file, wanted)
    return About((*more, *((n, t) for n, t in texts if t)), ins, outs, names, labels)


def readable(data: np.ndarray) -> str:
    """Bytes as a text, where they are one."""
    try:
        text = data[:TEXT].tobytes().rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""


def opened(data: np.ndarray) -> Checked | None:
    """The root table of a description; None where it is none."""
    try:
        file = File(data)
        if bytes(file.bytes[4:8]) != MAGIC:
            return None
        start = numbers.UOffsetTFlags.packer_type.unpack_from(file.bytes, file.within(0, 4))[0]
        return Checked(file, int(start))
    except FormatError:
        return None


def described(root: Checked, index: int) -> tuple[list[tuple[str, str]], tuple[Norm | None, ...],
                                                  tuple[Norm | None, ...], list[str]]:
    """Texts, normalisations of inputs and outputs, names of the files that hold labels of outputs."""
    texts = [(name, t) for name, slot in MODEL.items() if (t := text(root, slot))]
    graph = next((g for i, g in enumerate(tables(root, SUBGRAPHS)) if i == index), None)
    if graph is None:
        return texts, (), (), []
    outputs = list(tables(graph, OUTPUTS))
    wanted = [text(f, 0) for o in outputs for f in tables(o, ASSOCIATED) if byte(f, 2) in (AXIS_LABELS, VALUE_LABELS)]
    return texts, tuple(map(norm, tables(graph, INPUTS))), tuple(map(norm, outputs)), wanted


def offset(table: Checked, slot: int) -> int:
    """Where a field is within its table; 0 where it is left out."""
    return table.Offset(4 + 2 * slot)


def text(table: Checked, slot: int) -> str:
    """A string; empty when absent."""
    at = offset(table, slot)
    return records.text(table.String(table.Pos + at))[:TEXT] if at else ""


def byte(table: Checked, slot: int) -> int:
    """A number of a byte; 0 when absent."""
    at = offset(table, slot)
    return int(table.Get(numbers.Uint8Flags, table.Pos + at)) if at else 0


def tables(table: Checked, slot: int) -> Iterator[Checked]:
    """A vector of tables."""
    at = offset(table, slot)
    start, count = (table.Vector(at), table.VectorLen(at)) if at else (0, 0)
    for i in range(count):
        table._file.spend(16)
        yield Checked(table._file, table.Indirect(start + 4 * i))


def norm(tensor: Checked) -> Norm | None:
    """The means and deviations of a tensor's normalisation, where it has one."""
    for unit in tables(tensor, PROCESSING):
        at = offset(unit, 1)
        if byte(unit, 0) == NORMALIZATION and at:
            options = Checked(unit._file, unit.Indirect(unit.Pos + at))
            found = [tuple(options.GetVectorAsNumpy(numbers.Float32Flags, offset(options, slot)).tolist())
                     if offset(options, slot) else () for slot in (0, 1)]
            if np.isfinite([*found[0], *found[1]]).all():
                return found[0], found[1]
    return None


def packed(file: File, wanted: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the files packed behind a model, and the lines of the first one that holds labels."""
    if bytes(file.bytes[-ZIP_REACH:]).rfind(ZIP_END) < 0:
        return (), ()
    try:
        whole = io.BytesIO(file.bytes[-PACKED:])
        refuse_large_directory(whole)
        with zipfile.ZipFile(whole) as archive:
            infos = {i.filename: i for i in archive.infolist()[:FILES]}
            held = [n for n in (*wanted, *(n for n in infos if "label" in n.lower())) if n in infos]
            if not held or infos[held[0]].file_size > LABELS:
                return tuple(infos), ()
            return tuple(infos), tuple(archive.read(held[0]).decode("utf-8", "replace").splitlines())
    except Exception:                            # the archive's own, and those of four ways to compress
        return (), ()
