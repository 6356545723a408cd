"""`--profile FILE` of `run` and `bench`: where the time of a run goes, as a table, as JSON or as a trace."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from ..artifact.files import write
from ..errors import UsageError, printable
from ..runtime.profile import Profile, Row


def steps(profile: Profile) -> list[dict[str, Any]]:
    """A profile's rows as what `json.dumps` takes."""
    return [{**asdict(r.work), "seconds": r.seconds, "share": r.share, "gflops": r.gflops} for r in profile.rows]


def table(profile: Profile) -> Iterator[tuple[str, str]]:
    """The same for the screen."""
    yield "per op", f"{'us':>9} {'share':>6} {'KB':>9} {'M macs':>8} {'GFLOP/s':>8}"
    for r in profile.rows:
        yield "", row(r)
    rest = profile.seconds - sum(r.seconds for r in profile.rows)
    yield "", (f"{1e6 * rest:9.1f} {rest / profile.seconds if profile.seconds else 0:6.1%}   "
               "copies of inputs and outputs, and the calls")


def row(r: Row) -> str:
    """A row of the table."""
    w = r.work
    return (f"{1e6 * r.seconds:9.1f} {r.share:6.1%} {w.bytes / 1e3:9.1f} {w.macs / 1e6:8.2f} {r.gflops:8.1f}   "
            f"{w.engine}   {' + '.join(w.operations)}   {w.origins[-1] if w.origins else ''}").rstrip()


def as_text(profile: Profile, name: str) -> str:
    """The table, with what it is of."""
    lines = [f"{name}: {1e6 * profile.seconds:.1f} us a run", *(body for _, body in table(profile))]
    return "\n".join(map(printable, lines)) + "\n"


def as_json(profile: Profile, name: str) -> str:
    """The rows, and the whole run's seconds."""
    return json.dumps({"source": name, "seconds": profile.seconds, "per_op": steps(profile)}, indent=2) + "\n"


def as_trace(profile: Profile, name: str) -> str:
    """Complete events of the trace event format, which chrome://tracing and ui.perfetto.dev open: a run of medians."""
    at, events = 0.0, []
    for n, r in enumerate(profile.rows):
        work = asdict(r.work)
        events.append({"name": " + ".join(r.work.operations), "cat": r.work.engine, "ph": "X", "pid": 1, "tid": 1,
                       "ts": 1e6 * at, "dur": 1e6 * r.seconds,
                       "args": {"step": n, **work, "gflops": r.gflops, "share": r.share}})
        at += r.seconds
    named: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": name}},
                                   {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "a run"}}]
    return json.dumps({"traceEvents": [*named, *events], "displayTimeUnit": "ns"}) + "\n"


#: What a file of a profile holds, by how its name ends: the first that fits.
FORMS: dict[str, Callable[[Profile, str], str]] = {
    ".trace.json": as_trace, ".trace": as_trace, ".json": as_json, ".txt": as_text}


def form_of(path: str) -> Callable[[Profile, str], str]:
    """What writes a profile to such a file; raises `UsageError` on an ending that says nothing."""
    for ending, form in FORMS.items():
        if path.endswith(ending):
            return form
    raise UsageError(f"a profile is no {path!r}", hint="it is a .txt (a table), a .json, or a .trace.json for Perfetto")


def write_profile(path: str, profile: Profile, name: str) -> None:
    """Write the file, whole or not at all."""
    write(path, [form_of(path)(profile, name).encode()])
