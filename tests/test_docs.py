"""What is written from the code is fresh, and what is written by hand names what is there."""
from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from nnx_convert.cli.commands import commands
from nnx_convert.cli.compare import Difference
from nnx_convert.cli.running import Ran, as_json
from nnx_convert.emit import errors_page, limits_page, ops_page
from nnx_convert.emit.facts import Emitted, Facts, HostFacts, PortFacts
from nnx_convert.emit.levels import Reason
from nnx_convert.measuring import Timed

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ops_page, errors_page, limits_page)
LINK = re.compile(r"\]\(([^)#:]+)\)")
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("module", PAGES, ids=lambda m: m.PAGE.name)
def test_a_written_page_is_fresh(module: object) -> None:
    assert (ROOT / module.PAGE).read_text(encoding="utf-8") == module.page()


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert not [link for link in LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / link).exists()]


@pytest.mark.parametrize("index", ["docs/README.md", "docs/decisions/INDEX.md"])
def test_an_index_leads_to_every_page(index: str) -> None:
    path = ROOT / index
    led = LINK.findall(path.read_text(encoding="utf-8"))
    assert {p.name for p in path.parent.glob("*.md")} - {path.name} <= set(led)


def test_what_pip_installs_is_an_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = "".join(path.read_text(encoding="utf-8") for path in TEXTS)
    told = set(re.findall(r"(?:nnx-convert|'\.)\[(\w+)\]", texts))
    assert told and told <= set(extras)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_command_in_a_sentence_has_the_options_it_is_given(path: Path) -> None:
    for line in re.findall(r"`nnx-convert ([^`]+)`", path.read_text(encoding="utf-8")):
        first, *_ = words = line.split()
        command = commands.commands.get(first) or commands.commands["convert"]
        known = {option for p in command.params for option in p.opts} | {"--help", "--version"}
        assert {w.partition("=")[0].rstrip(",") for w in words if w.startswith("-")} <= known, line


RAN = as_json(Ran("m", 0.1, (), {}, None, (), None, None))


@pytest.mark.parametrize("names", [
    *([f.name for f in fields(kind)] for kind in (Facts, Emitted, HostFacts, PortFacts, Reason, Difference, Timed)),
    list(RAN)])
def test_the_report_page_names_every_key(names: list[str]) -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    assert not [n for n in names if f"`{n}`" not in page]


def test_an_id_belongs_to_one_error() -> None:
    ids = [e.id for e in errors_page.errors()]
    assert len(ids) == len(set(ids))
