"""Names that mean something to what shows them: to a terminal, JSON, XML, a page, C, CMake, LLVM, a trace, an archive.

Each name holds MARK, which is looked for wherever a name would be more than a text.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import llvmlite.binding
import pytest
from onnx import TensorProto, helper
from tflite_writer import TFLiteWriter

from nnx_convert.archived import read_archive
from nnx_convert.cli import entry

MARK = "EVIL"
NAMES = {
    "terminal": "\x1b[31mEVIL\x1b]0;title\x07\x9b31m\x7f", "lines": "EVIL\nB\r\nC\x85\u2028\tD",
    "right to left": "\u202eEVIL\u2066", "nothing": "EVIL\0EVIL", "comment": "*/ EVIL /* // \\",
    "page": "</script><img src=x onerror=EVIL()>&lt;<!--", "quotes": "\"'`EVIL$(EVIL)${EVIL}\\",
    "formats": "%s%nEVIL%d{0}{x!r}{{EVIL}}@name@", "lines of C": "a\\\n#include <EVIL>\n??/",
    "cmake": "\")\nEVIL(\"[[EVIL]]", "path": "../../../EVIL", "markup": "[bold]EVIL[/] [link=EVIL]",
    "llvm": "\")\n@EVIL = global i8 0\n; \\22", "sized": "n" * 70_000 + MARK}
#: What no output may hold, whoever looks at it: what a terminal obeys, but the ends of lines.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
#: Texts and comments of C and of CMake.
TEXTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|#[^\n]*(?=\n)', re.DOTALL)


def tflite(name: str) -> bytes:
    """Three operators on tensors of such a name, in a file that says so of itself, too."""
    w = TFLiteWriter(name)
    x, y, z, out = (w.tensor(name + n, "float32", (2,)) for n in ("x", "y", "z", ""))
    for op, a, b in (("EXP", x, y), ("RELU", y, z), ("TANH", z, out)):
        w.op(op, [a], [b])
    return w.finish([x], [out])


def onnx(name: str) -> bytes:
    """The same; nodes, the graph and who made it are called so as well."""
    ports = [helper.make_tensor_value_info(name + n, TensorProto.FLOAT, [2]) for n in ("x", "")]
    nodes = [helper.make_node(op, [name + a], [name + b], name) for op, a, b in (
        ("Exp", "x", "y"), ("Relu", "y", "z"), ("Tanh", "z", ""))]
    model = helper.make_model(helper.make_graph(nodes, name, ports[:1], ports[1:]), producer_name=name, doc_string=name,
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


MAKERS = {"tflite": tflite, "onnx": onnx}


#: Behind the readers there is one way for both formats.
BOTH = ("terminal", "nothing", "page", "sized")


@pytest.fixture(params=[(kind, n) for kind in MAKERS for n in NAMES if kind == "tflite" or n in BOTH],
                ids=lambda p: f"{p[0]}-{p[1]}")
def hostile(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A name, and the file of a model that has it everywhere; the folder is the current one."""
    kind, name = request.param
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").write_bytes(MAKERS[kind](NAMES[name]))
    return NAMES[name], tmp_path / "m"


def said(capsys: pytest.CaptureFixture[str], *args: object, code: int = 0) -> str:
    """What the command prints, which is harmless in a terminal."""
    capsys.readouterr()
    ended, (out, err) = entry.ended([str(a) for a in args]), capsys.readouterr()
    assert ended == code, err
    assert not OBEYED.search(out + err)
    return out


def test_what_is_printed(hostile: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = hostile
    for args in (["check", path, "--trace-passes"], ["diff", path, path], [path, "-o", "o.nnx"]):
        said(capsys, *args)
    for args in (["inspect", path, "--tensors", "--memory"], ["run", path, "--verbose", "--random", 1]):
        assert MARK in said(capsys, *args)
    for command in ("inspect", "check", "run"):
        found = json.loads(said(capsys, command, path, "--json", *(["--random", 1] if command == "run" else [])))
        assert any(name in t for t in texts(found)) or command == "check"


def texts(value: Any) -> Iterator[str]:
    """The texts of a JSON value."""
    if isinstance(value, str):
        yield value
    for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(v)


def test_faults(hostile: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = hostile
    for args in (["run", path], ["run", path, "--random", 1, "--tap", MARK], ["check", path, "--signature", name]):
        capsys.readouterr()
        assert entry.ended([str(a) for a in args]) in (2, 5)
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and not OBEYED.search(err) and len(err) < 4100


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it, and all that it says."""
        self.found.append(f"{tag} {attrs}")


def escaped() -> list[Path]:
    """What is so named beside the current folder, or beside those above it that a name of NAMES leads to."""
    return [p for folder in Path.cwd().parents[:3] for p in folder.glob(f"{MARK}*")]


def test_files_that_are_written(hostile: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = hostile
    said(capsys, path, "-o", "o.nnx", "--emit", "html:o.html", "--emit", "json:o.json")
    said(capsys, "run", path, "--random", 1, "--output", "out.npz", "--profile", "p.txt")
    said(capsys, "run", "o.nnx", "--random", 1, "--expect", "out.npz", "--profile", "p.json")
    said(capsys, "run", "o.json", "--random", 1, "--expect", "out.npz", "--profile", "p.trace.json")
    said(capsys, "verify", "o.nnx", "--against", path, "--junit", "v.xml")
    whole = {p.name: p.read_text("utf-8") for p in Path().iterdir() if p.suffix in (".html", ".json", ".txt", ".xml")}
    assert len(whole) == 6 and not any(OBEYED.search(text) for text in whole.values())
    page = Tags()
    page.feed(whole["o.html"])
    assert not [tag for tag in page.found if MARK in tag] and "img" not in {t.split()[0] for t in page.found}
    assert any(name in t for t in texts(json.loads(whole["o.json"])))
    json.loads(whole["p.json"]), json.loads(whole["p.trace.json"])
    assert MARK in "".join(ElementTree.fromstring(whole["v.xml"]).itertext()) + whole["v.xml"]
    member, = read_archive("out.npz")
    assert member == name if len(name) < 1000 and "\0" not in name else member == "out0"
    assert {p.name for p in Path().iterdir()} == {"m", "o.nnx", "out.npz", *whole} and not escaped()


def test_code_that_is_written(hostile: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, path = hostile
    said(capsys, path, "-o", "o.nnx", "--emit", "ndk:ndk", "--emit", "object:object")
    sources = [p for folder in ("ndk", "object") for p in Path(folder).rglob("*") if p.is_file()
               and p.suffix in (".cpp", ".hpp", ".h", ".c", ".cc", ".txt", ".md", ".mk", ".sh", "")]
    assert len(sources) > 6
    for source in sources:
        text = source.read_text("utf-8")
        assert not OBEYED.search(text.replace("\t", "")), source
        assert MARK not in TEXTS.sub("", text) or source.suffix == ".md", source
    assert not [p for p in Path().rglob("*") if MARK in p.name] and not escaped()
    for code in Path("object").rglob("*.o"):
        assert MARK.encode() not in code.read_bytes()


def test_code_that_is_run(hostile: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    parse = llvmlite.binding.parse_assembly

    def parsed(text: str, *rest: Any) -> Any:
        seen.append(text)
        return parse(text, *rest)
    monkeypatch.setattr("llvmlite.binding.parse_assembly", parsed)
    monkeypatch.setenv("NNX_CACHE", "")
    assert entry.ended(["run", str(hostile[1]), "--random", "1", "--backend", "native"]) == 0
    assert seen and not any(MARK in text for text in seen)
