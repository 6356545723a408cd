"""`nnx-convert diff A B`: what a change of a model changed, and a line to gate on."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from ..comparison import Change, Comparison, Figure, compare
from ..emit.report import LABEL, MOST, counted, headed, scaled, size, wrapped
from ..errors import ExitCode, UsageError
from ..inspection import inspect
from ..types import Shape
from .screen import Progress, Volume, show, show_json, volume

#: What --fail-on can ask: lists that are to be empty, figures that may grow by so much.
LISTS: dict[str, Callable[[Comparison], Sequence[Change]]] = {
    "ops": lambda c: c.ops, "dtype": lambda c: c.dtypes, "shape": lambda c: c.shapes, "scale": lambda c: c.scales}
FIGURES = ("size", "weights", "macs", "arena", "density")
GROWTH = re.compile(r"(?P<figure>[a-z]+)\+(?P<percent>\d{1,6}(\.\d{1,6})?)%")
#: How a figure is said.
SAID: dict[str, Callable[[float], str]] = {
    "size": lambda n: size(int(n)), "weights": lambda n: size(int(n)), "macs": lambda n: f"{scaled(int(n))}MAC",
    "arena": lambda n: size(int(n)), "density": lambda n: f"{n:.1%}"}


@dataclass(frozen=True)
class Condition:
    """A part of --fail-on: a list that changes, a figure that grows beyond a bound; `met` says whether it fails."""

    text: str
    met: bool


def conditions(text: str, found: Comparison) -> tuple[Condition, ...]:
    """`dtype,ops,macs+5%,size+5%` as they hold; a figure that is not known fails. Raises `UsageError`."""
    return tuple(Condition(part, met(part, found)) for part in parts(text))


def parts(text: str) -> tuple[str, ...]:
    """The conditions as they are written; raises `UsageError` on what is none."""
    found = tuple(filter(None, text.replace(" ", "").split(",")))
    for part in found:
        match = GROWTH.fullmatch(part)
        if part not in LISTS and (match is None or match["figure"] not in FIGURES):
            raise UsageError(f"--fail-on does not know {part!r}", hint=f"its conditions are {', '.join(LISTS)} and the "
                             f"growth of {', '.join(FIGURES)}, as macs+5%")
    return found


def met(part: str, found: Comparison) -> bool:
    """Whether one of them fails."""
    if part in LISTS:
        return bool(LISTS[part](found))
    match = GROWTH.fullmatch(part)
    figure = found.figures[match["figure"]] if match else Figure(None, None)
    growth = figure.growth
    return figure.changed if growth is None else match is not None and growth > float(match["percent"]) / 100


def diff_files(before: str, after: str, fail_on: str, shapes: Mapping[str, Shape], report: str) -> ExitCode:
    """Do it; raises `NnxError`. Ends with `DIFFERENT` where a condition of --fail-on is met."""
    parts(fail_on)
    with Progress() as progress:
        a, b = (inspect(file, shapes=shapes, progress=progress) for file in (before, after))
        progress("comparing")
        found = compare(a, b)
    asked = conditions(fail_on, found)
    failed = [c.text for c in asked if c.met]
    if report == "json":
        figures = {n: {"before": f.before, "after": f.after, "growth": f.growth} for n, f in found.figures.items()}
        show_json({**asdict(found), "figures": figures, "equal": found.equal,
                   "fail_on": [{"condition": c.text, "met": c.met} for c in asked], "good": not failed})
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


def verdict(found: Comparison, asked: Sequence[Condition], failed: Sequence[str]) -> tuple[str, str]:
    """The last line."""
    sizes = {n: found.figures[n].growth for n in ("size", "macs")}
    text = "equal" if found.equal else "   ".join(
        [*(f"{name} {len(of(found))}" for name, of in LISTS.items()),
         *(f"{name} {growth:+.1%}" for name, growth in sizes.items() if growth)])
    return "verdict", text + (f"   fails on {', '.join(failed)}" if failed else "   good" * bool(asked))
