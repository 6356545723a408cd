"""Native attention against NumPy: any sizes, masks and leading axes, and what is not attention after all."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw
from test_fusion import found, seen



def scores(net: Net, rng: np.random.Generator, lead: tuple[int, ...], rows: int, keys: int) -> int:
    """x @ y, seen with all leading axes, then scaled and masked."""
    depth, (flat, adj) = draw(rng, 1, 40, 1)[0], (bool(v) for v in rng.integers(0, 2, 2))
    one = (int(np.prod(lead)),) if flat else lead
    x = net.input(rng.standard_normal((*one, rows, depth)))
    y = net.input(rng.standard_normal((*one, *((keys, depth) if adj else (depth, keys)))))
    found = net.op("BATCH_MATMUL", x, y, net.scalar(False), net.scalar(adj), shape=(*one, rows, keys))
    shape = (*lead, rows, keys)
    found = seen(net, found, shape) if flat else found
    if rng.random() < 0.7:
        found = net.op("MUL", found, net.const([0.3]), net.scalar(0), shape=shape)
    if rng.random() < 0.7:
        mask = rng.choice([0.0, -1e9], (lead[0], *(1 for _ in lead[1:]), 1, keys), p=[0.8, 0.2])
        found = net.op("ADD", net.input(mask), found, net.scalar(0), shape=shape)
    return found


def attention(rng: np.random.Generator) -> Net:
    """Softmax of scores by a matrix, which may be turned."""
    net, lead = Net(), tuple(draw(rng, 1, 4, 2))
    rows, keys, columns = draw(rng, 1, 40, 3)
    adj = bool(rng.integers(0, 2))
    shares = net.op("SOFTMAX", scores(net, rng, lead, rows, keys), net.scalar(float(rng.choice([1.0, 0.5]))),
                    net.scalar(3), shape=(*lead, rows, keys))
    v = net.input(rng.standard_normal((*lead, *((columns, keys) if adj else (keys, columns)))))
    y = net.op("BATCH_MATMUL", shares, v, net.scalar(False), net.scalar(adj), shape=(*lead, rows, columns))
    net.model = net.finish(net.op("TANH", y, shape=(*lead, rows, columns)))
    return net


@pytest.mark.parametrize("machine", MACHINES)
def test_it_gives_what_numpy_gives(machine: str) -> None:
    rng = np.random.default_rng(11)
    for n in range(24 if machine == "host" else 8):
        net = attention(rng)
        assert len(found(net.model, [g.shape for g in net.given])) == 2, n
        want, got, _ = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert apart(got, want) <= NEAR, n


@pytest.mark.parametrize("machine", MACHINES)
def test_scores_that_are_read_otherwise_stay_arrays(machine: str) -> None:
    rng = np.random.default_rng(4)
    for kept in ("scores", "shares"):
        net, shape = Net(), (2, 3, 9, 21)
        inner = scores(net, rng, (2, 3), 9, 21)
        shares = net.op("SOFTMAX", inner, net.scalar(1.0), net.scalar(3), shape=shape)
        v = net.input(rng.standard_normal((2, 3, 21, 5)))
        y = net.op("BATCH_MATMUL", shares, v, net.scalar(False), net.scalar(False), shape=(2, 3, 9, 5))
        model = net.finish(y, inner if kept == "scores" else shares)
        want, got, _ = both(model, net.given, MACHINES[machine], 2)
        assert apart(got, want) <= NEAR


def test_what_is_no_number_spreads_to_its_row_alone() -> None:
    net, x = Net(), np.ones((1, 5, 4), np.float32)
    x[0, 1, 2], x[0, 3, 0] = np.nan, np.inf
    y, v = net.input(np.eye(4)[None]), net.input(np.arange(8.0).reshape(1, 4, 2))
    inner = net.op("BATCH_MATMUL", net.input(x), y, net.scalar(False), net.scalar(False), shape=(1, 5, 4))
    shares = net.op("SOFTMAX", inner, net.scalar(1.0), net.scalar(2), shape=(1, 5, 4))
    out = net.op("BATCH_MATMUL", shares, v, net.scalar(False), net.scalar(False), shape=(1, 5, 2))
    want, got, _ = both(net.finish(out), net.given, MACHINES["host"], 1)
    np.testing.assert_array_equal(np.isnan(got[0]), np.isnan(want[0]))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
