"""The verdict on a model: its outputs and, where asked for, every tensor between, beside a reference's."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InputError, NnxError, UsageError
from ..frozen import frozen
from ..runtime import rim
from ..runtime.compiled import CompiledModel
from ..types import Array, Quant
from .metrics import Gauge, Measure, Tolerance, dequantised
from .references import Reference
from .segments import Anchor, Cut, Segments

Inputs = Mapping[str, Any]


@frozen
class Range:
    """A tensor that an operation is fed with: its name, type and shape, the least and the largest value, its grid."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    least: float | None
    largest: float | None
    grid: Quant | None = None


@frozen
class Row:
    """An output, or a tensor between: `operations` are those of the source that give it, its own last.

    `operation` is the one of them that it is named after. `inputs` are told of a tensor between that diverges.
    """

    name: str
    measure: Measure
    operation: str = ""
    operations: tuple[str, ...] = ()
    inputs: tuple[Range, ...] = ()


@frozen
class Verdict:
    """What was found. `tensors` is None where only outputs were compared.

    `skipped` are tensors that could not be compared, each with the reason; `failure` says why the model as a whole
    could not be run.
    """

    reference: str
    runs: int
    outputs: tuple[Row, ...]
    tensors: tuple[Row, ...] | None = None
    skipped: tuple[tuple[str, str], ...] = ()
    failure: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing diverges."""
        return not self.failure and all(r.measure.good for r in (*self.outputs, *(self.tensors or ())))

    @property
    def first(self) -> Row | None:
        """The first operation's tensor that diverges, though all that it is computed from is right."""
        return next((r for r in self.tensors or () if not r.measure.good), None)


@dataclass
class Verification:
    """Runs of a model in a row beside a reference's.

    `tolerance` and `grids` are those of outputs, `between` is that of what one operation gives. `random`: outputs that
    are drawn. `feed`: inputs that are an output of the run before.
    """

    compiled: CompiledModel
    reference: Reference
    tolerance: Tolerance
    between: Tolerance
    grids: Mapping[str, Quant]
    random: Collection[str] = ()
    cut: Cut | None = None
    backend: str = "auto"
    threads: int | None = None
    feed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._outputs = {s.name: Gauge(self.tolerance, self.grids.get(s.name)) for s in self.compiled.outputs
                         if not s.state and s.name not in self.random}
        self._doors = rim.Doors(self.compiled.model) if self.cut else None
        self._segments = Segments(
            self.cut, "numpy" if self.backend == "auto" else self.backend, self.threads or 0) if self.cut else None
        anchors = self.cut.anchors if self.cut else ()
        self._tensors = {a.name: Gauge(self.between, a.grid) for a in anchors}
        self._ranges: dict[str, Range] = {}
        self._skipped = dict.fromkeys((*self.random, *(a.name for a in anchors if a.random)), "is drawn at random")

    def run(self, runs: Sequence[Inputs]) -> Verdict:
        """The verdict on these runs, each its inputs by name; raises `NnxError` where the reference cannot run."""
        before: Mapping[str, Any] = {}
        failure = ""
        for number, own in enumerate(runs):
            given = dict(own) | {i: before[o] for i, o in self.feed.items() if i not in own and o in before}
            if lost := [i for i in self.feed if i not in given]:
                raise InputError(f"{self.reference.name} has no output {self.feed[lost[0]]!r} to feed {lost[0]!r} with")
            state = self.compiled.state
            wanted = self.cut.names if self.cut else ()
            answer = self.reference.run(number, given, wanted)
            before = answer.outputs
            if not failure:
                failure = self._whole(given, answer.outputs)
            if self._segments is not None:
                tensors = {**answer.tensors, **{n: a for n, a in answer.outputs.items() if isinstance(a, np.ndarray)}}
                self._between({**given, **answer.inputs}, state, self._comparable(tensors, answer.grids))
        return self._verdict(len(runs), failure)

    def _whole(self, given: Inputs, expected: Mapping[str, Any]) -> str:
        """Compare the outputs of one run; what is wrong where there is none."""
        try:
            found = self.compiled.run(dict(given))
        except InputError:
            raise
        except NnxError as error:
            return error.said
        for name, gauge in self._outputs.items():
            if name in expected:
                listed(gauge, found[name], expected[name])
        return ""

    def _comparable(self, tensors: Mapping[str, Array], grids: Mapping[str, Quant]) -> dict[str, Array]:
        """The reference's tensors, as real numbers where ours are and theirs are codes; others are skipped."""
        found = dict(tensors)
        for a in self.cut.anchors if self.cut else ():
            theirs = found.get(a.name)
            if a.name in self._skipped or theirs is None or (theirs.dtype.kind in "fc") == (a.dtype.kind in "fc"):
                continue
            if a.name in grids and theirs.dtype.kind in "iu":
                found[a.name] = dequantised(theirs, grids[a.name])
            elif a.grid is None:
                self._skipped[a.name] = f"is {a.dtype} here and {theirs.dtype} there"
        return {n: array for n, array in found.items() if n not in self._skipped}

    def _between(self, given: Inputs, state: Mapping[str, Array], tensors: Mapping[str, Array]) -> None:
        """Compare every segment's tensor of one run, fed with the reference's."""
        assert self.cut is not None and self._segments is not None and self._doors is not None
        ports = self.cut.legal.rim.inputs
        arrays = rim.by_position(ports, {**state, **given})
        entered = dict(zip(self.cut.legal.inputs, self._doors.enter(arrays), strict=True))
        self._ranges |= {n: ranged(n, a, g) for n, a, g in (
            *((p.name, np.asarray(a), p.quant) for p, a in zip(ports, arrays, strict=True) if a is not None),
            *((a.name, tensors[a.name], a.grid) for a in self.cut.anchors if a.name in tensors))
            if n not in self._ranges}
        for name, found in self._segments.run(entered, tensors).items():
            if isinstance(found, NnxError):
                self._tensors[name].problem = self._tensors[name].problem or found.said
            else:
                self._tensors[name].add(found, tensors[name])

    def _verdict(self, runs: int, failure: str) -> Verdict:
        outputs = tuple(Row(n, g.measure()) for n, g in self._outputs.items() if g.seen or g.problem)
        if not outputs and not failure and not self.random:
            raise UsageError(f"{self.reference.name} has no output of the model",
                             hint=f"the outputs are {', '.join(self._outputs)}")
        if self.cut is None:
            return Verdict(self.reference.name, runs, outputs, None, tuple(self._skipped.items()), failure)
        rows = [self._row(a) for a in self.cut.anchors if self._tensors[a.name].seen or self._tensors[a.name].problem]
        return Verdict(self.reference.name, runs, outputs, tuple(rows), tuple(self._skipped.items()), failure)

    def _row(self, a: Anchor) -> Row:
        measure = self._tensors[a.name].measure()
        ranges = () if measure.good else tuple(self._ranges[n] for n in (*a.given, *a.reads) if n in self._ranges)
        return Row(a.name, measure, str(a.heaviest), tuple(map(str, a.covers)), ranges)


def listed(gauge: Gauge, got: Any, want: Any) -> None:
    """Measure an array, or the arrays of a list or a map one by one."""
    if isinstance(got, list) and isinstance(want, list):
        if len(got) != len(want):
            gauge.problem = gauge.problem or f"is a list of {len(got)}, expected {len(want)}"
        for a, b in zip(got, want, strict=False):
            listed(gauge, a, b)
    elif isinstance(got, dict) and isinstance(want, dict):
        if got.keys() != want.keys():
            gauge.problem = gauge.problem or f"is a map of {len(got)} keys, expected {len(want)}, or of others"
        for key in got.keys() & want.keys():
            listed(gauge, got[key], want[key])
    elif got is not None or want is not None:
        gauge.add(np.asarray(got), np.asarray(want))


def ranged(name: str, array: Array, grid: Any) -> Range:
    """The range of an array's numbers."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    real = array.dtype.kind in "biuf" and finite.size > 0
    return Range(name, array.dtype.name, array.shape, float(finite.min()) if real else None,
                 float(finite.max()) if real else None, grid if isinstance(grid, Quant) else None)


