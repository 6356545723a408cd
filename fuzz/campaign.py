"""A campaign: each target in processes of its own under limits, restarted where one of them ends early, and counted."""
from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import ROOT, seeds
from .child import keep
from .faults import Fault
from .targets import TARGETS

#: Processes of one target that may end early before it is given up.
ENDS = 20
#: How libFuzzer tells of its coverage.
COVERAGE = re.compile(r"cov: (\d+)")


@dataclass
class Outcome:
    """What became of a target: executions, seconds on the clock and of the processor, coverage, faults by their key."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    coverage: int = 0
    fresh: int = 0
    resident: int = 0
    faults: Counter[str] = field(default_factory=Counter[str])

    def add(self, counts: dict[str, Any]) -> None:
        """What one process counted."""
        self.executions += counts["executions"]
        self.seconds += counts["seconds"]
        self.processor += counts["processor"]
        self.resident = max(self.resident, counts["resident"])
        self.faults.update(counts["faults"])

    def __str__(self) -> str:
        return (f"{self.target:8} {self.executions:9,} {self.seconds:8.0f} {self.processor:9.0f} "
                f"{self.executions / max(self.seconds, 1e-9):8.1f} {self.coverage:9,} {self.fresh:10,} "
                f"{self.resident >> 20:8,} {len(self.faults):7}")


HEADER = (f"{'target':8} {'executed':>9} {'seconds':>8} {'processor':>9} {'a second':>8} {'coverage':>9} "
          f"{'new inputs':>10} {'resident':>8} {'faults':>7}")


def run(target: str, folder: Path, seconds: float, seed: int, blind: bool) -> Outcome:
    """Fuzz a target for so long; its corpus, its log and its faults stay in the folder."""
    for name in ("corpus", "seeds", "faults"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sow(target, folder / "seeds")
    found, before = Outcome(target), len(list((folder / "corpus").iterdir()))
    for n in range(ENDS):
        (folder / "count.json").unlink(missing_ok=True)
        words = [sys.executable, "-m", "fuzz.child", target, str(folder), str(seconds - found.seconds), str(seed + n),
                 str(int(blind))]
        with open(folder / "log", "ab") as log:
            ended = subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, check=False).returncode
        if not (folder / "count.json").exists():
            tail = (folder / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{target} did not begin:\n{tail}")
        found.add(json.loads((folder / "count.json").read_text()))
        if ended == 0:
            break
        _ended(found, folder, ended)
    told = COVERAGE.findall((folder / "log").read_text(errors="replace"))
    found.coverage, found.fresh = int(told[-1]) if told else 0, len(list((folder / "corpus").iterdir())) - before
    return found


def sow(target: str, folder: Path) -> None:
    """Write the seeds of a target's formats, where a campaign before has not."""
    if any(folder.iterdir()):
        return
    for format in TARGETS[target].formats:
        for i, data in enumerate(seeds.seeds(format).values()):
            (folder / f"{format}-{i}").write_bytes(data)


def _ended(found: Outcome, folder: Path, code: int) -> None:
    """A process that ended before its time: by a signal of its own, or by libFuzzer, which waited too long."""
    log = (folder / "log").read_text(errors="replace")[-20_000:]
    said = re.search(r"Fatal Python error: ([^\n]*)|libFuzzer: ([^\n(]*)", log)
    kind = signal.Signals(-code).name if code < 0 else f"exit {code}"
    where = re.findall(r'File "[^"]*nnx_convert/([^"]*)", line \d+ in (\w+)', log)
    place = ":".join(where[0]) if where else "nowhere"
    fault = Fault(f"{kind} {said and (said[1] or said[2])}", place, "the process ended", log)
    found.faults[fault.key] += 1
    keep(folder / "faults", (folder / "last").read_bytes(), fault)
