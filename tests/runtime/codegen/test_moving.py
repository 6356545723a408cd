"""Native code that moves, picks, multiplies and steps, against NumPy over random shapes with every tail."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from natively import MACHINES, Net, apart, both

#: |got - want| <= NEAR * the largest |want|.
NEAR = 1e-5
Make = Callable[[np.random.Generator], Net]


def draw(rng: np.random.Generator, low: int, high: int, count: int) -> list[int]:
    return [int(n) for n in rng.integers(low, high, count)]


def matmul(rng: np.random.Generator) -> Net:
    """Two matrices that a run computes, either turned, leading axes repeated; then what follows element by element."""
    rows, depth, columns = draw(rng, 1, 40, 1)[0], *draw(rng, 1, 70, 2)
    lead = draw(rng, 1, 4, draw(rng, 0, 3, 1)[0])
    spread = rng.random() < 0.5
    leads = [tuple(1 if spread and rng.random() < 0.4 else n for n in lead) for _ in range(2)]
    both_lead = tuple(np.broadcast_shapes(*leads))
    (adj_x, adj_y), shape = (bool(v) for v in rng.integers(0, 2, 2)), (*both_lead, rows, columns)
    x = rng.standard_normal((*leads[0], *((depth, rows) if adj_x else (rows, depth))))
    y = rng.standard_normal((*leads[1], *((columns, depth) if adj_y else (depth, columns))))
    net = Net()
    name = "host.MATMUL" if spread else "BATCH_MATMUL"
    z = net.op(name, net.input(x), net.input(y), net.scalar(adj_x), net.scalar(adj_y), shape=shape)
    if rng.random() < 0.5:
        z = net.op("MUL", z, net.const([0.125]), net.scalar(0), shape=shape)
        z = net.op("ADD", z, net.input(rng.standard_normal(shape)), net.scalar(0), shape=shape)
    net.model = net.finish(z)
    return net


MAKES: dict[str, Make] = {"matmul": matmul}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    rng = np.random.default_rng(11)
    for n in range(24 if machine == "host" else 8):
        net = MAKES[family](rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == len(net.model.operations), n
        assert all(g.dtype == w.dtype and g.shape == w.shape for g, w in zip(got, want, strict=True))
        assert apart(got, want) <= NEAR, n
