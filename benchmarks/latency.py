"""`python -m benchmarks.latency [NAME...] [--threads 1,2] [--write]`: runs beside the engines a user would pick.

These are LiteRT with XNNPACK for TFLite models, ONNX Runtime for ONNX models, OpenVINO for both. Models of 8 bits run
with exact rounding, which is compared, and with XNNPACK's (`fast`). The engines run in turns in one process for each
model (`nnx_convert.measuring.compared`), so that they meet the same machine; copies of inputs and outputs are included.
Settings that hold OpenBLAS back are dropped. `--write` puts the tables into docs/performance.md. Ends with 1 where a
bound of `benchmarks.suite` is broken.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import report, suite
from .rows import BOTH, OWN, Row, merged, verdicts

HELD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def rows_of(name: str, path: Path, threads: str, runs: int, backend: str) -> list[Row]:
    """The rows of a model; where an engine takes the process along, each is timed in one of its own."""
    done = child(path, threads, runs, backend, ",".join((*OWN, BOTH)))
    if done.returncode in (0, 1):
        return read(name, threads, done)
    found = {r.threads: r for r in read(name, threads, child(path, threads, runs, backend, ""))}
    for engine in (*OWN, BOTH):
        alone = child(path, threads, runs, backend, engine)
        for row in read(name, threads, alone) if alone.returncode == 0 else ():
            found[row.threads] = merged(found[row.threads], row)
        if alone.returncode not in (0, 1):
            for row in found.values():
                row.problems[engine] = f"ends its process ({alone.returncode})"
    return list(found.values())


def child(path: Path, threads: str, runs: int, backend: str, peers: str) -> subprocess.CompletedProcess[str]:
    """`benchmarks.measure` on a model."""
    env = {k: v for k, v in os.environ.items() if k not in HELD_BACK}
    words = [str(path), "--threads", threads, "--runs", str(runs), "--backend", backend, "--peers", peers]
    return subprocess.run([sys.executable, "-m", "benchmarks.measure", *words], cwd=suite.ROOT, env=env, check=False,
                          capture_output=True, text=True)


def read(name: str, threads: str, done: subprocess.CompletedProcess[str]) -> list[Row]:
    """What a child says, or why it says nothing."""
    found = []
    for told in map(json.loads, done.stdout.splitlines()):
        row = Row(name, told["threads"], told["kind"])
        for e in told["engines"]:
            row.versions[e["engine"]] = e["version"]
            if e["median"] is None:
                row.problems[e["engine"]] = e["problem"]
            else:
                row.median[e["engine"]], row.least[e["engine"]] = e["median"], e["least"]
        found.append(row)
    said = (done.stderr.strip().splitlines() or [f"ends with {done.returncode}"])[-1]
    return found or [Row(name, int(n), problems={"ours": said}) for n in threads.split(",")]


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description="Latency beside LiteRT, ONNX Runtime and OpenVINO.")
    parser.add_argument("names", nargs="*", help="models (all by default)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, each a table")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--backend", choices=("auto", "numpy", "native"), default="auto", help="what computes ours")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    given = parser.parse_args(words)
    for line in filter(None, (suite.absent(), *report.missing())):
        print(line)
    try:
        files = suite.golden(tuple(given.names))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    print(report.HEAD)
    for name, path in files.items():
        found = rows_of(name, path, given.threads, given.runs, given.backend)
        print("\n".join(map(report.line, found)), flush=True)
        rows += found
    counts = [int(n) for n in given.threads.split(",")]
    comes_to = {n: list(verdicts(rows, n)) for n in counts}
    print("\n".join(f"{n} thread{'s' * (n > 1)}, {report.said(v)}" for n in counts for v in comes_to[n]))
    if given.write:
        suite.REPORT.write_text(report.page(rows, given.runs, counts), encoding="utf-8")
    return 0 if all(v.kept for found in comes_to.values() for v in found) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
