"""A model as JSON: what goes in comes out, the schema is the code's, and nothing else is taken for a model."""
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sample_models import SAMPLES, dense, per_channel

import nnx_convert as nnx
from nnx_convert.artifact import json_schema, to_bytes
from nnx_convert.artifact.as_json import KEYS, weights_of
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ArtifactError, ExitCode
from nnx_convert.types import Entry, Source

ROOT = Path(__file__).parent.parent
MODEL = str(ROOT / "models" / "digits_cnn_int8.tflite")
VALID = Draft202012Validator(json_schema.schema())


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert (ROOT / json_schema.PAGE).read_text() == json_schema.page()
    Draft202012Validator.check_schema(json_schema.schema())
    assert {k: {*v} for k, v in json_schema.FIELDS.items()} == {k: {*a, *b} for k, (a, b) in KEYS.items()}
    assert [{*json_schema.RECORDS[k]} for k in ("signature", "source")] == [
        {f.name for f in fields(c)} for c in (Entry, Source)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model, path = SAMPLES[name](), tmp_path / "m.json"
    model.to_json(path)
    VALID.validate(json.loads(path.read_text()))
    assert to_bytes(nnx.from_json(path)) == to_bytes(model)
    assert weights_of(path).exists() == (json.loads(path.read_text())["weights"] is not None)


def test_the_command_writes_it_and_reads_it_like_a_nnx_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended([MODEL, "-o", "m.nnx", "--emit", "json:m.json", "--quiet"]) == ExitCode.GOOD
    whole = json.loads(Path("m.json").read_text())
    VALID.validate(whole)
    main = whole["models"][-1]
    assert main["operations"][0]["name"] == "CONV_2D" and main["operations"][0]["origin"] == "op 0 CONV_2D"
    assert ended(["m.json", "-o", "back.nnx", "--quiet"]) == ExitCode.GOOD
    assert Path("back.nnx").read_bytes() == Path("m.nnx").read_bytes()
    capsys.readouterr()
    for command in (["check", "m.json"], ["inspect", "m.json"], ["run", "m.json", "--random", "1"],
                    ["verify", "m.json", "--against", MODEL], ["diff", "m.json", "m.nnx", "--fail-on", "ops,dtype"]):
        assert ended([*command, "--json"]) == ExitCode.GOOD, command
        json.loads(capsys.readouterr().out)
    assert ended(["m.json", "--emit", "json:m.json"]) == ExitCode.USAGE
    assert "is the model itself" in capsys.readouterr().err


def put(*path: Any) -> Callable[[Any], None]:
    """Replace the part at a path by the last item."""
    *way, key, value = path

    def change(whole: Any) -> None:
        for step in way:
            whole = whole[step]
        whole[key] = value
    return change


OPERAND, OPERATION = ("models", 0, "operands"), ("models", 0, "operations", 0)
#: What is changed, words of the fault, whether the schema takes it.
LIES: list[tuple[Callable[[Any], None], str, bool]] = [
    (put("format", "x"), "is no model", False), (put("version", 2), "of version 2", False),
    (put("more", 1), "is no key 'more'", False), (lambda m: m.pop("weights"), "must be a key 'weights'", False),
    (put("weights", "file", "../m.bin"), "no name of a file", True), (put("weights", "file", "none"), "be read", True),
    (put("weights", "crc32", 1), "other constants", True), (put("weights", 3), "for an object", False),
    (put("models", []), "no model", False), (put("models", 3), "for a list", False),
    (put(*OPERAND, 0, "type", "FLOAT"), "no operand type", False), (put(*OPERAND, 0, "dims", [-1]), "-1", False),
    (put(*OPERAND, 0, "lifetime", "temporary"), "is of lifetime 'input'", True),
    (put(*OPERAND, 0, "quant", {"scale": 0.1}), "must be a key 'zero'", False),
    (put(*OPERAND, 1, "quant", "scales", ["a"]), "for scales", False),
    (put(*OPERAND, 1, "data", {"offset": 0, "bytes": 6, "x": 1}), "no key 'x'", False),
    (put(*OPERAND, 4, "value", [1.5]), "for numbers of int32", True),
    (put(*OPERAND, 4, "value", [1 << 40]), "for numbers of int32", True),
    (put(*OPERAND, 4, "value", [1, 2]), "8 bytes", True), (put(*OPERAND, 4, "value", True), "for a list", False),
    (put(*OPERATION, "name", "ADD"), "'ADD' has the code 3, which is CONV_2D", True),
    (put(*OPERATION, "code", "3"), "which is none", False), (put(*OPERATION, "inputs", [99]), "99", True),
    (put("models", 0, "ports", "inputs", 0, "dtype", "nothing"), "of type 'nothing'", True),
    (put("models", 0, "source", {}), "lacks 'format'", False), (put("models", 0, "inputs", 0), "for a list", False)]


#: Lies about the file of bytes, of a model that has one.
OF_WEIGHTS = ("no name of a file", "be read", "other constants")


@pytest.mark.parametrize(("change", "words", "valid"), LIES, ids=[w for _, w, _ in LIES])
def test_a_file_that_lies_is_refused(change: Callable[[Any], None], words: str, valid: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    (dense if words in OF_WEIGHTS else per_channel)().to_json(path)
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))
    with pytest.raises(ArtifactError) as error:
        nnx.from_json(path)
    assert words in str(error.value) and "m.json" in str(error.value)
    assert VALID.is_valid(whole) == valid


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"[]", b"\xff", b"{" * 5000, b'{"format": "nnx-model"}'])
def test_what_is_no_model(text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.json").write_bytes(text)
    with pytest.raises(ArtifactError, match=r"m\.json"):
        nnx.from_json(tmp_path / "m.json")
    assert ended(["check", str(tmp_path / "m.json")]) == ExitCode.UNREADABLE
    assert capsys.readouterr().err.startswith("NNX10")
