"""`nnx-convert ci`, through its entry point: the table, JSON, JUnit, and what it ends with."""
from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

ROOT = Path(__file__).parents[2]
FLOAT, INT8, SPARSE, ONNX = (ROOT / "models" / f"digits_{n}" for n in (
    "cnn.tflite", "cnn_int8.tflite", "sparse.tflite", "cnn.onnx"))


def entry(name: str, path: object, *lines: str) -> str:
    return "\n".join([f"[models.{name}]", f"path = '{path}'", *lines, ""])


#: Entries that fail each in a way of its own, and what each ends with by itself.
GOOD = entry("good", FLOAT, "fail_on = 'host'", f"verify = {{against = '{ONNX}'}}", "budgets = {size = '50 kB'}")
DEVICE = entry("device", INT8, "targets = [29, 28]", "fail_on = ['host', 'partitions>1']")
BIG = entry("big", FLOAT, "budgets = {size = '10 kB', weights = '10 kB', arena = '10 KiB', macs = '1 k'}")
OFF = entry("off", FLOAT, f"verify = {{against = '{INT8}', atol = 1e-9}}")
GREW = entry("grew", FLOAT, f"diff = {{baseline = '{INT8}', fail_on = ['size+5%', 'scale']}}")
SLOW = entry("slow", FLOAT, "budgets = {latency = {median = '1 us', runs = 3}}")
LATE = entry("late", FLOAT, "timeout = 0.001")
GONE = entry("gone", "gone.tflite")
NO_INPUTS = entry("inputs", FLOAT, "verify = {against = 'out.npz'}")
ENDS = [(GOOD, ExitCode.GOOD), (DEVICE, ExitCode.UNSUPPORTED), (BIG, ExitCode.DIFFERENT), (OFF, ExitCode.DIFFERENT),
        (GREW, ExitCode.DIFFERENT), (SLOW, ExitCode.DIFFERENT), (LATE, ExitCode.FAILED), (GONE, ExitCode.UNREADABLE),
        (NO_INPUTS, ExitCode.FAILED)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where nnx.toml is, with all the entries; beside it an archive of outputs only."""
    found = tmp_path_factory.mktemp("ci")
    np.savez(found / "out.npz", out0=np.zeros((1, 10), np.float32))
    (found / "nnx.toml").write_text("".join(text for text, _ in ENDS))
    return found


def ci(folder: Path, *args: object) -> int:
    return ended(["ci", str(folder / "nnx.toml"), *map(str, args)])


def cases(path: Path) -> dict[str, dict[str, str]]:
    """What a file of JUnit says of each case: good, failure or error; its numbers are checked against its cases."""
    whole = ET.parse(path).getroot()
    for found in (whole, *whole):
        own = list(found.iter("testcase"))
        counts = [len(own), sum(c.find("failure") is not None for c in own),
                  sum(c.find("error") is not None for c in own)]
        assert [int(found.get(n, "")) for n in ("tests", "failures", "errors")] == counts
        assert float(found.get("time", "")) >= 0
    return {s.get("name", ""): {c.get("name", ""): c[0].tag if len(c) else "good" for c in s} for s in whole}


def test_all_in_one_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ci(folder, "--junit", folder / "o.xml", "--json") == ExitCode.FAILED
    found = json.loads(capsys.readouterr().out)
    ends = {e["entry"]: {s["code"] for s in e["steps"]} - {0} or {0} for e in found["entries"]}
    assert list(ends.items()) == [(re.findall(r"models\.(\w+)", t)[0], {int(c)}) for t, c in ENDS]
    steps = {(e["entry"], s["kind"]): s for e in found["entries"] for s in e["steps"]}
    assert steps["big", "size"]["figures"] == {"value": FLOAT.stat().st_size, "limit": 10000}
    assert steps["off", "verify"]["figures"]["differ"] == 1
    assert " of 10 differ, off by " in steps["off", "verify"]["why"]
    assert steps["grew", "diff"]["why"] == "fails on size+5%, scale"
    assert steps["late", "entry"]["why"] == "took longer than 0.001 s"
    assert "holds no inputs" in steps["inputs", "verify"]["why"]
    known = cases(folder / "o.xml")
    assert known["device"] == {"check level 29": "good", "check level 28": "failure"}
    assert known["late"] == {"entry": "error"} and set(known["good"].values()) == {"good"}
    assert known["big"] == {"check level 30": "good", **dict.fromkeys(("size", "weights", "arena", "macs"), "failure")}
    told = (ROOT / "docs" / "report.md").read_text().partition("## nnx-convert ci")[2].partition("\n## ")[0]
    keys = set(found) | set(found["entries"][0]) | set(steps["big", "size"]) | {"value", "limit", "compared", "differ"}
    assert keys <= set(re.findall(r"`(\w+)`", told))


@pytest.mark.parametrize(("names", "end"), [
    (("good",), ExitCode.GOOD), (("device", "big"), ExitCode.UNSUPPORTED), (("big",), ExitCode.DIFFERENT)],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "")
def test_the_gravest_is_what_it_ends_with(names: tuple[str, ...], end: ExitCode, folder: Path,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    assert ci(folder, *(w for n in names for w in ("--only", n)), "--jobs", 2) == end
    out, err = capsys.readouterr()
    assert not err and max(map(len, out.splitlines())) <= 100
    good = sum(n == "good" for n in names)
    assert out.splitlines()[-1].startswith(f"verdict    {good} of {len(names)} entries good")


def test_the_screen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ci(folder, "--only", "device") == ExitCode.UNSUPPORTED
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"entry +asked +of +found +limit", lines[0])
    assert re.fullmatch(r"device +check +level 28 +host 4, refused 4, level 27, partitions 2 +host,partitions>1 +<-",
                        lines[2])
    assert "fails      device: check level 28: fails on host, partitions>1; CONV_2D 3" in lines[3]
    assert ci(folder, "--only", "device", "--quiet") == ExitCode.UNSUPPORTED
    assert "level 29 " not in capsys.readouterr().out


@pytest.mark.parametrize(("vs", "model"), [
    pytest.param(vs, model, id=vs) for vs, package, model in (
        ("litert", "ai_edge_litert", FLOAT), ("onnxruntime", "onnxruntime", ONNX), ("openvino", "openvino", ONNX))
    if find_spec(package)])
def test_a_ratio_to_another_engine(vs: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limit = f"{{ratio = 1000, vs = '{vs}', runs = 5, threads = 1}}"
    (tmp_path / "nnx.toml").write_text(entry("a", model, f"budgets = {{latency = {limit}}}"))
    assert ci(tmp_path, "--json") == ExitCode.GOOD
    step: dict[str, Any] = json.loads(capsys.readouterr().out)["entries"][0]["steps"][-1]
    assert (step["kind"], step["of"]) == ("ratio", f"to {vs}") and 0 < step["figures"]["value"] < 1000


def test_an_engine_that_reads_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nnx.toml").write_text(entry("a", ONNX, "budgets = {latency = {ratio = 1, vs = 'litert', runs = 1}}"))
    assert ci(tmp_path) == ExitCode.FAILED
    assert re.search(r"fault +a: ratio: litert (reads no .onnx file|is not installed)", capsys.readouterr().out)


def test_a_device_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "npu.toml").write_text('name = "my NPU"\nlevel = 29\noperations = ["CONV_2D"]\n')
    (tmp_path / "nnx.toml").write_text(entry("a", FLOAT, "target = 'npu.toml'", "fail_on = 'refused'"))
    assert ci(tmp_path) == ExitCode.UNSUPPORTED
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"a check my NPU host \d", out) and "is not among the operations of my NPU" in out
