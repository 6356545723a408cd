"""Products by one-hot rows are rows of a table: what NumPy gives, to the bit, for numbers of the table and others."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both, left_to

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen.fusion import groups
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.tasks import Group

INT32, BYTES = OperandCode.TENSOR_INT32, OperandCode.TENSOR_QUANT8_ASYMM
CASES: list[dict[str, int]] = [
    {"first": 0, "count": 257, "channels": 64}, {"first": -5, "count": 9, "channels": 13, "tail": False},
    {"first": np.iinfo(np.int32).max - 6, "count": 6, "channels": 1}, {"first": 3, "count": 2, "channels": 40},
    {"first": 1, "count": 30, "channels": 17, "turned": True}]


def model(rng: np.random.Generator, *, first: int, count: int, channels: int, tail: bool = True, gap: int = 0,
          turned: bool = False, weight: float = 0.5) -> Net:
    """Integers, some of them out of range, as one-hot rows by a matrix, and a function of that."""
    lead, net = (int(rng.integers(1, 4)), int(rng.integers(1, 9))), Net()
    bounds = np.iinfo(np.int32)
    x = rng.integers(max(first - 3, bounds.min), min(first + count + 3, bounds.max), (*lead, 1))
    x.flat[0] = rng.choice([bounds.min, bounds.max])
    numbers = np.arange(first, first + count)
    numbers[-1] += gap
    wide, shape = (*lead, count), (*lead, channels)
    given, known = net.input(x, INT32), net.const(numbers.reshape(1, 1, count), INT32)
    same = net.op("EQUAL_EX", *((known, given) if turned else (given, known)), shape=wide, kind=BYTES, grid=(1, 0))
    matrix = rng.standard_normal((channels, count))
    matrix[0, 0] = weight
    rows = (lead[0] * lead[1], channels)
    y = net.op("FULLY_CONNECTED", net.op("CAST_EX", same, shape=wide), net.const(matrix),
               net.const(rng.standard_normal(channels)), net.scalar(1), shape=rows)
    if tail:
        y = net.op("MUL", y, net.const(rng.standard_normal((1, channels))), net.scalar(0), shape=rows)
        y = net.op("ADD", net.op("TANH", y, shape=rows), y, net.scalar(0), shape=rows)
        y = net.op("RESHAPE", y, net.const(shape, INT32), shape=shape)
    net.model = net.finish(y)
    return net


def heads(net: Net) -> list[str]:
    """The operations that have others done with them."""
    program = left_to(net.model, net.given, host())
    return [g.head.op.name for g in groups(program, host()) if isinstance(g, Group) and len(g.tail) > 1]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_rows_are_what_numpy_gives(case: dict[str, int], machine: str) -> None:
    rng = np.random.default_rng(case["count"])
    for threads in (1, 2):
        net = model(rng, **case)
        want, got, native = both(net.model, net.given, MACHINES[machine], threads)
        assert native and heads(net) == ["EQUAL_EX"]
        np.testing.assert_array_equal(got[0], want[0])


def test_other_comparisons_stay_comparisons() -> None:
    """Numbers with a gap, and a matrix by which a row without a 1 would be no number."""
    rng = np.random.default_rng(0)
    for case in ({"gap": 1}, {"weight": np.inf}):
        net = model(rng, first=0, count=5, channels=3, **case)
        want, got, _ = both(net.model, net.given, host(), 1)
        assert "EQUAL_EX" not in heads(net)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
