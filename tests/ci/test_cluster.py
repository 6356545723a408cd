"""Entries on a Dask cluster: what comes of them is what comes of them here."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from ci_work import by_name
from distributed import LocalCluster

from nnx_convert.ci import cluster
from nnx_convert.ci.settings import Entry
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

MODELS = Path(__file__).parents[2] / "models"
FILE = f"""
[models.float]
path = "{MODELS}/digits_cnn.tflite"
verify = {{ against = "{MODELS}/digits_cnn.onnx", random = 1 }}
budgets = {{ size = "20 kB", macs = "1 M", latency = {{ median = 60 }} }}
[models.int8]
path = "{MODELS}/digits_cnn_int8.tflite"
target = 28
fail_on = "host"
[models.gone]
path = "gone.tflite"
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two processes on this machine."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as found:
        yield found.scheduler_address


def results(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """The exit code, and what --json says but for times."""
    end = ended(["ci", *args, "--json"])
    found = json.loads(capsys.readouterr().out)
    for entry in (found, *found["entries"]):
        del entry["seconds"]
    for step in (s for e in found["entries"] for s in e["steps"] if s["kind"] == "median"):
        step["found"] = step["figures"] = None
    return end, found


def test_the_results_are_those_of_this_machine(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                               ) -> None:
    (tmp_path / "nnx.toml").write_text(FILE)
    here = results(str(tmp_path / "nnx.toml"), capsys=capsys)
    there = results(str(tmp_path / "nnx.toml"), "--dask", address, capsys=capsys)
    assert here == there and here[0] == ExitCode.UNREADABLE
    assert [e["good"] for e in here[1]["entries"]] == [False, False, False]
    assert [s["kind"] for s in here[1]["entries"][0]["steps"]] == ["check", "verify", "size", "macs", "median"]


def test_what_hangs_or_fails_or_crashes_there_is_told(address: str) -> None:
    def fails(entry: Entry) -> Any:
        return by_name(entry) if entry.name != "odd" else 1 / 0
    found = cluster.ran([Entry(n, "m", timeout=1.0 if n == "hang" else 60.0) for n in ("odd", "a", "hang", "crash")],
                        address, work=fails)
    assert [o.good for o in found] == [False, True, False, False]
    assert found[0].steps[0].why == "its worker failed: ZeroDivisionError: division by zero"
    assert found[2].steps[0].why == "took longer than 1 s"
    assert found[3].steps[0].why.startswith("its worker failed: KilledWorker")


def test_no_cluster_is_a_fault_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nnx.toml").write_text(FILE)
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    for address, said in (("tcp://127.0.0.1:1", "no Dask scheduler answers"), ("nonsense://x", "no Dask scheduler")):
        assert ended(["ci", str(tmp_path / "nnx.toml"), "--dask", address]) == ExitCode.FAILED
        out, err = capsys.readouterr()
        assert not out and err.count("\n") == 1 and said in err and address in err
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    assert ended(["ci", str(tmp_path / "nnx.toml"), "--dask", "x"]) == ExitCode.USAGE
    assert "pip install 'nnx-convert[dask]'" in capsys.readouterr().err
