"""`nnx-convert verify`, through its entry point: the screen, JSON, JUnit, states, what is missing or makes no sense."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sample_models import SAMPLES
from tflite_writer import TFLiteWriter

import nnx_convert
from nnx_convert.arrays import write_archive
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode, Notice
from nnx_convert.verify import junit, references
from nnx_convert.verify.metrics import Measure
from nnx_convert.verify.opening import Subject, Values
from nnx_convert.verify.verdict import Row, Verdict

MODELS = Path(__file__).parents[2] / "models"
DIGITS, INT8, SPARSE, ONNX = (str(MODELS / f"digits_{n}") for n in (
    "cnn.tflite", "cnn_int8.tflite", "sparse.tflite", "cnn.onnx"))
#: Engines that are there, and a model for each.
PEERS = [(name, model) for name, model in (("litert", INT8), ("litert", SPARSE), ("onnxruntime", ONNX))
         if find_spec(references.ENGINES[name][1])]


def nnx(*args: object) -> int:
    return ended(["verify", *map(str, args)])


def tensors(model: str, folder: Path, wrong: str = "") -> str:
    """An archive of a model's tensors for an input that it holds, too; one tensor is spoilt."""
    subject = Subject(model)
    rng = np.random.default_rng(0)
    given = {s.name: rng.standard_normal([n or 1 for n in s.shape or ()]).astype(np.float32) if s.dtype.kind == "f"
             else rng.integers(-128, 128, [n or 1 for n in s.shape or ()]).astype(s.dtype) for s in subject.inputs}
    found = {**Values(subject)(given), **{f"in{i}": a for i, a in enumerate(given.values())}}
    if wrong:
        found[wrong] = found[wrong] + np.ones((), found[wrong].dtype)
    write_archive(str(folder / "all.npz"), found)
    return str(folder / "all.npz")


@pytest.mark.parametrize("model", [DIGITS, INT8, SPARSE, ONNX])
def test_a_model_beside_its_own_tensors(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnx(model, "--against", tensors(model, tmp_path), "--per-op") == ExitCode.GOOD
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert not err and max(map(len, lines)) <= 100 and len(lines) < 40
    assert lines[0].startswith(f"{Path(model).name}   beside all.npz, 1 run")
    assert lines[-1].startswith("equal      1 output and ")


def test_what_diverges_is_named_with_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tensors(INT8, tmp_path, wrong="conv2")
    assert nnx(INT8, "--against", archive, "--per-op") == ExitCode.DIFFERENT
    out = capsys.readouterr().out
    assert re.search(r"first +op 2 CONV_2D diverges at conv2: \d+ of \d+ differ, off by [\d.]+ at most, 1 steps", out)
    assert re.search(r"fed with +depthwise +int8 \[1,8,8,\d+\] +-128 to \d+ +scale [\d.]+ zero -?\d+", out)
    assert nnx(INT8, "--against", archive, "--per-op", "--steps", 1) == ExitCode.GOOD
    capsys.readouterr()
    assert nnx(INT8, "--against", archive, "--per-op", "--quiet") == ExitCode.DIFFERENT
    assert len(capsys.readouterr().out.splitlines()) < 6


def test_an_output_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tensors(DIGITS, tmp_path, wrong="probabilities")
    assert nnx(DIGITS, "--against", archive) == ExitCode.DIFFERENT
    out = capsys.readouterr().out
    assert "differs    probabilities: 10 of 10 differ" in out and "--per-op names the operation" in out
    assert nnx(DIGITS, "--against", archive, "--atol", 1.001) == ExitCode.GOOD
    assert nnx(DIGITS, "--against", archive, "--rtol", 0.1) == ExitCode.DIFFERENT


def test_errors_that_only_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
                                 ) -> None:
    """As where native code is wrong: the whole gives another answer than its operations one by one."""
    archive, own = tensors(DIGITS, tmp_path), nnx_convert.CompiledModel.run
    monkeypatch.setattr(nnx_convert.CompiledModel, "run", lambda *a: {n: 2 * v for n, v in own(*a).items()})
    assert nnx(DIGITS, "--against", archive, "--per-op") == ExitCode.DIFFERENT
    out = capsys.readouterr().out
    assert "no operation diverges by itself" in out and max(map(len, out.splitlines())) <= 100


def test_json_says_what_the_page_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnx(INT8, "--against", tensors(INT8, tmp_path, wrong="conv2"), "--per-op", "--json") == ExitCode.DIFFERENT
    found = json.loads(capsys.readouterr().out)
    assert (found["good"], found["runs"], found["first"]["name"]) == (False, 1, "conv2")
    assert found["first"]["steps"] == 1 and found["first"]["inputs"][0]["quantization"]["scale"] > 0
    assert [t["name"] for t in found["tensors"] if not t["good"]] == ["conv2", "pool1"]
    page = (MODELS.parent / "docs" / "report.md").read_text()
    told = set(re.findall(r"`(\w+)`", page.partition("## nnx-convert verify")[2].partition("\n## ")[0]))
    assert set(found) | set(found["first"]) | set(found["first"]["inputs"][0]) <= told


def suite(path: Path) -> ET.Element:
    """The one suite of a file, its numbers checked against its cases."""
    whole = ET.parse(path).getroot()
    assert (whole.tag, [s.tag for s in whole]) == ("testsuites", ["testsuite"])
    found = whole[0]
    assert {c.tag for c in found} == {"testcase"} and {g.tag for c in found for g in c} <= {"failure", "skipped"}
    assert all(c.get("name") and c.get("classname") for c in found)
    for part, tag in (("failures", "failure"), ("skipped", "skipped")):
        assert int(found.get(part, "")) == len(found.findall(f"testcase/{tag}"))
    assert int(found.get("tests", "")) == len(found) and found.get("errors") == "0"
    assert float(found.get("time", "")) >= 0
    return found


def test_junit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "out.xml"
    assert nnx(INT8, "--against", tensors(INT8, tmp_path, wrong="conv2"), "--per-op", "--junit", to
               ) == ExitCode.DIFFERENT
    assert f"wrote      {to}" in capsys.readouterr().out
    failed = [c for c in suite(to) if c.find("failure") is not None]
    assert [c.get("name") for c in failed] == ["op 2 CONV_2D conv2", "op 3 MAX_POOL_2D pool1"]
    assert "differ, off by" in (failed[0][0].get("message") or "")


def test_junit_takes_whatever_names_a_file_has(tmp_path: Path) -> None:
    row = Row("a\0\x1b]\ud800<&\"'", Measure(problem="\x07", good=False), "op 0 ADD")
    junit.save(str(tmp_path / "o.xml"), Verdict("r", 1, (row,), (row,), (("b\0", "draws"),), "fails\x00"), "m<", 0.1)
    assert len(suite(tmp_path / "o.xml")) == 4


def counting() -> bytes:
    """A model that keeps a sum: y = state + x, which is the next state."""
    w = TFLiteWriter()
    x, handle, now, y = (w.tensor(n, d, s) for n, d, s in (
        ("x", "float32", (2,)), ("h", "resource", ()), ("now", "float32", (2,)), ("y", "float32", (2,))))
    w.op("VAR_HANDLE", [], [handle], "VarHandleOptions")
    w.op("READ_VARIABLE", [handle], [now], "ReadVariableOptions")
    w.op("ADD", [now, x], [y], "AddOptions")
    w.op("ASSIGN_VARIABLE", [handle, y], [], "AssignVariableOptions")
    return w.finish([x], [y])


def test_a_model_that_keeps_a_state_runs_in_sequence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, archive = tmp_path / "sum.tflite", tmp_path / "runs.npz"
    model.write_bytes(counting())
    ones = np.ones(2, np.float32)
    np.savez(archive, in0=ones, out0=ones, s1_in0=ones, s1_out0=2 * ones, s2_in0=ones, s2_out0=3 * ones)
    assert nnx(model, "--against", archive, "--json") == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["runs"] == 3
    np.savez(archive, in0=ones, out0=ones, s1_in0=ones, s1_out0=ones)
    assert nnx(model, "--against", archive) == ExitCode.DIFFERENT
    assert "2 of 4 differ" in capsys.readouterr().out
    assert nnx(model, "--against", model, "--json") == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["runs"] == 3


def test_an_input_that_is_an_output_of_the_run_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.ones((2, 4), np.float32)
    SAMPLES["dense"]().save(tmp_path / "m.nnx")
    run = nnx_convert.compile(tmp_path / "m.nnx").run
    first = run([x])[0]
    np.savez(tmp_path / "g.npz", in0=x, out0=first, s1_out0=run([first])[0])
    args = [tmp_path / "m.nnx", "--against", tmp_path / "g.npz", "--json"]
    with pytest.warns(Notice, match="--feed input0=OUTPUT"):
        assert nnx(*args) == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert nnx(*args, "--feed", "input0=output0") == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["runs"] == 2


def test_open_sizes_are_those_of_the_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from one_node import model
    from onnx import TensorProto, helper
    made = model([helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])],
                 [("x", TensorProto.FLOAT, ["n", 3])], [("y", TensorProto.FLOAT, ["n", 3])], opset=20)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    x = np.linspace(-2, 2, 15, dtype=np.float32).reshape(5, 3)
    np.savez(tmp_path / "g.npz", x=x, a=np.abs(x), y=np.tanh(np.abs(x)))
    assert nnx(tmp_path / "m.onnx", "--against", tmp_path / "g.npz", "--per-op", "--json") == ExitCode.GOOD
    assert [t["count"] for t in json.loads(capsys.readouterr().out)["tensors"]] == [15, 15]
    np.savez(tmp_path / "g.npz", x=x, a=np.abs(x).reshape(3, 5), y=np.tanh(np.abs(x)))
    assert nnx(tmp_path / "m.onnx", "--against", tmp_path / "g.npz", "--per-op", "--json") == ExitCode.DIFFERENT
    assert json.loads(capsys.readouterr().out)["first"]["problem"] == "has the shape [5, 3], expected [3, 5]"


def test_a_model_beside_another_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnx_convert.convert(DIGITS).save(tmp_path / "d.nnx") is None
    assert nnx(tmp_path / "d.nnx", "--against", DIGITS) == ExitCode.GOOD
    assert nnx(DIGITS, "--against", ONNX) == ExitCode.GOOD, "channels first there"
    assert nnx(DIGITS, "--against", DIGITS, "--per-op") == ExitCode.GOOD


@pytest.mark.parametrize("level", [28, 30])
def test_codes_beside_floats(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a device without signed bytes, too: a grid is that of the source's codes, whatever lowering moves it to."""
    assert nnx(INT8, "--against", DIGITS, "--per-op", "--steps", 2, "--target", level, "--json") == ExitCode.DIFFERENT
    found = json.loads(capsys.readouterr().out)
    assert all(t["good"] and t["snr"] > 30 for t in found["tensors"] if t["differing"]), "each operation is near"


@pytest.mark.parametrize("level", [28, 30])
def test_the_range_that_an_operation_is_fed_with_is_on_its_grid(level: int, tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    archive = tensors(INT8, tmp_path, wrong="conv2")
    assert nnx(INT8, "--against", archive, "--per-op", "--target", level, "--json") == ExitCode.DIFFERENT
    fed, = json.loads(capsys.readouterr().out)["first"]["inputs"]
    assert (fed["name"], fed["dtype"]) == ("depthwise", "int8")
    assert fed["min"] == -128 == fed["quantization"]["zero_point"], "what a Relu gives begins at zero"


def onnx_model(folder: Path, *nodes: Any, shape: Any = (2, 3), outputs: Any = None) -> Path:
    """A file with an input x and an output y of floats, or outputs of other kinds."""
    from one_node import model
    from onnx import TensorProto
    made = model(nodes, [("x", TensorProto.FLOAT, shape)], outputs or [("y", TensorProto.FLOAT, None)], opset=20)
    made.ir_version = 9
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return folder / "m.onnx"


def test_what_is_drawn_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper
    node = helper.make_node
    path = onnx_model(tmp_path, node("Abs", ["x"], ["a"]), node("RandomNormalLike", ["a"], ["r"]),
                      node("Add", ["a", "r"], ["y"]), node("Neg", ["a"], ["z"]),
                      outputs=[("y", TensorProto.FLOAT, None), ("z", TensorProto.FLOAT, None)])
    x = np.ones((2, 3), np.float32)
    np.savez(tmp_path / "g.npz", x=x, a=x, r=x, y=x + x, z=-x)
    assert nnx(path, "--against", tmp_path / "g.npz", "--per-op", "--json") == ExitCode.GOOD
    found = json.loads(capsys.readouterr().out)
    assert [s["name"] for s in found["skipped"]] == ["y", "r"]
    assert ([r["name"] for r in found["outputs"]], [r["name"] for r in found["tensors"]]) == (["z"], ["a", "z"])


def test_a_list_of_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    path = onnx_model(tmp_path, helper.make_node("Abs", ["x"], ["a"]),
                      helper.make_node("SequenceConstruct", ["a", "x"], ["y"]), outputs=[("y", kind)])
    x = -np.ones((2, 3), np.float32)
    np.savez(tmp_path / "g.npz", **{"x": x, "y[0]": -x, "y[1]": x})
    assert nnx(path, "--against", tmp_path / "g.npz", "--json") == ExitCode.GOOD
    assert json.loads(capsys.readouterr().out)["outputs"][0]["count"] == 12
    np.savez(tmp_path / "g.npz", **{"x": x, "y[0]": -x})
    assert nnx(path, "--against", tmp_path / "g.npz") == ExitCode.DIFFERENT
    assert "is a list of 2, expected 1" in capsys.readouterr().out


def test_a_run_that_fails_is_told_and_its_operations_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                 capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: Any) -> None:
        raise nnx_convert.NnxError("no", "op 4 CONV_2D")
    archive = tensors(DIGITS, tmp_path)
    monkeypatch.setattr(nnx_convert.CompiledModel, "run", fails)
    assert nnx(DIGITS, "--against", archive, "--per-op", "--junit", tmp_path / "o.xml") == ExitCode.DIFFERENT
    out = capsys.readouterr().out
    assert "fails      op 4 CONV_2D: no" in out and "per op" in out
    assert len([c for c in suite(tmp_path / "o.xml") if c.find("failure") is not None]) == 1


FAULTS: dict[str, tuple[list[str], ExitCode, str]] = {
    "no such engine": ([DIGITS, "--against", "litrt"], ExitCode.USAGE, "did you mean litert?"),
    "no such file": ([DIGITS, "--against", "no.npz"], ExitCode.USAGE, "neither a file nor an engine"),
    "another format": ([ONNX, "--against", "litert"], ExitCode.USAGE, "litert reads no .onnx file"),
    "a folder": ([DIGITS, "--against", "{here}"], ExitCode.UNREADABLE, "it is a folder"),
    "no model": (["{here}/x.npy", "--against", "{here}/x.npy"], ExitCode.UNREADABLE, "neither a TFLite nor an ONNX"),
    "one array": ([DIGITS, "--against", "{here}/x.npy"], ExitCode.UNREADABLE, "holds one array"),
    "no output in it": ([DIGITS, "--against", "{here}/in.npz"], ExitCode.USAGE, "no output of the model"),
    "no input in it": ([DIGITS, "--against", "{here}/out.npz"], ExitCode.FAILED, "holds no inputs"),
    "outputs only": ([DIGITS, "--against", "{here}/out.npz", "--random", "1", "--per-op"], ExitCode.USAGE,
                     "outputs only"),
    "names of a program": (["{here}/d.nnx", "--against", "{here}/out.npz", "--random", "1", "--per-op"],
                           ExitCode.USAGE, "no names of tensors"),
    "a program alone": (["{here}/d.nnx"], ExitCode.USAGE, "no runtime of its own"),
    "an input's name": ([DIGITS, "--against", DIGITS, "--input", "imag={here}/x.npy"], ExitCode.FAILED,
                        "did you mean image?"),
    "feed": ([DIGITS, "--against", DIGITS, "--feed", "image=prob"], ExitCode.USAGE, "did you mean probabilities?"),
    "a shape": ([DIGITS, "--against", DIGITS, "--input", "image={here}/x.npy"], ExitCode.FAILED, "has shape [3]"),
    "junit": ([DIGITS, "--against", DIGITS, "--junit", "{here}/no/o.xml"], ExitCode.USAGE, "there is no folder")}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args, code, says = FAULTS[name]
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    image = np.zeros((1, 8, 8, 1), np.float32)
    np.savez(tmp_path / "in.npz", in0=image, other=image)
    np.savez(tmp_path / "out.npz", out0=np.zeros((1, 10), np.float32))
    nnx_convert.convert(DIGITS).save(tmp_path / "d.nnx")
    assert nnx(*(a.format(here=tmp_path) for a in args)) == code
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and says in err


def test_an_engine_that_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(references, "find_spec", lambda package: None)
    assert nnx(DIGITS) == ExitCode.USAGE
    assert "litert is not installed (pip install 'nnx-convert[verify]'" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "model"), PEERS)
def test_the_format_s_own_runtime(name: str, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnx(model, "--per-op", "--json") == ExitCode.GOOD
    found: Any = json.loads(capsys.readouterr().out)
    assert len(found["tensors"]) > 4 and found["inputs"] == [{"name": "image", "from": "seed 0"}]
    assert nnx(model, "--against", name, "--random", 3) == ExitCode.GOOD


def test_the_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    archive = tensors(DIGITS, tmp_path)
    done = subprocess.run([sys.executable, "-m", "nnx_convert", "verify", DIGITS, "--against", archive, "--per-op"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "\nequal " in done.stdout
