"""What the engines took, model by model, and what the whole table comes to."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, log

from . import suite

#: Engines of a format's own; the third reads both. Ours with the rounding of XNNPACK, beside "ours".
OWN, BOTH = ("litert", "onnxruntime"), "openvino"
FAST = "fast"


@dataclass
class Row:
    """A model with so many threads: medians and minima in seconds by engine, "ours" among them.

    `problems` are what engines that were not timed say; a row that has no "ours" is a model that does not run.
    """

    model: str
    threads: int
    kind: str = "float"
    median: dict[str, float] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def own(self) -> str | None:
        """The engine of the model's format, where it was timed."""
        return next((name for name in OWN if name in self.median), None)

    @property
    def tiny(self) -> bool:
        """Whether the engine of its format takes so little that a call is what is measured."""
        return self.own is not None and self.median[self.own] < suite.TINY

    @property
    def beyond(self) -> float:
        """Seconds over the engine of its format."""
        return self.median["ours"] - self.median[self.own] if self.own else 0.0

    def ratio(self, *engines: str, least: bool = False) -> float | None:
        """Ours in parts of the fastest of these engines; None where none was timed."""
        times = self.least if least else self.median
        there = [times[e] for e in engines if e in times]
        return times["ours"] / min(there) if there and "ours" in times else None


def merged(one: Row, other: Row) -> Row:
    """A row with the other engines of another one, whose times are scaled to what ours took there."""
    scale = one.median["ours"] / other.median["ours"]
    for engine in other.median.keys() - {"ours"}:
        one.median[engine], one.least[engine] = (t[engine] * scale for t in (other.median, other.least))
    one.problems |= other.problems
    one.versions |= other.versions
    return one


def mean(values: Sequence[float]) -> float | None:
    """The geometric mean; None of nothing."""
    return exp(sum(map(log, values)) / len(values)) if values else None


@dataclass(frozen=True)
class Verdict:
    """A figure of the whole table and the bound it is held to."""

    what: str
    value: float | None
    bound: float | None = None                   # None: it is told, and held to nothing

    @property
    def kept(self) -> bool:
        """Whether the bound is kept; nothing measured breaks none."""
        return self.value is None or self.bound is None or self.value <= self.bound


def verdicts(rows: Sequence[Row], threads: int) -> Iterator[Verdict]:
    """What the rows with so many threads come to."""
    timed = [r for r in rows if r.threads == threads and "ours" in r.median]
    large = [r for r in timed if not r.tiny]
    for kind, (bound, of_all) in suite.MEANS.items():
        mine = [r for r in large if r.kind == kind]
        for text, engines, limit in (("LiteRT or ONNX Runtime", OWN, bound), ("the fastest", (*OWN, BOTH), of_all)):
            found = [x for r in mine if (x := r.ratio(*engines)) is not None]
            yield Verdict(f"{kind}: geometric mean of ours / {text}, {len(found)} models", mean(found), limit)
    exact = [x for r in large if (x := r.ratio(FAST)) is not None]
    yield Verdict(f"int8: geometric mean of exact / fast rounding, {len(exact)} models", mean(exact))
    worst = max(((x, r.model) for r in large if (x := r.ratio(*OWN)) is not None), default=None)
    yield Verdict(f"the largest ours / LiteRT or ONNX Runtime{f': {worst[1]}' if worst else ''}",
                  worst and worst[0], suite.WORST)
    tiny = max(((1e6 * r.beyond, r.model) for r in timed if r.tiny), default=None)
    yield Verdict(f"the most us over an engine that takes under {1e6 * suite.TINY:.0f}"
                  f"{f': {tiny[1]}' if tiny else ''}", tiny and tiny[0], 1e6 * suite.BEYOND)
