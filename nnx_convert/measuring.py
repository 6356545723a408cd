"""How long a model runs, by itself and beside other engines in the same process."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from . import __version__
from .arrays import Given, gathered
from .convert import compile, kind, read
from .errors import NnxError
from .frozen import frozen
from .peers import PEERS, Run, unheard
from .runtime.compiled import CompiledModel
from .runtime.profile import macs
from .types import Shape

#: Runs of each engine before any is timed: caches are filled, threads awake.
WARM_UP = 2
#: Seconds until the threads of the engine before have gone to sleep, and the runs of an engine before the next one's.
PAUSE, TURN = 0.05, 5


@frozen
class Timed:
    """An engine: seconds from the file to its first output, the median and the least of its runs.

    `ratio` and `ratio_of_least` are what the first engine takes in parts of this one; `gflops` are billions of
    multiplications and additions in a second of the median. `problem` says why it was not timed; then all numbers are
    None.
    """

    engine: str
    version: str
    ready: float | None = None
    median: float | None = None
    least: float | None = None
    ratio: float | None = None
    ratio_of_least: float | None = None
    gflops: float | None = None
    problem: str = ""


@dataclass
class Contender:
    """An engine in the making: its run and how long that took to get, or what is wrong; its model where it is ours."""

    engine: str
    version: str
    run: Run | None = None
    ready: float | None = None
    problem: str = ""
    model: CompiledModel | None = None


def ours(file: str, backend: str, threads: int, archive: str | None, seed: int, shapes: Mapping[str, Shape],
         rounding: str = "reference") -> tuple[Contender, tuple[Given, ...]]:
    """This package with a backend, run once, and the inputs it is given; raises `NnxError`."""
    begun = time.perf_counter()
    model = compile(file, threads=threads, shapes=shapes or None, backend=backend, rounding=rounding)
    took = time.perf_counter() - begun
    inputs = gathered(model.inputs, shapes, {}, archive, seed)
    given = {g.name: g.array for g in inputs}

    def run() -> Any:
        return model.run(given)
    begun = time.perf_counter()
    try:
        run()
    except NnxError as error:
        raise error.at(Path(file).name) from error
    return Contender(backend, __version__, run, took + time.perf_counter() - begun, model=model), inputs


def multiplied(model: CompiledModel, given: Mapping[str, Any]) -> int | None:
    """The multiply-adds of a run; None where that is not known before it."""
    shapes = {s.name: given[s.name].shape for s in model.inputs if isinstance(given.get(s.name), np.ndarray)}
    try:
        found = model.prepare(shapes)
    except NnxError:
        return None
    return None if found is None else macs(found.program)


def theirs(file: str, name: str, threads: int, inputs: Sequence[Any]) -> Contender:
    """Another engine, run once; one that is not there or fails says why."""
    peer, form = PEERS[name], kind(read(file)[0])
    if not peer.there:
        return Contender(name, "", problem="is not installed: pip install 'nnx-convert[bench]'")
    if form not in peer.formats:
        return Contender(name, peer.version, problem=f"reads no .{form} file")
    begun = time.perf_counter()
    try:
        with unheard():
            run = peer.open(file, threads, inputs)
            run()
    except Exception as error:                    # whatever another engine raises is its answer
        said = f"{type(error).__name__}: {error}".strip()
        return Contender(name, peer.version, problem=f"fails: {said.splitlines()[0][:200]}")
    return Contender(name, peer.version, run, time.perf_counter() - begun)


def compared(engines: Sequence[Run], runs: int) -> list[list[float]]:
    """Seconds of each engine's runs, taken in turns, so that all meet the same machine.

    A turn is a pause, a run that does not count, and some that do: threads of another engine go on spinning for
    milliseconds after its run, and would double the time of one that needs the same cores.
    """
    times: list[list[float]] = [[] for _ in engines]
    for engine in engines:
        for _ in range(WARM_UP):
            engine()
    while times and len(times[0]) < runs:
        for engine, taken in zip(engines, times, strict=True):
            time.sleep(PAUSE)
            engine()
            for _ in range(min(TURN, runs - len(taken))):
                start = time.perf_counter()
                engine()
                taken.append(time.perf_counter() - start)
    return times


def joined(found: Sequence[Contender], times: Sequence[Sequence[float]], count: int | None = None
           ) -> Iterator[Timed]:
    """The engines with their times, of so many multiply-adds; those of the first are what others are measured by."""
    rest = iter(times)
    for c in found:
        if c.run is None:
            yield Timed(c.engine, c.version, problem=c.problem)
            continue
        own = next(rest)
        middle, least = median(own), min(own)
        yield Timed(c.engine, c.version, c.ready, middle, least, median(times[0]) / middle, min(times[0]) / least,
                    None if count is None else 2e-9 * count / middle)
