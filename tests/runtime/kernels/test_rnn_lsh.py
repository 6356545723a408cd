"""LSH_PROJECTION: bits by the fingerprints' definition, element types, and how the bits are packed."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.ops import rnn
from nnx_convert.runtime.farmhash import fingerprint64
from nnx_convert.types import F16, F32, I32, Q8, Quant, Tensor

Array = np.ndarray[Any, Any]
OLD, DENSE, SPARSE = 1, 2, 3


def bits(hash: Array, x: Array, weight: Array | None) -> list[list[int]]:
    """The sign bit of each seed, a key at a time."""
    def bit(seed: Any) -> int:
        total = 0.0
        for n, row in enumerate(x):
            key = np.frombuffer(np.float32(seed).tobytes() + row.tobytes(), np.uint8)
            mark = int(fingerprint64(key[None])[0])
            total += float(mark - (mark >> 63 << 64)) * (1.0 if weight is None else float(weight[n]))
        return int(total > 0)
    return [[bit(seed) for seed in row] for row in hash]


def packed(row: list[int]) -> int:
    return int("".join(map(str, row)), 2)


X = [tensor([[1.5, -2.0], [0.0, 3.25], [-0.0, 1e-3]], F32), tensor([[1.5], [-2.0]], F16),
     tensor([-7, 3, 2**31 - 1], I32), tensor(np.arange(2 * 5 * 7).reshape(2, 5, 7), Q8, Quant(1.0, 3)),
     tensor(np.arange(300).reshape(1, 300), I32)]


@pytest.mark.parametrize("x", X, ids=lambda x: f"{x.type.name}{list(x.shape)}")
@pytest.mark.parametrize("code", [F32, F16], ids=lambda c: c.name)
@pytest.mark.parametrize("type", [OLD, DENSE, SPARSE])
def test_a_projection(x: Tensor, code: Any, type: int) -> None:
    rng = np.random.default_rng(1)
    hash, weight = tensor(rng.standard_normal((4, 3)), code), tensor(rng.standard_normal(x.shape[0]), code)
    args = {"hash": hash, "x": x, "weight": weight if type == DENSE else None, "type": type}
    (found,) = run_op(rnn.LSH_PROJECTION, args)
    assert hash.data is not None and x.data is not None
    want = bits(hash.data, x.data, weight.data if type == DENSE else None)
    rows = [packed(row) + (n << 3 if type == SPARSE else 0) for n, row in enumerate(want)]
    assert found.dtype == np.int32
    assert found.tolist() == ([b for row in want for b in row] if type == DENSE else rows)


def test_thirty_two_bits_fill_an_int32() -> None:
    hash = tensor(np.random.default_rng(2).standard_normal((1, 32)), F32)
    (found,) = run_op(rnn.LSH_PROJECTION, {"hash": hash, "x": tensor([5], I32), "weight": None, "type": OLD})
    assert hash.data is not None
    assert int(found[0]) % 2**32 == packed(bits(hash.data, np.array([5], np.int32), None)[0])
