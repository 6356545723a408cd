"""`python -m benchmarks.latency [NAME...] [--threads 2] [--runs N] [--backend native]`: runs beside the engine of
the model's format.

That is LiteRT with XNNPACK for TFLite models, ONNX Runtime for ONNX models. Both engines run in turns in one process
(`nnx_convert.cli.timing.compared`), so that they meet the same machine; the ratios are of medians and of minima.
Settings that hold OpenBLAS back (OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE) are dropped before NumPy is loaded. Ends with 1
where a bound is broken.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from . import suite

HELD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
Run = Callable[[], Any]


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description="Latency beside LiteRT and ONNX Runtime.")
    parser.add_argument("names", nargs="*", help="models (all by default)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--backend", choices=("auto", "numpy", "native"), default="auto", help="what computes ours")
    given = parser.parse_args(words)
    if any(os.environ.pop(name, None) is not None for name in HELD_BACK):
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.latency", *words])
    from nnx_convert.cli.peers import PEERS
    missing = [f"{peer.distribution} is not installed (extra [bench]): its models are timed without it"
               for peer in PEERS.values() if not peer.there]
    for line in filter(None, (suite.absent(), *missing)):
        print(line)
    try:
        files = suite.found((*suite.LATENCY, *suite.ONNX_LATENCY), tuple(given.names))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    print(f"{'model':38} {'ours ms':>9} {'peer ms':>9} {'ratio':>7} {'of min':>7}")
    kept = [measure(name, path, given.threads, given.runs, given.backend) for name, path in files.items()]
    return 0 if all(kept) else 1


def measure(name: str, path: Path, threads: int, runs: int, backend: str) -> bool:
    """Time one model and print its row; whether its bound is kept."""
    from nnx_convert.cli.peers import PEERS
    from nnx_convert.cli.timing import compared
    peer = next(p for p in PEERS.values() if path.suffix[1:] in p.formats)
    there, inputs = peer.there, random_inputs(path)
    engines = [ours(path, threads, inputs, backend), *([peer.open(str(path), threads, inputs)] if there else [])]
    times = [[1e3 * seconds for seconds in row] for row in compared(engines, runs)]
    bound = (suite.LATENCY | suite.ONNX_LATENCY).get(name) if there else None
    columns = [f"{name:38} {median(times[0]):9.2f}"]
    ratio = 0.0
    if there:
        ratio = median(times[0]) / median(times[1])
        columns += [f"{median(times[1]):9.2f} {ratio:7.1f} {min(times[0]) / min(times[1]):7.1f}"]
    print(*columns, suite.verdict(ratio, bound), flush=True)
    return bound is None or ratio <= bound


def random_inputs(path: Path) -> list[Any]:
    """Those recorded beside a model; else arrays as the file declares them, the same ones each time."""
    import numpy as np

    import nnx_convert
    recorded = path.with_name("golden.npz")
    if recorded.is_file():
        with np.load(recorded) as arrays:
            given = [arrays[f"in{i}"] for i in range(len(arrays.files)) if f"in{i}" in arrays.files]
        if len(given) == sum(not s.state for s in nnx_convert.compile(path).inputs):
            return given
    rng = np.random.default_rng(0)
    specs = [s for s in nnx_convert.compile(path).inputs if not s.state]
    shapes = [tuple(n or 1 for n in s.shape or ()) for s in specs]
    return [rng.random(shape).astype(s.dtype) if s.dtype.kind == "f" else
            rng.integers(0, 100, shape).astype(s.dtype) for s, shape in zip(specs, shapes, strict=True)]


def ours(path: Path, threads: int, inputs: list[Any], backend: str) -> Run:
    """A run of nnx_convert."""
    import nnx_convert
    compiled = nnx_convert.compile(path, threads=threads, backend=backend)
    return lambda: compiled.run(inputs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
