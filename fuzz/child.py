"""One process of a campaign: `python -m fuzz.child TARGET FOLDER SECONDS SEED BLIND`, which the command starts.

It watches the coverage of the target's modules, mutates with our edits and writes into the folder: `count.json`,
again and again, and each new fault with the file that causes it. A fault does not end it; a signal does, and `last` is
the file that was run then.
"""
from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import ROOT
from .watched import WATCHED

if TYPE_CHECKING:
    from .faults import Fault

#: Seconds, waiting included, after which libFuzzer ends the process.
PATIENCE = 600
#: Bytes of the longest input.
LONGEST = 1 << 16
#: Seconds between two counts.
EVERY = 1.0
PACKAGE = "nnx_convert"

Run = Callable[[bytes], None]
Mutate = Callable[[bytes, int, int], bytes]


def main(target: str, folder: Path, seconds: float, seed: int, blind: bool) -> None:
    """Fuzz a target; never returns. `blind`: without atheris, so that nothing is learnt of coverage."""
    if not blind:
        _watch(target)
    from .edits import mutated
    from .faults import fault, limited
    from .targets import TARGETS
    limited()
    progress, chosen = Progress(folder, seconds), TARGETS[target]

    def run(data: bytes) -> None:
        progress.before(data)
        progress.after(data, fault(chosen, data))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        found = mutated(data, random.Random(seed))
        return found if len(found) <= most else data

    places = [folder / name for name in ("corpus", "seeds")]
    (_blindly if blind else _seeing)(run, mutate, places, seed)


def _seeing(run: Run, mutate: Mutate, places: Sequence[Path], seed: int) -> None:
    """Let atheris choose what is mutated: what reached something new."""
    import atheris
    atheris.Setup([sys.argv[0], *map(str, places), f"-seed={seed}", f"-timeout={PATIENCE}", f"-max_len={LONGEST}",
                   f"-artifact_prefix={places[0].parent}/", "-rss_limit_mb=0", "-len_control=0"], run,
                  custom_mutator=mutate)
    atheris.Fuzz()


def _blindly(run: Run, mutate: Mutate, places: Sequence[Path], seed: int) -> None:
    """Mutate whatever comes, ten times as many of them."""
    r = random.Random(seed)
    files = sorted(p for place in places for p in place.iterdir())
    while True:
        run(mutate(r.choice(files).read_bytes(), LONGEST, r.getrandbits(64)))


def _watch(target: str) -> None:
    """Import our package, the modules whose coverage counts instrumented; what is not ours is imported before."""
    import atheris
    import llvmlite.binding  # noqa: F401
    import onnx  # noqa: F401
    import tflite  # noqa: F401
    every = [".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
             for p in sorted((ROOT / PACKAGE).rglob("*.py"))]
    watched = [m for m in every if m.startswith(WATCHED[target])]
    # What it instruments, atheris chooses by a name's first part.
    with atheris.instrument_imports(include=[PACKAGE], exclude=sorted({*every} - {*watched})):
        for name in watched:
            importlib.import_module(name)


@dataclass
class Progress:
    """What happened so far in one process: executions, faults, each of them kept once."""

    folder: Path
    seconds: float
    executions: int = 0
    started: float = field(default_factory=time.monotonic)
    told: float = 0.0
    faults: Counter[str] = field(default_factory=Counter[str])

    def before(self, data: bytes) -> None:
        """Keep the file that is run now, should the process end in it."""
        (self.folder / "last").write_bytes(data)

    def after(self, data: bytes, found: Fault | None) -> None:
        """One more execution; ends the process when its time is over."""
        self.executions += 1
        if found is not None:
            if found.key not in self.faults:
                keep(self.folder / "faults", data, found)
            self.faults[found.key] += 1
        now = time.monotonic()
        over = now - self.started > self.seconds
        if over or now - self.told > EVERY:
            self.told = now
            self.tell(now - self.started)
        if over:
            sys.stderr.flush()
            os._exit(0)

    def tell(self, seconds: float) -> None:
        """Write the counts; the parent reads them when this process has ended, whatever ended it."""
        use = resource.getrusage(resource.RUSAGE_SELF)
        counts = {"executions": self.executions, "seconds": seconds, "processor": use.ru_utime + use.ru_stime,
                  "resident": use.ru_maxrss << 10, "faults": self.faults}
        fresh = self.folder / "count.new"
        fresh.write_text(json.dumps(counts))
        fresh.replace(self.folder / "count.json")


def keep(folder: Path, data: bytes, found: Fault) -> None:
    """A fault's file, and beside it what it is."""
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(found.key.encode()).hexdigest()[:12]
    (folder / f"{name}.input").write_bytes(data)
    (folder / f"{name}.txt").write_text(f"{found.key}\n{found.text}\n\n{found.trace}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), bool(int(sys.argv[5])))
