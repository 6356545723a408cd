"""Running a model on arrays of its operands' types: a program per set of shapes, an arena per run at a time."""
from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import NnxError, RunError
from ..garbage import unsearched
from ..model import Model
from ..resources import limited, limits, tick, timed
from ..types import OBJECTS, Array, Tensor
from .blas import blas_threads, cores, threads_for
from .forks import Locked
from .memory import ALIGN, ARENAS, affordable_arena, exhausted
from .outline import Outline, Shapes, Sketch
from .steps import FAILURES, Dynamic, Options, Program, failed, fill

if TYPE_CHECKING:
    from .ahead import Known, Started
    from .codegen.program import NativeProgram
    from .codegen.ready import Ready
    from .kernel import Call, Run
    from .plan import Plan
    from .footprint import Footprint
    from .profile import Profile

#: Programs kept, one per set of input shapes.
PROGRAMS = 8

Arrays = Sequence[Array | None]


class Keep(Protocol):
    """What is told of a model, the shapes of its inputs, and the native program for them, if there is one; `again`
    when more of the graphs that it runs have programs."""

    def __call__(self, model: Model | Outline, shapes: Shapes, program: Ready | None, *, again: bool = False) -> None:
        ...


def shapes_of(inputs: Arrays) -> Shapes:
    """By what programs are known."""
    return tuple([None if a is None else a.shape for a in inputs])


class Frame:
    """One arena with every step's arrays cut out of it, used by one run at a time."""

    def __init__(self, program: Program, layout: Plan) -> None:
        store = np.empty(layout.size + ALIGN, np.uint8)
        start = -store.ctypes.data % ALIGN
        arena = store[start:start + layout.size]
        arrays = dict(program.constants) | {i: b.of(arena) for i, b in layout.slots.items()}
        self.inputs = [None if i is None else arrays[i] for i in program.inputs]
        self.outputs = [arrays[i] for i in program.outputs]
        self.calls: list[tuple[Run, tuple[Any, ...], int]] = [
            (s.run, (*(arrays[i] for i in s.outs), *fill(s.args, arrays), *(b.of(arena) for b in row)), n)
            for n, (s, row) in enumerate(zip(program.steps, layout.scratch, strict=True)) if s.view is None]


class Compiled:
    """A program with its plan, and the frames it runs in."""

    def __init__(self, program: Program, threads: int = 0) -> None:
        from .plan import plan
        self.program, self.plan, self._limits = program, plan(program), limits()
        self.threads = threads_for(threads, max((s.product for s in program.steps), default=0))
        affordable_arena(self.plan.size, program.constants.values())
        self._idle: deque[Frame] = deque(maxlen=ARENAS)

    @property
    def arena(self) -> int:
        """The bytes that a run needs beside the weights."""
        return self.plan.size

    def run(self, inputs: Arrays) -> list[Array]:
        """The outputs, as new arrays."""
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = Frame(self.program, self.plan)
        for to, array in zip(frame.inputs, inputs, strict=True):
            if to is not None and array is not None:
                np.copyto(to, array)
        n = 0
        try:
            with (limited(self._limits), timed("the run"), blas_threads(self.threads), np.errstate(all="ignore")):
                for run, args, n in frame.calls:  # noqa: B007  (n names the step that failed)
                    tick()
                    run(*args)
        except RunError as error:
            raise error.at(self.program.steps[n].origin) from error
        except FAILURES as error:
            step = self.program.steps[n]
            raise failed(step.name, error, step.origin) from error
        found = [o.copy() for o in frame.outputs]
        self._idle.append(frame)
        return found


class Runner(Locked):
    """A model that runs on arrays of its operands' types and shapes; None is an optional input left out."""

    def __init__(self, model: Model | Sketch, options: Options, keep: Keep | None = None, *, part: bool = False
                 ) -> None:
        """`keep` is told of the first program, and for which shapes it is; a `part` is not taken apart again."""
        super().__init__()
        self._known, self._keep, self._limits, self._is_part = model, keep, limits(), part
        self.news: list[None] = []               # something where a graph that a program runs has been compiled
        self.options = replace(options, call=options.call and remembered(options.call),
                               tell=partial(self.news.append, None) if keep else options.tell)
        self._programs: OrderedDict[object, Compiled | NativeProgram | None] = OrderedDict()
        #: Where there is no program: what waits for no value, if another backend does some of it.
        self._ahead: dict[object, Started] = {}
        #: The first program that somebody wants to know of, None where it is no native one, and its shapes.
        self.first: tuple[Shapes, Ready | None] | None = None
        # What the run before used.
        self._last: tuple[object, Compiled | Ready | None] = None, None
        if not isinstance(model, Model) and model.shapes is not None and model.program is not None:
            self._last = self.first = model.shapes, model.program(self.options)
        self._natives = 0                        # programs made with native code
        self._objects = isinstance(model, Model) and any(o.type in OBJECTS for o in model.operands)

    @property
    def model(self) -> Model:
        """The model that is run."""
        return self._known if isinstance(self._known, Model) else self._known.make()

    def ready(self, inputs: Arrays) -> Ready | None:
        """The native program of the run before, where it was of inputs of these shapes."""
        shapes, last = self._last
        known = last is not None and not isinstance(last, Compiled) and shapes == shapes_of(inputs)
        return last if known else None           # type: ignore[return-value]

    def run(self, inputs: Arrays) -> list[Array]:
        """The outputs, as new arrays; raises `RunError`."""
        shapes = shapes_of(inputs)
        last = self._last
        try:
            compiled = last[1] if last[0] == shapes else self.compiled(shapes)
            return compiled.run(inputs) if compiled is not None else self._eagerly(inputs)
        except MemoryError as error:
            raise exhausted(error) from error

    def compiled(self, shapes: Sequence[tuple[int, ...] | None]) -> Compiled | NativeProgram | None:
        """The program for these shapes; None where sizes follow from values, so that it is made anew each run."""
        key = tuple(shapes)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = made = self._made(shapes)
                if self.first is None and (self._keep or self.options.tell):
                    self.first = key, None if isinstance(made, Compiled) else made
                    self._told()
                if self.options.tell and not self._keep:
                    self.options.tell()
                while len(self._programs) > PROGRAMS:
                    self._ahead.pop(self._programs.popitem(last=False)[0], None)
            self._programs.move_to_end(key)
            self._last = key, self._programs[key]
            return self._programs[key]

    def _told(self, again: bool = False) -> None:
        if self._keep and self.first and isinstance(self._known, Model | Outline):
            self._keep(self._known, *self.first, again=again)

    def keep(self) -> None:
        """Keep the first program once more, if more of the graphs that it runs have been compiled since."""
        if self.news:
            self.news.clear()
            self._told(again=True)

    def profile(self, inputs: Arrays, runs: int) -> Profile:
        """Where the time of runs with these inputs goes; raises `RunError`."""
        from . import profile
        program = self._made(shapes_of(inputs), profiled=True)
        with np.errstate(all="ignore"):
            if isinstance(program, Compiled):
                return profile.of_numpy(program, inputs, runs)
            if program is not None:
                return profile.of_native(program, inputs, runs)
            self.compiled(shapes_of(inputs))
            known, started = self._before(inputs), self._ahead.get(shapes_of(inputs))
            with self._eager():
                rest = profile.of_steps(self.model, self._given(inputs), replace(self.options, once=True), known)
            return profile.one_after_the_other(started.profile(inputs, runs), rest) if started else rest

    def footprint(self, shapes: Sequence[tuple[int, ...] | None]) -> Footprint | None:
        """What a run with inputs of these shapes needs of memory when; None where that follows from values."""
        from .bind import bind
        from .footprint import footprint
        if self._objects:
            return None
        try:
            with np.errstate(all="ignore"):
                return footprint(bind(self.model, self._tensors(shapes), self._options()), self.options)
        except Dynamic:
            return None

    def _made(self, shapes: Sequence[tuple[int, ...] | None], profiled: bool = False
              ) -> Compiled | NativeProgram | None:
        if self._objects:                        # texts and lists have no place in an arena
            return None
        from .bind import bind                   # a program that was kept does without the table of operations
        try:
            with self._compiling():
                return self._compiled(bind(self.model, self._tensors(shapes), self._options()), profiled)
        except Dynamic:
            if not profiled and not self._is_part:
                self._start(shapes)
            return None
        except MemoryError as error:
            raise exhausted(error) from error

    def _start(self, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Make a program of what waits for no value, where another backend does some of it."""
        from .ahead import Started, ahead_of
        if self._options().elsewhere is None:
            return
        with self._compiling():
            part = ahead_of(self.model, self._tensors(shapes), self.options)
        if part is not None:
            self._natives += 1
            runner = Runner(part.model, replace(self.options, tell=None), part=True)
            if runner.compiled(shapes) is not None:
                self._ahead[tuple(shapes)] = Started(part, runner.run, runner.profile)

    def _options(self) -> Options:
        """Those of the next program."""
        enough = self.options.sets is not None and self._natives >= self.options.sets
        return replace(self.options, elsewhere=None) if enough else self.options

    def _compiled(self, program: Program, profiled: bool) -> Compiled | NativeProgram:
        natively = any(step.elsewhere for step in program.steps)
        # One that computes nothing itself is a native one, too: with the graphs that it runs it can be kept.
        idle = self.options.elsewhere is not None and all(step.view is not None or step.calls for step in program.steps)
        if not natively and (profiled or not idle):
            return Compiled(program, self.options.threads)
        self._natives += natively and not profiled
        from .codegen.machine import host
        from .codegen.effort import worth
        from .codegen.program import NativeProgram
        bound = (step.bound for step in program.steps if step.bound is not None and step.elsewhere)
        machine = replace(host(), fast=self.options.fast)
        return NativeProgram(program, machine, worth(self.options.threads or cores(), bound), profiled=profiled)

    def _eagerly(self, inputs: Arrays) -> list[Array]:
        """What waits for no value first, then step by step, each bound to the values of the one before."""
        from .bind import bind
        known = self._before(inputs)
        with self._eager():
            program = bind(self.model, self._given(inputs), replace(self.options, once=True), None, known.values,
                           known.done)
        return [np.array(program.constants[i]) for i in program.outputs]

    def _before(self, inputs: Arrays) -> Known:
        """What is known before the rest is bound."""
        from .ahead import Known
        started = self._ahead.get(shapes_of(inputs))
        return started.part.known(started.run(inputs)) if started else Known()

    def _given(self, inputs: Arrays) -> list[Tensor | None]:
        """Inputs as tensors with values."""
        tensors = self._tensors(shapes_of(inputs))
        return [t and Tensor(t.type, t.dims, t.quant, a) for t, a in zip(tensors, inputs, strict=True)]

    @contextmanager
    def _compiling(self) -> Iterator[None]:
        """Within it, a program is made."""
        with limited(self._limits), timed("compiling it"), unsearched(), np.errstate(all="ignore"):
            yield

    @contextmanager
    def _eager(self) -> Iterator[None]:
        """Within it, operations are bound to values; what they raise is a `RunError`."""
        try:
            with (limited(self._limits), timed("the run"), blas_threads(threads_for(self.options.threads, 0)),
                  np.errstate(all="ignore")):
                yield
        except Dynamic as error:
            raise RunError("a size stays unknown although all inputs are given", str(error)) from error
        except FAILURES as error:
            raise failed("the run", error, "") from error

    def _tensors(self, shapes: Sequence[tuple[int, ...] | None]) -> list[Tensor | None]:
        operands = (self.model.operands[i] for i in self.model.inputs)
        return [None if s is None else Tensor(o.type, s, o.quant) for o, s in zip(operands, shapes, strict=True)]


def remembered(make: Callable[[Model | Sketch, Options], Call]) -> Callable[[Model | Sketch, Options], Call]:
    """Each subgraph made callable once, so that its programs outlive a run that is bound anew."""
    made: dict[int, Call] = {}

    def find(model: Model | Sketch, options: Options) -> Call:
        if id(model) not in made:
            made[id(model)] = make(model, options)
        return made[id(model)]
    return find


class Subgraph:
    """A subgraph as a function of arrays."""

    def __init__(self, model: Model | Sketch, options: Options) -> None:
        self.runner = Runner(model, replace(options, inner=True))

    def __call__(self, arrays: Arrays) -> list[Array]:
        """Its outputs; raises `RunError`."""
        try:
            return self.runner.run(arrays)
        except NnxError as error:
            raise error.at("subgraph") from error

    def ready(self, arrays: Arrays) -> Ready | None:
        """Its native program, where the run before was of arrays of these shapes."""
        return self.runner.ready(arrays)


def call(model: Model | Sketch, options: Options) -> Call:
    """A subgraph made callable."""
    return Subgraph(model, options)
