"""`python -m benchmarks.stress [--cycles N] [--seconds S]`: native code made, run and dropped; many threads at once.

First each model in turn is compiled, run and dropped, by every other cycle from an empty cache. Then threads run all
of them for so long, while children are forked and spawned. Every answer is compared with the first one; what the
process has resident grows by less than `LEAK`.
"""
from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

import nnx_convert
from nnx_convert import CompiledModel
from nnx_convert.runtime.codegen.cache import VARIABLE
from nnx_convert.types import Array

from . import memory, suite

#: Bytes that a process may have more when all is done than when it was warm.
LEAK = 5 << 20
#: Cycles and seconds after which it is warm, as parts of all.
WARM = 0.1
THREADS, CHILDREN = 8, 4
#: Seconds that a child may take, from its start to its end.
PATIENCE = 60.0
#: Models of the external suite that are run beside the package's own.
ZOO = ("mobilenet_v2_1.0_224_int8_perchannel", "hand_recrop_fp32")
OWN = ("digits_cnn", "digits_cnn_int8")


@dataclass(frozen=True)
class Subject:
    """A model's file, what it is given and what it answers."""

    path: Path
    inputs: list[Array]
    outputs: list[Array]

    @classmethod
    def of(cls, path: Path) -> Subject:
        """Random inputs, and the first answers."""
        model, rng = compiled(path), np.random.default_rng(0)
        shapes = [tuple(n or 1 for n in s.shape or ()) for s in model.inputs]
        inputs = [drawn(rng, n, s.dtype) for n, s in zip(shapes, model.inputs, strict=True)]
        return cls(path, inputs, model.run(inputs))

    def fits(self, model: CompiledModel) -> bool:
        """Whether it answers as it did at first, to the bit."""
        return all(np.array_equal(a, b) for a, b in zip(model.run(self.inputs), self.outputs, strict=True))


@dataclass
class Count:
    """What happened: runs, answers that were others, children that failed, and how much more is resident in the end."""

    runs: int = 0
    wrong: int = 0
    children: int = 0
    failed: int = 0
    grown: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, right: bool) -> None:
        """One more run."""
        with self.lock:
            self.runs += 1
            self.wrong += not right

    @property
    def passed(self) -> bool:
        """Whether all is as it should be."""
        return not self.wrong and not self.failed and self.grown < LEAK

    def __str__(self) -> str:
        return (f"{self.runs:7d} runs, {self.wrong} wrong; {self.children} children, {self.failed} failed; "
                f"{self.grown / memory.MB:+.1f} MB {'pass' if self.passed else 'FAIL'}")


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Numbers around 0, of which integers have something, too."""
    return (rng.standard_normal(shape) * 50).astype(dtype)


def compiled(path: Path) -> CompiledModel:
    """The model in native code, with two threads."""
    return nnx_convert.compile(path, backend="native", threads=2)


def resident() -> int:
    """The bytes that this process has resident now, what nobody uses given back; the peak where nobody tells."""
    gc.collect()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if told.is_file() else memory.peak()


@contextmanager
def cache(folder: str) -> Iterator[None]:
    """Object code is kept in a folder; nowhere, if it is "0"."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = folder
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        os.environ |= {} if before is None else {VARIABLE: before}


def cycles(subjects: Sequence[Subject], count: int) -> Count:
    """Compile, run and drop the models in turn, every other time from a cache."""
    found, warm = Count(), max(int(count * WARM), 2 * len(subjects))
    with tempfile.TemporaryDirectory() as folder:
        for n in range(warm + count):
            if n == warm:
                before = resident()
            subject = subjects[n // 2 % len(subjects)]
            with cache(folder if n % 2 else "0"):
                found.add(subject.fits(compiled(subject.path)))
    found.grown = resident() - before
    return found


def crowd(subjects: Sequence[Subject], seconds: float) -> Count:
    """Threads that run all models for so long; meanwhile children do the same."""
    found, models = Count(), [compiled(s.path) for s in subjects]
    with running(subjects, models, found, seconds * WARM):
        pass
    before = resident()
    with running(subjects, models, found, seconds):
        for n in range(CHILDREN):
            found.children += 1
            found.failed += not (forked(subjects, models) if n % 2 else spawned(subjects))
    found.grown = resident() - before
    return found


@contextmanager
def running(subjects: Sequence[Subject], models: Sequence[CompiledModel], found: Count, seconds: float
            ) -> Iterator[None]:
    """Threads that run models for so long, each in an order of its own; they have ended behind it."""
    end = time.monotonic() + seconds

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            n = int(rng.integers(len(models)))
            found.add(subjects[n].fits(models[n]))
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for t in threads:
        t.start()
    yield
    for t in threads:
        t.join()


def forked(subjects: Sequence[Subject], models: Sequence[CompiledModel]) -> bool:
    """Whether a child that is forked now, amid all, gets the answers from the models that are there."""
    child = os.fork()
    if not child:
        right = False
        with suppress(BaseException):
            right = all(s.fits(m) for s, m in zip(subjects, models, strict=True))
        os._exit(0 if right else 1)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def spawned(subjects: Sequence[Subject]) -> bool:
    """Whether a new process gets the answers, too."""
    child = multiprocessing.get_context("spawn").Process(target=_answer, args=(list(subjects),))
    child.start()
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
        child.join()
    return child.exitcode == 0


def _answer(subjects: list[Subject]) -> None:
    sys.exit(not all(s.fits(compiled(s.path)) for s in subjects))


def main(words: Sequence[str]) -> int:
    """Print a line for each part; 0 where nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress", description="Native code, again and again.")
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args(words)
    if line := suite.absent():
        print(line)
    files: Mapping[str, Path] = suite.found(ZOO, tuple(n for n in (*OWN, *ZOO) if suite.ZOO or n in OWN))
    subjects = [Subject.of(path) for path in files.values()]
    print(f"{', '.join(files)}", flush=True)
    parts = [cycles(subjects, given.cycles)]
    print(f"{given.cycles} cycles   {parts[0]}", flush=True)
    parts.append(crowd(subjects, given.seconds))
    print(f"{THREADS} threads, {given.seconds:g} s   {parts[1]}")
    return 0 if all(p.passed for p in parts) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
