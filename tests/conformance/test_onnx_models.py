"""ONNX models give their recorded outputs: floats closely, quantised ones within a step in few elements."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import apart, cases, exported, given, recording, stepped, units, zoo
from zoo import steps

from nnx_convert import CompiledModel, NnxError, convert

#: |got - want| <= TOLERANCE * (1 + |want|).
TOLERANCE = 1e-4
#: Of a quantised output, this share may be off, by one step.
SHARE = 1e-3
#: Floats that are steps: ONNX Runtime's own two recordings of the model are as far apart, in 5 of 30 elements.
SPREAD = {"micro_kws_qdq_int8": 2 / 255}
CASES = {e["name"]: e for e in cases()}
#: What we answer where ONNX leaves it open; docs/decisions/whose-numbers.md.
DOCUMENTED = {"cast_f_u8_over": "the integer modulo 256", "onehot_floatidx": "the indices are truncated"}


def close(got: Any, want: Any, quantised: bool, spread: float = 0.0) -> bool:
    """Whether an output is the recorded one; `spread` is how far another recording of it is."""
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return False
    if want.dtype.kind in "iu" and quantised:
        count, most = steps(got, want)
        return most <= 1 and count <= SHARE * want.size
    return apart(got, want) <= (TOLERANCE + spread if want.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", [*zoo(), *exported(), *units(), *(n for n, e in CASES.items()
                                                                    if e["expect"] == "values")])
def test_a_model_gives_its_recorded_outputs(name: str) -> None:
    found = recording(name)
    model, quantised = CompiledModel(convert(found.path)), stepped(found.path)
    assert found.runs and all(r.outputs for r in found.runs)
    for run in found.runs:
        got = model.run(given(model.inputs, run.inputs))
        for i, want in run.outputs.items():
            assert close(got[i], want, quantised, SPREAD.get(name, 0.0)), (i, apart(got[i], want))


@pytest.mark.parametrize("name", [n for n, e in CASES.items() if e["expect"] == "error"])
def test_a_reported_fault_is_refused(name: str) -> None:
    with pytest.raises(NnxError):
        _run(name, 99)


@pytest.mark.parametrize("name", [n for n, e in CASES.items() if e["expect"] == "documented"])
def test_what_is_left_open_is_answered_and_documented(name: str) -> None:
    assert DOCUMENTED[name] and _run(name)


def _run(name: str, fill: int = 1) -> list[Any]:
    model = CompiledModel(convert(recording(name).path))
    return model.run([np.full([n or 1 for n in s.shape or ()], fill, s.dtype) for s in model.inputs])
