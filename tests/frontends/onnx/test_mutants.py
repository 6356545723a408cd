"""A file changed where its words still make sense gives a result or a fault of ours, whatever it then says."""
from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from mutants import mutant, sources
from onnx import ModelProto

import nnx_convert
from nnx_convert.codes import dtype_of
from nnx_convert.errors import NnxError
from nnx_convert.types import Port

#: Seeds a test, and seconds that one of them may take.
EACH, SECONDS = 40, 20


@contextmanager
def timely() -> Iterator[None]:
    """Raise `TimeoutError` in what does not end."""
    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def some(port: Port, seed: int) -> Any:
    """An input that fits a port; small integers, so that indices are sometimes right."""
    shape = [2 if n is None else n for n in port.shape or ()]
    if port.dtype == "object" or "(" in port.dtype or np.prod(shape, dtype=float) > 1e6:
        return None
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype_of(port.dtype))


def outcome(proto: ModelProto, seed: int) -> str:
    """How far a model gets; any exception that is none of ours is a failure."""
    stage = "converted"
    try:
        with timely(), np.errstate(all="ignore"):
            model = nnx_convert.convert(proto.SerializeToString())
            compiled, stage = nnx_convert.compile(model), "run"
            inputs = {p.name: some(p, seed) for p in model.rim.inputs}
            if any(v is None for v in inputs.values()):
                return "strange"
            compiled.run(inputs)
            return "well"
    except NnxError as error:
        assert error.text and str(error).startswith(error.id)
        return f"not {stage}"


@pytest.mark.parametrize("name", sources())
def test_the_models_are_in_order(name: str) -> None:
    assert outcome(sources()[name], 0) == "well"


@pytest.mark.parametrize("start", range(0, 400, EACH))
def test_a_changed_model_does_no_harm(start: int) -> None:
    for seed in range(start, start + EACH):
        try:
            outcome(mutant(seed), seed)
        except Exception as error:
            raise AssertionError(f"mutant {seed}") from error


def test_changed_models_get_as_far_as_they_can() -> None:
    seen = {outcome(mutant(seed), seed) for seed in range(60)}
    assert {"well", "not converted"} <= seen
