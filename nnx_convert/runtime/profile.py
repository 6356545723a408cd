"""Where the time of a run goes: a row for each thing that is done, natively or by NumPy."""
from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from ..frozen import frozen
from ..model import Model
from ..ops.macs import multiplied
from ..types import Array, Tensor
from .bind import Binder, Bound, Options, Program, Slot, Step, failing
from .blas import blas_threads
from .runner import Arrays, Compiled, Frame

if TYPE_CHECKING:
    from .ahead import Known
    from .codegen.program import NativeProgram, Unit
    from .codegen.ready import Frame as NativeFrame

#: Runs before any counts.
WARM_UP = 2
#: Seconds over which the ticks of native code are counted at least, to know how many make a second.
LONG = 0.02


@frozen
class Work:
    """What one row of a profile does: operations in order (fused ones together), where they stand in the source.

    `engine` is "native" or "numpy", or "graphs" of a branch or a loop, whose graphs have programs of their own; `bytes`
    are those of what it reads and writes, `macs` its multiply-adds. What has no origin is a copy that another operation
    wants.
    """

    operations: tuple[str, ...]
    origins: tuple[str, ...]
    engine: str
    bytes: int
    macs: int


@frozen
class Row:
    """Work, the median of its seconds, and what part that is of the whole run's."""

    work: Work
    seconds: float
    share: float

    @property
    def gflops(self) -> float:
        """Billions of multiplications and additions in a second."""
        return 2e-9 * self.work.macs / self.seconds if self.seconds > 0 else 0.0


@frozen
class Profile:
    """The rows in the order of a run, and the median of the whole run's seconds: copies of inputs and outputs, and
    the calls themselves, are in these alone."""

    seconds: float
    rows: tuple[Row, ...]

    @property
    def macs(self) -> int:
        """Multiply-adds of a run."""
        return sum(r.work.macs for r in self.rows)


def joined(works: Sequence[Work], taken: Sequence[Sequence[float]], whole: Sequence[float]) -> Profile:
    """The profile of works whose seconds are known for each run."""
    total = median(whole)
    middle = [median(times) for times in zip(*taken, strict=True)]
    return Profile(total, tuple(Row(w, s, s / total if total else 0.0) for w, s in zip(works, middle, strict=True)))


def of_numpy(compiled: Compiled, inputs: Arrays, runs: int) -> Profile:
    """The profile of a program that NumPy runs; raises `RunError` where a run fails."""
    frame, program = Frame(compiled.program, compiled.plan), compiled.program
    taken, whole = [], []
    with blas_threads(compiled.threads):
        for _ in range(WARM_UP + runs):
            begun = time.perf_counter()
            enter(frame.inputs, inputs)
            marks = [time.perf_counter()]
            for run, args, n in frame.calls:
                with failing(program.steps[n].name, program.steps[n].origin):
                    run(*args)
                marks.append(time.perf_counter())
            _ = [o.copy() for o in frame.outputs]
            whole.append(time.perf_counter() - begun)
            taken.append([b - a for a, b in pairwise(marks)])
    return joined([work_of(program, program.steps[n]) for _, _, n in frame.calls], taken[WARM_UP:], whole[WARM_UP:])


def of_native(program: NativeProgram, inputs: Arrays, runs: int) -> Profile:
    """The profile of a program that is compiled to be profiled; raises `RunError` where a run fails."""
    from .codegen.ready import Frame
    program.run(inputs)                          # what is wrong with the inputs is found here
    frame = Frame(program)
    units = [(n, u) for n, u in enumerate(program.layout.units) if not viewing(u)]
    found: list[Watched] = []
    while len(found) < WARM_UP + runs or sum(w.seconds for w in found) < LONG:
        found.append(watched(program, frame, inputs))
    second = tick(found)
    taken = [[w.steps[id(u)] if isinstance(u, Step) else second * (w.stamps[n + 1] - w.stamps[n]) for n, u in units]
             for w in found[WARM_UP:]]
    return joined([work_of(program.program, u) for _, u in units], taken, [w.seconds for w in found[WARM_UP:]])


@frozen
class Watched:
    """One run of native code: when it began, what it took, the stamps, and the seconds of NumPy's steps by their id."""

    begun: float
    seconds: float
    stamps: list[int]
    steps: dict[int, float]


def watched(program: NativeProgram, frame: NativeFrame, inputs: Arrays) -> Watched:
    """Run a profiled program once in a frame."""
    steps: dict[int, float] = {}
    entered = 0.0
    begun = time.perf_counter()
    enter(frame.inputs, inputs)
    for part, call in frame.calls:
        before = time.perf_counter()
        call()
        if isinstance(part, Step):
            steps[id(part)] = time.perf_counter() - before
        else:
            entered = entered or before
    _ = [o.copy() for o in frame.outputs]
    took, stamps = time.perf_counter() - begun, frame.stamps.tolist()
    for n, unit in enumerate(program.layout.units):
        if viewing(unit) and not stamps[n + 1]:          # what takes no time has no stamp
            stamps[n + 1] = stamps[n]
    return Watched(entered, took, stamps, steps)


def viewing(unit: Unit) -> bool:
    """Whether a unit is only another view of an array."""
    return isinstance(unit, Step) and unit.view is not None


def tick(found: Sequence[Watched]) -> float:
    """The seconds of a tick, by when native code was entered in the first run and in the last, and what it stamped."""
    first, last = found[0], found[-1]
    start = next(n for n, value in enumerate(first.stamps) if value)
    return (last.begun - first.begun) / (last.stamps[start] - first.stamps[start])


def one_after_the_other(first: Profile, then: Profile) -> Profile:
    """The profile of what two profiles are of."""
    total, rows = first.seconds + then.seconds, (*first.rows, *then.rows)
    return Profile(total, tuple(replace(r, share=r.seconds / total if total else 0.0) for r in rows))


def of_steps(model: Model, inputs: Sequence[Tensor | None], options: Options, known: Known) -> Profile:
    """The profile of one run of a model, of which some is known, that is bound, operation by operation, to inputs with
    values.

    Raises what binding does.
    """
    binder = Binder(model, options)
    binder.env.update(zip(model.inputs, inputs, strict=True))
    binder.env.update(known.values)
    works, taken = [], []
    for n, o in enumerate(model.operations):
        if n in known.done:
            continue
        before = time.perf_counter()
        binder.advance(n)
        taken.append(time.perf_counter() - before)
        args, outs = binder.checked(n, o)[0].args, [t for i in o.outputs if isinstance(t := binder.arg(i), Tensor)]
        moved = sum(size(t) for i in {*o.inputs, *o.outputs} if isinstance(t := binder.arg(i), Tensor))
        works.append(Work((o.op.name,), (binder.place(n),), "numpy", moved, multiplied(o.op, args, outs)))
    return joined(works, [taken], [sum(taken)])


def enter(to: Sequence[Array | None], inputs: Arrays) -> None:
    """Copy inputs to their places."""
    for place, array in zip(to, inputs, strict=True):
        if place is not None and array is not None:
            np.copyto(place, array)


def work_of(program: Program, unit: Unit) -> Work:
    """What a unit of a program does."""
    if isinstance(unit, tuple):
        return Work(("copy",), (), "native", 2 * size(program.tensors[unit[0]]), 0)
    members: tuple[Bound, ...] = (unit.bound,) if isinstance(unit, Step) and unit.bound else getattr(
        unit, "members", ())
    outs: tuple[Slot, ...] = unit.outs if isinstance(unit, Step) else unit.outputs
    moved = sum(size(program.tensors[s]) for s in {*unit.reads, *outs})
    return Work(tuple(b.op.name for b in members), tuple(b.origin for b in members),
                "native" if not isinstance(unit, Step) else "graphs" if unit.calls else "numpy", moved,
                sum(multiplied(b.op, b.args, b.outs) for b in members))


def macs(program: Program) -> int:
    """The multiply-adds of a run of a program."""
    return sum(multiplied(b.op, b.args, b.outs) for step in program.steps if (b := step.bound) is not None)


def size(t: Tensor) -> int:
    """The bytes of a tensor whose sizes are known."""
    return t.size * t.type.dtype.itemsize
