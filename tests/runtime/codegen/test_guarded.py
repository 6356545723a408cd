"""Native code touches its arena, the slack behind it and its weights, and nothing else."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from full import FULL
from natively import EVERY

SCRIPT = Path(__file__).with_name("guarded.py")
#: Cases of each family, and of so many of the table's rows one.
EACH, STEP = (8, 1) if FULL else (2, 16)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The script, in a process that may die."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, str(SCRIPT), *words], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("machine", EVERY)
def test_nothing_beyond_is_touched(machine: str) -> None:
    done = run(machine, str(list(EVERY).index(machine)), str(EACH), str(STEP))
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[-1] == "done", (said[-1:], done.stderr)
    assert not [f"{case}: {why}" for case, why in pairwise(said) if why.startswith(" ")]


def test_an_access_beyond_would_be_noticed() -> None:
    done = run("host", "stray")
    assert done.stdout.splitlines() == ["0"] and done.returncode == -signal.SIGSEGV
