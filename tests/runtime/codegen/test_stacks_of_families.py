"""The innermost loops of every family's code keep no vectors on the stack, on every set of features."""
from __future__ import annotations

import pytest
from placed import Placed, cases
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen.ir import Module


@pytest.mark.parametrize("machine", TRIED)
def test_no_innermost_loop_spills(machine: str) -> None:
    m = Module(SETS[machine])
    for n, case in enumerate(cases(1, 0)):
        Placed(case, m.machine, 2).emit(m, f"model{n}")
    assert not spilt(m, inner=True)
