"""What conversion measures: a model with open sizes is measured with each of them 1."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

from nnx_convert.cli.converting import convert_file
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.target import Target


DIGITS = str(Path(__file__).parents[2] / "models" / "digits_cnn.tflite")


@pytest.mark.parametrize(("kind", "path", "files"), [
    ("json", "d.json", {"d.json", "d.weights.bin"}), ("html", "d.html", {"d.html"}), ("ndk", "device", {"device/"}),
    ("object", "app", {"app/"})])
def test_the_report_lists_what_was_emitted(kind: str, path: str, files: set[str], tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended([DIGITS, "--emit", f"{kind}:{path}", "--json"]) == ExitCode.GOOD
    emitted, = json.loads(capsys.readouterr().out)["emitted"]
    there = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} - {"digits_cnn.nnx"}
    assert (emitted["kind"], emitted["path"], set(emitted["files"])) == (kind, path, there)
    assert emitted["bytes"] == sum(Path(f).stat().st_size for f in there)
    assert there == files or all(f.startswith(*files) for f in there) and len(there) > 5
    assert ended([DIGITS, "--emit", f"{kind}:{path}"]) == ExitCode.GOOD
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split()[0] == path and (f"{len(there)} files, " in last or len(there) == 1)


def written(path: Path, signature: list[int] | None) -> str:
    """A file with one 4 x 3 matrix product over rows of which there may be any number."""
    w = TFLiteWriter()
    x = w.tensor("x", "float32", [1, 4], signature=signature)
    weights = w.tensor("w", "float32", [3, 4], np.ones((3, 4), np.float32))
    y = w.tensor("y", "float32", [1, 3], signature=signature and [-1, 3])
    w.op("FULLY_CONNECTED", [x, weights], [y], "FullyConnectedOptions", {})
    path.write_bytes(w.finish([x], [y]))
    return str(path)


@pytest.mark.parametrize(("signature", "at_1"), [(None, False), ([-1, 4], True)])
def test_open_sizes_are_measured_as_1(signature: list[int] | None, at_1: bool, tmp_path: Path,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "m.tflite", signature)
    options = (Target(), False, None, (), {})
    convert_file(source, str(tmp_path / "m.nnx"), *options, "json")
    said = json.loads(capsys.readouterr().out)
    assert (said["measured_at_1"], said["macs"]) == (at_1, 12) and said["arena_bytes"] > 0
    convert_file(source, str(tmp_path / "m.nnx"), *options, "text")
    assert ("where open sizes are 1" in capsys.readouterr().out) is at_1
