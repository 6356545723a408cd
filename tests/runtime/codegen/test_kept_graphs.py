"""The graphs of branches and loops are kept with the program that runs them, as far as they have run."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_models import counted, loop, times
from sample_models import constant, finished, scalar

import nnx_convert
from nnx_convert import Model, ModelBuilder, OperandCode as T, OperationCode as Op
from nnx_convert.runtime.codegen import tasks
from nnx_convert.runtime.codegen.cache import Cache
from nnx_convert.runtime.codegen.objects import apart, together
from nnx_convert.runtime.outline import Outline

F32, TRUTH = T.TENSOR_FLOAT32, (T.TENSOR_BOOL8, (1,))
Array = np.ndarray[Any, Any]
ONE = np.array([1, 2], np.float32)
YES, NO = np.array([True]), np.array([False])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty at first."""
    monkeypatch.setenv("NNX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "objects"


def choice(then: Model, orelse: Model, size: int = 2, more: bool = False) -> Model:
    """x * 2, then what a branch makes of it; `more`: and of a constant."""
    b = ModelBuilder()
    c, x, doubled, out = b.add_operand(*TRUTH), *(b.add_operand(F32, (size,)) for _ in range(3))
    arms = [b.add_operand(T.MODEL), b.add_operand(T.MODEL)]
    for index, arm in zip(arms, (then, orelse), strict=True):
        b.set_operand_value_from_model(index, arm)
    b.add_operation(Op.MUL, [x, constant(b, F32, [2.0]), scalar(b, 0)], [doubled])
    b.add_operation(Op.IF, [c, *arms, doubled, *([constant(b, F32, [5.0, 7.0])] if more else [])], [out])
    return finished(b, [c, x], [out])


def sum_of_two() -> Model:
    """x + y."""
    b = ModelBuilder()
    x, y, out = (b.add_operand(F32, (2,)) for _ in range(3))
    b.add_operation(Op.ADD, [x, y, scalar(b, 0)], [out])
    return finished(b, [x, y], [out])


def the(which: int, value: Sequence[float] = ()) -> Model:
    """One of two inputs as it is, or a constant: a run computes nothing."""
    b = ModelBuilder()
    given, out = [b.add_operand(F32, (2,)) for _ in range(2)], b.add_operand(F32, (2,))
    if value:
        b.add_operation(Op.ADD, [constant(b, F32, value), constant(b, F32, [0.0]), scalar(b, 0)], [out])
    else:
        b.add_operation(Op.RESHAPE, [given[which], constant(b, T.TENSOR_INT32, [2])], [out])
    return finished(b, given, [out])


def floors() -> Model:
    """The floor of x."""
    b = ModelBuilder()
    x, out = b.add_operand(F32, (2,)), b.add_operand(F32, (2,))
    b.add_operation(Op.FLOOR, [x], [out])
    return finished(b, [x], [out])


def choice_of_one() -> Model:
    """A branch on a constant in a graph of one input."""
    b = ModelBuilder()
    x, out = b.add_operand(F32, (2,)), b.add_operand(F32, (2,))
    more = b.add_operand(*TRUTH)
    first = b.add_operand(F32, (1,))
    b.add_operation(Op.SLICE, [x, constant(b, T.TENSOR_INT32, [0]), constant(b, T.TENSOR_INT32, [1])], [first])
    b.add_operation(Op.GREATER, [first, constant(b, F32, [0.0])], [more])
    arms = [b.add_operand(T.MODEL), b.add_operand(T.MODEL)]
    for index, factor in zip(arms, (4.0, 0.5), strict=True):
        b.set_operand_value_from_model(index, times(factor))
    b.add_operation(Op.IF, [more, *arms, x], [out])
    return finished(b, [x], [out])


#: Models, and the inputs of runs, each of which needs more graphs than those before it.
MODELS: dict[str, tuple[Callable[[], Model], list[list[Array]]]] = {
    "a loop over a branch": (loop, [[np.array([0], np.int32), ONE], [np.array([3], np.int32), ONE]]),
    "a loop that gives fewer values than it has": (counted, [
        [np.array([0], np.int32), ONE], [np.array([3], np.int32), ONE]]),
    "a branch": (lambda: choice(times(3), times(-1)), [[YES, ONE], [NO, ONE]]),
    "a branch in a branch": (lambda: choice(choice_of_one(), times(-1)), [[YES, ONE], [NO, ONE]]),
    "a constant": (lambda: choice(sum_of_two(), the(1), more=True), [[YES, ONE], [NO, ONE]]),
    "arms of nothing": (lambda: choice(the(0), the(0, [3.0, 4.0]), more=True), [[YES, ONE], [NO, ONE]]),
}


def compiled(path: Path) -> nnx_convert.CompiledModel:
    """A file's model, natively, by one thread."""
    return nnx_convert.compile(path, backend="native", threads=1)


def known(model: nnx_convert.CompiledModel) -> bool:
    """Whether it was made from a kept program."""
    return isinstance(model._runner._known, Outline)


@pytest.mark.parametrize("name", MODELS)
def test_what_has_run_needs_no_operations(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, runs = MODELS[name]
    path = tmp_path / "m.nnx"
    make().save(path)
    plain = nnx_convert.compile(path, backend="numpy")
    for n in range(len(runs)):                   # each time, one more is tried for the first time
        first = compiled(path)
        assert known(first) == (n > 0)
        for inputs in runs[:n + 1]:
            assert all(map(np.array_equal, first.run(inputs), plain.run(inputs)))
        with monkeypatch.context() as only:
            only.setitem(sys.modules, "nnx_convert.runtime.bind", None)          # nothing is bound or planned
            again = compiled(path)
            assert known(again)
            for inputs in (*runs[:n + 1], *runs[:n + 1]):
                assert all(map(np.array_equal, again.run(inputs), plain.run(inputs)))


def test_a_graph_is_kept_in_whichever_run_it_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.nnx"
    choice(times(3), times(-1)).save(path)
    first = compiled(path)
    for cond in (YES, YES, YES, NO):             # the second and what follows it are prepared runs
        first.run([cond, ONE])
    monkeypatch.setitem(sys.modules, "nnx_convert.runtime.bind", None)
    assert [compiled(path).run([cond, ONE])[0].tolist() for cond in (YES, NO)] == [[6, 12], [-2, -4]]


def test_graphs_that_numpy_runs_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_all = tasks.family_named
    monkeypatch.setattr(tasks, "family_named", lambda name: None if name == "FLOOR" else with_all(name))
    path = tmp_path / "m.nnx"
    choice(times(3), floors()).save(path)
    for cond, want, kept in ((NO, [2, 4], False), (YES, [6, 12], False), (NO, [2, 4], True)):
        model = compiled(path)
        assert known(model) == kept and model.run([cond, ONE])[0].tolist() == want


def test_other_sizes_are_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "m.nnx"
    choice(open_times(3), open_times(-1), size=0).save(path)
    want = {2: [6, 12], 3: [6, 12, 24]}
    for n in (2, 3, 2):
        model, x = compiled(path), np.array([1, 2, 4], np.float32)
        assert [model.run([YES, x[:k]])[0].tolist() for k in (n, 5 - n)] == [want[n], want[5 - n]]
    assert known(model)


def open_times(factor: float) -> Model:
    """x * factor, of any length."""
    b = ModelBuilder()
    x, y = b.add_operand(F32, (0,)), b.add_operand(F32, (0,))
    b.add_operation(Op.MUL, [x, constant(b, F32, [factor]), scalar(b, 0)], [y])
    return finished(b, [x], [y])


def test_an_entry_with_a_graph_of_another_kind_is_not_used(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "m.nnx"
    choice(times(3), times(-1)).save(path)
    compiled(path).run([YES, ONE])
    name, there = next(cache.glob("*.weights")).stem, Cache(cache)
    data = there.find(name)
    assert data is not None
    for old, new in ((b'"then"', b'"them"'), (b'"at":192', b'"at":1000000')):
        text, *pieces = apart(data)
        assert old in text
        there.keep(name, together([text.replace(old, new), *pieces]))
        model = compiled(path)
        assert not known(model) and model.run([YES, ONE])[0].tolist() == [6, 12]
