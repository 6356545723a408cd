"""Whatever state a thread's floats are in: a run gives the same, and leaves that state as it was."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from natively import Array, Net

from nnx_convert import CompiledModel, OperandCode, RunError
from nnx_convert.runtime.codegen import effort
from nnx_convert.runtime.codegen.directed import READ, WRITTEN
from nnx_convert.runtime.codegen.ir import Function, Module
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.objects import Library, compiled
from nnx_convert.runtime.codegen.pool import RUN, prepared

#: MXCSR: results, then operands, too, that are denormal are taken for 0; rounding down, and toward zero.
STATES = {"flushed": 0x9F80, "zeros": 0x9FC0, "down": 0x3F80, "cut and zeros": 0xFFC0}
#: All of it but what happened so far.
MODES = 0xFFC0


@cache
def library() -> Library:
    """`set` takes MXCSR from the arena, `get` writes it there."""
    m = Module(host())
    for name, what in (("set", READ), ("get", WRITTEN)):
        f = Function(m, name, RUN, exported=True)
        m.declare(f"declare void @{what}(ptr)")
        f.do(f"call void @{what}(ptr %arena)")
        f.finish()
    return Library(compiled(m.text(), m.machine), ("set", "get"), m.machine)


def called(name: str, value: int = 0) -> int:
    """MXCSR as it is, or as it is to be."""
    word = np.array([value], np.uint32)
    prepared(library().address(name), word.ctypes.data, word.ctypes.data, 1, 0)()
    return int(word[0]) & MODES


@contextmanager
def state(value: int) -> Iterator[None]:
    """Within it, this thread has another one."""
    before = called("get")
    called("set", value)
    try:
        yield
    finally:
        called("set", before)


def halves() -> tuple[CompiledModel, Array]:
    """x / 3 of denormals and of numbers that are none, by two threads, and x."""
    net = Net()
    rng = np.random.default_rng(0)
    x = (rng.uniform(-1, 1, (64, 64)) * rng.choice([1e-39, 1e-44, 1.0], (64, 64))).astype(np.float32)
    third = net.const(np.full((64, 64), 1 / 3))
    found = net.op("MUL", net.input(x), third, net.scalar(0), shape=(64, 64))
    return CompiledModel(net.finish(found), threads=2, backend="native"), x


@pytest.mark.parametrize("value", STATES.values(), ids=STATES)
def test_a_run_is_what_it_is_in_an_ordinary_thread(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "LEAST", 0.0)
    (model, x), (other, _) = halves(), halves()
    want, = model.run([x])
    assert np.array_equal(want, x * np.float32(1 / 3)) and (np.abs(want[want != 0]) < 1e-38).any()
    with state(value):
        found, after = [other.run([x])[0].tobytes() for _ in range(2)], called("get")
    assert found == [want.tobytes()] * 2 and after == value


def test_a_run_that_fails_leaves_it_as_well() -> None:
    net = Net()
    x, at = net.input(np.zeros((4, 3))), net.input(np.array([1, 7]), OperandCode.TENSOR_INT32)
    model = CompiledModel(net.finish(net.op("GATHER", x, net.scalar(0), at, shape=(2, 3))), backend="native")
    with state(STATES["zeros"]):
        with pytest.raises(RunError, match="index 7"):
            model.run(net.given)
        after = called("get")
    assert after == STATES["zeros"]
