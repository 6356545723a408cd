"""How near expansions come to the functions they stand for, over all of FLOAT32 that matters."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rule_cases import graph_of, of

from nnx_convert.convert import evaluate
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import functions as f, host_math
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import F32

Array = np.ndarray[Any, Any]
SIZES = np.concatenate([np.linspace(0, 12, 30001), np.logspace(-8, 30, 3000)]).astype(np.float32)
POINTS = np.concatenate([-SIZES, SIZES])
#: An operation, its function in float64, how far off it may be beside two units in the last place.
FUNCTIONS: list[tuple[OpDef, dict[str, Any], Callable[[float], float], float]] = [
    (f.ERF, {}, math.erf, 1e-7),
    (host_math.GELU, {"approximate": False}, lambda v: v / 2 * math.erfc(-v / math.sqrt(2)), 1e-7),
    (f.SOFTPLUS, {}, lambda v: max(v, 0.0) + math.log1p(math.exp(-abs(v))), 1e-7),
    (f.MISH, {}, lambda v: v * math.tanh(max(v, 0.0) + math.log1p(math.exp(-abs(v)))), 1e-7)]


@pytest.mark.parametrize(("op", "named", "function", "bound"), FUNCTIONS, ids=[c[0].name for c in FUNCTIONS])
def test_an_expansion_is_within_its_bound(op: OpDef, named: dict[str, Any], function: Callable[[float], float],
                                          bound: float) -> None:
    legal, _ = lower(graph_of(of(op, **named), [(F32, POINTS.shape)]), Target(), evaluate)
    assert not any(n.op.host for n in legal.nodes)
    found = CompiledModel(flatten(legal), threads=1).run([POINTS])[0]
    want = np.array([function(v) for v in POINTS.astype(float)])
    assert (np.abs(found - want) <= bound + 2 * np.spacing(np.abs(found)).astype(float)).all()


@pytest.mark.parametrize("level", [27, 28])
def test_error_functions_need_no_level(level: int) -> None:
    for op, named in ((f.ERF, {}), (host_math.GELU, {"approximate": False})):
        legal, _ = lower(graph_of(of(op, **named), [(F32, (2, 3))]), Target(level, False, False), evaluate)
        assert not any(n.op.host for n in legal.nodes)


def test_what_is_saturated_stays_so() -> None:
    far = np.array([-np.inf, -3e38, -100, 100, 3e38, np.inf], np.float32)
    legal, _ = lower(graph_of(of(f.ERF), [(F32, far.shape)]), Target(), evaluate)
    assert CompiledModel(flatten(legal), threads=1).run([far])[0].tolist() == [-1, -1, -1, 1, 1, 1]
