"""Normalisation by the squares around numbers, and pools of squares, natively: near what NumPy gives."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, NEAR, Net, apart, both, draw, reach, runs

from nnx_convert import OperandCode

FLOAT32, FLOAT16 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16
#: Of the largest value, how far FLOAT16 may be off: one unit.
HALF = 1e-3


def responses(rng: np.random.Generator) -> Net:
    """Along any axis, reaching any far."""
    net, shape = Net(), tuple(draw(rng, 1, 30, draw(rng, 1, 5, 1)[0]))
    axis = draw(rng, 0, len(shape), 1)[0] if rng.random() < 0.6 else len(shape) - 1
    numbers = (float(rng.uniform(0.5, 2)), float(rng.uniform(0, 1)), float(rng.choice([0.5, 0.75, 1, 2.5])))
    more = [net.scalar(v) for v in (int(rng.choice([0, 1, 2, 5, 1000])), *numbers, axis - len(shape))]
    y = net.op("LOCAL_RESPONSE_NORMALIZATION", net.input(rng.standard_normal(shape)), *more, shape=shape)
    net.model = net.finish(y)
    return net


def squares(rng: np.random.Generator) -> Net | None:
    """Windows of images, some of them over the border."""
    n, h, w, c = draw(rng, 1, 3, 1)[0], *draw(rng, 1, 15, 2), *draw(rng, 1, 40, 1)
    (kh, kw), (sh, sw) = draw(rng, 1, 5, 2), draw(rng, 1, 4, 2)
    pt, pb, pl, pr = (int(rng.integers(0, k)) for k in (kh, kh, kw, kw))
    oh, ow = reach(h, kh, sh, 1, pt, pb), reach(w, kw, sw, 1, pl, pr)
    if oh < 1 or ow < 1 or (oh - 1) * sh - pt >= h or (ow - 1) * sw - pl >= w:
        return None
    net, kind = Net(), (FLOAT32, FLOAT16)[int(rng.integers(0, 2))]
    y = net.op("L2_POOL_2D", net.input(rng.standard_normal((n, h, w, c)), kind),
               *map(net.scalar, (pl, pr, pt, pb, sw, sh, kw, kh, draw(rng, 0, 4, 1)[0])), shape=(n, oh, ow, c),
               kind=kind)
    net.model = net.finish(y)
    return net


MAKES = {"responses": responses, "squares": squares}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", MAKES)
def test_native_code_gives_what_numpy_gives(family: str, machine: str) -> None:
    for n, (_, want, got) in enumerate(runs(MAKES[family], machine, 41, 10, 4)):
        assert apart(got, want) <= (HALF if got[0].dtype == np.float16 else NEAR), n


def test_what_is_no_number_spreads_as_far_as_the_radius() -> None:
    net, x = Net(), np.ones((2, 40))
    x[0, 20], x[1, 3] = np.nan, np.inf
    more = map(net.scalar, (2, 1.0, 0.5, 0.75, -1))
    model = net.finish(net.op("LOCAL_RESPONSE_NORMALIZATION", net.input(x), *more, shape=x.shape))
    want, got, native = both(model, net.given, MACHINES["host"], 1)
    assert native == 1 and np.isnan(got[0]).sum() == 6
    np.testing.assert_allclose(got[0], want[0], rtol=NEAR)
