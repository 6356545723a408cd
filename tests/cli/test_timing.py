"""`nnx-convert bench`: rows for every engine, what is absent is said, the same as JSON."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnx_convert import measuring, peers
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.measuring import Timed, compared, joined
from nnx_convert.peers import PEERS, Peer

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
TFLITE, ONNX = str(MODELS / "digits_cnn.tflite"), str(MODELS / "digits_cnn.onnx")


def bench(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What the command says as JSON."""
    assert ended(["bench", *words, "--runs", "2", "--report", "json"]) == ExitCode.GOOD
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("file", "backends"), [(TFLITE, ()), (ONNX, ("native", "numpy"))])
def test_backends_in_turn(file: str, backends: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    said = bench(capsys, file, "--threads", "1", *(w for b in backends for w in ("--backend", b)))
    assert (said["threads"], said["runs"], said["source"]) == (1, 2, Path(file).name)
    assert [e["engine"] for e in said["engines"]] == list(backends or ("auto",))
    assert said["engines"][0]["ratio"] == said["engines"][0]["ratio_of_least"] == 1
    assert all(0 < e["least"] <= e["median"] and e["ready"] > 0 and not e["problem"] for e in said["engines"])


def double(factor: float) -> Peer:
    """An engine that is there, and gives or raises as it is told."""
    def open(path: str, threads: int, inputs: Sequence[Any]) -> peers.Run:
        if not factor:
            raise RuntimeError("cannot\nread it")
        return lambda: [x * factor for x in inputs]
    return Peer(("tflite",), "json", "no-such-distribution", open)


@pytest.mark.parametrize(("peer", "file", "problem"), [
    (double(2), TFLITE, ""), (double(0), TFLITE, "fails: RuntimeError: cannot"),
    (double(2), ONNX, "reads no .onnx file"),
    (Peer(("tflite",), "no_such_package", "", peers.litert), TFLITE,
     "is not installed: pip install 'nnx-convert[bench]'")])
def test_an_engine_beside_it(peer: Peer, file: str, problem: str, capsys: pytest.CaptureFixture[str],
                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "litert", peer)
    own, other = bench(capsys, file, "--vs", "litert")["engines"]
    assert own["median"] and other["problem"] == problem
    assert (other["ratio"] is None) == bool(problem)
    assert ended(["bench", file, "--vs", "litert", "--runs", "2"]) == ExitCode.GOOD
    assert (problem or "auto takes") in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_per_op(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = bench(capsys, TFLITE, "--backend", backend, "--per-op", "--threads", "1")
    rows = said["per_op"]
    assert sum(r["macs"] for r in rows) == said["macs"] > 0 and {r["engine"] for r in rows} == {backend}
    assert 0 < sum(r["share"] for r in rows) < 1.5 and all(r["seconds"] > 0 and r["bytes"] > 0 for r in rows)
    took = said["engines"][0]["median"]
    assert said["engines"][0]["gflops"] == pytest.approx(2e-9 * said["macs"] / took)
    assert ended(["bench", TFLITE, "--backend", backend, "--per-op", "--runs", "2"]) == ExitCode.GOOD
    shown = capsys.readouterr().out
    assert "CONV_2D" in shown and "GFLOP/s" in shown and "copies of inputs and outputs" in shown


def test_json_in_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["bench", TFLITE, "--runs", "1", "--json"]) == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["per_op"] is None


def test_inputs_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", image=np.zeros((1, 8, 8, 1), np.float32))
    said = bench(capsys, TFLITE, "--inputs", str(tmp_path / "in.npz"))
    assert said["inputs"] == [{"name": "image", "from": f"{tmp_path / 'in.npz'}[image]", "dtype": "float32",
                               "shape": [1, 8, 8, 1]}]


@pytest.mark.parametrize(("words", "code", "says"), [
    ([TFLITE, "--vs", "litert,tensorrt"], ExitCode.USAGE, "no engine tensorrt"),
    ([TFLITE, "--threads", "0"], ExitCode.USAGE, "--threads"), (["missing"], ExitCode.UNREADABLE, "cannot be read"),
    ([TFLITE, "--shape", "picture=1,9,9,1"], ExitCode.USAGE, "picture")])
def test_what_makes_no_sense_is_one_line(words: list[str], code: ExitCode, says: str,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["bench", *words]) == code
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["bench", "--help"]) == ExitCode.GOOD
    assert "nnx-convert bench model.tflite --vs litert" in capsys.readouterr().out


def test_engines_take_turns_and_the_first_is_what_others_are_measured_by() -> None:
    order: list[str] = []
    times = compared([lambda: order.append("a"), lambda: order.append("b")], 7)
    turns = ["aabb", "aaaaaabbbbbb", "aaabbb"]   # warm up, then one that does not count and up to five that do
    assert "".join(order) == "".join(turns) and [len(t) for t in times] == [7, 7]
    found = [measuring.Contender("a", "1", run=lambda: None, ready=1.0), measuring.Contender("b", "", problem="no"),
             measuring.Contender("c", "3", run=lambda: None, ready=2.0)]
    assert list(joined(found, [[1.0, 2.0, 3.0], [4.0, 5.0, 2.0]])) == [
        Timed("a", "1", 1.0, 2.0, 1.0, 1.0, 1.0), Timed("b", "", problem="no"),
        Timed("c", "3", 2.0, 4.0, 2.0, 0.5, 0.5)]
    assert [t.gflops for t in joined(found, [[1.0], [2.0]], 10 ** 9)] == [2.0, None, 1.0]
