"""Micro-kernels for aarch64 keep their sums in registers: no vector of a loop is on the stack."""
from __future__ import annotations

import re

import pytest
from natively import ARM

from nnx_convert.runtime.codegen import bytes as of_bytes, micro as of_floats
from nnx_convert.runtime.codegen.ir import SHARED, Function, Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.objects import assembly
from nnx_convert.runtime.codegen.rooms import Pairs, Room
from nnx_convert.runtime.codegen.tiles import FIT

NEON, DOT = ARM["neon"], ARM["dotprod"]
#: A vector that goes to the stack or comes from there.
SPILT = re.compile(r"(?:ldr|ldp|str|stp)\tq\d+.*\[sp")
Micro = of_floats.Micro | of_bytes.Micro | Pairs


def loops(micro: Micro, machine: Machine) -> list[str]:
    """The blocks of its code that end with a branch to their beginning."""
    m = Module(machine)
    f = Function(m, "f", SHARED, exported=True)
    f.do(f"call void @{micro.emit(m)}(ptr %arena, ptr %weights, ptr %arena, ptr %weights)")
    f.finish()
    blocks = re.split(r"\n(?=\.LBB)", assembly(m.text(), machine))
    labels = [b.partition(":")[0] for b in blocks]
    return [b for b, label in zip(blocks, labels, strict=True) if re.search(rf"\tb\.\w+\t{re.escape(label)}\b", b)]


def places(pixels: int, step: int) -> tuple[int, ...]:
    return tuple(range(0, step * pixels, step))


def floats(vectors: int, pixels: int) -> of_floats.Micro:
    return of_floats.Micro(places(pixels, 64), places(pixels, 96), vectors, 1, 0, ((0, 16),), 0, 0)


@pytest.mark.parametrize(("vectors", "most"), FIT[32].items())
def test_floats(vectors: int, most: int) -> None:
    for pixels in range(1, most + 1):
        found = [loop for loop in loops(floats(vectors, pixels), NEON) if "fmla" in loop]
        assert found and not SPILT.findall("".join(found)), pixels


@pytest.mark.parametrize(("machine", "product", "shift"), [(NEON, "smull", 0), (DOT, "sdot", 0), (DOT, "sdot", 3)])
@pytest.mark.parametrize("signed", [False, True])
def test_bytes(machine: Machine, product: str, shift: int, signed: bool) -> None:
    together = 4 if machine.quads else 2
    for vectors, most in of_bytes.fitting(machine, together, shift > 0).items():
        for pixels in range(1, most + 1):
            runs = ((0, 64),)
            micro = (of_bytes.Micro(places(pixels, 64), vectors, 1, 0, runs, signed, 64, shift) if together == 4 else
                     Pairs(Room(64, 1, 0, runs, signed).walk(pixels, vectors, False), 64))
            found = [loop for loop in loops(micro, machine) if product in loop]
            assert found and not SPILT.findall("".join(found)), (vectors, pixels)


def test_a_tile_that_is_too_large_would_be_noticed() -> None:
    assert SPILT.findall("".join(loops(floats(1, 30), NEON)))
