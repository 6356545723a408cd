"""Recurrent operators of TFLite on NNAPI's operations: in integers exactly, on floats closely, else with the reason."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from recurrent_cases import FILES

from nnx_convert import CompiledModel, Model, Target, convert
from nnx_convert.convert import evaluate
from nnx_convert.emit.facts import host
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import recurrent
from nnx_convert.types import I32, Q8, Q16S, Quant, Rim, Tensor

Array = np.ndarray[Any, Any]
#: The largest difference over the largest output: what rounding activations to int8 makes.
ROUNDED = 0.02
#: What NNAPI has no exact way for, by the seeds that have it.
BEYOND = {"int8 LSTM cifg peephole projection norm": (0, 2, 4), "int8 SVDF": range(6),
          "uint8 LSTM of one matrix": range(6)}
UNIT = Quant(1 / 128, 128)
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


def test_an_lstm_of_one_matrix_is_nnapi_s_but_for_ties() -> None:
    x, h, c, w = (Tensor(t, s, q) for t, s, q in (
        (Q8, (2, 5), UNIT), (Q8, (2, 4), UNIT), (Q16S, (2, 4), Quant(2.0**-11)), (Q8, (16, 9), Quant(0.004, 120))))
    r, b = np.random.default_rng(0), Quant(0.004 / 128)
    ins = [Value(n, t) for n, t in (("x", x), ("h", h), ("c", c))]
    build = Build()
    weights = Value("w", replace(w, data=r.integers(0, 256, (16, 9)).astype(np.uint8)))
    bias = Value("b", Tensor(I32, (16,), b, r.integers(-900, 900, 16).astype(np.int32)))
    h_out, c_out, sums = build.add(recurrent.BASIC_LSTM, ins[0], weights, bias, *ins[1:],
                                   outs=(None, None, Tensor(Q16S, None, Quant(2.0**-12))))
    for outputs, on in (((h_out, c_out), "QUANTIZED_16BIT_LSTM"), ((h_out, c_out, sums), "BASIC_LSTM")):
        graph = build.finish(tuple(ins), outputs, Rim())
        assert [n.op.name for n in lower(graph, Target(hybrid="float"), evaluate)[0].nodes] == [on]
        assert [n.op.name for n in lower(graph, Target(), evaluate)[0].nodes] == ["BASIC_LSTM"]
    models = [flatten(lower(build.finish(tuple(ins), (h_out, c_out), Rim()), t, evaluate)[0], ())
              for t in (Target(), Target(hybrid="float"))]
    values = [r.integers(0, 256, (2, n)).astype(np.uint8) for n in (5, 4)] + [
        r.integers(-32768, 32768, (2, 4)).astype(np.int16)]
    (h1, c1), (h2, c2) = (CompiledModel(m).run(values) for m in models)
    assert np.abs(h1.astype(int) - h2).max() <= 1 and np.abs(c1.astype(int) - c2).max() <= 32


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
