"""No micro-kernel of bytes keeps vectors on the stack."""
from __future__ import annotations

import pytest
from natively import MACHINES
from stacks import spilt

from nnx_convert.runtime.codegen.depthwise_bytes import Strip, Weave
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.requantise import Range

#: Bytes of a result, with a zero point, bounded above their least.
SOME = Range(3, -100, 127, signed=True)
#: How sums are scaled.
FORMULAS = ("above", "around", "finely above", "finely around", "shifts", "nearest")
SIZES = ((3, 3), (5, 5), (2, 2), (1, 9))
#: Pixels of a row, and channels that are stored: all, or some; SSE2 takes a single byte out of a vector by the stack.
COLUMNS = ((1, 0), (2, 0), (2, 6))
#: Those of neighbours that are one cell of more channels among them.
STRIDES = ((1, 1), (2, 2), (1, 2), (1, 3))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_strip_of_a_depthwise_convolution_spills(formula: str, machine: str) -> None:
    m = Module(MACHINES[machine])
    for size, strides in ((size, strides) for size in SIZES for strides in STRIDES):
        weave = Weave(size, strides, (1, 1), 4 if m.machine.quads else 2)
        for columns, tail in COLUMNS:
            Strip(weave, weave.kinds(2), 1 + (strides[0] == 1), columns, (4096, 64), (2048, 64), tail, True, formula,
                  SOME).emit(m)
    assert not spilt(m)
