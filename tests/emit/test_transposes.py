"""Transposes that are left, counted, and the line that says so."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from sample_models import SAMPLES, constant, finished

from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op
from nnx_convert.emit.facts import facts
from nnx_convert.emit.levels import every_model
from nnx_convert.emit.report import text, turned
from nnx_convert.emit.transposes import Transposes, transposes
from nnx_convert.types import Source


def turning(count: int, *sizes: int) -> Model:
    """So many transposes of a matrix of floats, one after the other."""
    b = ModelBuilder()
    values = [b.add_operand(T.TENSOR_FLOAT32, sizes if i % 2 == 0 else sizes[::-1]) for i in range(count + 1)]
    perm = constant(b, T.TENSOR_INT32, [1, 0], (2,))
    for x, y in pairwise(values):
        b.add_operation(Op.TRANSPOSE, [x, perm], [y])
    return finished(b, [values[0]], [values[-1]])


@pytest.mark.parametrize(("model", "want"), [
    (turning(1, 2, 3), Transposes(1, 1, 1, 24)), (turning(3, 2, 3), Transposes(3, 1, 1, 72)),
    (turning(2, 0, 3), Transposes(2, 1, 1, 24)), (SAMPLES["dense"](), Transposes(0, 0, 0, 0))])
def test_they_are_counted(model: Model, want: Transposes) -> None:
    assert transposes(every_model(model)) == want


@pytest.mark.parametrize(("found", "said"), [
    (Transposes(0, 0, 0, 0), "no TRANSPOSE"), (Transposes(1, 1, 0, 602_112), "1 TRANSPOSE of 1 input, 602 kB a run"),
    (Transposes(4, 0, 0, 7), "4 TRANSPOSE, 7 B a run"),
    (Transposes(3, 1, 2, 7), "3 TRANSPOSE of 1 input and 2 outputs, 7 B a run")])
def test_a_line_says_so(found: Transposes, said: str) -> None:
    assert turned(found) == said


def test_the_line_is_there_for_onnx() -> None:
    found = facts(turning(1, 2, 3), source="m", format="NNX", source_bytes=1, seconds=0.5, arena_bytes=None)
    assert "layout" not in text(found)
    assert "\nlayout     1 TRANSPOSE of 1 input and 1 output, 24 B a run\n" in text(
        replace(found, made_from=Source("ONNX", "17", 1)))
