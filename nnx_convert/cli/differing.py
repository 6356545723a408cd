"""`nnx-convert diff A B`: what a change of a model changed, and a line to gate on."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ..comparison import LISTS, SAID, Change, Comparison, Figure, compare, conditions, met, summary
from ..emit.report import LABEL, MOST, counted, headed, wrapped
from ..errors import ExitCode
from ..inspection import inspect
from ..types import Shape
from .screen import Progress, Volume, show, show_json, volume


def diff_files(before: str, after: str, fail_on: str, shapes: Mapping[str, Shape], report: str) -> ExitCode:
    """Do it; raises `NnxError`. Ends with `DIFFERENT` where a condition of --fail-on is met."""
    asked = conditions(fail_on)
    with Progress() as progress:
        a, b = (inspect(file, shapes=shapes, progress=progress) for file in (before, after))
        progress("comparing")
        found = compare(a, b)
    failed = [c for c in asked if met(c, found)]
    if report == "json":
        figures = {n: {"before": f.before, "after": f.after, "growth": f.growth} for n, f in found.figures.items()}
        show_json({**asdict(found), "figures": figures, "equal": found.equal,
                   "fail_on": [{"condition": c, "met": c in failed} for c in asked], "good": not failed})
    else:
        show((*(() if volume.get() is Volume.QUIET else lines(found)), verdict(found, asked, failed)), LABEL)
    return ExitCode.DIFFERENT if failed else ExitCode.GOOD


def lines(found: Comparison) -> Iterator[tuple[str, str]]:
    """The screen: figures, then what differs."""
    yield from headed(f"{found.before}   to   {found.after}", "")
    for n, (name, f) in enumerate(found.figures.items()):
        yield "" if n else "figures", figure(name, f)
    for name, of in LISTS.items():
        yield from changes(name, of(found))


def figure(name: str, f: Figure) -> str:
    """A number before and after."""
    a, b = ("?" if n is None else SAID[name](n) for n in (f.before, f.after))
    growth = "" if not f.changed or f.growth is None else f"   {f.growth:+.1%}"
    return f"{name:<9}{a:>10}" + (f"  ->{b:>10}{growth}" if f.changed else "")


def changes(name: str, found: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """The first of many changes; with --verbose all."""
    most = len(found) if volume.get() is Volume.VERBOSE else 2 * MOST
    for n, c in enumerate(found[:most]):
        yield from wrapped("" if n else name, f"{c.of}: {c.before or 'none'} -> {c.after or 'none'}")
    if len(found) > most:
        yield "", f"and {counted(len(found) - most, 'more change')}: --verbose says which"


def verdict(found: Comparison, asked: Sequence[str], failed: Sequence[str]) -> tuple[str, str]:
    """The last line."""
    return "verdict", summary(found) + (f"   fails on {', '.join(failed)}" if failed else "   good" * bool(asked))
