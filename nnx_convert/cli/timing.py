"""`nnx-convert bench FILE`: how long a run takes, beside other engines in the same process."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ..arrays import Given
from ..emit.report import LABEL, headed
from ..measuring import Timed, compared, joined, multiplied, ours, theirs
from ..runtime.blas import cores
from ..types import Shape
from .profiles import form_of, steps, table, write_profile
from .running import described, shape_fields
from .screen import Progress, show, show_json


def bench_file(file: str, backends: Sequence[str], rounding: str, peers: Sequence[str], threads: int | None, runs: int,
               archive: str | None, seed: int, shapes: Mapping[str, Shape], per_op: bool,
               profile_to: str | None, report: str) -> None:
    """Do it; raises `NnxError` where this package's own engine cannot run the file."""
    count = threads or cores()
    if profile_to:
        form_of(profile_to)
    with Progress() as progress:
        progress("compiling")
        inputs: tuple[Given, ...] = ()
        found = []
        for backend in backends or ("auto",):
            own, inputs = ours(file, backend, count, archive, seed, shapes, rounding)
            found.append(own)
        arrays = [g.array for g in inputs]
        found += [theirs(file, name, count, arrays) for name in peers]
        progress("running")
        timed = compared([c.run for c in found if c.run], runs)
        first = found[0].model
        profile = first.profile({g.name: g.array for g in inputs}, runs) if first and (per_op or profile_to) else None
        work = multiplied(first, {g.name: g.array for g in inputs}) if first else None
    rows = list(joined(found, timed, work))
    if profile_to and profile is not None:
        write_profile(profile_to, profile, Path(file).name)
    if report == "json":
        show_json({"source": Path(file).name, "threads": count, "runs": runs,
                   "inputs": [{"name": g.name, "from": g.origin, **shape_fields(g.array)} for g in inputs],
                   "macs": work, "engines": [asdict(r) for r in rows],
                   "per_op": steps(profile) if profile is not None and per_op else None})
    else:
        detail = (("", ""), *table(profile)) if profile is not None and per_op else ()
        show((*lines(Path(file).name, count, runs, inputs, rows), *detail), LABEL)


def lines(name: str, threads: int, runs: int, inputs: Sequence[Given], rows: Sequence[Timed]
          ) -> Iterator[tuple[str, str]]:
    """The screen."""
    yield from headed(name, f"{runs} runs in turns, {threads} thread{'s' * (threads > 1)}")
    for g in inputs:
        yield "  in", f"{g.name}   {described(g.array)}   from {g.origin}"
    width = max(len(r.engine) for r in rows)
    for n, r in enumerate(rows):
        label = "median" if not n else ""
        if r.median is None or r.least is None:
            yield label, f"{r.engine:<{width}}   {r.problem}"
            continue
        beside = f"   {rows[0].engine} takes {r.ratio:.2f} of it, {r.ratio_of_least:.2f} at the least" if n else ""
        speed = f"   {r.gflops:.1f} GFLOP/s" if r.gflops else ""
        yield label, (f"{r.engine:<{width}}   {1e3 * r.median:.3f} ms   least {1e3 * r.least:.3f}{speed}   "
                      f"ready in {r.ready:.2f} s{beside}")
