"""What boxes are read and written as."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert.runtime.boxes import descending, reader, writer
from nnx_convert.types import F16, F32, Q8, Q8S, Q16A, Q16S, Quant, Tensor

#: A tensor, and real values with what holds them: halves go away from zero, what is beyond the ends stays there.
WRITTEN: dict[str, tuple[Tensor, dict[float, float]]] = {
    "float32": (Tensor(F32, (1,)), {0.3: np.float32(0.3), np.inf: np.inf}),
    "float16": (Tensor(F16, (1,)), {0.3: np.float16(0.3), 1e6: np.inf}),
    "eighths": (Tensor(Q16A, (1,), Quant(0.125)), {0.0625: 1, 0.1875: 2, 1e9: 65535, -1.0: 0}),
    "no numbers": (Tensor(Q16A, (1,), Quant(0.125)), {np.inf: 65535, -np.inf: 0, np.nan: 0}),
    "signed eighths": (Tensor(Q16S, (1,), Quant(0.125)), {-0.0625: -1, 0.3125: 3, -1e9: -32768, 1e9: 32767}),
    "bytes": (Tensor(Q8, (1,), Quant(0.5, 128)), {0.25: 129, -0.25: 128, -0.26: 127, 99.0: 255, -99.0: 0}),
    "signed bytes": (Tensor(Q8S, (1,), Quant(0.5, 0)), {0.25: 1, -0.25: -1, 99.0: 127, -99.0: -128}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_real_values_as_a_tensor_holds_them(name: str) -> None:
    t, cases = WRITTEN[name]
    with np.errstate(over="ignore"):
        found = writer(t)(np.array(list(cases), np.float32))
    assert found.dtype == t.type.dtype
    assert np.array_equal(found, np.array(list(cases.values()), found.dtype))


@pytest.mark.parametrize("name", [n for n, (t, _) in WRITTEN.items() if t.quant])
def test_what_is_read_is_written_again(name: str) -> None:
    t, _ = WRITTEN[name]
    every = np.arange(np.iinfo(t.type.dtype).min, np.iinfo(t.type.dtype).max + 1).astype(t.type.dtype)
    assert np.array_equal(writer(t)(reader(t)(every)), every)


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_equals_stay_in_order(count: int) -> None:
    scores = np.random.default_rng(count).integers(0, 5, count).astype(np.float32)
    assert descending(scores).tolist() == sorted(range(count), key=lambda i: -scores[i])
