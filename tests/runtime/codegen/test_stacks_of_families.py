"""The innermost loops of every family's code keep no vectors on the stack, on every set of features."""
from __future__ import annotations

import numpy as np
import pytest
from natively import Net
from placed import Case, Placed, cases
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen.ir import Module

#: Functions of dozens of instructions, one after the other.
CHAINS = (("TANH", "host.COSH", "TANH"), ("LOG", "EXP", "LOG"), ("host.ATANH", "host.SINH"),
          ("SIN", "host.COS", "FLOOR"), ("host.COSH", "host.COS"), ("host.ATAN2", "host.ATANH"), ("POW", "host.COSH"),
          ("EXP", "LOG", "TANH"))


@pytest.mark.parametrize("machine", TRIED)
def test_no_innermost_loop_spills(machine: str) -> None:
    m = Module(SETS[machine])
    for n, case in enumerate(cases(1, 0)):
        Placed(case, m.machine, 2).emit(m, f"model{n}")
    assert not spilt(m, inner=True)


@pytest.mark.parametrize("machine", TRIED)
def test_no_chain_of_long_functions_spills(machine: str) -> None:
    m, rng = Module(SETS[machine]), np.random.default_rng(0)
    for n, chain in enumerate(CHAINS):
        net, shape = Net(), (4, 51)
        x, other = (net.input(rng.standard_normal(shape)) for _ in range(2))
        y = x
        for name in chain:
            y = net.op(name, y, *[other] * (name in ("POW", "host.ATAN2")), shape=shape)
        y = net.op("MUL", y, other, net.scalar(0), shape=shape)
        Placed(Case("chain", net.finish(y), tuple(net.given)), m.machine, 2).emit(m, f"model{n}")
    assert not spilt(m, inner=True)
