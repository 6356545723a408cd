"""What runtimes disagree about, in literal numbers: the source format's answer, on every target."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rule_cases import TARGETS, Made, graph_of, of

from nnx_convert.convert import evaluate
from nnx_convert.lowering.flatten import flatten
from nnx_convert.lowering.pipeline import lower
from nnx_convert.ops import convert, elementwise as e, host, image, reduce as r
from nnx_convert.runtime.compiled import CompiledModel
from nnx_convert.target import Target
from nnx_convert.types import B8, F32, I32, Q8S, Quant, Tensor, Type

f32, i32, i8 = np.float32, np.int32, np.int8
SIGNS = [i32([7, -7, 7, -7]), i32([2, 2, -2, -2])]
ROW = f32([[[[1], [2]]]])

#: Trap -> operation, input types, inputs, outputs.
TRAPS: dict[str, tuple[Made, list[Type], list[Any], list[Any]]] = {
    "TOPK: the smaller index first": (of(host.TOPK_FIRST, k=2), [F32], [f32([3, 1, 3, 2, 3])],
                                      [f32([3, 3]), i32([0, 2])]),
    "TOPK of integers": (of(host.TOPK_FIRST, k=3), [I32], [i32([[1, 2, 2], [5, 5, 5]])],
                         [i32([[2, 2, 1], [5, 5, 5]]), i32([[1, 2, 0], [0, 1, 2]])]),
    "ARGMAX: the first": (of(r.ARGMAX, axis=0), [F32], [f32([2, 5, 5, 2])], [i32([1])]),
    "DIV toward zero": (of(host.TRUNC_DIV), [I32, I32], SIGNS, [i32([3, -3, -3, 3])]),
    "FLOOR_DIV": (of(host.FLOOR_DIV), [I32, I32], SIGNS, [i32([3, -4, -4, 3])]),
    "FLOOR_MOD": (of(host.FLOOR_MOD), [I32, I32], SIGNS, [i32([1, 1, -1, -1])]),
    "ROUND: halves to even": (of(host.ROUND), [F32], [f32([.5, 1.5, 2.5, -.5])], [f32([0, 2, 2, 0])]),
    "CAST truncates": (of(convert.CAST, to=I32), [F32], [f32([1.8, -1.8, -.5])], [i32([1, -1, 0])]),
    "CAST of truth": (of(convert.CAST, to=F32), [B8], [np.array([True, False])], [f32([1, 0])]),
    "CAST to truth": (of(convert.CAST, to=B8), [F32], [f32([0, .5, -2])], [np.array([False, True, True])]),
    "nearest": (of(image.RESIZE_NEAREST_NEIGHBOR, ow=5, oh=1, nchw=False), [F32], [ROW],
                [f32([1, 1, 1, 2, 2]).reshape(1, 1, 5, 1)]),
    "nearest, align": (of(image.RESIZE_NEAREST_NEIGHBOR, ow=5, oh=1, nchw=False, align=True), [F32], [ROW],
                       [f32([1, 1, 2, 2, 2]).reshape(1, 1, 5, 1)]),
    "nearest, half": (of(image.RESIZE_NEAREST_NEIGHBOR, ow=5, oh=1, nchw=False, half=True), [F32], [ROW],
                      [f32([1, 1, 2, 2, 2]).reshape(1, 1, 5, 1)]),
    "SELECT of rows": (of(host.WHERE), [B8, F32, F32], [np.array([True, False]), f32([[1, 2, 3]] * 2),
                                                        f32([[4, 5, 6]] * 2)], [f32([[1, 2, 3], [4, 5, 6]])]),
    "requantise: halves up": (of(host.REQUANTIZE, to=Q8S, out=Tensor(Q8S, None, Quant(1.0, -3))), [Q8S],
                              [i8([-8, -6, -4, -2, 0, 2])], [i8([-5, -4, -3, -2, -1, 0])]),
    "PRELU: a slope above 1": (of(host.LEAKY_RELU, alpha=2.0), [F32], [f32([1, -1])], [f32([1, -2])]),
    "PRELU along the last axis": (of(e.PRELU), [F32, F32], [f32([[[[-1, -2]]]]), f32([.5, .25])],
                                  [f32([[[[-.5, -.5]]]])]),
}


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", TRAPS)
def test_the_sources_answer(name: str, target: Target) -> None:
    made, types, inputs, want = TRAPS[name]
    graph = graph_of(made, [(t, x.shape) for t, x in zip(types, inputs, strict=True)])
    found = CompiledModel(flatten(lower(graph, target, evaluate)[0]), threads=1).run(inputs)
    for got, expected in zip(found, want, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
