"""`CompiledModel`: inputs by name and position, what is refused, threads, pickling, open sizes."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nnx_convert
from nnx_convert import (
    CompiledModel, InputError, ModelBuilder, ModelError, OperandCode, OperationCode, RunError, UsageError)
from nnx_convert.runtime.kernel import KERNELS, Kernel, Run
from nnx_convert.runtime.kernels import elementwise  # noqa: F401  (fills the registry)
from nnx_convert.schema import HOST_CODES

Array = np.ndarray[Any, Any]
FLOAT, INT = OperandCode.TENSOR_FLOAT32, OperandCode.INT32


def added(*shapes: tuple[int, ...]) -> CompiledModel:
    """input0 + input1, relu6."""
    b = ModelBuilder()
    x, y = (b.add_operand(FLOAT, s) for s in shapes)
    act, out = b.add_operand(INT), b.add_operand(FLOAT, np.broadcast_shapes(*shapes))
    b.set_operand_value(act, 3)
    b.add_operation(OperationCode.ADD, [x, y, act], [out])
    b.identify_inputs_and_outputs([x, y], [out])
    return nnx_convert.compile(b.finish())


class NoArray:
    """Says it is an array."""

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        raise RuntimeError("is none")


def test_inputs_by_name_and_by_position() -> None:
    m = added((2, 3), (3,))
    x, y = np.full((2, 3), 5, np.float32), np.array([-9, 0, 9], np.float32)
    assert [s.name for s in m.inputs] == ["input0", "input1"] and m.outputs[0].shape == (2, 3)
    by_name = m.run({"input1": y, "input0": x})["output0"]
    assert by_name.tolist() == [[0, 5, 6]] * 2
    assert np.array_equal(m.run([x, y])[0], by_name) and np.array_equal(m([x, y])[0], by_name)
    assert x.max() == 5 and y.min() == -9


@pytest.mark.parametrize(("given", "said"), [
    ({}, "'input0', 'input1' is missing"), ({"x": 0, "input0": 0, "input1": 0}, "there is no input 'x'"),
    ({0: 0, 1: 0}, "there is no input 0, 1; 'input0', 'input1' is missing"),
    ([np.zeros((2, 3), np.float32)], "takes 2 inputs, not 1"),
    ([np.zeros((2, 3)), np.zeros(3, np.float32)], "'input0' is float64, not float32"),
    ([np.zeros((2, 3), np.float32), np.zeros(4, np.float32)], r"'input1' has shape \[4\], not \[3\]"),
    ([np.zeros((2, 3)), np.zeros((3, 1), np.float32)], "'input0' is float64.*; 'input1' has shape"),
    ([[[1, 2, 3]] * 2, [0.1, 2, 3]], "'input1' is float64, not float32"),
    ([[[1], [2, 3]], np.zeros(3, np.float32)], "'input0' is no array"), (None, "by position, not NoneType"),
    (np.array(object()), "by position, not ndarray"), ([NoArray(), [1e300] * 3], "'input0' is no array.*'input1' is"),
    ([np.zeros((2, 3), object), np.zeros(3, ">M8[s]")], "'input0' is object, .*'input1' is"), ("ab", "'input0' is <U1"),
    ([np.zeros((2, 3), [("a", "f4")]), [10 ** 30] * 3], "'input0' is .*'input1' is")])
def test_inputs_that_do_not_fit_are_named(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        added((2, 3), (3,)).run(given)


def test_types_are_converted_where_no_value_changes() -> None:
    m = added((2,), (2,))
    assert m.run([np.array([1, 2], np.int16), [0.5, 0.25]])[0].tolist() == [1.5, 2.25]


@pytest.mark.parametrize("laid", [
    lambda a: a.astype(">f4"), np.asfortranarray, lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    lambda a: a[::-1, ::-1].copy()[::-1, ::-1], lambda a: np.asfortranarray(a.astype(">f4")), lambda a: a.astype(">f2"),
    lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view("f4").reshape(a.shape), np.ndarray.tolist])
def test_arrays_laid_out_in_any_way_give_the_same(laid: Callable[[Array], Any]) -> None:
    m, x = added((2, 3), (2, 3)), np.arange(6, dtype=np.float32).reshape(2, 3) / 2
    assert m.run([laid(x), laid(x)])[0].tolist() == (2 * x).tolist()


def test_options_that_make_no_sense() -> None:
    model = added((1,), (1,)).model
    for wrong in ({"threads": 0}, {"backend": "cuda"}, {"threads": "2"}, {"backend": np.zeros(3)}, {"shapes": 1},
                  {"shapes": {"input0": None}}, {"shapes": {"input0": [1.5]}}, {"shapes": {"input0": b"x"}}):
        with pytest.raises(UsageError):
            nnx_convert.compile(model, **wrong)  # type: ignore[arg-type]


def test_open_sizes_are_compiled_per_shape() -> None:
    b = ModelBuilder()
    x, out = b.add_operand(FLOAT, (0, 2)), b.add_operand(FLOAT, (0, 2))
    b.add_operation(OperationCode.RELU, [x], [out])
    b.identify_inputs_and_outputs([x], [out])
    m = nnx_convert.compile(b.finish(), threads=1)
    assert m.inputs[0].shape == (None, 2)
    for n in (1, 5, 3, 5):
        assert m.run([np.full((n, 2), -1, np.float32)])[0].shape == (n, 2)
    with pytest.raises(InputError, match="input0 are open"):
        m.prepare()
    assert m.prepare({"input0": (4, 2)}) is not None


def test_rules_are_checked_again_on_concrete_shapes() -> None:
    b = ModelBuilder()
    x, y = b.add_operand(FLOAT, (0, 2)), b.add_operand(FLOAT, (3, 2))
    act, out = b.add_operand(INT), b.add_operand(FLOAT, (0, 2))
    b.set_operand_value(act, 0)
    b.add_operation(OperationCode.ADD, [x, y, act], [out])
    b.identify_inputs_and_outputs([x, y], [out])
    m = nnx_convert.compile(b.finish())
    assert m.run([np.ones((1, 2), np.float32), np.ones((3, 2), np.float32)])[0].shape == (3, 2)
    with pytest.raises(RunError, match="broadcast"):
        m.run([np.ones((2, 2), np.float32), np.ones((3, 2), np.float32)])


def test_a_size_that_follows_from_a_value_is_met_at_run_time() -> None:
    b = ModelBuilder()
    x, shape = b.add_operand(FLOAT, (2, 3)), b.add_operand(OperandCode.TENSOR_INT32, (2,))
    out = b.add_operand(FLOAT, (0, 0))
    b.add_operation(OperationCode.RESHAPE, [x, shape], [out])
    b.identify_inputs_and_outputs([x, shape], [out])
    m = nnx_convert.compile(b.finish())
    x_ = np.arange(6, dtype=np.float32).reshape(2, 3) / 2
    for want in ((3, 2), (6, 1), (1, 6)):
        assert m.run([x_, np.array(want, np.int32)])[0].shape == want
    with pytest.raises(RunError, match="RESHAPE"):
        m.run([x_, np.array([4, 2], np.int32)])


def test_threads_share_a_compiled_model() -> None:
    m = added((400, 30), (30,))
    rng = np.random.default_rng(0)
    given = [(rng.standard_normal((400, 30), np.float32), rng.standard_normal(30, np.float32)) for _ in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda xy: m.run(list(xy))[0], given))
    for (x, y), got in zip(given, found, strict=True):
        assert np.array_equal(got, np.clip(x + y, 0, 6))


def test_a_pickle_is_the_same_model() -> None:
    m = added((2,), (2,))
    again = pickle.loads(pickle.dumps(m))
    x = [np.array([1, 2], np.float32)] * 2
    assert np.array_equal(again.run(x)[0], m.run(x)[0]) and again.inputs == m.inputs


def test_outputs_stay_when_the_next_run_begins() -> None:
    m = added((2,), (2,))
    first = m.run([np.ones(2, np.float32)] * 2)[0]
    m.run([np.zeros(2, np.float32)] * 2)
    assert first.tolist() == [2, 2]


def test_what_fails_while_a_kernel_is_prepared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*_: object, **__: object) -> Run:
        raise ValueError("a table of nonsense")

    model = added((2,), (2,))
    monkeypatch.setitem(KERNELS, "ADD", Kernel(prepare))
    with pytest.raises(RunError, match="ADD failed: a table of nonsense"):
        model.run([np.zeros(2, np.float32)] * 2)


def test_a_host_operation_whose_output_has_another_type_is_refused() -> None:
    b = ModelBuilder()
    x, block = b.add_operand(OperandCode.TENSOR_FLOAT16, (1, 2, 2, 1)), b.add_operand(INT)
    out = b.add_operand(OperandCode.TENSOR_INT32, (1, 1, 1, 4))
    b.set_operand_value(block, 2)
    with pytest.raises(ModelError, match="SPACE_TO_DEPTH: output 0 is TENSOR_FLOAT16"):
        b.add_operation(HOST_CODES | OperationCode.SPACE_TO_DEPTH, [x, block], [out])
