"""`python -m benchmarks.load [--minutes N] [--processes N] [--threads N] [--seed N]`: a service under load.

Processes of several threads each answer requests: a model, a shape of its inputs and one of their samples, all drawn.
Now and then a thread opens a model anew, from the cache that all share. Every answer is held against NumPy's. It is
also held to the bit against the first one that the process gave, but for models with more shapes than are compiled
natively, whose answers are native code's at times and NumPy's at others. What a process has resident may grow by less
than `stress.LEAK`, and the middle of what a request takes of a processor by less than a half from one half of the time
to the other.
Less than `SHORT` minutes are too few for these two.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

import nnx_convert
from nnx_convert import CompiledModel, ModelBuilder, OperandCode, OperationCode
from nnx_convert.runtime.backends import SETS
from nnx_convert.types import Array

from . import memory, stress, suite

#: Models of the external suite whose inputs have open sizes, in the middle of what services run, and the sizes that
#: are drawn beside that of the batch.
ZOO: dict[str, dict[str, tuple[tuple[int, ...], ...]]] = {
    "ad01_fp32": {}, "kws_dscnn_int8": {}, "resnet8_cifar_fp32": {}, "resnet8_cifar_int8": {}, "vww_96_int8": {},
    "mixed_ops_dynamic_batch": {}, "micro_kws_qdq_int8": {}, "hello_world_fp32": {},
    "ppocr_v2_cls": {"x": ((3, 48, 96), (3, 48, 192), (3, 48, 320))}}
#: Batches that are drawn; of some models more than there are programs kept.
BATCHES, MORE = 3, {"hello_world_fp32": 12, "own": 12}
#: Samples of each shape; one in so many requests opens its model anew.
SAMPLES, ANEW = 2, 400
#: How far a float may be off, in parts of the largest; by how much the middle of the time may grow.
CLOSE, SLOWER = 1e-5, 1.5
#: Minutes that are too few to tell what is flat.
SHORT = 5.0
#: One in so many requests is timed.
TIMED = 8
#: Moments at which a process looks at its memory, and those that come before it is warm.
LOOKS, WARM = 24, 8


@dataclass(frozen=True)
class Request:
    """Inputs of a model, and its outputs in NumPy."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


@dataclass(frozen=True)
class Job:
    """What a process does: the models' files and the samples of each of their shapes; the seconds, threads and seed."""

    paths: Mapping[str, Path]
    known: Mapping[str, Sequence[Sequence[Request]]]
    seconds: float
    threads: int
    seed: int


@dataclass
class Served:
    """What a process tells in the end."""

    requests: int = 0
    wrong: int = 0
    opened: int = 0
    resident: list[int] = field(default_factory=list)
    slower: float = 0.0                            # the worst model's second half in parts of its first
    middle: dict[str, float] = field(default_factory=dict)     # milliseconds of a processor, by model

    @property
    def grown(self) -> int:
        """Bytes that it needs more at the most, at the end than when it was warm.

        What is resident swings by as much as a model that is opened anew; a leak lifts the highest, too.
        """
        return max(self.resident[-WARM:]) - max(self.resident[WARM:2 * WARM])

    def passed(self, minutes: float) -> bool:
        """Whether all is as it should be; of few minutes, whether the answers are."""
        flat = self.grown < stress.LEAK and 0 < self.slower < SLOWER
        return bool(self.requests) and not self.wrong and (flat or minutes < SHORT)

    def __str__(self) -> str:
        return (f"{self.requests:8,d} requests, {self.wrong} wrong, {self.opened} models opened anew; resident "
                f"{self.resident[-1] / memory.MB:.0f} MB, {self.grown / memory.MB:+.1f} MB; second half of the time "
                f"{self.slower:.2f} of the first")


def own() -> nnx_convert.Model:
    """A small model with an open batch, for where there are no others: two layers and probabilities."""
    b, rng = ModelBuilder(), np.random.default_rng(0)
    now = x = b.add_operand(OperandCode.TENSOR_FLOAT32, (0, 64))
    none, beta = b.add_operand(OperandCode.INT32), b.add_operand(OperandCode.FLOAT32)
    b.set_operand_value(none, 0)
    b.set_operand_value(beta, 1.0)
    for code, more in ((OperationCode.TANH, ()), (OperationCode.SOFTMAX, (beta,))):
        weights, bias = b.add_operand(OperandCode.TENSOR_FLOAT32, (64, 64)), b.add_operand(
            OperandCode.TENSOR_FLOAT32, (64,))
        b.set_operand_value(weights, rng.standard_normal((64, 64)).astype(np.float32) / 8)
        b.set_operand_value(bias, rng.standard_normal(64).astype(np.float32))
        product, after = (b.add_operand(OperandCode.TENSOR_FLOAT32, (0, 64)) for _ in range(2))
        b.add_operation(OperationCode.FULLY_CONNECTED, [now, weights, bias, none], [product])
        b.add_operation(code, [product, *more], [after])
        now = after
    b.identify_inputs_and_outputs([x], [now])
    return b.finish()


def files(folder: Path) -> dict[str, Path]:
    """Those of `ZOO`, or the package's where that is absent; and the model above."""
    own().save(folder / "own.nnx")
    zoo = suite.found(tuple(ZOO), tuple(ZOO)) if suite.ZOO else suite.small()
    return {**zoo, "own": folder / "own.nnx"}


def shapes(name: str, model: CompiledModel, rng: np.random.Generator) -> Iterator[dict[str, tuple[int, ...]]]:
    """Sizes of the inputs, by their names: every batch there is, and what else is open drawn."""
    specs = [s for s in model.inputs if not s.state]
    fixed = all(s.shape and s.shape[0] for s in specs)
    for batch in (1,) if fixed else range(1, MORE.get(name, BATCHES) + 1):
        found = {}
        for s in specs:
            rest = ZOO.get(name, {}).get(s.name)
            sizes = rest[int(rng.integers(len(rest)))] if rest else tuple(n or 1 for n in (s.shape or ())[1:])
            found[s.name] = (batch, *sizes)
        yield found


def requests(name: str, path: Path, rng: np.random.Generator) -> Iterator[list[Request]]:
    """The samples of each shape, with NumPy's answers."""
    model = nnx_convert.compile(path, backend="numpy", threads=1)
    kinds = {s.name: np.dtype(s.dtype) for s in model.inputs}
    for sizes in shapes(name, model, rng):
        samples = [[stress.drawn(rng, s, kinds[n]) for n, s in sizes.items()] for _ in range(SAMPLES)]
        yield [Request(inputs, model.run(inputs)) for inputs in samples]


def opened(path: Path) -> CompiledModel:
    """The model as a service compiles it: what computes it is chosen, a thread runs it by itself."""
    return nnx_convert.compile(path, threads=1)


def fits(found: Sequence[Array], want: Request) -> bool:
    """Whether answers are NumPy's: integers to the bit, floats almost."""
    return all(close(a, b) for a, b in zip(found, want.outputs, strict=True))


def close(a: Array, b: Array) -> bool:
    """Whether two arrays are the same number for number."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    most = max(float(np.abs(b).max(initial=0)), 1e-30)
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) <= CLOSE * most)


class Service:
    """The models of one process, which its threads share."""

    def __init__(self, job: Job) -> None:
        self.job, self.told, self.lock = job, Served(), threading.Lock()
        self.models = {name: opened(path) for name, path in job.paths.items()}
        self.first: dict[tuple[str, int, int], list[Array]] = {}
        # Of each model when requests came and what they took, in few bytes: it is not to be what grows.
        self.times: dict[str, tuple[array[float], array[float]]] = defaultdict(lambda: (array("d"), array("f")))
        self.begun = 0.0

    def warm(self) -> None:
        """Have each shape once, which compiles it; threads share that."""
        todo = [(name, shape) for name, shapes in self.job.known.items() for shape in range(len(shapes))]
        with ThreadPoolExecutor(self.job.threads) as threads:
            for done in [threads.submit(self.answer, name, shape, 0, 0.0) for name, shape in todo]:
                done.result()

    def work(self, seed: int) -> None:
        """What a thread does."""
        rng, names = np.random.default_rng(seed), list(self.job.paths)
        while (now := time.monotonic() - self.begun) < self.job.seconds:
            name = names[int(rng.integers(len(names)))]
            if not rng.integers(ANEW):
                self.models[name] = opened(self.job.paths[name])
                with self.lock:
                    self.told.opened += 1
            shape = int(rng.integers(len(self.job.known[name])))
            self.answer(name, shape, int(rng.integers(SAMPLES)), now)

    def answer(self, name: str, shape: int, sample: int, now: float) -> None:
        """Do a request, and see whether the answer is right."""
        asked = self.job.known[name][shape][sample]
        begun = time.thread_time()
        found = self.models[name].run(list(asked.inputs))
        took = time.thread_time() - begun
        with self.lock:
            first = self.first.setdefault((name, shape, sample), found)
            mixed = len(self.job.known[name]) > SETS
            right = fits(found, asked) and (mixed or all(map(np.array_equal, found, first)))
            self.told.requests += 1
            self.told.wrong += not right
            if self.told.requests % TIMED == 0:
                for numbers, number in zip(self.times[name], (now, took), strict=True):
                    numbers.append(number)

    def serve(self) -> Served:
        """Have the threads answer until the time is over; what there is to tell."""
        self.warm()
        threads = [threading.Thread(target=self.work, args=((self.job.seed, n),)) for n in range(self.job.threads)]
        self.begun = time.monotonic()
        for t in threads:
            t.start()
        for n in range(LOOKS):
            time.sleep(max(0.0, self.begun + self.job.seconds * (n + 1) / LOOKS - time.monotonic()))
            self.told.resident.append(stress.resident())
        for t in threads:
            t.join()
        self.told.middle = {name: 1e3 * median(took) for name, (_, took) in self.times.items()}
        self.told.slower = max(self.slower(zip(*times, strict=True)) for times in self.times.values())
        return self.told

    def slower(self, times: Iterable[tuple[float, float]]) -> float:
        """The middle of the second half of the warm time in parts of that of the first."""
        warm = self.job.seconds * WARM / LOOKS
        middle = (self.job.seconds + warm) / 2
        known = list(times)
        halves = [s for at, s in known if warm <= at < middle], [s for at, s in known if at >= middle]
        return median(halves[1]) / median(halves[0]) if all(halves) else 0.0


def serve(job: Job) -> Served:
    """What a process does."""
    return Service(job).serve()


def loaded(minutes: float, processes: int, threads: int, seed: int) -> tuple[list[str], list[Served]]:
    """The models, and what each process told."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, stress.cache(name):
        paths = files(Path(name))
        known = {model: [*requests(model, path, rng)] for model, path in paths.items()}
        jobs = [Job(paths, known, 60 * minutes, threads, seed + n) for n in range(processes)]
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as workers:
            return list(paths), list(workers.map(serve, jobs))


def main(words: Sequence[str]) -> int:
    """Print a line for each process; 0 where nothing went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="A service under load.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="Write what each process told.")
    given = parser.parse_args(words)
    if line := suite.absent():
        print(line)
    names, found = loaded(given.minutes, given.processes, given.threads, given.seed)
    print(f"{len(names)} models: {', '.join(names)}")
    print(f"{given.processes} processes of {given.threads} threads, {given.minutes:g} minutes, seed {given.seed}")
    for one in found:
        print(f"{one} {'pass' if one.passed(given.minutes) else 'FAIL'}")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.passed(given.minutes) for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
