"""Native code in memory between pages that nobody may touch; run by itself, since a stray access ends the process.

    python guarded.py MACHINE SEED EACH STEP     # so many cases of a family, and one of so many of the table's rows

prints each case before it runs and what is wrong with it behind that; the last line is `done`. With `stray` in place
of the numbers it does what no code may do.
"""
from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Sequence

import numpy as np
from natively import EVERY, Array
from placed import Case, Placed, cases, rows, wrong

from nnx_convert.runtime.blas import cores
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.objects import Library, compiled
from nnx_convert.runtime.codegen.places import SLACK
from nnx_convert.runtime.codegen.pool import prepared

#: mmap's protections, and what native code's pointers are multiples of.
NONE, READ, ALIGN = 0, 1, 64
#: Programs that are compiled together.
BATCH = 200


class Guarded:
    """Bytes between guards: they end where the one behind them begins, or begin where the one before them ends."""

    def __init__(self, size: int, at_end: bool) -> None:
        whole = max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE
        self._memory = np.frombuffer(mmap.mmap(-1, whole + 2 * mmap.PAGESIZE), np.uint8)
        self._inside = slice(mmap.PAGESIZE, mmap.PAGESIZE + whole)
        for guard in (slice(0, mmap.PAGESIZE), slice(mmap.PAGESIZE + whole, None)):
            self._protect(guard, NONE)
        start = mmap.PAGESIZE + ((whole - size) // ALIGN * ALIGN if at_end else 0)
        self.array: Array = self._memory[start:start + size]

    def _protect(self, where: slice, access: int) -> None:
        part = self._memory[where]
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(part.ctypes.data), ctypes.c_size_t(part.size), access):
            raise OSError("memory cannot be protected")

    def read_only(self) -> None:
        """Nobody writes there from now on."""
        self._protect(self._inside, READ)


def outputs(program: Placed, library: Library, segments: Sequence[tuple[str, int]], at_end: bool) -> list[Array]:
    """What a program gives in guarded memory."""
    arena, weights = (Guarded(size, at_end) for size in (program.layout.size, program.weights.size))
    weights.array[:] = program.weights
    weights.read_only()

    def called(n: int) -> None:
        name, waits = segments[n]
        prepared(library.address(name), arena.array.ctypes.data, weights.array.ctypes.data, program.threads, waits)()
    return program.run(arena.array, called)


def judge(found: Sequence[Case], machine: Machine) -> None:
    """Run cases, by one thread or two, at either end of their memory; say what is wrong."""
    programs = [Placed(case, machine, 1 + n % 2) for n, case in enumerate(found)]
    m = Module(machine)
    segments = [p.emit(m, f"model{n}") for n, p in enumerate(programs)]
    library = Library(compiled(m.texts(cores()), machine), [name for part in segments for name, _ in part], machine)
    for n, (program, part) in enumerate(zip(programs, segments, strict=True)):
        print(program.case.name, flush=True)
        at_end = bool(n // 2 % 2)
        if why := wrong(outputs(program, library, part, at_end), program.case.wanted()):
            print(f"    {why}")
        for wild in program.case.wild():
            outputs(Placed(wild, machine, program.threads), library, part, at_end)


def stray(far: int) -> None:
    """Read so many bytes behind the arena's slack."""
    room = Guarded(640 + SLACK, True)
    print(ctypes.c_ubyte.from_address(room.array.ctypes.data + room.array.size - 1 + far).value)


def main(machine: str, *numbers: str) -> None:
    """Do what the command's words say."""
    if numbers == ("stray",):
        for far in range(2):
            stray(far)
        return
    seed, each, step = map(int, numbers)
    found = [*cases(each, seed), *rows(EVERY[machine], seed % step, step)]
    for at in range(0, len(found), BATCH):
        judge(found[at:at + BATCH], EVERY[machine])
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
