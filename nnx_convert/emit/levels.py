"""Why an operation takes the feature level that it takes, and what a target refuses: in the table's words."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..codes import FeatureLevel
from ..frozen import frozen
from ..model import Model
from ..schema import MEANINGLESS, Checked, OpDef
from ..signature import Param
from ..target import Target, level_name
from ..types import Scalar, Tensor, Type, Undecided


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
    return tuple(Level(place, None if op.host or op.ex else checked.level, _fact(op, checked, outputs))
                 for place, op, checked, outputs in _placed(model))


def refused(model: Model, target: Target) -> tuple[Refused, ...]:
    """The operations that a device of this target does not take, those of subgraphs and of the host included."""
    return tuple(Refused(place, _fact(op, checked, outputs)) for place, op, checked, outputs in _placed(model)
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


def _placed(model: Model) -> Iterator[tuple[Place, OpDef, Checked, list[Tensor]]]:
    """Every operation with its verdict and its outputs as declared."""
    for k, m in enumerate(every_model(model)):
        for n, (o, c) in enumerate(zip(m.operations, m.checked, strict=True)):
            place = Place(k, n, o.op.name, m.origin[n] if m.origin else "")
            yield place, o.op, c, [m.operands[i].tensor() for i in o.outputs]


def _fact(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> str:
    if op.host:
        return "is of the host"
    return "is of NNAPI-EX" if op.ex else reason(op, checked, outputs)


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
            names = found.setdefault(reason(o.op, c, [model.operands[i].tensor() for i in o.outputs]), {})
            names[o.op.name] = names.get(o.op.name, 0) + 1
    for inner in model.subgraphs:
        for fact, ops in _counts(inner, level).items():
            names = found.setdefault(fact, {})
            names.update({name: names.get(name, 0) + n for name, n in ops.items()})
    return found


def reason(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> str:
    """The first fact of the table that says the operation's level, as a predicate; `outputs` as declared."""
    return next(_reasons(op, checked, outputs), f"takes this from {level_name(checked.level)}")


def _reasons(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> Iterator[str]:
    level, since = checked.level, f"from {level_name(checked.level)}"
    form = checked.placed.form
    if min(op.types.values()) == level:
        yield f"is there {since}"
    key = form.key(checked.placed.own)
    for p, type_ in _listed(checked, outputs):
        if p.kind.allowed(key, op.types).get(type_) == level:
            yield f"takes {type_.name}{'' if p.kind.is_key or p.kind.output else f' as {p.name}'} {since}"
    yield from (f"takes the operand {p.name} {since}" for p, _ in _listed(checked, outputs) if p.since == level)
    if form.since == level:
        yield f"takes this order of operands {since}"
    yield from (f"is free of a limit {since}: {text}" for text in _broken(op, checked, outputs))
    if any(p.since == level for p in op.returns[:len(outputs)]):
        yield f"has all its outputs {since}"


def _listed(checked: Checked, outputs: Sequence[Tensor]) -> Iterator[tuple[Param, Type]]:
    """Every listed operand's parameter and type, but not a default; also the output a parameter stands for."""
    for p in checked.placed.form.inputs:
        slot: Any = checked.placed.slots.get(p.name)
        args = (a for a in (slot if p.variadic else (slot,)) if a is not None)
        yield from ((p, a.type) for a in args if not (isinstance(a, Scalar) and p.is_default(a.value)))
    yield from ((p, outputs[0].type) for p in checked.placed.form.params if p.kind.output == "type" and outputs)


def _broken(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> Iterator[str]:
    """The limits that this level lifted and the operation does not keep."""
    for p in checked.placed.form.inputs:
        value = p.value(checked.placed.own)
        yield from (f"{p.name} {m.text}" for m in p.limits if m.until == checked.level and _fails(m.holds, value))
    scope = checked.args | {"out": outputs[0] if outputs else None}
    yield from (r.text for r in op.rules if r.until == checked.level and _fails(r.test, scope))


def _fails(holds: Callable[[Any], bool], value: Any) -> bool:
    try:
        return not holds(value)
    except Undecided:
        return False
    except MEANINGLESS:
        return True
