"""The benchmarks run on the package's own models, whether or not LiteRT and the external suite are there."""
from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import suite

ROOT = Path(__file__).resolve().parent.parent
QUICK = {"latency": ["digits_cnn", "digits_cnn_int8", "--runs", "2", "--threads", "1"], "memory": ["digits_cnn"],
         "startup": ["--runs", "1"]}


def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A benchmark as a user starts it, without the external suite, with OpenBLAS held back."""
    env = os.environ | {"NNX_SHARED": os.devnull, "OPENBLAS_CORETYPE": "Haswell"}
    return subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *words], cwd=ROOT, env=env, capture_output=True,
                          text=True, check=False)


@pytest.mark.parametrize("name", QUICK)
def test_runs_and_says_what_is_absent(name: str) -> None:
    done = run(name, *QUICK[name])
    assert done.returncode in (0, 1), done.stderr              # 1: this machine is too busy for a bound
    assert "external models: absent" in done.stdout and "digits_cnn" in done.stdout
    if name == "latency":
        assert ("ai-edge-litert is not installed" in done.stdout) == (find_spec("ai_edge_litert") is None)


def test_the_latency_of_native_code() -> None:
    done = run("latency", "digits_cnn", "--runs", "2", "--threads", "1", "--backend", "native")
    assert done.returncode in (0, 1) and "digits_cnn" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["latency", "memory"])
def test_a_name_that_is_none_is_a_usage_error(name: str) -> None:
    done = run(name, "no_such_model")
    assert done.returncode == 2 and "no_such_model" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(("value", "bound", "said"), [(1.0, None, ""), (1.0, 2.0, "pass (bound 2)"),
                                                       (3.0, 2.0, "FAIL (bound 2)")])
def test_verdicts(value: float, bound: float | None, said: str) -> None:
    assert suite.verdict(value, bound) == said
