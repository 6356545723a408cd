"""Branches, loops and draws."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_model import t

from nnx_convert import CompiledModel, LimitError, Model, ModelBuilder, OperandCode, OperationCode, limited
from nnx_convert.runtime.bind import Dynamic, Options, bind
from nnx_convert.runtime.runner import call
from nnx_convert.schema import HOST_CODES
from nnx_convert.types import Tensor

Array = np.ndarray[Any, Any]
LINE = (OperandCode.TENSOR_FLOAT32, (2,))
OPEN = (OperandCode.TENSOR_FLOAT32, (0,))
INDEX = (OperandCode.TENSOR_INT32, (1,))
TRUTH = (OperandCode.TENSOR_BOOL8, (1,))
GRAPH = (OperandCode.MODEL,)


def reversing(reverse: bool) -> Model:
    """A graph of one input [2]: back to front, or repeated as it is."""
    b = ModelBuilder()
    x, how, out = b.add_operand(*LINE), b.add_operand(*INDEX), b.add_operand(*LINE)
    b.set_operand_value(how, [0 if reverse else 1])
    b.add_operation(OperationCode.REVERSE if reverse else OperationCode.TILE, [x, how], [out])
    b.identify_inputs_and_outputs([x], [out])
    return b.finish()


@pytest.mark.parametrize("cond, want", [(True, [2, 1]), (False, [1, 2])])
def test_if_runs_one_branch(cond: bool, want: list[float]) -> None:
    b = ModelBuilder()
    c, x, then, orelse, out = (b.add_operand(*o) for o in (TRUTH, LINE, GRAPH, GRAPH, LINE))
    b.set_operand_value_from_model(then, reversing(True))
    b.set_operand_value_from_model(orelse, reversing(False))
    b.add_operation(OperationCode.IF, [c, then, orelse, x], [out])
    b.identify_inputs_and_outputs([c, x], [out])
    found, = CompiledModel(b.finish()).run([np.array([cond]), np.array([1, 2], np.float32)])
    np.testing.assert_array_equal(found, want)


def repeated(times: int) -> Model:
    """A graph of one input of any length: so many times after itself."""
    b = ModelBuilder()
    x, how, out = b.add_operand(*OPEN), b.add_operand(*INDEX), b.add_operand(*OPEN)
    b.set_operand_value(how, [times])
    b.add_operation(OperationCode.TILE, [x, how], [out])
    b.identify_inputs_and_outputs([x], [out])
    return b.finish()


def never() -> Model:
    """A graph of one input of any length that gives false."""
    b = ModelBuilder()
    x, yes, no = b.add_operand(*OPEN), b.add_operand(*TRUTH), b.add_operand(*TRUTH)
    b.set_operand_value(yes, np.array([True]))
    b.add_operation(OperationCode.LOGICAL_NOT, [yes], [no])
    b.identify_inputs_and_outputs([x], [no])
    return b.finish()


#: A branch, or a loop, by its graphs, and the sizes of its output that are known before a run of three elements.
ENTERED = [("IF", (repeated(1), repeated(1)), (3,)), ("IF", (repeated(2), repeated(2)), (6,)),
           ("IF", (repeated(1), repeated(2)), None), ("WHILE", (never(), repeated(1)), (3,)),
           ("WHILE", (never(), repeated(2)), None)]


@pytest.mark.parametrize("name, graphs, want", ENTERED)
def test_sizes_are_known_where_graphs_give_the_same(name: str, graphs: tuple[Model, Model],
                                                    want: tuple[int, ...] | None) -> None:
    b = ModelBuilder()
    c, x, first, second, out = (b.add_operand(*o) for o in (TRUTH, OPEN, GRAPH, GRAPH, OPEN))
    b.set_operand_value_from_model(first, graphs[0])
    b.set_operand_value_from_model(second, graphs[1])
    b.add_operation(OperationCode[name], [*([c] if name == "IF" else []), first, second, x], [out])
    b.identify_inputs_and_outputs([c, x], [out])
    model = b.finish()
    given = [Tensor(model.operands[c].type, (1,)), Tensor(model.operands[x].type, (3,))]
    if want is None:
        with pytest.raises(Dynamic):
            bind(model, given, Options(1, call))
    else:
        assert bind(model, given, Options(1, call)).tensors[out].shape == want
    found, = CompiledModel(model).run([np.array([True]), np.array([1, 2, 4], np.float32)])
    times = (want or (3,))[0] // 3
    np.testing.assert_array_equal(found, [1, 2, 4] * times)


def looking_up(table: list[Any], inputs: int, out: tuple[OperandCode, tuple[int, ...]]) -> Model:
    """A graph of `inputs` indices [1]: the table at the first."""
    b = ModelBuilder()
    given = [b.add_operand(*INDEX) for _ in range(inputs)]
    values, axis, found = b.add_operand(out[0], (len(table),)), b.add_operand(OperandCode.INT32), b.add_operand(*out)
    b.set_operand_value(values, np.array(table, out[0].dtype))
    b.set_operand_value(axis, 0)
    b.add_operation(HOST_CODES | OperationCode.GATHER, [values, axis, given[0]], [found])
    b.identify_inputs_and_outputs(given, [found])
    return b.finish()


def looping(go_on: list[bool], following: list[int]) -> CompiledModel:
    """While go_on[i]: i = following[i]; a second value is handed through."""
    b = ModelBuilder()
    cond, body = b.add_operand(OperandCode.MODEL), b.add_operand(OperandCode.MODEL)
    i, constant, out = (b.add_operand(*INDEX) for _ in range(3))
    b.set_operand_value_from_model(cond, looking_up(go_on, 2, TRUTH))
    b.set_operand_value_from_model(body, looking_up(following, 2, INDEX))
    b.add_operation(OperationCode.WHILE, [cond, body, i, constant], [out])
    b.identify_inputs_and_outputs([i, constant], [out])
    return CompiledModel(b.finish())


@pytest.mark.parametrize("start, want", [(0, 4), (1, 4), (2, 4), (3, 3), (4, 4)])
def test_while_follows_its_body_to_the_end(start: int, want: int) -> None:
    loop = looping([True, True, True, False, False], [2, 4, 1, 3, 4])
    found, = loop.run([np.array([start], np.int32), np.array([0], np.int32)])
    assert found.tolist() == [want]


@pytest.mark.parametrize(("limit", "said"), [
    ({"loop_seconds": 0.05}, r"runs longer than 0\.05 seconds"), ({"rounds": 9}, "has more than 9 rounds"),
    ({"seconds": 0.05}, r"the run takes longer than 0\.05 seconds")], ids=str)
def test_an_endless_loop_fails(limit: dict[str, float], said: str) -> None:
    with limited(**limit):
        loop = looping([True, True], [1, 0])
    with pytest.raises(LimitError, match=said):
        loop.run([np.array([0], np.int32), np.array([0], np.int32)])


def drawing(logits: Array, samples: int, seeds: list[int]) -> Array:
    """Classes drawn, row by row."""
    b = ModelBuilder()
    x, count, key, out = (b.add_operand(*o) for o in (
        t(logits, logits.dtype).listed(), (OperandCode.INT32,), (OperandCode.TENSOR_INT32, (2,)),
        (OperandCode.TENSOR_INT32, (len(logits), samples))))
    b.set_operand_value(count, samples)
    b.set_operand_value(key, seeds)
    b.add_operation(OperationCode.RANDOM_MULTINOMIAL, [x, count, key], [out])
    b.identify_inputs_and_outputs([x], [out])
    found: Array = CompiledModel(b.finish()).run([logits])[0]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("seeds", [[0, 0], [7, 0], [-1, 3]])
def test_draws_follow_their_odds(dtype: Any, seeds: list[int]) -> None:
    odds = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    drawn = drawing((np.log(odds) + 5).astype(dtype), 20000, seeds)
    for row, chances in zip(drawn, odds, strict=True):
        # Five standard deviations of a share of 20000 draws are 0.018 at most.
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, chances, atol=0.02)


def test_seeds_fix_the_draw_and_zeros_do_not() -> None:
    logits = np.zeros((1, 1000), np.float32)
    assert np.array_equal(drawing(logits, 50, [1, 2]), drawing(logits, 50, [1, 2]))
    assert not np.array_equal(drawing(logits, 50, [1, 2]), drawing(logits, 50, [2, 1]))
    assert not np.array_equal(drawing(logits, 50, [0, 0]), drawing(logits, 50, [0, 0]))
