"""More than the machine holds is refused before anything is made, and memory that runs out is a fault with words."""
from __future__ import annotations

import re
import resource
from typing import Any

import numpy as np
import pytest

from nnx_convert import CompiledModel, LimitError, Model, ModelBuilder, OperandCode, OperationCode, RunError, limited
from nnx_convert.runtime import rim
from nnx_convert.runtime.bind import once
from nnx_convert.schema import OPS
from nnx_convert.types import F32, I32, Port, Tensor

FLOATS, INTS, INT = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32, OperandCode.INT32
LINE = np.ones(1, np.float32)


def tiled(times: list[int], said: bool, fixed: bool) -> tuple[Model, list[np.ndarray[Any, Any]]]:
    """x repeated; `said`: the output's sizes stand in the model. `fixed`: times are a constant."""
    b = ModelBuilder()
    rank = len(times)
    x, how = b.add_operand(FLOATS, (1,) * rank), b.add_operand(INTS, (rank,))
    out = b.add_operand(FLOATS, times if said else (0,) * rank)
    if fixed:
        b.set_operand_value(how, np.array(times, np.int32))
    b.add_operation(OperationCode.TILE, [x, how], [out])
    b.identify_inputs_and_outputs([x] if fixed else [x, how], [out])
    given = [LINE.reshape((1,) * rank), np.array(times, np.int32)]
    return b.finish(), given[:1] if fixed else given


#: Sizes, of which the first is at the limit of what NumPy can say.
ABSURD = [[2 ** 31 - 1] * 4, [2 ** 31 - 1, 2 ** 20], [2 ** 20, 2 ** 22]]


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("times", ABSURD, ids=str)
def test_an_output_of_absurd_size_is_refused_by_name(times: list[int], said: bool, fixed: bool) -> None:
    model, given = tiled(times, said, fixed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError, match=re.escape(f"{4 * int(np.prod(times, dtype=object)):,} bytes")) as error:
        CompiledModel(model).run(given)
    assert "TILE" in error.value.where
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def relus(count: int, size: int, spread: bool) -> Model:
    """`count` activations of one input, all of them outputs where `spread`, else one after another."""
    b = ModelBuilder()
    x = last = b.add_operand(FLOATS, (size,))
    outs = []
    for _ in range(count):
        out = b.add_operand(FLOATS, (size,))
        b.add_operation(OperationCode.EXP, [x if spread else last], [out])
        outs.append(out)
        last = out
    b.identify_inputs_and_outputs([x], outs if spread else outs[-1:])
    return b.finish()


def test_an_arena_that_does_not_fit_is_refused() -> None:
    x = np.zeros(512, np.float32)
    with limited(total_bytes=10_000):
        few, many = (CompiledModel(relus(9, 512, spread=s)) for s in (False, True))
    assert few.run([x])[0].shape == (512,)
    with pytest.raises(LimitError, match=r"the arena needs 18,432 bytes, 10,000 at most .*--limit total_bytes=VALUE"):
        many.run([x])


@pytest.mark.parametrize("limit", ["tensor_bytes", "total_bytes"])
def test_so_is_one_output(limit: str) -> None:
    with limited(**{limit: 2047}), pytest.raises(LimitError, match=r"output 0, \[512\], needs 2,048 bytes") as error:
        CompiledModel(relus(1, 512, spread=True)).run([np.zeros(512, np.float32)])
    assert "EXP" in error.value.where and limit in error.value.hint


def test_so_is_what_is_computed_step_by_step() -> None:
    model, given = tiled([1, 300], said=False, fixed=False)
    b = ModelBuilder()
    x, how = b.add_operand(FLOATS, (1, 1)), b.add_operand(INTS, (2,))
    outs = [b.add_operand(FLOATS, (0, 0)) for _ in range(3)]
    for out in outs:
        b.add_operation(OperationCode.TILE, [x, how], [out])
    b.identify_inputs_and_outputs([x, how], outs)
    with limited(total_bytes=3000):
        assert CompiledModel(model).run(given)[0].size == 300
        with pytest.raises(LimitError, match="what is computed step by step needs 3,600 bytes"):
            CompiledModel(b.finish()).run(given)


def test_so_is_a_constant_computed_ahead() -> None:
    size = [2 ** 30, 2 ** 30]
    args = {"dims": Tensor(I32, (2,), data=np.array(size, np.int32)), "value": 1.0, "to": F32}
    with pytest.raises(RunError, match="bytes"):
        once(OPS["FILL"], args, (Tensor(F32, tuple(size)),))


@pytest.mark.parametrize(("backend", "most"), [("numpy", 2400), ("native", 3000)])
def test_so_is_an_arena_beside_what_was_computed_ahead(backend: str, most: int) -> None:
    b = ModelBuilder()
    x, how, one = b.add_operand(FLOATS, (300,)), b.add_operand(INTS, (1,)), b.add_operand(FLOATS, (1,))
    many, y, act = b.add_operand(FLOATS, (300,)), b.add_operand(FLOATS, (300,)), b.add_operand(INT)
    for i, value in ((how, np.array([300], np.int32)), (one, LINE), (act, np.int32(0))):
        b.set_operand_value(i, value)
    b.add_operation(OperationCode.TILE, [one, how], [many])
    b.add_operation(OperationCode.ADD, [x, many, act], [y])
    b.identify_inputs_and_outputs([x], [y])
    model = b.finish()
    with limited(total_bytes=most), pytest.raises(LimitError, match=r"beside 1,200 bytes that are computed ahead"):
        CompiledModel(model, backend=backend).prepare()
    CompiledModel(model, backend=backend).prepare()


def test_so_is_a_state() -> None:
    with pytest.raises(RunError, match=r"the state 'total' needs 17,592,186,044,416 bytes"):
        rim.initial(Port("total", "float32", (2 ** 20, 2 ** 22)))


def test_memory_that_runs_out_is_a_fault_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:

    def none(*_: Any, **__: Any) -> None:
        raise MemoryError("no more")
    compiled = CompiledModel(relus(2, 4, spread=False))
    compiled.prepare()
    monkeypatch.setattr("nnx_convert.runtime.runner.Frame", none)
    with pytest.raises(RunError, match="no more"):
        compiled.run([np.zeros(4, np.float32)])


def test_so_it_is_while_preparing(monkeypatch: pytest.MonkeyPatch) -> None:

    def none(*_: Any, **__: Any) -> None:
        raise MemoryError
    monkeypatch.setattr("nnx_convert.runtime.bind.bind", none)
    with pytest.raises(RunError, match="out of memory"):
        CompiledModel(relus(1, 4, spread=False)).prepare()


def test_time_that_is_up_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(seconds=2):
        compiled = CompiledModel(relus(9, 4, spread=False), backend="numpy")
    compiled.prepare()
    moments = iter(range(99))
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    with pytest.raises(LimitError, match="the run takes longer than 2 seconds"):
        compiled.run([np.zeros(4, np.float32)])
