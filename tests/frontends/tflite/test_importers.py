"""Each operator as the operations it becomes, and what an importer refuses."""
from __future__ import annotations

from typing import Any

import pytest

from nnx_convert.errors import FormatError, NnxError, Unsupported
from nnx_convert.frontends.tflite.importer import load
from nnx_convert.graph import Value
from nnx_convert.types import B8, known

from .cases import ACT, CASES, F, G, X, i32, f32, scalar, weights
from .one_operator import Case, T, const, q8, write


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_becomes_these_operations(case: Case) -> None:
    graph = load(write(case))
    assert " ".join(n.op.name for n in graph.nodes) == case.nodes
    found = {k: a for n in graph.nodes for k, a in n.args.items() if not isinstance(a, Value)}
    assert {k: found[k] for k in case.args} == case.args
    for want, value, port in zip(case.outputs, graph.outputs, graph.rim.outputs, strict=True):
        assert (port.dtype, port.shape) == (want.dtype, want.shape)
        assert value.tensor.dims == (want.shape or (1,))
