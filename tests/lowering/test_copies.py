"""An output that is an input is a copy of it, which no target leaves to the host."""
from __future__ import annotations

import numpy as np
import pytest

from nnx_convert.convert import evaluate
from nnx_convert.graph import Graph, Value
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, Port, Rim, Shape, Tensor, Type, known, symbol


@pytest.mark.parametrize("dims", [(2, 3), (symbol("n"), 3), (symbol("n"), symbol("m"))], ids=str)
@pytest.mark.parametrize("code", [F32, I32, B8], ids=lambda c: c.name)
def test_it_is_copied(code: Type, dims: Shape) -> None:
    x = Value("x", Tensor(code, dims))
    port = Port("x", code.dtype.name, tuple(n if known(n) else None for n in dims))
    after, _ = lower(Graph("main", (x,), (x, x), (), Rim((port,), (port, port))), Target(8), evaluate)
    assert len(after.nodes) == 2 and not any(n.op.host for n in after.nodes)
    data = np.array([[0, 1, 5], [-7, 0, 2]]).astype(code.dtype)
    for got in CompiledModel(flatten(after)).run([data]):
        np.testing.assert_array_equal(got, data)
