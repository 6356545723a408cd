"""`nnx-convert ops`: every row is said, whole and within the screen; a name that is none finds its neighbours."""
from __future__ import annotations

import pytest

from nnx_convert.cli import main
from nnx_convert.cli.listing import found, listed, row, twin
from nnx_convert.emit import ops_page
from nnx_convert.errors import ExitCode, UsageError
from nnx_convert.schema import OPS, OpDef


@pytest.mark.parametrize("o", OPS.values(), ids=lambda o: o.name)
def test_a_row_says_all_of_it(o: OpDef) -> None:
    lines = list(row(o))
    text = " ".join(body for _, body in lines)
    assert lines[0][0].startswith(o.name) and o.doc in text
    assert all(r.text in text for r in o.rules)
    assert [label for label, _ in lines].count("or") == len(o.forms) - 1
    for f in o.forms:
        assert all(f"{n:>2}  {p.name}" in text for n, p in enumerate(f.inputs))
    assert all(p.name in text for p in o.returns)
    assert not [body for _, body in lines if len(body) > 100]


def test_the_list_has_every_operation_once() -> None:
    names = [label.split()[-1] for label, body in listed() if body]
    assert sorted(names) == sorted(OPS)
    assert [label for label, body in listed() if label and not body] == [s[0] for s in ops_page.SECTIONS]


TWINS = {"GATHER": "GATHER_EX", "PRELU_EX": "PRELU", "TRANSPOSE_CONV_EX": "TRANSPOSE_CONV_2D",
         "TRANSPOSE_CONV_2D": "TRANSPOSE_CONV_EX", "CONV_2D": None, "ONE_HOT_EX": None, "NON_ZERO": None}


@pytest.mark.parametrize("name", TWINS)
def test_twins(name: str) -> None:
    other = twin(OPS[name])
    assert (other and other.name) == TWINS[name]
    assert other is None or twin(other) is OPS[name]


#: What a row says of its operation's kind, levels and relatives: the words of one line of it.
SAID = {"RELU": "QUANT8_ASYMM_SIGNED@30", "GATHER_EX": "GATHER (from level 29): a contract of its own",
        "PRELU": "PRELU_EX (NNAPI-EX): the same meaning", "CONV_2D": "11  dw i32 = 1 @29",
        "LSTM": "23  norm_i? T @29", "PACK_EX": "0  xs... T", "NON_ZERO": "any",
        "DENSIFY": "FLOAT16, FLOAT32, QUANT8_SYMM", "ADD": "org.nnx_convert.host 0"}


@pytest.mark.parametrize("name", SAID)
def test_a_line_of_a_row(name: str) -> None:
    assert any(SAID[name] in body for _, body in row(OPS[name]))


#: Names that are none, and what they may have meant.
NEAR = {"conv2d": "CONV_2D", "RELU7": "RELU", "maxpool": "MAX_POOL_2D", "gather_e": "GATHER", "softmax_": "SOFTMAX"}


@pytest.mark.parametrize("name", NEAR)
def test_a_name_that_is_none_finds_its_neighbours(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        found(name)
    assert NEAR[name] in caught.value.hint


@pytest.mark.parametrize("name", ["", "qqqqqq", "\n"])
def test_a_name_far_from_all(name: str) -> None:
    with pytest.raises(UsageError, match="there is no operation"):
        found(name)


def test_names_in_any_case() -> None:
    assert found("conv_2d") is OPS["CONV_2D"]


@pytest.mark.parametrize(("args", "code", "words"), [
    (["ops", "add"], ExitCode.GOOD, "ADD  0  from level 27"), (["ops"], ExitCode.GOOD, "50000  CAST_EX"),
    (["ops", "nope"], ExitCode.USAGE, ""), (["ops", "ADD", "SUB"], ExitCode.USAGE, "")])
def test_the_command(args: list[str], code: ExitCode, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == code
    out, err = capsys.readouterr()
    assert words in out and (bool(err) == (code is not ExitCode.GOOD))
    assert err.count("\n") <= 1
