"""Tensors between, by the names of the source file, in a run of what it was compiled to."""
from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tflite_writer import TFLiteWriter

import nnx_convert as nnx
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode, UsageError

DIGITS = str(Path(__file__).parents[2] / "models" / "digits_cnn_int8.tflite")


def running_total() -> bytes:
    """total += x; y = total * total, z = y + x."""
    w = TFLiteWriter()
    h, v, x, s, y, z = (w.tensor(n, t, shape) for n, t, shape in (
        ("h", "resource", ()), ("v", "float32", (2,)), ("x", "float32", (2,)), ("s", "float32", (2,)),
        ("y", "float32", (2,)), ("z", "float32", (2,))))
    w.op("VAR_HANDLE", [], [h], "VarHandleOptions", {"SharedName": "total"})
    w.op("READ_VARIABLE", [h], [v])
    w.op("ADD", [v, x], [s], "AddOptions")
    w.op("ASSIGN_VARIABLE", [h, s], [])
    w.op("MUL", [s, s], [y], "MulOptions")
    w.op("ADD", [y, x], [z], "AddOptions")
    w.entry("square", {"amount": x}, {"sum": z})
    return w.finish([x], [z])


def images(*more: str) -> bytes:
    """Two convolutions of images, channels first, of any number; `more` of their tensors are outputs."""
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n)
               for n, s in (("w", (4, 3, 3, 3)), ("u", (2, 4, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "first"), helper.make_node("Relu", ["a"], ["b"], "second"),
             helper.make_node("Tanh", ["b"], ["c"], "third"), helper.make_node("Conv", ["c", "u"], ["d"], "fourth")]
    outs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", c, 4, 4]) for n, c in
            (("d", 2), *((m, 4) for m in more))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 6, 6])], outs,
                              weights)
    made: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    onnx.checker.check_model(made)
    return made


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_tensors_have_the_order_of_axes_of_the_file(backend: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    want = nnx.compile(images("b", "c"), backend=backend).run({"x": x})
    model = nnx.compile(images(), backend=backend)
    found = model.run({"x": x}, tap=["c", "b"])
    assert list(found) == ["d", "c", "b"]
    for name, array in found.items():
        np.testing.assert_allclose(array, want[name], 1e-6, 1e-6)
    assert np.array_equal(model.run([x], tap=["d"])[1], found["d"])           # an output is one, too
    assert model.run({"x": x[:1]}, tap="b")["b"].shape == (1, 4, 4, 4)


def test_quantised_tensors_are_codes() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    found = nnx.compile(DIGITS).run({"image": x}, tap=["conv1", "pool2"])
    assert (found["conv1"].dtype, found["conv1"].shape) == (np.int8, (1, 8, 8, 16))
    assert np.unique(found["pool2"]).size > 10


def test_a_state_is_what_the_run_had() -> None:
    model, one = nnx.compile(running_total()), np.ones(2, np.float32)
    found = [model.run([one], tap=["y"])[1].tolist() for _ in range(3)]
    assert found == [[1, 1], [4, 4], [9, 9]] and model.state["total"].tolist() == [3, 3]
    assert model.run([one])[0].tolist() == [17, 17]
    named = model.run({"amount": one}, "square", tap=["y"])
    assert {k: v.tolist() for k, v in named.items()} == {"sum": [26, 26], "y": [25, 25]}


def without_source(model: nnx.CompiledModel) -> nnx.CompiledModel:
    return nnx.compile(model.model)


@pytest.mark.parametrize(("make", "names", "words"), [
    (lambda m: m, ["nope"], "there is no tensor 'nope' (the tensors are b, c, d)"),
    (lambda m: m, ["b", "a"], "the tensor 'a' is not computed by itself"),
    (without_source, ["b"], "there is no tensor 'b': the model was not compiled from a source file"),
    (without_source, ["%0"], "there is no tensor '%0'"),
    (lambda m: pickle.loads(pickle.dumps(m)), ["b"], "not compiled from a source file")])
def test_what_is_not_to_be_had(make: Any, names: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        make(nnx.compile(images())).run([np.zeros((1, 3, 6, 6), np.float32)], tap=names)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_tensors_of_a_converted_model_have_numbers(backend: str, tmp_path: Path) -> None:
    nnx.convert(DIGITS).save(tmp_path / "m.nnx")
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    want = nnx.compile(DIGITS).run({"image": x}, tap=["conv1", "flat", "dense"])
    steps = {step.origin.split()[1]: step for step in nnx.load(tmp_path / "m.nnx")}
    model = nnx.load(tmp_path / "m.nnx")
    names = [f"%{model.operations[steps[n].index].outputs[0]}" for n in ("0", "6", "7")]
    compiled = nnx.compile(tmp_path / "m.nnx", backend=backend)
    found = compiled.run({"image": x}, tap=names)
    assert list(found) == ["probabilities", *names]
    for (name, array), expected in zip(found.items(), want.values(), strict=True):
        np.testing.assert_array_equal(array, expected, name)
    np.testing.assert_array_equal(compiled.run([x], tap=names[1])[1], want["flat"])


def test_numbered_tensors_see_the_states_of_their_run() -> None:
    model, one = without_source(nnx.compile(running_total())), np.ones(2, np.float32)
    name = next(f"%{i}" for o in model.model.operations for i in o.outputs if i not in model.model.outputs)
    found = [model.run([one], tap=[name])[1].tolist() for _ in range(3)]
    assert len({str(f) for f in found}) == 3 and model.state["total"].tolist() == [3, 3]


def test_the_command_taps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", DIGITS, "--random", "1", "--tap"]
    assert ended([*run, "conv1", "--tap", "pool1", "--output", "o.npz", "--quiet"]) == ExitCode.GOOD
    with np.load("o.npz") as found:
        assert [*found] == ["probabilities", "conv1", "pool1"] and found["conv1"].dtype == np.int8
    assert "conv1" in capsys.readouterr().out
    assert ended([*run, "conv9"]) == ExitCode.USAGE
    assert "there is no tensor 'conv9' (did you mean conv" in capsys.readouterr().err
