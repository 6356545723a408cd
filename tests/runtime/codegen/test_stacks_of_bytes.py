"""No micro-kernel of bytes keeps vectors on the stack."""
from __future__ import annotations

import pytest
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen.depthwise_bytes import Strip, Weave
from nnx_convert.runtime.codegen.epilogue import Epilogue
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.requantise import Range
from nnx_convert.runtime.codegen.sums import Addition
from nnx_convert.runtime.codegen.tiles import fit

#: Bytes of a result, with a zero point, bounded above their least.
SOME = Range(3, -100, 127, signed=True)
#: How sums are scaled.
FORMULAS = ("above", "around", "finely above", "finely around", "shifts", "nearest")
PAIRS = ((1 << 30, 0), (1 << 30, -1), (1 << 30, -18))
#: What is added to results: nothing, or something by one of the three formulas.
ADDED = (None, *(Addition(SOME, SOME, SOME, 1, PAIRS, floats, fast) for floats, fast in (
    ((0.7, 0.4, 0.5), None), (None, None), (None, (100, 200, 20)))))
SIZES = ((3, 3), (5, 5), (2, 2), (1, 9))
#: Pixels of a row, and channels that are stored: all, or some; SSE2 takes a single byte out of a vector by the stack.
COLUMNS = ((1, 0), (2, 0), (2, 6))
#: Those of neighbours that are one cell of more channels among them.
STRIDES = ((1, 1), (2, 2), (1, 2), (1, 3))


@pytest.mark.parametrize("machine", TRIED)
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_strip_of_a_depthwise_convolution_spills(formula: str, machine: str) -> None:
    m = Module(SETS[machine])
    for size, strides in ((size, strides) for size in SIZES for strides in STRIDES):
        weave = Weave(size, strides, (1, 1), 4 if m.machine.quads else 2)
        for columns, tail in COLUMNS:
            Strip(weave, weave.kinds(2), 1 + (strides[0] == 1), columns, (4096, 64), (2048, 64), tail, True, formula,
                  SOME).emit(m)
    assert not spilt(m)


@pytest.mark.parametrize("machine", TRIED)
@pytest.mark.parametrize("formula", [*FORMULAS, "double"])
def test_nothing_that_follows_products_spills(formula: str, machine: str) -> None:
    m = Module(SETS[machine])
    for vectors in fit(m.machine):
        # Beside an addition, AVX2 keeps one of the constants of "shifts" there.
        for added in ADDED if (formula, m.machine.bits) != ("shifts", 256) else ADDED[:1]:
            Epilogue(vectors, 0, formula, SOME, 64 * vectors, 96, added, 96 if added else 0).emit(m)
    assert not spilt(m)
