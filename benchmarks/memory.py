"""`python -m benchmarks.memory [NAME...]`: the peak memory of a run, against weights and arena.

Each model is converted here and run from its .nnx file by a process of its own, which tells its own peak.
"""
from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import suite

#: Bytes of a megabyte.
MB = 1 << 20
#: The process whose memory is measured: load, run twice, tell.
CHILD = "from benchmarks.memory import child; import sys; child(sys.argv[1])"


def peak() -> int:
    """The most bytes this process had resident; of Linux's own count, which starts anew with each program."""
    status = Path("/proc/self/status")
    if status.is_file() and (told := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(told[1]) << 10
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def child(path: str) -> None:
    """Run a .nnx file and print its figures as JSON."""
    import numpy as np

    import nnx_convert
    model = nnx_convert.load(path)
    compiled = nnx_convert.compile(model, threads=2)
    inputs = [np.zeros(tuple(n or 1 for n in s.shape or ()), s.dtype) for s in compiled.inputs if not s.state]
    for _ in range(2):
        compiled.run(inputs)
    highest = peak()
    program = compiled.prepare({s.name: a.shape for s, a in zip(compiled.inputs, inputs, strict=False)})
    weights = sum(o.value.nbytes for o in model.operands if isinstance(o.value, np.ndarray))
    print(json.dumps({"peak": highest, "weights": weights, "arena": program.arena if program else 0}))


def figures(path: Path) -> dict[str, int]:
    """Peak, weights and arena of a model in bytes; raises `CalledProcessError` where it does not run."""
    import nnx_convert
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / "model.nnx"
        nnx_convert.convert(path).save(artifact)
        done = subprocess.run([sys.executable, "-c", CHILD, str(artifact)], cwd=suite.ROOT, check=True,
                              capture_output=True, text=True)
    told: dict[str, int] = json.loads(done.stdout)
    return told


def main(words: Sequence[str]) -> int:
    """Print the table; 0 where every bound is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Peak memory of a run.")
    parser.add_argument("names", nargs="*", help="models (all by default)")
    names = parser.parse_args(words).names
    if line := suite.absent():
        print(line)
    try:
        files = suite.found(suite.MEMORY, tuple(names))
    except KeyError as error:
        print(f"there is no model {error}", file=sys.stderr)
        return 2
    print(f"{'model':38} {'peak MB':>8} {'weights':>8} {'arena':>8}")
    kept = []
    for name, path in files.items():
        f = figures(path)
        bound = f["weights"] + suite.ARENAS * f["arena"] + suite.SPARE
        kept.append(f["peak"] <= bound)
        print(f"{name:38} {f['peak'] / MB:8.1f} {f['weights'] / MB:8.2f} {f['arena'] / MB:8.2f}",
              suite.verdict(f["peak"] / MB, round(bound / MB, 1)), flush=True)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
