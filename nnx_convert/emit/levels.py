"""Why an operation takes the feature level that it takes, in words."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..model import Model
from ..schema import MEANINGLESS, Checked, OpDef
from ..signature import Param
from ..target import level_name
from ..types import Tensor, Type, Undecided


def needs(model: Model) -> dict[str, int]:
    """The reasons for a model's level, each with the number of operations it holds for; the most frequent first."""
    level, found = model.level, dict[str, int]()
    for o, c in zip(model.operations, model.checked, strict=True):
        if c.level == level and not o.op.host:
            why = reason(o.op, c, [model.operands[i].tensor() for i in o.outputs])
            found[why] = found.get(why, 0) + 1
    for inner in model.subgraphs:
        for why, count in needs(inner).items() if inner.level == level else ():
            found[why] = found.get(why, 0) + count
    if model.relaxed and level == 28 and not found:
        found["float32 as float16 (relaxed) is there from 28"] = 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def reason(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> str:
    """The first fact of the table that says the operation's level; `outputs` as declared."""
    return next(_reasons(op, checked, outputs), f"{op.name} takes {level_name(checked.level)}")


def _reasons(op: OpDef, checked: Checked, outputs: Sequence[Tensor]) -> Iterator[str]:
    level, name = checked.level, level_name(checked.level)
    form = checked.placed.form
    if min(op.types.values()) == level:
        yield f"{op.name} is there from {name}"
    key = form.key(checked.placed.own)
    for p, type_ in _listed(checked):
        if p.kind.allowed(key, op.types).get(type_) == level:
            yield f"{op.name} takes {type_.name}{'' if p.kind.is_key else f' as {p.name}'} from {name}"
    yield from (f"{op.name} takes {p.name} from {name}" for p, _ in _listed(checked) if p.since == level)
    if form.since == level:
        yield f"{op.name} takes this order of operands from {name}"
    yield from (f"{op.name} below {name}: {text}" for text in _broken(op, checked, outputs))
    if any(p.since == level for p in op.returns[:len(outputs)]):
        yield f"{op.name} has all its outputs from {name}"


def _listed(checked: Checked) -> Iterator[tuple[Param, Type]]:
    """Every listed operand's parameter and type."""
    for p in checked.placed.form.inputs:
        slot: Any = checked.placed.slots.get(p.name)
        yield from ((p, arg.type) for arg in (slot if p.variadic else (slot,)) if arg is not None)


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
