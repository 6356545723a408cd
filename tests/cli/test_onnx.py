"""The command on ONNX files: what it says, what it takes, how it refuses."""
from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode

DIGITS = Path(__file__).resolve().parent.parent.parent / "models" / "digits_cnn.onnx"


def saved(path: Path, *weights: TensorProto) -> str:
    """A model that adds something to rows of which there may be any number."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("rows", 3)) for name in "xy"]
    held = weights or (helper.make_tensor("w", TensorProto.FLOAT, (3,), [1, 2, 3]),)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], list(held))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return str(path)


def away() -> TensorProto:
    """A weight in a file that is not there."""
    made = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    made.external_data.add(key="location", value="../w.bin")
    return made


def test_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([str(DIGITS), "-o", str(tmp_path / "d.nnx")]) == ExitCode.GOOD
    said = capsys.readouterr().out
    assert "ONNX opset 17, 13 operators" in said and "float32 [1,1,8,8]" in said and "host" not in said


def test_the_facts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([str(DIGITS), "-o", str(tmp_path / "d.nnx"), "--report", "json"]) == ExitCode.GOOD
    said = json.loads(capsys.readouterr().out)
    assert said["format"] == "ONNX" and said["made_from"]["version"] == "opset 17"
    assert [p["shape"] for p in said["inputs"]] == [[1, 1, 8, 8]]


def test_an_open_size_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = saved(tmp_path / "m.onnx"), str(tmp_path / "m.nnx")
    assert ended([source, "-o", out]) == ExitCode.GOOD
    assert "float32 [rows,3]" in capsys.readouterr().out
    assert ended([source, "-o", out, "--shape", "x=5,3"]) == ExitCode.GOOD
    assert "float32 [5,3]" in capsys.readouterr().out
    assert ended(["run", source, "--random", "1", "--shape", "x=2,3"]) == ExitCode.GOOD


@pytest.mark.parametrize(("options", "code", "said"), [
    (["--shape", "x=5,4"], ExitCode.USAGE, "input 'x' cannot have the shape [5, 4]"),
    (["--shape", "z=5"], ExitCode.USAGE, "there is no input 'z'"),
    (["--signature", "s"], ExitCode.USAGE, "an ONNX model has no signatures")], ids=["size", "name", "signature"])
def test_options_that_do_not_fit(options: list[str], code: ExitCode, said: str, tmp_path: Path,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([saved(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.nnx"), *options]) == code
    assert said in capsys.readouterr().err and not (tmp_path / "m.nnx").exists()


def test_a_file_outside_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([saved(tmp_path / "m.onnx", away()), "-o", str(tmp_path / "m.nnx")]) == ExitCode.UNREADABLE
    assert capsys.readouterr().err == ("NNX101 m.onnx: tensor 'w': its external data are in '../w.bin': '..' is not "
                                       "allowed\n")


def test_a_node_that_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = onnx.load(saved(tmp_path / "m.onnx"))
    made.graph.node[0].op_type, made.graph.node[0].name = "Magic", "the sum"
    onnx.save(made, tmp_path / "m.onnx")
    assert ended([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.nnx")]) == ExitCode.UNREADABLE
    said = capsys.readouterr().err
    assert said.startswith("NNX102 m.onnx: op 0 Magic 'the sum': ") and said.count("\n") == 1
