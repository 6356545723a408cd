"""`nnx-convert ci FILE`: many models in one table, and one exit code."""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..ci import cluster, junit, pool
from ..ci.outcome import Outcome, Step, code
from ..ci.settings import chosen, load
from ..emit.report import LABEL, counted, wrapped
from ..errors import ExitCode
from ..runtime.blas import cores
from .screen import Progress, Volume, notice, show, show_json, volume
from .tables import Column, show_table

COLUMNS = (Column("entry", flexible=True), Column("asked"), Column("of", flexible=True), Column("found", flexible=True),
           Column("limit", flexible=True), Column(""))


def run_entries(file: str, jobs: int | None, only: Sequence[str], junit_to: str | None, dask: str | None, report: str
                ) -> ExitCode:
    """Do it; raises `NnxError` where the file itself makes no sense, or no cluster answers."""
    begun = time.perf_counter()
    entries = chosen(load(file), tuple(only))
    with Progress() as progress:
        progress(f"running {counted(len(entries), 'entry').replace('entrys', 'entries')}")
        found = cluster.ran(entries, dask, progress) if dask else pool.ran(entries, jobs or cores(), progress)
    seconds, end = time.perf_counter() - begun, code(found)
    if junit_to:
        junit.save(junit_to, found)
    if report == "json":
        show_json({"source": Path(file).name, "seconds": seconds, "good": end is ExitCode.GOOD, "exit_code": int(end),
                   "entries": [as_json(o) for o in found], "junit": junit_to})
        return end
    for o in found:
        for text in o.notes:
            notice(f"{o.entry}: {text}")
    rows = list(table(found))
    if rows or volume.get() is not Volume.QUIET:
        show_table(COLUMNS, rows)
    show(lines(found, seconds, end, junit_to), LABEL)
    return end


def table(found: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """A line for each thing that was asked; with --quiet, for what is not as asked alone."""
    for o in found:
        for s in o.steps:
            if not (s.good and volume.get() is Volume.QUIET):
                yield o.entry, s.kind, s.of, s.found, s.limit, "" if s.good else "<-"


def lines(found: Sequence[Outcome], seconds: float, end: ExitCode, junit_to: str | None) -> Iterator[tuple[str, str]]:
    """Below the table: why what failed did, and the verdict."""
    for o in found:
        for s in o.steps:
            if not s.good:
                yield from wrapped("fails" if s.judged else "fault", f"{o.entry}: {told(s)}")
    if junit_to:
        yield "wrote", junit_to
    good, steps = sum(o.good for o in found), [s for o in found for s in o.steps]
    yield "verdict", (f"{good} of {len(found)} entries good, {sum(s.good for s in steps)} of {len(steps)} steps   "
                      f"{seconds:.1f} s   {'good' if end is ExitCode.GOOD else f'ends with {int(end)}'}")


def told(s: Step) -> str:
    """A step and why it failed."""
    return f"{' '.join(filter(None, (s.kind, s.of)))}: {s.why or s.found}"


def as_json(o: Outcome) -> dict[str, Any]:
    """An entry's outcome by its keys."""
    steps = [{**asdict(s), "code": int(s.code), "good": s.good} for s in o.steps]
    return {"entry": o.entry, "source": o.source, "good": o.good, "seconds": o.seconds, "steps": steps,
            "notes": list(o.notes)}
