"""How many multiplications with an addition a model takes: the usual measure of its work."""
from __future__ import annotations

from ..model import Model
from ..ops.macs import multiplied
from ..schema import Checked
from ..types import Undecided


def macs(model: Model) -> int | None:
    """The multiply-adds of one run, a subgraph counted once; None where a size is open."""
    try:
        return sum(_of(model, n, c) for n, c in enumerate(model.checked)) + sum(_inner(m) for m in model.subgraphs)
    except Undecided:
        return None


def macs_by_operation(model: Model) -> list[int | None]:
    """The multiply-adds of each operation, without those of the subgraphs it runs; None where a size is open."""
    found: list[int | None] = []
    for n, checked in enumerate(model.checked):
        try:
            found.append(_of(model, n, checked))
        except Undecided:
            found.append(None)
    return found


def _of(model: Model, number: int, checked: Checked) -> int:
    operation = model.operations[number]
    return multiplied(operation.op, checked.args, [model.operands[i].tensor() for i in operation.outputs])


def _inner(model: Model) -> int:
    found = macs(model)
    if found is None:
        raise Undecided
    return found
