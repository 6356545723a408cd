"""A service for ten seconds; $NNX_FULL=1: for all of its twenty minutes."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from full import FULL

from benchmarks import load, stress

ROOT = Path(__file__).resolve().parent.parent


def test_every_answer_is_right_under_load(tmp_path: Path) -> None:
    words, env = ([], {}) if FULL else (["--minutes", "0.17", "--processes", "2", "--threads", "2"],
                                        {"NNX_SHARED": os.devnull})
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "benchmarks.load", *words, "--json", "told.json"],
                          cwd=tmp_path, env=os.environ | env | {"PYTHONPATH": str(ROOT), "NNX_BACKEND": "auto"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    assert all(one["requests"] and not one["wrong"] for one in told) and len(told) == (4 if FULL else 2)


def served(resident: list[int], slower: float = 1.0, wrong: int = 0) -> load.Served:
    return load.Served(100, wrong, 1, resident, slower)


FLAT = [100 << 20] * load.LOOKS


def test_what_grows_or_is_slower_or_wrong_does_not_pass() -> None:
    growing = [(100 << 20) + n * stress.LEAK // 4 for n in range(load.LOOKS)]
    assert served(FLAT).passed(20) and served(growing).passed(1)
    assert not served(growing).passed(20) and not served(FLAT, 2 * load.SLOWER).passed(20)
    assert not served(FLAT, wrong=1).passed(1) and not load.Served(resident=FLAT).passed(1)


def test_an_answer_is_numpys_or_wrong() -> None:
    a = np.array([1, -2, 1000], np.float32)
    assert load.close(a * np.float32(1 + 1e-7), a) and not load.close(a + np.float32(0.1), a)
    assert not load.close(a.astype(np.int32), (a + 1).astype(np.int32)) and not load.close(a[:1], a)
