"""A user's own passes, the trace of all of them, and iteration over what comes out."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tflite_writer import TFLiteWriter

import nnx_convert as nnx
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode, UsageError
from nnx_convert.graph import Graph, Node, Value
from nnx_convert.lowering.pipeline import PASSES
from nnx_convert.ops.elementwise import EQUAL, MUL, RELU
from nnx_convert.types import F32

INT8 = str(Path(__file__).parents[2] / "models" / "digits_cnn_int8.tflite")
CALM = nnx.Rules("calm")


@CALM.on("TANH")
def relu_for_tanh(g: nnx.Rewriter, node: Node) -> Value | nnx.Refusal:
    """Half of a RELU, for operators whose output has at most two axes."""
    if len(node.outputs[0].shape) > 2:
        return nnx.Refusal("more than two axes")
    return g(MUL, g(RELU, node.args["x"]), g.build.const([0.5], F32), act=0)


def bounded(*shape: int) -> bytes:
    """tanh(x + x)."""
    w = TFLiteWriter()
    x, y, z = (w.tensor(n, "float32", shape) for n in "xyz")
    w.op("ADD", [x, x], [y], "AddOptions")
    w.op("TANH", [y], [z])
    return w.finish([x], [z])


@pytest.fixture
def registered() -> Iterator[None]:
    """The pass, in every conversion of a test."""
    before = list(PASSES)
    nnx.register_pass(CALM)
    yield
    PASSES[:] = before


X = np.array([[-1.0, 0.5]], np.float32)


def test_a_pass_of_one_conversion() -> None:
    trace: list[nnx.Event] = []
    model = nnx.convert(bounded(1, 2), passes=[CALM], trace=trace)
    assert [s.name for s in model] == ["ADD", "MUL"]
    assert nnx.compile(model).run([X])[0].tolist() == [[0, 0.5]]
    assert [(e.rule, e.op, e.did) for e in trace if e.step == "calm"] == [("relu_for_tanh", "TANH", True)]
    assert [(e.rule, e.op, e.did) for e in trace if e.step == "fuse"] == [("activation", "RELU", True)]
    assert [s.name for s in nnx.convert(bounded(1, 2))] == ["ADD", "TANH"]


@pytest.mark.usefixtures("registered")
def test_a_pass_of_all_conversions() -> None:
    assert nnx.compile(bounded(1, 2)).run([X])[0].tolist() == [[0, 0.5]]
    assert [v.place.name for v in nnx.check(bounded(1, 2)).verdicts] == ["ADD", "MUL"]
    trace: list[nnx.Event] = []
    nnx.check(bounded(1, 1, 2), trace=trace)
    assert [(e.did, e.why) for e in trace if e.step == "calm"] == [(False, "more than two axes")]


def swapped(graph: Graph, target: nnx.Target, trace: list[nnx.Event]) -> Graph:
    return Graph(graph.name, graph.inputs, graph.inputs * 2, graph.nodes, graph.rim)


def failing(graph: Graph, target: nnx.Target, trace: list[nnx.Event]) -> Graph:
    raise KeyError("nothing")


def nothing(graph: Graph, target: nnx.Target, trace: list[nnx.Event]) -> Graph:
    return None  # type: ignore[return-value]


WRONG = nnx.Rules("wrong")


@WRONG.on("TANH")
def another_type(g: nnx.Rewriter, node: Node) -> Value:
    return g(EQUAL, node.args["x"], node.args["x"])


@pytest.mark.parametrize(("step", "words"), [
    (swapped, "swapped fails: GraphError: it changes"), (failing, "failing fails: KeyError: 'nothing'"),
    (nothing, "nothing fails: GraphError: it gives NoneType"),
    (WRONG, "wrong fails: GraphError: op 1 TANH: another_type turns")])
def test_a_pass_that_fails_is_the_users(step: object, words: str) -> None:
    with pytest.raises(UsageError, match="the pass " + words):
        nnx.convert(bounded(1, 2), passes=[step])  # type: ignore[list-item]


@pytest.mark.parametrize(("name", "hint"), [("softmax", "did you mean SOFTMAX"), ("qqq", "nnx-convert ops")])
def test_a_rule_for_what_is_no_operation_is_refused(name: str, hint: str) -> None:
    step = nnx.Rules("typo")
    step.on(name)(relu_for_tanh)
    with pytest.raises(UsageError, match=f"the pass typo has a rule for '{name}'.*{hint}"):
        nnx.convert(INT8, passes=[step])


def test_a_step_has_its_operands() -> None:
    first = next(iter(nnx.convert(INT8)))
    assert (first.index, first.name, first.origin, first.level) == (0, "CONV_2D", "op 0 CONV_2D", 30)
    assert first.inputs[1].value is not None and first.outputs[0].dims[0] == 1


@pytest.mark.parametrize("command", [["check", INT8], [INT8, "-o", "m.nnx"]])
def test_the_command_tells_the_trace(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended([*command, "--target", "27", "--trace-passes"]) == ExitCode.GOOD
    err = capsys.readouterr().err.splitlines()
    assert "host: op 0 CONV_2D: to_host on CONV_2D: CONV_2D takes TENSOR_QUANT8_SYMM_PER_CHANNEL as w from 29" in err
    assert ended([*command, "--target", "27", "--trace-passes", "--json"]) == ExitCode.GOOD
    out, none = capsys.readouterr()
    trace = json.loads(out)["trace"]
    assert not none and len(trace) == len(err)
    assert {"pass": "host", "rule": "to_host", "origin": "op 0 CONV_2D", "operation": "CONV_2D", "did": True,
            "why": "CONV_2D takes TENSOR_QUANT8_SYMM_PER_CHANNEL as w from 29"} in trace
    assert ended([*command, "--json"]) == ExitCode.GOOD
    assert "trace" not in json.loads(capsys.readouterr().out)


def test_the_trace_is_told_where_the_conversion_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([INT8, "--target", "27", "--strict", "--trace-passes"]) == ExitCode.UNSUPPORTED
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("host: op 0 CONV_2D") and last.startswith("NNX301")
    assert ended(["missing.tflite", "--trace-passes"]) == ExitCode.UNREADABLE
