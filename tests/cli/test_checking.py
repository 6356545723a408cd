"""`nnx-convert check`: one screen, one object, a line to gate on."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from one_node import model
from onnx import TensorProto, helper, numpy_helper
from tflite_writer import TFLiteWriter

from nnx_convert.check import FIGURES, conditions
from nnx_convert.cli.entry import ended
from nnx_convert.codes import LEVELS
from nnx_convert.errors import ExitCode, UsageError

MODELS = Path(__file__).parents[2] / "models"
INT8, FLOAT = str(MODELS / "digits_cnn_int8.tflite"), str(MODELS / "digits_cnn.tflite")


@pytest.mark.parametrize(("text", "found"), [
    ("", []), ("host", [("host", ">", 0)]), ("level>29,partitions>1", [("level", ">", 29), ("partitions", ">", 1)]),
    ("level>fl6", [("level", ">", 1_000_006)]), ("refused >= 3", [("refused", ">=", 3)])])
def test_conditions(text: str, found: list[tuple[str, str, int]]) -> None:
    assert [(c.figure, c.sign, c.bound) for c in conditions(text)] == found


@pytest.mark.parametrize("text", ["nope", "host>", "level>x", "host>>1", "partitions>99999999999", "host>fl6"])
def test_conditions_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        conditions(text)


@pytest.mark.parametrize(("args", "code"), [
    ([FLOAT], ExitCode.GOOD), ([FLOAT, "--fail-on", "host,refused,partitions>1"], ExitCode.GOOD),
    ([FLOAT, "--fail-on", "level>26"], ExitCode.UNSUPPORTED), ([INT8, "--fail-on", "level>29"], ExitCode.UNSUPPORTED),
    ([INT8, "--fail-on", "level>30"], ExitCode.GOOD), ([INT8, "--fail-on", "nope"], ExitCode.USAGE),
    ([INT8, "--target", "27", "--fail-on", "host"], ExitCode.UNSUPPORTED), (["missing.tflite"], ExitCode.UNREADABLE)])
def test_how_it_ends(args: list[str], code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", *args]) == code
    out, err = capsys.readouterr()
    if code in (ExitCode.GOOD, ExitCode.UNSUPPORTED):
        assert out.splitlines()[-1].startswith("verdict") and not err
        assert ("fails on" in out.splitlines()[-1]) == (code is ExitCode.UNSUPPORTED)
        assert max(map(len, out.splitlines())) <= 100
    else:
        assert not out and err.count("\n") == 1


def test_all_targets_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", INT8, "--all-targets", "--json"]) == ExitCode.GOOD
    found = json.loads(capsys.readouterr().out)
    assert [t["target"]["level"] for t in found["targets"]] == ["27", "28", "29", "30", "31", "6", "7", "8"]
    assert ended(["check", INT8, "--all-targets"]) == ExitCode.GOOD
    lines = capsys.readouterr().out.splitlines()
    assert len(lines[[line.startswith("targets") for line in lines].index(True):]) == len(LEVELS) + 2


def test_the_object_says_all_of_each_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", INT8, "--target", "27", "--fail-on", "host", "--json"]) == ExitCode.UNSUPPORTED
    found = json.loads(capsys.readouterr().out)
    target, = found["targets"]
    assert target["refused"] == sum(not o["taken"] for o in target["operations"]) > 0
    assert all(o["rule"] and (o["change"] is None) == o["taken"] for o in target["operations"])
    assert sorted(n for p in target["partitions"] for n in p) == [
        o["index"] for o in target["operations"] if o["taken"] and not o["subgraph"]]
    assert found["fail_on"] == [{"condition": "host", "value": target["host"], "met": True}] and not found["good"]


def test_quiet_is_the_last_line_and_verbose_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", FLOAT, "--quiet"]) == ExitCode.GOOD
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert ended(["check", FLOAT, "--verbose"]) == ExitCode.GOOD
    assert capsys.readouterr().out.count(", level 27, ") == 9
    assert set(FIGURES) == {"host", "refused", "level", "partitions"}


def tflite(name: str, options: str | None, dtypes: tuple[str, ...], shape: tuple[int, ...], count: int = 1
           ) -> bytes:
    """An operator that reads its input so many times; constants of other types beside it."""
    w = TFLiteWriter()
    x, y = w.tensor("x", dtypes[0], shape), w.tensor("y", dtypes[0], None if count > 1 else shape)
    rest = [w.tensor(f"w{n}", d, (3, 3), np.eye(3), scale=[0.5], zero=[0]) for n, d in enumerate(dtypes[1:])]
    w.op(name, [x] * count + rest, [y], options, {} if options else None)
    return w.finish([x], [y])


def onnx(nodes: list[object], shape: list[int | str], kind: int = TensorProto.FLOAT, rank: int = 2) -> bytes:
    """A model from `x`, and a condition `c` where a node reads it, to `y`."""
    reads = {name for n in nodes for name in n.input}  # type: ignore[attr-defined]
    inputs = [("x", kind, shape), *([("c", TensorProto.BOOL, [])] if "c" in reads else [])]
    made = model(nodes, inputs, [("y", kind, [None] * rank)], opset=20, initializer=[
        numpy_helper.from_array(np.array([1, 0, 1, 0]), "p")] if "p" in reads else [])
    made.ir_version = 9
    return bytes(made.SerializeToString())


def branches() -> bytes:
    """An If, one of whose branches the device takes."""
    def branch(op: str) -> object:
        return helper.make_graph([helper.make_node(op, ["x"], [op])], op, [], [
            helper.make_tensor_value_info(op, TensorProto.FLOAT, [3, 3])])
    return onnx([helper.make_node("If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=branch("Atanh"))], [3, 3])


#: What breaks a rule: the file, options, the line of the screen up to its change, the change.
BROKEN: dict[str, tuple[str, Callable[[], bytes], list[str], str, str]] = {
    "an operand's type": ("tflite", lambda: Path(INT8).read_bytes(), ["--target", "28"],
                          "host CONV_2D 3 (op 0 CONV_2D, op 2 CONV_2D, ...): takes "
                          "TENSOR_QUANT8_SYMM_PER_CHANNEL as w from 29", "--target 29"),
    "an operation": ("tflite", lambda: tflite("LOG", None, ("float32",), (2, 3)), ["--target", "27"],
                     "host LOG 1 (op 0 LOG): is there from 29", "--target 29"),
    "a type": ("tflite", lambda: tflite("CONCATENATION", "ConcatenationOptions", ("int32",), (2, 3), 2), [],
               "host CONCATENATION 1 (op 0 CONCATENATION): TENSOR_INT32 is not accepted: TENSOR_FLOAT32, "
               "TENSOR_FLOAT16, TENSOR_QUANT8_ASYMM, TENSOR_QUANT8_ASYMM_SIGNED",
               "no option or level changes this: export the model so that it keeps this rule, or leave it to the host"),
    "NNAPI-EX": ("tflite", lambda: tflite("RSQRT", None, ("float32",), (2, 3)), ["--target", "27", "--no-ex"],
                 "host RSQRT 1 (op 0 RSQRT): is there from 29", "a device with NNAPI-EX"),
    "floats by codes": ("tflite", lambda: tflite("FULLY_CONNECTED", "FullyConnectedOptions", ("float32", "int8"),
                                                 (1, 3)), [],
                        "host HYBRID_FULLY_CONNECTED 1 (op 0 FULLY_CONNECTED): NNAPI's float operation gives another "
                        "answer; --hybrid float takes it", "--hybrid float"),
    "64 bits": ("onnx", lambda: onnx([helper.make_node("Mul", ["x", "x"], ["y"])], [2, 3], TensorProto.INT64), [],
                "host MUL 1 (op 0 Mul): INT32 does not hold x, -9223372036854775808 to 9223372036854775807; "
                "int64='narrow' risks it", "--int64 narrow"),
    "open sizes": ("onnx", lambda: onnx([helper.make_node("Pad", ["x", "p"], ["y"], mode="reflect")], ["n", 5]), [],
                   "host PAD_BY 1 (op 0 Pad): NNAPI has no such operation", "known sizes: --shape x=..."),
    "nothing like it": ("onnx", lambda: onnx([helper.make_node("Det", ["x"], ["y"])], [3, 3], rank=0), [],
                        "host DETERMINANT 1 (op 0 Det): NNAPI has no such operation",
                        "no option or level changes this: replace it in the model, or leave it to the host"),
    "a branch": ("onnx", branches, [], "refused IF 1 (op 0 If): holds operations that do not run on the device",
                 "it is taken where the operations are that it holds: see those")}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_taken_says_which_rule_it_breaks_and_what_to_change(name: str, tmp_path: Path,
                                                                       capsys: pytest.CaptureFixture[str]) -> None:
    suffix, make, options, rule, change = BROKEN[name]
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(make())
    assert ended(["check", str(path), *options, "--fail-on", "refused"]) == ExitCode.UNSUPPORTED
    assert f"{rule} change: {change} " in " ".join(capsys.readouterr().out.split())


#: Of those, what an option changes, as it is given.
CHANGED = {"an operand's type": ["--target", "29"], "an operation": ["--target", "29"], "NNAPI-EX": ["--target", "27"],
           "floats by codes": ["--hybrid", "float"], "64 bits": ["--int64", "narrow"],
           "open sizes": ["--shape", "x=2,5"]}


@pytest.mark.parametrize("name", CHANGED)
def test_the_change_has_the_device_take_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suffix, make, _, _, _ = BROKEN[name]
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(make())
    assert ended(["check", str(path), *CHANGED[name], "--fail-on", "refused,host"]) == ExitCode.GOOD


@pytest.mark.parametrize("level", ["6", "fl6"])
def test_an_updatable_level_has_two_spellings(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["check", FLOAT, "--target", level, "--fail-on", f"level>{level}"]) == ExitCode.GOOD
    assert "for level 6 " in capsys.readouterr().out


def test_what_takes_several_changes_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx([helper.make_node("Max", ["x", "x"], ["y"])], [2, 3], TensorProto.INT64))
    assert ended(["check", str(path), "--target", "27", "--no-ex"]) == ExitCode.GOOD
    assert "change: --int64 narrow and a device with NNAPI-EX and --target fl8" in capsys.readouterr().out
    for options, code in ((["--target", "fl8"], ExitCode.UNSUPPORTED),
                          (["--target", "27", "--int64", "narrow", "--no-ex"], ExitCode.UNSUPPORTED),
                          (["--target", "fl8", "--int64", "narrow"], ExitCode.GOOD)):
        assert ended(["check", str(path), *options, "--fail-on", "refused"]) == code
