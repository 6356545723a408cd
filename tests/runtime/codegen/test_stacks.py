"""No micro-kernel of floats keeps vectors on the stack: every tile there is, on every machine."""
from __future__ import annotations

import pytest
from stacks import SETS, TRIED, spilt

from nnx_convert.runtime.codegen.depthwise import Patch, patch_of
from nnx_convert.runtime.codegen.elements import Part
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.micro import Micro
from nnx_convert.runtime.codegen.tiles import fit

#: What follows the products: nothing, one operation, and one of dozens of instructions.
CHAINS = ((), (Part("ADD", (0, 1)),), (Part("LOGISTIC", (0,)), Part("MUL", (0, -1))))


def micro(pixels: int, vectors: int, chain: tuple[Part, ...], *, taps: int = 1, length: int = 64, cell: int = 256,
          tail: int = 0, fetched: int = 0, resumed: bool = False, coming: bool = False) -> Micro:
    """A micro-kernel of so many pixels, `cell` bytes apart."""
    out = tuple(96 * n for n in range(pixels))
    extras = ((out, 4),) if any(1 in part.reads for part in chain) else ()
    return Micro(tuple(cell * n for n in range(pixels)), out, vectors, taps, 4096 if taps > 1 else 0, ((0, length),),
                 tail, 3, chain, extras, fetched, resumed, coming)


@pytest.mark.parametrize("machine", TRIED)
@pytest.mark.parametrize("chain", CHAINS)
def test_no_product_of_tiles_spills(chain: tuple[Part, ...], machine: str) -> None:
    m = Module(SETS[machine])
    for vectors, most in fit(m.machine).items():
        for pixels in range(1, most + 1):
            micro(pixels, vectors, chain).emit(m)
        for pixels in {most, most - 1}:
            micro(pixels, vectors, chain, taps=3, length=63).emit(m)
            micro(pixels, vectors, chain, taps=3, length=8, cell=4).emit(m)
            micro(pixels, vectors, chain, fetched=2).emit(m)
            micro(pixels, vectors, chain, fetched=1, resumed=True).emit(m)
            micro(pixels, vectors, (), fetched=1, tail=3, resumed=True).emit(m)
            micro(pixels, vectors, chain, coming=pixels > 1).emit(m)
    assert not spilt(m, inner=not m.machine.x86)     # on aarch64 what is between loops puts some aside


@pytest.mark.parametrize("machine", TRIED)
def test_no_patch_of_a_depthwise_convolution_spills(machine: str) -> None:
    m = Module(SETS[machine])
    for size, strides in ((k, s) for k in ((3, 3), (5, 5), (7, 7), (1, 9), (31, 1), (2, 2)) for s in ((1, 1), (2, 2))):
        rows, columns = patch_of(size, strides, 8, 8, m.machine)
        for chain in CHAINS:
            extras = ((4096, 256, 4),) if any(1 in part.reads for part in chain) else ()
            Patch(size, strides, (1, 1), rows, columns, (4096, 256), (4096, 256), 0, 3, chain, extras).emit(m)
    assert not spilt(m)
