"""Devices of one's own: what a TOML file can say, what it cannot, and what `check` and lowering make of it."""
from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import nnx_convert as nnx
from nnx_convert import ops
from nnx_convert.cli.entry import ended
from nnx_convert.emit.verdicts import verdicts
from nnx_convert.errors import ExitCode, UsageError
from nnx_convert.schema import OpDef
from nnx_convert.target import Target
from nnx_convert.types import F32, I32, UNKNOWN, Scalar, Tensor, Type

ROOT = Path(__file__).parent.parent
INT8, FLOAT = (str(ROOT / "models" / f"digits_cnn{kind}.tflite") for kind in ("_int8", ""))
PAGE = (ROOT / "docs" / "targets.md").read_text()


def target(tmp_path: Path, text: str) -> Target:
    """What a file of this text describes."""
    path = tmp_path / "npu.toml"
    path.write_text(text)
    return Target.from_toml(path)


def test_the_page_has_a_file_that_is_one(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.S)
    assert example is not None
    found = target(tmp_path, example[1])
    assert (found.level, found.ex, str(found)) == (30, False, "my NPU (level 30)") and found.limits is not None
    assert len(found.limits.rules) == 3 and found.whole == Target(30, False, False)


def image(*shape: int, constant: bool = False) -> Tensor:
    return Tensor(F32, shape, data=np.zeros(shape, np.float32) if constant else None)


X, W, B = image(1, 8, 8, 16), image(4, 3, 3, 16, constant=True), image(4, constant=True)
CONV = [X, W, B, *(Scalar(Type.INT32, n) for n in (1, 2, 2, 1))]           # scheme, sw, sh, act
OPEN = [image(UNKNOWN, 8, 8, 16), *CONV[1:]]
ADD = [image(2, 3), image(2, 3), Scalar(Type.INT32, 0)]
SOFTMAX = [image(2, 3), Scalar(Type.FLOAT32, 1.0)]
#: A rule, an operation, its operands, whether it keeps the rule.
KEPT: list[tuple[str, OpDef, list[Tensor | Scalar], bool]] = [
    ('operand="w"\nshape=["*","..7","..7","*16"]', ops.conv.CONV_2D, CONV, True),
    ('operand="w"\nshape=["*","..2","..7","*"]', ops.conv.CONV_2D, CONV, False),
    ('operand="w"\nshape=["*",[1,3],[1,3],"*3"]', ops.conv.CONV_2D, CONV, False),
    ('operand="w"\nshape=["*",3,3]', ops.conv.CONV_2D, CONV, False),
    ('operand="w"\nconstant=true', ops.conv.CONV_2D, CONV, True),
    ('operand="x"\nconstant=true', ops.conv.CONV_2D, CONV, False),
    ('operand="out"\nshape=["*","4","4..","2..4"]', ops.conv.CONV_2D, CONV, True),
    ('operand="out"\nshape=["*","5..","*","*"]', ops.conv.CONV_2D, CONV, False),
    ('operand="sw"\nvalues=[1,2]', ops.conv.CONV_2D, CONV, True),
    ('operand="act"\nvalues=0', ops.conv.CONV_2D, CONV, False),
    ('operand="dw"\nvalues=1', ops.conv.CONV_2D, CONV, True),                       # by default
    ('operand="dw"\nvalues=2', ops.conv.CONV_2D, CONV, False),
    ('operand="pl"\nvalues=0', ops.conv.CONV_2D, CONV, True),                       # follows from SAME
    ('operand="pr"\nvalues=0', ops.conv.CONV_2D, CONV, False),
    ('operand="w"\nvalues=[1]', ops.conv.CONV_2D, CONV, True),                      # no number
    ('operand="act"\nvalues=0', ops.elementwise.ADD, ADD, True),
    ('operand="beta"\nvalues="2.."', ops.norm.SOFTMAX, SOFTMAX, False),
    ('operand="beta"\nvalues="..1"', ops.norm.SOFTMAX, SOFTMAX, True),
    ('operand="w"\nranks=1', ops.elementwise.ADD, ADD, True),                       # has none
    ('ranks="..4"', ops.conv.CONV_2D, CONV, True), ('ranks=[2,4]', ops.conv.CONV_2D, CONV, False),
    ('types=["TENSOR_FLOAT32"]', ops.conv.CONV_2D, CONV, True),
    ('types=["TENSOR_FLOAT16"]', ops.conv.CONV_2D, CONV, False),
    ('operations=["ADD"]\nranks=1', ops.conv.CONV_2D, CONV, True),
    ('operations=["ADD"]\nranks=1', ops.elementwise.ADD, ADD, False),
    ('known=true', ops.conv.CONV_2D, CONV, True), ('known=true', ops.conv.CONV_2D, OPEN, False),
    ('operand="x"\nshape=[1,8,8,16]', ops.conv.CONV_2D, OPEN, True),
    ('ranks=1', ops.elementwise.ABS, [Tensor(F32, None)], True),
    ('known=true', ops.elementwise.ABS, [Tensor(F32, None)], False),
    ('ranks=1\ntypes=["TENSOR_INT32"]', ops.elementwise.ABS, [Tensor(I32, (2,))], True)]


@pytest.mark.parametrize(("rule", "op", "inputs", "keeps"), KEPT, ids=lambda v: str(getattr(v, "name", v))[:30])
def test_what_keeps_a_rule(rule: str, op: OpDef, inputs: list[Tensor | Scalar], keeps: bool, tmp_path: Path) -> None:
    found = target(tmp_path, f'[[rule]]\ntext = "these are the words"\n{rule}')
    assert found.fault(op, op.check(inputs, [])) == ("" if keeps else f"{op.name}: these are the words")
    assert not found.whole.fault(op, op.check(inputs, []))


@pytest.mark.parametrize(("text", "has"), [("operations=['ADD']", True), ("operations=['MUL']", False),
                                           ("without=['ADD']", False), ("level=27\nname='that chip'", True)])
def test_the_operations_of_a_device(text: str, has: bool, tmp_path: Path) -> None:
    fault = target(tmp_path, text).fault(ops.elementwise.ADD, ops.elementwise.ADD.check(ADD, []))
    assert fault == ("" if has else "ADD is not among the operations of npu")


#: A file, words of the fault.
WRONG = [
    ("x = 1", "no key 'x'"), ("level = 12", "no feature level 12"), ("level = true", "no feature level True"),
    ("level = 'fl9'", "no feature level"), ("ex = 1", "ex is true or false"), ("name = ''", "name is a text"),
    ("qdq = 'x'", "'codes' or 'floats'"), ("sparse = []", "'keep' or 'fold'"), ("operations = 3", "a list of names"),
    ("operations = ['CONV2D']", "did you mean CONV_2D"), ("operations = ['SQUARE']", "no operation 'SQUARE'"),
    ("rule = 3", "[[rule]]"), ("[[rule]]\ntext='t'", "rule 1: it asks nothing"),
    ("[[rule]]\nranks=1", "text is a text"), ("[[rule]]\ntext='t'\nrank=1", "did you mean ranks"),
    ("[[rule]]\ntext='t'\nranks=1.5", "1.5 is neither"), ("[[rule]]\ntext='t'\nranks='a'", "'a' is neither"),
    ("[[rule]]\ntext='t'\nranks='..'", "'..' is neither"), ("[[rule]]\ntext='t'\nranks='*0'", "'*0' is neither"),
    ("[[rule]]\ntext='t'\nranks=true", "True is neither"), ("[[rule]]\ntext='t'\nshape=4", "a size for each axis"),
    ("[[rule]]\ntext='t'\nvalues=4", "those of an operand"), ("[[rule]]\ntext='t'\nknown=1", "true or false"),
    ("[[rule]]\ntext='t'\ntypes=['float32']", "did you mean FLOAT32"),
    ("[[rule]]\ntext='t'\nranks=1\noperations=['ADD']\noperand='w'", "ADD has no operand 'w'"),
    ("[[rule]]\ntext='t'\nranks=1\noperand='nothing'", "no operation has an operand"),
    ("=", "is no TOML"), ("a = " + "[" * 3000, "is no TOML"), ("\udcff", "is no TOML")]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=lambda v: v[:40])
def test_a_file_that_makes_no_sense(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "npu.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=re.escape(words)) as error:
        Target.from_toml(path)
    assert "npu.toml" in error.value.where


DEVICE = """
name = "my NPU"
level = 30
ex = false
[[rule]]
text = "filters are at most 2 by 2"
operations = ["CONV_2D"]
operand = "w"
shape = ["*", "..2", "..2", "*"]
[[rule]]
text = "an activation is an operation"
operand = "act"
values = 0
"""


def test_check_says_it_in_the_words_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "npu.toml").write_text(DEVICE)
    asked = ["check", INT8, "--target", str(tmp_path / "npu.toml"), "--fail-on", "host"]
    assert ended(asked) == ExitCode.UNSUPPORTED
    screen = " ".join(capsys.readouterr().out.split())
    assert "for my NPU (level 30 + DENSIFY)" in screen and "RELU 2" in screen
    assert "CONV_2D 2 (op 0 CONV_2D, op 4 CONV_2D): filters are at most 2 by 2 change: no option or level" in screen
    assert ended([*asked, "--all-targets", "--no-experimental", "--json"]) == ExitCode.UNSUPPORTED
    found = json.loads(capsys.readouterr().out)["targets"]
    own, *levels = found
    assert own["target"]["limits"]["name"] == "my NPU" and own["host"] == 2 and not own["target"]["experimental"]
    assert [t["target"]["level"] for t in levels] == ["27", "28", "29", "30", "31", "6", "7", "8"]
    assert not any(t["target"]["limits"] or t["host"] for t in levels[3:])


@pytest.mark.parametrize(("options", "qdq", "ex"), [
    ([], "floats", True), (["--qdq", "codes"], "codes", True), (["--no-ex"], "floats", False)])
def test_an_option_counts_more_than_the_file(options: list[str], qdq: str, ex: bool, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "npu.toml").write_text('qdq = "floats"\nlevel = "fl6"')
    assert ended(["check", FLOAT, "--target", str(tmp_path / "npu.toml"), *options, "--json"]) == ExitCode.GOOD
    found = json.loads(capsys.readouterr().out)["targets"][0]["target"]
    assert (found["qdq"], found["ex"], found["level"]) == (qdq, ex, "6")


@pytest.mark.parametrize(("args", "code", "words"), [
    ([FLOAT, "--strict"], ExitCode.UNSUPPORTED, "my NPU (level 30 + DENSIFY) does not take it: CONV_2D: filters are"),
    (["check", FLOAT, "--target", "none.toml"], ExitCode.USAGE, "none.toml: cannot be read"),
    (["check", FLOAT, "--target", "32"], ExitCode.USAGE, "neither a level")])
def test_how_it_ends(args: list[str], code: ExitCode, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "npu.toml").write_text(DEVICE)
    assert ended([*args, *(["--target", "npu.toml"] if "--target" not in args else [])]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["operations = []", "without = ['CONV_2D', 'RESHAPE']", "[[rule]]\ntext='t'\nranks=2",
                                  "[[rule]]\ntext='t'\noperand='act'\nvalues=0", DEVICE])
@pytest.mark.parametrize("model", [INT8, FLOAT])
def test_what_runs_is_the_same(model: str, text: str, tmp_path: Path) -> None:
    own = target(tmp_path, text)
    found, plain = nnx.convert(model, own), nnx.convert(model, own.whole)
    assert [v.taken for v in verdicts(found, own)] == [v.kind != "host" for v in verdicts(found, own)]
    shape = found.rim.inputs[0].shape or ()
    x = np.random.default_rng(0).integers(0, 100, [n or 1 for n in shape]).astype(found.rim.inputs[0].dtype)
    got, = nnx.compile(found, backend="numpy").run([x])
    want, = nnx.compile(plain, backend="numpy").run([x])
    assert np.array_equal(got, want)
