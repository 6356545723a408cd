"""`nnx-convert verify MODEL`: the same inputs through a model and what its values are compared with."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..arrays import Given
from ..emit.report import LABEL, WIDTH, counted, headed, wrapped
from ..errors import ExitCode
from ..target import Target
from ..types import Quant, Shape
from ..verify.asking import Comparison, compared
from ..verify.junit import save, sentence
from ..verify.metrics import Measure
from ..verify.verdict import Range, Row, Verdict
from .running import described, finite
from .screen import Progress, Volume, show, show_json, volume

#: Rows of a table beyond these are counted, not shown.
MOST = 12
#: A name is shortened to this many characters where others stand beside it.
NAME = 40


def verify_file(model: str, against: str, given: Mapping[str, str], archive: str | None, seed: int | None,
                count: int | None, feed: Mapping[str, str], per_op: bool, atol: float | None, rtol: float | None,
                steps: int | None, backend: str, threads: int | None, junit: str | None, target: Target,
                shapes: Mapping[str, Shape], report: str) -> ExitCode:
    """Do it; raises `NnxError`. Ends with `DIFFERENT` where anything diverges."""
    begun, name = time.perf_counter(), Path(model).name
    with Progress() as progress:
        found, inputs = compared(model, Comparison(against, archive, seed, count, feed, per_op, atol, rtol, steps,
                                                   backend, threads, given), target, shapes, progress)
    seconds = time.perf_counter() - begun
    if junit:
        save(junit, found, name, seconds)
    if report == "json":
        show_json(as_json(found, name, seconds, inputs, junit))
    else:
        show(lines(found, name, seconds, inputs, per_op, junit), LABEL)
    return ExitCode.GOOD if found.good else ExitCode.DIFFERENT


def lines(found: Verdict, name: str, seconds: float, inputs: Sequence[Given], per_op: bool, junit: str | None
          ) -> Iterator[tuple[str, str]]:
    """The screen."""
    if volume.get() is not Volume.QUIET:
        yield from headed(f"{name}   beside {found.reference}, {counted(found.runs, 'run')}", f"{seconds:.2f} s")
        for g in inputs[:MOST]:
            yield "  in", f"{cut_short(g.name)}   {described(g.array)}   from {g.origin}"
        if len(inputs) > MOST:
            yield "", f"and {counted(len(inputs) - MOST, 'more input')}"
        yield "", HEADER
        yield from table("  out", found.outputs, lambda r: cut_short(r.name, WIDTH - LABEL - len(HEADER) + 6))
        if found.tensors is not None:
            yield from table("per op", chosen(found.tensors), told)
            if (rest := len(found.tensors) - len(chosen(found.tensors))) > 0:
                yield "", f"and {counted(rest, 'more tensor')}, all equal: --verbose or --json has them"
    yield from culprit(found, per_op)
    if junit:
        yield "wrote", junit


HEADER = f"{'max error':>9} {'mean':>8} {'SNR dB':>6} {'steps':>5} {'differ':>7}   tensor"


def table(label: str, rows: Sequence[Row], said: Any) -> Iterator[tuple[str, str]]:
    """A line for each tensor."""
    for n, r in enumerate(rows):
        m = r.measure
        if m.problem:
            yield "" if n else label, f"{said(r)}: {m.problem}"[:WIDTH - LABEL]
            continue
        snr = "-" if m.snr is None else f"{m.snr:.1f}"
        steps = "-" if m.steps is None else f"{m.steps:.3g}"
        share = f"{m.share:.2%}" if m.beyond else "0"
        yield "" if n else label, (f"{m.largest:>9.3g} {m.mean:>8.2g} {snr:>6} {steps:>5} {share:>7}   "
                                   f"{said(r)}{'' if m.good else '   <-'}")


def chosen(rows: Sequence[Row]) -> list[Row]:
    """The tensors shown: what diverges, then what is nearest to it, in the order of the graph; all if asked for."""
    if volume.get() is Volume.VERBOSE:
        return list(rows)
    nearest = sorted(rows, key=lambda r: (r.measure.good, not r.measure.problem,
                                          float("inf") if r.measure.snr is None else r.measure.snr))
    picked = {id(r) for r in ([r for r in rows if not r.measure.good] or nearest)[:MOST]}
    picked |= {id(r) for r in nearest[:max(0, MOST - len(picked))]}
    return [r for r in rows if id(r) in picked]


def told(row: Row) -> str:
    """An operation and its tensor, as far as there is room."""
    return cut_short(f"{row.operation}: {row.name}", WIDTH - LABEL - len(HEADER) + 1)


def cut_short(text: str, most: int = NAME) -> str:
    """A name with its middle left out where it is long."""
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:most - 3 - half]}...{text[-half:]}"


def culprit(found: Verdict, per_op: bool) -> Iterator[tuple[str, str]]:
    """What the verdict is: the first operation that diverges with what it is fed with, or that all is equal."""
    first, bad = found.first, [r for r in found.outputs if not r.measure.good]
    if found.failure:
        yield from wrapped("fails", found.failure)
    for r in bad[:MOST]:
        yield from wrapped("differs", f"{cut_short(r.name)}: {sentence(r.measure)}")
    if first is not None:
        yield from wrapped("first", f"{first.operation}{others(first)} diverges at {cut_short(first.name)}: "
                                    f"{sentence(first.measure)}")
        for n, x in enumerate(first.inputs[:MOST]):
            yield "" if n else "  fed with", ranged(x)
    elif bad and per_op:
        yield from wrapped("first", "no operation diverges by itself: either errors add up, or native code is wrong, "
                                    "which --backend native shows")
    elif bad or found.failure:
        yield "hint", "--per-op names the operation that diverges first"
    if found.good:
        more = f" and {counted(len(found.tensors), 'tensor')} between" if found.tensors is not None else ""
        yield "equal", f"{counted(len(found.outputs), 'output')}{more}, within the tolerance"
    if found.skipped:
        yield "", f"{counted(len(found.skipped), 'tensor')} not compared: {found.skipped[0][1]}"


def others(row: Row) -> str:
    """The operations that are one with the one that a row is named after."""
    rest = [o for o in row.operations if o != row.operation]
    more = f" and {len(rest) - 4} more" if len(rest) > 4 else ""
    return f" (one with {', '.join(rest[:4])}{more})" if rest else ""


def ranged(x: Range) -> str:
    """An input of an operation in a line."""
    grid = f"   scale {x.grid.scale:.6g} zero {x.grid.zero}" if x.grid is not None else ""
    reach = "" if x.least is None else f"   {x.least:.6g} to {x.largest:.6g}"
    return f"{cut_short(x.name)}   {x.dtype} [{','.join(map(str, x.shape))}]{reach}{grid}"


def as_json(found: Verdict, name: str, seconds: float, inputs: Sequence[Given], junit: str | None) -> dict[str, Any]:
    """The same as what `json.dumps` takes."""
    first = found.first
    return {
        "source": name, "seconds": seconds, "reference": found.reference, "runs": found.runs, "good": found.good,
        "failure": found.failure or None,
        "inputs": [{"name": g.name, "from": g.origin} for g in inputs],
        "outputs": [row_json(r) for r in found.outputs],
        "tensors": None if found.tensors is None else [row_json(r) for r in found.tensors],
        "first": None if first is None else {
            **row_json(first), "inputs": [{"name": x.name, "dtype": x.dtype, "shape": list(x.shape), "min": x.least,
                                           "max": x.largest, "quantization": grid_json(x.grid)} for x in first.inputs]},
        "skipped": [{"name": n, "reason": why} for n, why in found.skipped], "junit": junit}


def row_json(row: Row) -> dict[str, Any]:
    """A tensor's numbers; what is infinite is null."""
    m: Measure = row.measure
    numbers = {k: finite(v) if isinstance(v, float) else v for k, v in asdict(m).items()}
    return {"name": row.name, "operation": row.operation or None, "operations": list(row.operations),
            **numbers, "share": m.share, "problem": m.problem or None}


def grid_json(grid: Quant | None) -> dict[str, Any] | None:
    """A grid by its keys."""
    return None if grid is None else {"scale": grid.scale, "zero_point": grid.zero}
