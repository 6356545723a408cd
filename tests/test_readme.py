"""The README's two commands do what they say; what else it has is run with the other pages."""
from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = {b.mark: b.text.strip() for b in pages.blocks(README) if b.mark in pages.TESTED}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder that looks like the checkout, to write into."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    return tmp_path


def run(command: list[str], cwd: Path) -> str:
    """What a command says; it must end well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_has_the_two_commands() -> None:
    assert tuple(COMMANDS) == pages.TESTED


def test_the_first_command_installs_and_runs_a_model(here: Path) -> None:
    venv, install, *work = COMMANDS["the first command"].split(" && ")
    assert venv == "python3 -m venv .venv"
    assert install == ".venv/bin/pip install '.[test]'"
    said = [run([part.replace(".venv/bin/", "") for part in shlex.split(command)], here) for command in work]
    assert "wrote" in said[0]
    assert "out" in said[1]


def test_the_test_command_collects_the_tests() -> None:
    interpreter, *args = shlex.split(COMMANDS["the test command"])
    assert (interpreter, args[:2]) == (".venv/bin/python", ["-m", "pytest"])
    said = run([sys.executable, *args, "--collect-only", "-q", "tests/test_readme.py"], ROOT)
    assert "test_readme.py" in said


def test_ci_runs_the_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    sed = re.search(r"\$\((sed .*)\)$", script.read_text(encoding="utf-8"), re.M)
    assert sed is not None
    assert run(["bash", "-c", sed.group(1)], ROOT).strip() == COMMANDS["the test command"]


def test_it_is_short() -> None:
    assert README.count("\n") <= 100
