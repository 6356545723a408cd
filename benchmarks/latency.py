"""`python -m benchmarks.latency [NAME...] [--threads 2] [--runs N]`: runs beside the engine of the model's format.

That is LiteRT with XNNPACK for TFLite models, ONNX Runtime for ONNX models. Both engines run in turn in one process
after a warm-up, so that they meet the same machine; the ratios are of medians and of minima. Settings that hold
OpenBLAS back (OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE) are dropped before NumPy is loaded. Ends with 1
where a bound is broken.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from . import suite

HELD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
WARM_UP = 2
#: The package of the engine that a format's models are timed beside.
PEERS = {".tflite": "ai_edge_litert", ".onnx": "onnxruntime"}
Run = Callable[[], Any]


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description="Latency beside LiteRT and ONNX Runtime.")
    parser.add_argument("names", nargs="*", help="models (all by default)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args(words)
    if any(os.environ.pop(name, None) is not None for name in HELD_BACK):
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.latency", *words])
    missing = [f"{package} is not installed (extra [bench]): its models are timed without it"
               for package in PEERS.values() if importlib.util.find_spec(package) is None]
    for line in filter(None, (suite.absent(), *missing)):
        print(line)
    try:
        files = suite.found((*suite.LATENCY, *suite.ONNX_LATENCY), tuple(given.names))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    print(f"{'model':38} {'ours ms':>9} {'peer ms':>9} {'ratio':>7} {'of min':>7}")
    kept = [measure(name, path, given.threads, given.runs) for name, path in files.items()]
    return 0 if all(kept) else 1


def measure(name: str, path: Path, threads: int, runs: int) -> bool:
    """Time one model and print its row; whether its bound is kept."""
    there = importlib.util.find_spec(PEERS[path.suffix]) is not None
    theirs = {".tflite": litert, ".onnx": onnxruntime}[path.suffix]
    inputs = random_inputs(path)
    engines = [ours(path, threads, inputs), *([theirs(path, threads, inputs)] if there else [])]
    times = interleaved(engines, runs)
    bound = (suite.LATENCY | suite.ONNX_LATENCY).get(name) if there else None
    columns = [f"{name:38} {median(times[0]):9.2f}"]
    ratio = 0.0
    if there:
        ratio = median(times[0]) / median(times[1])
        columns += [f"{median(times[1]):9.2f} {ratio:7.1f} {min(times[0]) / min(times[1]):7.1f}"]
    print(*columns, suite.verdict(ratio, bound), flush=True)
    return bound is None or ratio <= bound


def interleaved(engines: Sequence[Run], runs: int) -> list[list[float]]:
    """Milliseconds of each engine's runs, taken in turn."""
    times: list[list[float]] = [[] for _ in engines]
    for n in range(WARM_UP + runs):
        for engine, taken in zip(engines, times, strict=True):
            start = time.perf_counter()
            engine()
            if n >= WARM_UP:
                taken.append(1e3 * (time.perf_counter() - start))
    return times


def random_inputs(path: Path) -> list[Any]:
    """Arrays for the inputs as the file declares them, the same ones each time."""
    import numpy as np

    import nnx_convert
    rng = np.random.default_rng(0)
    specs = [s for s in nnx_convert.compile(path).inputs if not s.state]
    shapes = [tuple(n or 1 for n in s.shape or ()) for s in specs]
    return [rng.random(shape).astype(s.dtype) if s.dtype.kind == "f" else
            rng.integers(0, 100, shape).astype(s.dtype) for s, shape in zip(specs, shapes, strict=True)]


def ours(path: Path, threads: int, inputs: list[Any]) -> Run:
    """A run of nnx_convert."""
    import nnx_convert
    compiled = nnx_convert.compile(path, threads=threads)
    return lambda: compiled.run(inputs)


def litert(path: Path, threads: int, inputs: list[Any]) -> Run:
    """A run of LiteRT with its default delegate, setting inputs and fetching outputs as ours does."""
    from ai_edge_litert.interpreter import Interpreter
    lite = Interpreter(model_path=str(path), num_threads=threads)
    lite.allocate_tensors()
    ins, outs = ([d["index"] for d in details] for details in (lite.get_input_details(), lite.get_output_details()))

    def run() -> list[Any]:
        for index, array in zip(ins, inputs, strict=True):
            lite.set_tensor(index, array)
        lite.invoke()
        return [lite.get_tensor(index) for index in outs]
    return run


def onnxruntime(path: Path, threads: int, inputs: list[Any]) -> Run:
    """A run of ONNX Runtime on the processor, as it comes."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {i.name: a for i, a in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, given)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
