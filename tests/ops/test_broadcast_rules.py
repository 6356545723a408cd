"""Every operation whose output has the shape to which two operands broadcast refuses operands that do not."""
from __future__ import annotations

import inspect
import re

import pytest

from nnx_convert import ops  # noqa: F401  (fills the table)
from nnx_convert.schema import OPS, OpDef
from nnx_convert.types import F32, Tensor

#: How a row tells the shape to which x and y broadcast, or their axes before the last two.
BOTH = re.compile(r"\b(?:both|truth|mask)\(x, y\)|\bbroadcast\(x\.shape(\[:-2\])?, y\.shape")
PAIRS = {o.name: (o, found) for o in OPS.values() if (found := BOTH.search(inspect.getsource(o.plain.forms[0].fn)))}


def test_operations_of_two_operands_are_found() -> None:
    assert {"ADD", "ATAN2", "EQUAL", "MATMUL", "MATMUL_INTEGER", "EQUAL_EX"} <= PAIRS.keys()


@pytest.mark.parametrize("name", PAIRS)
def test_shapes_that_do_not_broadcast_are_refused(name: str) -> None:
    o, found = PAIRS[name]
    last = (3, 3) if found[1] else ()
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 3), (2, 3)), ((2, 1), (3,)), ((2, 3), (2, 3, 4)), ((5,), (4,))]
    assert [refuses(o, (*a, *last), (*b, *last)) for a, b in shapes] == [False, False, True, True]


def refuses(o: OpDef, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether a rule of the operation that is about shapes alone is broken."""
    args = {"x": Tensor(F32, a), "y": Tensor(F32, b)}
    return any(not rule.test(args) for rule in o.rules
               if "broadcast" in rule.text and set(rule.names) == args.keys())
