"""Programs kept with all that a run needs, so that another process runs the same file without reading its operations.

They lie in the cache of object code, under a hash of the file, of what it is compiled with and of this package. Their
code is trusted as that code is (see `cache`); what else they have is read as `records` writes it, or not at all. A
program is kept where it runs natively as a whole, but for the branches and loops that run graphs: those that have run
are kept with it. Where it does not, the model is, as a .nnx file: so the next process neither imports nor lowers.
"""
from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import sha256
from typing import Any

import numpy as np

from ...frozen import frozen
from ...errors import ArtifactError
from ...model import Model
from ...types import Array
from ..forks import beside
from ..outline import Outline, Shapes
from .cache import LIMIT, Cache, sources, user_cache
from .machine import Machine, host
from .pages import pages
from .ready import Ready
from .records import Kept, read, written
from .stored import joined, restored, sound, stored

#: Bytes of a file that are hashed at a time.
PIECE = 16 << 20
#: Bytes of packed weights from which on nobody waits until they are written; the process does when it ends.
SLOW = 8 << 20
#: Bytes of packed weights that are kept of a program at most.
LARGEST = LIMIT // 2


@frozen
class Keeper:
    """The entry of one file compiled in one way."""

    there: Cache
    name: str
    finished: bool                               # the file is such a model already

    def find(self, make: Callable[[], Model]) -> Outline | None:
        """The model with its program, as it was kept; None where it was not. `make` gives all of the model."""
        told = self.there.find(self.name)
        try:
            found = None if told is None else read(told)
        except ValueError:                               # it was written by something else
            return None
        weights = None if found is None else self.there.into(f"{self.name}.weights", pages)
        if found is None or weights is None or weights.nbytes != found.packed or not sound(found.program, found.packed):
            return None
        whole = cache(lambda: self.model() or make())
        return Outline(found.program.shapes, partial(restored, found.program, weights, whole), whole, found.rim,
                       found.inputs, found.outputs, found.operands)

    def model(self) -> Model | None:
        """The model that was kept without a program."""
        from ... import artifact
        data = self.there.find(f"{self.name}.model")
        try:
            return None if data is None else artifact.from_bytes(data)
        except ArtifactError:                            # it was written by something else
            return None

    def keep(self, model: Model | Outline, shapes: Shapes, program: Ready | None, *, again: bool = False) -> None:
        """Keep a program for inputs of these shapes, or the model, where that does not run natively as a whole.

        `again`: it was told of before, when less of it was there.
        """
        if program is not None and self._kept(model, shapes, program) or self.finished or again:
            return
        if isinstance(model, Model):
            from ... import artifact
            told = artifact.to_bytes(model)
            if len(told) <= LARGEST:
                self.there.keep(f"{self.name}.model", told)

    def _kept(self, model: Model | Outline, shapes: Shapes, program: Ready) -> bool:
        """Keep a program; whether it can be."""
        weights: list[Array] = []
        try:
            whole = stored(program, shapes, weights)
            data = joined(weights) if sum(w.nbytes for w in weights) <= LARGEST else None
            if data is None:
                return False
            told = written(Kept(model.rim, model.inputs, model.outputs,
                                {i: model.operands[i] for i in (*model.inputs, *model.outputs)}, whole, len(data)))
        except ValueError:                               # a part of it is NumPy's, or there is no way to write a value
            return False
        def entered() -> None:
            self.there.keep(f"{self.name}.weights", data)
            self.there.keep(self.name, told)
        if len(data) < SLOW:
            entered()
        else:
            beside(entered)
        return True


def keeper(data: Any, options: object, finished: bool = False) -> Keeper | None:
    """Where the program of a file's bytes, compiled with these options (by their repr), is kept; None where nowhere.

    `finished`: they are those of a .nnx file.
    """
    there, made_by = user_cache(), sources()
    if there is None or made_by is None:
        return None
    found = sha256()
    for part in (made_by, *parts(data, options, host())):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return Keeper(there, found.hexdigest()[:48], finished)


def parts(data: Any, options: object, machine: Machine) -> Iterator[bytes]:
    """All that makes a program beside the package, as bytes."""
    texts = (sys.version, np.__version__, machine.triple, machine.switches, repr(options))
    yield " ".join(texts).encode()
    found = sha256()
    for at in range(0, len(data), PIECE):
        found.update(memoryview(data)[at:at + PIECE])
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)              # its pages need not stay in memory for that
    yield found.digest()
