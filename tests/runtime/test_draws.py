"""Random draws: distributed as they should be, and another one in every run, whatever is known ahead."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chance import unlikely

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode, OperationCode, RunError
from nnx_convert.schema import OPS

Array = np.ndarray[Any, Any]
FLOATS, INTS, INT = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32, OperandCode.INT32
INDEX, DRAWN = (INTS, (1,)), (INTS, (1, 60))


def const(b: ModelBuilder, code: OperandCode, dims: tuple[int, ...], value: Any) -> int:
    """A constant operand."""
    index = b.add_operand(code, dims)
    b.set_operand_value(index, np.asarray(value, code.dtype))
    return index


def draw(b: ModelBuilder, out: int, logits: Any = ((0.0,) * 1000,), seeds: tuple[int, int] = (0, 0)) -> None:
    """RANDOM_MULTINOMIAL of constants."""
    array = np.asarray(logits, np.float32)
    b.add_operation(OperationCode.RANDOM_MULTINOMIAL, [
        const(b, FLOATS, array.shape, array), const(b, INT, (), DRAWN[1][1]), const(b, INTS, (2,), seeds)], [out])


def drawing(inputs: int = 0) -> Model:
    """A graph that draws; it takes indices and looks at none."""
    b = ModelBuilder()
    given, out = [b.add_operand(*INDEX) for _ in range(inputs)], b.add_operand(*DRAWN)
    draw(b, out)
    b.identify_inputs_and_outputs(given, [out])
    return b.finish()


def of_constants() -> tuple[Model, list[Array]]:
    """A draw, and an input for another operation."""
    b = ModelBuilder()
    x, same, out = b.add_operand(FLOATS, (2,)), b.add_operand(FLOATS, (2,)), b.add_operand(*DRAWN)
    b.add_operation(OperationCode.RELU, [x], [same])
    draw(b, out)
    b.identify_inputs_and_outputs([x], [out, same])
    return b.finish(), [np.ones(2, np.float32)]


def beside_a_size_of_the_run() -> tuple[Model, list[Array]]:
    """A draw, reshaped to a shape that is an input."""
    b = ModelBuilder()
    shape, drawn, out = b.add_operand(INTS, (2,)), b.add_operand(*DRAWN), b.add_operand(INTS, (0, 0))
    draw(b, drawn)
    b.add_operation(OperationCode.RESHAPE, [drawn, shape], [out])
    b.identify_inputs_and_outputs([shape], [out])
    return b.finish(), [np.array([6, 10], np.int32)]


def of_a_size_it_tells() -> tuple[Model, list[Array]]:
    """Rows as many as the first number drawn."""
    b = ModelBuilder()
    x, drawn = b.add_operand(FLOATS, (1,)), b.add_operand(*DRAWN)
    draw(b, drawn)
    first, out = b.add_operand(INTS, (1, 1)), b.add_operand(INTS, (0,))
    b.add_operation(OperationCode.SLICE, [drawn, const(b, INTS, (2,), [0, 0]), const(b, INTS, (2,), [1, 1])], [first])
    row, line = b.add_operand(INTS, (1,)), const(b, INTS, (1,), [7])
    b.add_operation(OperationCode.RESHAPE, [first, const(b, INTS, (1,), [1])], [row])
    b.add_operation(OperationCode.TILE, [line, row], [out])
    same = b.add_operand(FLOATS, (1,))
    b.add_operation(OperationCode.RELU, [x], [same])
    b.identify_inputs_and_outputs([x], [out, same])
    return b.finish(), [np.ones(1, np.float32)]


def in_a_branch() -> tuple[Model, list[Array]]:
    """A draw in both branches of an IF whose condition is constant."""
    b = ModelBuilder()
    x, same, out = b.add_operand(FLOATS, (2,)), b.add_operand(FLOATS, (2,)), b.add_operand(*DRAWN)
    then, orelse = b.add_operand(OperandCode.MODEL), b.add_operand(OperandCode.MODEL)
    for graph in (then, orelse):
        b.set_operand_value_from_model(graph, drawing(1))
    cond, index = const(b, OperandCode.TENSOR_BOOL8, (1,), [True]), const(b, *INDEX, [0])
    b.add_operation(OperationCode.IF, [cond, then, orelse, index], [out])
    b.add_operation(OperationCode.RELU, [x], [same])
    b.identify_inputs_and_outputs([x], [out, same])
    return b.finish(), [np.ones(2, np.float32)]


MODELS = {f.__name__: f for f in (of_constants, beside_a_size_of_the_run, of_a_size_it_tells, in_a_branch)}


@pytest.mark.parametrize("name", MODELS)
def test_every_run_draws_anew(name: str) -> None:
    model, inputs = MODELS[name]()
    compiled = CompiledModel(model)
    runs = [compiled.run(inputs)[0] for _ in range(3)]
    assert len({(r.shape, r.tobytes()) for r in runs}) == 3


def test_a_draw_of_constants_is_a_step_of_the_program() -> None:
    model, _ = of_constants()
    compiled = CompiledModel(model).prepare()
    assert compiled is not None and [s.name for s in compiled.program.steps] == ["RELU", "RANDOM_MULTINOMIAL"]


def counting(limit: int) -> Model:
    """The condition of a loop: its first value is below a limit."""
    b = ModelBuilder()
    i, first, second = b.add_operand(*INDEX), b.add_operand(*DRAWN), b.add_operand(*DRAWN)
    out = b.add_operand(OperandCode.TENSOR_BOOL8, (1,))
    b.add_operation(OperationCode.LESS, [i, const(b, *INDEX, [limit])], [out])
    b.identify_inputs_and_outputs([i, first, second], [out])
    return b.finish()


def stepping() -> Model:
    """The body of a loop: the count goes on, a draw comes in, the one before moves up."""
    b = ModelBuilder()
    i, first, second = b.add_operand(*INDEX), b.add_operand(*DRAWN), b.add_operand(*DRAWN)
    more, drawn, moved = b.add_operand(*INDEX), b.add_operand(*DRAWN), b.add_operand(*DRAWN)
    b.add_operation(OperationCode.ADD, [i, const(b, *INDEX, [1]), const(b, INT, (), 0)], [more])
    draw(b, drawn)
    b.add_operation(OperationCode.TILE, [first, const(b, INTS, (2,), [1, 1])], [moved])
    b.identify_inputs_and_outputs([i, first, second], [more, drawn, moved])
    return b.finish()


@pytest.mark.parametrize("constant", [True, False])
def test_every_turn_of_a_loop_draws_anew(constant: bool) -> None:
    b = ModelBuilder()
    cond, body = b.add_operand(OperandCode.MODEL), b.add_operand(OperandCode.MODEL)
    b.set_operand_value_from_model(cond, counting(2))
    b.set_operand_value_from_model(body, stepping())
    zeros = np.zeros(DRAWN[1], np.int32)
    start = const(b, *INDEX, [0]) if constant else b.add_operand(*INDEX)
    lists = [const(b, *DRAWN, zeros) for _ in range(2)]
    x, same = b.add_operand(FLOATS, (1,)), b.add_operand(FLOATS, (1,))
    outs = [b.add_operand(*INDEX), b.add_operand(*DRAWN), b.add_operand(*DRAWN)]
    b.add_operation(OperationCode.WHILE, [cond, body, start, *lists], outs)
    b.add_operation(OperationCode.RELU, [x], [same])
    b.identify_inputs_and_outputs([x] if constant else [x, start], [*outs, same])
    line = np.ones(1, np.float32)
    compiled = CompiledModel(b.finish())
    runs = [compiled.run([line] if constant else [line, np.zeros(1, np.int32)]) for _ in range(2)]
    assert all(int(count[0]) == 2 for count, *_ in runs)
    assert len({a.tobytes() for _, first, second, _ in runs for a in (first, second)}) == 4


def test_what_draws_is_declared_so() -> None:
    """As is what ends a run, which must not happen where it is only lowered."""
    drawn = {o.name for o in OPS.values() if not o.pure}
    assert drawn >= {"RANDOM_MULTINOMIAL"}
    assert {n for n in drawn if not n.startswith("RANDOM_")} == {"DROPOUT", "REFUSE"}


#: Log odds of a row, up to a constant: even, steep, with a class that never comes, a single one, many.
ODDS: dict[str, list[float]] = {
    "even": [0.0] * 4, "steep": [5.0, 3.0, 0.0, -1.0], "moved": [1000.0, 1001.0, 1002.0],
    "never": [0.0, -np.inf, 1.0], "alone": [3.0], "many": [float(i % 7) / 2 for i in range(40)]}
SEEDS = [(1, 2), (-1, 3), (2 ** 31 - 1, -2 ** 31), (0, 9), (9, 0)]
SAMPLES = 20000


def drawn(logits: Array, seeds: tuple[int, int]) -> Array:
    """Classes drawn of a row."""
    b = ModelBuilder()
    x, out = b.add_operand(FLOATS, (1, len(logits))), b.add_operand(INTS, (1, SAMPLES))
    b.add_operation(OperationCode.RANDOM_MULTINOMIAL, [
        x, const(b, INT, (), SAMPLES), const(b, INTS, (2,), seeds)], [out])
    b.identify_inputs_and_outputs([x], [out])
    found: Array = CompiledModel(b.finish()).run([logits[None]])[0][0]
    return found


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("name", ODDS)
def test_counts_are_within_the_chi_square_bound(name: str, seeds: tuple[int, int]) -> None:
    logits = np.array(ODDS[name], np.float32)
    odds = np.exp(logits.astype(np.float64) - logits.max())
    counts = np.bincount(drawn(logits, seeds), minlength=len(logits))
    assert counts.size == len(logits) and not unlikely(counts, odds)


@pytest.mark.parametrize("lag", [1, 2, 7])
def test_one_draw_says_nothing_of_another(lag: int) -> None:
    found = drawn(np.zeros(4, np.float32), (5, 6))
    assert not unlikely(np.bincount(found[:-lag] * 4 + found[lag:], minlength=16), np.ones(16))


#: Counts of 20000 draws, the odds they are held against, and what is said.
MISDRAWN = [([10000, 10000], [1, 1], ""), ([10100, 9900], [1, 1], ""), ([10400, 9600], [1, 1], "chi-square"),
            ([19999, 1], [1, 0], "without odds"), ([20000, 0], [1, 1e-6], ""), ([19900, 100], [1, 1e-6], "chi-square"),
            ([20000], [1], "")]


@pytest.mark.parametrize(("counts", "odds", "says"), MISDRAWN)
def test_the_bound_tells_chance_from_bias(counts: list[int], odds: list[float], says: str) -> None:
    said = unlikely(np.array(counts), np.array(odds, np.float64))
    assert (says in said) if says else not said


def test_a_shape_that_draws_do_not_fill_fails() -> None:
    model, _ = beside_a_size_of_the_run()
    with pytest.raises(RunError, match="RESHAPE"):
        CompiledModel(model).run([np.array([7, 10], np.int32)])
