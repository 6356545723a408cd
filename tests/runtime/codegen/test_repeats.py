"""Short constant rows beside every cell: rows are joined, and the answers stay."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, apart, both

from nnx_convert import OperandCode
from nnx_convert.runtime.codegen.repeats import LONG, longer

Q8 = OperandCode.TENSOR_QUANT8_ASYMM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 17, 63, 64])
def test_native_code_gives_what_numpy_gives(width: int, machine: str) -> None:
    rng = np.random.default_rng(width)
    for n, lead in enumerate([(1, 1, 1), (1, 7, 5), (2, 12, 10), (2, 3, 31)]):
        net, shape = Net(), (*lead, width)
        x, other = (net.input(rng.standard_normal(shape)) for _ in range(2))
        y = net.op("SUB", x, net.const(rng.standard_normal(width)), net.scalar(0), shape=shape)
        y = net.op("MUL", y, net.const(rng.standard_normal((1, 1, 1, width))), net.scalar(0), shape=shape)
        y = net.op("ADD", other, net.op("MAXIMUM", y, net.const([0.25]), shape=shape), net.scalar(1), shape=shape)
        z = net.op("ADD", x, net.input(rng.standard_normal(width)), net.scalar(0), shape=shape)
        q = net.input(rng.integers(0, 256, shape), Q8, (0.5, 3))
        row = net.const(rng.integers(0, 256, width), Q8, (0.25, 200))
        sums = [net.op(name, *pair, net.scalar(0), shape=shape, kind=Q8, grid=(100.0 if name == "MUL" else 1.0, 7))
                for name in ("ADD", "SUB", "MUL") for pair in ((q, row), (row, q))]
        want, got, native = both(net.finish(y, z, *sums), net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(want) + 3
        assert apart(got[:2], want[:2]) <= 1e-6
        for g, w in zip(got[2:], want[2:], strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize(("rows", "width", "lanes", "size"), [
    (36864, 3, 16, 864), (35, 3, 16, 105), (31, 3, 16, 93), (1, 5, 4, 5), (4096, 63, 8, 1008)])
def test_rows_are_joined_to_whole_vectors_if_that_can_be(rows: int, width: int, lanes: int, size: int) -> None:
    assert longer(rows, width, lanes) == size <= LONG
