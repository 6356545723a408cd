"""Programs kept with all that a run needs, so that another process runs the same file without reading its operations.

They lie in the cache of object code, under a hash of the file, of what it is compiled with and of this package; what
is read there is trusted as that code is (see `cache`). A program is kept where it runs natively as a whole.
"""
from __future__ import annotations

import mmap
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache as once
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...model import Model
from ...types import Array, Shape
from ..bind import Program, Step
from ..outline import Outline
from .cache import LIMIT, Cache, user_cache
from .machine import Machine, host
from .pages import pages
from .ready import Layout, Ready

#: Bytes of a file that are hashed at a time.
PIECE = 16 << 20
#: Bytes of packed weights that are kept of a program at most.
LARGEST = LIMIT // 2


@dataclass(frozen=True)
class Keeper:
    """The entry of one file compiled in one way."""

    there: Cache
    name: str

    def find(self, make: Callable[[], Model]) -> Outline | None:
        """The model with its program, as it was kept; None where it was not."""
        told = self.there.find(self.name)
        weights = None if told is None else self.there.into(f"{self.name}.weights", pages)
        if told is None or weights is None:
            return None
        rim, inputs, outputs, operands, shapes, rest = pickle.loads(told)
        return Outline(rim, inputs, outputs, operands, shapes, Ready(*rest(weights)), make)

    def keep(self, model: Model, shapes: tuple[Shape | None, ...], program: Ready) -> None:
        """Keep a program for inputs of these shapes, where it runs natively as a whole."""
        slots = [s for s in (*program.program.inputs, *program.program.outputs) if s is not None]
        whole = not any(isinstance(part, Step) for part in program.segments)
        if not whole or program.weights.nbytes > LARGEST or any(s not in program.layout.places for s in slots):
            return
        operands = {i: model.operands[i] for i in (*model.inputs, *model.outputs)}
        rest = Rest(tuple(program.program.inputs), program.program.outputs,
                    {s: program.program.tensors[s] for s in slots}, {s: program.layout.places[s] for s in slots},
                    program.layout.size, program.threads, program.checks, tuple(program.segments),
                    tuple(program.images))
        told = pickle.dumps((model.rim, model.inputs, model.outputs, operands, shapes, rest))
        self.there.keep(f"{self.name}.weights", program.weights.data)
        self.there.keep(self.name, told)


@dataclass(frozen=True)
class Rest:
    """What `Ready` is made of, beside the weights."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    tensors: dict[int, Any]
    places: dict[int, Any]
    size: int
    threads: int
    checks: tuple[tuple[str, str], ...]
    segments: tuple[Any, ...]
    images: tuple[bytes, ...]

    def __call__(self, weights: Array) -> tuple[Any, ...]:
        """The arguments of `Ready`."""
        program = Program((), self.tensors, {}, self.inputs, self.outputs)
        return (program, Layout([], self.places, {}, self.size), self.threads, weights, self.checks, self.segments,
                self.images, host())


def keeper(data: Any, options: object) -> Keeper | None:
    """Where the program of a file's bytes, compiled with these options (by their repr), is kept; None where nowhere."""
    there, machine = user_cache(), host()
    if there is None:
        return None
    found = sha256()
    for part in parts(data, options, machine):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return Keeper(there, found.hexdigest()[:48])


def parts(data: Any, options: object, machine: Machine) -> Iterator[bytes]:
    """All that makes a program, as bytes."""
    texts = (sys.version, np.__version__, machine.triple, machine.switches, repr(options))
    yield " ".join(texts).encode()
    yield sources()
    found = sha256()
    for at in range(0, len(data), PIECE):
        found.update(memoryview(data)[at:at + PIECE])
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)              # its pages need not stay in memory for that
    yield found.digest()


@once
def sources() -> bytes:
    """This package's files and the compiler's by name, size and time of change, as the interpreter tells its own
    compiled files."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = find_spec("llvmlite")
    places = (root, *((found and found.submodule_search_locations) or ()))
    return "\n".join(sorted(line for place in places for line in told(place))).encode()


def told(folder: str) -> Iterator[str]:
    """A line for each source file in a folder and those in it."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from told(entry.path)
            elif entry.name.endswith(".py"):
                known = entry.stat()
                yield f"{entry.path} {known.st_size} {known.st_mtime_ns}"
