"""Lifetimes as offsets: every array of a run in one arena."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import RunError
from ..frozen import frozen
from ..types import Shape
from .bind import Program, Slot
from .memory import ALIGN, HINT

#: Offsets and their sums are int64.
ADDRESSABLE = 1 << 62


@frozen
class Buffer:
    """A stretch of the arena as an array."""

    offset: int
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * self.dtype.itemsize

    def of(self, arena: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array in an arena."""
        return arena[self.offset:self.offset + self.nbytes].view(self.dtype).reshape(self.shape)


@frozen
class Plan:
    """Where the arrays of a program are: slots, and the scratch of each step, in an arena of `size` bytes."""

    size: int
    slots: Mapping[Slot, Buffer]
    scratch: tuple[tuple[Buffer, ...], ...]


@dataclass
class _Block:
    """Storage that some slots share: its size and the steps from the first write to the last read."""

    size: int
    first: int
    last: int
    offset: int = -1


def plan(program: Program, *, share: bool = True) -> Plan:
    """Offsets for every slot and scratch buffer; what is never alive at once may share bytes.

    With `share` off every array has bytes of its own, so that each can be looked at after a run.
    """
    last = _last_reads(program) if share else dict.fromkeys(program.tensors, len(program.steps))
    blocks: dict[Slot, _Block] = {}
    for i in program.inputs:
        if i is not None and i not in program.constants:
            blocks[i] = _Block(_size(program, i), -1, last.get(i, -1))
    scratch: list[list[_Block]] = []
    for n, step in enumerate(program.steps):
        shared = _taken(program, n, blocks, last) if share or step.view is not None else None
        for i in step.outs:
            if shared is not None:
                shared.last = max(shared.last, last.get(i, n))
                blocks[i], shared = shared, None
            else:
                blocks[i] = _Block(_size(program, i), n, last.get(i, n))
        scratch.append([_Block(math.prod(s) * d.itemsize, n, n) for s, d in step.scratch])
    everything = {id(b): b for b in (*blocks.values(), *(b for row in scratch for b in row))}
    size = _place(everything.values())
    return Plan(size, {i: Buffer(b.offset, program.tensors[i].shape, program.tensors[i].type.dtype)
                       for i, b in blocks.items()},
                tuple(tuple(Buffer(b.offset, s, d) for b, (s, d) in zip(row, step.scratch, strict=True))
                      for row, step in zip(scratch, program.steps, strict=True)))


def lifetimes(program: Program) -> dict[Slot, tuple[int, int]]:
    """The steps between which each array of the arena is needed: -1 for an input, the number of steps for an output."""
    first = {i: n for n, step in enumerate(program.steps) for i in step.outs}
    last = _last_reads(program)
    return {i: (first.get(i, -1), last.get(i, first.get(i, -1))) for i in program.tensors
            if i not in program.constants and (i in first or i in program.inputs)}


def _last_reads(program: Program) -> dict[Slot, int]:
    last = {i: n for n, step in enumerate(program.steps) for i in step.reads}
    return last | dict.fromkeys(program.outputs, len(program.steps))


def _taken(program: Program, n: int, blocks: Mapping[Slot, _Block], last: Mapping[Slot, int]) -> _Block | None:
    """The block that the first output of step n shares: that of its view, or one nobody reads afterwards."""
    step = program.steps[n]
    if step.view is not None:
        return blocks.get(step.view)
    size = _size(program, step.outs[0])
    for i in step.takes:
        if i in blocks and blocks[i].last <= n and blocks[i].size == size and _width(program, i) == _width(
                program, step.outs[0]) and step.reads.count(i) == 1:
            return blocks[i]
    return None


def _size(program: Program, i: Slot) -> int:
    t = program.tensors[i]
    return math.prod(t.shape) * t.type.dtype.itemsize


def _width(program: Program, i: Slot) -> int:
    return program.tensors[i].type.dtype.itemsize


def _place(blocks: Iterable[_Block]) -> int:
    """Give each block an offset, largest first, in the smallest gap that is free while it lives; the arena's size."""
    order = sorted(blocks, key=lambda b: (-b.size, b.first, b.last))
    if not order:
        return 0
    if sum(b.size for b in order) > ADDRESSABLE:
        raise RunError("the arrays need more bytes than have addresses", hint=HINT)
    first, last, high = (np.array(v) for v in zip(*((b.first, b.last, b.size) for b in order), strict=True))
    low = np.zeros_like(high)
    for n, block in enumerate(order):
        together = np.flatnonzero((first[:n] <= block.last) & (last[:n] >= block.first))
        block.offset = _gap(low[together], high[together], block.size)
        low[n] = block.offset
        high[n] += block.offset
    return -(-int(high.max()) // ALIGN) * ALIGN


def _gap(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], size: int) -> int:
    """Where the smallest gap of at least `size` bytes begins between stretches from low to high, or after them all."""
    order = np.argsort(low, kind="stable")
    free = np.maximum.accumulate(np.concatenate(([0], -(-high[order] // ALIGN) * ALIGN)))
    room = low[order] - free[:-1]
    fits = np.flatnonzero(room >= size)
    return int(free[fits[np.argmin(room[fits])]] if fits.size else free[-1])
