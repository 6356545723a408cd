"""What a family of native kernels is, and the registry of them.

A family says which operations it takes at which shapes, and makes a `Task` of one: a value that is all numbers,
so that equal tasks are equal code, with the way to write it as a function. Its weights are packed when it is made.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from importlib import import_module
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from ...frozen import frozen
from ...schema import OPS, OpDef
from ...types import BYTES, F16, Array, Tensor, Type
from ..bind import Bound, Slot
from . import pages
from .ir import Function, Module
from .machine import Machine
from .places import Border, Place, dense_strides

#: Arrays of the weights start at multiples of this many bytes.
ALIGN = 64
#: Arrays of an operation at most: what LLVM takes for its code grows with their square.
MOST_ARRAYS = 512
Found = TypeVar("Found")


class Task(Protocol):
    """One native function: `emit` writes it and gives its name; it takes `ir.SHARED`. Its repr tells all of it."""

    def emit(self, m: Module) -> str:
        """Write the function."""


@frozen
class Phases:
    """Tasks of one group, each of which needs all of what the one before it wrote."""

    tasks: tuple[Task, ...]


@frozen(eq=False)
class Group:
    """Operations that one function does: the `head`, and what is done to its result before that is stored."""

    head: Bound
    tail: tuple[Bound, ...] = ()

    @property
    def family(self) -> Family:
        """How it is done: as its head is. Raises `TypeError` where that has no native code."""
        found = family_of(self.head)
        if found is None:
            raise TypeError(self.head.op.name)
        return found

    @property
    def members(self) -> tuple[Bound, ...]:
        """All of them, in order."""
        return self.head, *self.tail

    @property
    def outputs(self) -> tuple[Slot, ...]:
        """The slots it writes."""
        return self.members[-1].outputs

    @property
    def outs(self) -> tuple[Tensor, ...]:
        """What it writes."""
        return self.members[-1].outs

    @property
    def reshaped(self) -> bool:
        """Whether what it writes has another shape than what its head gives."""
        return len(self.head.outs) == 1 and self.outs[0].shape != self.head.outs[0].shape and (
            self.outs[0].size == self.head.outs[0].size)

    @property
    def reads(self) -> tuple[Slot, ...]:
        """The slots it reads, without those that only it knows."""
        inner = {s for b in self.members[:-1] for s in b.outputs}
        return tuple(s for b in self.members for s in slots_of(b) if s not in inner)


def tell(f: Function, number: int, value: str, fault: int) -> None:
    """Emit what says that a value (32 bits) failed a check.

    Whichever thread meets it first, one stays: the complement of number << 32 | value + 2 ** 31, as the largest of all
    without a sign; 0 is none. `ready.failed` reads it.
    """
    low = f.let(f"xor i32 {value}, {-1 << 31}")
    key = f.let(f"or i64 {f.let(f'zext i32 {low} to i64')}, {number << 32}")
    f.let(f"atomicrmw umax ptr {f.at('%arena', fault)}, i64 {f.let(f'xor i64 {key}, -1')} monotonic")


@dataclass
class Workshop:
    """Where tasks are made: the machine, the places of slots, and the weights so far."""

    machine: Machine
    places: Mapping[Slot, Place]
    constants: Mapping[Slot, Array]
    fault: int = 0
    weights: list[tuple[int, Array]] = field(default_factory=list)
    used: int = 0
    checks: list[tuple[str, str]] = field(default_factory=list)
    _kept: dict[Slot, Place] = field(default_factory=dict)

    def check(self, text: str, origin: str) -> int:
        """The number of a check that code makes of values of a run.

        Where a value fails it, code `tell`s it and goes on with another one; the run ends with a `RunError` of the
        text, with the value in place of {}, and the origin: of the first check that fails, the least such value.
        """
        self.checks.append((text, origin))
        return len(self.checks)

    def pack(self, *arrays: Array) -> int:
        """Add arrays to the weights, without a gap between them; the offset in bytes.

        They are copied once, by `blob`, each in the order of its indices: a view need not lie so.
        """
        offset = at = pages.MEMORY.begin(self.used, sum(data.nbytes for data in arrays))
        for data in arrays:
            self.weights.append((at, data))
            at += data.nbytes
        self.used = -(-at // ALIGN) * ALIGN
        return offset

    def place(self, slot: Slot) -> Place:
        """Where a slot is; a constant is added to the weights as it is."""
        if slot in self.places:
            return self.places[slot]
        if slot not in self._kept:
            data = self.constants[slot]
            strides = dense_strides(data.shape, data.itemsize)
            self._kept[slot] = Place("%weights", self.pack(data), data.shape, strides, data.itemsize)
        return self._kept[slot]

    def blob(self, slack: int) -> Array:
        """All weights as bytes, with so many more behind them."""
        return pages.MEMORY.filled(self.used + slack, self.weights)


def _no_border(_: Bound) -> Mapping[Slot, Border]:
    return {}


def _never(_: Group, __: Bound, ___: Machine) -> bool:
    return False


def _always(_: Group) -> bool:
    return True


def _nothing(_: Group, __: Machine) -> int:
    return 0


@frozen
class Family:
    """How operations of some kinds are done natively.

    `takes`: whether it does an operation (at these shapes and types; constants have `Tensor.data`). `make`: the task,
    or several in order, of a group it heads. `border`: the borders it wants around images it reads. `scratch`: bytes
    it wants for each thread, at the place with the slot `SCRATCH`. `strided`: whether it reads and writes images that
    have a border.
    `fuses`: whether the next operation, which alone reads the group's one result, can be done with it; `whole`:
    whether what became of that is done as it is, or only where more follows. `retypes`: whether `takes` looks at the
    types of the outputs, too; else it is asked only where they are those that follow from the arguments.
    """

    takes: Callable[[Bound, Machine], bool]
    make: Callable[[Workshop, Group], Task | Phases]
    border: Callable[[Bound], Mapping[Slot, Border]] = _no_border
    scratch: Callable[[Group, Machine], int] = _nothing
    strided: bool = False
    fuses: Callable[[Group, Bound, Machine], bool] = _never
    whole: Callable[[Group], bool] = _always
    retypes: bool = False

    def does(self, b: Bound, machine: Machine) -> bool:
        """Whether it does an operation, whose outputs a model may have given other types."""
        return (self.retypes or typed(b)) and self.takes(b, machine)


#: The slot of a group's scratch among its places.
SCRATCH: Slot = -1
#: The modules with families, in order, and the modules in `ops` of the operations that these are for.
MODULES: Mapping[str, str] = {
    "dense": "conv", "winograd": "conv", "depthwise": "conv", "elements": "elementwise host host_math ex functions",
    "folds": "image reduce norm", "copies": "shape", "layouts": "shape image ex cutting host",
    "edges": "shape cutting image", "matmul": "conv host", "bytes": "conv", "sums": "elementwise",
    "depthwise_bytes": "conv", "windows": "image reduce", "grouped": "conv", "images": "image",
    "gathers": "gather ex host indexing", "values": "elementwise host convert ex functions host_math",
    "resized": "image", "cells": "rnn recurrent", "gru": "rnn_nd", "intcells": "rnn recurrent", "svdf": "rnn",
    "bytecells": "grids", "reductions": "ex reduce norm", "curves": "norm", "tabled": "elementwise convert",
    "intsoftmax": "norm", "hybrid": "hybrid", "hybridphases": "hybrid", "rescaled": "host",
    "detections": "detect custom_vision", "extremes": "reduce", "trees": "classical", "running": "host_math folds",
    "fourier": "host custom_signal", "magnitudes": "host", "signals": "custom_signal", "shorts": "elementwise shifts",
    "columns": "norm", "ranks": "reduce", "classes": "indexing ex", "shortconv": "conv host",
    "lookups": "elementwise host host_math convert ex shape", "sparse": "conv", "onehot": "elementwise ex",
    "nibbles": "conv", "pruned": "conv", "bytegroups": "conv", "scatters": "indexing host",
    "rewrites": "host_arrays indexing", "byteproducts": "conv host", "responses": "norm", "multiples": "conv",
    "samples": "sampling"}


@frozen
class Native:
    """A family of some operations, as a module lists it in `NATIVE`: `joined` gives what becomes of the family that
    these have of the modules before, if any."""

    ops: tuple[OpDef, ...]
    joined: Callable[[Family | None], Family]


def native(family: Family, *ops: OpDef, first: bool = False, of_bytes: bool = False, otherwise: bool = False) -> Native:
    """The family of these operations.

    `first`: where it takes them, whatever other family they have. `otherwise`: where the family they have, if any, does
    not take them. `of_bytes`: where their results are bytes on a grid.
    """
    def joined(there: Family | None) -> Family:
        if there is None or not (first or of_bytes or otherwise):
            return family
        return beside(there, family) if of_bytes else either(family, there) if first else either(there, family)
    return Native(ops, joined)


def either(one: Family, other: Family) -> Family:
    """Two families as one: the second does what the first does not take. Their images have the borders of both."""
    def of(b: Bound, machine: Machine) -> Family:
        return one if one.does(b, machine) else other

    def border(b: Bound) -> Mapping[Slot, Border]:
        found = dict(other.border(b))
        for slot, mine in one.border(b).items():
            found[slot] = found.get(slot, mine).joined(mine) or mine
        return found
    return Family(lambda b, m: one.does(b, m) or other.does(b, m),
                  lambda w, g: of(g.head, w.machine).make(w, g), border,
                  scratch=lambda g, m: of(g.head, m).scratch(g, m), strided=one.strided and other.strided,
                  fuses=lambda g, b, m: of(g.head, m).fuses(g, b, m), whole=lambda g: one.whole(g) and other.whole(g),
                  retypes=True)


def beside(plain: Family, of_bytes: Family) -> Family:
    """Two families as one: the second does what results in bytes on a grid."""
    def of(b: Bound) -> Family:
        return of_bytes if b.outs[0].type in BYTES else plain
    return Family(lambda b, m: of(b).does(b, m), lambda w, g: of(g.head).make(w, g), lambda b: of(b).border(b),
                  lambda g, m: of(g.head).scratch(g, m), plain.strided, lambda g, b, m: of(g.head).fuses(g, b, m),
                  lambda g: of(g.head).whole(g), retypes=True)


def family_of(b: Bound) -> Family | None:
    """The family of an operation, or of what it is a twin of; None where it has no native code."""
    name = kind(b.op)
    if F16 in types_of(b):
        from . import halves
        if name in halves.NAMES:
            return halves.FAMILY
    return family_named(name)


@cache
def family_named(name: str) -> Family | None:
    """The family of the table's operation of a name, if any; the modules that have one for it are imported."""
    op, found = OPS.get(name), None
    for module, served in MODULES.items():
        if op is not None and op.family in served.split():
            for each in import_module(f".{module}", __package__).NATIVE:
                if op in each.ops:
                    found = each.joined(found)
    return found


def types_of(b: Bound) -> set[Type]:
    """The types of what an operation reads and gives."""
    read = (v for n in b.slots for v in (b.args[n] if isinstance(b.args[n], tuple) else (b.args[n],)))
    return {t.type for t in (*read, *b.outs) if isinstance(t, Tensor)}


def kind(op: OpDef) -> str:
    """The name under which an operation has a family: its own, or that of what it is a twin of."""
    names = [o.name for o in op.versions]
    return next((name for name in names if family_named(name) is not None), names[-1])


def remembered(find: Callable[[Bound, Machine], Found]) -> Callable[[Bound, Machine], Found]:
    """A function that looks at weights, done once for each operation and machine: a family is asked dozens of times."""
    known: WeakKeyDictionary[Bound, dict[Machine, Found]] = WeakKeyDictionary()

    @wraps(find)
    def found(b: Bound, machine: Machine) -> Found:
        there = known.setdefault(b, {})
        if machine not in there:
            there[machine] = find(b, machine)
        return there[machine]
    return found


def taken(b: Bound, machine: Machine) -> bool:
    """Whether an operation is done natively; one on very many arrays is not, whose code is longer than its run."""
    found = family_of(b)
    return found is not None and len(slots_of(b)) + len(b.outputs) <= MOST_ARRAYS and found.does(b, machine)


def typed(b: Bound) -> bool:
    """Whether the outputs have the types that follow from the arguments: a model may ask the host for others."""
    return not b.op.host or [t.type for t in b.op.infer(dict(b.args), len(b.outs))] == [t.type for t in b.outs]


def slots_of(b: Bound) -> list[Slot]:
    """The slots an operation reads, in the order of its arguments."""
    return [s for v in b.slots.values() for s in flat(v)]


def flat(value: Slot | Sequence[object] | None) -> list[Slot]:
    """Every slot in a structure of slots."""
    if isinstance(value, tuple):
        return [s for v in value for s in flat(v)]
    return [value] if isinstance(value, int) else []
