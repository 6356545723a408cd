"""The checked reader: sound files read as they are, anything else is refused, in time the file's size bounds."""
from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tflite
from hypothesis import given, settings, strategies as st
from tflite_writer import TFLiteWriter, sparsify

from nnx_convert.errors import FormatError, NnxError
from nnx_convert.frontends.tflite import records
from nnx_convert.frontends.tflite.guard import File, absent
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.graph import Graph
from nnx_convert.resources import limited


def small() -> bytes:
    """A file with one of each: quantisation, sparsity, options, a custom operator's bytes, an omitted input."""
    w = TFLiteWriter("a small model")
    dense = np.eye(8, dtype=np.float32)
    sparsity, values = sparsify(dense, (0, 1), "ds", index="uint8")
    x, m = w.tensor("x", "float32", (2, 8)), w.tensor("m", "float32", (8, 8), values.tobytes(), sparsity=sparsity)
    y, q = w.tensor("y", "float32", (2, 8)), w.tensor("q", "int8", (2, 8), scale=0.5, zero=-3)
    r, s = w.tensor("r", "int8", (1, 16), scale=0.5, zero=-3), w.tensor("s", "int32", (2,), np.array([1, 16]))
    w.op("FULLY_CONNECTED", [x, m, -1], [y], "FullyConnectedOptions", {"FusedActivationFunction": 1})
    w.op("QUANTIZE", [y], [q])
    w.op("RESHAPE", [q, s], [r], "ReshapeOptions", {"NewShape": [1, 16]})
    return w.finish([x], [r])


SMALL = small()


def outcome(data: bytes) -> Graph | NnxError:
    """What comes of a file; any other exception is a failure."""
    try:
        return load(data)
    except NnxError as error:
        return error


def test_the_small_file_is_sound() -> None:
    graph = load(SMALL)
    assert [n.op.name for n in graph.nodes] == ["FULLY_CONNECTED", "QUANTIZE", "RESHAPE"]


@pytest.mark.parametrize("data", [
    b"", b"TFL3", bytes(8), b"\4\0\0\0TFL3", b"\xff\xff\xff\xffTFL3" + bytes(40), bytes(4) + b"TFL3" + bytes(64),
    b"\x10\0\0\0TFL3" + bytes(8) + b"\x04\0\0\0" * 20, b"{}" * 2048, np.random.default_rng(1).bytes(4096),
    b"\x1c\0\0\0TFL3" + np.random.default_rng(2).bytes(4096)], ids=lambda d: f"{len(d)}-{d[:3].hex()}")
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(NnxError) as found:
        load(data)
    assert found.value.exit_code == 3


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_a_file_cut_short_is_refused_or_read(length: int) -> None:
    found = outcome(SMALL[:length])
    assert isinstance(found, NnxError) or length > len(SMALL) - 4


@settings(max_examples=400, deadline=2000)
@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_bytes_changed_anywhere_do_no_harm(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL)
    for at, value in changes:
        data[at] = value
    assert isinstance(outcome(bytes(data)), Graph | NnxError)


@settings(max_examples=400, deadline=2000)
@given(st.integers(0, len(SMALL) // 4 - 1), st.sampled_from([0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF]))
def test_an_offset_changed_to_an_extreme_does_no_harm(word: int, value: int) -> None:
    data = bytearray(SMALL)
    struct.pack_into("<I", data, 4 * word, value)
    assert isinstance(outcome(bytes(data)), Graph | NnxError)


@settings(max_examples=200, deadline=2000)
@given(st.binary(max_size=300))
def test_noise_behind_the_identifier_does_no_harm(tail: bytes) -> None:
    assert isinstance(outcome(b"\x0c\0\0\0TFL3" + tail), Graph | NnxError)


def vector(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *(w & 0xFFFFFFFF for w in words))


def table_file(vtable: int = 0, soffset: int | None = None, field: int = 4, tail: bytes = b"") -> bytes:
    """A root table with one field. `vtable`: its size as stated where not 6; `soffset` where not to the vtable."""
    size = vtable or 6
    head = vector(16, int.from_bytes(b"TFL3", "little")) + struct.pack("<HHHH", size, 8, field, 0)
    return head + struct.pack("<i", 8 if soffset is None else soffset) + tail


@pytest.mark.parametrize(("data", "says"), [
    (table_file(vtable=3), "vtable of 3"), (table_file(vtable=5), "vtable of 5"), (table_file(vtable=2), "vtable of 2"),
    (table_file(vtable=400), "leads to"), (table_file(soffset=2**31 - 1), "leads to byte -"),
    (table_file(soffset=17), "leads to byte -1"), (table_file(soffset=-2000), "leads to byte 2016")])
def test_a_broken_vtable_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        File(data).root(tflite.Model, records.MAGIC)


READS: list[tuple[str, Callable[[Any], Any], bytes]] = [
    ("a string past the end", lambda t: t.String(t.Pos + 4), vector(4, 1000)),
    ("a string's offset past the end", lambda t: t.String(t.Pos + 4), vector(4000, 1)),
    ("a vector past the end", lambda t: t.VectorLen(4), vector(4, 2**31)),
    ("a vector's offset past the end", lambda t: t.Vector(4), vector(2**31)),
    ("a table past the end", lambda t: t.Indirect(t.Pos + 4), vector(0xFFFFFFF0)),
    ("a number before the beginning", lambda t: t.Get(records.Int32Flags, -4), vector(0)),
    ("a number past the end", lambda t: t.Get(records.Int32Flags, t.Pos + 6), vector(0)),
    ("numbers past the end", lambda t: t.GetVectorAsNumpy(records.Int32Flags, 4), vector(4, 3, 1, 2)),
]


@pytest.mark.parametrize(("read", "tail"), [r[1:] for r in READS], ids=[r[0] for r in READS])
def test_every_read_is_checked(read: Callable[[Any], Any], tail: bytes) -> None:
    table = File(table_file(tail=tail)).root(tflite.Model, records.MAGIC)._tab  # type: ignore[attr-defined]
    with pytest.raises(FormatError, match="leads to byte"):
        read(table)


def test_a_sound_table_reads_as_it_is() -> None:
    table = File(table_file(tail=vector(4, 2, 7, 9))).root(tflite.Model, records.MAGIC)._tab  # type: ignore[attr-defined]
    assert (table.Offset(4), table.Offset(6), table.VectorLen(4)) == (4, 0, 2)
    assert table.GetVectorAsNumpy(records.Int32Flags, 4).tolist() == [7, 9]


def test_absent_options_are_the_schemas_defaults() -> None:
    conv, pool = absent(tflite.Conv2DOptions), absent(tflite.Pool2DOptions)
    assert (conv.DilationWFactor(), conv.DilationHFactor(), conv.StrideW()) == (1, 1, 0)
    assert (pool.Padding(), pool.FilterHeight()) == (0, 0)
    assert absent(tflite.ReshapeOptions).NewShapeAsNumpy() == 0


def aliased(n: int) -> bytes:
    """n subgraphs that share one vector of n tensors: n * n tensors in 16 n bytes. A version stands in slot 0."""
    slots = struct.pack("<HHHHHH", 10, 16, 4, 0, 8, 0)      # version, no operator codes, subgraphs
    root, graphs = 20, 36
    shared = graphs + 4 + 4 * n + 8 + 8 * n
    body = struct.pack("<iIII", 12, 3, graphs - (root + 8), 0)
    vtable = struct.pack("<HHHH", 6, 8, 4, 0)
    at = graphs + 4 + 4 * n
    tables = [at + 8 + 8 * i for i in range(n)]
    offsets = vector(n, *(t - (graphs + 4 + 4 * i) for i, t in enumerate(tables)))
    graph_tables = b"".join(struct.pack("<iI", t - at, shared - (t + 4)) for t in tables)
    tensor = shared + 4 + 4 * n + 4
    tensors = vector(n, *(tensor - (shared + 4 + 4 * i) for i in range(n)))
    return vector(root, int.from_bytes(b"TFL3", "little")) + slots + body + offsets + vtable + graph_tables + tensors \
        + struct.pack("<HHi", 4, 4, 4)


def test_what_is_shared_is_read_once() -> None:
    graphs = records.read(File(aliased(3))).graphs
    assert [len(g.tensors) for g in graphs] == [3, 3, 3]
    assert [t.name for t in graphs[2].tensors] == ["tensor_0", "tensor_1", "tensor_2"]


def test_aliasing_costs_no_more_than_the_file_is_long() -> None:
    data, start = aliased(20_000), time.perf_counter()
    with limited(subgraphs=1 << 20), pytest.raises(FormatError, match="more often"):
        load(data)
    assert time.perf_counter() - start < 5


def words(data: bytes) -> Iterator[int]:
    return iter(struct.unpack_from(f"<{len(data) // 4}I", data))


def test_a_newer_operator_is_named_by_its_number() -> None:
    w = TFLiteWriter()
    x, y = w.tensor("x", "float32", (2,)), w.tensor("y", "float32", (2,))
    w.op("STABLEHLO_CBRT", [x], [y])
    data, old = bytearray(w.finish([x], [y])), int(tflite.BuiltinOperator.STABLEHLO_CBRT)
    places = [i for i, word in enumerate(words(bytes(data))) if word == old]
    struct.pack_into("<I", data, 4 * places[0], 5000)
    with pytest.raises(NnxError, match="operator code 5000"):
        load(bytes(data))
