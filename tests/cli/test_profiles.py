"""`--profile FILE`: a table, JSON, a trace; of both commands, on each backend."""
from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

MODEL = str(Path(__file__).parents[2] / "models" / "digits_cnn_int8.tflite")
COMMANDS = {"run": ["run", MODEL, "--random", "1"], "bench": ["bench", MODEL, "--runs", "2"]}
#: What each row of a profile says.
FIELDS = {"operations", "origins", "engine", "bytes", "macs", "gflops", "share"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_the_rows_are_a_run(command: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, trace = tmp_path / "p.json", tmp_path / "p.trace.json"
    for path in (rows, trace):
        assert ended([*COMMANDS[command], "--backend", backend, "--profile", str(path)]) == ExitCode.GOOD
    found = json.loads(rows.read_text())
    assert found["source"] == "digits_cnn_int8.tflite" and found["seconds"] > 0
    assert all(r.keys() == FIELDS | {"seconds"} for r in found["per_op"])
    assert {"CONV_2D", "FULLY_CONNECTED"} <= {n for r in found["per_op"] for n in r["operations"]}
    assert {r["engine"] for r in found["per_op"]} == {backend}
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert [e["args"]["operations"] for e in events] == [r["operations"] for r in found["per_op"]]
    assert all(e["args"].keys() == FIELDS | {"step"} for e in events)
    for a, b in pairwise(events):
        assert b["ts"] == pytest.approx(a["ts"] + a["dur"])
    assert sum(r["macs"] for r in found["per_op"]) == 199_936


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.txt"
    assert ended([*COMMANDS["run"], "--profile", str(path)]) == ExitCode.GOOD
    lines = path.read_text().splitlines()
    assert lines[0].startswith("digits_cnn_int8.tflite: ") and "CONV_2D" in path.read_text()
    assert lines[-1].endswith("copies of inputs and outputs, and the calls")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_says_nothing_is_refused_first(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([*COMMANDS[command], "--profile", "p.xyz"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert not out and "p.xyz" in err and ".trace.json" in err
