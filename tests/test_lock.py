"""What CI installs is all that the package asks for, by version and by hash, and is what docs/security.md says."""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
LINE = re.compile(r"(?P<pin>\S+==\S+)(?: ; (?P<marker>[^\\]+?))?(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)")
#: Systems and versions of Python that the file is for.
PLACES = [{"sys_platform": system, "python_version": f"3.{n}", "python_full_version": f"3.{n}.1"}
          for system in ("linux", "darwin", "win32") for n in (11, 12, 13, 14)]


def pins(path: Path) -> Iterator[Requirement]:
    """The lines of a lock, comments apart; every one of them has its hashes."""
    text = re.sub(r"^ *#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    for m in LINE.finditer(text):
        yield Requirement(m["pin"] + (f" ; {m['marker']}" if m["marker"] else ""))
    assert not LINE.sub("", text).strip()


def asked(extra: str) -> Iterator[Requirement]:
    """What the package asks for with an extra, the extras of its own that this names among it."""
    known = PROJECT["project"]["optional-dependencies"]
    for text in known[extra]:
        one = Requirement(text)
        if one.name == "nnx-convert":
            for other in one.extras:
                yield from asked(other)
        else:
            yield one


def wanted() -> list[Requirement]:
    """What CI needs: to run, to test and to build."""
    own = [Requirement(t) for t in (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"])]
    return [*own, *asked("test")]


@pytest.mark.parametrize("path", LOCKS, ids=lambda p: p.name)
def test_every_line_has_one_version_and_hashes(path: Path) -> None:
    found = [*pins(path)]
    assert found and all(len(r.specifier) == 1 for r in found)


@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p['sys_platform']} {p['python_version']}")
def test_ci_installs_all_that_is_asked_for(place: dict[str, str]) -> None:
    where = {**default_environment(), **place}
    there = {canonicalize_name(r.name): Version(str(r.specifier)[2:]) for r in pins(ROOT / "requirements" / "ci.txt")
             if r.marker is None or r.marker.evaluate(where)}
    lost = [str(r) for r in wanted() if (r.marker is None or r.marker.evaluate(where))
            and not r.specifier.contains(there.get(canonicalize_name(r.name), Version("0")), prereleases=True)]
    assert not lost


def test_the_page_has_the_commands_that_made_the_locks() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    for path in LOCKS:
        command = path.read_text(encoding="utf-8").splitlines()[1].lstrip("# ")
        assert command.startswith("uv pip compile ") and command in page


def test_ci_downloads_nothing_else() -> None:
    scripts = "".join((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "fuzz"))
    installs = [line for line in scripts.splitlines() if "pip install" in line]
    assert installs and all("--require-hashes" in line or "--no-deps --no-build-isolation ." in line
                            for line in installs)
