"""A program of native code that is ready to run: its code in memory, its weights packed, its arrays placed."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...frozen import frozen
from ...errors import RunError
from ...types import Array
from ..memory import ALIGN, ARENAS
from ..steps import Program, Slot, Step, failing, fill
from . import pages
from .machine import Machine
from .objects import Library
from .places import Place
from .pool import prepared

if TYPE_CHECKING:
    from .program import Unit
    from .stamps import Stamp

Arrays = Sequence[Array | None]


@frozen(eq=False)
class Layout:
    """Where everything is: the order of units, each with its places, and the arena's size.

    `arrays` are all that has bytes of its own there, as (offset, bytes): as far as it is known.
    """

    units: list[Unit]
    places: dict[Slot, Place]
    scratch: dict[int, Place]
    size: int
    stamps: int | None = None       # where the stamps of a profiled program are
    arrays: tuple[tuple[int, int], ...] = ()

    def stamp(self, n: int) -> list[Stamp]:
        """The task that says when the unit of a number begins, and the one before ends; none without a profile."""
        if self.stamps is None:
            return []
        from .stamps import STAMP, Stamp         # which imports what writes code
        return [Stamp(self.stamps + STAMP * n)]

    @property
    def fault(self) -> int:
        """Where native code says what it met and cannot do: see `Workshop.check`."""
        return self.size - ALIGN


@frozen
class Segment:
    """A native segment by its symbol."""

    symbol: str
    waits: int      # barriers between its tasks


@frozen
class Native:
    """A native segment, ready to be called."""

    address: int
    waits: int      # barriers between its tasks


class Frame:
    """One arena with the arrays of inputs, outputs and NumPy steps cut out of it, used by one run at a time.

    `calls` are the parts of the program, each with what does it here; `only` is the one call there is, where it checks
    nothing. `way` is of who knows the arrays better. `kept` are the arena and the weights.
    """

    def __init__(self, owner: Ready) -> None:
        program, places = owner.program, owner.layout.places
        arena = pages.MEMORY.take(owner.layout.size, owner.layout.arrays)
        at, blob = arena.ctypes.data, owner.weights.ctypes.data
        arrays = dict(program.constants) | {
            s: p.of(arena, program.tensors[s].type.dtype) for s, p in places.items() if s in program.tensors}
        self.inputs = [None if i is None else arrays[i] for i in program.inputs]
        self.outputs = [arrays[i] for i in program.outputs]
        self.fault = arena[owner.layout.fault:owner.layout.fault + 8].view(np.int64)
        self.stamps = arena[owner.layout.stamps or owner.layout.fault:owner.layout.fault].view(np.uint64)
        self.calls: list[tuple[Native | Step, Callable[[], None]]] = [
            (part, prepared(part.address, at, blob, owner.threads, part.waits) if isinstance(part, Native) else partial(
                computed, part, *(arrays[i] for i in part.outs), *fill(part.args, arrays),
                *(np.empty(s, d) for s, d in part.scratch))) for part in owner.parts]
        self.only = self.calls[0][1] if len(self.calls) == 1 and isinstance(self.calls[0][0], Native) and not (
            owner.checks) else None
        self.way: Any = None
        self._checks = owner.checks
        self.kept = arena, owner.weights

    def go(self) -> None:
        """Do all of the program; raises `RunError`."""
        for part, call in self.calls:
            call()
            if isinstance(part, Native):
                self.look()

    def look(self) -> None:
        """Raise `RunError` where native code has met something that it cannot do."""
        if self._checks and self.fault[0]:
            number, value = failed(int(self.fault[0]))
            text, origin = self._checks[number - 1]
            raise RunError(text.format(value), origin)


def computed(step: Step, *arrays: Any) -> None:
    """Do a step in NumPy; raises `RunError`."""
    with failing(step.name, step.origin), np.errstate(all="ignore"):
        step.run(*arrays)


def failed(fault: int) -> tuple[int, int]:
    """The number of the check that failed, and the value that did, from what `tasks.tell` left: not 0."""
    return ~fault >> 32, (~fault & 0xFFFFFFFF) - (1 << 31)


class Ready:
    """What runs natively of a program, the steps that NumPy runs between, and all that they need.

    `images` are the object files, `parts` the segments in them and NumPy's steps, in order; `checks` are those of
    `Workshop.check`.
    """

    def __init__(self, program: Program, layout: Layout, threads: int, weights: Array,
                 checks: tuple[tuple[str, str], ...], parts: Sequence[Segment | Step], images: Sequence[bytes],
                 machine: Machine) -> None:
        self.program, self.layout, self.threads, self.weights = program, layout, threads, weights
        self.checks, self.segments, self.images = checks, parts, images
        symbols = [part.symbol for part in parts if isinstance(part, Segment)]
        library = Library(images, symbols, machine) if symbols else None
        self.parts: list[Native | Step] = []
        for part in parts:
            if isinstance(part, Step):
                self.parts.append(part)
            elif library is not None:
                self.parts.append(Native(library.address(part.symbol), part.waits))
        self._library = library
        self._idle: deque[Frame] = deque(maxlen=ARENAS)
        #: An idle frame, or IndexError; and a frame for the next run: what a thin run calls.
        self.pop, self.back = self._idle.pop, self._idle.append

    @property
    def arena(self) -> int:
        """The bytes that a run needs beside the weights."""
        return self.layout.size

    def run(self, inputs: Arrays) -> list[Array]:
        """The outputs, as new arrays."""
        frame = self.taken()
        for to, array in zip(frame.inputs, inputs, strict=True):
            if to is not None and array is not None:
                np.copyto(to, array)
        frame.go()
        found = [o.copy() for o in frame.outputs]
        self.back(frame)
        return found

    def taken(self) -> Frame:
        """A frame for one run; `back` has it again, if the run went well."""
        try:
            return self.pop()
        except IndexError:
            return Frame(self)
