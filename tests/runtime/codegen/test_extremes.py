"""Where the largest and the smallest are, natively, of every type and along every axis."""
from __future__ import annotations

import numpy as np
import pytest
from natively import MACHINES, Net, both

from nnx_convert import OperandCode

INT32 = OperandCode.TENSOR_INT32
#: Types, with the range of their elements: narrow, so that many are equal.
KINDS = {OperandCode.TENSOR_FLOAT32: (-3, 3), INT32: (-3, 3), OperandCode.TENSOR_QUANT8_ASYMM: (120, 140),
         OperandCode.TENSOR_QUANT8_ASYMM_SIGNED: (-10, 10), OperandCode.TENSOR_BOOL8: (0, 2),
         OperandCode.TENSOR_INT64: (-3, 3), OperandCode.TENSOR_FLOAT64: (-3, 3)}


def ends(net: Net, x: int, shape: tuple[int, ...], axis: int) -> list[int]:
    left = [n for a, n in enumerate(shape) if a != axis]
    return [net.op(f"host.{n}", x, net.scalar(axis), shape=left, kind=INT32) for n in ("ARGMAX", "ARGMIN")]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_the_first_of_equals_is_found(kind: OperandCode, machine: str) -> None:
    rng = np.random.default_rng(3)
    for n in range(16 if machine == "host" else 6):
        shape = tuple(int(rng.choice([1, 2, 5, 16, 19, 40, 70])) for _ in range(rng.integers(1, 4)))
        net, axis = Net(), int(rng.integers(0, len(shape)))
        grid = (0.5, 3) if kind.name.startswith("TENSOR_QUANT") else (0, 0)
        x = net.input(rng.integers(*KINDS[kind], shape), kind, grid)
        want, got, native = both(net.finish(*ends(net, x, shape, axis)), net.given, MACHINES[machine], 1 + n % 2)
        assert native == 2
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_no_number_is_passed_over(machine: str) -> None:
    net, x = Net(), np.random.default_rng(3).integers(-2, 3, (6, 7, 21)).astype(np.float32)
    x[x == 2], x[x == -2] = np.nan, np.inf
    x[0], x[1] = np.nan, -np.inf
    a = net.input(x)
    outs = [out for axis in range(3) for out in ends(net, a, x.shape, axis)]
    want, got, native = both(net.finish(*outs), net.given, MACHINES[machine], 2)
    assert native == 6
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
