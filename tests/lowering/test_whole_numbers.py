"""Division of INT32 by operations that round down, at the ends of the type as anywhere."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnx_convert import CompiledModel
from nnx_convert.convert import evaluate
from nnx_convert.graph import Build, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import functions, host
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import I32, Rim, Tensor, symbol

NUMBERS = np.array([0, 1, -1, 2, -2, 3, 7, -7, 1000, 46341, -46341, 2**31 - 1, 1 - 2**31, -2**31])
#: The operation, and its result on exact integers.
DIVISIONS: list[tuple[OpDef, Callable[[Any, Any], Any]]] = [
    (host.TRUNC_DIV, lambda x, y: np.sign(x) * np.sign(y) * (abs(x) // abs(y))), (host.FLOOR_DIV, lambda x, y: x // y),
    (host.FLOOR_MOD, lambda x, y: x % y), (functions.TRUNC_MOD, np.fmod)]


@pytest.mark.parametrize("size", [len(NUMBERS), symbol("n")], ids=str)
@pytest.mark.parametrize(("op", "want"), DIVISIONS, ids=[op.name for op, _ in DIVISIONS])
def test_division_is_exact_on_the_device(op: OpDef, want: Callable[[Any, Any], Any], size: int) -> None:
    x = Value("x", Tensor(I32, (size, 1)))
    divisors = NUMBERS[NUMBERS != 0]
    g = Build("division")
    y = g.const(divisors[None], I32)
    legal, trace = lower(g.finish((x,), (g(op, x, y),), Rim()), Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes), [str(ev) for ev in trace]
    found = CompiledModel(flatten(legal)).run([NUMBERS[:, None].astype(np.int32)])[0]
    overflows = (NUMBERS[:, None] == -2**31) & (divisors == -1)
    exact = want(NUMBERS[:, None], divisors)
    np.testing.assert_array_equal(found[~overflows], exact[~overflows])
