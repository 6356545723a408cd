"""`python -m benchmarks.sparse [NAME...] [--threads 1,2]`: what it gains to skip the zeros of sparse weights.

Each model runs as it does, as if all its weights were dense, and by LiteRT with XNNPACK, in turns in one process. So
does a product of one row by a matrix of 4 MB, a quarter of whose blocks of 1 x 4 are there. Nothing is kept in the
cache. Ends with 1 where a bound of `benchmarks.suite` is broken.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

import nnx_convert
from nnx_convert import CompiledModel, ModelBuilder, OperandCode
from nnx_convert.measuring import compared, theirs
from nnx_convert.ops.conv import FULLY_CONNECTED
from nnx_convert.peers import PEERS, Run
from nnx_convert.runtime.codegen import pruned, sparse

from . import suite
from .latency import HELD_BACK
from .measure import inputs_of
from .report import milliseconds, missing, part
from .stress import cache

#: The product: outputs, inputs, inputs of a block, the share of blocks that are there.
UNITS, DEPTH, BLOCK, DENSITY = 1024, 1024, 4, 0.25


@contextmanager
def densely() -> Iterator[None]:
    """Within it, models are compiled as if no weight were zero."""
    with patch.object(pruned, "faster", lambda *_: False), patch.object(sparse, "chosen", lambda *_: None):
        yield


def product(threads: int) -> CompiledModel:
    """The product, compiled."""
    rng, b = np.random.default_rng(0), ModelBuilder()
    there = np.repeat(rng.random((UNITS, DEPTH // BLOCK)) < DENSITY, BLOCK, 1)
    arrays = (np.where(there, rng.standard_normal((UNITS, DEPTH)), 0), rng.standard_normal(UNITS))
    x = b.add_operand(OperandCode.TENSOR_FLOAT32, (1, DEPTH))
    constants = [b.add_operand(OperandCode.TENSOR_FLOAT32, a.shape) for a in arrays]
    for index, array in zip(constants, arrays, strict=True):
        b.set_operand_value(index, array.astype(np.float32))
    act = b.add_operand(OperandCode.INT32, ())
    b.set_operand_value(act, 0)
    y = b.add_operand(OperandCode.TENSOR_FLOAT32, (1, UNITS))
    assert FULLY_CONNECTED.code is not None
    b.add_operation(FULLY_CONNECTED.code, [x, *constants, act], [y])
    b.identify_inputs_and_outputs([x], [y])
    return CompiledModel(b.finish(), threads=threads)


def run_of(make: Callable[[], CompiledModel], path: Path | None) -> Run:
    """A run of a model, compiled now."""
    model = make()
    inputs = inputs_of(model, path or Path(suite.PRODUCT))
    model.run(inputs)
    return lambda: model.run(inputs)


def measure(name: str, path: Path | None, threads: int, runs: int) -> bool:
    """Print a row; whether its bounds are kept."""
    def make() -> CompiledModel:
        return nnx_convert.compile(path, threads=threads) if path else product(threads)
    engines = [run_of(make, path)]
    with densely():
        engines.append(run_of(make, path))
    if path and PEERS["litert"].there:
        peer = theirs(str(path), "litert", threads, inputs_of(make(), path))
        engines += [peer.run] if peer.run else []
    times = compared(engines, runs)
    kept, ratios = [], list[str]()
    for other, bound in zip(times[1:], suite.SPARSE.get(name, (None, None)), strict=False):
        ratio = median(times[0]) / median(other)
        kept.append(bound is None or ratio <= bound)
        ratios.append(f"{part(ratio)} {part(min(times[0]) / min(other))} {suite.verdict(ratio, bound)}")
    columns = [milliseconds(median(t)) for t in times] + ["-"] * (3 - len(times))
    print(f"{name:38} {threads:3} {' '.join(f'{c:>9}' for c in columns)}   {', '.join(ratios)}", flush=True)
    return all(kept)


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description="Sparse weights beside dense.")
    parser.add_argument("names", nargs="*", help="models with sparse weights (those that have bounds by default)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--runs", type=int, default=30)
    given = parser.parse_args(words)
    for line in filter(None, (suite.absent(), *missing())):
        print(line)
    usual = tuple(suite.SPARSE) if suite.ZOO else ("digits_sparse",)
    try:
        files = suite.golden(tuple(given.names) or tuple(n for n in usual if n != suite.PRODUCT))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    print(f"{'ms, medians':38} {'thr':>3} {'sparse':>9} {'dense':>9} {'xnnpack':>9}   ratio of medians, of least")
    for setting in HELD_BACK:
        os.environ.pop(setting, None)
    rows = [(name, path) for name, path in files.items()] + [(suite.PRODUCT, None)]
    with cache("0"):
        kept = [measure(name, path, int(n), given.runs) for n in given.threads.split(",") for name, path in rows]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
