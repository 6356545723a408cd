"""Which backend computes a model, and for how many sets of input sizes."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sample_models import finished, scalar

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode as T, OperationCode as Op, UsageError
from nnx_convert.errors import Notice
from nnx_convert.runtime import backends
from nnx_convert.runtime.backends import SETS, VARIABLE, backend_of
from nnx_convert.runtime.codegen.program import NativeProgram
from nnx_convert.runtime.runner import Compiled


def doubled() -> Model:
    """x + x for as many x as a run gives."""
    b = ModelBuilder()
    x, y = (b.add_operand(T.TENSOR_FLOAT32, (0,)) for _ in range(2))
    b.add_operation(Op.ADD, [x, x, scalar(b, 0)], [y])
    return finished(b, [x], [y])


def made(model: CompiledModel, size: int) -> Any:
    """What is compiled for so many elements, once it has run and given what is right."""
    name = model.inputs[0].name
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(model.run([x])[0], x + x)
    return model.prepare({name: (size,)})


@pytest.mark.parametrize(("name", "variable", "kind"), [
    ("numpy", "", Compiled), ("native", "numpy", NativeProgram), ("auto", "", NativeProgram),
    ("auto", "numpy", Compiled), ("auto", "native", NativeProgram), ("auto", "auto", NativeProgram)])
def test_the_variable_says_what_auto_is(name: str, variable: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    assert isinstance(made(CompiledModel(doubled(), backend=name), 5), kind)


def test_auto_compiles_few_sets_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    model = CompiledModel(doubled())
    kinds = [type(made(model, n)) for n in range(1, SETS + 3)]
    assert kinds == [NativeProgram] * SETS + [Compiled] * 2


def test_native_compiles_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = CompiledModel(doubled(), backend="native")
    assert {type(made(model, n)) for n in range(1, SETS + 3)} == {NativeProgram}


@pytest.mark.parametrize(("name", "variable", "said"), [
    ("fast", "", "there is no backend 'fast'"), ("auto", "fast", r"\$NNX_BACKEND names no backend: 'fast'")])
def test_a_backend_that_is_none_is_refused(name: str, variable: str, said: str, monkeypatch: pytest.MonkeyPatch
                                           ) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    with pytest.raises(UsageError, match=said):
        backend_of(name)


@pytest.mark.parametrize(("name", "rounding", "said"), [
    ("native", "up", "there is no rounding 'up'"), ("numpy", "fast", "rounding 'fast' is native code's alone"),
    ("auto", "fast", "rounding 'fast' is native code's alone")])
def test_a_rounding_that_is_none_is_refused(name: str, rounding: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        backend_of(name, rounding)


def test_a_copy_rounds_as_the_model_does() -> None:
    model = CompiledModel(doubled(), backend="native", rounding="fast")
    assert pickle.loads(pickle.dumps(model))._made == model._made == (None, "native", "fast")


def test_without_llvmlite_auto_is_numpy_and_says_so_once(monkeypatch: pytest.MonkeyPatch,
                                                         recwarn: pytest.WarningsRecorder) -> None:
    def missing() -> Any:
        raise ImportError("there is no llvmlite")
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(backends, "_natively", missing)
    backends._say_once.cache_clear()
    with pytest.warns(Notice, match="models run in NumPy, .*: there is no llvmlite"):
        found = CompiledModel(doubled())
    assert isinstance(made(found, 3), Compiled)
    assert CompiledModel(doubled()) and not recwarn.list
    with pytest.raises(UsageError, match="there is no native code here"):
        backend_of("native")


def test_a_pickle_keeps_its_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "numpy")
    assert isinstance(made(pickle.loads(pickle.dumps(CompiledModel(doubled(), backend="native"))), 2), NativeProgram)
