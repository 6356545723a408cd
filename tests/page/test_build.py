"""The page's facts: every operation with its verdict and its time, and texts that break out of nothing."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.page.build import embedded, plain

MODELS = Path(__file__).parents[2] / "models"
FILES = sorted(p for p in MODELS.iterdir() if p.suffix in (".tflite", ".onnx"))


def made(path: Path, tmp_path: Path, *options: str) -> dict[str, Any]:
    """The facts in the page of a file."""
    page = tmp_path / "page.html"
    assert ended([str(path), "-o", str(tmp_path / "m.nnx"), "--quiet", "--emit", f"html:{page}", *options]) == \
        ExitCode.GOOD
    text = page.read_text()
    assert "https://" not in text and "http://" not in text and "/*page." not in text
    found = re.search(r'<script id="facts" type="application/json">(.*?)</script>', text, re.S)
    assert found is not None
    return dict(json.loads(found[1]))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_operation_is_there(path: Path, tmp_path: Path) -> None:
    found = made(path, tmp_path)
    assert found["verdict"]["refused"] == 0
    assert {n["place"] for n in found["nodes"]} <= {"base", "EX", "DENSIFY", "none"}
    assert all(n["lowered"] for n in found["nodes"] if n["place"] != "none")
    assert sum(n["seconds"] or 0 for n in found["nodes"]) <= found["profile"]["seconds"] * 1.01
    assert sorted(n for own in found["graph"]["members"] for n in own) == list(range(len(found["nodes"])))
    assert all(a < b for a, b in found["graph"]["edges"]) and found["memory"]["stretches"]


def test_what_is_not_taken_says_why(tmp_path: Path) -> None:
    found = made(MODELS / "digits_cnn_int8.tflite", tmp_path, "--target", "27")
    lost = [n for n in found["nodes"] if n["place"] == "host"]
    assert lost and all(n["why"] and n["change"] for n in lost)


@pytest.mark.parametrize("value", ["</script><script>alert(1)</script>", "<!--", "\u2028", "\ud800", "]]>", "&lt;"])
def test_no_text_ends_the_element(value: str) -> None:
    text = embedded({"name": value})
    assert not set("<>&") & set(text) and text.isascii() and json.loads(text)["name"] == value


def test_numbers_that_json_has_none_for() -> None:
    assert plain({"a": [float("inf"), float("nan"), 1.5], 2: (1,)}) == {"a": [None, None, 1.5], "2": [1]}


@pytest.mark.parametrize("emit", ["pdf:x", "html", "html:", ""])
def test_what_is_not_emitted(emit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([str(FILES[0]), "-o", str(tmp_path / "m.nnx"), "--emit", emit]) == ExitCode.USAGE
    assert "html:PATH" in capsys.readouterr().err and not (tmp_path / "m.nnx").exists()
