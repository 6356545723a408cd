"""Programs kept for the next process: found again, equal in all they give, and never in place of another one."""
from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import nnx_convert
from nnx_convert.codes import dtype_of
from nnx_convert.errors import InputError
from nnx_convert.model import Lifetime, Model, Operand
from nnx_convert.ops import custom
from nnx_convert.runtime.codegen import kept, records
from nnx_convert.runtime.codegen.cache import Cache, _maker, sources
from nnx_convert.runtime.codegen.objects import apart, together
from nnx_convert.runtime.codegen.ready import Segment
from nnx_convert.runtime.outline import Outline
from nnx_convert.types import ChannelQuant, Entry, Port, Quant, Rim, Source, Type

MODELS = Path(__file__).resolve().parents[3] / "models"
FILES = sorted([*MODELS.glob("*.tflite"), *MODELS.glob("*.onnx")])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty at first."""
    monkeypatch.setenv("NNX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "objects"


def drawn(model: nnx_convert.CompiledModel) -> list[Any]:
    """Inputs of a model."""
    rng = np.random.default_rng(3)
    shapes = [tuple(n or 1 for n in s.shape or ()) for s in model.inputs if not s.state]
    return [(50 * rng.random(shape)).astype(s.dtype) for s, shape in zip(model.inputs, shapes, strict=False)]


def compiled(source: Any, **more: Any) -> nnx_convert.CompiledModel:
    """It, natively, by one thread."""
    return nnx_convert.compile(source, backend="native", threads=1, **more)


def known(model: nnx_convert.CompiledModel) -> bool:
    """Whether it was made from a kept program."""
    return isinstance(model._runner._known, Outline)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_next_compilation_has_the_program(path: Path) -> None:
    first = compiled(path)
    inputs = drawn(first)
    want = first.run(inputs)
    again = compiled(path)
    assert known(again) and not known(first)
    assert (again.inputs, again.outputs, again.signatures) == (first.inputs, first.outputs, first.signatures)
    got = again.run(inputs)
    assert len(got) == len(want) and all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    with pytest.raises(InputError):
        again.run([])


def test_what_a_run_does_not_need_is_made_when_it_is_asked_for() -> None:
    first = compiled(FILES[0])
    inputs = drawn(first)
    want = first.run(inputs)[0]
    again = compiled(FILES[0])
    assert known(again) and isinstance(again.model, Model) and again.model.operations
    program = again.prepare()
    assert program is not None and program.program.steps and again.profile(inputs, runs=2).rows
    assert np.array_equal(pickle.loads(pickle.dumps(again)).run(inputs)[0], want)
    assert np.array_equal(again.run(inputs)[0], want)


def test_other_options_and_other_bytes_are_other_programs(tmp_path: Path) -> None:
    path = MODELS / "digits_cnn.tflite"
    first = compiled(path)
    first.run(drawn(first))
    assert known(compiled(path)) and known(compiled(path.read_bytes()))
    assert not known(nnx_convert.compile(path, backend="native", threads=2))
    assert not known(nnx_convert.compile(path, backend="numpy", threads=1))
    assert not known(compiled(MODELS / "digits_cnn_int8.tflite"))


def test_another_package_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(FILES[0])
    first.run(drawn(first))
    monkeypatch.setattr(kept, "sources", lambda: b"changed")
    assert not known(compiled(FILES[0]))


def test_a_package_whose_sources_cannot_be_told_keeps_nothing(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def archive(_: str) -> Iterator[str]:
        raise NotADirectoryError
    sources(), _maker()                          # are asked once in a process: others are to have what there is
    for told in (archive, lambda _: iter(())):
        monkeypatch.setattr("nnx_convert.runtime.codegen.cache.told", told)
        known = sources.__wrapped__()
        assert known is None
        monkeypatch.setattr(kept, "sources", lambda: None)
        first = compiled(FILES[0])
        first.run(drawn(first))
        assert not list(cache.glob("**/*.weights"))


def test_a_users_operators_are_no_part_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(FILES[0])
    first.run(drawn(first))
    monkeypatch.setitem(custom.CUSTOM_OPS, "Own", custom.CustomOp(lambda *_: [], lambda *_: []))
    assert not known(compiled(FILES[0]))


def test_nobody_waits_until_many_weights_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnx_convert.runtime.codegen.kept.SLOW", 0)
    first, before = compiled(FILES[0]), set(threading.enumerate())
    inputs = drawn(first)
    want = first.run(inputs)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    again = compiled(FILES[0])
    assert known(again) and all(map(np.array_equal, again.run(inputs), want))



@pytest.mark.parametrize("harm", ["truncated", "changed", "gone", "elsewhere"])
@pytest.mark.parametrize("weights", [False, True])
def test_what_is_not_as_it_was_written_is_not_used(harm: str, weights: bool, cache: Path) -> None:
    first = compiled(FILES[0])
    inputs = drawn(first)
    want = first.run(inputs)[0]
    found = next(cache.glob("*.weights"))
    entry = found if weights else found.with_suffix("")
    data = entry.read_bytes()
    if harm == "gone":
        entry.unlink()
    elif harm == "elsewhere":
        shutil.move(entry, entry.with_name("moved"))
        entry.symlink_to(entry.with_name("moved"))
    else:
        entry.write_bytes(data[:-9] if harm == "truncated" else data[:-1] + bytes([data[-1] ^ 1]))
        os.chmod(entry, 0o600)
    again = compiled(FILES[0])
    assert not known(again) and np.array_equal(again.run(inputs)[0], want)
    assert known(compiled(FILES[0])) or harm == "elsewhere"


def test_the_types_of_fields_are_those_declared() -> None:
    assert {record: get_type_hints(record) for record in records.RECORDS} == records.RECORDS


#: What an entry may be that is whole by its checksum and no program: changes to its text and to all of its bytes.
FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "no pieces": lambda data: together([]),
    "cut short": lambda data: data[:-1],
    "too long": lambda data: data + b"0",
    "a pickle": lambda data: pickle.dumps({"rim": None}),
    "no text": lambda data: text_of(data, lambda text: b"\xff"),
    "nested": lambda data: text_of(data, lambda text: b"[" * 100_000),
    "no object": lambda data: text_of(data, lambda text: b"[]"),
    "a field too few": lambda data: text_of(data, lambda text: text.replace(b'"threads":1,', b"")),
    "a field too many": lambda data: text_of(data, lambda text: text.replace(b'"threads":1', b'"threads":1,"more":1')),
    "another type": lambda data: text_of(data, lambda text: text.replace(b'"threads":1', b'"threads":true')),
    "no such piece": lambda data: together(apart(data)[:1]),
    "other weights": lambda data: text_of(data, lambda text: text.replace(b'"packed":', b'"packed":1')),
    "no such type": lambda data: text_of(data, lambda text: text.replace(b'"type":3', b'"type":-3')),
}


def text_of(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """An entry with another text."""
    text, *pieces = apart(data)
    assert change(text) != text
    return together([change(text), *pieces])


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_program_is_not_used(change: Callable[[bytes], bytes], cache: Path) -> None:
    first = compiled(FILES[0])
    inputs = drawn(first)
    want = first.run(inputs)[0]
    name, there = next(cache.glob("*.weights")).stem, Cache(cache)
    data = there.find(name)
    assert data is not None and known(compiled(FILES[0]))
    there.keep(name, change(data))
    again = compiled(FILES[0])
    assert not known(again) and np.array_equal(again.run(inputs)[0], want)
    assert known(compiled(FILES[0]))


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program can be written."""
    monkeypatch.setattr(kept, "written", lambda found: records.written(replace(found, packed=np.int64(found.packed))))


@pytest.mark.usefixtures("unwritten")
def test_what_cannot_be_written_is_not_kept(cache: Path) -> None:
    first = compiled(FILES[0])
    first.run(drawn(first))
    assert not known(compiled(FILES[0])) and not list(cache.glob("*.weights"))


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_where_no_program_is_kept_the_model_is(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(path)
    inputs = drawn(first)
    want = first.run(inputs)
    with monkeypatch.context() as only:
        only.setattr(sys.modules["nnx_convert.convert"], "_compiled", None)       # nothing is imported or lowered
        again = compiled(path)
    assert not known(again) and (again.inputs, again.outputs) == (first.inputs, first.outputs)
    assert all(map(np.array_equal, again.run(inputs), want))
    entry, = cache.glob("*.model")
    Cache(cache).keep(entry.name, b"something else")
    assert all(map(np.array_equal, compiled(path).run(inputs), want))


@pytest.mark.usefixtures("unwritten")
def test_a_finished_model_is_not_kept_once_more(tmp_path: Path, cache: Path) -> None:
    nnx_convert.convert(FILES[0]).save(tmp_path / "m.nnx")
    first = compiled(tmp_path / "m.nnx")
    first.run(drawn(first))
    assert list(cache.iterdir()) and not list(cache.glob("*.model"))


@pytest.mark.parametrize("array", [np.array([[1.5, 2]], np.float32), np.zeros((2, 0), np.int8), np.array(3),
                                   np.array([1, 2], dtype_of("bfloat16"))], ids=lambda a: str(a.dtype))
def test_records_are_read_as_they_were_written(array: np.ndarray[Any, Any]) -> None:
    port = Port("x", "float32", (None, 2), ChannelQuant((0.1, 1e-9), 1), True, array, (-1.0, 0.5), ((0.5,), (2.0,)))
    operand = Operand(Type.TENSOR_FLOAT32, (1, 2), Quant(0.3, -4), Lifetime.CONSTANT, array)
    arm = records.Stored((None,), (), (3,), (), {}, {}, {}, 64, 1, (), (), (), 64, 0)
    step = records.Graphs("IF", "at", (3,), (1, (None, 2)), (("then", arm), ("orelse", None)))
    whole = replace(arm, shapes=((1, 2), None), slots_in=(None, 0), states=((0, 1),), parts=(Segment("s", 1), step),
                    checks=(("x", "y"),), images=(b"", b"code"))
    want = records.Kept(Rim((port,), (), (Entry("e", (("a", "b"),)),), Source("tflite", labels=("cat", "dog"))),
                        (0,), (1,), {0: operand}, whole, 3)
    got = records.read(records.written(want))
    (found,), kept_operand = got.rim.inputs, got.operands[0]
    for other in (found.initial, kept_operand.value):
        assert isinstance(other, np.ndarray) and other.dtype == array.dtype and np.array_equal(other, array)
    assert replace(got, operands={}) == replace(want, operands={})
    assert replace(kept_operand, value=None) == replace(operand, value=None)


WARM = """
import sys
import numpy as np
import nnx_convert
model = nnx_convert.compile({path!r}, backend="native", threads=1)
model.run([np.ones(tuple(n or 1 for n in s.shape or ()), s.dtype) for s in model.inputs if not s.state])
print(*sorted(m for m in sys.modules if m.partition(".")[0] in ("nnx_convert", "llvmlite")))
"""


def test_another_process_reads_what_a_run_needs_and_no_more(tmp_path: Path) -> None:
    package = tmp_path / "lib"                   # a copy, which nobody changes meanwhile
    shutil.copytree(MODELS.parent / "nnx_convert", package / "nnx_convert", ignore=shutil.ignore_patterns("*.pyc"))
    environment = os.environ | {"PYTHONPATH": str(package)}

    def loaded() -> set[str]:
        code = WARM.format(path=str(MODELS / "digits_cnn.tflite"))
        done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True,
                              text=True, check=True, timeout=60)
        return set(done.stdout.split())
    table = {"llvmlite", "nnx_convert.schema", "nnx_convert.runtime.bind",
             *(f"nnx_convert.runtime.codegen.{n}" for n in ("tasks", "merging"))}
    assert loaded() >= table
    assert not loaded() & (table | {"nnx_convert.runtime.kernel", "nnx_convert.runtime.plan"})
