"""Why an operation takes the feature level that it takes: the facts of the op table that say so."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .schema import MEANINGLESS, Checked, OpDef
from .signature import Param
from .target import level_name
from .types import Scalar, Type, Undecided


def reason(op: OpDef, checked: Checked) -> str:
    """The first fact of the table that says the operation's level, as a predicate."""
    return next(_reasons(op, checked), f"takes this from {level_name(checked.level)}")


def _reasons(op: OpDef, checked: Checked) -> Iterator[str]:
    level, since = checked.level, f"from {level_name(checked.level)}"
    form = checked.placed.form
    if min(op.types.values()) == level:
        yield f"is there {since}"
    key = form.key(checked.placed.own)
    for p, type_ in _listed(checked):
        if p.kind.allowed(key, op.types).get(type_) == level:
            yield f"takes {type_.name}{'' if p.kind.is_key or p.kind.output else f' as {p.name}'} {since}"
    yield from (f"takes the operand {p.name} {since}" for p, _ in _listed(checked) if p.since == level)
    if form.since == level:
        yield f"takes this order of operands {since}"
    yield from (f"is free of a limit {since}: {text}" for text in _broken(op, checked))
    if any(p.since == level for p in op.returns[:len(checked.declared)]):
        yield f"has all its outputs {since}"


def _listed(checked: Checked) -> Iterator[tuple[Param, Type]]:
    """Every listed operand's parameter and type, but not a default; also the output a parameter stands for."""
    for p in checked.placed.form.inputs:
        slot: Any = checked.placed.slots.get(p.name)
        args = (a for a in (slot if p.variadic else (slot,)) if a is not None)
        yield from ((p, a.type) for a in args if not (isinstance(a, Scalar) and p.is_default(a.value)))
    kinds = (p for p in checked.placed.form.params if p.kind.output == "type")
    yield from ((p, t.type) for p in kinds for t in checked.declared[:1])


def _broken(op: OpDef, checked: Checked) -> Iterator[str]:
    """The limits that this level lifted and the operation does not keep."""
    for p in checked.placed.form.inputs:
        value = p.value(checked.placed.own)
        yield from (f"{p.name} {m.text}" for m in p.limits if m.until == checked.level and _fails(m.holds, value))
    scope = checked.args | {"out": next(iter(checked.declared), None)}
    yield from (r.text for r in op.rules if r.until == checked.level and _fails(r.test, scope))


def _fails(holds: Callable[[Any], bool], value: Any) -> bool:
    try:
        return not holds(value)
    except Undecided:
        return False
    except MEANINGLESS:
        return True
