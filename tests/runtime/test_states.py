"""What a model keeps from run to run: variables of a TFLite file, in all that a compiled model does with them."""
from __future__ import annotations

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_files import two_entries
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert import CompiledModel, InputError, RunError, Unsupported, UsageError
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

Array = np.ndarray[Any, Any]
ONE = np.ones(2, np.float32)


def total(initial: Any = None, dtype: str = "float32", rank: int = 1) -> bytes:
    """y = total + x; total = y; what is assigned at first is `initial` + 0."""
    w, shape = TFLiteWriter(), (2,) * rank
    h, x, v, y = (w.tensor(n, t, s) for n, t, s in (
        ("h", "resource", ()), ("x", dtype, shape), ("v", dtype, shape), ("y", dtype, shape)))
    if initial is not None:
        w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, y], [])
    w.entry("add", {"amount": x}, {"sum": y})
    if initial is not None:
        w.subgraph("init")
        g, c, zero, s = w.tensor("g", "resource", ()), w.tensor("c", dtype, shape, np.full(shape, initial, dtype)), \
            w.tensor("zero", dtype, (), np.zeros((), dtype)), w.tensor("s", dtype, shape)
        w.op("VAR_HANDLE", [], [g], "VarHandleOptions", {"SharedName": "total"})
        w.op("ADD", [c, zero], [s], "AddOptions")
        w.op("ASSIGN_VARIABLE", [g, s], [])
        w.ends([], [])
    return w.finish([x], [y])


def compiled(*args: Any, **named: Any) -> CompiledModel:
    """That model."""
    return nnx_convert.compile(nnx_convert.convert(total(*args, **named)))


def test_a_state_lasts_until_it_is_reset() -> None:
    m = compiled()
    assert [m.run([ONE])[0].tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    assert list(m.run({"x": ONE})) == ["y"] and m.state["total"].tolist() == [4, 4]
    assert [(s.name, s.state) for s in (*m.inputs, *m.outputs)] == [
        ("x", False), ("total", True), ("y", False), ("total", True)]
    m.reset()
    assert m.run([ONE])[0].tolist() == [1, 1]


@pytest.mark.parametrize(("dtype", "initial"), [("float32", 1.5), ("int32", -7), ("int64", 1 << 40)])
def test_a_state_starts_with_what_the_initialisation_computes(dtype: str, initial: Any, tmp_path: Path) -> None:
    model = nnx_convert.convert(total(initial, dtype))
    model.save(tmp_path / "m.nnx")
    for m in map(nnx_convert.compile, (model, nnx_convert.load(tmp_path / "m.nnx"))):
        assert m.state["total"].tolist() == [initial] * 2
        assert m.run([np.ones(2, dtype)])[0].tolist() == [initial + 1] * 2
        m.reset()
        assert m.run([np.ones(2, dtype)])[0].tolist() == [initial + 1] * 2


def test_a_state_of_rank_0() -> None:
    m = compiled(2.0, rank=0)
    assert m.state["total"].shape == () and m.run([np.float32(1)])[0] == 3 and m.state["total"] == 3


def test_a_state_is_read_and_set() -> None:
    m = compiled()
    found = m.state
    found["total"][:] = 99                                   # a copy
    m.state = {"total": np.array([5, 6], np.float32)}
    given = m.state["total"]
    assert m.run([ONE])[0].tolist() == [6, 7] and given.tolist() == [5, 6]
    m.state = {}
    assert m.state["total"].tolist() == [6, 7]


@pytest.mark.parametrize(("values", "says"), [
    ({"totals": ONE}, "there is no state 'totals'.*the states are total"),
    ({"total": np.ones(3, np.float32)}, r"'total' has shape \[3\]"), ({"total": np.ones(2)}, "'total' is float64")])
def test_a_state_that_does_not_fit_is_refused(values: dict[str, Any], says: str) -> None:
    m = compiled()
    with pytest.raises(InputError, match=says):
        m.state = values
    assert m.state["total"].tolist() == [0, 0]


def test_a_state_given_as_an_input_counts_for_the_run() -> None:
    m = compiled()
    m.run([ONE])
    assert m.run({"x": ONE, "total": ONE * 10})["y"].tolist() == [11, 11]
    assert m.run([ONE, ONE * 20])[0].tolist() == [21, 21]
    assert m.run([ONE])[0].tolist() == [22, 22]


def test_a_run_that_fails_changes_nothing() -> None:
    m = compiled()
    m.run([ONE])
    for wrong in ([np.ones(3, np.float32)], [ONE, ONE, ONE], {"z": ONE}):
        with pytest.raises(InputError):
            m.run(wrong)
    assert m.state["total"].tolist() == [1, 1]


def test_a_run_that_fails_inside_changes_nothing() -> None:
    w = TFLiteWriter()
    h, x, v, y, q = (w.tensor(n, t, (2,)[:t != "resource"]) for n, t in (
        ("h", "resource"), ("x", "int32"), ("v", "int32"), ("y", "int32"), ("q", "int32")))
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, y], [])
    w.op("GATHER", [y, x], [q], "GatherOptions")
    m = nnx_convert.compile(nnx_convert.convert(w.finish([x], [q])))
    m.run([np.ones(2, np.int32)])
    with pytest.raises(RunError, match="GATHER"):
        m.run([np.full(2, 9, np.int32)])
    assert m.state["total"].tolist() == [1, 1]


def test_runs_of_many_threads_add_up() -> None:
    m = compiled()
    with ThreadPoolExecutor(4) as pool:
        found = sorted(float(r[0][0]) for r in pool.map(lambda _: m.run([ONE]), range(100)))
    assert found == list(range(1, 101))


def test_a_pickle_starts_anew() -> None:
    m = compiled(3.0)
    m.run([ONE])
    assert pickle.loads(pickle.dumps(m)).state["total"].tolist() == [3, 3]


def test_a_variable_that_nothing_assigns_is_a_constant() -> None:
    w = TFLiteWriter()
    h, x, v, y = (w.tensor(n, t, s) for n, t, s in (
        ("h", "resource", ()), ("x", "float32", (2,)), ("v", "float32", (2,)), ("y", "float32", (2,))))
    w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "weights"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("MUL", [v, x], [y], "MulOptions")
    w.subgraph("init")
    g, c = w.tensor("g", "resource", ()), w.tensor("c", "float32", (2,), np.array([2, 3], np.float32))
    w.op("VAR_HANDLE", [], [g], "VarHandleOptions", {"SharedName": "weights"})
    w.op("ASSIGN_VARIABLE", [g, c], [])
    w.ends([], [])
    m = nnx_convert.compile(nnx_convert.convert(w.finish([x], [y])))
    assert m.state == {} and len(m.inputs) == 1 and m.run([ONE])[0].tolist() == [2, 3]


def test_a_start_that_only_a_run_knows_is_refused() -> None:
    w = TFLiteWriter()
    h, x, v = w.tensor("h", "resource", ()), w.tensor("x", "float32", (2,)), w.tensor("v", "float32", (2,))
    w.op("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.subgraph("init")
    g, r, c = w.tensor("g", "resource", ()), w.tensor("r", "float32", (2,)), w.tensor("c", "float32", (2,))
    w.op("VAR_HANDLE", [], [g], "VarHandleOptions", {"SharedName": "other"})
    w.op("READ_VARIABLE", [g], [r])
    w.op("ADD", [r, r], [c], "AddOptions")
    w.op("ASSIGN_VARIABLE", [g, c], [])
    w.ends([], [])
    with pytest.raises(Unsupported, match="the variable 'other' belongs to a subgraph"):
        nnx_convert.convert(w.finish([x], [v]))


def test_a_signature_names_inputs_and_outputs() -> None:
    m = compiled()
    assert m.run({"amount": ONE}, signature="add")["sum"].tolist() == [1, 1]
    assert m.run([ONE], signature="add")[0].tolist() == [2, 2]
    assert list(m.signatures) == ["add"] and m.signatures["add"].inputs == (("amount", "x"),)


@pytest.mark.parametrize(("given", "signature", "error", "says"), [
    ({"amount": ONE}, "sub", UsageError, "no signature 'sub' .the signatures are add"),
    ({"x": ONE}, "add", InputError, "'add' has no input 'x' .the inputs are amount"),
    ({0: ONE}, "add", InputError, "'add' has no input 0 .the inputs are amount"),
    ({"amount": ONE}, 0, UsageError, "no signature 0 .the signatures are add"),
    ({}, "add", InputError, "missing"),
    ([ONE, ONE], "add", InputError, "takes 1 inputs, not 2")])
def test_a_signature_that_does_not_fit_is_refused(given: Any, signature: str, error: type[Exception],
                                                  says: str) -> None:
    with pytest.raises(error, match=says):
        compiled().run(given, signature=signature)


def test_each_signature_is_converted_by_its_name(tmp_path: Path) -> None:
    x = np.array([[1, 2]], np.float32)
    first, second = (nnx_convert.convert(two_entries(), signature=n) for n in (None, "negate"))
    second.save(tmp_path / "m.nnx")
    assert nnx_convert.compile(first).run({"a": x}, signature="double")["b"].tolist() == [[2, 4]]
    for model in (second, nnx_convert.load(tmp_path / "m.nnx")):
        assert model.source is not None and model.source.signatures == ("double", "negate")
        m = nnx_convert.compile(model)
        assert m.run({"a": x}, signature="negate")["b"].tolist() == [[-1, -2]]
        assert m.run([np.repeat(x, 3, 0)])[0].shape == (3, 2)
        with pytest.raises(UsageError, match=re.escape("convert the file with signature='double'")):
            m.run({"a": x}, signature="double")
    (tmp_path / "m.tflite").write_bytes(two_entries())
    assert ended([str(tmp_path / "m.tflite"), "-o", str(tmp_path / "n.nnx"), "--signature", "negate"]) == ExitCode.GOOD
    assert list(nnx_convert.load(tmp_path / "n.nnx").signatures) == ["negate"]
    with pytest.raises(UsageError, match=r"no signature 'third' .the file has 'double', 'negate'"):
        nnx_convert.convert(two_entries(), signature="third")
