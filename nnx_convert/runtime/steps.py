"""What a program is: operations at known shapes, steps in order, and what they are compiled with.

A program that was kept is run with no more than this: neither the table of operations nor the kernels are read.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..frozen import frozen
from ..errors import RunError
from ..types import Array, Shape, Tensor, rebuilt
from .memory import exhausted

if TYPE_CHECKING:
    import numpy as np

    from ..model import Model
    from ..schema import OpDef
    from .kernel import Call, Run
    from .outline import Sketch

#: Where an array of a step comes from: an operand by its index.
Slot = int
#: What NumPy raises where a kernel's run meets values that it cannot take, or types that it will not cast.
FAILURES = (ValueError, LookupError, ArithmeticError, MemoryError, TypeError)


class Dynamic(Exception):
    """A size or a constant of this model follows from a value that only a run computes."""


@frozen(eq=False)
class Bound:
    """One operation at known shapes: its canonical arguments by name, its outputs, and the slots of its arrays.

    `slots` has the structure of each argument that is a tensor, with the slot in place of it.
    """

    op: OpDef
    args: Mapping[str, Any]
    outs: tuple[Tensor, ...]
    slots: Mapping[str, Any]
    outputs: tuple[Slot, ...]
    origin: str


@frozen
class Step:
    """One operation, prepared: `run(*outputs, *arguments, *scratch)`.

    `args` has the structure of the arguments with slots for arrays; `view` is the slot whose bytes the
    output is, `takes` the slots whose storage it may take over. `bound` says what it does; where another backend
    does it, it is `elsewhere`, and `run` does nothing. `calls` are the graphs it runs, by the names of its arguments.
    """

    name: str
    origin: str
    run: Run
    outs: tuple[Slot, ...]
    args: tuple[Any, ...]
    scratch: tuple[tuple[Shape, np.dtype[Any]], ...]
    view: Slot | None = None
    takes: tuple[Slot, ...] = ()
    product: int = 0                         # multiplications of its largest matrix product
    bound: Bound | None = None
    elsewhere: bool = False
    calls: Mapping[str, Call] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[Slot, ...]:
        """The slots of its arguments."""
        return tuple(slots(self.args))


@frozen
class Program:
    """Steps in order, the tensors they compute, and the constants: all shapes are known."""

    steps: tuple[Step, ...]
    tensors: Mapping[Slot, Tensor]
    constants: Mapping[Slot, Array]
    inputs: tuple[Slot | None, ...]          # None: an input that is left out, or that an inner program has no use for
    outputs: tuple[Slot, ...]
    states: tuple[tuple[Slot, Slot], ...] = ()      # inputs, each with the output that is its value in the next run
    inner: bool = False                      # see Options: inputs hold to the end of a run what is put there


@frozen
class Options:
    """What a program is compiled with. `call` makes a subgraph callable; `tell` is called when one has been compiled.

    `elsewhere` tells operations that another backend runs: their kernels are not prepared, and their steps do nothing.
    """

    threads: int = 1
    call: Callable[[Model | Sketch, Options], Call] | None = None
    tell: Callable[[], None] | None = None
    once: bool = False                       # for a single run: what draws is computed while binding, too
    elsewhere: Callable[[Bound], bool] | None = None
    sets: int | None = None                  # of input shapes for which there is an elsewhere; None: all
    fast: bool = False                       # bytes are rounded elsewhere as its quickest code does it
    inner: bool = False                      # for a graph that another one runs, many times on much the same inputs


def slots(args: Any) -> list[Slot]:
    """Every slot in a structure of arguments."""
    if isinstance(args, tuple):
        return [s for a in args for s in slots(a)]
    return [args] if isinstance(args, int) else []


def fill(args: Any, arrays: Mapping[Slot, Array]) -> Any:
    """The structure with arrays for slots."""
    if isinstance(args, tuple):
        return rebuilt(args, [fill(a, arrays) for a in args])
    return None if args is None else arrays[args]


def failed(name: str, error: Exception, origin: str) -> RunError:
    """What to raise where an operation's kernel raised one of `FAILURES`."""
    if isinstance(error, MemoryError):
        return exhausted(error).at(origin)
    return RunError(f"{name} failed: {error}", origin)


@contextmanager
def failing(name: str, origin: str) -> Iterator[None]:
    """What NumPy or a kernel raises where values do not fit, as a `RunError` of an operation."""
    try:
        yield
    except RunError as error:
        raise error.at(origin) from error
    except FAILURES as error:
        raise failed(name, error, origin) from error
