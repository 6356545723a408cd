"""`nnx-convert diff`: what a change changed, and how a pipeline gates on it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_convert.cli.entry import ended
from nnx_convert.comparison import conditions
from nnx_convert.errors import ExitCode, UsageError

MODELS = Path(__file__).parents[2] / "models"
FLOAT, INT8, SPARSE = (str(MODELS / f"digits_{n}.tflite") for n in ("cnn", "cnn_int8", "sparse"))


@pytest.mark.parametrize(("files", "fail_on", "code"), [
    ((FLOAT, FLOAT), "ops,dtype,shape,scale,size+0%,macs+0%,arena+0%", ExitCode.GOOD),
    ((FLOAT, INT8), "", ExitCode.GOOD), ((FLOAT, INT8), "dtype", ExitCode.DIFFERENT),
    ((FLOAT, INT8), "scale", ExitCode.DIFFERENT), ((FLOAT, INT8), "ops,shape,macs+5%,size+5%", ExitCode.GOOD),
    ((INT8, FLOAT), "size+5%", ExitCode.DIFFERENT), ((INT8, FLOAT), "size+1000%", ExitCode.GOOD),
    ((FLOAT, SPARSE), "ops", ExitCode.DIFFERENT), ((SPARSE, FLOAT), "density+50%", ExitCode.DIFFERENT),
    ((FLOAT, INT8), "nope", ExitCode.USAGE), ((FLOAT, INT8), "macs", ExitCode.USAGE),
    ((FLOAT, "missing.tflite"), "", ExitCode.UNREADABLE)])
def test_how_it_ends(files: tuple[str, str], fail_on: str, code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["diff", *files, "--fail-on", fail_on]) == code
    out, err = capsys.readouterr()
    if code in (ExitCode.GOOD, ExitCode.DIFFERENT):
        last = out.splitlines()[-1]
        assert last.startswith("verdict") and ("fails on" in last) == (code is ExitCode.DIFFERENT)
        assert max(map(len, out.splitlines())) <= 100 and not err
    else:
        assert not out and err.count("\n") == 1


def test_the_object_says_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["diff", FLOAT, INT8, "--fail-on", "dtype,macs+1%", "--json"]) == ExitCode.DIFFERENT
    found = json.loads(capsys.readouterr().out)
    assert found["fail_on"] == [{"condition": "dtype", "met": True}, {"condition": "macs+1%", "met": False}]
    assert not found["good"] and not found["equal"] and found["figures"]["macs"]["growth"] == 0


def test_quiet_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["diff", FLOAT, FLOAT, "--quiet"]) == ExitCode.GOOD
    assert capsys.readouterr().out == "verdict    equal\n"


@pytest.mark.parametrize("text", ["x", "ops+5%", "macs+x%", "macs+5", "size+1234567%"])
def test_conditions_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        conditions(text)
