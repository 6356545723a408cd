"""Recurrent operators of TFLite on NNAPI's operations: in integers exactly, on floats closely, else with the reason."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recurrent_cases import FILES

from nnx_convert import CompiledModel, Model, Target, convert
from nnx_convert.emit.facts import host

Array = np.ndarray[Any, Any]
#: The largest difference over the largest output: what rounding activations to int8 makes.
ROUNDED = 0.02
#: What NNAPI has no exact way for, by the seeds that have it.
BEYOND = {"int8 LSTM cifg peephole projection norm": (0, 2, 4), "int8 SVDF": range(6),
          "uint8 LSTM of one matrix": range(6)}          # NNAPI copies no int16: the cell state leaves it twice
LOW = Target(27, ex=False, experimental=False)


def outputs(model: Model, seed: int) -> list[Array]:
    """Those of two runs in a row."""
    compiled, r = CompiledModel(model), np.random.default_rng(seed)
    shape, dtype = compiled.inputs[0].shape or (), compiled.inputs[0].dtype
    found: list[Array] = []
    for _ in range(2):
        values = r.normal(size=shape) if dtype.kind == "f" else r.integers(-128, 128, shape)
        found += compiled.run([values.astype(dtype)])
    return found


def differences(first: Model, second: Model, seed: int) -> float:
    """The largest difference between the outputs of two models, over the largest output."""
    pairs = list(zip(outputs(first, seed), outputs(second, seed), strict=True))
    most = max(float(np.abs(a.astype(np.float64)).max()) for a, _ in pairs)
    return max(float(np.abs(a.astype(np.float64) - b).max()) for a, b in pairs) / most


@pytest.mark.parametrize("name", [n for n in FILES if "hybrid" in n and "SVDF" not in n])
def test_the_float_way_is_nnapi_s_and_close(name: str) -> None:
    for seed in range(4):
        file = FILES[name][0](seed)
        exact, near = convert(file), convert(file, Target(hybrid="float"))
        assert "--hybrid float" in host([exact])[0].reason and not host([near])
        assert differences(exact, near, seed) < ROUNDED


@pytest.mark.parametrize("name", [n for n in FILES if "hybrid" not in n])
def test_what_nnapi_can_say_runs_on_no_host_and_gives_the_same(name: str) -> None:
    for seed in range(6):
        file = FILES[name][0](seed)
        model, low = convert(file), convert(file, LOW)
        assert bool(host([model])) == (seed in BEYOND.get(name, ()))
        assert differences(model, low, seed) <= (0 if name.startswith("int8") else 1e-6)


def test_a_long_sequence_stays_whole() -> None:
    file = FILES["int8 LSTM"][0](0)
    open_ = convert(file, shapes={"t1": (2, 70, 5)})
    assert "steps" in host([open_])[0].reason
