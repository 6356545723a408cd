"""`python -m benchmarks.startup [NAME...] [--runs N]`: what a start costs.

Of the command from the shell; of a process from its start to the first output of a model, beside the engine of the
model's format, with the most memory that was resident; of compiling a model for the first time, and from the cache.
Medians of N, the engines in turns. The interpreter's own compiled files are there, as where packages are installed.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nnx_convert.errors import NnxError
from nnx_convert.runtime.codegen.cache import VARIABLE

from . import suite
from .memory import MB
from .report import missing


def command() -> list[str]:
    """The console script of this Python, or the same through `-c` where it is not installed."""
    script = Path(sys.executable).with_name("nnx-convert")
    return [str(script)] if script.is_file() else [sys.executable, "-c", "from nnx_convert.cli import main; main()"]


def seconds(words: Sequence[str], runs: int) -> float:
    """The median wall-clock time of a command; raises `CalledProcessError` where it fails."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([*command(), *words], check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return median(taken)


@dataclass(frozen=True)
class Start:
    """One process: its seconds, those of them to compile, and the most bytes resident."""

    whole: float
    compile: float
    peak: int


def started(engine: str, path: Path, inputs: Path, cache: Path) -> Start:
    """A process of an engine on a model; raises `CalledProcessError` where it fails."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {VARIABLE: str(cache)}
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "benchmarks.first", engine, str(path), str(inputs), "1"],
                          cwd=suite.ROOT, env=env, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - begun
    told = json.loads(done.stdout.splitlines()[-1])
    return Start(whole, told["compile"] + told["run"], told["peak"])


def middle(found: Sequence[Start]) -> Start:
    """The median of each figure."""
    return Start(median(s.whole for s in found), median(s.compile for s in found), int(median(s.peak for s in found)))


def recorded(path: Path, to: Path) -> None:
    """Write inputs of a model as in0, in1, ..."""
    import numpy as np

    from .measure import random_inputs
    np.savez(to, **{f"in{i}": a for i, a in enumerate(random_inputs(path))})


def measure(name: str, path: Path, runs: int, folder: Path) -> bool:
    """Print a model's row; whether its bounds are kept."""
    from nnx_convert.peers import PEERS
    engine, peer = next((n, p) for n, p in PEERS.items() if path.suffix[1:] in p.formats)
    inputs, cache = folder / f"{name}.npz", folder / name
    recorded(path, inputs)
    cold = started("ours", path, inputs, cache)
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(started("ours", path, inputs, cache))
        theirs += [started(engine, path, inputs, cache)] if peer.there else []
    warm, bound = middle(ours), suite.COLD.get(name, suite.COLDEST)
    kept = [cold.compile <= bound]
    columns = [f"{name:38} {cold.compile:7.3f} {warm.compile:7.3f} {warm.whole:7.3f} {warm.peak / MB:7.1f}"]
    if theirs:
        other = middle(theirs)
        ratio, more = warm.whole / other.whole, warm.peak / other.peak
        kept += [more <= 1.0, *([ratio <= 1.0] if engine == "onnxruntime" else [])]
        columns += [f"{other.whole:7.3f} {other.peak / MB:7.1f} {ratio:6.2f} {more:6.2f}"]
    print(*columns, "pass" if all(kept) else "FAIL", flush=True)
    return all(kept)


def shell(runs: int, folder: Path) -> bool:
    """Print the rows of the command; whether every bound is kept."""
    files = suite.found(tuple(suite.CONVERT))
    jobs: dict[str, tuple[list[str], float | None]] = {"--help": (["--help"], suite.HELP)}
    jobs |= {n: ([str(p), "-o", str(folder / "out.nnx")], suite.CONVERT.get(n)) for n, p in files.items()}
    kept = []
    for name, (job, bound) in jobs.items():
        took = seconds(job, runs)
        kept.append(bound is None or took <= bound)
        print(f"{name:38} {took:7.3f} s", suite.verdict(took, bound), flush=True)
    return all(kept)


def main(words: Sequence[str]) -> int:
    """Print the tables; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="What a start costs.")
    parser.add_argument("names", nargs="*", help="models (all by default)")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(words)
    for line in filter(None, (suite.absent(), *missing())):
        print(line)
    try:
        files = suite.golden(tuple(given.names))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        kept += [shell(given.runs, Path(folder))] if not given.names else []
        print(f"{'seconds and MB':38} {'cold':>7} {'cached':>7} {'process':>7} {'peak':>7} {'peer':>7} {'peak':>7} "
              f"{'ratio':>6} {'memory':>6}")
        for name, path in files.items():
            try:
                kept.append(measure(name, path, given.runs, Path(folder)))
            except (subprocess.CalledProcessError, NnxError) as error:
                said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
                print(f"{name:38} {(said.strip().splitlines() or ['fails'])[-1]:.90}", flush=True)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
