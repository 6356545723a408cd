"""The largest of each row and indices as rows, natively: NumPy's to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both, draw

from nnx_convert import OperandCode

INT32, INT64, FLOAT32, FLOAT16 = (OperandCode[f"TENSOR_{n}"] for n in ("INT32", "INT64", "FLOAT32", "FLOAT16"))
BYTES = (OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED)


def largest(rng: np.random.Generator) -> Net:
    """Rows of few different numbers, of which some are none."""
    kind = (FLOAT32, FLOAT16, INT32, *BYTES)[int(rng.integers(0, 5))]
    shape, net = (*draw(rng, 1, 5, int(rng.integers(0, 3))), int(rng.integers(1, 60))), Net()
    x = rng.integers(0, int(rng.integers(2, 100)), shape).astype(np.float64)
    if kind in (FLOAT32, FLOAT16):
        x[rng.random(shape) < 0.1], x[rng.random(shape) < 0.1] = np.nan, -np.inf
    k, grid = int(rng.integers(1, shape[-1] + 1)), (0.5, 0) if kind in BYTES else (0, 0)
    net.model = net.finish(*net.ops("TOPK_V2", net.input(x, kind, grid), net.scalar(k), grid=grid, outs=[
        ((*shape[:-1], k), kind), ((*shape[:-1], k), INT32)]))
    return net


def hot(rng: np.random.Generator) -> Net:
    """Indices of every type, some of which point nowhere, along a new axis anywhere."""
    shape, depth, net = draw(rng, 1, 7, int(rng.integers(1, 4))), int(rng.integers(1, 9)), Net()
    axis = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    at = axis % (len(shape) + 1)
    out = (*shape[:at], depth, *shape[at:])
    kind = (INT32, INT64, FLOAT32)[int(rng.integers(0, 3))]
    x: np.ndarray = rng.integers(-depth - 2, depth + 2, shape)
    given = np.where(rng.random(shape) < 0.1, np.nan, x * 1.25) if kind == FLOAT32 else x
    values = net.input(rng.standard_normal(2))
    y = net.op("ONE_HOT", net.input(given, kind), net.const([depth], INT32), values, net.scalar(axis), shape=out)
    z = net.op("ONE_HOT_EX", net.input(x, INT32), net.scalar(depth), net.scalar(2.5), net.scalar(-1.0),
               net.scalar(axis), shape=out)
    net.model = net.finish(y, z)
    return net


MAKES = {"largest": largest, "hot": hot}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_answers_are_those_of_numpy(make: type[Net], machine: str) -> None:
    rng = np.random.default_rng(6)
    for n in range(40):
        net = make(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_long_lists_are_left_to_numpy() -> None:
    net = Net()
    outs = net.ops("TOPK_V2", net.input(np.arange(200)), net.scalar(150), outs=[((150,), FLOAT32), ((150,), INT32)])
    assert both(net.finish(*outs), net.given, MACHINES["host"], 1)[2] == 0
