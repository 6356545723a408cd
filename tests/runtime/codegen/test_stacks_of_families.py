"""The innermost loops of every family's code keep no vectors on the stack, on every set of features."""
from __future__ import annotations

import re

import pytest
from placed import Placed, cases
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen.ir import Module

#: Functions that are no products of tiles, and have more numbers than registers: stages of a transform. So many
#: instructions of theirs may touch the stack.
LONG = {"fourier": 56}


@pytest.mark.parametrize("machine", TRIED)
def test_no_innermost_loop_spills(machine: str) -> None:
    m = Module(SETS[machine])
    for n, case in enumerate(cases(1, 0)):
        Placed(case, m.machine, 2).emit(m, f"model{n}")
    found: dict[str, list[str]] = {}
    for line in spilt(m, inner=True):
        found.setdefault(line.partition(":")[0], []).append(line)
    kinds = {name: re.sub(r"_[0-9a-f]{8,}$", "", name) for name in found}
    assert not {name: lines for name, lines in found.items() if len(lines) > LONG.get(kinds[name], 0)}
