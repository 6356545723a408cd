"""`nnx-convert check MODEL`: the verdict before the device gives it, and a line that a pipeline can gate on."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..check import FIGURES, Check, Condition, broken, checks, conditions, grouped, refusal
from ..codes import LEVELS
from ..emit.report import LABEL, MOST, counted, headed, listed, wrapped
from ..emit.verdicts import Verdict, span
from ..errors import ExitCode
from ..target import Target, level_name
from ..types import Shape
from .screen import Progress, Volume, show, show_json, volume
from .tracing import as_json as trace, told

if TYPE_CHECKING:
    from ..lowering.rewrite import Event


def check_file(model: str, target: Target, every: bool, fail_on: str, signature: str | None,
               shapes: Mapping[str, Shape], report: str, traced: bool = False) -> ExitCode:
    """Do it; raises `NnxError`. Ends with `UNSUPPORTED` where a condition of --fail-on is met."""
    begun, asked = time.perf_counter(), conditions(fail_on)
    levels = [replace(target.whole, level=n) for n in LEVELS] if every else []
    targets = levels if target in levels else [target, *levels]
    traces = dict[Target, "list[Event]"]()
    with Progress() as progress, told(traced, report) as events:
        found = checks(model, targets, shapes=shapes, signature=signature, progress=progress, traces=traces)
        if events is not None:
            events.extend(traces.get(target, ()))
    own = found[targets.index(target)]
    met = [c for c in asked if c.met(own)]
    seconds, name = time.perf_counter() - begun, Path(model).name
    if report == "json":
        show_json({"source": name, "seconds": seconds, "targets": [as_json(c) for c in found],
                   "fail_on": [{"condition": c.text, "value": FIGURES[c.figure](own), "met": c in met} for c in asked],
                   "good": not met, **trace(events)})
    else:
        quiet = volume.get() is Volume.QUIET
        screen = () if quiet else (*lines(name, own, seconds), *(table(found) if every else ()))
        show((*screen, *gate(own, asked)), LABEL)
    return ExitCode.UNSUPPORTED if met else ExitCode.GOOD


def lines(name: str, found: Check, seconds: float) -> Iterator[tuple[str, str]]:
    """The screen: what is not taken, why and what to change; then what is, and what it needs."""
    most = len(found.verdicts) if volume.get() is Volume.VERBOSE else MOST
    yield from headed(f"{name}   for {found.target}", f"{seconds:.2f} s")
    lost = grouped([v for v in found.verdicts if not v.taken])
    for same in lost[:most]:
        yield from wrapped("  host" if same[0].kind == "host" else "  refused", refusal(same))
        yield from wrapped("", f"change: {same[0].change}")
    if len(lost) > most:
        yield "", f"and {counted(sum(map(len, lost[most:])), 'more operation')}: --verbose says which"
    for kind in ("base", "EX", "DENSIFY"):
        taken = [v for v in found.verdicts if v.taken and v.kind == kind]
        if taken:
            yield from wrapped(f"  {kind}", listed(counts(taken)))
    needs = grouped([v for v in found.verdicts if v.taken and v.level is not None and v.level > LEVELS[0]])
    needs.sort(key=lambda same: (-(same[0].level or 0), -len(same)))
    for n, same in enumerate(needs[:most]):
        yield from wrapped("" if n else "needs", need(same))
    if len(needs) > most:
        yield "", f"and {counted(len(needs) - most, 'more reason')}: --verbose says which"
    if volume.get() is Volume.VERBOSE:
        yield from each(found)
    yield from pieces(found, most)


def each(found: Check) -> Iterator[tuple[str, str]]:
    """Every operation, a line each."""
    for n, v in enumerate(found.verdicts):
        level = f"level {level_name(v.level)}" if v.level is not None else v.kind
        yield "" if n else "each", f"{v.place.origin or v.place.operation}: {v.place.name}, {level}, {v.rule}"


def counts(found: Sequence[Verdict]) -> dict[str, int]:
    """Operations by name, the most frequent first."""
    return {same: n for n, same in sorted(((sum(v.place.name == name for v in found), name)
                                           for name in {v.place.name for v in found}), key=lambda i: (-i[0], i[1]))}


def need(same: Sequence[Verdict]) -> str:
    """Operations that take a level, and what makes it so."""
    level = level_name(same[0].level or LEVELS[0])
    return f"level {level}: {same[0].place.name} {broken(same)} ({counted(len(same), 'operation')})"


def pieces(found: Check, most: int) -> Iterator[tuple[str, str]]:
    """The partitions a driver would see."""
    for n, piece in enumerate(found.partitions[:most] if found.refused else ()):
        begin, end = span(found.model, piece)
        size = counted(len(piece), "operation")
        yield from wrapped("" if n else "driver", f"partition {n}: {begin} to {end}, {size}")
    if found.refused and len(found.partitions) > most:
        yield "", f"and {counted(len(found.partitions) - most, 'more partition')}"


def table(found: Sequence[Check]) -> Iterator[tuple[str, str]]:
    """A line for each target."""
    yield "targets", f"{'level':<8}{'device':>8}{'host':>8}{'refused':>9}{'partitions':>12}"
    for c in found:
        called = level_name(c.target.level) if c.target.limits is None else f"{c.target.limits.name:.20} "
        yield "", (f"{called:<8}{len(c.verdicts) - c.refused:>8}{c.host:>8}{c.refused:>9}"
                   f"{len(c.partitions):>12}")


def gate(found: Check, asked: Sequence[Condition]) -> Iterator[tuple[str, str]]:
    """The last line: the figures that can be gated on, and which conditions are met."""
    figures = {name: figure(found) for name, figure in FIGURES.items()}
    text = "   ".join(f"{name} {level_name(n) if name == 'level' else n}" for name, n in figures.items())
    failed = [c.text for c in asked if c.met(found)]
    yield "verdict", text + ("" if not asked else f"   fails on {', '.join(failed)}" if failed else "   good")


def as_json(found: Check) -> dict[str, Any]:
    """A target's check as what `json.dumps` takes."""
    return {"target": {**asdict(found.target), "level": level_name(found.target.level)},
            "host": found.host, "refused": found.refused, "level": level_name(found.level),
            "operations": [{"operation": v.place.name, "origin": v.place.origin, "subgraph": v.place.subgraph,
                            "index": v.place.operation, "kind": v.kind, "taken": v.taken,
                            "level": None if v.level is None else level_name(v.level), "rule": v.rule,
                            "partition": v.partition, "change": v.change or None} for v in found.verdicts],
            "partitions": [list(p) for p in found.partitions]}
