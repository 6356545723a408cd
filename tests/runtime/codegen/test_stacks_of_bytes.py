"""No micro-kernel of bytes keeps vectors on the stack."""
from __future__ import annotations

import pytest
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen import hybrid
from nnx_convert.runtime.codegen.bytes import Micro, fitting
from nnx_convert.runtime.codegen.depthwise_bytes import Strip, Weave
from nnx_convert.runtime.codegen.epilogue import Epilogue
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.requantise import Range
from nnx_convert.runtime.codegen.rooms import Pairs, Room
from nnx_convert.runtime.codegen.sums import Addition
from nnx_convert.runtime.codegen.tiles import fit
from nnx_convert.runtime.codegen.wholes import Walk, shortens

#: Bytes of results, with a zero point, bounded above their least: two, as functions that differ in these become one.
RANGES = Range(3, -100, 127, signed=True), Range(5, -90, 127, signed=True)
#: How sums are scaled.
FORMULAS = ("above", "around", "finely above", "finely around", "shifts", "nearest")
PAIRS = ((1 << 30, 0), (1 << 30, -1), (1 << 30, -18)), ((1 << 30, -1), (3 << 29, 0), (5 << 28, -17))
#: What is added to results, by the numbers of two formulas or by shifts, to results of each range.
ADDED = {"nothing": (None, None)} | {
    name: tuple(Addition(r, r, r, 1, p, f, w) for r, p, f, w in zip(RANGES, PAIRS, floats, whole, strict=True))
    for name, floats, whole in (("floats", ((0.7, 0.4, 0.5), (0.6, 0.3, 0.25)), (None, None)),
                                ("shifts", (None, None), (None, None)),
                                ("products", (None, None), ((100, 200, 20), (300, 150, 20))))}
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
            for cell, r in zip((64, 128), RANGES, strict=True):
                Strip(weave, weave.kinds(2), 1 + (strides[0] == 1), columns, (64 * cell, cell), (32 * cell, cell), tail,
                      True, formula, r).emit(m)
    assert not spilt(m)


@pytest.mark.parametrize("machine", TRIED)
@pytest.mark.parametrize("formula", [*FORMULAS, "double"])
def test_nothing_that_follows_products_spills(formula: str, machine: str) -> None:
    m = Module(SETS[machine])
    for vectors in fit(m.machine):
        for added in ADDED.values():
            for r, other in zip(RANGES, added, strict=True):
                Epilogue(vectors, 0, formula, r, 64 * vectors, 96, other, 96 if other else 0).emit(m)
    assert not spilt(m)


@pytest.mark.parametrize("machine", TRIED)
@pytest.mark.parametrize(("cell", "length"), [(64, 64), (2, 3), (1, 28), (4, 16)])
def test_no_product_of_bytes_spills(cell: int, length: int, machine: str) -> None:
    """Of pixels so many bytes apart, far from each other and so near that they share what they read."""
    m = Module(SETS[machine])
    for vectors, most in fitting(m.machine, 2, False).items():
        for pixels in {1, most // 2, most - 1, most} - {0}:
            for narrow in {False, shortens(m.machine)}:
                walk = Room(cell, 3, 4096, ((0, length),), True).walk(pixels, vectors, narrow)
                Pairs(walk, 8 * m.machine.lanes).emit(m)
                hybrid.Micro(walk, tuple(256 * n for n in range(pixels)), 64, False, True, 1, 0).emit(m)
    for shift in (0, 3) if m.machine.quads else ():
        for vectors, most in fitting(m.machine, 4, bool(shift)).items():
            for pixels in {1, most // 2, most - 1, most} - {0}:
                at = tuple(cell * n for n in range(pixels))
                Micro(at, vectors, 3, 4096, ((0, 4 * length),), True, 8 * m.machine.lanes, shift).emit(m)
                if m.machine.vnni:
                    walk = Walk(at, vectors, 3, 4096, ((0, length),), True)
                    hybrid.Micro(walk, tuple(256 * n for n in range(pixels)), 0, True, True, 1, 0).emit(m)
    assert not spilt(m)
