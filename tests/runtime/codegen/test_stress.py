"""Native code made, run and dropped again and again, run by many threads, amid forks: nothing leaks, all are right."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from full import FULL

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_goes_wrong_again_and_again() -> None:
    words, env = ([], {}) if FULL else (["--cycles", "32", "--seconds", "2"], {"NNX_SHARED": os.devnull})
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "benchmarks.stress", *words], cwd=ROOT,
                          env=os.environ | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("pass") == 2, done.stdout + done.stderr
