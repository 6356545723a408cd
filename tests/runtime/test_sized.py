"""Outputs whose sizes only a run tells: alone, feeding others, and where the model says the sizes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode, OperationCode, RunError

F32, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32
#: A box for each of six detections, far apart, in images of 8 by 8; scores of two classes.
BOXES = np.array([[i, i, i + 1, i + 1] * 2 for i in range(6)], np.float32)


def suppressing(sizes: tuple[list[int], list[int]], then_align: bool = False) -> Model:
    """A suppression with outputs of these sizes (0: open), and maybe an alignment of what it finds."""
    b = ModelBuilder()

    def scalar(code: int, value: Any) -> int:
        index = b.add_operand(code)
        b.set_operand_value(index, value)
        return index
    scores, boxes, batch = b.add_operand(F32, [6, 2]), b.add_operand(F32, [6, 8]), b.add_operand(I32, [6])
    f32, i32, bool8 = OperandCode.FLOAT32, OperandCode.INT32, OperandCode.BOOL
    rest = [scalar(f32, 0.5), scalar(i32, -1), scalar(i32, 0), scalar(f32, 0.5), scalar(f32, 0.5), scalar(f32, 0.1)]
    outs = [b.add_operand(F32, sizes[0]), b.add_operand(F32, sizes[1]), b.add_operand(I32, sizes[0]),
            b.add_operand(I32, sizes[0])]
    b.add_operation(OperationCode.BOX_WITH_NMS_LIMIT, [scores, boxes, batch, *rest], outs)
    inputs = [scores, boxes, batch]
    if then_align:
        image, found = b.add_operand(F32, [1, 8, 8, 1]), b.add_operand(F32, [0, 1, 1, 1])
        numbers = [scalar(i32, 1), scalar(i32, 1), scalar(f32, 1.0), scalar(f32, 1.0), scalar(i32, 1), scalar(i32, 1)]
        b.add_operation(OperationCode.ROI_ALIGN, [image, outs[1], outs[3], *numbers, scalar(bool8, False)], [found])
        inputs, outs = [*inputs, image], [found]
    b.identify_inputs_and_outputs(inputs, outs)
    return b.finish()


def scored(count: int) -> list[np.ndarray[Any, Any]]:
    """Inputs of which as many are detections."""
    scores = np.where(np.arange(6)[:, None] < count, 0.9, 0.2).astype(np.float32).repeat(2, 1)
    return [scores, BOXES, np.zeros(6, np.int32)]


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_run_tells_the_size(count: int) -> None:
    compiled = CompiledModel(suppressing(([0], [0, 4])))
    scores, boxes, classes, batch = compiled.run(scored(count))
    assert scores.shape == classes.shape == batch.shape == (count,)
    assert np.array_equal(boxes, BOXES[:count, :4]) and boxes.shape == (count, 4)
    assert compiled.prepare() is None


def test_a_profile_is_of_one_run_step_by_step() -> None:
    image = np.zeros((1, 8, 8, 1), np.float32)
    found = CompiledModel(suppressing(([0], [0, 4]), then_align=True)).profile([*scored(6), image])
    assert [r.work.operations for r in found.rows] == [("BOX_WITH_NMS_LIMIT",), ("ROI_ALIGN",)]
    assert all(0 < r.seconds <= found.seconds and r.work.bytes > 0 for r in found.rows)


@pytest.mark.parametrize("count", [0, 1, 6])
def test_what_follows_takes_the_size(count: int) -> None:
    image = np.arange(64, dtype=np.float32).reshape(1, 8, 8, 1)
    (found,) = CompiledModel(suppressing(([0], [0, 4]), then_align=True)).run([*scored(count), image])
    want = [[[[9 * i + 4.5]]] for i in range(count)]
    np.testing.assert_allclose(found, np.reshape(want, (count, 1, 1, 1)))


#: Sizes a model may say, all of them or some: what a run that finds three comes to.
SAID: dict[str, tuple[tuple[list[int], list[int]], str]] = {
    "the right ones": (([3], [3, 4]), ""),
    "too many": (([4], [4, 4]), r"output 0 has shape \[3\], the model says \[4\]"),
    "too few": (([2], [2, 4]), r"output 0 has shape \[3\], the model says \[2\]"),
    "one of them, right": (([0], [3, 4]), ""),
    "one of them, wrong": (([0], [5, 4]), r"output 1 has shape \[3, 4\], the model says \[5, 4\]"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_the_model_says_must_come_true(name: str) -> None:
    sizes, words = SAID[name]
    compiled = CompiledModel(suppressing(sizes))
    if not words:
        assert compiled.run(scored(3))[1].shape == (3, 4)
        return
    with pytest.raises(RunError, match=words) as caught:
        compiled.run(scored(3))
    assert "BOX_WITH_NMS_LIMIT" in caught.value.where
