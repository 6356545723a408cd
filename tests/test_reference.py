"""docs/api.py builds a site that has every public name, with what its docstring says."""
from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import nnx_convert

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the documented command writes; whatever the generator could not make out is a fault."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-W", "error", "docs/api.py", folder], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.skipif(find_spec("pdoc") is None, reason="pdoc (extra docs) missing")
def test_every_public_name_is_in_the_site(site: Path) -> None:
    package = (site / "nnx_convert.html").read_text(encoding="utf-8")
    assert not [n for n in nnx_convert.__all__ if not n.startswith("__") and f'id="{n}"' not in package]
    assert 'id="Target.level"' in package and 'id="OperationCode.CONV_2D"' in package
    assert not re.search(r'(?:src="|<link[^>]*href="|url\("?)https?:', package), "loaded from a network"
    assert "nnx_convert.html" in (site / "index.html").read_text(encoding="utf-8")
    assert "register_custom_op" in (site / "search.js").read_text(encoding="utf-8")
    pages = [p for p in site.rglob("*.html") if p.parent != site]
    assert len(pages) > 30
    for page in pages:
        module = import_module(".".join(page.relative_to(site).with_suffix("").parts))
        text = page.read_text(encoding="utf-8")
        own = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
        assert not [n for n in own if not n.startswith("_") and f'id="{n}"' not in text], module.__name__


@pytest.mark.parametrize("name", [n for n in nnx_convert.__all__ if not n.startswith("__")])
def test_a_public_name_says_what_it_is(name: str) -> None:
    found = getattr(nnx_convert, name)
    assert len(found.__doc__ or "") > 20
    members = vars(found).items() if inspect.isclass(found) else ()
    functions = [(n, f) for n, f in members if inspect.isfunction(f) and not n.startswith("_")]
    assert not [n for n, f in functions if not f.__doc__]
