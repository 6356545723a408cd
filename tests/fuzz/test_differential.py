"""Random models: the two backends agree on them, and with the reference runtime of their format where it is there."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.differential import __main__ as command, judging, pool
from fuzz.differential.engines import Model, Tensors, installed
from fuzz.differential.models import MODELS, model
from fuzz.differential.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
#: Models of each format.
COUNT = 24
#: Seeds whose models were given otherwise once, by format: each is a fault that was mended, or a rule.
ONCE = {"tflite": (36, 60, 97, 100478, 100719), "onnx": (1053, 1611, 100083, 100191, 100256, 100314)}


@pytest.mark.parametrize("form", MODELS)
def test_the_backends_agree_and_with_the_reference_where_it_is_there(form: str) -> None:
    for seed in (*range(COUNT), *ONCE[form]):
        found = judging.judge(model(form, seed), installed(form), native=seed < COUNT)
        assert found.kind not in command.BAD, (seed, found)


@pytest.mark.parametrize("form", MODELS)
def test_a_seed_is_a_recipe(form: str) -> None:
    first, again = model(form, 3), model(form, 3)
    assert first.data == again.data and first.data != model(form, 4).data
    assert {n: a.tobytes() for n, a in first.given.items()} == {n: a.tobytes() for n, a in again.given.items()}


def wrong(operator: str, change: Any) -> Any:
    """This package's runs, with one operator that gives something else natively."""
    def run(each: Model, backend: str, *target: Any) -> Tensors:
        found = original(each, backend, *target)
        if backend != "native" or operator not in each.operators:
            return found
        own = next(p for p in each.parts() if p.operators[-1] == operator).outputs
        return {n: change(a) if n in own or len(each.operators) > 1 else a for n, a in found.items()}
    original = judging.ours
    return run


@pytest.mark.parametrize("change", [lambda a: a + a.dtype.type(1), lambda a: a * a.dtype.type(1.001) if
                                    a.dtype.kind == "f" else ~a, lambda a: np.concatenate([a, a])])
def test_the_operator_that_is_wrong_is_found(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(s for s in range(200) if "Conv" in (ops := model("onnx", s).operators) and len(ops) > 3)
    monkeypatch.setattr(judging, "ours", wrong("Conv", change))
    found = judging.judge(model("onnx", seed), with_peer=False)
    assert (found.kind, found.about, found.operator) == ("different", "native", "Conv")


def test_what_a_runtime_does_with_noise_does_not_excuse_it() -> None:
    """Each is compared with itself."""
    part = next(p for s in range(200) for p in model("onnx", s).parts() if p.operators == ("Floor",))
    fed = part.fed({n: np.float32([0.5, 1.5, 2 - 1e-7]) for n in part.inputs})
    name = part.outputs[0]

    def down(m: Model) -> Tensors:
        return {name: np.floor(m.given[m.inputs[0]])}

    def up(m: Model) -> Tensors:
        return {name: np.floor(m.given[m.inputs[0]]) + 1}
    low, high = down(fed)[name], up(fed)[name]
    assert not judging.moved(fed, up, down, name, high, low)
    edge = low.copy()
    edge[2] = 2
    assert judging.moved(fed, down, down, name, edge, low)


def test_a_model_that_cannot_be_made_or_ends_its_process_is_told() -> None:
    task = pool.Task("tflite", -1)
    assert pool.judged(task).finding.kind == "fault"
    worker = pool.Worker()
    worker.begin(pool.Task("tflite", 0, with_peer=False))
    worker.process.kill()
    worker.process.join()
    found = worker.ended()
    worker.close()
    assert found is not None and (found.finding.kind, found.finding.about) == ("fault", "died")
    assert pool.gone("peer", "died", "").kind == "peer" and pool.gone("ours", "late", "").kind == "fault"


def test_the_command_counts_and_keeps_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "found.jsonl"
    kept.write_text(json.dumps({"format": "onnx", "seed": 5}) + "\n")
    quiet = ["--no-peer", "--native", "0", "--workers", "1"]
    assert command.main(["--again", str(kept), *quiet]) == 0
    assert "1 models (0 native): 1 equal" in capsys.readouterr().out
    monkeypatch.setattr(command, "judging", lambda tasks, _: [pool.Judged(t, ("X",), judging.Finding(
        "different", "peer", "X", "1 of 2")) for t in tasks])
    assert command.main(["--count", "2", "--recipes", str(kept), *quiet]) == 1
    assert [json.loads(line)["seed"] for line in kept.read_text().splitlines()] == [5, 0, 1]


@pytest.mark.parametrize("form", MODELS)
def test_without_its_runtime_the_command_says_so(form: str, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "installed", lambda _: False)
    assert command.main(["--format", form]) == 2
    assert "--no-peer" in capsys.readouterr().err


def test_every_rule_is_told() -> None:
    page, more = ROOT / "docs" / "reliability.md", "decisions/whose-numbers.md"
    rows = page.read_text().splitlines()
    for rule in RULES:
        operators = ", ".join([*rule.operators[:4], *["..."] * (len(rule.operators) > 4)]) or "(all)"
        form = {"tflite": "TFLite", "onnx": "ONNX"}[rule.form]
        assert f"| {rule.name} | {form} {operators} | {rule.reason} |" in rows
    assert f"({more})" in page.read_text() and (page.parent / more).exists()
