"""`python -m benchmarks.startup [--runs N]`: what the command costs from the shell, median of N."""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from . import suite


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


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="The command from the shell.")
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args(words).runs
    if line := suite.absent():
        print(line)
    files = suite.found(tuple(suite.CONVERT))
    with tempfile.TemporaryDirectory() as folder:
        jobs: dict[str, tuple[list[str], float | None]] = {"--help": (["--help"], suite.HELP)}
        jobs |= {n: ([str(p), "-o", str(Path(folder) / "out.nnx")], suite.CONVERT.get(n))
                 for n, p in files.items()}
        kept = []
        for name, (job, bound) in jobs.items():
            took = seconds(job, runs)
            kept.append(bound is None or took <= bound)
            print(f"{name:38} {took:7.3f} s", suite.verdict(took, bound), flush=True)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
