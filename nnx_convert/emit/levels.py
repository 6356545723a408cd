"""Why an operation takes the feature level that it takes, and what a target refuses: in the table's words."""
from __future__ import annotations

from collections.abc import Iterator

from ..codes import FeatureLevel
from ..frozen import frozen
from ..model import Model
from ..schema import Checked, OpDef
from ..since import reason
from ..target import Target


PLURAL = {"has": "have", "is": "are", "takes": "take"}


@frozen
class Reason:
    """One fact of the table that calls for a level, and the operations it holds for, with their numbers."""

    fact: str
    operations: dict[str, int]


@frozen
class Place:
    """One operation of a model. `subgraph` counts as `every_model` lists them, 0 being the model itself;
    `origin` is its place in the source file, "" where there is none.
    """

    subgraph: int
    operation: int
    name: str
    origin: str


@frozen
class Level:
    """The first level that takes an operation, and the fact of the table that says so, as a predicate.

    `level` is None where levels do not say it: NNAPI-EX is there or not, and no device has the host's.
    """

    place: Place
    level: int | None
    fact: str


@frozen
class Refused:
    """An operation that a target does not take, and the fact of the table that says so, as a predicate."""

    place: Place
    fact: str


def predicate(fact: str, count: int) -> str:
    """What is said of one, as it is said of `count`: `is` or `are`, and so on."""
    verb, _, rest = fact.partition(" ")
    return f"{PLURAL.get(verb, verb) if count > 1 else verb} {rest}"


def levels(model: Model) -> tuple[Level, ...]:
    """The level of every operation, those of subgraphs included."""
    return tuple(Level(place, None if op.host or op.ex else checked.level, _fact(op, checked))
                 for place, op, checked in _placed(model))


def refused(model: Model, target: Target) -> tuple[Refused, ...]:
    """The operations that a device of this target does not take, those of subgraphs and of the host included."""
    return tuple(Refused(place, _fact(op, checked)) for place, op, checked in _placed(model)
                 if op.host or target.fault(op, checked))


def every_model(model: Model) -> list[Model]:
    """The model and its subgraphs, each once."""
    found: dict[int, Model] = {}
    todo = [model]
    for m in todo:
        if id(m) not in found:
            found[id(m)] = m
            todo += m.subgraphs
    return list(found.values())


def _placed(model: Model) -> Iterator[tuple[Place, OpDef, Checked]]:
    """Every operation with its verdict."""
    for k, m in enumerate(every_model(model)):
        for n, (o, c) in enumerate(zip(m.operations, m.checked, strict=True)):
            place = Place(k, n, o.op.name, m.origin[n] if m.origin else "")
            yield place, o.op, c


def _fact(op: OpDef, checked: Checked) -> str:
    if op.host:
        return "is of the host"
    return "is of NNAPI-EX" if op.ex else reason(op, checked)


def needs(model: Model) -> tuple[Reason, ...]:
    """The reasons for a model's level, none for the first there is; those of the most operations first."""
    if model.level == FeatureLevel.LEVEL_1:
        return ()
    found = _counts(model, model.level)
    if model.relaxed and not found:
        found["allows float32 to be computed as float16"] = {"the model": 1}
    reasons = (Reason(fact, dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))))
               for fact, ops in found.items())
    return tuple(sorted(reasons, key=lambda r: (-sum(r.operations.values()), r.fact)))


def _counts(model: Model, level: int) -> dict[str, dict[str, int]]:
    """Facts, the operations each holds for, and how many: of the model and its subgraphs."""
    found: dict[str, dict[str, int]] = {}
    for o, c in zip(model.operations, model.checked, strict=True):
        if c.level == level and not o.op.host:
            names = found.setdefault(reason(o.op, c), {})
            names[o.op.name] = names.get(o.op.name, 0) + 1
    for inner in model.subgraphs:
        for fact, ops in _counts(inner, level).items():
            names = found.setdefault(fact, {})
            names.update({name: names.get(name, 0) + n for name, n in ops.items()})
    return found
