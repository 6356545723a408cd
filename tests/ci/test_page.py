"""docs/ci.md: its file runs, its snippets are YAML with commands that there are, its tests pass."""
from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from nnx_convert.ci import plugin, settings
from nnx_convert.cli.commands import commands
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def steps(found: Any) -> list[str]:
    """The lines of a pipeline that a shell runs."""
    if isinstance(found, dict):
        own = [found["run"]] if isinstance(found.get("run"), str) else found.get("script", [])
        return [*own, *(line for v in found.values() for line in steps(v))]
    return [line for v in found for line in steps(v)] if isinstance(found, list) else []


SHELL = [line for text in blocks("bash") for line in text.splitlines()]
PIPELINES = [yaml.safe_load(text) for text in blocks("yaml")]
LINES = [*SHELL, *(line for p in PIPELINES for line in steps(p))]


def test_nothing_of_the_page_is_left_out() -> None:
    assert {kind for kind, _ in BLOCKS} == {"toml", "bash", "yaml", "python"} and len(PIPELINES) == 2
    assert all(any(line.startswith("nnx-convert ci ") for line in steps(p)) for p in PIPELINES)
    assert {line.split()[0] for line in LINES} == {"nnx-convert", "pip"}


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("nnx-convert")])
def test_a_command_is_one_that_there_is(line: str) -> None:
    args = shlex.split(line.partition(" > ")[0])[1:]
    assert callable(commands.main(args, standalone_mode=False)), "its work, which is not done"


def test_what_pip_installs_is_an_extra() -> None:
    import tomllib
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"nnx-convert\[(\w+)\]", PAGE)) <= set(extras)


def test_the_file_does_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nnx.toml").write_text(blocks("toml")[0])
    assert ended(shlex.split(SHELL[0])[1:]) == ExitCode.GOOD
    capsys.readouterr()
    assert ended(["ci", "nnx.toml"]) == ExitCode.GOOD
    assert "2 of 2 entries good" in capsys.readouterr().out


def test_its_table_has_every_key() -> None:
    told = set(re.findall(r"`([\w.]+)`", PAGE.partition("## What an entry says")[2].partition("\n## ")[0]))
    keys = {*settings.ENTRY, *settings.VERIFY, *settings.SIZES, *settings.LATENCY, *settings.TARGET, "baseline"}
    assert keys <= told


def test_its_tests_pass(pytester: pytest.Pytester) -> None:
    (pytester.path / "models").symlink_to(ROOT / "models")
    pytester.makepyfile(blocks("python")[0])
    pytester.runpytest("-p", plugin.__name__, "-p", "no:xdist").assert_outcomes(passed=2)
