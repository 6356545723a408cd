"""Images read at places between their cells, natively: near what NumPy gives."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw

from nnx_convert.ops.sampling import LINEAR, NEAREST, OUTSIDE


def sampled(rng: np.random.Generator, mode: int, outside: int, align: bool, odd: bool = False) -> Net:
    """Few places and many, in images of any size, some of one row; most are inside, some far away or none."""
    net, (n, c, rows, columns) = Net(), draw(rng, 1, 4, 4)
    h, w = (int(rng.choice([1, 2, 3, 17])) for _ in range(2))
    columns *= int(rng.choice([1, 5, 40]))
    places = rng.uniform(-1.6, 1.6, (n, rows, columns, 2))
    if odd:
        places[rng.random(places.shape) < 0.4] = np.nan
        places[rng.random(places.shape) < 0.4] = rng.choice([np.inf, -np.inf, 1e30, -1e9, 1, -1, 0])
    y = net.op("GRID_SAMPLE", net.input(rng.standard_normal((n, c, h, w))), net.input(places), net.scalar(mode),
               net.scalar(outside), net.scalar(align), shape=(n, c, rows, columns))
    net.model = net.finish(y)
    return net


def drawn(rng: np.random.Generator) -> Net:
    return sampled(rng, int(rng.choice([NEAREST, LINEAR])), draw(rng, 0, 3, 1)[0], bool(rng.integers(2)))


MAKES = {"sampled": drawn}
WAYS = list(product((NEAREST, LINEAR), range(len(OUTSIDE)), (False, True)))


@pytest.mark.parametrize("machine", MACHINES)
def test_native_code_gives_what_numpy_gives(machine: str) -> None:
    rng = np.random.default_rng(47)
    for n, way in enumerate(WAYS * (2 if machine == "host" else 1)):
        net = sampled(rng, *way)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1 and apart(got, want) <= NEAR, way


@pytest.mark.parametrize("way", WAYS)
def test_places_that_are_none(way: tuple[int, int, bool]) -> None:
    """Infinite, far away, no numbers: NaN where NumPy has it."""
    net = sampled(np.random.default_rng(3), *way, odd=True)
    want, got, native = both(net.model, net.given, MACHINES["host"], 1)
    assert native == 1
    np.testing.assert_allclose(got[0], want[0], atol=1e-5)
