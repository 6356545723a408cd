"""`ModelBuilder`: NNAPI's states, failures and words, call by call."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnx_convert.artifact import load
from nnx_convert.builder import ModelBuilder
from nnx_convert.codes import OperandCode as C, OperationCode as O, OperationCodeEx as X, ResultCode
from nnx_convert.errors import ModelError, Oversized
from nnx_convert.model import Lifetime, Model
from nnx_convert.resources import DEEPEST, limited
from nnx_convert.schema import OpDef
from nnx_convert.types import ChannelQuant

F, Q, INTS, S = C.TENSOR_FLOAT32, C.TENSOR_QUANT8_ASYMM, C.TENSOR_INT32, C.INT32


def blank(*operands: tuple[Any, ...]) -> ModelBuilder:
    """A builder with these operands."""
    b = ModelBuilder()
    for o in operands:
        b.add_operand(*o)
    return b


def adder() -> ModelBuilder:
    """z = x + y, an operand 3 holding the activation; nothing named yet."""
    b = blank((F, (2,)), (F, (2,)), (F, (2,)), (S,))
    b.set_operand_value(3, 0)
    b.add_operation(O.ADD, [0, 1, 3], [2])
    return b


def whole() -> ModelBuilder:
    b = adder()
    b.identify_inputs_and_outputs([0, 1], [2])
    return b


def conv(bias_scale: float = 0.25, w: Any = Q) -> ModelBuilder:
    """CONV_2D up to its operation; w has scale 0.5, x too."""
    b = blank((Q, (1, 4, 4, 2), 0.5, 3), (w, (3, 1, 1, 2), *([0.5] if w == Q else [])), (INTS, (3,), bias_scale),
              (Q, (1, 4, 4, 3), 1.0), (S,), (S,), (S,))
    b.set_operand_value(1, np.ones((3, 1, 1, 2), w.dtype))
    b.set_operand_value(2, np.zeros(3, np.int32))
    for i, v in ((4, 2), (5, 1), (6, 0)):
        b.set_operand_value(i, v)
    return b


CONV_INPUTS = [0, 1, 2, 4, 5, 5, 6]
Call = Callable[[ModelBuilder], Any]

#: What a builder refuses: how it stands, the call, words of the error, operation and operand concerned.
REFUSED: dict[str, tuple[Callable[[], ModelBuilder], Call, str, int | None, int | None]] = {
    "no such type": (blank, lambda b: b.add_operand(99), "there is no operand type 99", None, 0),
    "type of no number": (blank, lambda b: b.add_operand("float"), "a whole number, not float", None, 0),
    "type of many numbers": (blank, lambda b: b.add_operand(np.zeros((2, 2))), "not a ndarray", None, 0),
    "scalar with dimensions": (blank, lambda b: b.add_operand(S, (1,)), "INT32 has no dimensions", None, 0),
    "negative dimension": (blank, lambda b: b.add_operand(F, (-1,)), "negative or too large", None, 0),
    "half a dimension": (blank, lambda b: b.add_operand(F, (1.5,)), "not whole numbers", None, 0),
    "quantised, no scale": (blank, lambda b: b.add_operand(Q, (2,)), "needs a positive scale", None, 0),
    "quantised, scale nan": (blank, lambda b: b.add_operand(Q, (2,), float("nan")), "needs a positive", None, 0),
    "scale of no number": (blank, lambda b: b.add_operand(Q, (2,), {}), "scale are not numbers", None, 0),
    "scale beyond floats": (blank, lambda b: b.add_operand(Q, (2,), 10 ** 400), "scale are not numbers", None, 0),
    "scale infinite": (blank, lambda b: b.add_operand(INTS, (2,), float("inf")), "is out of range", None, 0),
    "half a zero point": (blank, lambda b: b.add_operand(Q, (2,), 0.5, 1.5), "zero point are not whole", None, 0),
    "zero point outside": (blank, lambda b: b.add_operand(Q, (2,), 0.5, 256), "zero point 256 is outside", None, 0),
    "float with a scale": (blank, lambda b: b.add_operand(F, (2,), 0.5), "is not quantised", None, 0),
    "value: no operand": (blank, lambda b: b.set_operand_value(0, 1), "there is no operand 0", None, 0),
    "value: index of no number": (adder, lambda b: b.set_operand_value("x", 1), "there is no operand x", None, None),
    "value: index of many numbers": (adder, lambda b: b.set_operand_value(np.zeros((9, 9)), 1), "no operand a ndarray",
                                     None, None),
    "value: negative index": (adder, lambda b: b.set_operand_value(-1, 1), "there is no operand -1", None, -1),
    "value: another size": (adder, lambda b: b.set_operand_value(0, np.zeros(3, np.float32)), "its value", None, 0),
    "value: another type": (adder, lambda b: b.set_operand_value(0, np.zeros(2)), "its value float64", None, 0),
    "value: ragged": (adder, lambda b: b.set_operand_value(0, [[1], [1, 2]]), "no array", None, 0),
    "value: words": (adder, lambda b: b.set_operand_value(0, ["a", "b"]), "its value", None, 0),
    "value: half an integer": (adder, lambda b: b.set_operand_value(3, 0.5), "its value float64", None, 3),
    "value: too large": (adder, lambda b: b.set_operand_value(3, 2 ** 31), "does not fit", None, 3),
    "value: beyond float32": (adder, lambda b: b.set_operand_value(0, [1e300, 0.0]), "does not fit", None, 0),
    "value: written": (adder, lambda b: b.set_operand_value(2, [1.0, 2.0]), "an operation writes it", None, 2),
    "value: an input": (whole, lambda b: b.set_operand_value(0, [1.0, 2.0]), "input or output", None, 0),
    "value: open size": (lambda: blank((F, (0, 2))), lambda b: b.set_operand_value(0, []), "not fully spec", None, 0),
    "value: a model's place": (lambda: blank((C.MODEL,)), lambda b: b.set_operand_value(0, 1), "holds a mod", None, 0),
    "model: a number's place": (adder, lambda b: b.set_operand_value_from_model(3, model()), "cannot hold", None, 3),
    "model: a builder": (lambda: blank((C.MODEL,)), lambda b: b.set_operand_value_from_model(0, whole()),
                         "takes a finished model", None, 0),
    "channels: not such a type": (adder, lambda b: b.set_operand_symm_per_channel_quant_params(0, 0, [1.0, 1.0]),
                                  "has no scales per channel", None, 0),
    "channels: too few": (lambda: conv(w=C.TENSOR_QUANT8_SYMM_PER_CHANNEL),
                          lambda b: b.set_operand_symm_per_channel_quant_params(1, 0, [1.0]), "in length", None, 1),
    "channels: negative": (lambda: conv(w=C.TENSOR_QUANT8_SYMM_PER_CHANNEL),
                           lambda b: b.set_operand_symm_per_channel_quant_params(1, 0, [1.0, -1.0, 1.0]),
                           "not positive", None, 1),
    "no such operation": (adder, lambda b: b.add_operation(9999, [0], [2]), "there is no operation 9999", None, None),
    "operation of no number": (adder, lambda b: b.add_operation("ADD", [0], [2]), "a whole number", None, None),
    "operation of no inputs": (adder, lambda b: b.add_operation(O.ADD, None, [2]), "inputs are not whole", 1, None),
    "half an output": (adder, lambda b: b.add_operation(O.ADD, [0], [1.5]), "outputs are not whole", 1, None),
    "model of no inputs": (adder, lambda b: b.identify_inputs_and_outputs(3, [2]), "inputs are not whole", None, None),
    "neither true nor false": (adder, lambda b: b.relax_computation_float32_to_float16(np.ones(2)),  # type: ignore[arg-type]
                               "true or false", None, None),
    "EX as base": (adder, lambda b: b.add_operation(X.EXP_EX, [0], [2]), "use add_operation_ex", None, None),
    "base as EX": (adder, lambda b: b.add_operation_ex(O.ADD, [0, 1, 3], [2]), "use add_operation", None, None),
    "no such EX": (adder, lambda b: b.add_operation_ex(59999, [0], [2]), "no NNAPI-EX operation 59999", None, None),
    "input not added": (adder, lambda b: b.add_operation(O.RELU, [77], [1]), "there is no operand 77", 1, 77),
    "output not added": (adder, lambda b: b.add_operation(O.RELU, [0], [77]), "there is no operand 77", 1, 77),
    "written twice": (adder, lambda b: b.add_operation(O.RELU, [0], [2]), "is written by operation 0 already", 1, 2),
    "twice at once": (lambda: blank((F, (2,)), (F, (2,)), (S,)), lambda b: b.add_operation(O.SPLIT, [0, 2, 2], [1, 1]),
                      "operand 1 is written twice", 0, 1),
    "a constant written": (adder, lambda b: b.add_operation(O.RELU, [0], [3]), "has a value", 1, 3),
    "an input written": (whole, lambda b: b.add_operation(O.RELU, [1], [0]), "has a value, it cannot be", 1, 0),
    "wrong type": (adder, lambda b: b.add_operation(O.LOGICAL_NOT, [0], [1]), "FLOAT32 is not accepted", 1, 0),
    "wrong rank": (lambda: blank((F, (1, 1, 1, 1, 2)), (F, (1, 1, 1, 1, 2))),
                   lambda b: b.add_operation(O.RELU, [0], [1]), "x has rank 1 to 4", 0, 0),
    "wrong count": (adder, lambda b: b.add_operation(O.RELU, [0, 1], [1]), "RELU takes 1 inputs, not 2", 1, None),
    "wrong output": (lambda: blank((F, (2,)), (F, (3,))), lambda b: b.add_operation(O.RELU, [0], [1]),
                     "output 0 is TENSOR_FLOAT32[2], not TENSOR_FLOAT32[3]", 0, 1),
    "bias on another grid": (lambda: conv(0.2), lambda b: b.add_operation(O.CONV_2D, CONV_INPUTS, [3]),
                             "b has zero point 0 and scale x.scale * w.scale", 0, 2),
    "required and left out": (lambda: (b := conv(), b.set_operand_value(2, None))[0],
                              lambda b: b.add_operation(O.CONV_2D, CONV_INPUTS, [3]), "b is required and", 0, 2),
    "named: no operand": (adder, lambda b: b.identify_inputs_and_outputs([9], [2]), "there is no operand 9", None, 9),
    "named: a constant": (adder, lambda b: b.identify_inputs_and_outputs([0, 3], [2]), "operand 3 has a", None, 3),
    "named: written": (adder, lambda b: b.identify_inputs_and_outputs([0, 2], [2]), "is an input and written", None, 2),
    "named twice at once": (adder, lambda b: b.identify_inputs_and_outputs([0, 0], [2]), "listed twice", None, None),
    "named again": (whole, lambda b: b.identify_inputs_and_outputs([0, 1], [2]), "named already", None, None),
    "finish: nothing named": (adder, ModelBuilder.finish, "the model has no outputs", None, None),
    "finish: never written": (lambda: (b := adder(), b.identify_inputs_and_outputs([0], [2]))[0], ModelBuilder.finish,
                              "operand 1 is read and never written", 0, 1),
    "finish: not written": (lambda: (b := blank((F, (2,)), (F, (2,))), b.identify_inputs_and_outputs([0], [1]))[0],
                            ModelBuilder.finish, "is an output and never written", None, 1),
    "finish: unused": (lambda: (b := whole(), b.add_operand(F, (2,)))[0], ModelBuilder.finish,
                       "operand 4 is neither read nor written", None, 4),
    "finish: in a circle": (lambda: (b := blank((F, (2,)), (F, (2,))), b.add_operation(O.RELU, [0], [1]),
                                     b.add_operation(O.RELU, [1], [0]), b.identify_inputs_and_outputs([], [1]))[0],
                            ModelBuilder.finish, "wait for each other", None, None),
    "finish: no scales": (lambda: (b := conv(0.0, C.TENSOR_QUANT8_SYMM_PER_CHANNEL),
                                   b.add_operation(O.CONV_2D, CONV_INPUTS, [3]),
                                   b.identify_inputs_and_outputs([0], [3]))[0],
                          ModelBuilder.finish, "has no scales", None, 1),
}


def model() -> Model:
    return whole().finish()


@pytest.mark.parametrize("name", REFUSED)
def test_bad_data(name: str) -> None:
    stand, call, words, operation, operand = REFUSED[name]
    b = stand()
    with pytest.raises(ModelError) as error:
        call(b)
    assert error.value.result is ResultCode.BAD_DATA and error.value.id == "NNX201"
    assert words in str(error.value) and "BAD_DATA" in str(error.value)
    assert (error.value.operation, error.value.operand) == (operation, operand)


#: What to do about it, where there is something.
HINTS = {"required and left out": "CONV_2D(x, w, b, pl", "wrong count": "RELU(x)", "input not added": "add_operand",
         "finish: nothing named": "identify_inputs_and_outputs", "model: a builder": "call finish"}


@pytest.mark.parametrize("name", HINTS)
def test_hints(name: str) -> None:
    stand, call, *_ = REFUSED[name]
    b = stand()
    with pytest.raises(ModelError) as error:
        call(b)
    assert HINTS[name] in error.value.hint


#: Every call that changes a model.
CHANGES: dict[str, Call] = {
    "add_operand": lambda b: b.add_operand(F), "set_operand_value": lambda b: b.set_operand_value(0, 1),
    "channels": lambda b: b.set_operand_symm_per_channel_quant_params(0, 0, [1.0]),
    "model": lambda b: b.set_operand_value_from_model(0, model()),
    "add_operation": lambda b: b.add_operation(O.ADD, [0], [1]),
    "add_operation_ex": lambda b: b.add_operation_ex(X.EXP_EX, [0], [1]),
    "identify": lambda b: b.identify_inputs_and_outputs([0], [1]),
    "relax": lambda b: b.relax_computation_float32_to_float16(True), "finish": ModelBuilder.finish}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("good", [True, False], ids=["finished", "refused"])
def test_after_finish_every_change_is_bad_state(name: str, good: bool) -> None:
    b = whole() if good else adder()
    if good:
        b.finish()
    else:
        with pytest.raises(ModelError):
            b.finish()
    with pytest.raises(ModelError) as error:
        CHANGES[name](b)
    assert error.value.result is ResultCode.BAD_STATE


#: Values an operand takes: type, dimensions, the value, the array it holds.
VALUES: dict[str, tuple[C, tuple[int, ...], Any, Any]] = {
    "a number": (S, (), 7, np.int32(7)), "a NumPy number": (S, (), np.int64(7), np.int32(7)),
    "a truth value": (C.BOOL, (), True, np.bool_(True)), "a float": (C.FLOAT32, (), 0.5, np.float32(0.5)),
    "an integer as float": (C.FLOAT16, (), 2, np.float16(2)),
    "infinity": (C.FLOAT32, (), float("inf"), np.float32("inf")),
    "an array": (F, (2, 1), np.float32([[1], [2]]), np.float32([[1], [2]])),
    "a flat array": (F, (2, 1), np.float32([1, 2]), np.float32([[1], [2]])),
    "a list": (INTS, (3,), [1, 2, 3], np.int32([1, 2, 3])),
    "bytes of C": (C.TENSOR_BOOL8, (2,), np.uint8([0, 3]), np.bool_([False, True]))}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    type_, dims, value, want = VALUES[name]
    b = blank((type_, dims))
    b.set_operand_value(0, value)
    got = b._operands[0].value
    assert isinstance(got, np.ndarray) and got.dtype == type_.dtype and not got.flags.writeable
    np.testing.assert_array_equal(got, want)


def test_plain_integers_are_codes_and_operations_come_in_any_order() -> None:
    b = blank((3, (2, 2)), (3, (2, 2)), (3, (2, 2)))
    b.add_operation(21, [2], [1])
    b.add_operation(19, [0], [2])
    b.identify_inputs_and_outputs([0], [1])
    found = b.finish()
    assert [o.op.name for o in found.operations] == ["RELU", "RELU6"] and found.level == 27
    assert [o.lifetime for o in found.operands] == [Lifetime.INPUT, Lifetime.OUTPUT, Lifetime.TEMPORARY]


def test_scales_per_channel() -> None:
    b = conv(0.0, C.TENSOR_QUANT8_SYMM_PER_CHANNEL)
    b.set_operand_symm_per_channel_quant_params(1, 0, np.float32([1, 2, 4]))
    b.add_operation(O.CONV_2D, CONV_INPUTS, [3])
    b.identify_inputs_and_outputs([0], [3])
    found = b.finish()
    assert found.operands[1].quant == ChannelQuant((1.0, 2.0, 4.0), 0) and found.level == 29


def densify() -> ModelBuilder:
    """A [2, 2] matrix of two stored elements, then RELU."""
    rows = [2, 0, 2, 2, 0, 0, 3, 2]
    b = blank((F, (2,)), *((INTS, (n,)) for n in rows), (F, (2, 2)), (F, (2, 2)))
    for i, v in ((0, [1.0, 2.0]), (1, [0, 1]), (3, [0, 1]), (4, [2, 2]), (7, [0, 1, 2]), (8, [1, 0])):
        b.set_operand_value(i, v)
    for i in (2, 5, 6):
        b.set_operand_value(i, None)
    b.add_operation(O.DENSIFY, list(range(9)), [9])
    b.add_operation(O.RELU, [9], [10])
    b.identify_inputs_and_outputs([], [10])
    return b


def test_densify_is_an_operation_and_its_level_does_not_count() -> None:
    found = densify().finish()
    assert found.experimental and found.level == 27 and found.operations[0].op.name == "DENSIFY"


def test_relaxed_takes_level_28() -> None:
    b = whole()
    b.relax_computation_float32_to_float16(True)
    found = b.finish()
    assert found.relaxed and found.level == 28 and not model().relaxed and model().level == 27


def test_a_model_is_an_operand_of_if() -> None:
    b = blank((C.TENSOR_BOOL8, (1,)), (C.MODEL,), (F, (2,)), (F, (2,)), (F, (2,)))
    b.set_operand_value_from_model(1, model())
    b.add_operation(O.IF, [0, 1, 1, 2, 3], [4])
    b.identify_inputs_and_outputs([0, 2, 3], [4])
    found = b.finish()
    assert [m.level for m in found.subgraphs] == [27] and found.level == 30


def nested(inner: Model) -> Model:
    """A model that runs another one where its first input says so, else the same."""
    b = blank((C.TENSOR_BOOL8, (1,)), (C.MODEL,), (F, (2,)), (F, (2,)))
    b.set_operand_value_from_model(1, inner)
    b.set_operand_value(0, [True])
    b.add_operation(O.IF, [0, 1, 1, 2], [3])
    b.identify_inputs_and_outputs([2], [3])
    return b.finish()


def test_models_are_nested_as_deep_as_a_file_takes_them(tmp_path: Path) -> None:
    b = blank((F, (2,)), (F, (2,)))
    b.add_operation(O.ABS, [0], [1])
    b.identify_inputs_and_outputs([0], [1])
    deep = b.finish()
    for _ in range(DEEPEST):
        deep = nested(deep)
    deep.save(tmp_path / "deep.nnx")
    assert load(tmp_path / "deep.nnx").depth == deep.depth == DEEPEST
    with limited(depth=3), pytest.raises(Oversized, match="nested more than 3 deep"):
        load(tmp_path / "deep.nnx")
    with pytest.raises(ModelError, match="nested more than 16 deep"):
        nested(deep)


def test_finish_checks_again_only_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    b = blank((F, (2,)), (S,), (F, (1, 2)), (F, (1, 2)))
    b.add_operation(O.EXPAND_DIMS, [0, 1], [2])
    b.add_operation(O.RELU, [2], [3])
    b.set_operand_value(1, 0)
    b.identify_inputs_and_outputs([0], [3])
    calls: list[str] = []
    check = OpDef.check
    monkeypatch.setattr(OpDef, "check", lambda op, i, o: calls.append(op.name) or check(op, i, o))
    b.finish()
    assert calls == ["EXPAND_DIMS"]


def test_a_value_set_after_the_operation_is_checked_by_finish() -> None:
    b = blank((F, (2,)), (F, (2,)), (F, (2,)), (S,))
    b.add_operation(O.ADD, [0, 1, 3], [2])
    b.set_operand_value(3, 9)
    b.identify_inputs_and_outputs([0, 1], [2])
    with pytest.raises(ModelError, match="act is 0 none") as error:
        b.finish()
    assert (error.value.operation, error.value.operand) == (0, 3)
