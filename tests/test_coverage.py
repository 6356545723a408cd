"""What of TFLite is imported and lowered can only grow, and is no less than what the peers take."""
from __future__ import annotations

import pytest

from benchmarks import coverage as c
from nnx_convert.frontends.tflite.registry import all_importers

#: Without a kernel in any runtime.
MISSING = {"CONCAT_EMBEDDINGS"}
#: The fewest operators of a class.
LEAST = {c.BASE: 116, c.LATE: 2, c.FOLDED: 4}
FOUND = c.coverage()


def test_every_operator_is_imported_or_known_to_be_missing() -> None:
    assert {*FOUND.missing} <= MISSING and len(c.builtins()) == 161
    assert len(FOUND.classes) == 161 - len(FOUND.missing)


@pytest.mark.parametrize("kind", LEAST)
def test_no_operator_falls_back_to_the_host(kind: str) -> None:
    assert len(FOUND.of(kind)) >= LEAST[kind]


@pytest.mark.parametrize("peer", c.peers())
def test_what_a_peer_takes_is_taken_here(peer: str) -> None:
    assert {*c.peers()[peer]} <= {*all_importers(), "CUSTOM"} | MISSING


def test_the_tables_name_each_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert c.main(["--names"]) == 0
    said = capsys.readouterr().out
    assert all(text in said for text in c.TEXTS.values()) and "          CONV_2D\n" in said
