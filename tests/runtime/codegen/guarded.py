"""Native code in memory where nobody may touch the pages between arrays; run by itself, since a stray access ends the
process.

    python guarded.py MACHINE SEED EACH STEP     # so many cases of a family, and one of so many of the table's rows

prints each case before it runs and what is wrong with it behind that; the last line is `done`. With `stray` in place
of the numbers it does what no code may do.
"""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

from guards import Guarded
from natively import EVERY, Array
from placed import Case, Placed, cases, rows, wrong

from nnx_convert.runtime.blas import cores
from nnx_convert.runtime.codegen import pages
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.objects import Library, compiled
from nnx_convert.runtime.codegen.places import SLACK
from nnx_convert.runtime.codegen.pool import prepared

#: Programs that are compiled together.
BATCH = 200


def outputs(program: Placed, library: Library, segments: Sequence[tuple[str, int]]) -> list[Array]:
    """What a program gives in guarded memory."""
    arena = program.memory.take(program.layout.size, program.layout.arrays)

    def called(n: int) -> None:
        name, waits = segments[n]
        prepared(library.address(name), arena.ctypes.data, program.weights.ctypes.data, program.threads, waits)()
    return program.run(arena, called)


def placed(case: Case, machine: Machine, threads: int, behind: bool) -> Placed:
    """A program for guarded memory."""
    pages.MEMORY = Guarded(behind)
    return Placed(case, machine, threads)


def judge(found: Sequence[Case], machine: Machine) -> None:
    """Run cases, by one thread or two, with guards behind their arrays or before them; say what is wrong."""
    programs = [placed(case, machine, 1 + n % 2, bool(n // 2 % 2)) for n, case in enumerate(found)]
    m = Module(machine)
    segments = [p.emit(m, f"model{n}") for n, p in enumerate(programs)]
    library = Library(compiled(m.texts(cores()), machine), [name for part in segments for name, _ in part], machine)
    for n, (program, part) in enumerate(zip(programs, segments, strict=True)):
        print(program.case.name, flush=True)
        if why := wrong(outputs(program, library, part), program.case.wanted()):
            print(f"    {why}")
        for wild in program.case.wild():
            outputs(placed(wild, machine, program.threads, bool(n // 2 % 2)), library, part)


def stray(far: int) -> None:
    """Read so many bytes behind the slack of an arena's array."""
    memory = Guarded(True)
    at = memory.begin(0, 640)
    arena = memory.take(at + 640 + SLACK, [(at, 640)])
    print(ctypes.c_ubyte.from_address(arena.ctypes.data + at + 640 + SLACK - 1 + far).value)


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
