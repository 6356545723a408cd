"""Every expansion and every legalisation computes what it stands for: both sides run, on eight targets."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compose_cases import COMPOSED, COMPOSED_HOSTED
from function_cases import FUNCTIONS, FUNCTIONS_HOSTED
from gated_cases import GATED, GATED_HOSTED
from grid_cases import GRIDDED, GRIDDED_HOSTED
from indexing_cases import INDEXED, INDEXED_HOSTED
from linear_cases import LINEARS, LINEARS_HOSTED
from narrow_cases import NARROWED, NARROWED_HOSTED
from rule_cases import CASES as PLAIN
from rule_cases import TARGETS, graph_of, numbers

from nnx_convert.convert import evaluate
from nnx_convert.device_limits import DeviceLimits, DeviceRule, Span
from nnx_convert.graph import Graph
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.host import HOST
from nnx_convert.lowering.expand import EXPAND
from nnx_convert.lowering.legalize import LEGALIZE, MASKS, PREFER_EX
from nnx_convert.lowering.narrow import NARROW
from nnx_convert.lowering.pipeline import lower
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target

#: Cases that need a host operation, by the targets (as their indices in TARGETS) on which they do.
HOSTED = {name: where for where, names in {
    (0, 1): """
        ceil exp reduce_max_keepFalse reduce_max_keepTrue reduce_min_keepFalse reduce_min_keepTrue
        reduce_sum_keepFalse reduce_sum_keepTrue topk topk_int gather gather_batched gather_nd
        gather_nd_rows matmul_batched unpack split_int one_hot one_hot_0 cast_int reshape_int neg_int
        exp_byte abs_byte leaky_byte relu_regrid requantize_coarse scatter
    """,
    (0, 1, 2): """
        cos round relu_0_to_1 equal_FLOAT32 equal_INT32 not_equal_FLOAT32 not_equal_INT32 less_FLOAT32 less_INT32
        less_equal_FLOAT32 less_equal_INT32 greater_FLOAT32 greater_INT32 greater_equal_FLOAT32
        greater_equal_INT32 logical_and logical_or reduce_any_keepFalse reduce_any_keepTrue
        reduce_all_keepFalse reduce_all_keepTrue broadcast broadcast_bool where where_rows cast_bool
        cast_to_bool strided_int square_byte dense_per_channel nearest_half
        nearest_align reshape_bool transpose_bool gather_bool concat_bool masks_cancel
    """,
    (0, 1, 2, 3, 4): """
        floor_div_int floor_mod_int trunc_div_int
    """,
    tuple(range(8)): """
        floor_div log_softmax_byte div_byte mean_signed_regrid sum_apart
    """,
    (0, 1, 2, 3, 6): """
        reshape_int_ones
    """,
}.items() for name in names.split()} | COMPOSED_HOSTED | NARROWED_HOSTED | FUNCTIONS_HOSTED | INDEXED_HOSTED | \
    LINEARS_HOSTED | GRIDDED_HOSTED | GATED_HOSTED
CASES = PLAIN | COMPOSED | NARROWED | FUNCTIONS | INDEXED | LINEARS | GRIDDED | GATED


def run(graph: Graph, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    return CompiledModel(flatten(graph), threads=1).run(inputs)


def as_it_is(graph: Graph) -> Graph:
    """The graph unlowered: what NNAPI has as it stands, the rest as host operations."""
    return HOST(graph, Target(8), [])


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_lowering_keeps_the_answer(name: str, target: Target) -> None:
    graph = graph_of(*CASES[name])
    inputs = numbers(name, graph)
    legal, trace = lower(graph, target, evaluate)
    assert not any(target.fault(n.op, n.verdict) for n in legal.walk())
    hosted = sorted({n.op.name for n in legal.walk() if n.op.host})
    assert bool(hosted) == (TARGETS.index(target) in HOSTED.get(name, ())), (hosted, [str(e) for e in trace])
    for want, got in zip(run(as_it_is(graph), inputs), run(legal, inputs), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, want)


#: A device that takes no activation in another operation.
BARE = Target(limits=DeviceLimits("bare", rules=(DeviceRule("no act", operand="act", values=(Span(0, 0),)),)))


def test_every_rule_fires() -> None:
    fired = {ev.rule for made in CASES.values() for t in (*TARGETS, BARE)
             for ev in lower(graph_of(*made), t, evaluate)[1] if ev.did}
    rules = {f.__name__ for rs in (NARROW, EXPAND, PREFER_EX, LEGALIZE, MASKS) for fs in rs.by_op.values() for f in fs}
    assert rules <= fired
