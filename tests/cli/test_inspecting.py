"""`nnx-convert inspect`: in short, or the tables asked for; at most 100 columns."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnx_convert.cli.entry import ended
from nnx_convert.cli.inspecting import SECTIONS
from nnx_convert.errors import ExitCode

MODELS = Path(__file__).parents[2] / "models"
FILES = sorted(str(p) for p in MODELS.iterdir() if p.suffix in (".tflite", ".onnx"))
#: What a section of a model must show.
SHOWN = {"ops": "op 0 CONV_2D", "tensors": "conv1/bias", "sparsity": "dense1/sparse", "quant": "none",
         "memory": "op 1 MAX_POOL_2D"}


def said(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert ended(["inspect", *args]) == ExitCode.GOOD
    out, err = capsys.readouterr()
    assert not err
    return out


@pytest.mark.parametrize("file", FILES, ids=lambda f: Path(f).name)
@pytest.mark.parametrize("section", ["", *SECTIONS])
def test_tables_fit_the_screen(file: str, section: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said([file, *([f"--{section}"] if section else [])], capsys).splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_shows_its_facts(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert SHOWN[section] in said([str(MODELS / "digits_sparse.tflite"), f"--{section}"], capsys)


def test_sections_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(MODELS / "digits_sparse.tflite")
    both = said([file, "--ops", "--sparsity"], capsys)
    assert both == said([file, "--ops"], capsys) + "\n" + said([file, "--sparsity"], capsys)


@pytest.mark.parametrize("file", FILES, ids=lambda f: Path(f).name)
def test_the_object_has_what_is_asked_for(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(said([file, "--json"], capsys))
    assert whole["operations"] and whole["tensors"] and whole["memory"]["arena"] > 0
    part = json.loads(said([file, "--ops", "--json"], capsys))
    assert part["operations"] == whole["operations"] and part["tensors"] is part["memory"] is None


def test_verbose_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(MODELS / "digits_cnn_int8.tflite")
    assert ended(["inspect", file, "--tensors", "--verbose"]) == ExitCode.GOOD
    assert "..." not in capsys.readouterr().out
