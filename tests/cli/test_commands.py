"""What all commands have: help with examples, --json, --quiet and --verbose, completion, hints at what was meant."""
from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from nnx_convert.cli.commands import commands
from nnx_convert.cli.completing import VARIABLE
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

MODEL = str(Path(__file__).parents[2] / "models" / "digits_cnn.tflite")


@pytest.mark.parametrize("name", commands.commands)
def test_help_has_an_example_and_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([name, "--help"]) == ExitCode.GOOD
    text = capsys.readouterr().out
    assert f"  nnx-convert {name}" in text or name == "convert" and "  nnx-convert model.tflite" in text
    assert all(code.meaning in " ".join(text.split()) for code in ExitCode) or name == "completion"
    assert max(map(len, text.splitlines())) <= 100


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["--help"]) == ExitCode.GOOD
    text = capsys.readouterr().out
    assert all((f"\n  {name}" in text) is not c.hidden for name, c in commands.commands.items())


@pytest.mark.parametrize("name", [n for n in commands.commands if n != "completion"])
def test_every_command_takes_the_options_of_what_is_said(name: str) -> None:
    options = {o for p in commands.commands[name].params if isinstance(p, click.Option) for o in p.opts}
    assert options >= {"--json", "--quiet", "--verbose"}


#: Each command, by the head of the page that tells of what it prints.
PRINTED = {
    "MODEL": ["{model}", "-o", "{to}/m.nnx", "--trace-passes", "--target", "27", "--emit", "json:{to}/m.json"],
    "check MODEL": ["check", "{model}", "--target", "27", "--all-targets", "--fail-on", "level>31", "--trace-passes"],
    "inspect FILE": ["inspect", "{sparse}"],
    "diff BEFORE AFTER": ["diff", "{model}", "{sparse}", "--fail-on", "macs+900%"],
    "ops [NAME]": ["ops", "CONV_2D"],
    "run FILE": ["run", "{model}", "--random", "1", "--expect", "{golden}", "--output", "{to}/o.npz", "--tap", "conv1"],
    "bench FILE": ["bench", "{model}", "--backend", "numpy", "--runs", "1", "--per-op"],
    "ci FILE": ["ci", "{ci}", "--junit", "{to}/o.xml"],
    "record-lib DIR, nnx-convert record-run FOLDER": ["record-lib", "{to}/recorder"],
    "verify MODEL": ["verify", "{model}", "--against", "{model}", "--per-op", "--junit", "{to}/o.xml"]}
#: An entry of `ci` that asks for all there is, but for times.
ENTRY = """[models.digits]
path = 'MODEL'
fail_on = ['host']
verify = { against = 'golden.npz', random = 1 }
budgets = { size = '1 MB', macs = '1 M' }
diff = { baseline = 'MODEL', fail_on = ['ops'] }
"""
#: Of these, keys that are names: of operations, of tensors, of what was measured.
NAMED = {"operations", "base", "EX", "DENSIFY", "host", "sizes", "entries", "figures", "metadata", "types", "target"}


def keys(value: object) -> set[str]:
    """The keys of an object, and of all that is in it, but for what is told by names."""
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value) | set().union(*(keys(v) for k, v in value.items() if not (k in NAMED and isinstance(v, dict))))


@pytest.mark.parametrize("head", PRINTED)
def test_json_is_one_object_all_of_whose_keys_are_documented(head: str, tmp_path: Path,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    golden, ci = tmp_path / "golden.npz", tmp_path / "nnx.toml"
    assert ended(["run", MODEL, "--random", "1", "--output", str(golden), "--quiet"]) == ExitCode.GOOD
    ci.write_text(ENTRY.replace("MODEL", MODEL))
    capsys.readouterr()
    places = {"model": MODEL, "sparse": MODEL.replace("cnn", "sparse"), "to": tmp_path, "golden": golden, "ci": ci}
    assert ended([a.format(**places) for a in PRINTED[head]] + ["--json"]) == ExitCode.GOOD
    out, err = capsys.readouterr()
    found = json.loads(out)
    page = (Path(MODEL).parents[1] / "docs" / "report.md").read_text()
    own = page.partition(f"## nnx-convert {head}\n")[2].partition("\n## ")[0]
    assert not err and isinstance(found, dict)
    assert set(found) <= set(re.findall(r"`(\w+)`", own)), "each key where its command is told of"
    assert keys(found) <= set(re.findall(r"`(\w+)`", page)) | set(re.findall(r'"(\w+)"', page))


def test_every_command_that_prints_an_object_is_there() -> None:
    told = {words[0] for words in PRINTED.values()} - {"{model}"} | {"convert", "record-run"}
    assert told == {name for name, c in commands.commands.items() if "report" in {p.name for p in c.params}}


@pytest.mark.parametrize(("args", "hint"), [
    (["chek", "model.tflite"], None), (["rnu", "model.tflite"], None), (["benc"], "did you mean bench?"),
    (["recrd-lib", "x"], "did you mean record-lib?"),
    (["run", MODEL, "--randm", "1"], "--random"), ([MODEL, "--tagret", "29"], "--target"),
    (["inspect", MODEL, "--tensor"], "see nnx-convert inspect --help"), (["check"], "see nnx-convert check --help"),
    ([MODEL, "--targt", "29"], "(see nnx-convert --help)"), (["run", MODEL, "--random", "1", "--tap", "conv"], "conv1"),
    (["ops", "CONV2"], "did you mean CONV_2D"), ([MODEL, "--shape", "imge=1,8,8,1"], "did you mean image?")])
def test_what_was_meant(args: list[str], hint: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(args) != ExitCode.GOOD
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and (hint is None or hint in err)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["completion", shell]) == ExitCode.GOOD
    assert VARIABLE in capsys.readouterr().out


def test_a_shell_that_is_not_known(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert ended(["completion"]) == ExitCode.USAGE
    assert "tcsh" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "offered"), [
    ("nnx-convert be", "bench"), ("nnx-convert --tar", "--target"), ("nnx-convert m.tflite --target f", "fl6"),
    ("nnx-convert bench --per", "--per-op"), ("nnx-convert ru", "run")])
def test_completion(words: str, offered: str) -> None:
    """What bash is answered by the entry point, asked as click's lines for it do."""
    asked = os.environ | {VARIABLE: "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    program = "import sys; sys.argv[0] = 'nnx-convert'; from nnx_convert.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=False)
    assert offered in [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("options", "said"), [([], True), (["--quiet"], False)])
def test_what_takes_longer_than_a_second_says_so_on_a_terminal(options: list[str], said: bool) -> None:
    """`bench` pauses between turns, so that so many runs take two seconds."""
    ours, theirs = pty.openpty()
    words = ["bench", MODEL, "--backend", "numpy", "--runs", "200", "--json", *options]
    done = subprocess.run([sys.executable, "-m", "nnx_convert", *words], stdout=subprocess.PIPE, stderr=theirs,
                          env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}, check=True)
    os.write(theirs, b"end")
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert ("running ..." in shown) == said and json.loads(done.stdout)["runs"] == 200


def test_verbose_says_the_stages_and_quiet_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = ["-o", str(tmp_path / "m.nnx")]
    assert ended([MODEL, *to, "--verbose"]) == ExitCode.GOOD
    assert "lowering: " in capsys.readouterr().err
    assert ended([MODEL, *to, "--quiet"]) == ExitCode.GOOD
    assert capsys.readouterr() == ("", "")
