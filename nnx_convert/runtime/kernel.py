"""What a kernel is, and the registry of them.

A kernel is prepared once per step and run many times:

    @kernel(elementwise.ADD, elementwise.SUB)
    def ADD(site: Site, x: Tensor, y: Tensor, act: int) -> Run:
        low, high = bounds(act)
        def run(out: Array, x: Array, y: Array) -> None:
            ...
        return run

The outer function has the argument names of the op table and is told all that is known before a run: types,
concrete shapes, quantisation, constants (`x.data`). It does everything that needs doing once (packing
weights, tables, multipliers, choosing a way) and gives the inner one, which is handed arrays: the outputs,
then every tensor argument in the table's order (a variadic one as a tuple, a record as that record, None
where left out), then the scratch buffers the site was asked for. It writes all of its outputs and nothing
else, and it may be run by several threads at once, each with arrays of its own.

Where only values tell the sizes of the outputs (`sized`), the inner function is handed the arguments alone and
gives the outputs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from ..frozen import frozen
from ..schema import OpDef
from ..types import Array, Shape, Tensor
from .control import fitted

Run = Callable[..., None]
#: What a kernel with outputs of any size gives instead: arrays in, the outputs out.
Compute = Callable[..., Sequence[Array]]
#: The graph argument of an IF or a WHILE as a kernel calls it: arrays in, arrays out.
Call = Callable[[Sequence[Array | None]], list[Array]]


class NeedsValue(Exception):
    """A kernel cannot be prepared before an argument's value is known."""


def ints(x: Tensor) -> tuple[int, ...]:
    """The elements of an index tensor, flattened; raises `NeedsValue` where it is no constant."""
    if x.data is None and 0 not in x.shape:
        raise NeedsValue
    return x.ints()


@dataclass
class Site:
    """Where a kernel is prepared: what it needs to know beside its arguments."""

    outs: tuple[Tensor, ...]
    threads: int = 1
    relaxed: bool = False
    calls: dict[str, Call] = field(default_factory=dict[str, Call])     # by the name of a graph argument
    buffers: list[tuple[Shape, np.dtype[Any]]] = field(default_factory=list[tuple[Shape, np.dtype[Any]]])
    largest: int = 0                                    # multiplications of the largest matrix product

    @property
    def out(self) -> Tensor:
        """The first output."""
        return self.outs[0]

    def scratch(self, shape: Shape, dtype: Any = np.float32) -> None:
        """Ask for a buffer that lives as long as one run of this step; they are handed over in this order."""
        self.buffers.append((tuple(int(n) for n in shape), np.dtype(dtype)))

    def product(self, rows: int, depth: int, columns: int) -> None:
        """Tell of a matrix product that a run makes, for how many threads are worth it."""
        self.largest = max(self.largest, rows * depth * columns)


@frozen
class Inner:
    """The graphs that give an operation's outputs: the arguments that they are, and the one that holds their inputs.

    `again`: what they give is an input of theirs next time, so it has to keep its sizes.
    """

    graphs: tuple[str, ...]
    given: str
    again: bool = False


@frozen
class Kernel:
    """A registered kernel. `inplace`: arguments whose storage the first output may take over."""

    prepare: Callable[..., Run]
    inplace: tuple[str, ...] = ()
    view: str = ""                       # the argument whose bytes are the output's; nothing runs then
    compute: Callable[..., Compute] | None = None       # prepares where the sizes of the outputs are open
    hollow: bool = False                 # the outputs follow from the arguments' shapes, whatever their elements are
    inner: Inner | None = None           # where graphs give the outputs


KERNELS: dict[str, Kernel] = {}
Prepare = TypeVar("Prepare", bound=Callable[..., Run])
Sized = TypeVar("Sized", bound=Callable[..., Compute])


def kernel(*ops: OpDef, inplace: Sequence[str] = (), view: str = "", hollow: bool = False
           ) -> Callable[[Prepare], Prepare]:
    """Register the kernel of these operations.

    `inplace`: the first output may be written over these arguments element by element. `view`: the output is
    that argument's bytes in another shape. `hollow`: it looks at the shapes of its arguments only, so that it is
    computed as soon as these are known.
    """
    def register(prepare: Prepare) -> Prepare:
        _register(ops, Kernel(prepare, tuple(inplace), view, hollow=hollow))
        return prepare
    return register


def sized(*ops: OpDef, inner: Inner | None = None) -> Callable[[Sized], Sized]:
    """Register the kernel of these operations, whose outputs' sizes follow from values.

    Its run gives them as arrays of their types. Where a model says the sizes, a run that finds others raises
    `ValueError`. `inner`: the graphs that give them.
    """
    def register(compute: Sized) -> Sized:
        _register(ops, Kernel(_fitted(compute), compute=compute, inner=inner))
        return compute
    return register


def _register(ops: Sequence[OpDef], kernel: Kernel) -> None:
    for op in ops:
        if op.name in KERNELS:
            raise ValueError(f"{op.name} has a kernel already")
        KERNELS[op.name] = kernel


def _fitted(compute: Callable[..., Compute]) -> Callable[..., Run]:
    """The kernel where the sizes are known: its outputs are copied to their places."""
    @wraps(compute)
    def prepare(site: Site, **args: Any) -> Run:
        return fitted(compute(site, **args), len(site.outs))
    return prepare


def kernel_of(op: OpDef) -> Kernel | None:
    """The kernel of an operation: its own, or that of the operation it is a twin of.

    Kernels stand in the module named like the op's, which is imported when one of its kernels is asked for.
    """
    import_module(f".kernels.{op.family}", __package__)
    return next((KERNELS[o.name] for o in op.versions if o.name in KERNELS), None)
