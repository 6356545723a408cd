"""Records of NNAPI programs: read call by call, run as asked; damage of any kind is a sentence."""
from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cxx import MISSING, by_level, environment

import nnx_convert as nnx
from nnx_convert.cli.entry import ended
from nnx_convert.errors import NnxError
from nnx_convert.record import hand_over, read_record
from nnx_convert.types import ChannelQuant, Quant

#: y = if(c, -x, -x), and z = x + 2.
NEGATE: dict[str, Any] = {
    "relaxed": False, "operands": [{"type": 3, "dims": [2], "scale": 0, "zero": 0}] * 2,
    "operations": [{"code": 50007, "ex": True, "inputs": [0], "outputs": [1]}], "inputs": [0], "outputs": [1]}
PLAIN = {"scale": 0, "zero": 0}
MAIN: dict[str, Any] = {
    "relaxed": True,
    "operands": [{"type": 9, "dims": [1], **PLAIN}, {"type": 3, "dims": [2], **PLAIN},
                 {"type": 15, "dims": [], **PLAIN, "model": 0}, {"type": 3, "dims": [2], **PLAIN},
                 {"type": 3, "dims": [1], **PLAIN, "at": 0, "bytes": 4},
                 {"type": 1, "dims": [], **PLAIN, "at": 8, "bytes": 4}, {"type": 3, "dims": [2], **PLAIN}],
    "operations": [{"code": 96, "ex": False, "inputs": [0, 2, 2, 1], "outputs": [3]},
                   {"code": 0, "ex": False, "inputs": [1, 4, 5], "outputs": [6]}],
    "inputs": [0, 1], "outputs": [3, 6]}
RECORD: dict[str, Any] = {"format": "nnx-record", "version": 1, "models": [NEGATE, MAIN]}
DATA = np.float32(2).tobytes() + bytes(8)
RUN: dict[str, Any] = {"inputs": [{"none": False}, {"none": False, "dims": [2]}]}
#: What may stand where something else should.
WRONG = (None, -1, 1 << 40, 1e300, "x", [], {}, [[]], True)


def record(at: Path, fields: Any = RECORD, data: bytes = DATA) -> Path:
    (at / "model.json").write_text(json.dumps(fields))
    (at / "model.bin").write_bytes(data)
    return at


def asked(at: Path, run: Any = RUN) -> Path:
    """A record that is to be run."""
    (at / "run.json").write_text(json.dumps(run))
    (at / "in0.bin").write_bytes(b"\1")
    np.array([3, -4], "<f4").tofile(at / "in1.bin")
    return at


def places(fields: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in JSON, from the outside in."""
    yield at
    inner = fields.items() if isinstance(fields, dict) else enumerate(fields) if isinstance(fields, list) else ()
    for key, value in inner:
        yield from places(value, (*at, key))


def damaged(fields: Any, at: tuple[Any, ...], wrong: Any) -> Any:
    """The same with something else in one place."""
    found = {"": copy.deepcopy(fields)}
    holder: Any = found
    for key in ("", *at)[:-1]:
        holder = holder[key]
    holder[("", *at)[-1]] = wrong
    return found[""]


def test_a_record_becomes_a_model_that_runs(tmp_path: Path) -> None:
    assert ended(["record-run", str(record(tmp_path))]) == 0
    model = nnx.load(tmp_path / "model.nnx")
    assert model.relaxed and [o.op.name for o in model.operations] == ["IF", "ADD"] and model.depth == 1
    assert ended(["record-run", str(asked(tmp_path))]) == 0
    found = [np.fromfile(tmp_path / f"out{i}.bin", "<f4").tolist() for i in range(2)]
    assert found == [[-3, 4], [5, -2]] and (tmp_path / "outputs.txt").read_text() == "1 2\n1 2\n"


def test_scales_are_as_the_program_gave_them(tmp_path: Path) -> None:
    scales = [np.float32(0.1), np.float32(1e-38)]
    grid = {"type": 14, "dims": [1, 1, 1, 2], "scale": 0.1, "zero": -3}
    operands = [grid, {"type": 11, "dims": [2, 1, 1, 2], **PLAIN, "axis": 0, "at": 0, "bytes": 4,
                       "scales": [float(f"{s:.9g}") for s in scales]},
                {"type": 4, "dims": [2], **PLAIN, "at": 0, "bytes": 8}, grid | {"scale": 0.25},
                {"type": 1, "dims": [], **PLAIN, "at": 12, "bytes": 4}]
    fields = {"relaxed": False, "inputs": [0], "outputs": [3], "operands": operands, "operations": [
        {"code": 3, "ex": False, "inputs": [0, 1, 2, 4, 4, 4, 4], "outputs": [3]}]}
    model = read_record(record(tmp_path, RECORD | {"models": [fields]}, bytes(12) + b"\1\0\0\0"))
    assert model.operands[1].quant == ChannelQuant(tuple(map(float, scales)), 0)
    assert model.operands[0].quant == Quant(float(np.float32(0.1)), -3)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_damage_is_a_sentence(wrong: Any, tmp_path: Path) -> None:
    refused = 0
    for at in places(RECORD):
        try:
            read_record(record(tmp_path, damaged(RECORD, at, wrong)))
        except NnxError as error:
            refused += str(tmp_path) in error.said
    assert refused > 60
    hand_over(record(tmp_path))
    for at in places(RUN):
        try:
            hand_over(asked(tmp_path, damaged(RUN, at, wrong)))
        except NnxError:
            refused += 1
    assert refused > 66


@pytest.mark.parametrize(("file", "content", "code"), [
    ("model.json", b"", 3), ("model.json", b"\xff{", 3), ("model.json", b"[" * 100_000, 3), ("model.json", None, 3),
    ("model.bin", DATA[:5], 3), ("model.bin", None, 3), ("run.json", b"{}", 3), ("in1.bin", b"12", 5)])
def test_damaged_files_are_refused(file: str, content: bytes | None, code: int, tmp_path: Path) -> None:
    hand_over(record(tmp_path))
    if file.startswith(("in", "run")):
        asked(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    assert ended(["record-run", str(tmp_path)]) == code


def test_the_library_is_written_with_every_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["record-lib", str(tmp_path / "lib")]) == 0
    said, source = capsys.readouterr().out, (tmp_path / "lib" / "calls.cpp").read_text()
    assert all(str(p) in said for p in (tmp_path / "lib").rglob("*.*") if p.is_file())
    calls = by_level((tmp_path / "lib" / "include" / "NeuralNetworks.h").read_text())
    assert len(calls) > 50 and all(f"{name}(" in source for _, name in calls)
    assert ended(["record-lib", str(tmp_path / "lib"), "--json"]) == 0
    assert all(file in said for file in json.loads(capsys.readouterr().out)["files"])
    assert ended(["record-run", str(record(tmp_path)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"model": str(tmp_path / "model.nnx"), "operations": 2}
    (tmp_path / "file").write_text("")
    assert ended(["record-lib", str(tmp_path / "file")]) == 2


@pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing")
def test_a_program_linked_with_it_leaves_its_model_and_gets_its_results(tmp_path: Path) -> None:
    """The example, built and run as the README says."""
    assert ended(["record-lib", str(tmp_path)]) == 0
    for words in (["cmake", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], ["cmake", "--build", "build"]):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    done = subprocess.run(["build/example"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env=environment() | {"NNX_RECORD_DIR": "it's here"})
    assert (done.stdout, done.stderr) == ("0 0 1 3\n", "")
    assert [o.op.name for o in nnx.load(tmp_path / "it's here" / "0" / "model.nnx").operations] == ["ADD"]
    done = subprocess.run(["build/example"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env=environment() | {"NNX_RECORD_RUN": "false"})
    assert done.returncode == 1 and "not in order" in done.stderr
