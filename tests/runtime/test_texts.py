"""Texts: tensors of `bytes` objects, which operations move and nothing computes with."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from hypothesis import given, strategies as st
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert.artifact import from_bytes, to_bytes
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ArtifactError, ExitCode, FormatError, InputError, Unsupported
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.types import packed_strings, strings

WORDS = np.array([[b"one", b"", b"three"], [b"\xff\0", b"5", b"sechs"]], object)


def chosen() -> nnx_convert.Model:
    """Words of a table by their indices, and an input behind them."""
    w = TFLiteWriter()
    words = w.tensor("words", "string", (2, 3), packed_strings(WORDS).tobytes())
    i, x = w.tensor("i", "int32", (2,)), w.tensor("x", "string", (1, 3))
    rows, y = w.tensor("rows", "string", (2, 3)), w.tensor("y", "string", (3, 3))
    w.op("GATHER", [words, i], [rows], "GatherOptions")
    w.op("CONCATENATION", [rows, x], [y], "ConcatenationOptions")
    return nnx_convert.convert(w.finish([i, x], [y]))


@pytest.mark.parametrize("given", [
    np.array([[b"a", b"b", b""]], object), np.array([["a", "b", ""]]), [[b"a", "b", ""]],
    np.array([[b"a", b"b", b""]])])
def test_texts_are_moved(given: Any, tmp_path: Path) -> None:
    made = chosen()
    made.save(tmp_path / "m.nnx")
    for m in map(nnx_convert.compile, (made, nnx_convert.load(tmp_path / "m.nnx"))):
        assert m.inputs[1].dtype == object
        found, = m.run([np.array([1, 0], np.int32), given])
        assert found.dtype == object and found.tolist() == [*WORDS[[1, 0]].tolist(), [b"a", b"b", b""]]


@pytest.mark.parametrize("given", [np.ones((1, 3)), np.array([[1, b"b", b"c"]], object), [["\ud800", "b", "c"]]])
def test_what_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r"'x' is .*, not texts"):
        nnx_convert.compile(chosen()).run([np.array([1, 0], np.int32), given])


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_texts_are_packed_and_unpacked(texts: list[bytes]) -> None:
    array = np.empty(len(texts), object)
    array[:] = texts
    assert strings(packed_strings(array), array.shape).tolist() == texts


@pytest.mark.parametrize(("raw", "size"), [
    ([], 1), ([2, 12, 12], 1), ([1, 12, 99], 1), ([1, 14, 12], 1), ([1, -4, 12], 1), ([0], 0),
    ([1 << 30, 1, 2], 1 << 30)])
def test_bytes_that_are_no_texts_are_refused(raw: list[int], size: int) -> None:
    with pytest.raises(ValueError, match="are not"):
        strings(np.array(raw, "<i4").view(np.uint8), (size,))


def test_a_file_with_broken_texts_is_refused() -> None:
    w = TFLiteWriter()
    c, y = w.tensor("c", "string", (2,), b"\2\0\0\0"), w.tensor("y", "string", (2,))
    w.op("RESHAPE", [c], [y])
    with pytest.raises(FormatError, match="tensor 'c': 4 bytes are not 2 texts"):
        load(w.finish([], [y]))


def test_an_artifact_with_broken_texts_is_refused() -> None:
    w = TFLiteWriter()
    c, x, y = w.tensor("c", "string", (1,), packed_strings(np.array([b"word"], object)).tobytes()), \
        w.tensor("x", "string", (1,)), w.tensor("y", "string", (2,))
    w.op("CONCATENATION", [c, x], [y], "ConcatenationOptions")
    data = to_bytes(nnx_convert.convert(w.finish([x], [y])))
    assert from_bytes(data).operands
    from nnx_convert.artifact.container import pack, unpack
    header, tail = unpack(data)
    for operand in header["models"][0]["operands"]:
        if operand.get("hex", "").endswith(b"word".hex()):
            operand["hex"] = operand["hex"][:-2]
    with pytest.raises(ArtifactError, match="are not 1 texts"):
        from_bytes(b"".join(pack(header, [bytes(tail)])))


def test_the_command_draws_shows_keeps_and_compares_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen().save(tmp_path / "m.nnx")
    np.save(tmp_path / "i.npy", np.array([1, 0], np.int32))
    args = ["run", str(tmp_path / "m.nnx"), "--input", f"i={tmp_path / 'i.npy'}", "--random"]
    assert ended([*args, "1", "--output", str(tmp_path / "o.npz")]) == ExitCode.GOOD
    assert "object [3,3]   b'\\xff\\x00' b'5' b'sechs' b'one'" in capsys.readouterr().out
    assert ended([*args, "1", "--expect", str(tmp_path / "o.npz")]) == ExitCode.GOOD
    assert ended([*args, "2", "--expect", str(tmp_path / "o.npz")]) == ExitCode.DIFFERENT
    assert "y   3 of 9" in capsys.readouterr().out


def test_nothing_computes_with_texts() -> None:
    w = TFLiteWriter()
    x, y = w.tensor("x", "string", (2,)), w.tensor("y", "string", (2,))
    w.op("ADD", [x, x], [y], "AddOptions")
    with pytest.raises(FormatError, match="TENSOR_STRING is not accepted"):
        nnx_convert.convert(w.finish([x], [y]))


def table(keys: Any, values: Any, kinds: tuple[str, str], *, filled: bool = True) -> bytes:
    """What a table has for x, and how much it holds; an initialisation fills it twice."""
    w = TFLiteWriter()
    code = {"int64": int(tflite.TensorType.INT64), "string": int(tflite.TensorType.STRING)}
    options = {"TableId": 7, "KeyDtype": code[kinds[0]], "ValueDtype": code[kinds[1]]}

    def constant(name: str, kind: str, data: Any) -> int:
        array = np.array(data, object if kind == "string" else kind)
        return w.tensor(name, kind, array.shape, packed_strings(array).tobytes() if kind == "string" else array)
    h, x, y, n = (w.tensor(*t) for t in (("h", "resource", ()), ("x", kinds[0], (3,)), ("y", kinds[1], (3,)),
                                         ("n", "int64", (1,))))
    other = constant("other", kinds[1], [b"?"] if kinds[1] == "string" else [-1])
    if filled:
        w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    w.op("HASHTABLE", [], [h], "HashtableOptions", options)
    w.op("HASHTABLE_FIND", [h, x, other], [y], "HashtableFindOptions")
    w.op("HASHTABLE_SIZE", [h], [n], "HashtableSizeOptions")
    w.subgraph("init")
    g, k, v = w.tensor("g", "resource", ()), constant("k", kinds[0], keys), constant("v", kinds[1], values)
    w.op("HASHTABLE", [], [g], "HashtableOptions", options)
    for pair in ([k, v], [k, k] if kinds[0] == kinds[1] else [k, v]):
        w.op("HASHTABLE_IMPORT", [g, *pair], [], "HashtableImportOptions")
    w.ends([], [])
    return w.finish([x], [y, n])


TABLES: list[tuple[Any, Any, tuple[str, str], Any, Any]] = [
    ([5, -1, 1 << 40], [b"five", b"", b"much"], ("int64", "string"), [1 << 40, 6, 5], [b"much", b"?", b"five"]),
    ([b"a", b"b", b"a"], [1, 2, 3], ("string", "int64"), [b"b", b"", b"a"], [2, -1, 1]),
    ([1, 2, 3], [10, 20, 30], ("int64", "int64"), [3, 3, 9], [30, 30, -1])]


@pytest.mark.parametrize(("keys", "values", "kinds", "asked", "want"), TABLES)
def test_a_table_is_looked_into(keys: Any, values: Any, kinds: tuple[str, str], asked: Any, want: Any) -> None:
    m = nnx_convert.compile(from_bytes(to_bytes(nnx_convert.convert(table(keys, values, kinds)))))
    found, size = m.run([np.array(asked, object if kinds[0] == "string" else np.int64)])
    assert found.tolist() == want and size.tolist() == [len(set(keys))]


def test_a_table_that_nothing_fills_is_refused() -> None:
    with pytest.raises(Unsupported, match="table 7 is read and nothing fills it"):
        nnx_convert.convert(table([1], [2], ("int64", "int64"), filled=False))


def test_an_input_that_is_an_output_keeps_its_open_sizes() -> None:
    w = TFLiteWriter()
    x = w.tensor("x", "float32", (1, 1, 3), signature=(-1, -1, 3))
    m = nnx_convert.compile(nnx_convert.convert(w.finish([x], [x])))
    given = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    np.testing.assert_array_equal(m.run([given])[0], given)
