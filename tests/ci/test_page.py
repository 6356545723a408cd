"""docs/ci.md: its pipelines run the command, its table has every key; what else it has is run with the other pages."""
from __future__ import annotations

import re
from pathlib import Path

import yaml
from pages import blocks, steps

from nnx_convert.ci import settings

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")


def test_each_pipeline_runs_the_command() -> None:
    pipelines = [list(steps(yaml.safe_load(b.text))) for b in blocks(PAGE) if b.language == "yaml"]
    assert len(pipelines) == 2
    assert all(any(line.startswith("nnx-convert ci ") for line in lines) for lines in pipelines)


def test_its_table_has_every_key() -> None:
    told = set(re.findall(r"`([\w.]+)`", PAGE.partition("## What an entry says")[2].partition("\n## ")[0]))
    keys = {*settings.ENTRY, *settings.VERIFY, *settings.SIZES, *settings.LATENCY, *settings.TARGET, "baseline"}
    assert keys <= told
