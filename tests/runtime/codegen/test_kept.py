"""Programs kept for the next process: found again, equal in all they give, and never in place of another one."""
from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnx_convert
from nnx_convert.errors import InputError
from nnx_convert.model import Model
from nnx_convert.ops import custom
from nnx_convert.runtime.codegen import kept
from nnx_convert.runtime.outline import Outline

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
    return isinstance(model._known, Outline)


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


def test_a_users_operators_are_no_part_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(FILES[0])
    first.run(drawn(first))
    monkeypatch.setitem(custom.CUSTOM_OPS, "Own", custom.CustomOp(lambda *_: [], lambda *_: []))
    assert not known(compiled(FILES[0]))


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
