"""Sequences and optional values, known while importing and not, by themselves and in loops."""
from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, TypeProto, helper
from one_node import Port, converted, model, run

from nnx_convert import compile as compiled
from nnx_convert.artifact import from_bytes, to_bytes
from nnx_convert.errors import FormatError, InputError, RunError

F = np.float32
A, B, C = np.array([1, 2], F), np.array([[3]], F), np.array(4, F)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def tensor(element: int = FLOAT, shape: Any = None) -> TypeProto:
    return helper.make_tensor_type_proto(element, shape)


SEQ = helper.make_sequence_type_proto(tensor())
OPT, OPT_SEQ = helper.make_optional_type_proto(tensor()), helper.make_optional_type_proto(SEQ)
S, P, Y = ("s", SEQ), ("p", INT64, ()), ("y", SEQ)
Given = tuple[list[onnx.NodeProto], list[Port], list[Port], list[Any], list[Any]]

RUN_TIME: dict[str, Given] = {
    "insert": ([node("SequenceInsert", ["s", "x"], ["y"])], [S, ("x", FLOAT, (1, 1))], [Y], [[A, C], B], [[A, C, B]]),
    "insert a scalar": ([node("SequenceInsert", ["s", "x", "p"], ["y"])], [S, ("x", FLOAT, ()), P], [Y], [[A], C, -1],
                        [[C, A]]),
    "erase": ([node("SequenceErase", ["s", "p"], ["y"])], [S, P], [Y], [[A, B, C], -2], [[A, C]]),
    "erase the last": ([node("SequenceErase", ["s"], ["y"])], [S], [Y], [[A, B]], [[A]]),
    "at": ([node("SequenceAt", ["s", "p"], ["y"])], [S, P], [("y", FLOAT, ("n",))], [[B, A], 1], [A]),
    "length": ([node("SequenceLength", ["s"], ["y"])], [S], [("y", INT64, ())], [[A, B, C]], [3]),
    "no length": ([node("SequenceLength", ["s"], ["y"])], [S], [("y", INT64, ())], [[]], [0]),
    "construct": ([node("SequenceConstruct", ["a", "b"], ["y"])], [("a", FLOAT, (2,)), ("b", FLOAT, (1, 1))], [Y],
                  [A, B], [[A, B]]),
    "empty": ([node("SequenceEmpty", [], ["y"], dtype=INT64), node("Neg", ["a"], ["z"])], [("a", FLOAT, (2,))],
              [("y", helper.make_sequence_type_proto(tensor(INT64))), ("z", FLOAT, (2,))], [A], [[], -A]),
    "concat": ([node("ConcatFromSequence", ["s"], ["y"], axis=-1)], [S], [("y", FLOAT, (None,))], [[A, A + 1]],
               [np.concatenate([A, A + 1])]),
    "stack": ([node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)],
              [("s", helper.make_sequence_type_proto(tensor(FLOAT, ("n",))))], [("y", FLOAT, (None, None))],
              [[A, A + 1]], [np.stack([A, A + 1], 1)]),
    "split": ([node("SplitToSequence", ["x", "p"], ["y"], axis=1)], [("x", FLOAT, (2, 5)), P], [Y],
              [np.arange(10, dtype=F).reshape(2, 5), 2],
              [np.split(np.arange(10, dtype=F).reshape(2, 5), [2, 4], 1)]),
    "split by sizes": ([node("SplitToSequence", ["x", "p"], ["y"])], [("x", FLOAT, ("n",)), ("p", INT64, (2,))], [Y],
                       [np.arange(5, dtype=F), [1, 4]], [np.split(np.arange(5, dtype=F), [1])]),
    "an optional value": ([node("OptionalHasElement", ["o"], ["h"])], [("o", OPT)], [("h", BOOL, ())], [A], [True]),
    "no optional value": ([node("OptionalHasElement", ["o"], ["h"])], [("o", OPT)], [("h", BOOL, ())], [None],
                          [False]),
    "what it holds": ([node("OptionalGetElement", ["o"], ["y"])], [("o", OPT_SEQ)], [Y], [[A, C]], [[A, C]]),
    "made optional": ([node("Optional", ["a"], ["o"])], [("a", FLOAT, (2,))], [("o", OPT)], [A], [A]),
    "made of nothing": ([node("Optional", [], ["o"], type=tensor()), node("Neg", ["a"], ["z"])], [("a", FLOAT, (2,))],
                        [("o", OPT), ("z", FLOAT, (2,))], [A], [None, -A]),
}


def equal(found: Any, want: Any) -> None:
    """Lists, None and arrays, element by element."""
    if isinstance(want, list) and isinstance(found, list):
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            equal(a, b)
    elif want is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, want)
        assert found.shape == np.shape(want)


@pytest.mark.parametrize("name", RUN_TIME)
def test_at_run_time(name: str) -> None:
    nodes, inputs, outputs, given, want = RUN_TIME[name]
    made = converted(model(nodes, inputs, outputs))
    for m in (made, from_bytes(to_bytes(made))):
        equal(list(compiled(m).run(given)), want)


KNOWN: dict[str, tuple[list[onnx.NodeProto], Any]] = {
    "at": ([node("SequenceAt", ["s", "k"], ["y"])], 2 * A),
    "last": ([node("SequenceAt", ["s", "minus"], ["y"])], 3 * A),
    "inserted": ([node("SequenceInsert", ["s", "a", "k"], ["t"]), node("SequenceAt", ["t", "k"], ["y"])], A),
    "erased": ([node("SequenceErase", ["s", "k"], ["t"]), node("SequenceAt", ["t", "k"], ["y"])], 3 * A),
    "joined": ([node("ConcatFromSequence", ["s"], ["y"], axis=0)], np.concatenate([A, 2 * A, 3 * A])),
    "stacked": ([node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1)], np.stack([A, 2 * A, 3 * A], -1)),
    "split": ([node("SplitToSequence", ["a"], ["t"], keepdims=0), node("SequenceAt", ["t", "k"], ["y"])], A[1]),
    "mapped": ([node("SequenceMap", ["s", "a"], ["t"], body=helper.make_graph(
        [node("Sub", ["v", "w"], ["u"])], "body", [helper.make_tensor_value_info(n, FLOAT, (2,)) for n in "vw"],
        [helper.make_tensor_value_info("u", FLOAT, (2,))])), node("SequenceAt", ["t", "minus"], ["y"])], 2 * A),
    "optional": ([node("Optional", ["s"], ["o"]), node("OptionalGetElement", ["o"], ["t"]),
                  node("SequenceAt", ["t", "k"], ["y"])], 2 * A),
}


def known(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of a, and of a sequence a, 2a, 3a."""
    numbers = [helper.make_tensor(n, kind, (), [v]) for n, kind, v in (
        ("k", INT64, 1), ("minus", INT64, -1), ("two", FLOAT, 2), ("three", FLOAT, 3))]
    first = [node("Mul", ["a", "two"], ["b"]), node("Mul", ["a", "three"], ["c"]),
             node("SequenceConstruct", ["a", "b", "c"], ["s"])]
    return model([*first, *nodes], [("a", FLOAT, (2,))], [("y", FLOAT, None)], initializer=numbers)


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_needs_no_list(name: str) -> None:
    nodes, want = KNOWN[name]
    made = known(nodes)
    equal(run(made, A), [want])
    lists = [o.op.name for o in converted(made).operations if "LIST" in o.op.name]
    assert not lists or name == "optional"


def test_one_of_values_of_one_shape_needs_no_list() -> None:
    made = known([node("SequenceAt", ["s", "p"], ["y"])])
    made.graph.input.append(helper.make_tensor_value_info("p", INT64, ()))
    equal(run(made, A, 1), [2 * A])
    assert not [o.op.name for o in converted(made).operations if "LIST" in o.op.name]


@pytest.mark.parametrize(("name", "given", "said"), [
    ("at", [[A], 3], r"position 3 is not in a list of 1"), ("erase", [[], 0], "position 0 is not in a list of 0"),
    ("split by sizes", [np.arange(5, dtype=F), [1, 3]], r"\[1, 3\] are no parts of 5"),
    ("split", [np.zeros((2, 5), F), 0], "parts of 0"), ("concat", [[]], "a list without elements is joined"),
    ("concat", [[A, B]], "same number of dimensions"), ("what it holds", [None], "position 0 is not in a list of 0")])
def test_a_run_that_fails_says_why(name: str, given: list[Any], said: str) -> None:
    nodes, inputs, outputs, _, _ = RUN_TIME[name]
    with pytest.raises(RunError, match=said):
        run(model(nodes, inputs, outputs), *given)


def test_an_optional_input_may_be_left_out_by_name() -> None:
    nodes, inputs, outputs, _, _ = RUN_TIME["an optional value"]
    made = compiled(converted(model(nodes, inputs, outputs)))
    assert [bool(made.run(given)["h"]) for given in ({"o": A}, {"o": None}, {})] == [True, False, False]
    assert made.inputs[0].holds == "optional(float32)" and made.inputs[0].shape is None


@pytest.mark.parametrize(("given", "said"), [
    ([A, 1], "'s' is ndarray, not a sequence"), ([[A, [1, "x"]], 1], "element 1 is"),
    ([[np.zeros(2)], 0], "element 0 is float64, not float32")])
def test_what_is_no_sequence_is_refused(given: list[Any], said: str) -> None:
    nodes, inputs, outputs, _, _ = RUN_TIME["at"]
    with pytest.raises(InputError, match=said):
        run(model(nodes, inputs, outputs), *given)


@pytest.mark.parametrize(("nodes", "said"), [
    ([node("SequenceAt", ["a", "k"], ["y"])], "does not take TENSOR_FLOAT32"),
    ([node("SequenceErase", ["s", "big"], ["t"]), node("SequenceAt", ["t", "k"], ["y"])],
     "position 9 is not in a sequence"),
    ([node("SequenceConstruct", ["a", "k"], ["t"]), node("SequenceAt", ["t", "k"], ["y"])], "must have one type"),
    ([node("Optional", [], ["o"]), node("OptionalGetElement", ["o"], ["y"])], "neither a value nor a type")])
def test_what_is_wrong_is_said(nodes: list[onnx.NodeProto], said: str) -> None:
    made = known(nodes)
    made.graph.initializer.append(helper.make_tensor("big", INT64, (), [9]))
    with pytest.raises(FormatError, match=said):
        converted(made)
