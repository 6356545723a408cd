"""`python -m fuzz [--seconds S] [--seed N] [--jobs N] [--blind] [--work FOLDER] [TARGET...]`: hostile files, counted.

Each target is fuzzed for so many seconds, `--jobs` of them at once. A folder given with `--work` keeps the file of each
fault, and what coverage grew by. Ends with 1 where there are faults.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from . import campaign
from .targets import TARGETS


def main(words: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.split("\n\n")[1])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all of them by default")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="libFuzzer's (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time (default: 1)")
    parser.add_argument("--blind", action="store_true", help="without atheris: ten times as many, nothing is learnt")
    parser.add_argument("--work", type=Path, help="the folder that keeps corpus, faults and logs")
    given = parser.parse_args(words)
    if lost := [t for t in given.targets if t not in TARGETS]:
        parser.error(f"there is no target {lost[0]!r}: {', '.join(TARGETS)}")
    if not given.blind and find_spec("atheris") is None:
        parser.error("atheris is not installed: pip install '.[fuzz]', or --blind")
    with tempfile.TemporaryDirectory() as scratch:
        return fuzzed(given, given.work or Path(scratch))


def fuzzed(given: argparse.Namespace, work: Path) -> int:
    """Fuzz the targets and tell what became of them; the exit code."""
    print(campaign.HEADER, flush=True)
    faults = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(lambda t: campaign.run(t, work / t, given.seconds, given.seed, given.blind),
                              given.targets or list(TARGETS)):
            print(found, flush=True)
            faults += len(found.faults)
            for key, count in found.faults.items():
                print(f"    {count:6} times: {key}", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
