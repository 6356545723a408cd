"""Every command and every snippet of the README and of docs/ does what its page says."""
from __future__ import annotations

from pathlib import Path

import pages
import pytest
from builds import MISSING

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_BLOCKS = [p for p in PAGES if "```" in p.read_text(encoding="utf-8")]
#: What says that a page needs compilers.
BUILDS = ("cmake", "g++ ", "cc ")


def built(path: Path) -> bool:
    """Whether something is compiled on the way."""
    return any(word in b.text for b in pages.blocks(path.read_text(encoding="utf-8")) for word in BUILDS
               if b.language == "bash")


@pytest.mark.parametrize("path", [
    pytest.param(p, id=p.stem, marks=[pytest.mark.skipif(built(p) and bool(MISSING), reason=f"{MISSING} missing")])
    for p in WITH_BLOCKS])
def test_a_page_does_what_it_says(path: Path, tmp_path: Path) -> None:
    here, cache = tmp_path / "here", tmp_path / "cache"
    here.mkdir()
    pages.reader(here, ROOT / "models", cache).follow(path.read_text(encoding="utf-8"))
