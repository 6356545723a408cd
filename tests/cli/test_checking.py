"""`nnx-convert check`: one screen, one object, a line to gate on."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_convert.check import FIGURES, conditions
from nnx_convert.cli.entry import ended
from nnx_convert.codes import LEVELS
from nnx_convert.errors import ExitCode, UsageError

MODELS = Path(__file__).parents[2] / "models"
INT8, FLOAT = str(MODELS / "digits_cnn_int8.tflite"), str(MODELS / "digits_cnn.tflite")


@pytest.mark.parametrize(("text", "found"), [
    ("", []), ("host", [("host", ">", 0)]), ("level>29,partitions>1", [("level", ">", 29), ("partitions", ">", 1)]),
    ("level>fl6", [("level", ">", 1_000_006)]), ("refused >= 3", [("refused", ">=", 3)])])
def test_conditions(text: str, found: list[tuple[str, str, int]]) -> None:
    assert [(c.figure, c.sign, c.bound) for c in conditions(text)] == found


@pytest.mark.parametrize("text", ["nope", "host>", "level>x", "host>>1", "partitions>99999999999", "host>fl6"])
def test_conditions_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        conditions(text)


@pytest.mark.parametrize(("args", "code"), [
    ([FLOAT], ExitCode.GOOD), ([FLOAT, "--fail-on", "host,refused,partitions>1"], ExitCode.GOOD),
    ([FLOAT, "--fail-on", "level>26"], ExitCode.UNSUPPORTED), ([INT8, "--fail-on", "level>29"], ExitCode.UNSUPPORTED),
    ([INT8, "--fail-on", "level>30"], ExitCode.GOOD), ([INT8, "--fail-on", "nope"], ExitCode.USAGE),
    ([INT8, "--target", "27", "--fail-on", "host"], ExitCode.UNSUPPORTED), (["missing.tflite"], ExitCode.UNREADABLE)])
def test_how_it_ends(args: list[str], code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", *args]) == code
    out, err = capsys.readouterr()
    if code in (ExitCode.GOOD, ExitCode.UNSUPPORTED):
        assert out.splitlines()[-1].startswith("verdict") and not err
        assert ("fails on" in out.splitlines()[-1]) == (code is ExitCode.UNSUPPORTED)
        assert max(map(len, out.splitlines())) <= 100
    else:
        assert not out and err.count("\n") == 1


def test_all_targets_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", INT8, "--all-targets", "--json"]) == ExitCode.GOOD
    found = json.loads(capsys.readouterr().out)
    assert [t["target"]["level"] for t in found["targets"]] == ["27", "28", "29", "30", "31", "6", "7", "8"]
    assert ended(["check", INT8, "--all-targets"]) == ExitCode.GOOD
    lines = capsys.readouterr().out.splitlines()
    assert len(lines[[line.startswith("targets") for line in lines].index(True):]) == len(LEVELS) + 2


def test_the_object_says_all_of_each_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", INT8, "--target", "27", "--fail-on", "host", "--json"]) == ExitCode.UNSUPPORTED
    found = json.loads(capsys.readouterr().out)
    target, = found["targets"]
    assert target["refused"] == sum(not o["taken"] for o in target["operations"]) > 0
    assert all(o["rule"] and (o["change"] is None) == o["taken"] for o in target["operations"])
    assert sorted(n for p in target["partitions"] for n in p) == [
        o["index"] for o in target["operations"] if o["taken"] and not o["subgraph"]]
    assert found["fail_on"] == [{"condition": "host", "value": target["host"], "met": True}] and not found["good"]


def test_quiet_is_the_last_line_and_verbose_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", FLOAT, "--quiet"]) == ExitCode.GOOD
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert ended(["check", FLOAT, "--verbose"]) == ExitCode.GOOD
    assert capsys.readouterr().out.count(", level 27, ") == 9
    assert set(FIGURES) == {"host", "refused", "level", "partitions"}
