"""The benchmarks run on the package's own models, whether or not LiteRT and the external suite are there."""
from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import report, suite
from benchmarks.rows import Row, merged, verdicts

ROOT = Path(__file__).resolve().parent.parent
QUICK = {"latency": ["digits_cnn", "digits_cnn_int8", "--runs", "2", "--threads", "1"], "memory": ["digits_cnn"],
         "startup": ["digits_cnn", "--runs", "1"], "sparse": ["digits_cnn", "--runs", "2", "--threads", "1"]}


def run(name: str, *words: str, shared: str = os.devnull) -> subprocess.CompletedProcess[str]:
    """A benchmark as a user starts it, without the external suite, with OpenBLAS held back."""
    env = os.environ | {"NNX_SHARED": shared, "OPENBLAS_CORETYPE": "Haswell"}
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


@pytest.mark.parametrize("name", ["latency", "memory", "sparse"])
def test_a_name_that_is_none_is_a_usage_error(name: str) -> None:
    done = run(name, "no_such_model")
    assert done.returncode == 2 and "no_such_model" in done.stderr and "Traceback" not in done.stderr


def test_a_model_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "zoo" / "broken").mkdir(parents=True)
    for name in ("model.tflite", "golden.npz"):
        (tmp_path / "zoo" / "broken" / name).write_bytes(b"none")
    done = run("startup", "broken", "--runs", "1", shared=str(tmp_path))
    assert done.returncode == 0 and not done.stderr and "neither a TFLite nor an ONNX model" in done.stdout


def row(model: str, kind: str, threads: int = 1, **micro: float) -> Row:
    """A row of times in microseconds."""
    times = {engine: 1e-6 * us for engine, us in micro.items()}
    return Row(model, threads, kind, times, dict(times))


ROWS = [row("a", "float", ours=50, litert=100, openvino=80), row("b", "float", ours=200, onnxruntime=100),
        row("c", "int8", ours=30, fast=25, litert=100, openvino=40), row("d", "float", ours=12, litert=4),
        row("e", "float", 2, ours=900, litert=1000), Row("f", 1, problems={"ours": "does not"})]


def test_what_the_table_comes_to() -> None:
    found = {v.what.split(",")[0]: v for v in verdicts(ROWS, 1)}
    values = [None if v.value is None else round(v.value, 6) for v in found.values()]
    assert values == [1.0, round((50 / 80 * 2) ** 0.5, 6), 0.3, 0.75, 1.2, 2.0, 8.0]
    assert [v.kept for v in found.values()] == [False, False, True, False, True, False, True]
    assert "b" in list(found)[5] and "d" in list(found)[6]
    assert [v.kept for v in verdicts([], 1)] == [True] * 7


def test_a_page_has_every_row() -> None:
    text = report.page(ROWS, 30, (1, 2))
    assert text.count("## ") == 2 and "| f |  | does not run: does not |" in text
    assert "| a | float | 0.050 | - | 0.100 | 0.080 | 0.50 | 0.50 | 0.62 |  |" in text
    assert "| c | int8 | 0.030 | 0.025 | 0.100 |" in text and "exact / fast rounding, 1 models | 1.20 | - |" in text
    assert "| d | float | 0.012 | - | 0.004 | - | 3.00 | 3.00 | - | +8.0 |" in text
    assert {len(t.split("|")) for t in text.splitlines() if t.startswith(("| a |", "| f |", "| Model"))} == {12}


def test_an_engine_timed_alone_is_put_beside() -> None:
    both = merged(row("a", "float", ours=10, litert=30), row("a", "float", ours=20, openvino=50))
    assert both.median == pytest.approx({"ours": 10e-6, "litert": 30e-6, "openvino": 25e-6})


@pytest.mark.parametrize(("value", "bound", "said"), [(1.0, None, ""), (1.0, 2.0, "pass (bound 2)"),
                                                       (3.0, 2.0, "FAIL (bound 2)")])
def test_verdicts(value: float, bound: float | None, said: str) -> None:
    assert suite.verdict(value, bound) == said
