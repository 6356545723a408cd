"""The verdict before the device gives it: what a target takes of a model, what it does not and what would change that.

What to change is found by trying: the model is lowered again with another option, for a higher level, with its open
sizes set; an option is named for an operation where all that this operation became is taken then.
"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .codes import LEVELS, level_of, spelt
from .convert import Data, Progress, Source, at_size_1, folder_of, import_graph, kind, lowered, read, sizes
from .emit.levels import predicate
from .emit.report import first
from .emit.verdicts import HOLDS, Verdict, verdicts
from .errors import NnxError, UsageError
from .frozen import frozen
from .graph import Graph
from .model import Model
from .schema import OPS
from .target import Target
from .types import Shape

if TYPE_CHECKING:
    from .lowering.rewrite import Event

#: What is said where no option and no level changes anything.
REPLACE = "no option or level changes this: replace it in the model, or leave it to the host"
#: The same where the table has a rule that the operation breaks.
HOLD = "no option or level changes this: export the model so that it keeps this rule, or leave it to the host"
#: The same of an operation that is not taken for what its subgraphs hold.
INNER = "it is taken where the operations are that it holds: see those"
#: The same of a model whose source file is not at hand.
RECONVERT = "convert the source file for this target"
#: What --fail-on can ask, as a number of a check.
FIGURES: dict[str, Callable[[Check], int]] = {
    "host": lambda c: c.host, "refused": lambda c: c.refused, "level": lambda c: c.level,
    "partitions": lambda c: len(c.partitions)}
COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
CONDITION = re.compile(r"(?P<figure>[a-z]+)(?:(?P<sign>[<>]=?|=)(?P<bound>(?:fl)?\d{1,9}))?")


@frozen
class Check:
    """A model as a target takes it: the verdicts on its operations and on its subgraphs' (`emit.verdicts.Verdict`)."""

    model: Model
    target: Target
    verdicts: tuple[Verdict, ...]

    @cached_property
    def partitions(self) -> tuple[tuple[int, ...], ...]:
        """The pieces of the main model that a driver would see, each the numbers of its operations."""
        found: dict[int, list[int]] = {}
        for v in self.verdicts:
            if v.partition is not None:
                found.setdefault(v.partition, []).append(v.place.operation)
        return tuple(tuple(found[n]) for n in sorted(found))

    @property
    def host(self) -> int:
        """How many operations run on the host, as no device has them."""
        return sum(v.kind == "host" for v in self.verdicts)

    @property
    def refused(self) -> int:
        """How many operations the device does not run, those of the host included."""
        return sum(not v.taken for v in self.verdicts)

    @property
    def level(self) -> int:
        """The first feature level that takes what is not the host's."""
        return self.model.level


@frozen
class Condition:
    """One part of --fail-on: a figure that must not stand in a relation to a bound."""

    text: str
    figure: str
    sign: str
    bound: int

    def met(self, found: Check) -> bool:
        """Whether it fails the check."""
        return bool(COMPARISONS[self.sign](FIGURES[self.figure](found), self.bound))


def conditions(text: str) -> tuple[Condition, ...]:
    """`host,level>29,partitions>1`; a figure alone means more than none. Raises `UsageError`."""
    found = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = CONDITION.fullmatch(part)
        if match is None or match["figure"] not in FIGURES or "fl" in part and match["figure"] != "level":
            raise UsageError(f"--fail-on does not know {part!r}",
                             hint=f"its conditions are of {', '.join(FIGURES)}, as host, level>29 or partitions>1")
        bound = match["bound"] or "0"
        number = level_of(bound) if match["figure"] == "level" else int(bound)
        found.append(Condition(part, match["figure"], match["sign"] or ">", number))
    return tuple(found)


class _Asked(Target):
    """A target that remembers which of its fields somebody asked for."""

    names: set[str]

    @classmethod
    def of(cls, target: Target) -> _Asked:
        made = cls(**vars(target))
        object.__setattr__(made, "names", set())             # what it was asked for while it was made is nobody's
        return made

    def __getattribute__(self, name: str) -> Any:
        if name in Target.__match_args__:
            vars(self).setdefault("names", set()).add(name)
        return super().__getattribute__(name)


@frozen
class Lowered:
    """A target's model, what each rule did on the way, the target's fields that lowering asked for, and what the target
    says of each operation."""

    model: Model
    trace: list[Event]
    asked: set[str]
    found: Sequence[Verdict]

    @cached_property
    def lost(self) -> frozenset[str]:
        """The places in the source file of what the target does not take."""
        return frozenset(v.place.origin for v in self.found if not v.taken)


@frozen
class Lowering:
    """A source file's graph, and how it is lowered: once for each target and set of sizes that is asked about."""

    data: Data
    folder: Path | None
    shapes: Mapping[str, Shape]
    signature: str | None
    graph: Graph
    made: dict[Target, Lowered] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Data, folder: Path | None, shapes: Mapping[str, Shape], signature: str | None) -> Lowering:
        """Of a file's bytes; raises what `import_graph` does."""
        return cls(data, folder, shapes, signature, import_graph(data, shapes, signature, folder))

    def to(self, target: Target) -> Lowered:
        """The model for a target, and how it came about."""
        if target not in self.made:
            trace, asked = list["Event"](), _Asked.of(target)
            model = lowered(self.graph, asked, trace)
            self.made[target] = Lowered(model, trace, asked.names, verdicts(model, target))
        return self.made[target]

    def same(self, target: Target, other: Target) -> bool:
        """Whether a target's model is another's, as lowering for it never asked for what they differ in."""
        return not any(getattr(target, n) != getattr(other, n) for n in self.to(target).asked)

    @cached_property
    def sized(self) -> Lowering | None:
        """The same with each open size 1; None where none is open, or where the file does not take that."""
        shapes = at_size_1(self.graph.rim.inputs)
        try:
            return Lowering.of(self.data, self.folder, {**self.shapes, **shapes}, self.signature) if shapes else None
        except NnxError:
            return None


def check(source: Source, target: Target = Target(), *, shapes: Mapping[str, Shape] | None = None,  # noqa: B008
          signature: str | None = None, folder: str | Path | None = None, progress: Progress | None = None,
          trace: list[Event] | None = None) -> Check:
    """What a target takes of a .tflite, .onnx or .nnx model (a path, a file object or bytes), and what to change.

    The options are those of `convert`; the `trace` of a .nnx file is empty. Raises `FormatError` on a broken file,
    `Unsupported` on what has no counterpart.
    """
    traces = dict[Target, "list[Event]"]()
    found, = checks(source, (target,), shapes=shapes, signature=signature, folder=folder, progress=progress,
                    traces=traces)
    if trace is not None:
        trace += traces.get(target, ())
    return found


def checks(source: Source, targets: Sequence[Target], *, shapes: Mapping[str, Shape] | None = None,
           signature: str | None = None, folder: str | Path | None = None, progress: Progress | None = None,
           traces: dict[Target, list[Event]] | None = None) -> tuple[Check, ...]:
    """The same for several targets: the file is read once. `traces` is given what lowering did for each."""
    said = progress or (lambda stage: None)
    said("reading")
    data, name = read(source)
    try:
        if kind(data) == "nnx":
            from .artifact import from_bytes
            model = from_bytes(data)
            return tuple(_checked(model, target, verdicts(model, target), {}) for target in targets)
        lowering = Lowering.of(data, folder_of(source, folder), sizes(shapes), signature)
        found = []
        for target in targets:
            said(f"lowering for {target}")
            mine = lowering.to(target)
            if traces is not None:
                traces[target] = mine.trace
            said("trying what would change it")
            found.append(_checked(mine.model, target, mine.found, _changes(lowering, target)))
        return tuple(found)
    except NnxError as error:
        raise error.at(name) from error


def _checked(model: Model, target: Target, own: Sequence[Verdict], changes: Mapping[str, str]) -> Check:
    """The verdicts, with what to change by the places of those that are not taken."""
    found = []
    for v in own:
        change = changes.get(v.place.origin, REPLACE if changes else RECONVERT)
        if change == REPLACE and v.rule == HOLDS:
            change = INNER
        elif change == REPLACE and (of_table(v.place.name, v.rule) or target.limits and target.limits.has(v.rule)):
            change = HOLD
        found.append(v if v.taken else replace(v, change=change))
    return Check(model, target, tuple(found))


def of_table(name: str, rule: str) -> bool:
    """Whether a rule is one that the op table has for an operation: of its operands' types, or between them."""
    op = OPS.get(name)
    return op is not None and (any(r.text in rule for r in op.rules)
                               or any(f"{t.name}," in f"{rule}," for t in op.types))


def _changes(lowering: Lowering, target: Target) -> dict[str, str]:
    """What would have the device take all that a place in the source file becomes, the least change, by places."""
    found = dict.fromkeys(lowering.to(target).lost, REPLACE)
    left = set(found)
    for text, other, way in _trials(lowering, target, left):
        lost = way.to(other).lost
        found |= dict.fromkeys(left - lost, text)
        left &= lost
    return found


def _trials(lowering: Lowering, target: Target, left: set[str]) -> Iterator[tuple[str, Target, Lowering]]:
    """What may be changed, in words and as a lowering; nothing more once nothing is `left`.

    All of it together comes first, unsaid: what that does not change, no part of it does, and is left no longer. So
    does the highest level.
    """
    if not left:
        return
    sized, options = lowering.sized, {t: o for t, o in _options(target).items() if not lowering.same(target, o)}
    codes = {t: o for t, o in options.items() if o.qdq != target.qdq}
    highest = {n: replace(target, level=n) for n in LEVELS if n > target.level and target.limits is None}
    parts = {t: o for t, o in options.items() if t not in codes} | {
        f"--target {spelt(n)}": o for n, o in highest.items() if n == max(LEVELS)}
    shape = "" if sized is None else f"--shape {next(iter(at_size_1(lowering.graph.rim.inputs)))}=..."
    whole = {" and ".join(filter(None, (shape, *parts, t))): _together(target, [*parts.values(), o])
             for t, o in {"": target, **codes}.items()}
    left &= frozenset[str]().union(*(left - (sized or lowering).to(o).lost for o in whole.values()))
    if left and sized is not None:
        yield f"known sizes: {shape}", target, sized
    for text, other in options.items():
        if left:
            yield text, other, lowering
    for level, other in highest.items():
        if left and not left <= lowering.to(highest[max(highest)]).lost:
            yield f"--target {spelt(level)}", other, lowering
    for text, other in whole.items():
        if left:
            yield text, other, sized or lowering


def _options(target: Target) -> dict[str, Target]:
    """What may be asked for beside a level, in words and as a target."""
    found = {"--hybrid float": replace(target, hybrid="float"), "--int64 narrow": replace(target, int64="narrow"),
             "--qdq codes": replace(target, qdq="codes"), "--qdq floats": replace(target, qdq="floats")}
    if target.limits is None:                    # a device is what it is
        found |= {"a device with NNAPI-EX": replace(target, ex=True),
                  "a device with DENSIFY": replace(target, experimental=True)}
    return found


def _together(target: Target, others: Iterable[Target]) -> Target:
    """A target with all that others have instead of what it has."""
    return replace(target, **{n: theirs for other in others for n in Target.__match_args__
                              if (theirs := getattr(other, n)) != getattr(target, n)})


def grouped(found: Sequence[Verdict]) -> list[list[Verdict]]:
    """Verdicts on operations of one name for one reason together, the most frequent first."""
    same: dict[tuple[str, str, str], list[Verdict]] = {}
    for v in found:
        same.setdefault((v.place.name, v.rule, v.change), []).append(v)
    return sorted(same.values(), key=len, reverse=True)


def refusal(same: Sequence[Verdict]) -> str:
    """Operations that are not taken, and why."""
    places = list(dict.fromkeys(v.place.origin for v in same if v.place.origin))
    where = f" ({first(places[:2], ', ')}{', ...' if len(places) > 2 else ''})" if places else ""
    return f"{same[0].place.name} {len(same)}{where}: {broken(same)}"


def broken(same: Sequence[Verdict]) -> str:
    """The rule, without the name that stands before it."""
    rule = same[0].rule.removeprefix(f"{same[0].place.name}: ").removeprefix(f"{same[0].place.name} ")
    return predicate(rule, 1)
