"""LiteRT's and TFLite-Micro's own small models give their recorded outputs, or stand below with the reason."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import SOURCES
from shared import SHARED
from zoo import excess, steps

from nnx_convert import CompiledModel, NnxError, convert

Array = np.ndarray[Any, Any]
SUITES = ("litert_unit", "tflm_unit")
#: |got - want| <= TOLERANCE * (1 + |want|).
TOLERANCE = 1e-4
#: How many models have recorded outputs, per suite.
RECORDED = {"litert_unit": 81, "tflm_unit": 86}
#: What does not pass: the model, and words of the error that says why.
#: (The three of einsum: LiteRT takes a matrix with scales per channel for one without a scale and gives zeros.)
EXCEPTIONS = {
    **{f"static_w8_a16_quantized_{n}_einsum": "elements are off" for n in ("attn_vec", "k", "v")},
    "2_subgraphs": "no outputs", "2_subgraphs_dont_delegate_name": "no outputs",
    "add_quantized_int8": "the file says TENSOR_FLOAT32"}


@dataclass(frozen=True)
class Unit:
    """A model with where its recording is."""

    name: str
    path: Path
    golden: Path


def units(suite: str) -> list[Unit]:
    """The models of a suite that have a recording."""
    folder = SHARED / "zoo" / suite if SHARED else None
    if folder is None or not folder.is_dir():
        return []
    entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    found = ((e["name"], folder / (e.get("golden") or "none")) for e in entries)
    return [Unit(n, folder / "models" / f"{n}.tflite", g) for n, g in found if g.is_file()]


UNITS = [u for suite in SUITES for u in units(suite)]
IDS = [u.name for u in UNITS]


def fault(unit: Unit) -> str:
    """What is wrong with one model's outputs, or the error it ends with; "" where nothing is."""
    with np.load(unit.golden, allow_pickle=False) as npz:
        inputs = [npz[f"in{i}"] for i in range(len(npz.files)) if f"in{i}" in npz.files]
        keys = {i: next((k for s in SOURCES if (k := s.format(f"out{i}")) in npz.files), "")
                for i in range(len(npz.files))}
        wanted: dict[int, Array] = {i: npz[k] for i, k in keys.items() if k}
    try:
        found = CompiledModel(convert(unit.path)).run(inputs)
    except NnxError as error:
        return str(error)
    assert wanted
    return next(filter(None, (differences(found[i], want) for i, want in wanted.items())), "")


def differences(got: Array, want: Array) -> str:
    """How an output differs; "" where it does not."""
    if want.dtype.kind == "S":                   # texts, which an archive keeps without pickling
        got = got.astype(want.dtype) if got.dtype == object else got
        return "" if np.array_equal(got, want) else "the texts differ"
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.kind == "f":
        off = excess(got, want)
        return "" if off <= TOLERANCE else f"is off by {off}"
    many, most = steps(got, want)
    return f"{many} elements are off by up to {most}" if many else ""


@pytest.mark.parametrize("unit", UNITS, ids=IDS)
def test_a_unit_gives_its_recorded_outputs_or_the_reason_why_not(unit: Unit) -> None:
    found, expected = fault(unit), EXCEPTIONS.get(unit.name)
    assert found == "" if expected is None else expected in found, found


@pytest.mark.parametrize("suite", SUITES if UNITS else [])
def test_as_many_are_recorded_and_no_exception_is_of_none(suite: str) -> None:
    assert len(units(suite)) == RECORDED[suite]
    assert {*EXCEPTIONS} <= {u.name for u in UNITS}
