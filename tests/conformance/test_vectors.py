"""The golden vectors: as many pass as are pinned, straight and through a file; whole families where they must."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from pins import counted, pinned, total
from vectors import Route, failures
from nnx_convert import Model, load

FAMILIES = counted()
#: NNAPI-EX and DENSIFY are promises kept to the letter: every case passes.
WHOLE = re.compile(r"SEED_.*|.*_EX|DENSIFY")


def shown(found: dict[str, str]) -> str:
    """The first cases that fail, with the reasons."""
    return "\n".join(f"{name}: {why}" for name, why in list(found.items())[:8])


def check(family: str, route: Route) -> None:
    """The passes are the pinned ones, no fewer; more must be pinned."""
    found = failures(family, route)
    wrong = {name: why for name, why in found.items() if why}
    passes, pin = len(found) - len(wrong), pinned().get(family, 0)
    assert passes >= pin, f"{passes} of {len(found)} pass, {pin} did before:\n{shown(wrong)}"
    assert passes == pin, f"{passes} pass, pinned are {pin}: raise the pin (python tests/conformance {family} --pin)"


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    check(family, lambda model: model)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_through_a_file(family: str, tmp_path: Path) -> None:
    def saved(model: Model) -> Model:
        model.save(tmp_path / "model.nnx")
        return load(tmp_path / "model.nnx")
    check(family, saved)


@pytest.mark.parametrize("family", [f for f in FAMILIES if WHOLE.fullmatch(f)])
def test_whole_family_is_pinned(family: str) -> None:
    assert pinned()[family] == total(family)
