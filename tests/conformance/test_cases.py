"""Tiny models made from public bug reports: the right answer, a plain refusal, or an answer that is documented."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from shared import SHARED

from nnx_convert import CompiledModel, NnxError, convert

FOLDER = SHARED and SHARED / "cases"
INDEX: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text()) if FOLDER else []
CASES = {e["name"]: e for e in INDEX if e["file"].endswith(".tflite")}
#: What we answer where the source format leaves it open or its runtime refuses; docs/decisions/whose-numbers.md.
DOCUMENTED = {"t_topk_nan": "a NaN comes after every number",
              "t_logistic_i8_badscale": "one rounding onto the file's own grid"}


def outputs(name: str) -> list[np.ndarray[Any, Any]]:
    """What a case gives on its recorded inputs, or on zeros."""
    assert FOLDER is not None
    model = CompiledModel(convert(FOLDER / CASES[name]["file"]))
    recorded = FOLDER / f"{name}.npz"
    if not recorded.exists():
        return model.run([np.zeros(s.shape or (), s.dtype) for s in model.inputs])
    with np.load(recorded) as npz:
        return model.run([npz[f"in_{i}"] for i in range(len(model.inputs))])


@pytest.mark.parametrize("name", [n for n, e in CASES.items() if e["expect"] == "values"])
def test_a_reported_model_gives_the_right_values(name: str) -> None:
    assert FOLDER is not None
    with np.load(FOLDER / f"{name}.npz") as npz:
        want = [npz[k] for k in sorted(npz.files) if k.startswith("out_")]
    found = outputs(name)
    assert want and len(found) == len(want)
    for got, right in zip(found, want, strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        if right.dtype.kind == "f":
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)
        else:
            assert np.array_equal(got, right)


@pytest.mark.parametrize("name", [n for n, e in CASES.items() if e["expect"] == "error"])
def test_a_reported_fault_is_refused(name: str) -> None:
    with pytest.raises(NnxError):
        outputs(name)


@pytest.mark.parametrize("name", [n for n, e in CASES.items() if e["expect"] == "documented"])
def test_what_is_left_open_is_answered_and_documented(name: str) -> None:
    assert DOCUMENTED[name] and outputs(name)
