"""`nnx-convert verify MODEL`: the same inputs through a model and what its values are compared with."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..convert import read
from ..emit.report import LABEL, WIDTH, counted, headed, wrapped
from ..errors import ExitCode, InputError, NnxError, UsageError, among, near
from ..runtime.compiled import TensorSpec
from ..target import Target
from ..types import Quant, Shape
from ..verify.archives import Recorded, runs
from ..verify.junit import save, sentence
from ..verify.metrics import Measure, Tolerance
from ..verify.opening import Subject, another, recording, runtime, verify
from ..verify.references import ENGINES, Reference
from ..verify.verdict import Range, Row, Verdict
from .arrays import MAGIC, Given, assembled, drawn, read_archive, read_array
from .running import described, finite
from .screen import Progress, Volume, notice, show, show_json, volume

#: Rows of a table beyond these are counted, not shown.
MOST = 12
#: Runs in a row of a model that leaves something to the next, where inputs are drawn.
STATEFUL_RUNS = 3
#: A name is shortened to this many characters where others stand beside it.
NAME = 40


def verify_file(model: str, against: str, given: Mapping[str, str], archive: str | None, seed: int | None,
                count: int | None, feed: Mapping[str, str], per_op: bool, atol: float | None, rtol: float | None,
                steps: int | None, backend: str, threads: int | None, junit: str | None, target: Target,
                shapes: Mapping[str, Shape], report: str) -> ExitCode:
    """Do it; raises `NnxError`. Ends with `DIFFERENT` where anything diverges."""
    begun, name = time.perf_counter(), Path(model).name
    with Progress() as progress:
        found, inputs = verified(model, against, given, archive, seed, count, feed, per_op, atol, rtol, steps, backend,
                                 threads, target, shapes, progress)
    seconds = time.perf_counter() - begun
    if junit:
        save(junit, found, name, seconds)
    if report == "json":
        show_json(as_json(found, name, seconds, inputs, junit))
    else:
        show(lines(found, name, seconds, inputs, per_op, junit), LABEL)
    return ExitCode.GOOD if found.good else ExitCode.DIFFERENT


def verified(model: str, against: str, given: Mapping[str, str], archive: str | None, seed: int | None,
             count: int | None, feed: Mapping[str, str], per_op: bool, atol: float | None, rtol: float | None,
             steps: int | None, backend: str, threads: int | None, target: Target, shapes: Mapping[str, Shape],
             progress: Callable[[str], None]) -> tuple[Verdict, list[Given]]:
    """The verdict, and the inputs of the first run; raises `NnxError` with the model's name."""
    name = Path(model).name
    progress("reading")
    subject = Subject(model, target, shapes)
    try:
        subject.outputs  # noqa: B018  (the file's faults come before those of options)
        fed(subject, feed)
        held = recorded(subject, against)
        reference = opened(subject, against, held, per_op, backend, threads)
        source = archive or (against if held and held[0].inputs and seed is None and not given else None)
        sets = given_runs(subject, given, source, seed, count, feed, held)
        progress("running")
        found = verify(subject, reference, [{g.name: g.array for g in each} for each in sets], per_op=per_op,
                       tolerance=tolerances(subject, atol, rtol, steps), backend=backend, threads=threads, feed=feed)
    except NnxError as error:
        raise error if name in error.where else error.at(name) from error
    return found, sets[0]


def tolerances(subject: Subject, atol: float | None, rtol: float | None, steps: int | None
               ) -> tuple[Tolerance, Tolerance]:
    """What is taken for equal, of outputs and of tensors between."""
    if atol is None and rtol is None:
        return subject.tolerance(steps)
    both = Tolerance(atol, rtol, steps or 0)
    return both, both


def recorded(subject: Subject, against: str) -> list[Recorded]:
    """The runs of the archive that a model is compared with; none where it is something else."""
    if against in ENGINES or not os.path.exists(against):
        return []
    if not bytes(read(against)[0][:8]).startswith(tuple(MAGIC.values())):
        return []
    return list(runs(read_archive(against), [s.name for s in subject.inputs], subject.outputs))


def opened(subject: Subject, against: str, held: Sequence[Recorded], per_op: bool, backend: str,
           threads: int | None) -> Reference:
    """What the model is compared with; raises `UsageError` where there is no such thing."""
    if held:
        return recording(subject, Path(against).name, held)
    if against and against not in ENGINES and os.path.exists(against):
        return another(against, subject, per_op, backend, threads)
    if against and against not in ENGINES:
        raise UsageError(f"there is neither a file nor an engine {against!r}",
                         hint=near(against, ENGINES, f"engines are {', '.join(ENGINES)}"))
    return runtime(subject, against, per_op)


def fed(subject: Subject, feed: Mapping[str, str]) -> None:
    """Raise `UsageError` on a name of --feed that the model has not."""
    inputs = [s.name for s in subject.inputs]
    for name, output in feed.items():
        for lost, known, noun in ((name, inputs, "inputs"), (output, subject.outputs, "outputs")):
            if lost not in known:
                raise UsageError(f"--feed: there is no {noun[:-1]} {lost!r}", hint=among(lost, known, noun))


def given_runs(subject: Subject, files: Mapping[str, str], archive: str | None, seed: int | None, count: int | None,
               feed: Mapping[str, str], held: Sequence[Recorded]) -> list[list[Given]]:
    """The inputs of each run: of single files, then of an archive, then drawn; raises `InputError` where one lacks.

    Without any of them they are drawn. An archive's later runs that lack an input are left out, which is said.
    """
    names = [s.name for s in subject.inputs]
    if unknown := [n for n in files if n not in names]:
        raise InputError(f"there is no input {unknown[0]!r}", hint=among(unknown[0], names, "inputs"))
    members = read_archive(archive) if archive else {}
    sets = list(runs(members, names, subject.outputs)) if archive else []
    if held and seed is None and not (archive or files):
        raise InputError("the archive of --against holds no inputs",
                         hint="give those its outputs belong to: --inputs ALL.npz, --input NAME=x.npy or --random SEED")
    seed = 0 if seed is None and not (archive or files) else seed
    most = len(sets) or count or (STATEFUL_RUNS if subject.stateful and seed is not None else 1)
    found: list[list[Given]] = []
    for n in range(min(most, count or most, len(held) or most)):
        own = [g for i, s in enumerate(subject.inputs) if (g := one_input(
            s, i, n, files, sets, members, archive or "", seed, subject.shapes)) is not None]
        lost = [name for name in names if name not in {g.name for g in own} and (n == 0 or name not in feed)]
        if lost and n:
            notice(f"runs {n + 1} to {most} of {archive} lack the input {lost[0]!r} and are left out: "
                   f"--feed {lost[0]}=OUTPUT says which output of the run before it is")
            break
        if lost:
            held_by = f"; {archive} holds {', '.join(list(members)[:12]) or 'nothing'}" if archive else ""
            raise InputError(f"{', '.join(map(repr, lost))} is missing{held_by}",
                             hint="give --input NAME=x.npy, --inputs ALL.npz or --random SEED")
        found.append(own)
    return found


def one_input(spec: TensorSpec, place: int, run: int, files: Mapping[str, str], sets: Sequence[Recorded],
              members: Mapping[str, Any], archive: str, seed: int | None, shapes: Mapping[str, Shape]
              ) -> Given | None:
    """An input of a run; None where nothing gives it."""
    if spec.name in files:
        return Given(spec.name, read_array(files[spec.name]), files[spec.name])
    if spec.holds and archive:
        return Given(spec.name, assembled(spec, members), f"{archive}[{spec.name}[...]]")
    if sets and spec.name in sets[run].inputs:
        return Given(spec.name, sets[run].inputs[spec.name], os.path.basename(archive))
    if seed is not None:
        return Given(spec.name, drawn(spec, (seed + run, place), shapes), f"seed {seed}")
    return None


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
