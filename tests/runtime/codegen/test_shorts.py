"""Sums, differences and products of 16-bit integers on grids, natively: NumPy's to the bit."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import OperandCode

SHORT = OperandCode.TENSOR_QUANT16_SYMM
NAMES = ("host.ADD", "host.SUB", "host.MUL", "ADD_BY_SHIFTS", "SUB_BY_SHIFTS")


def pair(rng: np.random.Generator) -> Net:
    """One of the operations on arrays that broadcast; scales that are powers of two, and others."""
    shape, net = tuple(rng.integers(1, 20, rng.integers(1, 4)).tolist()), Net()
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)
    name = NAMES[int(rng.integers(0, len(NAMES)))]
    scales = 2.0 ** -rng.integers(8, 15, 3) * (1 if rng.random() < 0.5 else rng.uniform(0.5, 1, 3))
    if name == "host.MUL":
        scales[2] = scales[0] * scales[1] * 2.0 ** rng.integers(-1, 18)
    else:
        scales[2] = scales[:2].max() * 2.0 ** rng.integers(0, 2)
    ends = np.array([-0x8000, -0x7FFF, -1, 0, 1, 0x7FFF])
    x, y = (net.input(np.where(rng.random(s) < 0.2, rng.choice(ends, s), rng.integers(-0x8000, 0x8000, s)), SHORT, (
        float(scale), 0)) for s, scale in zip((shape, other), scales, strict=False))
    net.model = net.finish(net.op(name, x, y, net.scalar(int(rng.integers(0, 4))), shape=shape, kind=SHORT,
                                  grid=(float(scales[2]), 0)))
    return net


MAKES = {"pair": pair}


@pytest.mark.parametrize("machine", MACHINES)
def test_what_becomes_of_two_is_what_numpy_makes_of_them(machine: str) -> None:
    rng = np.random.default_rng(8)
    for n in range(60):
        net = pair(rng)
        want, got, native = both(net.model, net.given, MACHINES[machine], 1 + n % 2)
        assert native == 1
        np.testing.assert_array_equal(got[0], want[0], err_msg=net.model.operations[0].op.name)
