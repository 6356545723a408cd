"""What an entry asks for, done in this process: the library's own functions, one after the other."""
from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from .. import comparison, measuring, resources
from ..check import FIGURES, Check, checks, conditions, grouped, refusal
from ..convert import kind, read
from ..errors import ExitCode, NnxError, Notice
from ..inspection import inspect
from ..runtime.blas import cores
from ..target import Target, level_name
from ..verify import asking
from ..verify.junit import sentence
from ..verify.verdict import Verdict as Verified
from .outcome import Outcome, Step
from .settings import SIZES, Entry, Latency

#: What a failure's cause is cut to.
LONG = 400


def done(entry: Entry) -> Outcome:
    """All that an entry asks for; a fault of one thing does not keep the others from being done."""
    begun, steps = time.perf_counter(), list[Step]()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", Notice)
        for name, stage in STAGES.items():
            try:
                with resources.limited(entry.limits):
                    steps += stage(entry)
            except NnxError as error:
                steps.append(fault(name, error.exit_code, error.said))
            except MemoryError:
                steps.append(fault(name, ExitCode.FAILED, "out of memory"))
            except Exception as error:             # a fault of ours, which others' entries must not suffer from
                steps.append(fault(name, ExitCode.FAILED, f"internal error, please report it: "
                                                          f"{type(error).__name__}: {error}"))
    notes = tuple(dict.fromkeys(str(w.message) for w in seen))
    return Outcome(entry.name, Path(entry.path).name, tuple(steps), time.perf_counter() - begun, notes)


def fault(kind: str, code: ExitCode, why: str) -> Step:
    """A thing that could not be found out."""
    return Step(kind, "", "fault", "", code, " ".join(why.split())[:LONG])


def taken(entry: Entry) -> Iterator[Step]:
    """Each target's verdict."""
    asked = conditions(entry.fail_on)
    for found in checks(entry.path, entry.targets, shapes=entry.shapes):
        met = [c.text for c in asked if c.met(found)]
        figures = {name: figure(found) for name, figure in FIGURES.items()}
        said = ", ".join(f"{name} {level_name(n) if name == 'level' else n}" for name, n in figures.items() if n)
        why = f"fails on {', '.join(met)}{lost(found)}" if met else ""
        yield Step("check", named(found.target), said, entry.fail_on,
                   ExitCode.UNSUPPORTED if met else ExitCode.GOOD, why, figures)


def named(target: Target) -> str:
    """A target in short: its level or its own name, and what differs from the usual."""
    usual = Target(target.level)
    more = [f"{n} {getattr(target, n)}".replace(" False", " none").replace("experimental", "DENSIFY")
            for n in ("ex", "experimental", "sparse", "hybrid", "int64", "qdq")
            if getattr(target, n) != getattr(usual, n)]
    device = f"level {level_name(target.level)}" if target.limits is None else target.limits.name
    return ", ".join([device, *more])


def lost(found: Check) -> str:
    """The most frequent reason why operations are not taken."""
    groups = grouped([v for v in found.verdicts if not v.taken])
    if not groups:
        return ""
    change = f"; change: {groups[0][0].change}" if groups[0][0].change else ""
    return f"; {refusal(groups[0])}{change}"[:LONG]


def equal(entry: Entry) -> Iterator[Step]:
    """Each target's model beside each of what it is compared with; a .nnx file is of the one target it was made for."""
    targets = entry.targets[:1] if entry.verify and kind(read(entry.path)[0]) == "nnx" else entry.targets
    for target in targets:
        for asked in entry.verify:
            found, _ = asking.compared(entry.path, asked, target, entry.shapes)
            of = Path(asked.against).name or found.reference
            yield compared(found, of if len(targets) == 1 else f"{named(target)}, {of}", asked.limit)


def compared(found: Verified, of: str, limit: str) -> Step:
    """A comparison as a step."""
    rows = (*found.outputs, *(found.tensors or ()))
    most, bad = max((r.measure.largest for r in found.outputs), default=0.0), sum(not r.measure.good for r in rows)
    said = "fails" if found.failure else f"{f'{bad} of {len(rows)} differ' if bad else 'equal'}, off by {most:.3g}"
    return Step("verify", of, said, limit, ExitCode.GOOD if found.good else ExitCode.DIFFERENT, differences(found),
                {"largest": most if most < float("inf") else None, "compared": len(rows), "differ": bad,
                 "runs": found.runs})


def differences(found: Verified) -> str:
    """What diverges, the first few; "" where nothing does."""
    bad = [r for r in (*found.outputs, *(found.tensors or ())) if not r.measure.good]
    return (found.failure or "; ".join(f"{r.operation} {r.name}: {sentence(r.measure)}".strip()
                                       for r in bad[:3]))[:LONG]


def within(entry: Entry) -> Iterator[Step]:
    """The budgets of the file."""
    if not entry.budgets:
        return
    found = inspect(entry.path, shapes=entry.shapes)
    for name in SIZES:
        if name in entry.budgets:
            number, most = comparison.FIGURES[name](found), entry.budgets[name]
            said = comparison.SAID[name]
            why = ("is not known before a run" if number is None else
                   f"{number} is more than {most:.15g}" if number > most else "")
            yield Step(name, "", "?" if number is None else said(number), f"at most {said(most)}",
                       ExitCode.DIFFERENT if why else ExitCode.GOOD, why, {"value": number, "limit": most})


def unchanged(entry: Entry) -> Iterator[Step]:
    """What differs from the baseline."""
    if entry.diff is None:
        return
    found = comparison.compare(*(inspect(p, shapes=entry.shapes) for p in (entry.diff.path, entry.path)))
    failed = [c for c in comparison.conditions(entry.diff.fail_on) if comparison.met(c, found)]
    figures = {n: {"before": f.before, "after": f.after} for n, f in found.figures.items()}
    yield Step("diff", Path(entry.diff.path).name, comparison.summary(found), entry.diff.fail_on,
               ExitCode.DIFFERENT if failed else ExitCode.GOOD, f"fails on {', '.join(failed)}" if failed else "",
               figures)


def fast(entry: Entry) -> Iterator[Step]:
    """How long a run takes, by itself and beside another engine."""
    asked = entry.latency
    if asked is None:
        return
    threads = asked.threads or cores()
    own, inputs = measuring.ours(entry.path, asked.backend, threads, asked.inputs, asked.random, entry.shapes)
    engines = [own]
    if asked.vs:
        peer = measuring.theirs(entry.path, asked.vs, threads, [g.array for g in inputs])
        if peer.run is None:
            yield fault("ratio", ExitCode.FAILED, f"{asked.vs} {peer.problem}")
        engines.append(peer)
    rows = list(measuring.joined(engines, measuring.compared([e.run for e in engines if e.run], asked.runs)))
    yield from limited(asked, *rows)


def limited(asked: Latency, own: measuring.Timed, peer: measuring.Timed | None = None) -> Iterator[Step]:
    """The medians beside what they may be."""
    def step(kind: str, of: str, value: float, limit: float, said: Callable[[float], str]) -> Step:
        over = value > limit
        return Step(kind, of, said(value), f"at most {said(limit)}", ExitCode.DIFFERENT if over else ExitCode.GOOD,
                    f"{said(value)} is more than {said(limit)}" if over else "", {"value": value, "limit": limit})
    if asked.median is not None and own.median is not None:
        yield step("median", own.engine, own.median, asked.median, lambda s: f"{1e3 * s:.4g} ms")
    if asked.ratio is not None and peer is not None and peer.ratio is not None:
        yield step("ratio", f"to {peer.engine}", peer.ratio, asked.ratio, lambda r: f"{r:.3g}")


STAGES: dict[str, Callable[[Entry], Iterator[Step]]] = {
    "check": taken, "verify": equal, "budgets": within, "diff": unchanged, "latency": fast}
