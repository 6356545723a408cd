"""Runs like the one before, whose states stay in native code's memory: they give what NumPy's runs give, whatever is
done between them."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert import CompiledModel, InputError, RunError
from nnx_convert.runtime.codegen import effort

SHAPE = (1, 3, 5, 2)


class Sketch(TFLiteWriter):
    """A model of floats [1, 3, 5, 2] with variables; each method gives the number of a new tensor."""

    count = 0

    def new(self, shape: tuple[int, ...] = SHAPE, dtype: str = "float32", data: Any = None) -> int:
        self.count += 1
        return self.tensor(f"t{self.count}", dtype, shape, *([] if data is None else [data]))

    def handle(self, name: str) -> int:
        found = self.new((), "resource")
        self.op("VAR_HANDLE", [], [found], "VarHandleOptions", {"SharedName": name})
        return found

    def read(self, handle: int, shape: tuple[int, ...] = SHAPE) -> int:
        found = self.new(shape)
        self.op("READ_VARIABLE", [handle], [found])
        return found

    def assign(self, handle: int, value: int) -> None:
        self.op("ASSIGN_VARIABLE", [handle, value], [])

    def sum(self, a: int, b: int) -> int:
        found = self.new()
        self.op("ADD", [a, b], [found], "AddOptions")
        return found


def summed(w: Sketch, x: int) -> list[int]:
    a = w.handle("a")
    new = w.sum(w.read(a), x)
    w.assign(a, new)
    return [new, w.sum(new, new)]


def old(w: Sketch, x: int) -> list[int]:
    """A run gives what was there before it."""
    a = w.handle("a")
    before = w.read(a)
    w.assign(a, w.sum(before, x))
    return [before]


def swapped(w: Sketch, x: int) -> list[int]:
    a, b = w.handle("a"), w.handle("b")
    one, two = w.read(a), w.read(b)
    w.assign(a, w.sum(two, x))
    w.assign(b, one)
    return [w.sum(one, two)]


def delayed(w: Sketch, x: int) -> list[int]:
    """The states are an input and an old state, as they are."""
    a, b = w.handle("a"), w.handle("b")
    one, two = w.read(a), w.read(b)
    w.assign(b, one)
    w.assign(a, x)
    return [w.sum(two, x)]


def replaced(w: Sketch, x: int) -> list[int]:
    a = w.handle("a")
    found = w.sum(w.read(a), x)
    w.assign(a, x)
    return [found]


def unchanged(w: Sketch, x: int) -> list[int]:
    a, b = w.handle("a"), w.handle("b")
    one, two = w.read(a), w.read(b)
    w.assign(a, one)
    new = w.sum(two, x)
    w.assign(b, new)
    return [w.sum(new, one)]


def windowed(w: Sketch, x: int) -> list[int]:
    """A state is the last rows of what it and the input are together."""
    a, joined, kept = w.handle("a"), w.new((1, 6, 5, 2)), w.new()
    begin, size = (w.new((4,), "int32", np.array(v, np.int32)) for v in ((0, 3, 0, 0), SHAPE))
    w.op("CONCATENATION", [w.read(a), w.sum(x, x)], [joined], "ConcatenationOptions", {"Axis": 1})
    w.op("SLICE", [joined, begin, size], [kept], "SliceOptions")
    w.assign(a, kept)
    return [joined]


def bordered(w: Sketch, x: int) -> list[int]:
    """What reads the state reads around it."""
    a, y = w.handle("a"), w.new()
    weights = np.random.default_rng(0).standard_normal((2, 3, 3, 2)).astype(np.float32) / 4
    filters, bias = w.new((2, 3, 3, 2), data=weights), w.new((2,), data=np.ones(2, np.float32))
    w.op("CONV_2D", [w.read(a), filters, bias], [y], "Conv2DOptions", {"StrideH": 1, "StrideW": 1})
    w.assign(a, w.sum(y, x))
    return [y]


def several(w: Sketch, x: int) -> list[int]:
    states = [w.handle(f"s{n}") for n in range(7)]
    total = x
    for state in states:
        total = w.sum(w.read(state), total)
        w.assign(state, total)
    return [total]


CASES = (summed, old, swapped, delayed, replaced, unchanged, windowed, bordered, several)
#: Those whose states a run cannot leave where the next one reads them.
APART = (old, swapped, delayed)


def both(case: Callable[[Sketch, int], list[int]], threads: int = 1) -> tuple[CompiledModel, CompiledModel]:
    """The model natively and in NumPy."""
    w = Sketch()
    x = w.new()
    data = w.finish([x], case(w, x))
    native, plain = (nnx_convert.compile(nnx_convert.convert(data), backend=b, threads=threads)
                     for b in ("native", "numpy"))
    return native, plain


def given(n: int) -> list[Any]:
    return [np.random.default_rng(n).standard_normal(SHAPE).astype(np.float32)]


def equal(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def alike(native: CompiledModel, plain: CompiledModel) -> None:
    """Both have the same states."""
    one, two = native.state, plain.state
    assert list(one) == list(two)
    equal(one.values(), two.values())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_states_are_as_in_numpy(case: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "LEAST", 0.0)
    native, plain = both(case, threads)
    for n in range(4):
        equal(native.run(given(n)), plain.run(given(n)))
        alike(native, plain)
    for n in range(4):                           # nobody looks at the states between
        equal(native.run(given(n)), plain.run({native.inputs[0].name: given(n)[0]}.values()))
    name = next(s.name for s in native.inputs if s.state)
    for m in (native, plain):
        m.state = {name: m.state[name] + 1}
    equal(native.run(given(8)), plain.run(given(8)))
    alike(native, plain)
    for n, how in enumerate((lambda v: v.tolist(), lambda v: v.astype(np.float16), lambda v: v[::-1], lambda v: v)):
        equal(native.run([how(v) for v in given(n)]), plain.run([how(v) for v in given(n)]))
    states = [np.full(SHAPE, n, np.float32) for n, s in enumerate(native.inputs) if s.state]
    equal(native.run(given(9) + states), plain.run(given(9) + states))
    for m in (native, plain):
        m.reset()
    equal(native.run(given(1)), plain.run(given(1)))
    alike(native, plain)


def test_a_state_that_is_only_read_stays() -> None:
    w = Sketch()
    x = w.new()
    whole = nnx_convert.convert(w.finish([x], several(w, x)))
    left = [n for n, p in enumerate(whole.rim.outputs) if p.name != "s3"]
    model = replace(whole, outputs=tuple(whole.outputs[n] for n in left),
                    rim=replace(whole.rim, outputs=tuple(whole.rim.outputs[n] for n in left)))
    native, plain = (nnx_convert.compile(model, backend=b) for b in ("native", "numpy"))
    for m in (native, plain):
        m.state = {"s3": given(9)[0]}
    for n in range(4):
        equal(native.run(given(n)), plain.run(given(n)))
    assert native._state._held is not None
    alike(native, plain)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_states_stay_in_native_memory(case: Any) -> None:
    native, _ = both(case)
    for n in range(3):
        native.run(given(n))
    assert (native._state._held is None) == (case in APART)


def test_a_reset_needs_no_other_memory() -> None:
    native, _ = both(summed)
    for n in range(3):
        native.run(given(n))
    assert native._state._held is not None
    frame = native._state._held.frame
    native.reset()
    equal(native.run(given(0)), [given(0)[0], 2 * given(0)[0]])
    assert native._state._held is not None and native._state._held.frame is frame


def test_outputs_and_states_are_copies() -> None:
    native, _ = both(summed)
    found = [native.run(given(0))[0] for _ in range(3)]
    state = native.state["a"]
    kept = [f.copy() for f in found], state.copy()
    state += 1
    found[2] += 1
    equal([native.run(given(0))[0]], [4 * given(0)[0]])
    equal([*found[:2], state - 1], [*kept[0][:2], kept[1]])


def test_models_run_by_name_and_in_any_order() -> None:
    native, plain = both(several)
    name = native.inputs[0].name
    for n in range(4):
        one, two = native.run({name: given(n)[0]}), plain.run({name: given(n)[0]})
        assert list(one) == list(two)
        equal(one.values(), two.values())
    assert native._state._held is not None
    for wrong in ({}, {"z": given(0)[0]}, {name: given(0)[0], "z": given(0)[0]}):
        with pytest.raises(InputError):
            native.run(wrong)
    alike(native, plain)


def test_a_run_that_fails_natively_leaves_the_states() -> None:
    w = TFLiteWriter()
    h, x, v, y, q = (w.tensor(n, t, (2,)[:t != "resource"]) for n, t in (
        ("h", "resource"), ("x", "int32"), ("v", "int32"), ("y", "int32"), ("q", "int32")))
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, y], [])
    w.op("GATHER", [y, x], [q], "GatherOptions")
    m = nnx_convert.compile(nnx_convert.convert(w.finish([x], [q])), backend="native")
    for n in range(1, 4):
        assert m.run([np.ones(2, np.int32)])[0].tolist() == [n, n]
    for _ in range(2):
        with pytest.raises(RunError, match="index 9 is not in"):
            m.run([np.full(2, 9, np.int32)])
        assert m.state["total"].tolist() == [3, 3]
    assert m.run([np.ones(2, np.int32)])[0].tolist() == [4, 4]


def test_runs_of_many_threads_add_up() -> None:
    native, _ = both(summed)
    one = [np.ones(SHAPE, np.float32)]
    with ThreadPoolExecutor(4) as pool:
        found = sorted(float(r[0].flat[0]) for r in pool.map(lambda _: native.run(one), range(200)))
    assert found == list(range(1, 201))


def test_runs_without_states_share_nothing() -> None:
    def twice(w: Sketch, x: int) -> list[int]:
        return [w.sum(x, x)]
    native, _ = both(twice)
    inputs = [given(n) for n in range(64)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(native.run, inputs))
    for (got,), (x,) in zip(found, inputs, strict=True):
        equal([got], [x + x])


@pytest.mark.parametrize("case", [summed, lambda w, x: [w.sum(x, x)]], ids=["states", "none"])
def test_a_model_that_nobody_has_is_gone_at_once(case: Any) -> None:
    """Its memory does not wait for the next search for cycles."""
    native, _ = both(case)
    for n in range(3):
        native.run(given(n))
    program = native._runner.ready(given(0) * len(native.inputs))
    assert program is not None
    known = weakref.ref(program)
    gc.disable()
    try:
        del native, program
        assert known() is None
    finally:
        gc.enable()
