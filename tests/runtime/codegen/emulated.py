"""Native code for another architecture: linked by a cross compiler, run by an emulator, in memory shared with it."""
from __future__ import annotations

import mmap
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from cross import COMPILER, EMULATOR
from natively import Array
from placed import Placed

from nnx_convert.runtime.blas import cores
from nnx_convert.runtime.codegen.ir import Module
from nnx_convert.runtime.codegen.machine import Machine
from nnx_convert.runtime.codegen.objects import compiled

MAIN = Path(__file__).with_name("segments.c")
ALIGN = 64


@dataclass(frozen=True)
class Room:
    """A file of whole pages that two processes map, and where in it an array begins."""

    path: Path
    size: int
    offset: int
    array: Array

    @property
    def told(self) -> tuple[object, ...]:
        """How the other process is told of it."""
        return self.path, self.size, self.offset

    @classmethod
    def of(cls, path: Path, size: int, at_end: bool) -> Room:
        """Room for so many bytes, at the end of its pages or at their beginning, aligned as native code expects."""
        whole = max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE
        offset = (whole - size) // ALIGN * ALIGN if at_end else 0
        path.write_bytes(bytes(whole))
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), whole)
        return cls(path, whole, offset, np.frombuffer(memory, np.uint8)[offset:offset + size])


class Emulated:
    """Programs in one executable for another machine."""

    def __init__(self, programs: Sequence[Placed], machine: Machine, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        m = Module(machine)
        self.segments = [p.emit(m, f"model{n}") for n, p in enumerate(programs)]
        names = [name for found in self.segments for name, _ in found]
        objects = []
        for n, image in enumerate(compiled(m.texts(cores()), machine)):
            objects.append(folder / f"code{n}.o")
            objects[-1].write_bytes(image)
        table = folder / "table.c"
        heads = "".join(f"void {name}(void *, void *, long, long, void *, long);\n" for name in names)
        table.write_text(f"{heads}void (*const segments[])(void *, void *, long, long, void *, long) = "
                         f"{{{', '.join(names) or '0'}}};\n")
        words = [COMPILER, "-std=gnu11", "-O1", "-Wall", "-Werror", "-static", "-pthread", "-o", str(folder / "run"),
                 *map(str, (MAIN, table, *objects))]
        subprocess.run(words, check=True, capture_output=True, text=True)

    @contextmanager
    def started(self, *, at_end: bool = True) -> Iterator[Iterator[list[Array]]]:
        """The outputs of the programs one after the other, each computed when it is asked for.

        `at_end`: arenas and weights end where what may not be touched begins; else they begin where it ends.
        """
        with subprocess.Popen([EMULATOR, "-cpu", "max", self.folder / "run"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            yield self._all(process, at_end)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait() == 0

    def _all(self, process: subprocess.Popen[str], at_end: bool) -> Iterator[list[Array]]:
        first = 0
        for program, segments in zip(self.programs, self.segments, strict=True):
            arena = Room.of(self.folder / "arena", program.layout.size, at_end)
            weights = Room.of(self.folder / "weights", program.weights.size, at_end)
            weights.array[:] = program.weights
            calls = [(first + n, program.threads, waits, *arena.told, *weights.told)
                     for n, (_, waits) in enumerate(segments)]
            yield program.run(arena.array, partial(_call, process, program.case.name, calls))
            first += len(segments)


def _call(process: subprocess.Popen[str], name: str, calls: Sequence[tuple[object, ...]], number: int) -> None:
    """Have a part of a program run; raises `AssertionError` naming the program where the process ends with it."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(" ".join(map(str, calls[number])) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    assert answer == "done\n", f"{name}: ended with {process.wait()}"
