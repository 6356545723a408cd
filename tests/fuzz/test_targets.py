"""Mutants of every seed, and all that fuzzing found: each gives a result or an `NnxError`, in time, twice the same."""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import recipes, seeds
from fuzz.edits import flat, mutated
from fuzz.faults import fault
from fuzz.targets import TARGETS, apart

FOUND = [json.loads(line) for line in Path(__file__).with_name("found.jsonl").read_text().splitlines()]
#: Mutants of a target, each of another seed; those of a run are compiled.
MUTANTS = {"tflite": 300, "onnx": 200, "nnx": 300, "run": 25}


@pytest.mark.parametrize("target", TARGETS)
def test_a_changed_model_does_no_harm(target: str) -> None:
    r = random.Random(target)
    models = [d for f in TARGETS[target].formats for d in seeds.seeds(f, foreign=False).values()]
    for _ in range(MUTANTS[target]):
        data = mutated(r.choice(models), r)
        found = fault(TARGETS[target], data)
        assert found is None, f"{found}\n{json.dumps(recipes.written(target, data))}"


@pytest.mark.parametrize("recipe", FOUND, ids=lambda r: f"{r['target']}-{r['why']}".replace(" ", "-"))
def test_what_was_found_does_no_harm_any_more(recipe: recipes.Recipe) -> None:
    data = recipes.made(recipe)
    assert data is not None or recipes.foreign(recipe["base"])
    assert data is None or fault(TARGETS[recipe["target"]], data) is None


def test_a_recipe_makes_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    base = seeds.seeds("onnx", foreign=False)["conv"]
    data = mutated(base, random.Random(3))
    monkeypatch.setattr(seeds, "suite", dict)    # it takes some seconds
    assert recipes.made(recipes.written("onnx", data)) == data
    monkeypatch.setattr(recipes, "foreign", lambda name: True)
    found = recipes.written("onnx", data)
    assert recipes.made(found) == data and found["base"] == "onnx:conv"
    assert recipes.made(found | {"check": 0}) is None


@pytest.mark.parametrize("name", ["tflite", "onnx", "nnx"])
def test_edits_are_made_again_and_change_the_file(name: str) -> None:
    models = list(seeds.seeds(name, foreign=False).values())
    pairs = [(models[i], mutated(models[i], random.Random(i))) for i in range(0, len(models), 20)]
    assert [m for _, m in pairs] == [mutated(d, random.Random(i)) for i, (d, _) in zip(
        range(0, len(models), 20), pairs, strict=True)]
    assert sum(a != b for a, b in pairs) > len(pairs) * 0.9


def test_a_tree_says_all_that_a_file_says() -> None:
    for name, data in seeds.seeds("tflite", foreign=False).items():
        root = flat.tree(data)
        assert root is not None, name
        again = flat.packed(root)[0]
        assert flat.tree(again) == root and flat.packed(flat.tree(again) or root)[0] == again, name


ONE = np.ones(3, np.float32)


@pytest.mark.parametrize(("got", "want", "same"), [
    (ONE, ONE, True), (ONE, ONE * np.float32(1 + 1e-6), True), (ONE, ONE * np.float32(1.001), False),
    (ONE.astype(np.int8), ONE.astype(np.int8) * 2, False), (ONE, ONE[:2], False), (ONE, ONE.astype(np.float64), False),
    (ONE * np.nan, ONE, False)])
def test_answers_that_differ_are_seen(got: Any, want: Any, same: bool) -> None:
    assert (apart(got, want) == "") == same
